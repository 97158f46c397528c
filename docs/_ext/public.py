"""Every public name of hinge, by the page of the reference that it is on.

It needs no Sphinx: the tests ask it what must have a docstring and an example.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hinge
from hinge.robot.method import Method, methods_of
from pages import DOCS, blocks

# a page: chapters of Robot by their classes, modules with all that they list, names of hinge itself
CHAPTERS: dict[str, str] = {
    "robots": "Front JointData Robot load load_description save",
    "viewing": "Sight view",
    "kinematics": "Kinematics InverseKinematics Task",
    "dynamics": "Dynamics",
    "constrained": "Constrained Closed Contact LoopConstraint ConstrainedMotion ConstrainedForces "
    "ConstrainedHybridMotion Impact Assembly",
    "linearized": "Linearized trajectory_sensitivity",
    "underactuated": "Underactuated",
    "diagonalized": "Diagonalized Geometry",
    "operators": "Operational operators",
    "identification": "Regressors identify Identification RecursiveIdentification base_parameters "
    "exciting_trajectory",
    "motion": "simulate step Trajectory Ground HeightField",
    "control": "control control.space",
    "mechanisms": "Mechanism MechanismBuilder Body Frame Inertia Transform Shape Triangles Joint "
    "Revolute Prismatic Helical Cylindrical Translation Spherical Planar Universal Free Fixed "
    "Mimic Actuator check_joint",
    "spatial": "spatial spatial.so3 spatial.se3",
    "editing": "edit",
    "zoo": "zoo",
    "functions": "compile clear_caches Kernel rollout Rollout grad hessian jacobian jvp vjp atan2 "
    "less greater maximum minimum where",
    "large_batches": "in_blocks stream ReducingRollout Reduction Sum Mean Max Min Last Histogram",
    "algorithms": "algorithms",
    "jax": "jax",
    "torch": "torch",
    "casadi": "casadi",
    "gpu": "DeviceArray",
    "cluster": "cluster",
    "errors": "HingeError ArgumentError DeviceError DeviceMemoryError ImmutableError ModelError "
    "SingularError TraceError ModelWarning OpenLoopWarning TraceWarning",
}
# constants have no docstring
CONSTANTS = {
    "hinge.operators.LAWS": "Every identity that `simplify` and `explain` go by, each a `Law`."
}
_OF_ROBOT = {kind.__name__: kind for kind in hinge.Robot.__mro__[1:-1]}


class Entry(NamedTuple):
    """A public name: where it is found, and what it is."""

    full_name: str
    thing: Any

    @property
    def name(self) -> str:
        """The last word."""
        return self.full_name.rsplit(".", 1)[-1]

    @property
    def method(self) -> Method | None:
        """The declaration, if it is a compiled method of robots."""
        own = self.full_name.startswith("hinge.Robot.")
        declared = methods_of(hinge.Robot) if own else {}
        return next((m for m, names in declared.items() if self.name in names), None)

    @property
    def doc(self) -> str:
        """The docstring, its own; of a constant what `__doc__` of its kind is not."""
        described = inspect.isclass(self.thing) or inspect.isroutine(self.thing)
        if not described and self.thing.__doc__ == type(self.thing).__doc__:
            return CONSTANTS.get(self.full_name, "")
        inherited = inspect.isclass(self.thing) and "__doc__" not in vars(self.thing)
        return "" if inherited else inspect.getdoc(self.thing) or ""


def entries(page: str) -> Iterator[Entry]:
    """The public names on a page of the reference."""
    for word in CHAPTERS[page].split():
        if word in _OF_ROBOT:
            for name, thing in vars(_OF_ROBOT[word]).items():
                if not name.startswith("_"):
                    yield Entry(f"hinge.Robot.{name}", _plain(thing))
        elif word in ("jax", "torch", "casadi"):
            # their packages may be missing: what they offer is in modules that say so kindly
            yield from _listed(f"hinge.{word}")
        elif inspect.ismodule(found := _found(word)):
            yield from _listed(found.__name__, f"hinge.{word}")
        else:
            yield Entry(f"hinge.{word}", found)


def members(entry: Entry) -> Iterator[Entry]:
    """Public methods and properties of a class, its own; those of robots have pages instead."""
    if not inspect.isclass(entry.thing) or entry.full_name == "hinge.Robot":
        return
    for name, thing in vars(entry.thing).items():
        described = isinstance(thing, (property, classmethod, staticmethod)) or callable(thing)
        inherited = any(hasattr(base, name) for base in entry.thing.__mro__[1:])
        # a field may hold a function
        field = name in vars(entry.thing).get("__annotations__", {})
        if described and not (inherited or field or name.startswith("_")):
            yield Entry(f"{entry.full_name}.{name}", _plain(thing))


def example(page: str, name: str) -> list[str]:
    """The statements in the blocks of a page of the reference that have a name in them."""
    found = []
    for code in blocks(DOCS / "reference" / f"{page}.md"):
        for statement in _statements(code):
            if re.search(rf"\b{name}\b", statement):
                found.append(statement)
    return found


def _statements(code: str) -> Iterator[str]:
    """Lines that belong together: those that are indented, or close a bracket, to the one above."""
    for part in re.split(r"\n(?=[^\s)\]}])", code.rstrip()):
        if part.strip() and not part.startswith(("import ", "from ", "#")):
            yield part.rstrip()


def _found(word: str) -> Any:
    thing: Any = hinge
    for part in word.split("."):
        thing = getattr(thing, part)
    return thing


def _listed(module: str, shown: str | None = None) -> Iterator[Entry]:
    found = importlib.import_module(module)
    for name in dir(found) if found is hinge else found.__all__:
        thing = getattr(found, name)
        if not inspect.ismodule(thing):
            yield Entry(f"{shown or module}.{name}", thing)


def _plain(thing: Any) -> Any:
    """What has the docstring."""
    if isinstance(thing, (classmethod, staticmethod)):
        return thing.__func__
    return thing.__wrapped__ if isinstance(thing, Method) else thing


def path_of(page: str) -> Path:
    """The file of a page of the reference."""
    return DOCS / "reference" / f"{page}.md"

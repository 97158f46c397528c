"""The front door: a mechanism with checked arguments and batches over any leading shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..algorithms.constrained.description import LoopConstraint
from ..errors import ArgumentError
from ..load import MAX_MEMORY, MAX_SECONDS, load_closed
from ..runtime.progress import during
from .closed import Closed
from .constrained import Constrained
from .diagonalized import Diagonalized
from .dynamics import Dynamics
from .geometry import Geometry
from .kinematics import Kinematics
from .linearized import Linearized
from .operational import Operational
from .regressors import Regressors
from .sight import Sight
from .underactuated import Underactuated

if TYPE_CHECKING:
    from ..viewer.scene import Scene

__all__ = ["Robot", "check_robot", "load", "load_description", "view"]


class Robot(
    Sight,
    Kinematics,
    Dynamics,
    Closed,
    Constrained,
    Diagonalized,
    Geometry,
    Underactuated,
    Operational,
    Linearized,
    Regressors,
):
    """A mechanism ready for use; each base class is a chapter of its methods.

    Every method takes arrays with any leading shape and broadcasts them: `q` (…, nq), `qd`, `qdd`,
    `tau` (…, nv), `f_ext` (…, n_bodies, 6).  A wrong argument raises `ArgumentError`; NaN raises in
    a single call and gives NaN for that sample in a batch.

    `Robot(mechanism, parameters=("inertia",))` takes such numbers of the mechanism as keywords of
    every method: `robot.inverse_dynamics(q, qd, qdd, inertia=…)`, per sample, broadcast like q.
    """


def load(
    path_or_text: str | Path,
    floating_base: bool = False,
    package_dirs: Sequence[str | Path] = (),
    isolate: bool = False,
    max_memory: int = MAX_MEMORY,
    max_seconds: float = MAX_SECONDS,
    constraints: bool = False,
    lenient: bool = False,
    xacro_args: Mapping[str, Any] | None = None,
    device: str = "cpu",
) -> Robot:
    """A robot from a URDF, xacro or MJCF file, or from the text of a URDF or MJCF file.

    floating_base: let the root link move freely instead of welding it to the world.
    package_dirs: where the packages of package:// mesh addresses are, and folders besides its own
    that an MJCF file may read.
    isolate: compile an MJCF file that nobody vouches for in a process of its own.
    max_memory, max_seconds: the bytes that an MJCF file may ask for, and the time of that process.
    constraints: read the equality constraints of an MJCF file: `robot.constraints` close loops,
    joints that are coupled mimic each other.
    lenient: go on past faults of a URDF that do no harm, such as a mimic of a joint that is not
    there, with a `ModelWarning` about each.
    xacro_args: values of the arguments of a xacro file, which runs Python: load none of strangers.
    device: where the robot computes, "cpu" or an NVIDIA card: "cuda", "cuda:1".
    """
    limits = isolate, max_memory, max_seconds, constraints, lenient, xacro_args
    text = str(path_or_text).lstrip()
    with during(f"loading {'a text' if text.startswith('<') else text}"):
        found = load_closed(path_or_text, floating_base, package_dirs, *limits)
        loops = [LoopConstraint(*loop) for loop in found.loops]
        drives = found.actuators
        return Robot(found.mechanism, constraints=loops, device=device, actuators=drives)


def load_description(
    name: str,
    floating_base: bool = False,
    lenient: bool = False,
    xacro_args: Mapping[str, Any] | None = None,
) -> Robot:
    """A robot by name, such as "panda_description": through `robot_descriptions`, which fetches it.

    lenient, xacro_args: as of `load`; arguments go before those that the description has.
    """
    from ..load.descriptions import description

    path, folders, arguments = description(name)
    arguments |= xacro_args or {}
    return load(path, floating_base, folders, lenient=lenient, xacro_args=arguments or None)


def view(robot: Robot, q: ArrayLike | None = None, **settings: Any) -> Scene:
    """Open a page that shows a robot: `robot.view`, as a function.

    `with hinge.view(robot) as scene: scene.show(q)` closes it at the end.
    """
    return check_robot("view", robot).view(q, **settings)


def check_robot(where: str, robot: Any) -> Robot:
    """The robot, if it is one."""
    if not isinstance(robot, Robot):
        raise ArgumentError(
            f"{where} needs a Robot, got {type(robot).__name__}; make one of a mechanism with "
            f"hinge.Robot, of a file with hinge.load"
        )
    return robot

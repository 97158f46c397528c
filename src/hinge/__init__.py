"""hinge: the dynamics of robots and articulated mechanisms."""

from typing import TYPE_CHECKING, Any

from . import algorithms
from .compiled import compile
from .errors import (
    ArgumentError,
    HingeError,
    ModelError,
    ModelWarning,
    SingularError,
    TraceError,
)
from .joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Mimic,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from .mechanism import Body, Frame, Mechanism
from .robot import Robot, load
from .runtime.kernel import Kernel
from .shapes import Shape
from .spatial import Inertia, Transform

__all__ = [
    "ArgumentError",
    "Body",
    "ConstrainedMotion",
    "Cylindrical",
    "Fixed",
    "Frame",
    "Free",
    "Helical",
    "HingeError",
    "Inertia",
    "InverseKinematics",
    "Joint",
    "Kernel",
    "LoopConstraint",
    "Mechanism",
    "MechanismBuilder",
    "Mimic",
    "ModelError",
    "ModelWarning",
    "Planar",
    "Prismatic",
    "Revolute",
    "Robot",
    "Rollout",
    "Shape",
    "SingularError",
    "Spherical",
    "TraceError",
    "Trajectory",
    "Transform",
    "Translation",
    "Universal",
    "algorithms",
    "atan2",
    "compile",
    "control",
    "edit",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "less",
    "load",
    "maximum",
    "minimum",
    "operators",
    "rollout",
    "simulate",
    "trajectory_sensitivity",
    "vjp",
    "where",
    "zoo",
]

__version__ = "0.1.0"

# what not every program needs is imported when it is first asked for
_LATER = {
    "ConstrainedMotion": "algorithms.constraints",
    "InverseKinematics": "algorithms.reaching",
    "LoopConstraint": "algorithms.constraints",
    "MechanismBuilder": "builder",
    "Rollout": "runtime.rollout",
    "Trajectory": "simulation",
    "atan2": "trace.functions",
    "control": "",
    "edit": "",
    "grad": "derivatives",
    "hessian": "derivatives",
    "jacobian": "derivatives",
    "jvp": "derivatives",
    "less": "trace.functions",
    "maximum": "trace.functions",
    "minimum": "trace.functions",
    "operators": "",
    "rollout": "rollouts",
    "simulate": "simulation",
    "trajectory_sensitivity": "sensitivity",
    "vjp": "derivatives",
    "where": "trace.functions",
    "zoo": "",
}
if TYPE_CHECKING:
    from . import control, edit, operators, zoo
    from .algorithms.constraints import ConstrainedMotion, LoopConstraint
    from .algorithms.reaching import InverseKinematics
    from .builder import MechanismBuilder
    from .derivatives import grad, hessian, jacobian, jvp, vjp
    from .rollouts import rollout
    from .runtime.rollout import Rollout
    from .sensitivity import trajectory_sensitivity
    from .simulation import Trajectory, simulate
    from .trace.functions import atan2, less, maximum, minimum, where


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hinge' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LATER[name] or name}", __name__)
    globals()[name] = module if not _LATER[name] else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__

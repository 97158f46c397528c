"""hinge: the dynamics of robots and articulated mechanisms."""

from typing import TYPE_CHECKING, Any

from . import algorithms
from .algebra.spatial import MACHINE_CODE, Inertia, Transform
from .errors import (
    ArgumentError,
    DeviceError,
    DeviceMemoryError,
    HingeError,
    ImmutableError,
    ModelError,
    ModelWarning,
    OpenLoopWarning,
    SingularError,
    TraceError,
    TraceWarning,
)
from .functions.compile import compile
from .model.actuator import Actuator
from .model.joints import (
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
from .model.mechanism import Body, Frame, Mechanism
from .model.shapes import Shape, Triangles
from .robot import Robot, load, load_description, view
from .runtime.kernel import Kernel

__all__ = [
    "Actuator",
    "ArgumentError",
    "Assembly",
    "Body",
    "ConstrainedForces",
    "ConstrainedHybridMotion",
    "ConstrainedMotion",
    "Contact",
    "Cylindrical",
    "DeviceArray",
    "DeviceError",
    "DeviceMemoryError",
    "Fixed",
    "Frame",
    "Free",
    "Ground",
    "HeightField",
    "Helical",
    "HingeError",
    "Histogram",
    "Identification",
    "ImmutableError",
    "Impact",
    "Inertia",
    "InverseKinematics",
    "Joint",
    "Kernel",
    "Last",
    "LoopConstraint",
    "Max",
    "Mean",
    "Mechanism",
    "MechanismBuilder",
    "Mimic",
    "Min",
    "ModelError",
    "ModelWarning",
    "OpenLoopWarning",
    "Planar",
    "Prismatic",
    "RecursiveIdentification",
    "ReducingRollout",
    "Reduction",
    "Revolute",
    "Robot",
    "Rollout",
    "Shape",
    "SingularError",
    "Spherical",
    "Sum",
    "Task",
    "TraceError",
    "TraceWarning",
    "Trajectory",
    "Transform",
    "Translation",
    "Triangles",
    "Universal",
    "algorithms",
    "atan2",
    "base_parameters",
    "casadi",
    "check_joint",
    "clear_caches",
    "cluster",
    "compile",
    "control",
    "edit",
    "exciting_trajectory",
    "grad",
    "greater",
    "hessian",
    "identify",
    "in_blocks",
    "jacobian",
    "jax",
    "jvp",
    "less",
    "load",
    "load_description",
    "maximum",
    "minimum",
    "operators",
    "rollout",
    "save",
    "simulate",
    "spatial",
    "step",
    "stream",
    "torch",
    "trajectory_sensitivity",
    "view",
    "vjp",
    "where",
    "zoo",
]
# `from hinge import *` leaves Python's own compile as it is
__all__.remove("compile")

__version__ = "0.1.0"

# what not every program needs is imported when it is first asked for
_LATER = {
    "Assembly": "robot.assembly",
    "ConstrainedForces": "algorithms.constrained.inverse",
    "ConstrainedHybridMotion": "algorithms.constrained.forward",
    "ConstrainedMotion": "algorithms.constrained.forward",
    "Contact": "algorithms.constrained.description",
    "DeviceArray": "runtime.device_arrays",
    "Ground": "motion.ground",
    "HeightField": "motion.terrain",
    "Histogram": "functions.reductions",
    "Identification": "identification.fit",
    "Impact": "algorithms.constrained.impulse",
    "InverseKinematics": "robot.inverse_kinematics",
    "Last": "functions.reductions",
    "LoopConstraint": "algorithms.constrained.description",
    "Max": "functions.reductions",
    "Mean": "functions.reductions",
    "MechanismBuilder": "model.builder",
    "Min": "functions.reductions",
    "RecursiveIdentification": "identification.online",
    "ReducingRollout": "functions.reducing",
    "Reduction": "functions.reductions",
    "Rollout": "runtime.rollout",
    "Sum": "functions.reductions",
    "Task": "algorithms.tasks",
    "Trajectory": "motion.trajectory",
    "atan2": "graph.functions",
    "base_parameters": "identification.base",
    "casadi": "",
    "check_joint": "model.joint_check",
    "clear_caches": "runtime.recent",
    "cluster": "",
    "control": "",
    "edit": "",
    "exciting_trajectory": "identification.excitation",
    "grad": "functions.derivatives",
    "greater": "graph.functions",
    "hessian": "functions.derivatives",
    "identify": "identification.fit",
    "in_blocks": "robot.blocks",
    "jacobian": "functions.derivatives",
    "jax": "",
    "jvp": "functions.derivatives",
    "less": "graph.functions",
    "maximum": "graph.functions",
    "minimum": "graph.functions",
    "operators": "",
    "rollout": "functions.rollout",
    "save": "write",
    "simulate": "motion.simulate",
    "spatial": "",
    "step": "motion.implicit",
    "stream": "robot.blocks",
    "torch": "",
    "trajectory_sensitivity": "motion.trajectory_sensitivity",
    "vjp": "functions.derivatives",
    "where": "graph.functions",
    "zoo": "",
}
if TYPE_CHECKING:
    from . import casadi, cluster, control, edit, jax, operators, spatial, torch, zoo
    from .algorithms.constrained.description import Contact, LoopConstraint
    from .algorithms.constrained.forward import ConstrainedHybridMotion, ConstrainedMotion
    from .algorithms.constrained.impulse import Impact
    from .algorithms.constrained.inverse import ConstrainedForces
    from .algorithms.tasks import Task
    from .functions.derivatives import grad, hessian, jacobian, jvp, vjp
    from .functions.reducing import ReducingRollout
    from .functions.reductions import Histogram, Last, Max, Mean, Min, Reduction, Sum
    from .functions.rollout import rollout
    from .graph.functions import atan2, greater, less, maximum, minimum, where
    from .identification.base import base_parameters
    from .identification.excitation import exciting_trajectory
    from .identification.fit import Identification, identify
    from .identification.online import RecursiveIdentification
    from .model.builder import MechanismBuilder
    from .model.joint_check import check_joint
    from .motion.ground import Ground
    from .motion.implicit import step
    from .motion.simulate import simulate
    from .motion.terrain import HeightField
    from .motion.trajectory import Trajectory
    from .motion.trajectory_sensitivity import trajectory_sensitivity
    from .robot.assembly import Assembly
    from .robot.blocks import in_blocks, stream
    from .robot.inverse_kinematics import InverseKinematics
    from .runtime.device_arrays import DeviceArray
    from .runtime.recent import clear_caches
    from .runtime.rollout import Rollout
    from .write import save


def _pose_function(name: str) -> Any:
    """What answers for a `Transform`, imported when it is first asked."""
    from .spatial.transforms import function

    return function(name)


MACHINE_CODE["load"] = _pose_function


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hinge' has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f".{_LATER[name] or name}", __name__)
    found = home if not _LATER[name] else getattr(home, name, None)
    globals()[name] = import_module(f".{_LATER[name]}.{name}", __name__) if found is None else found
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "compile"])

"""hinge: the dynamics of robots and articulated mechanisms."""

from . import algorithms, edit, zoo
from .algorithms.constraints import ConstrainedMotion, LoopConstraint
from .algorithms.inverse_kinematics import InverseKinematics
from .builder import MechanismBuilder
from .compiled import compile
from .derivatives import grad, hessian, jacobian, jvp, vjp
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
from .simulate import Trajectory, simulate
from .spatial import Inertia, Transform
from .trace.functions import atan2, less, maximum, minimum, where

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
    "edit",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "less",
    "load",
    "maximum",
    "minimum",
    "simulate",
    "vjp",
    "where",
    "zoo",
]

__version__ = "0.1.0"

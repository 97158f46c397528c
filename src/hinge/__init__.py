"""hinge: the dynamics of robots and articulated mechanisms."""

from . import algorithms, edit, zoo
from .algorithms.constraints import ConstrainedMotion, LoopConstraint
from .algorithms.inverse_kinematics import InverseKinematics
from .builder import MechanismBuilder
from .errors import ArgumentError, HingeError, ModelError, ModelWarning, SingularError
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
from .shapes import Shape
from .simulate import Trajectory, simulate
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
    "Trajectory",
    "Transform",
    "Translation",
    "Universal",
    "algorithms",
    "edit",
    "load",
    "simulate",
    "zoo",
]

__version__ = "0.1.0"

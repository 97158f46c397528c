"""Laws of joint forces τ(t, q, q̇) that simulation takes and kernels swallow, and planners."""

from . import space
from .actuators import ActuatorForces
from .diagonal import PoseFeedback, RateFeedback
from .ilqr import ILQR, Plan
from .joint_space import ComputedTorque, GravityCompensation, JointMotion
from .linear_quadratic import Gains, LinearFeedback, Tracking, lqr, riccati, tracking
from .mppi import MPPI, Sampled
from .task_space import Impedance, OperationalSpace
from .trajectories import Quintic, TimedPath, quintic, time_optimal

__all__ = [
    "ActuatorForces",
    "ILQR",
    "MPPI",
    "ComputedTorque",
    "Gains",
    "GravityCompensation",
    "Impedance",
    "JointMotion",
    "LinearFeedback",
    "OperationalSpace",
    "Plan",
    "PoseFeedback",
    "Quintic",
    "RateFeedback",
    "Sampled",
    "TimedPath",
    "Tracking",
    "lqr",
    "quintic",
    "riccati",
    "space",
    "time_optimal",
    "tracking",
]


def __dir__() -> list[str]:
    return __all__

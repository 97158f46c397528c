"""The papers' recursions as plain sweeps: they know mechanisms and run on any scalar."""

from .configuration import difference, integrate, neutral, random_configuration, tangent_rate
from .constraints import (
    constrained_forward_dynamics,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
)
from .energy import center_of_mass, kinetic_energy, momentum, potential_energy, total_mass
from .forward_dynamics import aba, forward_dynamics
from .inverse_dynamics import bias_forces, gravity_forces, inverse_dynamics, rnea
from .inverse_kinematics import inverse_kinematics
from .kinematics import (
    frame_acceleration,
    frame_pose,
    frame_velocity,
    jacobian,
    poses,
    velocity_product_acceleration,
)
from .mass_matrix import crba, mass_matrix, mass_matrix_inverse

__all__ = [
    "aba",
    "bias_forces",
    "center_of_mass",
    "constrained_forward_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "crba",
    "difference",
    "forward_dynamics",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "gravity_forces",
    "integrate",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "kinetic_energy",
    "mass_matrix",
    "mass_matrix_inverse",
    "momentum",
    "neutral",
    "poses",
    "potential_energy",
    "random_configuration",
    "rnea",
    "tangent_rate",
    "total_mass",
    "velocity_product_acceleration",
]

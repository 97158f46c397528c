"""The papers' recursions as plain sweeps: they know mechanisms and run on any scalar."""

from . import dense as dense
from .configuration import difference, integrate, neutral, random_configuration, tangent_rate
from .constraints import (
    constrained_forward_dynamics,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
)
from .diagonalized.dynamics import (
    articulated_rates,
    diagonal_coriolis,
    diagonal_coriolis_matrix,
    diagonal_dynamics,
    mass_factor_rate,
)
from .diagonalized.factor import mass_factor, mass_factor_inverse
from .diagonalized.geometry import christoffel, curvature, is_flat, mass_factor_curl
from .diagonalized.rates import (
    innovations,
    joint_forces,
    joint_rates,
    total_rates,
    working_forces,
    working_gravity,
)
from .diagonalized.sensitivity import (
    coriolis_matrix,
    mass_matrix_rate,
    mass_matrix_second_sensitivity,
    mass_matrix_sensitivity,
)
from .energy import (
    center_of_mass,
    generalized_momentum,
    kinetic_energy,
    momentum,
    potential_energy,
    total_mass,
)
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
from .linearized.forward import forward_dynamics_derivatives, forward_dynamics_jvp
from .linearized.inverse import inverse_dynamics_derivatives, inverse_dynamics_jvp
from .mass_matrix import crba, mass_matrix, mass_matrix_inverse
from .operational_space import (
    operational_space_inertia,
    operational_space_inertia_inverse,
    operational_space_inertia_margin,
)
from .passive import passive_forces, spring_energy
from .underactuated.derivatives import hybrid_dynamics_derivatives
from .underactuated.generalized_jacobians import (
    active_inertia,
    complete_motion,
    disturbance_bias,
    disturbance_jacobian,
    generalized_bias,
    generalized_jacobian,
    generalized_motion,
    schur_blocks,
)
from .underactuated.hybrid_dynamics import hybrid_dynamics, hybrid_response

__all__ = [
    "aba",
    "active_inertia",
    "articulated_rates",
    "bias_forces",
    "center_of_mass",
    "christoffel",
    "complete_motion",
    "constrained_forward_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "coriolis_matrix",
    "crba",
    "curvature",
    "diagonal_coriolis",
    "diagonal_coriolis_matrix",
    "diagonal_dynamics",
    "difference",
    "disturbance_bias",
    "disturbance_jacobian",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_jvp",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "generalized_bias",
    "generalized_jacobian",
    "generalized_momentum",
    "generalized_motion",
    "gravity_forces",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "hybrid_response",
    "innovations",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
    "inverse_kinematics",
    "is_flat",
    "jacobian",
    "joint_forces",
    "joint_rates",
    "kinetic_energy",
    "mass_factor",
    "mass_factor_curl",
    "mass_factor_inverse",
    "mass_factor_rate",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_rate",
    "mass_matrix_second_sensitivity",
    "mass_matrix_sensitivity",
    "momentum",
    "neutral",
    "operational_space_inertia",
    "operational_space_inertia_inverse",
    "operational_space_inertia_margin",
    "passive_forces",
    "poses",
    "potential_energy",
    "random_configuration",
    "rnea",
    "schur_blocks",
    "spring_energy",
    "tangent_rate",
    "total_mass",
    "total_rates",
    "velocity_product_acceleration",
    "working_forces",
    "working_gravity",
]

"""The papers' recursions as plain sweeps: they know mechanisms and run on any scalar.

A function is imported with its module when it is first asked for.  The modules that are called like
one of their functions are imported here: a later import would put the module in its place.
"""

from typing import TYPE_CHECKING, Any

from .forward_dynamics import aba, forward_dynamics
from .inverse_dynamics import bias_forces, gravity_forces, inverse_dynamics, rnea
from .mass_matrix import crba, mass_matrix, mass_matrix_inverse

if TYPE_CHECKING:
    from .configuration import difference, integrate, neutral, random_configuration, tangent_rate
    from .constraints import (
        constrained_forward_dynamics,
        constraint_bias,
        constraint_error,
        constraint_jacobian,
    )
    from .diagonal_motion import (
        articulated_rates,
        diagonal_coriolis,
        diagonal_coriolis_matrix,
        diagonal_dynamics,
        mass_factor_rate,
    )
    from .diagonalized import (
        innovations,
        joint_forces,
        joint_rates,
        total_rates,
        working_forces,
        working_gravity,
    )
    from .energy import (
        center_of_mass,
        generalized_momentum,
        kinetic_energy,
        momentum,
        potential_energy,
        total_mass,
    )
    from .factor import mass_factor, mass_factor_inverse
    from .generalized_jacobians import (
        active_inertia,
        complete_motion,
        disturbance_bias,
        disturbance_jacobian,
        generalized_bias,
        generalized_jacobian,
        generalized_motion,
        schur_blocks,
    )
    from .geometry import christoffel, curvature, is_flat, mass_factor_curl
    from .hybrid_derivatives import hybrid_dynamics_derivatives
    from .kinematics import (
        frame_acceleration,
        frame_pose,
        frame_velocity,
        jacobian,
        poses,
        velocity_product_acceleration,
    )
    from .linearized_forward import forward_dynamics_derivatives, forward_dynamics_jvp
    from .linearized_inverse import inverse_dynamics_derivatives, inverse_dynamics_jvp
    from .operational_space import (
        operational_space_inertia,
        operational_space_inertia_inverse,
        operational_space_inertia_margin,
    )
    from .passive import passive_forces, spring_energy
    from .reaching import inverse_kinematics
    from .sensitivity import (
        coriolis_matrix,
        mass_matrix_rate,
        mass_matrix_second_sensitivity,
        mass_matrix_sensitivity,
    )
    from .underactuated import hybrid_dynamics, hybrid_response

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

_LATER = {
    "active_inertia": "generalized_jacobians",
    "articulated_rates": "diagonal_motion",
    "center_of_mass": "energy",
    "christoffel": "geometry",
    "complete_motion": "generalized_jacobians",
    "constrained_forward_dynamics": "constraints",
    "constraint_bias": "constraints",
    "constraint_error": "constraints",
    "constraint_jacobian": "constraints",
    "coriolis_matrix": "sensitivity",
    "curvature": "geometry",
    "diagonal_coriolis": "diagonal_motion",
    "diagonal_coriolis_matrix": "diagonal_motion",
    "diagonal_dynamics": "diagonal_motion",
    "difference": "configuration",
    "disturbance_bias": "generalized_jacobians",
    "disturbance_jacobian": "generalized_jacobians",
    "forward_dynamics_derivatives": "linearized_forward",
    "forward_dynamics_jvp": "linearized_forward",
    "frame_acceleration": "kinematics",
    "frame_pose": "kinematics",
    "frame_velocity": "kinematics",
    "generalized_bias": "generalized_jacobians",
    "generalized_jacobian": "generalized_jacobians",
    "generalized_momentum": "energy",
    "generalized_motion": "generalized_jacobians",
    "hybrid_dynamics": "underactuated",
    "hybrid_dynamics_derivatives": "hybrid_derivatives",
    "hybrid_response": "underactuated",
    "innovations": "diagonalized",
    "integrate": "configuration",
    "inverse_dynamics_derivatives": "linearized_inverse",
    "inverse_dynamics_jvp": "linearized_inverse",
    "inverse_kinematics": "reaching",
    "is_flat": "geometry",
    "jacobian": "kinematics",
    "joint_forces": "diagonalized",
    "joint_rates": "diagonalized",
    "kinetic_energy": "energy",
    "mass_factor": "factor",
    "mass_factor_curl": "geometry",
    "mass_factor_inverse": "factor",
    "mass_factor_rate": "diagonal_motion",
    "mass_matrix_rate": "sensitivity",
    "mass_matrix_second_sensitivity": "sensitivity",
    "mass_matrix_sensitivity": "sensitivity",
    "momentum": "energy",
    "neutral": "configuration",
    "operational_space_inertia": "operational_space",
    "operational_space_inertia_inverse": "operational_space",
    "operational_space_inertia_margin": "operational_space",
    "passive_forces": "passive",
    "poses": "kinematics",
    "potential_energy": "energy",
    "random_configuration": "configuration",
    "schur_blocks": "generalized_jacobians",
    "spring_energy": "passive",
    "tangent_rate": "configuration",
    "total_mass": "energy",
    "total_rates": "diagonalized",
    "velocity_product_acceleration": "kinematics",
    "working_forces": "diagonalized",
    "working_gravity": "diagonalized",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hinge.algorithms' has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__

"""The papers' recursions as plain sweeps: they know mechanisms and run on any scalar.

A new algorithm is declared in a file of its own and listed here: imported, public, and bound.
"""

from . import dense as dense
from .configuration import (
    difference,
    integrate,
    interpolate,
    neutral,
    normalize,
    random_configuration,
    random_velocity,
    tangent_rate,
)
from .constrained.closure import constraint_closure
from .constrained.cones import friction_residuals
from .constrained.continued import continued_dynamics
from .constrained.derivatives import (
    constrained_changes,
    constrained_forward_dynamics_derivatives,
)
from .constrained.forward import constrained_forward_dynamics, constrained_hybrid_dynamics
from .constrained.impulse import impulse_dynamics
from .constrained.impulse_derivatives import impulse_changes, impulse_dynamics_derivatives
from .constrained.inverse import constrained_inverse_dynamics
from .constrained.rows import anchors, constraint_bias, constraint_error, constraint_jacobian
from .declare import Bound, bound
from .diagonalized.diagonal_dynamics import (
    articulated_rates,
    diagonal_coriolis,
    diagonal_coriolis_matrix,
    diagonal_dynamics,
    mass_factor_rate,
)
from .diagonalized.mass_factor import mass_factor, mass_factor_inverse
from .diagonalized.mass_matrix_rates import (
    coriolis_matrix,
    mass_matrix_rate,
    mass_matrix_second_sensitivity,
    mass_matrix_sensitivity,
)
from .diagonalized.mass_metric import christoffel, curvature, is_flat, mass_factor_curl
from .diagonalized.rates_and_forces import (
    innovations,
    joint_forces,
    joint_rates,
    total_rates,
    working_forces,
    working_gravity,
)
from .differential_kinematics import differential_inverse_kinematics
from .energy import (
    center_of_mass,
    center_of_mass_jacobian,
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
from .lagrangian import lagrangian_derivatives
from .linearized.forward_change import forward_dynamics_change
from .linearized.forward_derivatives import forward_dynamics_derivatives, forward_dynamics_jvp
from .linearized.inverse_derivatives import inverse_dynamics_derivatives, inverse_dynamics_jvp
from .linearized.transposed import forward_dynamics_vjp, inverse_dynamics_vjp
from .mass_matrix import crba, mass_matrix, mass_matrix_inverse
from .operational_space import (
    operational_space_inertia,
    operational_space_inertia_inverse,
    operational_space_inertia_margin,
)
from .passive import passive_forces, spring_energy
from .regressors import (
    energy_regressor,
    momentum_regressor,
    torque_regressor,
    torque_regressor_joints,
    torque_regressor_row,
)
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
from .underactuated.hybrid_derivatives import hybrid_dynamics_derivatives, hybrid_dynamics_jvp
from .underactuated.hybrid_dynamics import hybrid_dynamics, hybrid_response

__all__ = [
    "aba",
    "active_inertia",
    "anchors",
    "articulated_rates",
    "bias_forces",
    "center_of_mass",
    "center_of_mass_jacobian",
    "christoffel",
    "complete_motion",
    "constrained_changes",
    "constrained_forward_dynamics",
    "constrained_forward_dynamics_derivatives",
    "constrained_hybrid_dynamics",
    "constrained_inverse_dynamics",
    "constraint_bias",
    "constraint_closure",
    "constraint_error",
    "constraint_jacobian",
    "continued_dynamics",
    "coriolis_matrix",
    "crba",
    "curvature",
    "diagonal_coriolis",
    "diagonal_coriolis_matrix",
    "diagonal_dynamics",
    "difference",
    "differential_inverse_kinematics",
    "disturbance_bias",
    "disturbance_jacobian",
    "energy_regressor",
    "forward_dynamics",
    "forward_dynamics_change",
    "forward_dynamics_derivatives",
    "forward_dynamics_jvp",
    "forward_dynamics_vjp",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "friction_residuals",
    "generalized_bias",
    "generalized_jacobian",
    "generalized_momentum",
    "generalized_motion",
    "gravity_forces",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "hybrid_dynamics_jvp",
    "hybrid_response",
    "impulse_changes",
    "impulse_dynamics",
    "impulse_dynamics_derivatives",
    "innovations",
    "integrate",
    "interpolate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
    "inverse_dynamics_vjp",
    "inverse_kinematics",
    "is_flat",
    "jacobian",
    "joint_forces",
    "joint_rates",
    "kinetic_energy",
    "lagrangian_derivatives",
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
    "momentum_regressor",
    "neutral",
    "normalize",
    "operational_space_inertia",
    "operational_space_inertia_inverse",
    "operational_space_inertia_margin",
    "passive_forces",
    "poses",
    "potential_energy",
    "random_configuration",
    "random_velocity",
    "rnea",
    "schur_blocks",
    "spring_energy",
    "tangent_rate",
    "torque_regressor",
    "torque_regressor_joints",
    "torque_regressor_row",
    "total_mass",
    "total_rates",
    "velocity_product_acceleration",
    "working_forces",
    "working_gravity",
]


def __dir__() -> list[str]:
    return __all__


class Algorithms(Bound):
    """The algorithms with a mechanism bound: `robot.alg.inverse_dynamics(q, qd, qdd)`.

    They check nothing, do not batch, and run on any scalar in object arrays.
    """

    aba = bound(aba)
    active_inertia = bound(active_inertia)
    anchors = bound(anchors)
    articulated_rates = bound(articulated_rates)
    bias_forces = bound(bias_forces)
    center_of_mass = bound(center_of_mass)
    center_of_mass_jacobian = bound(center_of_mass_jacobian)
    christoffel = bound(christoffel)
    complete_motion = bound(complete_motion)
    constrained_changes = bound(constrained_changes)
    constrained_forward_dynamics = bound(constrained_forward_dynamics)
    continued_dynamics = bound(continued_dynamics)
    constrained_forward_dynamics_derivatives = bound(constrained_forward_dynamics_derivatives)
    constrained_hybrid_dynamics = bound(constrained_hybrid_dynamics)
    constrained_inverse_dynamics = bound(constrained_inverse_dynamics)
    constraint_bias = bound(constraint_bias)
    constraint_closure = bound(constraint_closure)
    constraint_error = bound(constraint_error)
    constraint_jacobian = bound(constraint_jacobian)
    coriolis_matrix = bound(coriolis_matrix)
    crba = bound(crba)
    curvature = bound(curvature)
    diagonal_coriolis = bound(diagonal_coriolis)
    diagonal_coriolis_matrix = bound(diagonal_coriolis_matrix)
    diagonal_dynamics = bound(diagonal_dynamics)
    difference = bound(difference)
    differential_inverse_kinematics = bound(differential_inverse_kinematics)
    disturbance_bias = bound(disturbance_bias)
    disturbance_jacobian = bound(disturbance_jacobian)
    energy_regressor = bound(energy_regressor)
    forward_dynamics = bound(forward_dynamics)
    forward_dynamics_change = bound(forward_dynamics_change)
    forward_dynamics_derivatives = bound(forward_dynamics_derivatives)
    forward_dynamics_jvp = bound(forward_dynamics_jvp)
    forward_dynamics_vjp = bound(forward_dynamics_vjp)
    frame_acceleration = bound(frame_acceleration)
    frame_pose = bound(frame_pose)
    frame_velocity = bound(frame_velocity)
    friction_residuals = bound(friction_residuals)
    generalized_bias = bound(generalized_bias)
    generalized_jacobian = bound(generalized_jacobian)
    generalized_momentum = bound(generalized_momentum)
    generalized_motion = bound(generalized_motion)
    gravity_forces = bound(gravity_forces)
    hybrid_dynamics = bound(hybrid_dynamics)
    hybrid_dynamics_derivatives = bound(hybrid_dynamics_derivatives)
    hybrid_dynamics_jvp = bound(hybrid_dynamics_jvp)
    hybrid_response = bound(hybrid_response)
    impulse_changes = bound(impulse_changes)
    impulse_dynamics = bound(impulse_dynamics)
    impulse_dynamics_derivatives = bound(impulse_dynamics_derivatives)
    innovations = bound(innovations)
    integrate = bound(integrate)
    interpolate = bound(interpolate)
    inverse_dynamics = bound(inverse_dynamics)
    inverse_dynamics_derivatives = bound(inverse_dynamics_derivatives)
    inverse_dynamics_jvp = bound(inverse_dynamics_jvp)
    inverse_dynamics_vjp = bound(inverse_dynamics_vjp)
    inverse_kinematics = bound(inverse_kinematics)
    is_flat = bound(is_flat)
    jacobian = bound(jacobian)
    joint_forces = bound(joint_forces)
    joint_rates = bound(joint_rates)
    kinetic_energy = bound(kinetic_energy)
    lagrangian_derivatives = bound(lagrangian_derivatives)
    mass_factor = bound(mass_factor)
    mass_factor_curl = bound(mass_factor_curl)
    mass_factor_inverse = bound(mass_factor_inverse)
    mass_factor_rate = bound(mass_factor_rate)
    mass_matrix = bound(mass_matrix)
    mass_matrix_inverse = bound(mass_matrix_inverse)
    mass_matrix_rate = bound(mass_matrix_rate)
    mass_matrix_second_sensitivity = bound(mass_matrix_second_sensitivity)
    mass_matrix_sensitivity = bound(mass_matrix_sensitivity)
    momentum = bound(momentum)
    momentum_regressor = bound(momentum_regressor)
    neutral = bound(neutral)
    normalize = bound(normalize)
    operational_space_inertia = bound(operational_space_inertia)
    operational_space_inertia_inverse = bound(operational_space_inertia_inverse)
    operational_space_inertia_margin = bound(operational_space_inertia_margin)
    passive_forces = bound(passive_forces)
    poses = bound(poses)
    potential_energy = bound(potential_energy)
    random_configuration = bound(random_configuration)
    random_velocity = bound(random_velocity)
    rnea = bound(rnea)
    schur_blocks = bound(schur_blocks)
    spring_energy = bound(spring_energy)
    tangent_rate = bound(tangent_rate)
    torque_regressor = bound(torque_regressor)
    torque_regressor_joints = bound(torque_regressor_joints)
    torque_regressor_row = bound(torque_regressor_row)
    total_mass = bound(total_mass)
    total_rates = bound(total_rates)
    velocity_product_acceleration = bound(velocity_product_acceleration)
    working_forces = bound(working_forces)
    working_gravity = bound(working_gravity)

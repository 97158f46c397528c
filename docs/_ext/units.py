"""Units and meanings of what methods of robots take and give, by names."""

from __future__ import annotations

# of arrays by the names of arguments; what is not here has no unit, or several
UNITS = {
    **dict.fromkeys(("q", "q0", "q1", "dv", "dq", "u"), "rad, m"),
    **dict.fromkeys(("qd", "v", "dqd", "qd_active", "velocity"), "rad/s, m/s"),
    **dict.fromkeys(("qdd", "dqdd", "qdd_active"), "rad/s², m/s²"),
    **dict.fromkeys(("tau", "dtau", "tau_passive", "f_ext", "forces"), "N m, N"),
    "dgiven": "rad/s², m/s² where a DoF is driven, N m, N where it is not",
    "momentum_passive": "N m s, N s",
    "nu": "√J",
    "eps": "√J/s",
    "points": "m",
    "gravity": "m/s²",
    "inertia": "kg, kg m, kg m²",
    "placement": "m",
}
# of results of methods
RESULTS = {
    name: unit
    for unit, names in {
        "m": "poses frame_pose center_of_mass anchors",
        "rad, m": "integrate difference interpolate normalize",
        "1, m (a column for a hinge)": "jacobian generalized_jacobian center_of_mass_jacobian",
        "rad/s, m/s": "frame_velocity differential_inverse_kinematics joint_rates complete_motion "
        "generalized_motion tangent_rate",
        "rad/s², m/s²": "frame_acceleration velocity_product_acceleration forward_dynamics "
        "forward_dynamics_jvp generalized_bias disturbance_bias",
        "N m, N": "inverse_dynamics inverse_dynamics_jvp bias_forces gravity_forces passive_forces "
        "joint_forces",
        "N m s, N s": "momentum generalized_momentum momentum_regressor",
        "those of μ·τ over those of the variable": "inverse_dynamics_vjp",
        "those of μ·q̈ over those of the variable": "forward_dynamics_vjp",
        "J": "kinetic_energy potential_energy spring_energy energy_regressor",
        "√J": "total_rates",
        "√J/s": "working_forces working_gravity diagonal_coriolis diagonal_dynamics innovations",
        "1/s": "diagonal_coriolis_matrix",
        "kg m², kg": "mass_matrix active_inertia mass_matrix_sensitivity christoffel",
        "1/(kg m²), 1/kg": "mass_matrix_inverse operational_space_inertia_inverse",
        "√kg m, √kg": "mass_factor mass_factor_curl",
        "1/(√kg m), 1/√kg": "mass_factor_inverse",
        "those of m, per second": "mass_factor_rate",
        "those of M, per second": "mass_matrix_rate coriolis_matrix articulated_rates",
        "those of τ over those of the variable": "inverse_dynamics_derivatives "
        "torque_regressor lagrangian_derivatives",
        "those of the result over those of the variable": "forward_dynamics_derivatives "
        "hybrid_dynamics_derivatives constrained_forward_dynamics_derivatives "
        "impulse_dynamics_derivatives disturbance_jacobian schur_blocks",
        "N m, N; rad/s², m/s²": "hybrid_dynamics hybrid_dynamics_jvp constrained_forward_dynamics "
        "constrained_hybrid_dynamics constrained_inverse_dynamics",
        "rad/s, m/s; N m s, N s": "impulse_dynamics",
        "N": "friction_residuals",
    }.items()
    for name in names.split()
}
# what arrays are that are neither per joint nor per constraint
MEANINGS = {
    "f_ext": "forces (moment; force) on the bodies, in their axes",
    "velocity": "(ω; v) of the frame",
    "points": "a point of each body",
    "anchors": "a pose for each contact",
    "s": "a part of the way",
    "out": "where results go, instead of new arrays",
}

"""What other libraries call the methods of a robot: who asks for one of these is told ours."""

from __future__ import annotations

__all__ = ["METHODS", "meant_by"]

# theirs, as their pages spell it, without underscores and in lower case
METHODS = {
    **dict.fromkeys(("forwardkinematics", "fk", "fkine"), ("poses", "frame_pose")),
    **dict.fromkeys(("frameplacement", "updateframeplacement", "getframepose"), ("frame_pose",)),
    **dict.fromkeys(("updateframeplacements", "linkposes", "xpos"), ("poses",)),
    **dict.fromkeys(("ik", "ikine", "solveik"), ("inverse_kinematics",)),
    **dict.fromkeys(("id", "inverse", "computetau"), ("inverse_dynamics",)),
    **dict.fromkeys(("fd", "accel", "qacc"), ("forward_dynamics",)),
    **dict.fromkeys(("computeallterms", "step"), ("forward_dynamics", "rollout")),
    **dict.fromkeys(("massmatrixinverse", "computeminverse", "minv"), ("mass_matrix_inverse",)),
    **dict.fromkeys(("inertia", "fullm", "jointspaceinertia", "m"), ("mass_matrix",)),
    **dict.fromkeys(
        ("nle", "nonlineareffects", "nonlineareffect", "h", "qfrcbias", "biasterm", "biasforce"),
        ("bias_forces",),
    ),
    **dict.fromkeys(
        ("gravity", "gravload", "gravityterm", "computegeneralizedgravity", "g"),
        ("gravity_forces",),
    ),
    **dict.fromkeys(("coriolis", "computecoriolismatrix", "c"), ("coriolis_matrix",)),
    **dict.fromkeys(
        (
            "computejointjacobians",
            "computejointjacobian",
            "computeframejacobian",
            "getframejacobian",
            "framejacobian",
            "jac",
            "jacobe",
            "jacob0",
            "j",
        ),
        ("jacobian",),
    ),
    **dict.fromkeys(
        ("jacobiantimevariation", "computejointjacobianstimevariation", "jacobiandot", "jdot"),
        ("velocity_product_acceleration", "frame_acceleration"),
    ),
    **dict.fromkeys(("framevelocity", "getframevelocity", "spatialvelocity"), ("frame_velocity",)),
    **dict.fromkeys(("getframeacceleration",), ("frame_acceleration",)),
    **dict.fromkeys(("com", "composition", "centerofmassposition"), ("center_of_mass",)),
    **dict.fromkeys(("jacobiancenterofmass", "comjacobian"), ("center_of_mass_jacobian",)),
    **dict.fromkeys(
        ("centroidalmomentum", "computecentroidalmomentum", "hg", "ccrba"), ("momentum",)
    ),
    **dict.fromkeys(
        ("computerneaderivatives", "rneaderivatives"), ("inverse_dynamics_derivatives",)
    ),
    **dict.fromkeys(("computeabaderivatives", "abaderivatives"), ("forward_dynamics_derivatives",)),
    **dict.fromkeys(("jointtorqueregressor", "regressor"), ("torque_regressor",)),
    **dict.fromkeys(
        ("constraintdynamics", "contactdynamics", "forwarddynamicscontact"),
        ("constrained_forward_dynamics",),
    ),
    **dict.fromkeys(("impulsedynamics", "impact"), ("impulse_dynamics",)),
    **dict.fromkeys(("randomq", "randomstate", "rand"), ("random_configuration",)),
    **dict.fromkeys(("q0", "qpos0", "home", "zeros", "neutralconfiguration"), ("neutral",)),
    **dict.fromkeys(("dof", "ndof", "dofs", "numvelocities"), ("nv",)),
    **dict.fromkeys(("mass", "computetotalmass"), ("total_mass",)),
    **dict.fromkeys(("joints", "jointnames", "actuatednames"), ("joint_names",)),
    **dict.fromkeys(("links", "bodies", "linknames", "nbodies"), ("body_names", "n_bodies")),
    **dict.fromkeys(("frames",), ("frame_names",)),
    **dict.fromkeys(("show", "display", "render", "visualize"), ("view", "draw")),
    **dict.fromkeys(("plot", "image"), ("draw",)),
}


def meant_by(name: str) -> str:
    """A hint for a name that other libraries have; nothing, if none is known to."""
    ours = METHODS.get(name.replace("_", "").lower())
    return f"; hinge calls that {' or '.join(map(repr, ours))}" if ours else ""

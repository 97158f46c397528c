"""What readers look for under other words than those of a page: entries of its index.

The search of the site finds words that stand on a page, and the main entries of its index before
them; so what a page is about has an entry, where the page says it otherwise, or others more often.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

KEYWORDS = {
    "start": ["installation", "install", "getting started", "tutorial", "quickstart", "pip"],
    "gallery": ["examples", "animations", "videos", "reinforcement learning"],
    "viewing": ["visualization", "viewer", "rendering", "meshcat", "rviz", "notebook", "jupyter"],
    "tasks/load": ["inspect a robot", "degrees of freedom", "joint limits"],
    "tasks/mpc": ["mpc", "model predictive control", "optimal control", "trajectory optimization"],
    "inverse_kinematics": ["ik", "inverse kinematics", "solver for poses", "reachability"],
    "control": [
        "pd control", "pid", "computed torque", "impedance control", "operational space control",
        "gravity compensation", "whole-body control", "task space", "motion planning", "mppi",
    ],
    "simulation": [
        "simulator", "time integration", "integrator", "runge-kutta", "step size", "physics engine",
        "joint limits, stops", "energy drift",
    ],
    "ground": ["friction", "walking", "legged robots", "terrain", "contact with the ground"],
    "contact": [
        "four-bar", "four bar", "four-bar linkage", "closed loop", "closed loops",
        "closed chain", "parallel robot", "grasp",
        "constraints", "collision, impact", "delta robot", "stewart platform",
    ],
    "linearized": ["lqr", "linearization", "state-space model", "kalman filter", "stability"],
    "identification": [
        "system identification", "parameter estimation", "inertial parameters", "calibration",
        "regressor", "excitation",
    ],
    "gpu": ["cuda", "nvidia", "graphics card"],
    "large_batches": ["vectorization", "parallel simulation", "batch", "domain randomization"],
    "jax": ["differentiable simulation", "autodiff in jax", "brax"],
    "torch": [
        "reinforcement learning", "pytorch", "neural network", "policy gradient", "deep learning",
    ],
    "casadi": ["nonlinear programming", "ipopt", "acados"],
    "embedded": ["microcontroller", "c code generation", "real time", "ros", "c++"],
    "cluster": ["dask", "parameter study", "monte carlo"],
    "loading": ["urdf", "mjcf", "xacro", "sdf", "ros package", "mesh files"],
    "mechanisms": ["joint types", "ball joint", "prismatic joint", "mimic joint", "floating base"],
    "editing": ["payload", "change the mass", "lock a joint", "attach a tool", "scale a robot"],
    "derivatives": ["gradient", "automatic differentiation", "hessian", "sensitivity"],
    "underactuated": ["space robot", "satellite", "flexible robot", "hybrid dynamics"],
    "long_mechanisms": ["snake robot", "rope", "cable", "chains of many links"],
    "compiling": ["code generation", "just-in-time compilation", "cache", "first call"],
    "notation": ["symbols", "spatial notation", "conventions", "quaternion order"],
    "algorithms": ["list of functions", "rnea", "aba", "crba", "coriolis", "gravity vector"],
    "coming_from/pinocchio": ["pinocchio", "pink", "crocoddyl"],
    "coming_from/mujoco": ["mujoco", "mjx", "gymnasium"],
    "coming_from/drake": ["drake", "multibodyplant"],
    "reference/kinematics": [
        "forward kinematics", "fk", "frame pose", "jacobian", "geometric jacobian", "end effector",
        "center of mass", "centre of mass", "frame velocity",
    ],
    "reference/dynamics": [
        "inverse dynamics", "forward dynamics", "mass matrix", "inertia matrix", "bias forces",
        "kinetic energy", "potential energy", "coriolis matrix",
    ],
    "reference/motion": ["trajectory", "plot a motion", "record a video"],
    "theory/spatial_vectors": ["twist", "wrench", "screw theory", "adjoint", "plücker"],
    "platforms": ["windows", "macos", "linux", "arm", "python versions"],
    "benchmarks": ["performance", "speed", "timings"],
    "accuracy": ["precision", "rounding errors", "float32"],
}  # fmt: skip


def entries(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the entries of a page behind its title."""
    if words := KEYWORDS.get(docname):
        title, _, rest = source[0].partition("\n")
        listed = "\n".join(f"   ! single: {word}" for word in words)
        source[0] = f"{title}\n\n```{{eval-rst}}\n.. index::\n{listed}\n```\n{rest}"


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx."""
    app.connect("source-read", entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Robots that nobody has built."""

from __future__ import annotations

import numpy as np

from hinge import zoo
from mechanisms import assert_close

from .lines import Outcome, line


@line("robots", "eps", weight=2)
def random_trees(rng: np.random.Generator) -> Outcome:
    """A random tree of joints of every type, branched, with armature and offsets, as straight lines
    and as loops: compiled code against the plain code, forward against inverse dynamics, the mass
    matrix against its inverse, derivatives against differences of the dynamics."""
    n = int(rng.integers(1, 12)) if rng.random() < 0.9 else int(rng.integers(41, 50))
    robot = zoo.tree(int(rng.integers(1 << 30)), n)
    q, eps = robot.random_configuration(rng), np.finfo(float).eps
    qd, qdd, dq = rng.normal(size=(3, robot.nv))
    f_ext = rng.normal(size=(len(robot.body_names), 6))
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext)
    M, scale = robot.mass_matrix(q), 1 + np.abs(tau).max()
    worst = np.abs(tau - robot.alg.inverse_dynamics(q, qd, qdd, f_ext)).max() / (eps * scale)
    assert worst < 1e4, f"{robot!r}: inverse dynamics off by {worst:.3g} eps"
    condition = np.linalg.cond(M)
    forward = robot.forward_dynamics(q, qd, tau, f_ext)
    size = 1 + np.abs(qdd).max()
    bound = 100 * eps * condition + 1e-12
    assert_close(forward, qdd, bound, size * scale, f"{robot!r}: forward of inverse dynamics")
    assert_close(M @ robot.mass_matrix_inverse(q), np.eye(robot.nv), bound, condition, "M M⁻¹")
    h = 1e-6
    ends = [
        robot.inverse_dynamics(robot.integrate(q, s * h * dq), qd, qdd, f_ext) for s in (1.0, -1.0)
    ]
    slope = robot.inverse_dynamics_jvp(q, qd, qdd, dq, 0 * qd, 0 * qd, f_ext)
    spread = scale + np.abs(slope).max()
    assert_close((ends[0] - ends[1]) / (2 * h), slope, 1e-7, spread, f"{robot!r}: a derivative")
    return Outcome(1, float(worst))

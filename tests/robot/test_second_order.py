"""Second derivatives of the dynamics against complex steps of the first ones."""

from types import SimpleNamespace

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.model.parameters import parameters
from mechanisms import EPS, assert_close, complex_step, random_state

ROBOTS = {"arm": zoo.arm(3), "space_arm": zoo.space_arm(1), "ball": zoo.tree(11, 2)}


def slopes(robot, first, s):
    """The derivatives of three matrices along q and along q̇, by complex steps: last index."""
    alg, units = robot.alg, np.eye(robot.nv)
    along_q = [
        complex_step(lambda h, e=e: np.array(first(alg.integrate(s.q, h * e), s.qd))) for e in units
    ]
    along_qd = [complex_step(lambda h, e=e: np.array(first(s.q, s.qd + h * e))) for e in units]
    return (np.moveaxis(np.array(x), 0, -1) for x in (along_q, along_qd))


@pytest.mark.parametrize("kind", ["inverse", "forward"])
@pytest.mark.parametrize("name", ROBOTS)
def test_second_derivatives_are_slopes_of_the_first(name, kind):
    robot = ROBOTS[name]
    s = random_state(robot, 3)
    method = f"{kind}_dynamics_derivatives"
    along_q, along_qd = slopes(
        robot, lambda q, qd: getattr(robot.alg, method)(q, qd, s.qdd, s.f_ext), s
    )
    B, A, M = (x.swapaxes(1, 2) for x in along_q)
    got = getattr(robot, method)(s.q, s.qd, s.qdd, s.f_ext, order=2)
    last = "dq_dqdd" if kind == "inverse" else "dq_dtau"
    assert got._fields == ("dq_dq", "dq_dqd", "dqd_dqd", last)
    expected = SimpleNamespace(dq_dq=(B + B.swapaxes(1, 2)) / 2, dq_dqd=A, dqd_dqd=along_qd[1])
    for field in ("dq_dq", "dq_dqd", "dqd_dqd"):
        assert_close(getattr(got, field), getattr(expected, field), 200 * EPS)
    assert_close(got[3], M, 200 * EPS)


def test_the_hessian_along_a_geodesic():
    """τ(q ⊞ s v), differentiated twice with respect to s, for a body that turns."""
    robot = ROBOTS["space_arm"]
    s, v = random_state(robot, 3), np.random.default_rng(0).normal(size=robot.nv)
    d = robot.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, order=2)
    h = 1e-4
    slope = [
        complex_step(
            lambda e, t=t: robot.alg.inverse_dynamics(
                robot.alg.integrate(s.q, (t + e) * v), s.qd, s.qdd
            )
        )
        for t in (h, -h)
    ]
    twice = (slope[0] - slope[1]) / (2 * h)
    assert_close(np.einsum("iab,a,b->i", d.dq_dq, v, v), twice, 0.01 * h * h)


def test_batches():
    robot = ROBOTS["arm"]
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 4, 5, 3))
    many = robot.inverse_dynamics_derivatives(q, qd, qdd, order=2)
    one = robot.inverse_dynamics_derivatives(q[2, 1], qd[2, 1], qdd[2, 1], order=2)
    for x, y in zip(many, one, strict=True):
        assert x.shape == (4, 5, 3, 3, 3)
        assert_close(x[2, 1], y, 10 * EPS)


def test_wrong_arguments():
    robot, x = ROBOTS["arm"], np.zeros(3)
    with pytest.raises(hinge.ArgumentError, match="order is 3; expected one of 1, 2"):
        robot.inverse_dynamics_derivatives(x, x, x, order=3)
    with pytest.raises(hinge.ArgumentError, match="second derivatives know forces in body axes"):
        robot.forward_dynamics_derivatives(x, x, x, np.zeros((3, 6)), load="dead", order=2)


def test_second_derivatives_say_what_they_do_not_take():
    x, robot = np.zeros(2), hinge.Robot(zoo.arm(2).mechanism, parameters=("inertia",))
    inertia = parameters(robot.mechanism)["inertia"]
    with pytest.raises(hinge.ArgumentError, match="second derivatives take no inertia; leave it"):
        robot.inverse_dynamics_derivatives(x, x, x, order=2, inertia=inertia)
    with pytest.raises(hinge.ArgumentError, match="second derivatives take no method; leave it"):
        robot.forward_dynamics_derivatives(x, x, x, order=2, method="articulated")
    with pytest.raises(hinge.ArgumentError, match="take no points; leave it out, or use hinge.hes"):
        robot.inverse_dynamics_derivatives(x, x, x, points=np.zeros((2, 3)), order=2)

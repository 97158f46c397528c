"""The numbers of a mechanism as inputs: of the generic code, of kernels, of derivatives."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from hinge.parameters import PARAMETERS, parameters, with_parameters
from mechanisms import EPS, ROBOTS, assert_close, complex_step, random_state


@pytest.mark.parametrize("name", ["tree0", "quadruped", "gripper"])
def test_numbers_taken_out_and_put_back_change_nothing(name):
    robot = ROBOTS[name]
    s = random_state(robot, 0)
    again = with_parameters(robot.mechanism, **parameters(robot.mechanism))
    tau = hinge.algorithms.inverse_dynamics(again, s.q, s.qd, s.qdd, s.f_ext)
    assert_close(tau, robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), 10 * EPS)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_every_sample_may_have_a_mechanism_of_its_own(name):
    robot = zoo.space_arm(3)
    arrays = ("q", "qd", "qdd" if name[0] == "i" else "tau")
    kernel = robot.kernel(name, *arrays, *PARAMETERS)
    rng = np.random.default_rng(0)
    values = parameters(robot.mechanism)
    scale = rng.uniform(0.5, 2.0, size=(5, 1, 1))
    given = {
        "gravity": values["gravity"] + rng.normal(size=(5, 3)),
        "inertia": scale * values["inertia"],
        "placement": values["placement"] * np.r_[np.ones(9), 1.1, 0.9, 1.2],
    }
    states = [random_state(robot, seed) for seed in range(5)]
    q, qd, last = (np.array([getattr(s, a) for s in states]) for a in ("q", "qd", "qdd"))
    got = kernel(q, qd, last, *given.values())
    for i in range(5):
        own = {n: np.broadcast_to(x, (5, *np.shape(values[n])))[i] for n, x in given.items()}
        mech = with_parameters(robot.mechanism, **own)
        expected = getattr(hinge.algorithms, name)(mech, q[i], qd[i], last[i])
        assert_close(got[i], expected, 500 * EPS)


def test_joint_forces_are_linear_in_the_inertias():
    """The regressor Y of identification, τ = Y θ, by differentiating with respect to θ."""
    robot = zoo.arm(3)
    mech, theta = robot.mechanism, parameters(robot.mechanism)["inertia"]
    s = random_state(robot, 1)

    def torque(inertia, q, qd, qdd):
        return hinge.algorithms.inverse_dynamics(with_parameters(mech, inertia=inertia), q, qd, qdd)

    Y = hinge.jacobian(torque)(theta, s.q, s.qd, s.qdd)
    armature = 0.02 * s.qdd
    tau = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(np.einsum("ikl,kl->i", Y, theta) + armature, tau, 50 * EPS)
    step = np.zeros_like(theta)
    step[1, 4] = 1.0
    slope = complex_step(lambda h: torque(theta + h * step, s.q, s.qd, s.qdd))
    assert_close(Y[:, 1, 4], slope, 50 * EPS)


def test_unknown_arrays_are_refused():
    with pytest.raises(
        ArgumentError, match="kernel of 'arm3': no array is called 'mass'; known: q"
    ):
        zoo.arm(3).kernel("inverse_dynamics", "q", "qd", "qdd", "mass")

"""The numbers of a mechanism as inputs: of the generic code, of kernels, of derivatives."""

import pickle

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from hinge.model.parameters import PARAMETERS, parameters, with_parameters
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


# as keywords of a robot's methods

METHODS = {
    "inverse_dynamics": lambda s: (s.q, s.qd, s.qdd, s.f_ext),
    "rnea": lambda s: (s.q, s.qd, s.qdd),
    "forward_dynamics": lambda s: (s.q, s.qd, s.qdd),
    "mass_matrix": lambda s: (s.q,),
    "mass_matrix_inverse": lambda s: (s.q,),
    "gravity_forces": lambda s: (s.q,),
    "poses": lambda s: (s.q,),
    "frame_pose": lambda s: (s.q, "tool"),
    "jacobian": lambda s: (s.q, "tool"),
    "center_of_mass": lambda s: (s.q,),
    "momentum": lambda s: (s.q, s.qd),
    "kinetic_energy": lambda s: (s.q, s.qd),
    "potential_energy": lambda s: (s.q,),
    "inverse_dynamics_derivatives": lambda s: (s.q, s.qd, s.qdd),
    "total_rates": lambda s: (s.q, s.qd),
}


def other_numbers(mech, count, seed=0):
    """Numbers of so many mechanisms like this one."""
    rng = np.random.default_rng(seed)
    own = parameters(mech)
    return {
        "gravity": own["gravity"] + rng.normal(size=(count, 3)),
        "inertia": rng.uniform(0.5, 2.0, size=(count, 1, 1)) * own["inertia"],
        "placement": own["placement"] * np.r_[np.ones(9), 1.1, 0.9, 1.2],
    }


@pytest.mark.parametrize("method", METHODS)
def test_numbers_as_keywords(method):
    robot = hinge.Robot(zoo.arm(3).mechanism, parameters=PARAMETERS)
    numbers = other_numbers(robot.mechanism, 3)
    s = random_state(robot, 0)
    given = METHODS[method](s)
    got = getattr(robot, method)(*given, **numbers)
    for i in range(3):
        own = {n: x if n == "placement" else x[i] for n, x in numbers.items()}
        other = hinge.Robot(with_parameters(robot.mechanism, **own))
        expected = getattr(other.alg, getattr(robot, method).__name__)(*given)
        pairs = (
            zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
        )
        for a, b in pairs:
            assert_close(np.broadcast_to(a, (3, *np.shape(b)))[i], b, 500 * EPS)
    # what is not given is the mechanism's own
    plain = hinge.Robot(robot.mechanism)
    for keywords in ({}, {"inertia": None}):
        a, b = getattr(robot, method)(*given, **keywords), getattr(plain, method)(*given)
        for x, y in zip(a, b, strict=True) if isinstance(b, tuple) else [(a, b)]:
            assert_close(x, y, 0.0)


def test_one_set_of_numbers_and_out():
    robot = hinge.Robot(zoo.arm(3).mechanism, parameters=("inertia", "gravity"))
    s = random_state(robot, 0)
    out = np.empty(3)
    heavy = 2 * parameters(robot.mechanism)["inertia"]
    assert robot.gravity_forces(s.q, inertia=heavy, out=out) is out
    assert_close(out, 2 * zoo.arm(3).gravity_forces(s.q), 50 * EPS)
    assert_close(robot.gravity_forces(s.q, gravity=np.zeros(3)), np.zeros(3), EPS)
    assert_close(robot.gravity_forces(s.q), zoo.arm(3).gravity_forces(s.q), 10 * EPS)
    again = pickle.loads(pickle.dumps(robot))
    assert again.parameters == ("inertia", "gravity")
    assert_close(again.gravity_forces(s.q, inertia=heavy), out, 10 * EPS)


def test_numbers_that_are_refused():
    mech = zoo.arm(3).mechanism
    with pytest.raises(ArgumentError, match="Robot of 'arm3': a parameter is 'mass'; expected one"):
        hinge.Robot(mech, parameters=("mass",))
    robot = hinge.Robot(mech, parameters=("inertia",))
    with pytest.raises(ArgumentError, match=r"inertia has shape \(3, 9\); expected .* the inertia"):
        robot.mass_matrix(np.zeros(3), inertia=np.zeros((3, 9)))
    with pytest.raises(ArgumentError, match="gravity is folded into this robot's kernels; to give"):
        robot.mass_matrix(np.zeros(3), gravity=np.zeros(3))
    heavy = parameters(mech)["inertia"]
    with pytest.raises(ArgumentError, match="inverse_kinematics of 'arm3' takes no inertia: it is"):
        robot.inverse_kinematics("tool", robot.frame_pose(np.ones(3), "tool"), inertia=heavy)
    for call in (robot.curvature, robot.mass_matrix_second_sensitivity, robot.is_flat):
        with pytest.raises(ArgumentError, match="takes no inertia: it is made for the mechanism"):
            call(np.zeros(3), inertia=heavy)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
def test_every_sample_of_a_simulation_may_have_a_mechanism_of_its_own(method):
    robot = zoo.arm(3)
    numbers = other_numbers(robot.mechanism, 3)
    keywords = dict(duration=0.05, dt=0.01, method=method)
    runs = [
        hinge.simulate(robot, np.ones(3), compiled=c, **keywords, **numbers) for c in (True, False)
    ]
    assert runs[0].q.shape == (6, 3, 3)
    assert_close(runs[0].q, runs[1].q, 50 * EPS)
    for i in range(3):
        own = {n: x if n == "placement" else x[i] for n, x in numbers.items()}
        other = hinge.Robot(with_parameters(robot.mechanism, **own))
        alone = hinge.simulate(other, np.ones(3), **keywords)
        assert_close(runs[0].q[:, i], alone.q, 50 * EPS)
        assert_close(runs[0].energy[:, i], alone.energy, 50 * EPS)
    with pytest.raises(ArgumentError, match="simulate 'arm3': mass is not an argument; "):
        hinge.simulate(robot, np.ones(3), mass=1.0)


def test_one_parameter_needs_no_tuple():
    assert hinge.Robot(zoo.arm(2).mechanism, parameters="inertia").parameters == ("inertia",)

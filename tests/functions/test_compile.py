"""Robots and functions through kernels: the front door after its first call, and `compile`."""

import builtins
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Robot, SingularError, zoo
from hinge.robot.answers import robot_kernel
from hinge.specialize.arrays import array_shape
from mechanisms import EPS, ROBOTS, Generic, assert_close, random_state

ARM = zoo.arm(3)
STATE = random_state(ARM, 1)
CALLS = {
    "inverse_dynamics": lambda r, s: r.inverse_dynamics(s.q, s.qd, s.qdd),
    "with forces": lambda r, s: r.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext),
    "forward_dynamics": lambda r, s: r.forward_dynamics(s.q, s.qd, s.qdd),
    "mass_matrix": lambda r, s: r.mass_matrix(s.q),
}


# algorithms


def test_a_robot_has_one_kernel_per_call():
    kernel = ARM.kernel("inverse_dynamics", "q", "qd", "qdd")
    assert ARM.kernel("inverse_dynamics", "q", "qd", "qdd") is kernel
    assert kernel.name == "inverse_dynamics of 'arm3'" and kernel.names == ("q", "qd", "qdd")
    assert kernel.ops == kernel.program.ops and 50 < sum(kernel.ops) < 400
    s = STATE
    assert_close(kernel(s.q, s.qd, s.qdd), ARM.inverse_dynamics(s.q, s.qd, s.qdd), 4 * EPS)
    tool = ARM.kernel("jacobian", "q", frame="tool", reference="world")
    assert tool is not ARM.kernel("jacobian", "q", frame="link1", reference="world")
    assert_close(tool(s.q), ARM.jacobian(s.q, "tool", "world"), 0.0)


def test_a_kernel_takes_arrays_that_it_knows():
    with pytest.raises(ArgumentError, match="kernel of 'arm3': no array is called 'p'; known: q, "):
        ARM.kernel("mass_matrix", "p")


def test_arrays_have_shapes_by_name():
    mech = ROBOTS["quadruped"].mechanism
    assert array_shape(mech, "q1") == (19,) and array_shape(mech, "tau") == (18,)
    assert array_shape(mech, "f_ext") == (13, 6) and array_shape(mech, "gain") == ()


@pytest.mark.parametrize("name", ["cartpole", "gripper", "space_arm", "tree0"])
@pytest.mark.parametrize("call", CALLS)
def test_float32_agrees_to_its_precision(name, call):
    robot, state = ROBOTS[name], random_state(ROBOTS[name], 2)
    got = CALLS[call](Robot(robot.mechanism, dtype=np.float32), state)
    assert got.dtype == np.float32
    assert_close(got, CALLS[call](Generic(robot), state), 50 * np.finfo(np.float32).eps)


def test_other_dtypes_are_refused():
    with pytest.raises(ArgumentError, match="int64; kernels come in float64 and float32"):
        Robot(ARM.mechanism, dtype=int).mass_matrix(STATE.q)


# the front door after its first call


@pytest.fixture
def used():
    """A robot whose calls go straight to machine code."""
    robot, s = Robot(ARM.mechanism), STATE
    for _ in range(2):
        robot.inverse_dynamics(s.q, s.qd, s.qdd), robot.mass_matrix(s.q)
        robot.forward_dynamics(s.q, s.qd, s.qdd)
    assert type(robot.inverse_dynamics) is type(len)
    return robot


def test_every_way_to_call_gives_the_same(used):
    s, zero = STATE, np.zeros((3, 6))
    tau = Generic(ARM).inverse_dynamics(s.q, s.qd, s.qdd)
    batch = [np.tile(x, (4, 1)) for x in (s.q, s.qd, s.qdd)]
    out = np.zeros(3)
    for got in (
        used.inverse_dynamics(s.q, s.qd, s.qdd),
        used.rnea(s.q, s.qd, s.qdd),
        used.inverse_dynamics(q=s.q, qd=s.qd, qdd=s.qdd),
        used.inverse_dynamics(s.q, s.qd, qdd=list(s.qdd)),
        used.inverse_dynamics(s.q, s.qd, s.qdd, zero),
        used.inverse_dynamics(s.q, s.qd, s.qdd, f_ext=zero),
        used.inverse_dynamics(s.q, s.qd, s.qdd, out=out),
        used.inverse_dynamics(*batch)[3],
        out,
    ):
        assert_close(got, tau, 50 * EPS)
    assert_close(used.aba(s.q, s.qd, tau), s.qdd, 200 * EPS)
    assert np.array_equal(used.crba(s.q), used.mass_matrix(s.q))
    assert np.array_equal(used.crba(s.q), ARM.crba(s.q))


def test_errors_are_those_of_the_first_call(used):
    s = STATE
    with pytest.raises(ArgumentError, match=r"mass_matrix of 'arm3': q has shape \(4,\)"):
        used.mass_matrix(np.zeros(4))
    with pytest.raises(ArgumentError, match=r"q\[1\] is nan; expected finite"):
        used.mass_matrix(np.array([0, np.nan, 0]))
    with pytest.raises(ArgumentError, match=r"qdd\[0\] is inf"):
        used.rnea(s.q, s.qd, np.array([np.inf, 0, 0]))
    with pytest.raises(ArgumentError, match="qdd is missing, or None; it takes q, qd, qdd, f_ext"):
        used.inverse_dynamics(s.q, s.qd)
    with pytest.raises(SingularError, match="the result is not finite"):
        used.inverse_dynamics(s.q, np.full(3, 1e200), s.qdd)


def test_a_used_robot_is_pickled_and_copied(used):
    s = STATE
    float32 = Robot(ARM.mechanism, dtype=np.float32, threads=1)
    for robot in (used, float32):
        tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
        for twin in (pickle.loads(pickle.dumps(robot)), copy.copy(robot), copy.deepcopy(robot)):
            assert (twin.mechanism, twin.dtype) == (robot.mechanism, robot.dtype)
            assert twin.threads == robot.threads
            assert np.array_equal(twin.inverse_dynamics(s.q, s.qd, s.qdd), tau)


def test_a_used_robot_is_let_go():
    robot = Robot(ARM.mechanism)
    robot.mass_matrix(STATE.q), robot.mass_matrix(STATE.q)
    gone = weakref.ref(robot)
    del robot
    gc.collect()
    assert gone() is None


# functions


def test_a_step_is_one_kernel():
    @ARM.compile
    def step(q, qd, tau, dt):
        qd = qd + dt * ARM.alg.forward_dynamics(q, qd, tau)
        return ARM.alg.integrate(q, dt * qd), qd

    s = STATE
    q, qd = step(s.q, s.qd, s.qdd, 1e-3)
    expected = s.qd + 1e-3 * ARM.forward_dynamics(s.q, s.qd, s.qdd)
    assert_close(qd, expected, 100 * EPS)
    assert_close(q, s.q + 1e-3 * expected, 100 * EPS)
    assert step.names == ("q", "qd", "tau", "dt") and step.name == "step"
    q, qd = step(np.tile(s.q, (5, 1)), s.qd, s.qdd, np.linspace(0, 1, 5))
    assert q.shape == (5, 3) and np.array_equal(qd[0], s.qd)


def test_shapes_of_other_arguments_are_given():
    @ARM.compile(gains=(3, 3), goal=(3,))
    def control(q, gains, goal, weight):
        return weight * (gains @ (goal - q)) - hinge.minimum(weight, 0.5)

    rng = np.random.default_rng(0)
    K, goal = rng.normal(size=(3, 3)), rng.normal(size=3)
    expected = 2.0 * K @ (goal - STATE.q) - 0.5
    assert_close(control(STATE.q, K, goal, 2.0), expected, 10 * EPS)
    as_float32 = Robot(ARM.mechanism, dtype=np.float32, threads=1).compile(lambda q: 2 * q)
    assert as_float32.dtype == np.float32 and as_float32.backend.threads == 1


@pytest.mark.parametrize(
    ("fn", "shapes", "told"),
    [
        (lambda x, y: x, {"x": (2,)}, "it takes x, y; give the shape of each, got x"),
        (lambda x: x, {"x": (2,), "z": ()}, "it takes x; give the shape of each, got x, z"),
        (lambda: 1.0, {"x": ()}, "it takes nothing; .* got x"),
        (lambda x: x, {}, "it takes x; .* got none"),
        (lambda x: x, {"x": (-1,)}, r"the shape of x is \(-1,\); expected a tuple of whole"),
    ],
)
def test_every_argument_needs_a_shape(fn, shapes, told):
    with pytest.raises(ArgumentError, match=f"compile <lambda>: {told}"):
        hinge.compile(fn, **shapes)


def test_a_kernel_is_of_an_algorithm():
    with pytest.raises(ArgumentError, match="no algorithm is called 'rne'; did you mean 'rnea'"):
        zoo.arm(2).kernel("rne", "q")


def test_shapes_are_tuples_and_names_are_those_of_arguments():
    with pytest.raises(ArgumentError, match="the shape of x is 3; expected a tuple"):
        hinge.compile(lambda x: x, x=3)
    with pytest.raises(ArgumentError, match="it takes q, gain; give the shape of each, got"):
        zoo.arm(2).compile(lambda q, gain: gain * q, gains=(2,))


def test_arguments_are_in_the_order_of_the_function():
    first = hinge.compile(lambda b, a: b - 2 * a, a=(), b=(2,))
    assert first(np.array([5.0, 6.0]), 1.0).tolist() == [3, 4]


def test_kernels_have_a_key_of_all_they_are_made_from():
    def key(robot, name="jacobian", arrays=("q",), **static):
        return robot_kernel(robot.mechanism, name, arrays, tuple(static.items()))._source._key

    used = zoo.arm(3)
    used.mass_matrix(STATE.q)
    assert key(used) == key(zoo.arm(3))
    others = [key(zoo.arm(4)), key(used, frame="tool"), key(used, frame="link1")]
    others += [key(used, "frame_pose"), key(used, "jacobian", ("q", "qd"))]
    assert len({key(used), *others}) == 6


def test_a_star_import_leaves_what_python_has():
    names = {}
    exec("from hinge import *", names)
    assert "compile" not in names and names["where"] is hinge.where
    assert not set(hinge.__all__) & set(dir(builtins)) and "compile" in dir(hinge)

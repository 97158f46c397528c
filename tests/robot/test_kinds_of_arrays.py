"""Arrays of other kinds: taken for what they are, or refused, by first calls and by doors."""

from fractions import Fraction

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Robot, zoo
from hinge.runtime.kernel import Kernel
from marks import short_way

Q = np.array([1.0, 2.0, 0.0])
ONES = np.ones(3)
MASKED = np.ma.array(Q, mask=[False, True, False])


class Own(np.ndarray):
    """A subclass that changes nothing."""


def read_only():
    q = Q.copy()
    q.flags.writeable = False
    return q


TAKEN = {
    "list": [1, 2, 0],
    "read-only": read_only(),
    "negative stride": Q[::-1].copy()[::-1],
    "strided": np.repeat(Q, 2)[::2],
    "big-endian": Q.astype(">f8"),
    "float16": Q.astype(np.float16),
    "float32": Q.astype(np.float32),
    "long double": Q.astype(np.longdouble),
    "int": Q.astype(int),
    "uint8": Q.astype(np.uint8),
    "unaligned": np.frombuffer(b"." + Q.tobytes(), np.uint8)[1:].view(float),
    "subclass": Q.view(Own),
    "nothing masked": np.ma.array(Q),
}
REFUSED = {
    "masked": (MASKED, "q has masked entries; expected numbers"),
    "list of masked": ([MASKED, MASKED], "q has masked entries; expected numbers"),
    "object": (Q.astype(object), "q has dtype object; expected real numbers"),
    "fractions": ([Fraction(1), Fraction(2), 0], "q has dtype object"),
    "complex": (Q + 0j, "q has dtype complex128; expected real numbers"),
    "words": (["1", "2", "0"], "q has dtype <U1; expected real numbers"),
    "structured": (np.zeros(3, [("a", float)]), "q has dtype .* expected real numbers"),
    "durations": (np.zeros(3, "m8[s]"), "q has dtype timedelta64"),
    "0-d": (np.float64(1.0), r"q has shape \(\); expected"),
    "set": ({1, 2, 3}, "q has dtype object"),
}


@pytest.fixture(scope="module", params=["first call", "door"])
def robot(request):
    robot = zoo.arm(3)
    for _ in range(4 if request.param == "door" else 0):
        robot.inverse_dynamics(Q, ONES, ONES)
    return robot


@pytest.mark.parametrize("kind", TAKEN)
def test_what_has_the_same_numbers_gives_the_same(robot, kind):
    expected = robot.inverse_dynamics(Q, ONES, ONES)
    assert np.array_equal(robot.inverse_dynamics(TAKEN[kind], ONES, ONES), expected)


@short_way
@pytest.mark.parametrize("kind", TAKEN)
def test_a_door_makes_arrays_of_them_and_goes_the_short_way(kind, monkeypatch):
    robot, kernel = zoo.arm(3), hinge.compile(lambda q, s: q * s, q=(3,), s=())
    expected = [robot.inverse_dynamics(Q, ONES, ONES) for _ in range(3)][0]
    doubled = kernel(Q, np.array(2.0))
    monkeypatch.setattr(Robot, "_answered", None)
    monkeypatch.setattr(Kernel, "_filled", None)
    assert np.array_equal(robot.inverse_dynamics(TAKEN[kind], qdd=ONES, qd=[1, 1, 1]), expected)
    assert np.array_equal(kernel(TAKEN[kind], 2), doubled)


def test_truth_values_are_numbers(robot):
    expected = robot.inverse_dynamics(ONES, ONES, ONES)
    assert np.array_equal(robot.inverse_dynamics(ONES.astype(bool), ONES, ONES), expected)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_none_is_refused(robot, kind):
    value, words = REFUSED[kind]
    with pytest.raises(ArgumentError, match=f"inverse_dynamics of 'arm3': {words}"):
        robot.inverse_dynamics(value, ONES, ONES)


def test_masked_arrays_are_refused_by_every_spelling():
    robot = zoo.arm(3)
    kernel = robot.compile(lambda q, qd: robot.alg.inverse_dynamics(q, qd, qd))
    steps = robot.rollout(lambda q, qd: (q + qd, qd))
    calls = {
        "out": lambda: robot.inverse_dynamics(Q, ONES, ONES, out=np.ma.zeros(3)),
        "kernel": lambda: kernel(MASKED, ONES),
        "rollout": lambda: steps(MASKED, ONES, steps=3),
        "simulate": lambda: hinge.simulate(robot, MASKED, duration=0.01),
        "operators": lambda: robot.operators(MASKED),
        "operator": lambda: robot.operators(Q).mass @ MASKED,
        "linearize": lambda: robot.linearize(MASKED, ONES, ONES),
        "pose": lambda: robot.inverse_kinematics("tool", np.ma.array(np.eye(4), mask=np.eye(4)), Q),
    }
    for _ in range(3):
        for call in calls.values():
            with pytest.raises(ArgumentError, match=r"masked entries|out is not a writeable"):
                call()


def test_large_robots_refuse_them_too():
    """One sample of derivatives comes from parts."""
    robot = zoo.humanoid()
    assert 30 <= robot.nv <= 48
    q = robot.neutral()
    masked = np.ma.array(q, mask=np.arange(len(q)) == 8)
    with pytest.raises(ArgumentError, match="derivatives of 'humanoid': q has masked entries"):
        robot.forward_dynamics_derivatives(masked, np.zeros(robot.nv), np.zeros(robot.nv))


@pytest.mark.parametrize("dtype", [int, "int32", np.float16, complex, object, str, bool, "double!"])
def test_other_dtypes_are_refused_at_once(dtype):
    where = "kernels come in float64 and float32"
    with pytest.raises(ArgumentError, match=f"Robot of 'arm3': dtype is .*; {where}"):
        Robot(zoo.arm(3).mechanism, dtype=dtype)
    with pytest.raises(ArgumentError, match=f"dtype is .*; {where}"):
        hinge.compile(lambda a: 2 * a, dtype=dtype, a=(2,))
    with pytest.raises(ArgumentError, match=f"dtype is .*; {where}"):
        hinge.rollout(lambda a: 2 * a, ("a",), dtype=dtype, a=(2,))


def test_numbers_of_the_mechanism_for_what_does_not_take_them():
    robot = zoo.arm(3)
    inertia = hinge.model.parameters.parameters(robot.mechanism)["inertia"]
    for _ in range(4):
        with pytest.raises(ArgumentError, match="inertia is folded into this robot's kernels; to"):
            robot.inverse_dynamics(Q, ONES, ONES, inertia=inertia)
        with pytest.raises(ArgumentError, match="inertia is folded into this robot's kernels; to"):
            robot.linearize(Q, ONES, ONES, inertia=inertia)
        with pytest.raises(ArgumentError, match="operators of 'arm3' takes no inertia"):
            robot.operators(Q, inertia=inertia)
    kernel = robot.compile(lambda q: robot.alg.mass_matrix(q))
    with pytest.raises(ArgumentError, match="takes q; inertia is missing, not among them"):
        kernel(Q, inertia=inertia)
    steps = robot.rollout(lambda q, qd: (q + qd, qd))
    with pytest.raises(ArgumentError, match="inertia is not an argument; it takes q, qd by place"):
        steps(Q, ONES, steps=3, inertia=inertia)

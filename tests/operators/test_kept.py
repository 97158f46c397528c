"""Expressions kept and compiled: the same as the plain ones, in batches, with any numbers."""

import numpy as np
import pytest

import hinge
from hinge.graph.program import trace
from hinge.operators import (
    Operators,
    block,
    coriolis,
    decompose,
    derivative,
    describe,
    expr,
    linearized,
    place,
    simplify,
    split,
)
from hinge.robot import operational
from mechanisms import EPS, ROBOTS, assert_close, random_state

SOME = ["cartpole", "space_arm", "empty"]


def configurations(robot, *lead):
    states = [random_state(robot, seed) for seed in range(int(np.prod(lead)))]
    return [np.array([getattr(s, x) for s in states]).reshape(*lead, -1) for x in ("q", "qd")]


def flags(robot):
    return np.arange(robot.nv) % 2 == 0


def market(o, qd, qdd):
    """Expressions of every kind."""
    frame = o.mechanism.frame_names[-1]
    B = o.B(frame, reference="world")
    yield o.H @ o.phi @ o.M @ o.phi.T @ o.H.T
    yield o.mass.inv
    yield o.mass
    yield o.psi.T
    yield o.mass_p.inv @ o.H_p @ o.psi_p
    yield split(o).J_G(B)
    yield simplify(o.mass.inv @ block([[o.I, -o.H @ o.phi]]))
    yield 0.3 * o.D - 2 * o.factor + o.I
    yield derivative(o.mass, qd)
    yield 0.5 * decompose(o.phi @ o.M @ o.phi.T)
    yield linearized(o, qd, qdd).B_C
    yield coriolis(o, qd)


@pytest.mark.parametrize("name", SOME)
def test_compiled_as_plain(name):
    robot = ROBOTS[name]
    s, rng = random_state(robot, 0), np.random.default_rng(1)
    plain = Operators(robot.mechanism, s.q, flags(robot))
    compiled = robot.operators(s.q, flags(robot))
    pairs = zip(market(plain, s.qd, s.qdd), market(compiled, s.qd, s.qdd), strict=True)
    for A, B in pairs:
        n = A.into.dim
        assert str(A) == str(B) and A.shape == B.shape
        matrix = A.dense()
        bound = 1e4 * EPS * max(1, np.abs(matrix).max(initial=0))
        x = rng.normal(size=(2, n, 3))
        assert_close(B.dense(), matrix, bound)
        assert_close(B @ x, matrix @ x, 10 * bound)
        assert_close(B @ x[0], matrix @ x[0], 10 * bound)
        assert_close(B @ x[0, :, 0], matrix @ x[0, :, 0], 10 * bound)
        if not B.into.parts:
            assert_close(B @ x[0, :, 0].tolist(), matrix @ x[0, :, 0], 10 * bound)
        rows = x.swapaxes(1, 2)
        assert_close(B.apply(rows), rows @ matrix.T, 10 * bound)
        assert_close(A.apply(rows), rows @ matrix.T, 10 * bound)
        assert_close(x[0, :, 0] @ B.T, matrix @ x[0, :, 0], 10 * bound)


@pytest.mark.parametrize("name", SOME)
def test_batches(name):
    """(…, nq) with (…, n): leading shapes broadcast; plain batches go one by one."""
    robot = ROBOTS[name]
    q, qd = configurations(robot, 2, 3)
    rng = np.random.default_rng(1)
    compiled, slow = robot.operators(q, flags(robot)), Operators(robot.mechanism, q, flags(robot))
    singles = [Operators(robot.mechanism, one, flags(robot)) for one in q.reshape(6, -1)]
    rates = qd.reshape(6, -1)
    markets = [list(market(o, v, v)) for o, v in zip(singles, rates, strict=True)]
    pairs = zip(market(compiled, qd, qd), market(slow, qd, qd), strict=True)
    for i, (A, B) in enumerate(pairs):
        m, n = A.shape
        matrices = np.array([some[i].dense() for some in markets]).reshape(2, 3, m, n)
        bound = 1e5 * EPS * max(1, np.abs(matrices).max(initial=0))
        x = rng.normal(size=(4, 1, 3, n))
        expected = (matrices @ x[..., None])[..., 0]
        assert_close(A @ x, expected, bound)
        assert_close(A @ x[0, 0, 0], matrices @ x[0, 0, 0], bound)
        assert_close(A.dense(), matrices, bound)
        if i % 3 == 0:
            assert_close(B @ x, expected, bound)
            assert_close(B.dense(), matrices, bound)
        assert_close(x[0, 0] @ A.T, expected[0], bound)
        assert "cost" in describe(A)
    f = compiled.motion_forces(qd, np.ones((len(robot.body_names), 6)))
    assert_close(f, slow.motion_forces(qd, np.ones((len(robot.body_names), 6))), 1e3 * EPS)
    assert f.shape == (2, 3, compiled.body.dim)
    A = compiled.mass.inv @ block([[compiled.I, -compiled.H @ compiled.phi]])
    given = compiled.motion_forces(qd)
    tau = rng.normal(size=robot.nv)
    if robot.nv:
        assert_close(A @ (tau, given), robot.forward_dynamics(q, qd, tau), 1e5 * EPS)


def test_symbols_are_made_once():
    robot = hinge.zoo.arm(3)
    one, other = (robot.operators(random_state(robot, seed).q) for seed in (0, 1))
    for make in (
        lambda o: o.mass.inv,
        lambda o: o.H @ o.phi @ o.M @ o.phi.T @ o.H.T,
        lambda o: (o.I - o.H @ o.psi @ o.K).T,
        lambda o: o.B("tool").T @ o.phi.T,
        lambda o: simplify(o.mass.inv @ o.mass),
    ):
        assert make(one).symbol is make(other).symbol
    assert one.mass != other.mass and one.mass == one.mass and {one.mass: 1}[one.mass] == 1
    for _ in range(300):
        assert (one.phi @ (one.M * np.random.default_rng(0).random())).shape == (18, 18)


def test_one_kernel_for_all_numbers():
    """Coefficients and directions are arguments of the kernel."""
    robot, x = hinge.zoo.arm(3), np.ones(3)
    q = robot.random_configuration(0)
    o = robot.operators(q)
    plain = Operators(robot.mechanism, q)
    for seed in range(3):
        a, qd = (
            np.random.default_rng(seed).normal(size=3),
            np.random.default_rng(seed).normal(size=3),
        )
        for A, B in (
            (a[0] * o.mass + a[1] * o.D, a[0] * plain.mass + a[1] * plain.D),
            (derivative(o.psi, qd) @ o.H.T, derivative(plain.psi, qd) @ plain.H.T),
            (linearized(o, qd, a).A_C, linearized(plain, qd, a).A_C),
        ):
            assert_close(A @ x, B @ x, 1e4 * EPS)
    kernels = [key for key in o.home.known if key[0] == "kernel"]
    assert len(kernels) == 3


def test_numbers_that_are_not_compiled():
    robot = hinge.zoo.arm(3)
    q, x = robot.random_configuration(0), np.arange(3.0)
    o = robot.operators(q)
    expected = robot.mass_matrix(q)
    assert_close(o.mass @ (1j * x), 1j * expected @ x, 1e3 * EPS)
    assert_close((1j * o.mass) @ x, 1j * expected @ x, 1e3 * EPS)
    assert_close(o.mass @ np.arange(3), expected @ x, 1e3 * EPS)
    assert trace(lambda x: o.mass @ x, [(3,)]).ops.multiplications > 3
    assert trace(lambda q: robot.operators(q).mass @ x, [(3,)]).ops.sincos > 0
    half = hinge.Robot(robot.mechanism, np.float32)
    assert half.operators(q).mass.dense().dtype == np.float32
    assert_close((half.operators(q).mass @ x).astype(float), expected @ x, 1e-5)


def test_long_robots_are_not_unrolled():
    robot = hinge.zoo.snake(300)
    q = np.random.default_rng(0).normal(size=(2, robot.nq))
    o, x = robot.operators(q), np.ones(robot.nv)
    y = o.mass @ x
    assert "run" not in o.mass.memo and y.shape == (2, robot.nv)
    assert_close(robot.operators(q[1]).mass @ x, y[1], 1e3 * EPS)
    assert not any(key[0] == "kernel" for key in o.home.known if isinstance(key, tuple))


def test_a_configuration_is_the_one_that_was_given():
    robot = hinge.zoo.arm(3)
    q = robot.random_configuration(0)
    A = robot.operators(q).mass
    before = A @ np.ones(3)
    q += 1
    assert np.array_equal(A @ np.ones(3), before)


def test_what_is_wrong_is_said():
    robot = hinge.zoo.arm(3)
    o = robot.operators(np.zeros((2, 3)))
    with pytest.raises(hinge.ArgumentError, match=r"mass|takes joint vectors, \(…, 3\); got shape"):
        o.mass @ np.zeros((3, 2))
    for one in (o, Operators(robot.mechanism, np.zeros((2, 3)))):
        with pytest.raises(hinge.ArgumentError, match="leading shapes do not broadcast"):
            one.mass @ np.zeros((4, 3))
    with pytest.raises(hinge.ArgumentError, match="blocks are those of one configuration"):
        _ = o.P.values
    with pytest.raises(hinge.ArgumentError, match=r"give x.T, or call apply\(x\) for a batch"):
        robot.operators(np.zeros(3)).mass @ np.zeros((5, 3))
    with pytest.raises(hinge.ArgumentError, match="the direction of a derivative takes joint vec"):
        derivative(o.mass, np.zeros(2))
    for call in (lambda A: A @ np.zeros(3), lambda A: A.apply(np.zeros(3)), lambda A: A.dense()):
        with pytest.raises(hinge.ArgumentError, match="has no configuration: take it from robot"):
            call(o.home.free.mass)
    with pytest.raises(hinge.ArgumentError, match=r"q\[1\] is nan"):
        robot.operators([0.0, np.nan, 0.0])
    free = hinge.zoo.space_arm(2)
    q = free.neutral()
    q[3:7] = 0
    with pytest.raises(hinge.ArgumentError, match="quaternion"):
        free.operators(q)
    o = free.operators(np.array([q, free.neutral()]))
    both = (o.B("tool").T @ o.phi.T).dense()
    assert np.isnan(both[0]).any() and not np.isnan(both[1]).any()


def test_identities_and_zeros_everywhere():
    o = ROBOTS["arm"].operators(np.zeros((2, 7)))
    x = np.random.default_rng(0).normal(size=(2, 5, 7))
    none = o.phi - o.phi
    assert_close((2 * o.I).apply(x), 2 * x, 0)
    assert none.apply(np.ones((2, 42))).shape == (2, 42) and not none.dense().any()
    both = block([[o.D - o.D + o.I, o.D - o.D]])
    assert_close(both @ np.arange(14.0), np.arange(7.0), 0)
    with pytest.raises(hinge.ArgumentError, match="no rule inverts 0"):
        _ = none.inv


def test_nothing_is_made_again(monkeypatch):
    """At another configuration neither symbols nor plans nor kernels are new."""
    robot, x = hinge.zoo.arm(7), np.ones(7)

    def lines(q):
        o = robot.operators(q)
        return o.mass.inv @ x, (o.H @ o.phi @ o.M @ o.phi.T @ o.H.T) @ x, o.psi.T @ np.ones(42)

    lines(robot.neutral())
    for owner, name in ((operational, "Kernel"), (place, "plan"), (expr.Product, "__init__")):
        monkeypatch.setattr(owner, name, None)
    for q in np.random.default_rng(0).normal(size=(3, 7)):
        inverse, product, _ = lines(q)
        assert_close(robot.mass_matrix(q) @ inverse, x, 100 * EPS)
        armature = np.concatenate(robot.mechanism.armature)
        assert_close(product + armature * x, robot.mass_matrix(q) @ x, 100 * EPS)


def test_nothing_can_be_shown_of_an_empty_batch():
    o = hinge.zoo.arm(2).operators(np.zeros((0, 2)))
    assert (o.mass @ np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(
        hinge.ArgumentError, match=r"the batch of configurations is empty, q has shape \(0, 2\)"
    ):
        describe(o.mass)

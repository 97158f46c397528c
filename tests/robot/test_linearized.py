"""Linear models of robots: compiled, batched, checked, and as A and B of control."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import hinge
from hinge import ArgumentError, zoo
from hinge.runtime.held import linear_model
from identities.paper_l_cases import loads, random_state, reference_inverse, worst
from mechanisms import EPS, JOINTS, ROBOTS, assert_close, complex_step

SMALL = {
    "arm": zoo.arm(4),
    "space_arm": zoo.space_arm(2),
    "tree": zoo.tree(7, 4),
    "gripper": ROBOTS["gripper"],
    "empty": ROBOTS["empty"],
    "acrobot": zoo.acrobot(),
}


@pytest.mark.parametrize("name", SMALL)
def test_compiled_derivatives_are_the_generic_ones(name):
    robot = SMALL[name]
    states = [random_state(robot, seed) for seed in range(3)]
    q, qd, qdd, f = (np.array([getattr(s, x) for s in states]) for x in ("q", "qd", "qdd", "f_ext"))
    tau = robot.inverse_dynamics(q, qd, qdd, f)
    there, back = (
        robot.inverse_dynamics_derivatives(q, qd, qdd, f),
        robot.forward_dynamics_derivatives(q, qd, tau, f),
    )
    for i, s in enumerate(states):
        expected = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
        assert worst([x[i] for x in there], expected) < 500 * EPS
        expected = robot.alg.forward_dynamics_derivatives(s.q, s.qd, tau[i], s.f_ext)
        assert worst([x[i] for x in back], expected) < 100 * EPS
    d = np.random.default_rng(0).normal(size=(3, 3, robot.nv))
    sides = [np.einsum("pbij,pbj->bi", np.array(parts), d) for parts in (there, back)]
    assert_close(robot.inverse_dynamics_jvp(q, qd, qdd, *d, f), sides[0], 500 * EPS)
    assert_close(robot.forward_dynamics_jvp(q, qd, tau, *d, f), sides[1], 50 * EPS)


def test_a_single_call_gives_names_and_goes_the_short_way():
    robot = zoo.arm(3)
    s = random_state(robot, 0)
    for _ in range(3):
        d = robot.inverse_dynamics_derivatives(s.q, s.qd, s.qdd)
        assert d._fields == ("dq", "dqd", "dqdd") and d.dq.shape == (3, 3)
        assert_close(d.dqdd, robot.mass_matrix(s.q), 20 * EPS)
        d = robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd)
        assert d._fields == ("dq", "dqd", "dtau")
        assert_close(d.dtau, robot.mass_matrix_inverse(s.q), 200 * EPS)


def test_results_go_where_they_are_wanted():
    robot = zoo.arm(3)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 5, 3))
    for method in (robot.inverse_dynamics_derivatives, robot.forward_dynamics_derivatives):
        for order, size in ((1, (5, 3, 3)), (2, (5, 3, 3, 3))):
            expected = method(q, qd, qdd, order=order)
            out = tuple(np.zeros(size) for _ in expected)
            got = method(q, qd, qdd, order=order, out=out)
            assert all(x is y for x, y in zip(got, out, strict=True))
            assert worst(got, expected) == 0


@pytest.mark.parametrize("load", ["world", "dead"])
def test_compiled_loads_know_their_points(load):
    """In canonical frames a body's origin is elsewhere: points, given or not, move along."""
    robot = SMALL["tree"]
    s = random_state(robot, 4)
    for points in (None, np.random.default_rng(5).normal(size=(len(robot.body_names), 3))):
        at = np.zeros((len(robot.body_names), 3)) if points is None else points
        expected = reference_inverse(robot, s, loads(robot, s.q, s.f_ext, at, load))
        got = robot.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext, points, load)
        assert worst(got, expected) < 50 * EPS
        d = np.random.default_rng(2).normal(size=(3, robot.nv))
        change = robot.inverse_dynamics_jvp(s.q, s.qd, s.qdd, *d, s.f_ext, points, load)
        assert worst([change], [sum(x @ y for x, y in zip(expected, d, strict=True))]) < 50 * EPS


def test_both_methods_give_the_same():
    robot = SMALL["space_arm"]
    s = random_state(robot, 3)
    one, other = (
        robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext, load="dead", method=m)
        for m in ("articulated", "conventional")
    )
    assert worst(one, other) < 20 * EPS
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    given = (s.q, s.qd, s.qdd, *d, s.f_ext)
    one, other = (
        robot.forward_dynamics_jvp(*given, load="world", method=m)
        for m in ("articulated", "conventional")
    )
    assert worst([one], [other]) < 20 * EPS


ALL_BY_PARTS = {"forward_dynamics_derivatives": range(100)}


@pytest.mark.parametrize("load", [None, "world", "dead"])
def test_one_sample_of_a_large_robot_comes_by_parts(load, monkeypatch):
    from hinge.specialize import routing

    monkeypatch.setattr(routing, "ONE_SAMPLE_BY_PARTS", ALL_BY_PARTS)
    robot = hinge.Robot(zoo.tree(7, 4).mechanism)
    s = random_state(robot, 0)
    points = np.random.default_rng(1).normal(size=(len(robot.body_names), 3))
    extra = {} if load is None else {"f_ext": s.f_ext, "points": points, "load": load}
    if load == "world":
        del extra["points"]
    got = robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd, **extra)
    whole = robot._answer("forward_dynamics_derivatives", ("q", "qd", "tau"), {}, tuple).kernel
    assert "artifact" not in vars(whole.kernel)
    expected = robot.alg.forward_dynamics_derivatives(s.q, s.qd, s.qdd, **extra)
    assert worst(got, expected) < 100 * EPS
    out = [np.zeros_like(x) for x in got]
    again = robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd, **extra, out=out)
    assert type(again) is type(got) and all(a is b for a, b in zip(again, out, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(again, got, strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_arrays_of_out_go_straight_to_machine_code(dtype, monkeypatch):

    robot = hinge.Robot(zoo.arm(2).mechanism, dtype=dtype)
    s = random_state(robot, 0)
    one = [x.astype(dtype) for x in (s.q, s.qd, s.qdd)]
    many = [np.stack([x, -x, x]) for x in one]
    expected = [robot.inverse_dynamics_derivatives(*x) for x in (one, many)]
    robot.inverse_dynamics_derivatives(*one)
    monkeypatch.setattr(hinge.Kernel, "evaluate", None)
    for arguments, d in zip((one, many), expected, strict=True):
        for make in (tuple, list, type(d)._make):
            out = make([np.zeros_like(x) for x in d])
            got = robot.inverse_dynamics_derivatives(*arguments, out=out)
            assert type(got) is type(d) and all(a is b for a, b in zip(got, out, strict=True))
            assert worst(got, d) < 10 * np.finfo(dtype).eps


def test_batches_of_a_large_robot_go_straight_to_machine_code(monkeypatch):
    from hinge.robot import answers
    from hinge.specialize import routing

    monkeypatch.setattr(routing, "ONE_SAMPLE_BY_PARTS", ALL_BY_PARTS)
    robot = hinge.Robot(zoo.tree(7, 4).mechanism)
    s = random_state(robot, 0)
    one, many = (s.q, s.qd, s.qdd), [np.stack([x, x]) for x in (s.q, s.qd, s.qdd)]
    first = robot.forward_dynamics_derivatives(*one)
    batch = [robot.forward_dynamics_derivatives(*many) for _ in range(2)][0]
    assert worst([x[1] for x in batch], first) < 50 * EPS
    monkeypatch.setattr(hinge.Kernel, "evaluate", None)
    for out in (None, [np.zeros_like(x) for x in batch]):
        extra = {} if out is None else {"out": out}
        got = robot.forward_dynamics_derivatives(*many, **extra)
        assert type(got) is type(batch)
        assert all(np.array_equal(a, b) for a, b in zip(got, batch, strict=True))
    # one sample by parts, as before
    monkeypatch.undo()
    monkeypatch.setattr(routing, "ONE_SAMPLE_BY_PARTS", ALL_BY_PARTS)
    got = robot.forward_dynamics_derivatives(*one)
    assert all(np.array_equal(a, b) for a, b in zip(got, first, strict=True))
    monkeypatch.setattr(answers.ByParts, "_one", lambda *arguments: "by parts")
    assert robot.forward_dynamics_derivatives(*one) == "by parts"
    assert robot.forward_dynamics_derivatives(*(x[None] for x in one)) == "by parts"


def test_a_wrong_out_by_parts_is_refused(monkeypatch):
    from hinge.specialize import routing

    robot = hinge.Robot(zoo.arm(2).mechanism)
    s = random_state(robot, 0)
    n = robot.nv
    messages = []
    for large in ({}, ALL_BY_PARTS):
        monkeypatch.setattr(routing, "ONE_SAMPLE_BY_PARTS", large)
        for out in ([np.zeros((n, n))] * 2, np.zeros((n, n)), [np.zeros((n, n + 1))] * 3):
            with pytest.raises(ArgumentError) as told:
                robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd, out=out)
            messages.append(str(told.value))
        robot = hinge.Robot(robot.mechanism)
    assert messages[:3] == messages[3:]


WRONG = {
    "ragged": ([[1.0], [1.0, 2.0]], "q is ragged"),
    "shape": (np.zeros(3), r"q has shape \(3,\)"),
    "NaN": (np.array([0.0, np.nan]), r"q\[1\] is nan"),
    "text": ("here", "q is 'here'; expected"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_by_parts_is_said_of_the_whole(wrong, monkeypatch):
    from hinge.specialize import routing

    monkeypatch.setattr(routing, "ONE_SAMPLE_BY_PARTS", ALL_BY_PARTS)
    robot, x = hinge.Robot(zoo.arm(2).mechanism), np.zeros(2)
    q, message = WRONG[wrong]
    for _ in range(4):
        with pytest.raises(
            ArgumentError, match=f"forward_dynamics_derivatives of 'arm2': {message}"
        ):
            robot.forward_dynamics_derivatives(q, x, x)
        robot.forward_dynamics_derivatives(x, x, x)


def test_the_cheaper_axes_are_taken():
    """A long chain of general hinges is cheaper in ground axes, an arm of right angles is not."""
    from hinge.algorithms import inverse_dynamics_derivatives as generic
    from hinge.graph.program import trace
    from hinge.specialize.canonical import canonical

    b = hinge.MechanismBuilder("general")
    parent, rng = "world", np.random.default_rng(0)
    for i in range(9):
        place = hinge.Transform(
            hinge.algebra.rotation.from_rpy(*rng.normal(size=3)), rng.normal(size=3)
        )
        body = hinge.Inertia(1.0, rng.normal(size=3), np.diag([0.3, 0.4, 0.5]))
        b.add(f"link{i}", parent, hinge.Revolute(rng.normal(size=3)), None, place, body)
        parent = f"link{i}"
    for mech, axes in ((b.build(), "ground"), (zoo.arm(8).mechanism, "body")):
        thin, n = canonical(mech).mechanism, mech.nv
        ops = {
            a: trace(lambda *x, m=thin, a=a: generic(m, *x, axes=a), [(n,)] * 3).ops
            for a in ("body", "ground")
        }
        assert sum(ops[axes]) == min(map(sum, ops.values()))
        kernel = hinge.Robot(mech).kernel("inverse_dynamics_derivatives", "q", "qd", "qdd")
        assert kernel.program.ops == ops[axes]


@pytest.mark.parametrize("axes", ["body", "ground"])
def test_symbols(axes):
    """The generic code on scalars of CasADi, with all that it takes: a joint with a changing H."""
    casadi = pytest.importorskip("casadi")
    b = hinge.MechanismBuilder("pair")
    body = hinge.Inertia(1.3, (0.1, -0.2, 0.15), np.diag([0.2, 0.3, 0.25]))
    b.add("one", "world", JOINTS["universal"], inertia=body)
    b.add("two", "one", JOINTS["helical"], inertia=body)
    robot = hinge.Robot(b.build())
    s = random_state(robot, 1)
    numbers = (s.q, s.qd, s.qdd, s.f_ext)
    symbols = [casadi.SX.sym(f"x{i}", x.size) for i, x in enumerate(numbers)]
    given = [
        np.array(casadi.vertsplit(x), dtype=object).reshape(y.shape)
        for x, y in zip(symbols, numbers, strict=True)
    ]
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        traced = np.array(getattr(robot.alg, name)(*given, load="dead", axes=axes))
        fn = casadi.Function("f", symbols, [casadi.vertcat(*traced.ravel())])
        got = np.array(fn(*(x.ravel() for x in numbers))).reshape(traced.shape)
        expected = getattr(robot.alg, name)(*numbers, load="dead")
        assert worst(list(got), expected) < 50 * EPS


def test_wrong_arguments():
    robot = zoo.arm(2)
    x = np.zeros(2)
    with pytest.raises(hinge.ArgumentError, match="load is 'heavy'; expected one of 'body', "):
        robot.inverse_dynamics_derivatives(x, x, x, load="heavy")
    with pytest.raises(hinge.ArgumentError, match="method is 'magic'; expected one of 'artic"):
        robot.forward_dynamics_derivatives(x, x, x, method="magic")
    with pytest.raises(hinge.ArgumentError, match="points has shape .*a point of each of 2 bodies"):
        robot.inverse_dynamics_derivatives(x, x, x, np.zeros((2, 6)), np.zeros(3), "dead")
    with pytest.raises(hinge.ArgumentError, match="dt is -1; expected a finite number above 0"):
        robot.linearize(x, x, x, dt=-1)
    with pytest.raises(hinge.ArgumentError, match="dq has shape .*changes of q along the joints"):
        robot.inverse_dynamics_jvp(x, x, x, np.zeros(3), x, x)


# state-space models


def whole(dq, dqd, dtau, drift=None):
    """The matrix of (δq, δq̇, u), u being held."""
    n = len(dq)
    none, one = np.zeros((n, n)), np.eye(n)
    moving = none if drift is None else drift
    return np.block([[moving, one, none], [dq, dqd, dtau], [none, none, none]])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3])
def test_models_of_a_step_are_exponentials(n, scale):
    rng = np.random.default_rng(n)
    parts = scale * rng.normal(size=(4, n, n))
    for drift in (None, parts[3]):
        A, B, _ = linear_model(*parts[:3], drift, None)
        Z = whole(*parts[:3], drift)
        assert np.array_equal(A, Z[: 2 * n, : 2 * n]) and np.array_equal(B, Z[: 2 * n, 2 * n :])
        A, B, _ = linear_model(*parts[:3], drift, 0.01)
        step = mpmath.mpf(0.01) * mpmath.matrix(Z.tolist())
        with mpmath.workdps(40):
            E = np.array(mpmath.expm(step).tolist(), dtype=float)
        bound = 4 * EPS * (1 + np.abs(0.01 * Z).sum(axis=1).max())
        assert_close(A, E[: 2 * n, : 2 * n], bound, np.abs(E).max())
        assert_close(B, E[: 2 * n, 2 * n :], bound, np.abs(E).max())


def test_models_of_a_batch_do_not_meet():
    """Neither one that is not finite nor one that is huge changes how the others are scaled."""
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(3, 5, 4, 4)) * np.array([20.0, 1.0, 1e7, 1e-4, 1e25])[:, None, None]
    parts[0, 1, 2, 3] = np.nan
    parts[1, 2] -= 1e9 * np.eye(4)
    A, B, _ = linear_model(*parts, None, 1.0)
    for i in (0, 3):
        for x, y in zip(linear_model(*parts[:, i], None, 1.0)[:2], (A[i], B[i]), strict=True):
            assert_close(x, y, 0.0)
    assert np.isnan(A[1]).all() and np.isnan(B[1]).all() and np.isnan(A[4]).all()
    A, B, _ = linear_model(*np.zeros((3, 0, 4, 4)), None, 1.0)
    assert A.shape == (0, 8, 8) and B.shape == (0, 8, 4)
    assert linear_model(*np.zeros((3, 2, 0, 0)), None, 1.0)[0].shape == (2, 0, 0)


@pytest.mark.parametrize("kind", JOINTS)
def test_displacements_turn_with_the_motion(kind):
    """d/dt of q̃(t) ⊟ q(t), both moving, is δq̇ + drift δq."""
    joint, rng = JOINTS[kind], np.random.default_rng(0)
    q, v, dq, dv = joint.random(rng), *rng.normal(size=(3, joint.nv))

    def apart(t):
        here = joint.integrate(q, t * v)

        def from_here(s):
            return joint.difference(
                here, joint.integrate(joint.integrate(q, s * dq), t * (v + s * dv))
            )

        return complex_step(from_here)

    h = 1e-4
    rate = (apart(h) - apart(-h)) / (2 * h)
    assert_close(rate, dv + joint.drift(v) @ dq, 10 * h * h)


@pytest.mark.parametrize("name", ["acrobot", "space_arm", "tree"])
def test_linear_models_follow_the_motion(name):
    """Two motions of a moment, a little apart at the start and in force."""
    robot = SMALL[name]
    s = random_state(robot, 2)
    d = np.random.default_rng(1).normal(size=(3, robot.nv))
    A, B = robot.linearize(s.q, s.qd, s.qdd, f_ext=s.f_ext)
    x = np.concatenate(d[:2])
    rate = A @ x + B @ d[2]
    acc = complex_step(
        lambda e: robot.alg.forward_dynamics(
            robot.alg.integrate(s.q, e * d[0]), s.qd + e * d[1], s.qdd + e * d[2], s.f_ext
        )
    )
    assert_close(rate[robot.nv :], acc, 100 * EPS)
    h, e = 1e-3, 1e-5
    there = [
        robot.integrate(robot.integrate(s.q, k * e * d[0]), h * (s.qd + k * e * d[1]))
        for k in (1, -1)
    ]
    apart = robot.difference(there[1], there[0]) / (2 * e)
    assert_close((apart - d[0]) / h, rate[: robot.nv], 0.02, np.abs(rate).max())


@pytest.mark.parametrize("name", ["acrobot", "space_arm"])
def test_a_held_force_is_exact(name):
    """e^{A dt} and ∫ e^{A s} ds B, against the series; and batches are samples side by side."""
    robot, dt = SMALL[name], 0.03
    states = [random_state(robot, seed) for seed in range(2)]
    q, qd, tau = (np.array([getattr(s, x) for s in states]) for x in ("q", "qd", "qdd"))
    A, B = robot.linearize(q, qd, tau)
    A_d, B_d = robot.linearize(q, qd, tau, dt=dt)
    for i in range(2):
        assert_close(A_d[i], scipy.linalg.expm(A[i] * dt), 20 * EPS)
        term = total = dt * np.eye(2 * robot.nv)
        for k in range(2, 40):
            term = term @ A[i] * dt / k
            total = total + term
        assert_close(B_d[i], total @ B[i], 20 * EPS)
        for x, y in zip(robot.linearize(q[i], qd[i], tau[i], dt=dt), (A_d[i], B_d[i]), strict=True):
            assert_close(x, y, 10 * EPS)


def test_a_bad_sample_leaves_the_linear_models_of_others_alone():
    """Long steps, for which the exponential is scaled, and a batch in which one sample is NaN."""
    robot, still = SMALL["acrobot"], np.zeros(2)
    q = np.array([[np.pi, 0.0], [np.nan, 0.0], [0.1, 0.2]])
    A, B = robot.linearize(q, still, still, dt=3.0)
    assert np.isnan(A[1]).all() and np.isnan(B[1]).all()
    for i in (0, 2):
        for x, y in zip(robot.linearize(q[i], still, still, dt=3.0), (A[i], B[i]), strict=True):
            assert_close(x, y, 10 * EPS)
    with pytest.raises(hinge.SingularError, match=r"e\^\(A dt\) overflows; dt is 1000.0"):
        robot.linearize(q[0], still, still, dt=1e3)
    assert np.isnan(robot.linearize(q[:1], still, still, dt=1e3).A).all()


def test_linear_models_have_the_dtype_of_the_robot():
    robot = hinge.Robot(SMALL["acrobot"].mechanism, dtype=np.float32)
    for dt in (None, 0.01):
        for x in robot.linearize(np.zeros(2), np.zeros(2), np.zeros(2), dt=dt):
            assert x.dtype == np.float32 and x.flags.c_contiguous

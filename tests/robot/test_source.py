"""Results of long mechanisms that are neither loops nor worth compiling: from their source."""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.algorithms.declare import ALGORITHMS
from hinge.robot.method import methods_of
from hinge.robot.source import BySource
from hinge.specialize import programs
from hinge.specialize.routing import MANY_COLUMNS, MOST_UNROLLED, route
from mechanisms import EPS, assert_close, random_mask, random_state

LONG = zoo.snake(60)


@pytest.fixture(autouse=True)
def few_operations(monkeypatch):
    """The bound, where tests come to it soon."""
    monkeypatch.setattr(programs, "MOST_OPERATIONS", 50_000)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def asked(robot):
    """Names, arrays (3, …) and settings of results from their source."""
    states = [random_state(robot, seed) for seed in range(3)]
    q, qd, tau = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    split = {"active": random_mask(robot, 1)}
    there = {**split, "frame": robot.frame_names[-1]}
    return {
        "coriolis_matrix": ((q, qd), {}),
        "schur_blocks": ((q,), split),
        "disturbance_bias": ((q, qd, tau), split),
        "generalized_bias": ((q, qd, tau), there),
        "generalized_motion": ((q, qd), {**there, "reference": "body"}),
    }


@pytest.mark.parametrize("name", asked(LONG))
def test_they_agree_with_the_source_alone(name):
    """One sample, batches, out, empty batches, float32; a bad sample is bad alone."""
    robot, (arrays, settings) = LONG, asked(LONG)[name]
    call, plain = getattr(robot, name), getattr(robot.alg, name)
    got = as_tuple(call(*arrays, **settings))
    one = as_tuple(call(*(a[1] for a in arrays), **settings))
    expected = as_tuple(plain(*(a[1] for a in arrays), **settings))
    for a, b, c in zip(got, one, expected, strict=True):
        assert_close(a[1], c, 1e5 * EPS)
        assert np.array_equal(a[1], b)
    out = tuple(np.empty_like(a) for a in got)
    call(*arrays, **settings, out=out if len(out) > 1 else out[0])
    np.testing.assert_equal(out, got)
    none = as_tuple(call(*(a[:0] for a in arrays), **settings))
    assert [x.shape for x in none] == [(0, *x.shape[1:]) for x in got]
    spoiled = arrays[0].copy()
    spoiled[0, 9] = np.nan
    for a, b in zip(as_tuple(call(spoiled, *arrays[1:], **settings)), got, strict=True):
        assert np.isnan(a[0]).all() and np.array_equal(a[1:], b[1:])
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake60': q\[9\] is nan"):
        call(spoiled[0], *(a[0] for a in arrays[1:]), **settings)


def test_results_are_of_the_robots_kind():
    robot = hinge.Robot(LONG.mechanism, dtype=np.float32)
    arrays, settings = asked(LONG)["schur_blocks"]
    got, expected = robot.schur_blocks(*arrays, **settings), LONG.schur_blocks(*arrays, **settings)
    assert type(got) is type(expected) and got.aa.dtype == np.float32
    assert_close(got.aa, expected.aa, 1e3 * np.finfo(np.float32).eps)


def test_open_numbers_are_those_of_the_sample():
    """Then nothing is served by kernels."""
    robot = hinge.Robot(LONG.mechanism, parameters=("gravity",))
    (q, qd, tau), split = asked(LONG)["disturbance_bias"]
    got = robot.disturbance_bias(q[0], qd[0], tau[0], **split, gravity=(0.0, 0.0, -1.6))
    moon = hinge.edit.with_gravity(LONG.mechanism, (0.0, 0.0, -1.6))
    expected = hinge.algorithms.disturbance_bias(moon, q[0], qd[0], tau[0], **split)
    assert_close(got, expected, 1e4 * EPS)


def test_without_inertia_there_is_no_answer():
    """Alone it raises; of a batch it is NaN, although no sample has the shape to show."""
    b, parent = hinge.MechanismBuilder("ghost"), "world"
    for i in range(65):
        b.add(f"link{i}", parent, hinge.Revolute((0, 0, 1) if i % 2 else (0, 1, 0)))
        parent = f"link{i}"
    robot, zero = hinge.Robot(b.build()), np.zeros((2, 65))
    split = {"active": robot.joint_names[:5]}
    with pytest.raises(hinge.SingularError, match="disturbance_bias of 'ghost'"):
        robot.disturbance_bias(zero[0], zero[0], zero[0], **split)
    found = robot.disturbance_bias(zero, zero, zero, **split)
    assert found.shape == (2, 60) and np.isnan(found).all()


def test_what_is_called_is_answered_by_loops():
    robot = zoo.snake(60)
    (q, qd, tau), split = asked(robot)["disturbance_bias"]
    robot.disturbance_bias(q[0], qd[0], tau[0], **split)
    kernels = [k for k in robot._kept.values() if isinstance(k, hinge.Kernel) and k.is_compiled]
    assert [k.name for k in kernels] == ["hybrid_dynamics of 'snake60'"]


def test_why_is_told():
    assert route(LONG.mechanism, "schur_blocks").plan == "source"
    assert "loops over them" in LONG.explain("schur_blocks", active=random_mask(LONG, 1))
    assert "more than 50000" in LONG.explain("coriolis_matrix")
    assert isinstance(LONG._answer("coriolis_matrix", ("q", "qd"), {}, tuple), BySource)
    with pytest.raises(hinge.TraceError, match="coriolis_matrix has more than 50000 operations"):
        _ = LONG.kernel("coriolis_matrix", "q", "qd").ops


def test_few_bodies_of_many_dof_and_mimics_are_bounded():
    """30 free bodies by columns; chains whose joints mimic others from their source."""
    b, parent = hinge.MechanismBuilder("balls"), "world"
    for i in range(25):
        joint = hinge.Free() if i % 2 else hinge.Translation()
        b.add(f"b{i}", parent, joint, inertia=hinge.Inertia(mass=1.0, about_com=np.eye(3)))
        parent = f"b{i}"
    few = hinge.Robot(b.build())
    s = random_state(few, 0)
    tau = s.qdd
    assert few.nv >= MANY_COLUMNS and few.n_bodies <= MOST_UNROLLED
    assert route(few.mechanism, "forward_dynamics_derivatives").plan == "columns"
    found = few.forward_dynamics_derivatives(s.q, s.qd, tau)
    expected = few.alg.forward_dynamics_derivatives(s.q, s.qd, tau)
    for a, e in zip(found, expected, strict=True):
        assert_close(a, e, 1e5 * EPS)


def test_algorithms_know_the_form_of_their_results():
    for method in methods_of(hinge.Robot):
        assert ALGORITHMS[method.name].form is method.form

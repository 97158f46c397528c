"""Time loops and loops over bodies for a card, run here thread by thread: what `interpret` says."""

from math import prod

import numpy as np
import pytest

import hinge
from emit.everything import both_dtypes
from emit.on_cpu import OnCpu
from emit.test_scan import SCANS, arguments, make
from hinge import Contact, LoopConstraint, zoo
from hinge.emit.ptx.loop import loop_module
from hinge.emit.ptx.scan import scan_module
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.graph.relay import Relay
from hinge.graph.scan import Scan
from hinge.motion import trajectory_sensitivity
from hinge.motion.steps import motion_kernel
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops
from loop_cases import ARRAYS, frame_in_loops, held_in_loops, looped, split_in_loops, swapping
from mechanisms import everything

SCALARS = {np.float64: "double", np.float32: "float"}


def address(x):
    return x.ctypes.data


# time loops


def rolled(scan, given, steps, every, dtype, strict=False, launches=1):
    """Results and last states, of arguments that all have one leading dimension."""
    text, launch = scan_module(scan, SCALARS[dtype], strict)
    module, item, n = OnCpu(text), np.dtype(dtype).itemsize, len(given[0])
    states, timed = scan.states, scan.states + scan.inputs_per_step
    kept = [np.array(x, dtype) for x in given]
    results = [np.full((steps // every, n, *shape), 7.0, dtype) for shape in scan.outputs]
    strides = [item * prod(shape) for shape in (*scan.inputs, *scan.outputs)]
    for part in range(launches):
        start = part * steps // launches
        count = (part + 1) * steps // launches - start
        numbers = []
        for i, (x, stride) in enumerate(zip([*kept, *results], strides, strict=True)):
            moves = states <= i < timed or i >= len(kept)
            jump = moves * stride * n
            done = start if i < len(kept) else start // every
            numbers += [address(x) + done * jump, stride, jump]
        numbers += [count, every, every - start % every, n, 0]
        module.launch(numbers, -(-n // launch.samples), launch.threads)
    return results, kept[:states]


def assert_near(got, expected, dtype, eps):
    for a, b in zip(got, expected, strict=True):
        bound = eps * np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound)


@pytest.fixture(params=["inline", "in functions"])
def steps_of_any_length(request, monkeypatch):
    """Steps as short ones are written, and as long ones."""
    if request.param == "in functions":
        monkeypatch.setattr("hinge.emit.ptx.scan._MOST_INLINE", -1)


@both_dtypes
@pytest.mark.parametrize("name", SCANS)
def test_time_loops_are_those_of_interpret(name, dtype, steps_of_any_length):
    scan, shapes = SCANS[name]
    given = arguments(scan, shapes, (33,), 7, dtype)
    bound = 0 if name in ("exact", "exchanged") else 200
    for every in (1, 3):
        got, _ = rolled(scan, given, 7, every, dtype)
        assert_near(got, interpret(scan, given, 7, every), dtype, bound)


def test_a_long_run_may_be_cut_into_launches(steps_of_any_length):
    scan, shapes = SCANS["in stages"]
    given = arguments(scan, shapes, (5,), 12, np.float64)
    whole, cut = (rolled(scan, given, 12, 4, np.float64, launches=k) for k in (1, 5))
    for a, b in zip([*whole[0], *whole[1]], [*cut[0], *cut[1]], strict=True):
        assert np.array_equal(a, b)


@both_dtypes
def test_a_sample_that_is_not_finite_is_nan_from_then_on(dtype, steps_of_any_length):
    def step(x, y, u):
        return x + u, 2 * y, np.array([x[0], 5.0])

    scan, _ = make(step, dict(x=(2,), y=(), u=(2,)), 2, 1)
    u = np.ones((6, 11, 2), dtype)
    u[3, 4, 1], u[2, 10, 0] = np.nan, np.inf
    given = [np.zeros((11, 2)), np.ones(11), u]
    results, states = rolled(scan, given, 6, 1, dtype, strict=True)
    for sample in range(11):
        bad = {4: 3, 10: 2}.get(sample, 6)
        for result in results:
            rows = result[:, sample].reshape(6, -1)
            assert np.isfinite(rows[:bad]).all() and np.isnan(rows[bad:]).all()
        assert all(np.isfinite(x[sample]).all() == (bad == 6) for x in states)


def test_a_parameter_that_is_not_finite_spoils_its_sample():
    scan, _ = make(lambda x, k: (x + 1,), dict(x=(), k=()), 1)
    k = np.array([0.0, np.inf, 2.0])
    (x,), _ = rolled(scan, [np.zeros(3), k], 2, 1, np.float64, strict=True)
    assert np.array_equal(np.isnan(x), [[False, True, False]] * 2)


def test_a_loop_may_end_when_its_sample_is_done(steps_of_any_length):
    def step(x, done):
        done = hinge.where(done, done, hinge.less(x, 0.9))
        return hinge.where(done, x, 0.5 * x), done

    scan = Scan(trace(step, [(), ()], "step"), 2, recorded=(), until=1)
    x = 1.5 * 2.0 ** np.arange(9)
    _, (end, done) = rolled(scan, [x, np.zeros(9)], 10**10, 10**10, np.float64)
    assert (done == 1).all() and (end == 0.75).all()


def test_long_mechanisms_move():
    """A step with loops over bodies in it gives what it gives on a CPU."""
    robot, count, steps = zoo.snake(45), 2, 3
    kernel = motion_kernel(robot, "semi_implicit_euler", (), None, ())
    assert isinstance(kernel.scan.step, Relay)
    rng = np.random.default_rng(4)
    q = np.stack([robot.random_configuration(rng) for _ in range(count)])
    given = {"q": q, "qd": rng.normal(size=(count, robot.nv)), "dt": np.full(count, 1e-3)}
    given["t"] = np.zeros((steps, count))
    arrays = [given[name] for name in kernel.shapes]
    results, states = rolled(kernel.scan, arrays, steps, 1, np.float64, strict=True)
    expected = kernel(*arrays)
    assert_near(results, expected, np.float64, 100)
    assert_near(states, [x[-1] for x in expected], np.float64, 100)


@pytest.mark.parametrize("kind", ["forward", "adjoint"])
def test_motions_of_long_mechanisms_change(kind, monkeypatch):
    monkeypatch.setattr(trajectory_sensitivity, "MOST_STRAIGHT", 40)
    robot, count, steps = zoo.snake(45), 2, 3
    still = robot.neutral(), np.zeros(robot.nv), np.zeros((steps, robot.nv))
    s = hinge.trajectory_sensitivity(robot, *still, 1e-3, "semi_implicit_euler")
    kernel, rng = s._push if kind == "forward" else s._pull, np.random.default_rng(5)
    assert isinstance(kernel.scan.step, Relay)
    given = {n: rng.normal(size=(count, *shape)) for n, shape in kernel.shapes.items()}
    given |= {n: rng.normal(size=(steps, *given[n].shape)) for n in kernel.timed}
    given["dt"] = np.full(count, 1e-3)
    arrays = list(given.values())
    results, _ = rolled(kernel.scan, arrays, steps, 1, np.float64, strict=False)
    assert_near(results, kernel(*arrays), np.float64, 1e4)


# loops over bodies


def run_loops(program, given, dtype, strict=False, layout="rows", blocks=1):
    """The results; blocks: fewer than the samples need, so that each goes on to others."""
    text, launch = loop_module(program, SCALARS[dtype], strict, layout)
    n, item, turned = len(given[0]), np.dtype(dtype).itemsize, layout == "columns"

    def laid(x):
        return np.ascontiguousarray(x.T if turned else x)

    kept = [laid(x.reshape(n, -1).astype(dtype)) for x in given]
    results = [laid(np.full((n, size), 7.0, dtype)) for size in program.output_sizes]
    numbers = []
    for x in kept:
        numbers += [address(x), item * (n if turned else x.shape[1])]
    for x in results:
        numbers += [address(x), item * n] if turned else [address(x)]
    scratch = np.full(launch.scratch * blocks, 255, np.uint8)
    assert launch.persistent
    OnCpu(text).launch([*numbers, n, address(scratch)], blocks, launch.threads)
    shaped = zip(results, program.outputs, strict=True)
    return [(x.T if turned else x).reshape(n, *shape) for x, shape in shaped]


def random_arguments(program, count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, *shape)) for shape in program.inputs]


def assert_as_interpreted(program, dtype, eps, **how):
    given = [x.astype(dtype) for x in random_arguments(program, 70)]
    with np.errstate(over="ignore"):
        expected = interpret(program, given)
    for a, b in zip(run_loops(program, given, dtype, **how), expected, strict=True):
        assert np.abs(a - b).max() <= eps * np.finfo(dtype).eps * np.abs(b).max()


@both_dtypes
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_loops_over_bodies_are_those_of_interpret(layout, dtype):
    program = looped(zoo.tree(3, 50).mechanism, "inverse_dynamics")
    assert_as_interpreted(program, dtype, 50, layout=layout, strict=True)


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {"inverse_dynamics"}))
def test_algorithms_as_loops(name, monkeypatch):
    """What passes from body to body is in global memory where it is too much."""
    monkeypatch.setattr("hinge.emit.ptx.loop._MOST_SHARED", 0)
    assert_as_interpreted(looped(everything().mechanism, name), np.float64, 1000)


def test_loops_along_the_way_to_a_frame():
    """Bodies beside the way have zeros, and every kind of bodies keeps something else."""
    robot = everything()
    for frame in (robot.frame_names[-1], robot.frame_names[5]):
        assert_as_interpreted(frame_in_loops(robot, frame), np.float64, 1000)
    assert_as_interpreted(split_in_loops(robot)[0], np.float64, 1e5)


def test_loops_of_mechanisms_that_are_held(monkeypatch):
    """What belongs to no body: sums, the forces of constraints, and arguments as a whole."""
    robot, names = zoo.arm(9), ("q", "qd", "tau", "mask")
    for constraints in ((Contact("tool", "flat"),), (LoopConstraint("link5", "tool", axes=(5,)),)):
        program = held_in_loops(robot, "constrained_forward_dynamics", names, constraints)
        given = [*random_arguments(program, 70)[:3], np.ones((70, 1))]
        expected = interpret(program, given)
        for most in (1 << 15, 0):
            monkeypatch.setattr("hinge.emit.ptx.loop._MOST_SHARED", most)
            got = run_loops(program, given, np.float64, strict=True)
            for a, b in zip(got, expected, strict=True):
                scale = np.abs(b).max(axis=1, keepdims=True)
                assert (np.abs(a - b) / scale).max() < 1e7 * np.finfo(float).eps


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("constraint_jacobian", ("q",)),
        ("constrained_inverse_dynamics", ("q", "qd", "qdd")),
        ("constrained_changes", ("q", "qd", "tau")),
        ("impulse_changes", ("q", "qd")),
    ],
)
def test_loops_of_what_constraints_feel_and_how_it_changes(name, names):
    """Rows of matrices, and forces on all bodies, as results."""
    robot, constraints = zoo.arm(9), (LoopConstraint("link5", "tool", axes=(3, 5)),)
    active = (True,) * 7 + (False,) + (True,) if "inverse" in name else None
    program = held_in_loops(robot, name, names, constraints, active)
    given = random_arguments(program, 9)
    got, expected = run_loops(program, given, np.float64, strict=True), interpret(program, given)
    for a, b in zip(got, expected, strict=True):
        scale = np.abs(b).max(initial=0.0)
        assert np.abs(a - b).max(initial=0.0) <= 1e7 * np.finfo(float).eps * max(scale, 1.0)


def test_values_change_places():
    program, x, expected = swapping()
    assert np.array_equal(run_loops(program, [np.stack([x] * 3)], np.float64)[0], [expected] * 3)


def test_what_no_step_reads_must_be_finite_too():
    program, x, expected = swapping()
    given = np.stack([x] * 3)
    given[1, 1000] = np.inf
    (got,) = run_loops(program, [given], np.float64, strict=True)
    assert np.array_equal(got[[0, 2]], [expected] * 2) and np.isnan(got[1]).all()


def test_several_results():
    def sums(mech, qd):
        down, up = mech.slots(2)
        rates = mech.rates(qd)
        down[0], up[0] = np.array([2.0]), np.array([0.0])
        for p, k in mech.outward():
            down[k], up[k] = np.array([down[p][0] + rates[k][0]]), rates[k]
        for p, k in mech.inward():
            up[p] = np.array([up[p][0] + up[k][0]])
        return mech.join(down), mech.join(up)

    program = trace_loops(sums, canonical(zoo.arm(5).mechanism), {"qd": (5,)}, "sums")
    qd = np.arange(10.0).reshape(2, 5)
    for layout in ("rows", "columns"):
        down, up = run_loops(program, [qd], np.float64, layout=layout)
        assert np.array_equal(down, 2 + np.cumsum(qd, 1))
        assert np.array_equal(up, np.cumsum(qd[:, ::-1], 1)[:, ::-1])


def test_a_sample_that_is_not_finite_is_nan_in_all_its_results():
    program = looped(zoo.snake(45).mechanism, "gravity_forces")
    given = random_arguments(program, 6)
    expected = interpret(program, given)[0]
    given[0][2, 20], given[0][4, 0] = np.nan, np.inf
    (got,) = run_loops(program, given, np.float64, strict=True)
    bad = np.array([False, False, True, False, True, False])
    assert np.isnan(got[bad]).all()
    np.testing.assert_allclose(got[~bad], expected[~bad], rtol=1e-12, atol=1e-12)

"""Straight-line kernels for cards: their warps, run on the CPU, give what `interpret` gives."""

import numpy as np
import pytest

from assembler import assembled, assembles
from emit.warps import Warps
from hinge import zoo
from hinge.emit.ptx import plan as plans
from hinge.emit.ptx.kernel import kernel_module, kernel_text
from hinge.graph.interpret import interpret
from hinge.graph.program import trace

SCALARS = {"float": np.float32, "double": np.float64}
ARGUMENTS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
}
# two whole warps and a part of one
SAMPLES = 70


def address(x):
    return x.ctypes.data


def program_of(robot, name):
    return robot.kernel(name, *ARGUMENTS[name]).program


def arguments(program, dtype=float, layout="rows"):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(SAMPLES, n)).astype(dtype) for n in program.input_sizes]
    return [np.asfortranarray(x) for x in arrays] if layout == "columns" else arrays


def results_of(program, module, arrays, layout="rows", shift=0):
    """The results, for arrays [samples, n] of any strides; shift: of the results' addresses."""
    text, launch = module
    columns, dtype, given, results = layout == "columns", arrays[0].dtype, [], []
    for x in arrays:
        given += [address(x), x.strides[columns]]
    for n in program.output_sizes:
        flat = np.full(SAMPLES * n + shift, 7.0, dtype)[shift:]
        results.append(flat.reshape(n, SAMPLES).T if columns else flat.reshape(SAMPLES, n))
        given += [address(flat), *([SAMPLES * dtype.itemsize] if columns else [])]
    blocks = 2 if launch.persistent else -(-SAMPLES // launch.samples)
    scratch = np.zeros(blocks * launch.scratch + 8, np.uint8)
    Warps(text).launch([*given, SAMPLES, address(scratch)], blocks, launch.threads, launch.shared)
    return results


def assert_right(program, results, arrays, eps=1000):
    exact = interpret(program, [np.array(x, float) for x in arrays])
    exact = exact if isinstance(exact, (tuple, list)) else [exact]
    for y, z in zip(results, exact, strict=True):
        z = np.reshape(z, y.shape)
        bound = eps * np.finfo(y.dtype).eps * max(1.0, np.nanmax(np.abs(z)))
        np.testing.assert_allclose(y, z, rtol=0, atol=bound)


def test_no_result_takes_the_place_of_what_a_later_sum_reads():
    """x * y comes first in the order, but is made with the sum that it melts into, after y - 3."""

    def late(x, y):
        product, first = x * y, y - 3.0
        return first, product + 0.5 * first

    program = trace(late, [(2,), (2,)])
    order = [node for node in program.nodes if node.args]
    assert order[0].op == "mul" and plans._twin(program, order, (), 0, ()) is None


both_scalars = pytest.mark.parametrize("scalar", SCALARS)


@both_scalars
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("n, name", [(4, "inverse_dynamics"), (3, "forward_dynamics")])
def test_arguments_as_rows_and_as_columns(n, name, layout, scalar):
    program = program_of(zoo.arm(n), name)
    arrays = arguments(program, SCALARS[scalar], layout)
    module = kernel_module(program, scalar, False, layout)
    assert_right(program, results_of(program, module, arrays, layout), arrays)


@pytest.mark.parametrize("shift", [0, 1])
def test_rows_may_be_apart_shared_or_at_any_address(shift):
    program = program_of(zoo.arm(3), "inverse_dynamics")
    q, qd, qdd = arguments(program)
    wide = np.zeros((SAMPLES, 5))
    wide[:, 1:4] = q
    odd = np.append(0.0, qd)[1:].reshape(qd.shape)
    given = [wide[:, 1:4], odd, np.broadcast_to(qdd[0], qdd.shape)]
    module = kernel_module(program, "double", False)
    assert_right(program, results_of(program, module, given, shift=shift), given)


@both_scalars
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_a_sample_that_is_not_finite_is_nan_in_all_its_results(layout, scalar):
    program = trace(lambda x, y: (x + y, x[:1] * 2, np.outer(x, y), 1 / y[0]), [(3,), (3,)])
    x, y = given = arguments(program, SCALARS[scalar], layout)
    x[5, 1], y[40, 2], y[69, 0] = np.nan, np.inf, 0
    module = kernel_module(program, scalar, True, layout)
    results = results_of(program, module, given, layout)
    bad = [5, 40, 69]
    for z in results:
        assert np.isnan(z[bad]).all()
        assert np.isfinite(np.delete(z, bad, axis=0)).all()


def test_nan_stays_in_its_sample():
    program = program_of(zoo.arm(3), "inverse_dynamics")
    given = arguments(program)
    given[0][33] = np.nan
    (tau,) = results_of(program, kernel_module(program, "double", False), given)
    assert np.isnan(tau[33]).any() and np.isfinite(np.delete(tau, 33, axis=0)).all()


# results in pieces, values far away, sines that wait


def outer(x, y):
    return np.outer(x, y) / (1 + x @ x), x, y[0]


@both_scalars
@pytest.mark.parametrize("sizes", [(20, 24), (21, 23)])
@pytest.mark.parametrize("shift", [0, 1])
def test_large_results_are_written_in_pieces(sizes, shift, scalar):
    program = trace(outer, [(n,) for n in sizes])
    given = arguments(program, SCALARS[scalar])
    plan = plans.card_plan(program, SCALARS[scalar](0).itemsize)
    assert plan.stage.piece.size and not plan.stage.tiles[2].size
    results = results_of(program, kernel_module(program, scalar, False), given, shift=shift)
    assert_right(program, results, given)


def test_what_fits_nowhere_is_far_away():
    program = program_of(zoo.arm(4), "forward_dynamics")
    order = plans._order(program, 8)
    stage = plans.staged(program, order, 8, False)
    plan = plans.planned(program, stage, 8, plans.Trial(4, 12, 3))
    assert plan.far > 10 and plan.slots.size == 3
    module = kernel_text(program, "double", False, False, plan)
    assert module[1].scratch and module[1].persistent
    given = arguments(program)
    assert_right(program, results_of(program, module, given), given)


@both_scalars
@pytest.mark.parametrize("n", [2, 24])
def test_sines_of_any_angle(n, scalar):
    def both(x):
        return np.sin(2 * x[:2]), np.cos(x), x[1], np.sin(np.cos(x[0])), np.sin(x)

    program = trace(both, [(n,)])
    (x,) = given = arguments(program, SCALARS[scalar])
    x[3:9] *= 1e9
    x[11, 0] = 1e30
    assert bool(plans.card_plan(program, 8).stage.angles) == (n <= plans.FEW)
    results = results_of(program, kernel_module(program, scalar, False), given)
    assert_right(program, results, given, eps=4)


@both_scalars
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_sines_of_many_angles_are_made_in_a_loop(layout, scalar):
    # two stretches of angles, with and without numbers added, between arguments that are none
    def arms(x, y):
        angles = [*x[3:9], *(x[k] + 0.1 * k for k in range(10, 19))]
        both = [(np.cos(a) * y[0] + np.sin(a), np.sin(a) * np.cos(a)) for a in angles]
        return np.array([p + q for p, q in both]), x[:3] * x[9], np.cos(x[19])

    program = trace(arms, [(20,), (1,)])
    (x, _) = given = arguments(program, SCALARS[scalar], layout)
    x[3:9, 3:9] *= 1e7
    plan = plans.card_plan(program, 8)
    assert [(t.first, len(t.offsets)) for t in plan.stage.turns] == [(3, 6), (10, 9)]
    results = results_of(program, kernel_module(program, scalar, False, layout), given, layout)
    assert_right(program, results, given, eps=40)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_angles_of_several_arrays_are_not_side_by_side(layout):
    program = trace(lambda x, y, z: 2 * np.cos([*x, *y, *z]), [(3,), (7,), (6,)])
    assert [t.first for t in plans.card_plan(program, 8).stage.turns] == [3, 10]
    given = arguments(program, float, layout)
    results = results_of(program, kernel_module(program, "double", False, layout), given, layout)
    assert_right(program, results, given, eps=4)


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_sines_or_cosines_alone(function, monkeypatch):
    """Loops make both all the same, and have room for them, the last warp of a block too."""
    monkeypatch.setitem(globals(), "SAMPLES", 130)
    program = trace(lambda x: function(x) + function(x)[::-1], [(11,)])
    given = arguments(program)
    assert_right(
        program, results_of(program, kernel_module(program, "double", False), given), given
    )


@pytest.mark.parametrize("warps", [4, 24])
def test_numbers_of_long_programs_are_fetched(warps, monkeypatch):
    monkeypatch.setattr(plans, "_CODE", 10)
    program = program_of(zoo.arm(4), "forward_dynamics")
    stage = plans.staged(program, plans._order(program, 8), 8, False)
    plan = plans.planned(program, stage, 8, plans.Trial(warps, 30, 40))
    text, launch = kernel_text(program, "double", False, False, plan)
    assert "ld.const.f64" in text
    given = arguments(program)
    assert_right(program, results_of(program, (text, launch), given), given)


@both_scalars
def test_quotients_at_the_edges_are_those_of_numpy(scalar):
    dtype = SCALARS[scalar]
    program = trace(lambda a, b: a / b, [(1,), (1,)])
    edges = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]
    a, b = (np.resize(x, (SAMPLES, 1)).astype(dtype) for x in np.meshgrid(edges[:8], edges))
    (q,) = results_of(program, kernel_module(program, scalar, False), [a, b])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(q, a / b, rtol=2 * np.finfo(dtype).eps)


def test_results_may_be_arguments_and_constants():
    program = trace(lambda x: (x[::-1], np.array([1.0, 2.0]), x[0] + x[1]), [(2,)])
    given = arguments(program)
    results = results_of(program, kernel_module(program, "double", True), given)
    assert_right(program, results, given)


# what the assembler says: registers, and bytes spilled, of robots that need much

FIGURES = {
    ("humanoid", "inverse_dynamics", "float"): (168, 0),
    ("humanoid", "forward_dynamics", "float"): (255, 0),
    ("humanoid", "forward_dynamics", "double"): (255, 200),
}


@assembles
@pytest.mark.parametrize("robot, name, scalar", FIGURES)
def test_registers_and_what_is_spilled(robot, name, scalar):
    registers, spilled = FIGURES[robot, name, scalar]
    program = program_of(getattr(zoo, robot)(), name)
    figures = assembled(kernel_module(program, scalar, False)[0])
    assert figures.registers <= registers and figures.spilled <= spilled

"""Linear systems on cards: programs that give their numbers, and the kernel that solves them."""

from dataclasses import replace

import numpy as np
import pytest

from assembler import assembled, assembles
from emit.warps import Warps
from hinge import zoo
from hinge.emit.ptx.kernel import kernel_module
from hinge.emit.ptx.plan import TILE
from hinge.emit.ptx.systems import solver_module
from hinge.graph.interpret import interpret
from hinge.graph.program import Program, trace
from hinge.graph.systems import Stage, Systems, factor_numbers, right_numbers
from hinge.specialize.routing import CODE_OF_A_CARD
from hinge.specialize.systems import robot_systems

SCALARS = {"float": np.float32, "double": np.float64}
# tiles and a part of one, blocks and a part of one
SAMPLES = 37


def address(x):
    return x.ctypes.data


def nodes(program, n):
    values = np.empty(len(program.values), dtype=object)
    values[:] = program.values
    return values.reshape(-1, n, n)


def systems_of(m, right, n):
    """Systems of a function that gives m, and of one that gives the R, both of two numbers."""
    programs = [trace(fn, [(2,)]) for fn in (m, right)]
    numbers, above = factor_numbers(nodes(programs[0], n)[0])
    groups, tables = right_numbers(nodes(programs[1], n), most=5)
    factor, *sides = (
        Stage(Program("numbers", ((2,),), ((len(x),),), tuple(x)), (0,)) for x in (numbers, *groups)
    )
    outputs = ((n, n),) * (len(tables) + 1)
    return Systems("systems", ((2,),), outputs, tuple, None, factor, above, tuple(sides), tables)


def chain_of(n):
    """m with a band, an empty row and a full column; two R with zeros, one has a constant."""

    def m(x):
        full = np.zeros((n, n), dtype=object)
        for k in range(n):
            full[k, k] = 2 + x[0] * x[0] + k % 3
            for j in range(max(0, k - 2), k):
                full[j, k] = 0.3 * x[1] + 0.1 * j
        full[0, n - 1] = x[0]
        return full

    def right(x):
        R, T = np.zeros((2, n, n), dtype=object)
        for i in range(n):
            R[i, i], R[i, 0] = x[0] + i, x[1]
            T[0, i] = x[0] * x[1] - i
        R[n - 1, n - 1] = 3.0
        return R, T

    return m, right


def in_tiles(numbers):
    """(samples, n) as tiles of samples."""
    count = -(-len(numbers) // TILE) * TILE
    full = np.full((count, numbers.shape[1]), 7, numbers.dtype)
    full[: len(numbers)] = numbers
    return np.ascontiguousarray(full.reshape(-1, TILE, numbers.shape[1]).swapaxes(1, 2))


def solved(systems, module, numbers, layout):
    """The results, from the numbers of m and of the R."""
    text, launch = module
    n, dtype = systems.rows, numbers[0].dtype
    tiles = [in_tiles(x) for x in numbers]
    given, results = [address(x) for x in tiles], []
    for _ in systems.outputs:
        flat = np.full(SAMPLES * n * n, 7.0, dtype)
        given.append(address(flat))
        if layout == "columns":
            given.append(SAMPLES * dtype.itemsize)
            results.append(flat.reshape(n, n, SAMPLES).transpose(2, 0, 1))
        else:
            results.append(flat.reshape(SAMPLES, n, n))
    blocks = -(-SAMPLES // launch.samples)
    Warps(text).launch([*given, SAMPLES], blocks, launch.threads, launch.shared)
    return results


def states(dtype):
    return np.random.default_rng(3).normal(size=(SAMPLES, 2)).astype(dtype)


def numbers_of(systems, x):
    factor, *sides = (
        np.asarray(interpret(stage.program, [x])[0], x.dtype)
        for stage in (systems.factor, *systems.sides)
    )
    return factor, np.hstack(sides)


both_scalars = pytest.mark.parametrize("scalar", SCALARS)
both_layouts = pytest.mark.parametrize("layout", ["rows", "columns"])


@both_scalars
@both_layouts
@pytest.mark.parametrize("n", [3, 13, 26])
def test_solutions_and_the_inverse_are_those_of_dense_algebra(n, layout, scalar):
    m, right = chain_of(n)
    systems, x = systems_of(m, right, n), states(SCALARS[scalar])
    assert len(systems.sides) > 1
    module = solver_module(systems, scalar, True, layout)
    results = solved(systems, module, numbers_of(systems, x), layout)
    for i, row in enumerate(x.astype(float)):
        factor = np.array(m(row), float)
        inverse = np.linalg.inv(factor @ factor.T)
        wanted = [*(-inverse @ np.array(R, float) for R in right(row)), inverse]
        for found, exact in zip(results, wanted, strict=True):
            bound = 200 * np.finfo(SCALARS[scalar]).eps * (1 + abs(exact).max())
            np.testing.assert_allclose(found[i], exact, rtol=0, atol=bound)


@both_scalars
@both_layouts
def test_a_sample_that_is_not_finite_is_nan_in_all_its_results(layout, scalar):
    n = 9
    systems, x = systems_of(*chain_of(n), n), states(SCALARS[scalar])
    factor, sides = numbers_of(systems, x)
    factor[3], sides[20, 4], sides[36, 0] = np.nan, np.inf, np.finfo(sides.dtype).max
    results = solved(systems, solver_module(systems, scalar, True, layout), (factor, sides), layout)
    for y in results:
        assert np.isnan(y[[3, 20, 36]]).all()
        assert np.isfinite(np.delete(y, [3, 20, 36], axis=0)).all()


@pytest.mark.parametrize("shift", [0, 1])
def test_results_may_begin_anywhere(shift):
    """In whole lines where they begin with one, else number by number."""
    n = 4
    systems, x = systems_of(*chain_of(n), n), states(float)
    text, launch = solver_module(systems, "double", True)
    tiles = [in_tiles(x) for x in numbers_of(systems, x)]
    found = [np.full(SAMPLES * n * n + 4, 7.0) for _ in systems.outputs]
    starts = [y[address(y) % 16 // 8 + shift :] for y in found]
    given = [*map(address, tiles), *map(address, starts), SAMPLES]
    Warps(text).launch(given, -(-SAMPLES // launch.samples), launch.threads, launch.shared)
    expected = solved(systems, (text, launch), numbers_of(systems, x), "rows")
    for y, start, wanted in zip(found, starts, expected, strict=True):
        assert (start[: wanted.size] == wanted.ravel()).all()
        assert (start[wanted.size :] == 7).all() and (y[: len(y) - len(start)] == 7).all()


def test_the_inverse_alone():
    n = 5
    m, right = chain_of(n)
    systems = replace(systems_of(m, right, n), right=(), sides=(), outputs=((n, n),), form=None)
    x = states(float)
    numbers = [np.asarray(interpret(systems.factor.program, [x])[0])]
    (found,) = solved(systems, solver_module(systems, "double", True), numbers, "rows")
    for row, inverse in zip(x, found, strict=True):
        factor = np.array(m(row), float)
        np.testing.assert_allclose(inverse @ factor @ factor.T, np.eye(n), atol=1e-12)


@both_scalars
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("first", [0, 4])
def test_kernels_leave_numbers_in_tiles(first, layout, scalar):
    """Some of the numbers that a sample has in them; of a sample that is not finite, NaN."""
    program = trace(lambda x: np.array([x[0] + x[1], x[0] * x[1], 1 / x[0]]), [(2,)])
    x, many = states(SCALARS[scalar]), first + 3
    x[11, 0] = 0.0
    given = np.asfortranarray(x) if layout == "columns" else x
    text, launch = kernel_module(program, scalar, True, layout, tiled=many)
    # as many as whole warps have samples
    tiles = np.full((-(-SAMPLES // 32) * 32 // TILE, many, TILE), 7, x.dtype)
    start = address(tiles) + first * TILE * x.itemsize
    arguments = [address(given), given.strides[layout == "columns"], start, SAMPLES, 0]
    Warps(text).launch(arguments, -(-SAMPLES // launch.samples), launch.threads)
    assert (tiles[:, :first] == 7).all()
    found = tiles[:, first:].swapaxes(1, 2).reshape(-1, 3)[:SAMPLES]
    with np.errstate(divide="ignore"):
        exact = interpret(program, [x.astype(float)])[0]
    exact[11] = np.nan
    np.testing.assert_allclose(found, exact, rtol=8 * np.finfo(x.dtype).eps)


# registers, and bytes that are spilled: columns of several results are in registers
FIGURES = {
    ("float", "rows"): (168, 0),
    ("double", "rows"): (255, 0),
    ("float", "columns"): (248, 0),
    ("double", "columns"): (255, 100),
}


@assembles
@pytest.mark.parametrize("scalar, layout", FIGURES)
def test_columns_are_in_registers(scalar, layout):
    mech = zoo.humanoid().mechanism
    systems = robot_systems(mech, "forward_dynamics_derivatives", ("q", "qd", "tau"), {})
    registers, spilled = FIGURES[scalar, layout]
    figures = assembled(solver_module(systems, scalar, True, layout)[0])
    assert figures.registers <= registers and figures.spilled <= spilled


@assembles
@both_scalars
def test_what_comes_before_spills_little(scalar):
    """Each part has code that a multiprocessor holds, and little of its numbers is far away."""
    mech = zoo.humanoid().mechanism
    systems = robot_systems(mech, "forward_dynamics_derivatives", ("q", "qd", "tau"), {})
    many = sum(stage.program.output_sizes[0] for stage in systems.sides)
    assert len(systems.sides) > 1
    for stage in systems.sides:
        text, launch = kernel_module(stage.program, scalar, True, "rows", many)
        assert sum(stage.program.ops) <= CODE_OF_A_CARD
        assert launch.scratch <= launch.threads * 8 * 300 and assembled(text).spilled <= 800

"""Emitted C, compiled and run, against `interpret`: to the bit, the C library's sines granted."""

import re
import subprocess
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import hinge
from emit.everything import EDGES, every_operation
from hinge import algorithms
from hinge.emit.c.source import c_source
from hinge.errors import ArgumentError
from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS, library_functions
from hinge.graph.program import trace
from mechanisms import ROBOTS, assert_same_bits
from with_c import (
    SCALARS,
    Compiled,
    assert_lonely,
    both,
    compile_c,
    compiled,
)


def check(program, scalar, folder, arguments, **names):
    """The compiled program gives what `interpret` gives on each sample; the source."""
    function = Compiled(program, scalar, folder, **names)
    dtype = SCALARS[scalar]
    columns = [np.array(column, dtype) for column in zip(*arguments, strict=True)]
    with np.errstate(over="ignore"):
        expected = [np.asarray(x, dtype) for x in interpret(program, columns)]
    for k, sample in enumerate(arguments):
        for i, got in enumerate(function(*sample)):
            # without arguments there are no samples
            wanted = expected[i][k] if columns else expected[i]
            assert_same_bits(got, np.asarray(wanted), f"result {i}")
    return function.source


def samples(program, seed, count=3):
    rng = np.random.default_rng(seed)
    return [[rng.normal(size=shape) for shape in program.inputs] for _ in range(count)]


# operations


@compiled
@both
def test_every_operation_on_every_kind_of_number(scalar, tmp_path, c_sines):
    program = every_operation()
    function = Compiled(program, scalar, tmp_path)
    with np.errstate(over="ignore", under="ignore"):
        grid = np.array(list(product(EDGES, repeat=3))).astype(SCALARS[scalar])
    (expected,) = interpret(program, [grid])
    got = np.concatenate([function(x) for x in grid])
    for i, op in enumerate(OPERATIONS):
        assert_same_bits(got[:, i], expected[:, i], op)


@compiled
@both
def test_sines_are_within_two_ulp_of_numpy(scalar, tmp_path):
    program = trace(lambda x: (np.sin(x), np.cos(x), hinge.atan2(x, 0.3)), [(60,)], "sines")
    x = np.linspace(-30, 30, 60).astype(SCALARS[scalar])
    got = Compiled(program, scalar, tmp_path)(x)
    for a, b in zip(got, interpret(program, [x]), strict=True):
        assert (np.abs(a - b) <= 2 * np.spacing(np.maximum(np.abs(b), 1e-3))).all()


@compiled
@both
@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_keep_the_order_of_the_graph(scalar, seed, tmp_path, c_sines):
    program = random_program(seed, 400)
    check(program, scalar, tmp_path, samples(program, seed, 20))


def random_program(seed, count):
    """Any operation on arguments, numbers and the latest values; every seventh is a result."""
    rng = np.random.default_rng(seed)
    ops = list(OPERATIONS)
    weights = np.array([8.0 if op in ("add", "sub", "mul", "neg") else 1.0 for op in ops])

    def fn(x):
        graph, values = x[0].graph, list(x)
        for _ in range(count):
            op = str(rng.choice(ops, p=weights / weights.sum()))
            choice = [*values[-10:], *x, *(graph.const(v) for v in (-0.75, 1.1, -3.0))]
            picks = rng.integers(len(choice), size=OPERATIONS[op].arity)
            node = graph.make(op, *(choice[i] for i in picks))
            values += [node] if node.op != "const" else []
        return np.array(values[::7])

    return trace(fn, [(5,)], "random")


@compiled
@both
def test_numbers_come_back_exactly(scalar, tmp_path):
    rng = np.random.default_rng(0)
    powers = [2.0**k for k in range(-1074, 1023, 13)]
    scaled = [-1.7 * p for p in powers]
    numbers = [*EDGES, *powers, *scaled, *rng.normal(size=200), np.finfo(float).max]
    program = trace(lambda: np.array(numbers), [], "numbers")
    check(program, scalar, tmp_path, [[]])


# algorithms

ALGORITHMS = {
    "inverse_dynamics": ("q", "v", "v"),
    "forward_dynamics": ("q", "v", "v"),
    "mass_matrix": ("q",),
    "bias_forces": ("q", "v"),
    "kinetic_energy": ("q", "v"),
    "center_of_mass": ("q",),
    "momentum": ("q", "v"),
    "poses": ("q",),
    "integrate": ("q", "v"),
    "difference": ("q", "q"),
}
CASES = [
    *product(["pendulum", "tree0", "gripper"], ALGORITHMS),
    *product(["empty"], ["inverse_dynamics", "mass_matrix", "integrate"]),
    *product(["arm"], ["mass_matrix_inverse", "frame_pose", "jacobian"]),
    *product(["quadruped"], ["inverse_dynamics", "forward_dynamics", "integrate", "jacobian"]),
    *product(["humanoid"], ["inverse_dynamics", "forward_dynamics", "mass_matrix"]),
]


def robot_program(robot, name):
    """An algorithm on a robot, traced; and three random samples."""
    static = {"frame": robot.frame_names[-1]} if name in ("frame_pose", "jacobian") else {}
    kinds = ALGORITHMS.get(name, ("q",))
    shapes = [(robot.nq if kind == "q" else robot.nv,) for kind in kinds]
    algorithm = getattr(algorithms, name)
    program = trace(lambda *a: algorithm(robot.mechanism, *a, **static), shapes, name)
    rng = np.random.default_rng(0)
    make = {"q": lambda: robot.random_configuration(rng), "v": lambda: rng.normal(size=robot.nv)}
    return program, [[make[kind]() for kind in kinds] for _ in range(3)]


@compiled
@pytest.mark.parametrize("robot, name", CASES)
def test_algorithms_on_robots(robot, name, tmp_path, c_sines):
    program, given = robot_program(ROBOTS[robot], name)
    source = check(program, "double", tmp_path, given)
    assert max(map(len, source.splitlines())) <= 100


@compiled
@pytest.mark.parametrize("robot", ["pendulum", "arm", "quadruped"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_algorithms_in_single_precision(robot, name, tmp_path, c_sines):
    program, given = robot_program(ROBOTS[robot], name)
    source = check(program, "float", tmp_path, given)
    assert "double" not in source


@compiled
def test_nan_and_infinity_go_where_interpret_sends_them(tmp_path, c_sines):
    program, given = robot_program(ROBOTS["space_arm"], "forward_dynamics")
    spoiled = [[a.copy() for a in given[0]] for _ in range(9)]
    cases = product(range(3), (np.nan, np.inf, -np.inf))
    for sample, (i, value) in zip(spoiled, cases, strict=True):
        sample[i][-1] = value
    check(program, "double", tmp_path, spoiled)


# shapes of programs


class Pair(NamedTuple):
    """Results with names."""

    total: np.ndarray
    outer: np.ndarray


@compiled
@both
@pytest.mark.parametrize(
    "fn, shapes",
    [
        pytest.param(lambda x, y: (x + y, np.outer(x, y), x @ y), [(3,), (3,)], id="tuple"),
        pytest.param(lambda x, y: Pair(x + y, np.outer(x, y)), [(3,), (3,)], id="named"),
        pytest.param(lambda: np.array([[1.5, -2.0], [0.1, 1e-40]]), [], id="no arguments"),
        pytest.param(lambda x: (np.zeros(3), 4.0), [(2,)], id="constants only"),
        pytest.param(lambda x: (x[::-1], x), [(4,)], id="argument to result"),
        pytest.param(lambda x: (x * x, 2.0 * (x * x), x * x), [(2,)], id="one value twice"),
        pytest.param(lambda x, dt: x * dt, [(2, 2), ()], id="a scalar and a matrix"),
        pytest.param(lambda x, y: (y, x), [(0,), (2,)], id="an empty array"),
        pytest.param(lambda: (), [], id="nothing"),
    ],
)
def test_programs_of_every_shape(fn, shapes, scalar, tmp_path):
    program = trace(fn, shapes, "shape")
    check(program, scalar, tmp_path, samples(program, 1))


@compiled
@both
def test_long_programs_come_in_parts(scalar, tmp_path, c_sines):
    def fn(x):
        steps = [x]
        for _ in range(200):
            steps.append(np.cos(steps[-1]) - 0.3 * np.roll(x, 1) * steps[-1])
        # sums from the end: all steps cross from part to part
        return steps[-1], np.array([sum(s[i] for s in steps[::-1]) for i in range(5)])

    program = trace(fn, [(5,)], "steps")
    assert sum(program.ops) > 3000
    source = check(program, scalar, tmp_path, samples(program, 7))
    assert source.count("PART steps_part") >= 4 and "Workspace on the stack" in source


@compiled
def test_parts_that_share_nothing_have_no_workspace(tmp_path):
    program = trace(lambda x: 2.0 * x, [(1200,)], "twice")
    source = check(program, "double", tmp_path, samples(program, 2))
    assert "twice_part2(in0, out0);" in source and "struct" not in source


@compiled
def test_many_results_that_need_no_operation_come_in_parts(tmp_path):
    program = trace(lambda x: (x * x, np.zeros((40, 40)), x), [(2,)], "zeros")
    source = check(program, "double", tmp_path, samples(program, 2))
    assert "zeros_part2(in0, out1, out2);" in source


# what the file is


@compiled
@both
@pytest.mark.parametrize("robot", ["arm", "quadruped"])
def test_objects_need_the_sines_and_nothing_else(scalar, robot, tmp_path):
    program, _ = robot_program(ROBOTS[robot], "forward_dynamics")
    assert_lonely(c_source(program, scalar), tmp_path, {"sin", "cos"})


@compiled
@both
def test_objects_with_every_operation_need_functions_of_math_alone(scalar, tmp_path):
    needed = {*library_functions(), "sqrt", "floor", "rint"}
    assert_lonely(c_source(every_operation(), scalar), tmp_path, needed)


def test_a_sine_and_a_cosine_are_computed_once():
    source = c_source(robot_program(ROBOTS["arm"], "forward_dynamics")[0])
    calls = re.findall(r"\b(?:sin|cos)\(.*?\)", source)
    assert calls and len(calls) == len(set(calls))


def test_math_is_included_only_where_it_is_used():
    assert "#include" not in c_source(trace(lambda x: x + 1, [(2,)], "plain"))
    assert "#include <math.h>" in c_source(trace(lambda: np.array([np.inf]), [], "infinite"))
    assert "#include <math.h>" in c_source(trace(lambda x: np.abs(x), [(2,)], "absolute"))


@compiled
def test_the_comment_says_how_to_call(tmp_path):
    program = trace(lambda A, x, none: (A @ x, none), [(2, 3), (3,), (0,)], "product")
    source = c_source(program, names=("A", "x", "none"), results=("b", "rest"), about="b = A x */")
    top = source[: source.index("*/")]
    assert "b = A x * /" in top and "A     argument, 2 x 3 numbers, row after row" in top
    assert "6 multiplications, 4 additions, 0 divisions" in top
    example = re.search(r"How to call it:\n \*\n((?: \*  .*\n)+)", top)[1].replace(" *  ", "")
    main = f"int main(void)\n{{\n{example}    return 0;\n}}\n"
    # the arrays of the example are not set
    subprocess.run([str(compile_c(source + main, tmp_path, "-w"))], check=True)


NAMES = ["double", "double", "sin", "t1", "w", "3dof", "θ", "φ", "", "M_PI", "_q", "q", "a b", "x"]


@compiled
@pytest.mark.parametrize("name", ["f", "sin", "y1", "main", "abs", "<lambda>", "a b*/", "", "PART"])
def test_any_text_becomes_a_name(name, tmp_path):
    given = [*NAMES, name, f"{name}_part1", "PART", "INFINITY", "new", "linux"]
    # in parts only once
    size = 30 if name == "f" else 2

    def fn(*values):
        return tuple(np.sin(x) * np.sin(x[0]) * np.array([np.inf] * size) for x in values)

    program = trace(fn, [(size,)] * len(given), name)
    source = check(program, "double", tmp_path, samples(program, 3, 1), names=given, results=given)
    assert ("_part2(" in source) == (name == "f")


def test_names_stay_as_they_are_where_they_can():
    program = trace(lambda q, M, gamma: (q, M @ gamma), [(2,), (2, 2), (2,)], "step")
    source = c_source(program, names=("q", "M", "gamma"), results=("q_next", "y1"))
    arguments = "const double *q, const double *M, const double *gamma"
    assert f"void step({arguments}, double *q_next, double *y1)\n" in source
    named = trace(lambda x: Pair(x, x), [(1,)], "named")
    assert "void named(const double *in0, double *total, double *outer)" in c_source(named)


def test_wrong_arguments_are_named():
    program = trace(lambda x, y: x + y, [(2,), (2,)], "plus")
    with pytest.raises(ArgumentError, match="plus: scalar is 'half'; C has 'double' and 'float'"):
        c_source(program, "half")
    with pytest.raises(ArgumentError, match=r"plus: 1 names of arguments \(x\); expected 2"):
        c_source(program, names=("x",))
    with pytest.raises(ArgumentError, match=r"plus: 2 names of results \(a, b\); expected 1"):
        c_source(program, results=("a", "b"))

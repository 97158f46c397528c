"""Loops in C, compiled and run: to the bit what the steps mean, and close to the generic code."""

import re

import numpy as np
import pytest

import hinge
from hinge import Contact, LoopConstraint, zoo
from hinge.algorithms.declare import ALGORITHMS
from hinge.emit.c.source import c_source
from hinge.graph.interpret import interpret
from hinge.graph.loop import LoopProgram
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops
from hinge.specialize.routing import MOST_UNROLLED
from loop_cases import frame_in_loops, held_in_loops, looped, split_in_loops, swapping
from mechanisms import EPS, assert_close, assert_same_bits, everything, random_state
from with_c import SCALARS, Compiled, assert_lonely, both, compile_c, compiled

SNAKE = zoo.snake(50)
CASES = {
    "inverse_dynamics": ("q", "qd", "qdd", "f_ext"),
    "forward_dynamics": ("q", "qd", "tau", "f_ext"),
    "forward_dynamics_jvp": ("q", "qd", "tau", "dq", "dqd", "dtau"),
}


def state(robot, names):
    """Random arrays of these names, in float32 exactly."""
    s, rng = random_state(robot, 5), np.random.default_rng(5)
    known = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "tau": s.qdd, "f_ext": s.f_ext}
    given = [known[n] if n in known else rng.normal(size=robot.nv) for n in names]
    return [np.asarray(x, np.float32).astype(float) for x in given]


@compiled
@pytest.mark.parametrize("name", CASES)
def test_a_long_snake_in_c(name, tmp_path, c_sines):
    """To the bit what the steps say; as near to kernel and generic code as these to one another."""
    names, kernel = CASES[name], SNAKE.kernel(name, *CASES[name])
    given = state(SNAKE, names)
    results = [ALGORITHMS[name].result]
    function = Compiled(kernel.program, "double", tmp_path, names=names, results=results)
    assert function.source == kernel.source("c")
    assert "define void @run" in kernel.source("llvm")
    (got,) = function(*given)
    assert_same_bits(got, interpret(kernel.program, given)[0])
    assert_close(got, kernel(*given), 5000 * EPS)
    assert_close(got, getattr(SNAKE.alg, name)(*given), 5000 * EPS)


@compiled
@pytest.mark.parametrize("frame", [-1, 5])
def test_the_way_to_a_frame_in_c(frame, tmp_path):
    robot = everything()
    program, q = frame_in_loops(robot, robot.frame_names[frame]), random_state(robot, 5).q
    (got,) = Compiled(program, "double", tmp_path)(q)
    assert_close(got, robot.alg.jacobian(q, robot.frame_names[frame]), 1000 * EPS)


@compiled
def test_a_split_mechanism_in_c(tmp_path):
    robot = zoo.quadruped()
    program, active = split_in_loops(robot)
    s = random_state(robot, 5)
    given = s.q, s.qd, s.qdd, s.qdd
    got = Compiled(program, "double", tmp_path)(*given)
    for a, b in zip(got, robot.alg.hybrid_dynamics(*given, active=active), strict=True):
        assert_close(a, b, 1e4 * EPS)


@compiled
@pytest.mark.parametrize("scalar", ["double", "float"])
def test_a_mechanism_that_is_held_in_c(scalar, tmp_path):
    """What belongs to no body: sums, the forces of constraints, marks and anchors."""
    robot, arrays = zoo.quadruped(), ("q", "qd", "tau", "mask", "anchors")
    constraints = Contact("FL_foot", stiffness=4.0), LoopConstraint("FR_foot", "RL_foot", axes=(5,))
    program = held_in_loops(robot, "constrained_forward_dynamics", arrays, constraints)
    s, anchor = random_state(robot, 5), np.eye(4)[None]
    given = s.q, s.qd, s.qdd, np.ones(2), anchor
    got = Compiled(program, scalar, tmp_path)(*given)
    expected = robot.alg.constrained_forward_dynamics(
        *given[:3], constraints, mask=given[3], anchors=anchor
    )
    eps = np.finfo(np.float32 if scalar == "float" else float).eps
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, 1e4 * eps)


@compiled
@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("constraint_jacobian", ("q",)),
        ("constrained_inverse_dynamics", ("q", "qd", "qdd", "mask")),
        ("constrained_changes", ("q", "qd", "tau", "f_ext")),
        ("impulse_changes", ("q", "qd", "restitution")),
    ],
)
def test_what_constraints_feel_and_how_it_changes_in_c(name, arrays, tmp_path):
    robot = zoo.quadruped()
    constraints = Contact("FL_foot", "flat"), LoopConstraint("FR_foot", "RL_foot", axes=(0, 5))
    active = tuple(i >= 6 for i in range(robot.nv)) if "inverse" in name else None
    program = held_in_loops(robot, name, arrays, constraints, active)
    s, static = random_state(robot, 5), {} if active is None else {"active": active}
    known = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "tau": s.qdd, "f_ext": s.f_ext}
    known |= {"mask": np.ones(2), "restitution": np.array([0.1, 0.6])}
    given = {n: known[n] for n in arrays}
    got = Compiled(program, "double", tmp_path)(*given.values())
    expected = getattr(robot.alg, name)(**given, constraints=constraints, **static)
    for a, b in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert_close(np.reshape(a, b.shape), b, 1e5 * EPS)


@compiled
def test_a_long_snake_in_single_precision(tmp_path):
    robot, names = hinge.Robot(SNAKE.mechanism, dtype=np.float32), CASES["inverse_dynamics"]
    kernel, given = robot.kernel("inverse_dynamics", *names), state(SNAKE, names)
    function = Compiled(kernel.program, "float", tmp_path, names=names, results=["tau"])
    assert function.source == kernel.source("c") and "double" not in function.source
    (got,), eps = function(*given), np.finfo(np.float32).eps
    expected = SNAKE.alg.inverse_dynamics(*given)
    assert got.dtype == np.float32
    assert_close(got, expected, 100 * eps)
    assert_close(kernel(*(x.astype(np.float32) for x in given)), expected, 100 * eps)


@compiled
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_every_kind_of_joint_in_one_tree(name, tmp_path, c_sines):
    robot, names = everything(), CASES[name]
    program, given = looped(robot.mechanism, name), state(robot, names)
    function = Compiled(program, "double", tmp_path, "-O1", names=names)
    (got,) = function(*given)
    assert_same_bits(got, interpret(program, given)[0])
    assert_close(got, getattr(robot.alg, name)(*given), 3000 * EPS)
    assert max(map(len, function.source.splitlines())) <= 100


# what the file is


def test_the_file_grows_by_its_tables_alone():
    names = ("q", "qd", "tau")
    sources = [zoo.snake(n).kernel("forward_dynamics", *names).source("c") for n in (50, 100)]
    tables = re.compile(r"^static const .*? = \{\n.*?^\};\n", re.M | re.S)
    short, long = (tables.sub("", source).count("\n") for source in sources)
    assert short == long
    short, long = (sum(map(len, tables.findall(source))) for source in sources)
    assert 1.8 * short < long < 2.2 * short


@compiled
@both
def test_objects_need_the_sines_and_the_ground_copied(scalar, tmp_path):
    source = c_source(looped(zoo.snake(MOST_UNROLLED + 1).mechanism, "inverse_dynamics"), scalar)
    assert_lonely(source, tmp_path, {"sin", "cos", "memcpy"})


def test_the_comment_has_the_size_of_the_workspace():
    program = looped(SNAKE.mechanism, "gravity_forces")
    for scalar, dtype in SCALARS.items():
        source = c_source(program, scalar, results=("tau",), about="Weight of a snake.")
        top, rest = source.split("*/", 1)
        assert "gravity_forces: C99 with loops over 50 bodies, made by hinge." in top
        assert "Weight of a snake." in top and "  tau  result, 55 numbers" in top
        size, rows, row = map(
            int, re.search(r"stack: (\d+) bytes, (\d+) rows of (\d+)", top).groups()
        )
        members = re.search(rf"struct gravity_forces_row {{\n    {scalar} (.*?);", rest)[1]
        assert row == sum(map(int, re.findall(r"\[(\d+)\]", members)))
        assert rows == 51 and size == rows * row * np.dtype(dtype).itemsize
        assert f"void gravity_forces(const {scalar} *in0, {scalar} *tau);" in rest


# programs of every shape


def two_sums(mech, qd, unused, scale):
    """Rates summed from the ground and from the tips: two results, and an argument not used."""
    down, up = mech.slots(2)
    rates, factors = mech.rates(qd), mech.rates(scale)
    down[0] = np.array([2.0])
    up[0] = np.array([0.0])
    for p, k in mech.outward():
        down[k] = np.array([down[p][0] + rates[k][0]])
        up[k] = factors[k] * rates[k]
    for p, k in mech.inward():
        up[p] = np.array([up[p][0] + up[k][0]])
    return mech.join(down), mech.join(up)


@compiled
@pytest.mark.parametrize(
    "names", [("qd", "unused", "scale"), ("own", "i", "two_sums_visits"), ("visit", "w", "kind")]
)
def test_several_results_and_any_names(names, tmp_path):
    mech = zoo.arm(5).mechanism
    arrays = {"qd": (5,), "unused": (5,), "scale": (5,)}
    program = trace_loops(two_sums, canonical(mech), arrays, "two_sums")
    results = ("parent", "two_sums_results")
    function = Compiled(program, "double", tmp_path, names=names, results=results)
    qd, scale = np.arange(5.0), np.array([1.0, 2.0, 0.5, 4.0, -1.0])
    down, up = function(qd, qd, scale)
    assert np.array_equal(down, 2 + np.cumsum(qd))
    assert np.array_equal(up, np.cumsum((scale * qd)[::-1])[::-1])
    # one table serves both results
    assert function.source.count("where results are") == 1


@compiled
@both
def test_values_change_places(scalar, tmp_path):
    program, x, expected = swapping()
    function = Compiled(program, scalar, tmp_path)
    assert np.array_equal(function(x)[0], expected)
    # a place of 70 000 needs the longer type
    assert "unsigned long kind" in function.source
    assert "unsigned short swapping_results" in function.source


@compiled
def test_bodies_without_freedom_have_an_empty_function(tmp_path):
    b, parent = hinge.MechanismBuilder("statue"), "world"
    for i in range(MOST_UNROLLED + 1):
        b.add(f"stone{i}", parent, hinge.Fixed())
        parent = f"stone{i}"
    program = looped(b.build(), "inverse_dynamics")
    assert isinstance(program, LoopProgram) and program.outputs == ((0,),)
    compile_c(c_source(program), tmp_path, "-c")

"""Loops over ancestors inside loops over bodies give what the generic code gives, everywhere."""

from functools import cache, partial

import numpy as np
import pytest

import hinge
from hinge import TraceError, algorithms, zoo
from hinge.emit.ptx.kernel import kernel_module
from hinge.graph.interpret import interpret
from hinge.graph.pairs import Matrix, Pairs
from hinge.graph.scalar import reachable
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel
from hinge.specialize.arrays import array_shape
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops
from hinge.specialize.routing import MOST_UNROLLED
from mechanisms import BODY, EPS, assert_close, everything, random_state
from with_c import Compiled, compiled

ARRAYS = {
    "mass_matrix": ("q",),
    "mass_matrix_inverse": ("q",),
    "inverse_dynamics_derivatives": ("q", "qd", "qdd"),
    "forward_dynamics_derivatives": ("q", "qd", "tau"),
    "mass_factor": ("q",),
    "mass_factor_inverse": ("q",),
    "mass_factor_rate": ("q", "qd"),
}
# upper triangular, and in body axes only
FACTORS = ("mass_factor", "mass_factor_inverse", "mass_factor_rate")
# of these, blocks of bodies on different branches are zero
ALONG_BRANCHES = ("mass_matrix", "inverse_dynamics_derivatives", *FACTORS)


def mixed(branches):
    """A floating base, joints of one and three DoF with rotors, in a row or on two branches."""
    b = hinge.MechanismBuilder("mixed")
    joints = {
        "base": hinge.Free(),
        "hip": hinge.Revolute((0, 0.6, 0.8), armature=0.3),
        "ball": hinge.Spherical(armature=(0.1, 0.2, 0.3)),
        "slide": hinge.Prismatic((1, 0, 0), armature=0.05),
        "knee": hinge.Revolute((0, 0, 1)),
        "foot": hinge.Revolute((1, 0, 0), armature=0.2),
    }
    at, parent = hinge.Transform.from_rpy((0.3, -0.4, 0.5), (0.3, 0.1, -0.2)), "world"
    for name, joint in joints.items():
        on = "base" if branches and name == "slide" else parent
        b.add(name, on, joint, placement=at, inertia=BODY)
        parent = name
    return hinge.Robot(b.build())


CHAINS = {"chain": mixed(branches=False), "snake": zoo.snake(7)}
TREES = {"tree": mixed(branches=True), "quadruped": zoo.quadruped()}
CASES = [(r, n) for r in (*CHAINS, *TREES) for n in ARRAYS if r in CHAINS or n in ALONG_BRANCHES]
IN_AXES = [(*case, "body") for case in CASES]
IN_AXES += [(*case, "ground") for case in CASES if case[1] not in FACTORS]


def usual_axes(name):
    """Those that long mechanisms have."""
    return "ground" if name in ALONG_BRANCHES and name not in FACTORS else "body"


def climbing(mech, name, axes=None, more=(), **static):
    """axes: by default the usual ones."""
    arrays = {a: array_shape(mech, a) for a in (*ARRAYS[name], *more)}
    if name not in FACTORS:
        static["axes"] = axes or usual_axes(name)
    algorithm = partial(getattr(algorithms, name), **static)
    return trace_loops(algorithm, canonical(mech), arrays, name)


def given_of(robot, name, count=5):
    states = [random_state(robot, seed) for seed in range(count)]
    return [np.array([getattr(s, {"tau": "qdd"}.get(a, a)) for s in states]) for a in ARRAYS[name]]


@cache
def interpreted(robot_name, name, axes):
    """A program, eleven samples, and what the interpreter makes of them."""
    robot = (CHAINS | TREES)[robot_name]
    program, given = climbing(robot.mechanism, name, axes), given_of(robot, name, 11)
    return program, given, interpret(program, given)


def parts_of(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def expected_of(robot, name, given):
    return parts_of(getattr(robot.alg, name)(*given))


@pytest.mark.parametrize(("robot_name", "name", "axes"), IN_AXES)
def test_interpreted_climbs_agree_with_the_generic_code(robot_name, name, axes):
    _, given, got = interpreted(robot_name, name, axes)
    expected = expected_of((CHAINS | TREES)[robot_name], name, [x[2] for x in given])
    for a, b in zip(got, expected, strict=True):
        assert_close(a[2], b, 3000 * EPS)


@pytest.mark.parametrize(("robot_name", "name"), CASES)
def test_compiled_climbs_agree_with_the_interpreter(robot_name, name):
    """Vectors of samples and one alone."""
    program, given, expected = interpreted(robot_name, name, usual_axes(name))
    kernel = Kernel(program, name, backend=Cpu(threads=1))
    many, one = parts_of(kernel(*given)), parts_of(kernel(*(x[9] for x in given)))
    for a, b, c in zip(many, one, expected, strict=True):
        assert_close(a, c, 3000 * EPS)
        assert_close(b, c[9], 3000 * EPS)


@compiled
@pytest.mark.parametrize(("robot_name", "name"), CASES)
def test_climbs_in_c_agree_with_the_interpreter(robot_name, name, tmp_path):
    program, given, expected = interpreted(robot_name, name, usual_axes(name))
    got = Compiled(program, "double", tmp_path)(*(x[1] for x in given))
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b[1], 3000 * EPS)


def test_all_joints_with_forces_that_turn():
    robot, rng = everything(), np.random.default_rng(2)
    mech, s = robot.mechanism, random_state(robot, 4)
    points = rng.normal(size=(mech.n_bodies, 3))
    name, forces = "inverse_dynamics_derivatives", {"f_ext": s.f_ext, "points": points}
    program = climbing(mech, name, "ground", tuple(forces), load="dead")
    got = interpret(program, [s.q, s.qd, s.qdd, s.f_ext, points])
    expected = getattr(robot.alg, name)(s.q, s.qd, s.qdd, **forces, load="dead")
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, 3e4 * EPS)


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", *FACTORS])
def test_cost_grows_with_pairs_and_code_does_not(name):
    programs = [climbing(zoo.snake(n).mechanism, name) for n in (20, 40, 60, 80)]
    cost = [sum(program.ops) for program in programs]
    assert len({cost[i + 2] - 2 * cost[i + 1] + cost[i] for i in range(2)}) == 1
    assert len({program.written for program in programs}) == 1
    # of the state in flight O(N) is kept, of the result every pair once
    kept = [sum(program.slots) * program.rows for program in programs]
    assert kept[3] < 2.1 * kept[1]
    for program in programs:
        everything_of_it = np.unique(program.pairs.index())
        zero = int(name in FACTORS)
        assert np.array_equal(everything_of_it, np.arange(program.pairs.size + zero))


def test_a_pair_on_one_branch_costs_few_operations():
    """Of a general chain in ground axes: a shift, six products, and one with the axis, three."""
    programs = [climbing(zoo.snake(n).mechanism, "mass_matrix", "ground") for n in (50, 51)]
    more = [b - a for a, b in zip(*(program.ops for program in programs), strict=True)]
    per_pair = [climb_ops(programs[0], op) for op in ("mul", "add", "sub")]
    assert per_pair[0] == 9 and sum(per_pair[1:]) == 8
    assert more[0] > 50 * 9


def climb_ops(program, op):
    """How many operations of a kind a step of a climb has, from hinge to hinge."""
    steps = [step for stage in program.stages for step in stage.inner if step.stores]
    counts = [sum(n.op == op for n in reachable(s.value for s in x.stores)) for x in steps]
    return min(counts)


def test_pairs_know_where_they_are():
    """A root with two rows, a child of one, and a child of another root."""
    pairs = Pairs([-1, 0, -1], [2, 1, 1], [Matrix(0)])
    assert pairs.begin == [0, 4, 7] and pairs.size == 8 and not pairs.everywhere
    zero = 8
    assert pairs.index().reshape(4, 4).tolist() == [
        [0, 1, 5, zero],
        [2, 3, 6, zero],
        [5, 6, 4, zero],
        [zero, zero, zero, 7],
    ]
    upper = Pairs([-1, 0], [1, 1], [Matrix(0, triangular=True)])
    assert not upper.everywhere and upper.index().tolist() == [0, 2, 3, 1] and upper.size == 3
    both = Pairs([-1, 0], [1, 1], [Matrix(0, 1)])
    assert both.everywhere and both.index().tolist() == [0, 2, 3, 1] and both.size == 4


@pytest.mark.parametrize("name", ARRAYS)
def test_long_mechanisms_through_the_front_door(name):
    """Right to tens of eps N, a sample that is not finite spoilt alone.

    Under random forces joints accelerate a thousandfold: ∂q̈ loses as many digits.
    """
    robot = zoo.snake(MOST_UNROLLED + 8)
    near, same = (1e5, 1e4) if name == "forward_dynamics_derivatives" else (50 * robot.nv, robot.nv)
    given = given_of(robot, name, 3)
    got = parts_of(getattr(robot, name)(*given))
    for a, b in zip(got, expected_of(robot, name, [x[1] for x in given]), strict=True):
        assert_close(a[1], b, near * EPS)
    for a, b in zip(parts_of(getattr(robot, name)(*(x[1] for x in given))), got, strict=True):
        assert_close(a, b[1], same * EPS)
    back = np.triu(got[-1]) if name in FACTORS else np.swapaxes(got[-1], 1, 2)
    assert np.array_equal(got[-1], back)
    given[0][0, 9] = np.nan
    for a, b in zip(parts_of(getattr(robot, name)(*given)), got, strict=True):
        assert np.isnan(a[0]).all() and np.array_equal(a[1:], b[1:])
    assert "over bodies" in robot.explain(name) and "ancestors" in robot.explain(name)


def test_bodies_on_different_branches_are_not_climbed_over():
    with pytest.raises(TraceError, match="'mixed' has branches, and loops climb along one only"):
        climbing(mixed(branches=True).mechanism, "mass_matrix_inverse", "body")


def test_cards_have_no_loops_inside_loops():
    program = climbing(zoo.snake(5).mechanism, "mass_matrix", "ground")
    with pytest.raises(TraceError, match="mass_matrix: cards have no loops inside loops; matrices"):
        kernel_module(program, "double", True)

"""Sweeps as loops give what the unrolled and the generic code give, at a cost linear in size."""

import numpy as np
import pytest

import hinge
from hinge import TraceError, algorithms, zoo
from hinge.compiled import MOST_UNROLLED, array_shape, robot_kernel
from hinge.lean import lean
from hinge.looped import trace_loops
from hinge.runtime.kernel import Kernel
from hinge.trace.loop import LoopProgram
from mechanisms import EPS, Generic, assert_close, gripper, random_state

ARRAYS = {
    "inverse_dynamics": ("q", "qd", "qdd", "f_ext"),
    "forward_dynamics": ("q", "qd", "tau", "f_ext"),
    "bias_forces": ("q", "qd"),
    "gravity_forces": ("q",),
}
ROBOTS = {
    "chain": zoo.arm(9),
    "tree": zoo.tree(4, 12),
    "quadruped": zoo.quadruped(),
    "humanoid": zoo.humanoid(),
}


def looped(mech, name):
    """The loop program of an algorithm."""
    arrays = {a: array_shape(mech, a) for a in ARRAYS[name]}
    return trace_loops(getattr(algorithms, name), lean(mech), arrays, name)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("robot_name", ROBOTS)
def test_loops_agree_with_the_generic_code(robot_name, name):
    robot = ROBOTS[robot_name]
    kernel = Kernel(looped(robot.mechanism, name), name, threads=1)
    states = [random_state(robot, seed) for seed in range(9)]
    given = [[getattr(s, {"tau": "qdd"}.get(a, a)) for s in states] for a in ARRAYS[name]]
    got = kernel(*(np.array(a) for a in given))
    for i in range(len(states)):
        expected = getattr(robot.alg, name)(*(a[i] for a in given))
        assert_close(got[i], expected, 3000 * EPS)


def test_large_mechanisms_are_looped_and_small_ones_are_not():
    small, large = (zoo.snake(n).mechanism for n in (MOST_UNROLLED, MOST_UNROLLED + 1))
    arrays = ("q", "qd", "tau")
    kinds = [robot_kernel(m, "forward_dynamics", arrays, ()).program for m in (small, large)]
    assert [isinstance(program, LoopProgram) for program in kinds] == [False, True]


def test_a_long_snake_through_the_front_door():
    robot = zoo.snake(120)
    s, generic = random_state(robot, 0), Generic(robot)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(tau, generic.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), 120 * 10 * EPS)
    qdd = robot.forward_dynamics(s.q, s.qd, tau, s.f_ext)
    again = generic.inverse_dynamics(s.q, s.qd, qdd, s.f_ext)
    assert_close(again, tau, 120 * 50 * EPS)
    spoiled = np.tile(s.q, (3, 1))
    spoiled[1, -1] = np.nan
    batch = robot.gravity_forces(spoiled)
    assert np.isnan(batch[1]).all() and np.isfinite(batch[[0, 2]]).all()


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_cost_is_linear_and_code_size_constant(name):
    programs = [looped(zoo.snake(n).mechanism, name) for n in (50, 100, 200)]
    cost = [sum(program.ops) for program in programs]
    assert cost[2] - cost[1] == 2 * (cost[1] - cost[0])
    sizes = {sum(len(s.loads) for stage in p.stages for s in stage.steps) for p in programs}
    assert len(sizes) == 1
    assert programs[0].digest == looped(zoo.snake(50).mechanism, name).digest
    assert programs[0].digest != programs[1].digest


def test_what_cannot_be_looped_says_so():
    with pytest.raises(TraceError, match="'gripper' has joints that mimic others"):
        looped(gripper().mechanism, "inverse_dynamics")
    with pytest.raises(TraceError, match="total_mass gives something other than joint forces"):
        trace_loops(lambda mech, q: mech.nv, lean(zoo.arm(3).mechanism), {"q": (3,)}, "total_mass")


def test_loops_have_no_c_source():
    kernel = zoo.snake(MOST_UNROLLED + 1).kernel("gravity_forces", "q")
    with pytest.raises(hinge.ArgumentError, match="it loops over many bodies"):
        kernel.source("c")
    assert "define void @run" in kernel.source("llvm")


def test_followers_in_a_large_mechanism_are_unrolled():
    snake = zoo.snake(MOST_UNROLLED + 1).mechanism
    both = hinge.edit.attach(snake, gripper().mechanism, "tail", prefix="hand/")
    program = robot_kernel(both, "gravity_forces", ("q",), ()).program
    assert not isinstance(program, LoopProgram)


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse"])
def test_matrices_of_long_mechanisms_come_by_columns(name):
    robot = zoo.snake(66)
    q = np.array([random_state(robot, seed).q for seed in range(3)])
    got = getattr(robot, name)(q)
    out = np.empty_like(got)
    assert getattr(robot, name)(q, out=out) is out and np.array_equal(out, got)
    assert np.array_equal(got, np.swapaxes(got, 1, 2))
    expected = getattr(robot.alg, name)(q[1])
    assert_close(got[1], expected, 1e5 * EPS)
    assert_close(getattr(robot, name)(q[1]), got[1], 1e3 * EPS)
    q[0, 9] = np.nan
    spoiled = getattr(robot, name)(q)
    assert np.isnan(spoiled[0]).all() and np.array_equal(spoiled[1:], got[1:])
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake66': q\[9\] is nan"):
        getattr(robot, name)(q[0])
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake66': out has shape \(50,\)"):
        getattr(robot, name)(q[1], out=np.zeros(50))


def test_a_long_mechanism_without_mass_has_no_inverse():
    b, parent = hinge.MechanismBuilder("ghost"), "world"
    for i in range(65):
        b.add(f"link{i}", parent, hinge.Revolute((0, 0, 1) if i % 2 else (0, 1, 0)))
        parent = f"link{i}"
    robot = hinge.Robot(b.build())
    q = np.zeros(robot.nq)
    assert_close(robot.mass_matrix(q), np.zeros((robot.nv, robot.nv)), 0.0)
    with pytest.raises(hinge.SingularError, match="mass_matrix_inverse of 'ghost': the result is"):
        robot.mass_matrix_inverse(q)

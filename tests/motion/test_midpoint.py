"""The implicit midpoint rules: energy, order, symmetry, and both ways of running them."""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, LoopConstraint, simulate, zoo
from hinge.motion import integrators
from hinge.motion.integrators import METHODS, Integrator
from mechanisms import EPS, ROBOTS, assert_close, gripper, random_state

# what the iterations of a step leave of the rates to solve
UNSOLVED = 1e-12


def weightless(robot):
    return hinge.Robot(replace(robot.mechanism, gravity=(0.0, 0.0, 0.0)))


def moving(robot, seed=0):
    s = random_state(robot, seed)
    return s.q, s.qd


def drift(values):
    return np.abs(values / values[0] - 1).max()


@pytest.mark.parametrize("robot", [zoo.arm(3), zoo.tree(2, 4), gripper()], ids=lambda r: r.name)
def test_kinetic_energy_is_conserved_to_rounding(robot):
    """Of quaternion joints, branches, sliders, armature and mimics, at a coarse step."""
    robot = weightless(robot)
    run = simulate(robot, *moving(robot), duration=1.0, dt=0.02, method="implicit_midpoint")
    assert np.abs(run.q[-1] - run.q[0]).max() > 0.1
    assert drift(run.kinetic_energy) < 500 * EPS
    joint = simulate(robot, *moving(robot), duration=1.0, dt=0.02, method="joint_midpoint")
    assert drift(joint.kinetic_energy) > 1e-7


@pytest.mark.parametrize("stages", [2, 3])
def test_kinetic_energy_is_conserved_by_few_iterations_too(stages, monkeypatch):
    few = ((1.0, 0.0), *((0.0, 0.0),) * (stages - 2), (0.0, 1.0))
    short = Integrator(METHODS["implicit_midpoint"].advance, memory=2, stages=few)
    monkeypatch.setitem(integrators.METHODS, "implicit_midpoint", short)
    robot = weightless(zoo.pendulum(2))
    run = simulate(
        robot, [0.3, 1.0], [2.0, -3.0], dt=0.02, method="implicit_midpoint", compiled=False
    )
    assert drift(run.kinetic_energy) < 500 * EPS


@pytest.mark.parametrize("method", ["implicit_midpoint", "joint_midpoint"])
def test_second_order(method):
    """With gravity, damping, joint forces and a ball joint: half the step, a quarter the error."""
    b = hinge.MechanismBuilder("ball and rod")
    rod = hinge.Inertia(1.0, (0.1, 0, -0.3), np.diag([0.2, 0.15, 0.1]))
    b.add("ball", "world", hinge.Spherical(damping=0.1), inertia=rod)
    down = hinge.Transform(translation=(0, 0, -0.5))
    b.add("rod", "ball", hinge.Revolute((0, 1, 0), armature=0.02), placement=down, inertia=rod)
    robot = hinge.Robot(b.build())
    q, qd = moving(robot)
    tau = [0.3, 0.1, -0.2, 0.5]
    exact = simulate(robot, q, qd, tau, duration=0.8, dt=1e-3).q[-1]
    errors = [
        np.abs(simulate(robot, q, qd, tau, duration=0.8, dt=h, method=method).q[-1] - exact).max()
        for h in (0.04, 0.02, 0.01)
    ]
    ratios = np.divide(errors[:-1], errors[1:])
    assert ((ratios > 3.6) & (ratios < 4.4)).all(), ratios


@pytest.mark.parametrize("method", ["implicit_midpoint", "joint_midpoint"])
def test_motion_runs_backwards_to_where_it_came_from(method):
    """The rule is symmetric where its equations are solved: the iterations are enough."""
    robot = ROBOTS["arm"]
    q, qd = moving(robot)
    ways = {"duration": 0.3, "dt": 0.01, "method": method, "limits": False}
    there = simulate(robot, q, qd, **ways)
    back = simulate(robot, there.q[-1], -there.qd[-1], **ways)
    assert_close(back.q[-1], q, 10 * UNSOLVED)
    assert_close(back.qd[-1], -qd, 50 * UNSOLVED)


def test_called_step_by_step_it_is_the_same():
    robot = zoo.arm(3)
    q, qd = moving(robot)
    both = [
        simulate(robot, q, qd, duration=0.1, dt=0.01, method="implicit_midpoint", compiled=c)
        for c in (True, False)
    ]
    assert_close(both[0].qd, both[1].qd, 50 * EPS)


def test_a_robot_at_rest_stays_finite():
    robot, dt = zoo.pendulum(1), 0.01
    run = simulate(robot, [0.0], dt=dt, duration=0.1, method="implicit_midpoint")
    assert np.abs(run.q).max() < 10 * EPS
    run = simulate(robot, [1.0], dt=dt, duration=0.1, method="implicit_midpoint")
    assert run.q[-1, 0] < 1.0 and drift(run.energy + 100) < 1e-3 * dt**2


def test_loops_are_refused():
    robot = zoo.pendulum(2)
    loop = LoopConstraint("tip", "world")
    with pytest.raises(ArgumentError, match="knows no loop constraints; take 'joint_midpoint'"):
        simulate(robot, [0, 0], method="implicit_midpoint", constraints=[loop])

"""Closed loops in time: every method keeps them, and starts from them if asked."""

import warnings

import numpy as np
import pytest

import hinge
from algorithms.test_constraints import PLANAR, REDUNDANT, four_bar
from hinge import LoopConstraint, simulate
from mechanisms import assert_close

STATE = np.array([0.4, -0.4, 0.4]), np.array([0.7, -0.7, 0.7])


def exact():
    """The parallelogram as the pendulum that it is, in steps of a tenth."""
    return simulate(four_bar(), *STATE, duration=1.0, dt=1e-4, constraints=[PLANAR]).q[-1]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("method", "bound"),
    [("rk4", 1e-7), ("joint_midpoint", 1e-4), ("semi_implicit_euler", 2e-2), ("adaptive", 1e-6)],
)
def test_methods_move_the_closed_loop(method, bound, compiled):
    robot = four_bar()
    ways = {"duration": 1.0, "dt": 5e-3, "method": method, "compiled": compiled}
    motion = simulate(robot, *STATE, constraints=[REDUNDANT], **ways)
    assert_close(motion.q[-1], exact(), bound)


def test_adaptive_steps_start_with_the_forces_of_constraints_and_f_ext():
    """The first stage is the motion's own: hardly a step has to be taken back for it."""
    robot, push = four_bar(), np.zeros((3, 6))
    push[0, 4] = 3.0
    held = {"constraints": [PLANAR], "f_ext": push, "duration": 0.2}
    motion = simulate(robot, *STATE, method="adaptive", dt=0.05, rtol=1e-8, **held)
    fine = simulate(robot, *STATE, dt=1e-3, **held)
    assert_close(motion.q[-1], fine.q[-1], 1e-8)
    assert motion.rejected < 4
    rough = simulate(robot, *STATE, method="adaptive", dt=0.05, rtol=1e-5, **held)
    assert_close(rough.q[-1], fine.q[-1], 5e-7)


def test_a_motion_starts_from_the_assembled_state():
    robot, open_state = four_bar(), ([0.4, 0.1, 0.0], [1.0, 0.0, 0.0])
    found = robot.assemble(open_state[0], [PLANAR], open_state[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = simulate(robot, *open_state, duration=2.0, constraints=[PLANAR], assemble=True)
    assert motion.q[0].tolist() == found.q.tolist() and motion.qd[0].tolist() == found.qd.tolist()
    assert np.abs([robot.alg.constraint_error(q, [PLANAR]) for q in motion.q[::100]]).max() < 1e-9
    assert np.ptp(motion.energy) < 1e-8 * np.abs(motion.energy).max()


def test_what_cannot_be_assembled_raises_or_is_nan():
    robot = four_bar()
    near, far = np.array([0.4, 0.1, 0.0]), np.array([np.nan, 0.0, 0.0])
    motion = simulate(
        robot, np.stack([near, far]), duration=0.1, constraints=[PLANAR], assemble=True
    )
    assert np.isfinite(motion.q[:, 0]).all() and np.isnan(motion.q[:, 1]).all()
    apart = LoopConstraint("right", "world", (3,))
    with pytest.raises(hinge.SingularError, match="cannot be closed.*'right' is off 'world' by 1"):
        simulate(robot, near, constraints=[apart], assemble=True)


def test_open_loops_warn_with_their_distance():
    robot, still, q = four_bar(), np.zeros(3), np.array([0.4, 0.1, 0.0])
    with pytest.warns(hinge.OpenLoopWarning, match=r"simulate 'four_bar': a loop is open: 'bar"):
        simulate(robot, q, duration=0.01, constraints=[PLANAR])
    with pytest.warns(hinge.OpenLoopWarning, match=r"off 'right_tip' by 0\.\d+ m along vx") as said:
        for _ in range(4):
            robot.constrained_forward_dynamics(q, still, still, [PLANAR])
    assert len(said) == 1 and said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose = LoopConstraint("bar_end", "right_tip", (3, 5), stiffness=0.0)
        robot.constrained_forward_dynamics(q, still, still, [loose])
        simulate(robot, STATE[0], duration=0.01, constraints=[PLANAR])


def test_a_robot_may_have_its_constraints():
    robot = hinge.Robot(four_bar().mechanism, constraints=[PLANAR])
    assert robot.constraints == (PLANAR,) and four_bar().constraints == ()
    assert robot.assemble([0.4, 0.1, 0.0]).closed
    motion = simulate(robot, *STATE, duration=0.1)
    assert_close(motion.q[-1, 1], -motion.q[-1, 0], 1e-9)
    free = simulate(robot, *STATE, duration=0.1, constraints=())
    assert abs(free.q[-1, 1] + free.q[-1, 0]) > 1e-3
    with pytest.raises(hinge.ArgumentError, match="has no frame 'bar_ends'"):
        hinge.Robot(robot.mechanism, constraints=[LoopConstraint("bar_ends", "right_tip")])

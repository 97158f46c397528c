"""Linkages through dead points, where loops lose rank and another branch begins.

A row of N parallelograms (N-four-bar A02 of the IFToMM library of computational benchmark problems)
moves as one pendulum: all cranks have one angle θ, all couplers stay level, and

    ½ J θ̇² = E + G sin θ,   J θ̈ = G cos θ,   J = Σ m r²/3 + Σ M r²,   G = g (Σ m r/2 + Σ M r)

with z up, θ positive where cranks point down.  The branch is a plane in joint angles, so that a
method moves the linkage as it moves the pendulum, step by step.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hinge
from hinge import Inertia, LoopConstraint, MechanismBuilder
from linkages import AXIS, PLANE, REDUNDANT, along, angles, pendulum, rod, row_of_bars

GRAVITY = 9.81


def exact(n, duration):
    """θ of the benchmark, by integration of the one equation."""
    J, G = (n + 1) / 3 + n, GRAVITY * ((n + 1) / 2 + n)
    pair = solve_ivp(
        lambda t, y: [y[1], G / J * np.cos(y[0])],
        (0, duration),
        [-np.pi / 2, 1.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    )
    return pair.y[0, -1]


def off(n, duration, method, dt, axes=PLANE, **ways):
    """How far the last angles are from the exact ones."""
    robot = row_of_bars(n, axes)
    start = angles(robot, -np.pi / 2), angles(robot, 1.0)
    every = None if method == "adaptive" else max(1, round(duration / dt / 100))
    ways |= {} if every is None else {"every": every}
    motion = hinge.simulate(robot, *start, duration=duration, dt=dt, method=method, **ways)
    return np.abs(motion.q[-1] - angles(robot, exact(n, duration))).max()


# what the methods themselves leave of a pendulum's angle in 10 s
BOUNDS = {
    ("rk4", 1e-2): 2e-6,
    ("rk4", 1e-3): 1e-9,
    ("rk4", 1e-4): 1e-9,
    ("rk4", 2e-5): 1e-8,
    ("joint_midpoint", 1e-2): 2e-3,
    ("joint_midpoint", 1e-3): 2e-5,
    ("joint_midpoint", 1e-4): 2e-7,
    ("joint_midpoint", 2e-5): 1e-8,
}


@pytest.mark.parametrize("axes", [PLANE, REDUNDANT], ids=["plane", "redundant"])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("method", "dt"), [x for x in BOUNDS if x[1] > 5e-5])
def test_rows_of_parallelograms_turn_as_one_pendulum(method, dt, n, axes):
    assert off(n, 10.0, method, dt, axes) < BOUNDS[method, dt]


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("method", ["rk4", "joint_midpoint"])
def test_short_steps_do_no_worse(method, n):
    assert off(n, 10.0, method, 2e-5) < BOUNDS[method, 2e-5]


@pytest.mark.parametrize("n", [1, 2])
def test_adaptive_steps_pass_within_their_tolerance(n):
    assert off(n, 10.0, "adaptive", 0.1, rtol=1e-10) < 1e-6


# more than forty bodies with loops: steps from Python
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::hinge.TraceWarning")
@pytest.mark.parametrize(("method", "dt"), [("rk4", 1e-3), ("joint_midpoint", 1e-3)])
def test_forty_parallelograms(method, dt):
    assert off(40, 2.0, method, dt) < BOUNDS[method, dt]


@pytest.mark.parametrize("turned", [0.0, 0.02, 0.8])
@pytest.mark.parametrize("method", ["rk4", "joint_midpoint", "semi_implicit_euler"])
def test_unequal_loads_in_any_axes(method, turned):
    """Rods of several masses: the joints have to hold the branch with forces that pass ∞."""
    cranks, couplers = [0.3, 2.0, 1.0], [3.0, 0.5]
    robot, alone = row_of_bars(2, PLANE, cranks, couplers, turned), pendulum(cranks, couplers)
    ways = {"duration": 3.0, "dt": 7e-4, "method": method, "every": 100}
    motion = hinge.simulate(robot, angles(robot, 0.4), angles(robot, 2.0), **ways)
    same = hinge.simulate(alone, [0.4], [2.0], **ways)
    assert np.abs(motion.q[-1] - angles(robot, same.q[-1, 0])).max() < 1e-9


def test_batches_pass_each_sample_for_itself():
    robot = row_of_bars(1)
    speeds = np.array([1.0, -2.0, 0.3])
    q = np.stack([angles(robot, -1.0)] * 3)
    qd = np.stack([angles(robot, w) for w in speeds])
    together = hinge.simulate(robot, q, qd, duration=2.0, dt=1e-3)
    for i in range(3):
        alone = hinge.simulate(robot, q[i], qd[i], duration=2.0, dt=1e-3)
        assert np.abs(together.q[-1, i] - alone.q[-1]).max() < 1e-9
    assert np.ptp(together.energy, axis=0).max() < 1e-8


def deltoid():
    """Two pairs of equal bars: the follower turns half as often as the crank, and flat twice."""
    b = MechanismBuilder("deltoid")
    b.add("crank", "world", AXIS, "crank", inertia=rod(1.0, 1.0))
    b.add("coupler", "crank", AXIS, "coupler", placement=along(1.0), inertia=rod(1.5, 1.0))
    b.add("follower", "world", AXIS, "follower", placement=along(2.0), inertia=rod(2.0, 2.0))
    b.add_frame("end", "coupler", along(1.0))
    b.add_frame("tip", "follower", along(2.0))
    return hinge.Robot(b.build(), constraints=[LoopConstraint("end", "tip", PLANE)])


def slider_crank():
    """A rod as long as its crank, which may stay upright with the piston at the bearing."""
    b = MechanismBuilder("slider crank")
    b.add("crank", "world", AXIS, "crank", inertia=rod(1.0, 1.0))
    b.add("rod", "crank", AXIS, "rod", placement=along(1.0), inertia=rod(1.0, 1.0))
    b.add("piston", "world", hinge.Prismatic((1, 0, 0)), "piston", inertia=Inertia(1.0))
    b.add_frame("pin", "rod", along(1.0))
    return hinge.Robot(b.build(), constraints=[LoopConstraint("pin", "piston", PLANE)])


@pytest.mark.parametrize(
    ("robot", "q", "qd"),
    [(deltoid(), [-1.2, 0.3, -2.1], [9.0, 0, 0]), (slider_crank(), [-1.0, 2.0, 1.0], [3.0, 0, 0])],
    ids=["deltoid", "slider crank"],
)
@pytest.mark.parametrize(("method", "order"), [("rk4", 3), ("joint_midpoint", 2)])
def test_branches_that_bend(robot, q, qd, method, order):
    """Where joint angles have no plane in common: the energy stays, by the order of the method."""
    start = robot.assemble(q, qd=qd, hold=["crank"])
    drift = []
    for dt in (1e-3, 2.5e-4):
        motion = hinge.simulate(robot, start.q, start.qd, duration=2.0, dt=dt, method=method)
        drift.append(np.ptp(motion.energy) / motion.kinetic_energy.max())
    assert abs(motion.q[-1, 0] - q[0]) > 2 * np.pi
    assert drift[0] < (1e-5 if order == 3 else 5e-3)
    assert drift[1] < 2.0 ** (1 - 2 * order) * drift[0] * 4


def test_what_cannot_be_right_is_said():
    robot = deltoid()
    start = robot.assemble([-1.2, 0.3, -2.1], qd=[9.0, 0, 0], hold=["crank"])
    with pytest.warns(hinge.OpenLoopWarning, match="energy that moves|come open"):
        hinge.simulate(robot, start.q, start.qd, duration=2.0, dt=1e-2, method="joint_midpoint")


def test_a_motion_that_ends_names_the_configuration():
    robot = row_of_bars(1)
    push = np.array([1e200, 0.0, 0.0])
    with pytest.raises(hinge.SingularError, match=r"'end0' on 'tip1' have rank . of 2 .* at q = "):
        hinge.simulate(robot, angles(robot, -1.0), tau=lambda t, q, qd: push * t, duration=1.0)

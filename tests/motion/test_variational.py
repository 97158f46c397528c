"""The variational integrator: order 2 on every joint, momenta kept, energy bounded, symmetric."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import hinge
from hinge import ArgumentError, LoopConstraint, ModelError, simulate, zoo
from hinge.algebra.rotation import from_rpy, quaternion_matrix
from hinge.motion.integrators import METHODS
from mechanisms import (
    BODY,
    EPS,
    JOINTS,
    along,
    assert_close,
    complex_step,
    everything,
    gripper,
    random_state,
)


def step(robot, *state, **settings):
    return simulate(robot, *state, method="variational", limits=False, **settings)


def top(joint, gravity=0.0, inertia=(1.0, 2.0, 3.0), com=(0.0, 0.0, 0.0), mass=1.0):
    b = hinge.MechanismBuilder("top", gravity=(0, 0, -gravity))
    b.add("top", "world", joint, inertia=hinge.Inertia(mass, com, np.diag(inertia)))
    return hinge.Robot(b.build())


def free_tree():
    """A floating base with a branch of every joint that is not free, on springs, no gravity."""
    rng = np.random.default_rng(3)
    b = hinge.MechanismBuilder("free tree", gravity=(0, 0, 0))
    b.add("base", "world", hinge.Free(), inertia=BODY)
    parent = "base"
    for i, (kind, joint) in enumerate((k, j) for k, j in JOINTS.items() if k != "free"):
        place = hinge.Transform(from_rpy(*rng.normal(size=3)), 0.3 * rng.normal(size=3))
        b.add(kind, parent, replace(joint, stiffness=20.0), None, place, BODY)
        parent = kind if i % 3 else parent
    return hinge.Robot(b.build())


def slow(robot, speed=0.3):
    state = random_state(robot, 0)
    return robot.neutral(), speed * state.qd


# order


@pytest.mark.parametrize("kind", JOINTS)
def test_second_order_on_every_joint(kind):
    """With gravity, armature, springs, damping, joint and body forces: half the step, a quarter."""
    b = hinge.MechanismBuilder(kind)
    loads = dict(armature=0.1, damping=0.2, stiffness=3.0)
    turn = hinge.Transform(from_rpy(0.3, -0.4, 1.0), (0.1, 0.3, 0.2))
    b.add("first", "world", replace(JOINTS[kind], **loads), placement=turn, inertia=BODY)
    b.add("second", "first", hinge.Revolute((1, 0, 1)), placement=turn, inertia=BODY)
    b.add("third", "second", JOINTS[kind], placement=turn, inertia=BODY, offset=turn)
    second_order(hinge.Robot(b.build()))


@pytest.mark.parametrize("robot", [gripper(), zoo.arm(4)], ids=lambda r: r.name)
def test_second_order_of_robots(robot):
    second_order(robot)


@pytest.mark.long
def test_second_order_of_everything():
    second_order(everything())


def second_order(robot):
    s = random_state(robot, 1)
    forces = dict(tau=0.3 * s.qdd, f_ext=s.f_ext, duration=0.24)
    exact = simulate(robot, s.q, s.qd, dt=1e-3, limits=False, **forces)
    ends = [step(robot, s.q, s.qd, dt=h, **forces) for h in (0.01, 0.005)]
    for error in (
        [np.abs(robot.difference(exact.q[-1], run.q[-1])).max() for run in ends],
        [np.abs(exact.qd[-1] - run.qd[-1]).max() for run in ends],
    ):
        assert 3.7 < error[0] / error[1] < 4.3, error


def test_forces_that_depend_on_time():
    robot = hinge.Robot(replace(zoo.pendulum(1).mechanism, gravity=(0.0, 0.0, 0.0)))
    law = lambda t, q, qd: np.array([np.sin(3 * t)])  # noqa: E731
    M = robot.mass_matrix([0.0])[0, 0]
    h = 0.01
    run = step(robot, [0.0], [0.0], law, duration=1.0, dt=h)
    assert np.abs(run.qd[:, 0] - (1 - np.cos(3 * run.t)) / (3 * M)).max() < 2 * h**2 / M


# exact solutions


def euler_top(t, I, amplitude):
    """ω of a free body with I1 < I2 < I3 and L² > 2 E I2, by Jacobi's functions (Landau §37)."""
    I1, I2, I3 = I
    energy = 0.5 * (I1 * amplitude[0] ** 2 + I3 * amplitude[1] ** 2)
    L2 = (I1 * amplitude[0]) ** 2 + (I3 * amplitude[1]) ** 2
    rate = np.sqrt((I3 - I2) * (L2 - 2 * energy * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (2 * energy * I3 - L2) / ((I3 - I2) * (L2 - 2 * energy * I1))
    sn, cn, dn, _ = ellipj(rate * t, m)
    second = np.sqrt((2 * energy * I3 - L2) / (I2 * (I3 - I2)))
    return np.stack([amplitude[0] * cn, second * sn, amplitude[1] * dn], axis=-1)


@pytest.mark.parametrize(("method", "order"), [("variational", 2), ("rk4", 4)])
def test_free_top_is_that_of_jacobi(method, order):
    I, w = (1.0, 2.0, 3.0), np.array([1.0, 0.0, 2.0])
    robot = top(hinge.Spherical(), inertia=I)
    errors = []
    for h in (0.02, 0.01):
        run = simulate(robot, robot.neutral(), w, duration=10.0, dt=h, method=method)
        errors.append(np.abs(run.qd - euler_top(run.t, I, w[[0, 2]])).max())
    assert errors[1] < 3e-3 and abs(np.log2(errors[0] / errors[1]) - order) < 0.1


def test_lagrange_top_nutates_as_it_should():
    """cos θ goes from its start to a root of Lagrange's cubic and back, in 2K(m)/rate."""
    I, I3, mgl, spin, tilt = 0.05, 0.01, 1.0 * 9.81 * 0.2, 80.0, 0.5
    robot = top(hinge.Spherical(), 9.81, (I - 0.04, I - 0.04, I3), com=(0, 0, 0.2))
    # released with spin about its axis only: p_ψ = I3 ω3, p_φ = p_ψ cos θ₀
    u0, b, beta = np.cos(tilt), I3 * spin / I, 2 * mgl / I
    # u̇² = (u0 − u) (β (1 − u²) − b² (u0 − u)), of whose roots u0 is the largest below 1
    low, high = np.sort(np.roots([-beta, b**2, beta - b**2 * u0]).real)
    period = 2 * ellipk((u0 - low) / (high - low)) / np.sqrt(0.25 * beta * (high - low))
    q = [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]
    run = step(robot, q, [0, 0, spin], duration=period, dt=period / 4000)
    height = quaternion_matrix(run.q.T)[2, 2]
    assert abs(height[-1] - u0) < 1e-8
    assert abs(height.min() - low) < 1e-5 and np.argmin(height) == 2000


# what is kept


def kept(run, robot):
    """The largest changes of energy and momentum, of their sizes."""
    energy, momentum = run.energy, robot.momentum(run.q, run.qd, about="world")
    scale = np.abs(momentum[0]).max()
    return np.ptp(energy), np.abs(momentum - momentum[0]).max() / scale


def test_momentum_of_a_free_tree_is_kept_to_rounding():
    robot, steps = free_tree(), 5000
    run = step(robot, *slow(robot), duration=steps * 1e-2, dt=1e-2, every=10)
    assert np.abs(run.q[-1] - run.q[0]).max() > 0.1
    energy, momentum = kept(run, robot)
    assert momentum < 100 * np.sqrt(steps) * EPS
    assert energy < 1e-3 * run.kinetic_energy.max()
    other = simulate(
        robot, *slow(robot), duration=steps * 1e-2, dt=1e-2, every=10, method="joint_midpoint"
    )
    assert kept(other, robot)[1] > 1e-8


@pytest.mark.parametrize("joint", [hinge.Free(), hinge.Spherical(), hinge.Planar()], ids=str)
def test_momentum_is_kept_where_the_step_is_not_solved(joint, monkeypatch):
    """By one iteration, at a coarse step."""
    short = replace(METHODS["variational"], stages=((1.0, 0.0), (0.0, 1.0)))
    monkeypatch.setitem(METHODS, "variational", short)
    b = hinge.MechanismBuilder("pair", gravity=(0, 0, 0))
    b.add("base", "world", joint, inertia=BODY)
    b.add("arm", "base", hinge.Revolute((0, 0, 1)), None, hinge.Transform(), BODY)
    robot = hinge.Robot(b.build())
    run = step(robot, robot.neutral(), np.ones(robot.nv), duration=2.0, dt=0.1, compiled=False)
    momentum = robot.momentum(run.q, run.qd, about="world")
    free = {"Free": range(6), "Spherical": range(3), "Planar": (2, 3, 4)}[str(joint)]
    change = np.abs(momentum - momentum[0]).max(axis=0)[list(free)]
    assert change.max() < 100 * EPS * np.abs(momentum[0]).max()
    assert np.ptp(run.energy) > 1e-4


CASES = {
    "free top": (lambda: top(hinge.Free()), [3.0, 0.1, -2.0, 0, 0, 0], 1e-5),
    "heavy top": (lambda: top(hinge.Spherical(), 9.81, com=(0, 0, 0.3)), [0.1, 0.2, 9.0], 3e-5),
    "double pendulum": (lambda: zoo.pendulum(2), [3.0, -1.0], 3e-3),
    "arm": (lambda: zoo.arm(7), [0.0] * 7, 0.1),
    "space arm": (lambda: zoo.space_arm(3), [0.2] * 9, 1e-4),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("steps", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_energy_stays_bounded(case, steps):
    """As far from the start in the last quarter as in the first."""
    make, qd, bound = CASES[case]
    robot = make()
    q = robot.neutral() + (0.5 if case == "arm" else 0.0)
    run = step(robot, q, qd, duration=steps * 1e-3, dt=1e-3, every=steps // 1000)
    assert np.abs(run.energy - run.energy[0]).max() < bound
    drift = run.energy[-250:].mean() - run.energy[:250].mean()
    assert abs(drift) < 0.3 * bound
    if case == "free top":
        assert kept(run, robot)[1] < 5 * np.sqrt(steps) * EPS


def test_it_runs_backwards_to_where_it_came_from():
    for robot in (zoo.arm(3), free_tree()):
        q, qd = slow(robot)
        there = step(robot, q, qd, duration=0.3, dt=0.01)
        back = step(robot, there.q[-1], -there.qd[-1], duration=0.3, dt=0.01)
        assert_close(robot.difference(q, back.q[-1]), 0 * qd, 1e-12)
        assert_close(back.qd[-1], -qd, 1e-11)


def test_what_nothing_pushes_goes_straight():
    """A tumbling body whose origin is its centre of mass: to rounding."""
    robot = top(hinge.Free())
    run = step(robot, robot.neutral(), [3.0, 0.1, -2.0, 1.0, 2.0, 3.0], duration=10.0, dt=0.01)
    assert_close(run.q[:, :3], run.t[:, None] * np.array([1.0, 2.0, 3.0]), 200 * EPS)


# ways to run it


def test_called_step_by_step_it_is_the_same():
    for robot in (zoo.tree(0, 3), gripper()):
        s = random_state(robot, 0)
        both = [
            step(robot, s.q, s.qd, duration=0.03, dt=0.01, f_ext=s.f_ext, compiled=c)
            for c in (True, False)
        ]
        assert_close(both[0].qd, both[1].qd, 1000 * EPS)


def test_batches_numbers_and_single_precision():
    robot = zoo.space_arm(2)
    q, qd = (np.broadcast_to(x, (9, len(x))) for x in slow(robot))
    gravity = np.linspace(-9, 9, 27).reshape(9, 3)
    many = step(robot, q, qd, duration=0.1, dt=0.01, gravity=gravity)
    other = hinge.Robot(replace(robot.mechanism, gravity=tuple(gravity[4])))
    one = step(other, q[4], qd[4], duration=0.1, dt=0.01)
    assert_close(many.q[:, 4], one.q, 100 * EPS)
    single = hinge.Robot(robot.mechanism, dtype=np.float32)
    run = step(single, q, qd, duration=0.1, dt=0.01, gravity=gravity)
    assert run.q.dtype == np.float32
    assert_close(run.q, many.q, 100 * np.finfo(np.float32).eps)


@pytest.mark.long
def test_large_mechanisms():
    robot = zoo.snake(41)
    s = random_state(robot, 0)
    run = step(robot, s.q, s.qd, duration=4e-4, dt=1e-4)
    exact = simulate(robot, s.q, s.qd, duration=4e-4, dt=1e-4)
    assert_close(run.q, exact.q, 1e-6)
    assert np.abs(run.qd - s.qd).max() > 1e-3


# what it is made of


@pytest.mark.parametrize(
    "robot",
    [pytest.param(everything(), marks=pytest.mark.long), gripper(), zoo.tree(1, 5), zoo.snake(45)],
    ids=lambda r: r.name,
)
def test_derivatives_of_the_lagrangian(robot):
    s = random_state(robot, 1)
    found = robot.lagrangian_derivatives(s.q, s.qd, s.f_ext)
    assert_close(found.dqd, robot.generalized_momentum(s.q, s.qd), 100 * EPS)
    plain, alg = robot.alg.lagrangian_derivatives(s.q, s.qd), robot.alg
    pushed = robot.bias_forces(s.q, s.qd) - robot.bias_forces(s.q, s.qd, s.f_ext)
    assert_close(found.dq, plain.dq + pushed, 1000 * EPS)
    direction = np.random.default_rng(0).normal(size=robot.nv)
    path = along(robot, s.q, direction)
    slope = complex_step(
        lambda x: alg.kinetic_energy(path(x), s.qd) - alg.potential_energy(path(x))
    )
    assert_close(plain.dq @ direction, slope, 1000 * EPS)


@pytest.mark.parametrize("kind", JOINTS)
def test_departing_is_the_derivative_of_the_middle(kind):
    """p₀·η₀ + p₁·η₁ = −δF for F(q, u), both ends moved along η: the chain rule, numerically."""
    joint = JOINTS[kind]
    rng = np.random.default_rng(0)
    q, size = joint.random(rng), joint.nv
    u, mu, f, m, du = (0.4 * rng.normal(size=size) for _ in range(5))
    ends = []
    for side in (-1, 1):
        here = joint.from_middle(q, side * u)
        x = 1e-6
        plus, minus = (
            joint.from_middle(joint.integrate(q, s * m), side * (u + s * du)) for s in (x, -x)
        )
        ends.append((joint.difference(here, plus) - joint.difference(here, minus)) / (2 * x))
        assert_close(joint.to_middle(here, -side * u), q, 10 * EPS)
    start, end = joint.departing(u, mu, f), joint.departing(-u, mu, -f)
    assert abs(end @ ends[1] - start @ ends[0] - 2 * (f @ m + mu @ du)) < 1e-8


# refusals


def test_loops_and_unknown_joints_are_refused():
    robot = zoo.pendulum(2)
    with pytest.raises(ArgumentError, match="'variational' knows no loop constraints; take 'joint"):
        step(robot, [0, 0], constraints=[LoopConstraint("tip", "world")])

    class Odd(hinge.Spherical):
        to_middle = hinge.model.joints.Joint.to_middle

    with pytest.raises(ModelError, match="Odd: its velocities do not commute; give it `to_middle`"):
        step(top(Odd()), [1.0, 0, 0, 0], compiled=False)

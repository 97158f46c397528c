"""The simulator: orders of accuracy on manifolds, conservation, losses, the trajectory."""

from dataclasses import replace
from importlib import import_module
from typing import get_args

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, SingularError, TraceError, TraceWarning, simulate, zoo
from hinge.motion.integrators import METHODS
from mechanisms import EPS, assert_close, gripper, random_state


def end_state(robot, method, dt, duration=0.2):
    s = random_state(robot, 1)
    ways = {"duration": duration, "dt": dt, "method": method, "limits": False}
    motion = simulate(robot, s.q, s.qd, tau=0.1 * s.qdd, **ways)
    return robot.poses(motion.q[-1]), motion.qd[-1]


@pytest.mark.parametrize("name", ["space_arm", "tree", "humanoid"])
@pytest.mark.parametrize(
    ("method", "order", "dt"), [("rk4", 4, 0.01), ("semi_implicit_euler", 1, 4e-3)]
)
def test_order_of_accuracy_on_the_joint_manifolds(name, method, order, dt):
    robot = zoo.tree(1, 6) if name == "tree" else getattr(zoo, name)()
    poses, rates = zip(*(end_state(robot, method, dt / k) for k in (1, 2, 4)), strict=True)
    for values in (poses, rates):
        ratio = np.abs(values[0] - values[1]).max() / np.abs(values[1] - values[2]).max()
        assert 0.75 * 2**order < ratio < 1.35 * 2**order


def test_energy_and_momentum_of_a_free_flyer():
    robot = zoo.space_arm(3)
    s = random_state(robot, 0)
    dt = 0.01
    motion = simulate(robot, s.q, s.qd, duration=1.0, dt=dt)
    assert np.ptp(motion.energy) < 0.2 * dt**4 * motion.energy[0]
    momentum = robot.momentum(motion.q, motion.qd)
    assert_close(momentum, np.broadcast_to(momentum[0], momentum.shape), dt**4)


def test_semi_implicit_euler_does_not_drift():
    """The energy error of a swinging pendulum stays bounded: no trend from period to period."""
    robot = zoo.pendulum(1)
    motion = simulate(robot, [1.0], duration=20.0, dt=0.01, method="semi_implicit_euler")
    error = motion.energy - motion.energy[0]
    early, late = np.abs(error[:1000]).max(), np.abs(error[1000:]).max()
    assert late < 1.05 * early


def test_forces_may_depend_on_time_and_state():
    robot = zoo.cartpole()
    seen = []

    def force(t, q, qd):
        seen.append(t)
        return [np.sin(t), 0.0]

    motion = simulate(robot, [0, 0.1], tau=force, duration=0.1, dt=0.01, compiled=False)
    assert motion.tau.shape == (11, 2)
    assert_close(motion.tau[:, 0], np.sin(motion.t), 0.0)
    assert {0.0, 0.005, 0.01} <= {round(t, 12) for t in seen}


# one kernel, or step by step


def damped_tree():
    """Every kind of joint, with friction and damping."""
    mech = zoo.tree(3, 6).mechanism
    lossy = [
        replace(
            b, joint=replace(b.joint, damping=(0.1,) * b.joint.nv, friction=(0.05,) * b.joint.nv)
        )
        for b in mech.bodies
    ]
    return hinge.Robot(replace(mech, bodies=tuple(lossy)))


def control(t, q, qd):
    """A law that can be traced: of time and state, saturated."""
    return hinge.minimum(hinge.maximum(0.3 * np.sin(t) - 0.5 * qd, -0.2), 0.2)


ACTING = {
    "nothing": lambda s, steps: {},
    "a force": lambda s, steps: dict(tau=0.1 * s.qdd),
    "forces of each step": lambda s, steps: dict(taus=np.outer(np.cos(np.arange(steps)), s.qdd)),
    "a law and forces": lambda s, steps: dict(
        tau=control, taus=np.outer(np.cos(np.arange(steps)), s.qdd), f_ext=0.1 * s.f_ext
    ),
}


MIDPOINT = "implicit_midpoint"
RUNS = [(name, "a law and forces", "rk4") for name in ("gripper", "quadruped")]
RUNS += [
    ("tree", "a law and forces", method)
    for method in METHODS
    if method not in (MIDPOINT, "adaptive")
]
RUNS += [pytest.param("tree", "a law and forces", MIDPOINT, marks=pytest.mark.long)]
RUNS += [("tree", acting, "rk4") for acting in list(ACTING)[:-1]]


@pytest.mark.parametrize(("name", "acting", "method"), RUNS)
def test_one_kernel_does_what_single_steps_do(name, acting, method):
    robot = {"tree": damped_tree, "gripper": gripper, "quadruped": zoo.quadruped}[name]()
    s = random_state(robot, 2)
    more = ACTING[acting](s, 20)
    for q, qd in ((s.q, s.qd), (s.q, np.multiply.outer(np.arange(9) / 9, s.qd))):
        runs = [
            simulate(robot, q, qd, duration=0.04, dt=2e-3, method=method, compiled=c, **more)
            for c in (True, False)
        ]
        assert runs[0].q.shape == (21, *qd.shape[:-1], robot.nq)
        for field in ("t", "q", "qd", "tau"):
            a, b = (getattr(r, field) for r in runs)
            assert_close(a, b, 50 * EPS)


def test_every_so_many_states_are_kept():
    robot = zoo.arm(3)
    forces = np.sin(np.arange(90.0)).reshape(30, 3)
    every, some = (
        simulate(robot, np.ones(3), tau=control, taus=forces, duration=0.3, dt=0.01, every=n)
        for n in (1, 7)
    )
    for field in ("t", "q", "qd", "tau"):
        assert_close(getattr(some, field), getattr(every, field)[::7], 0.0)
    called = simulate(
        robot, np.ones(3), tau=control, taus=forces, duration=0.3, dt=0.01, every=7, compiled=False
    )
    assert_close(called.q, some.q, 100 * EPS)
    assert_close(called.tau, some.tau, 100 * EPS)


def test_constraints_in_one_kernel():
    robot = zoo.arm(4)
    frames = robot.frame_names
    q, dt = [0.1, 0.5, -0.4, 0.3], 0.01
    ball = hinge.LoopConstraint(frames[-1], "world", axes=(5,), stiffness=0.0, damping=0.0)
    runs = [
        simulate(robot, q, duration=0.03, dt=dt, constraints=[ball], compiled=c)
        for c in (True, False)
    ]
    assert_close(runs[0].q, runs[1].q, 50 * EPS)
    heights = runs[0].frame_positions(frames[-1])[:, 2]
    assert np.ptp(heights) < dt**4
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1e-3


def test_single_precision():
    robot, double = hinge.Robot(zoo.arm(3).mechanism, dtype=np.float32), zoo.arm(3)
    motion = simulate(robot, np.ones((9, 3)), tau=control, duration=0.1, dt=0.01)
    assert motion.q.dtype == motion.qd.dtype == motion.tau.dtype == np.float32
    expected = simulate(double, np.ones((9, 3)), tau=control, duration=0.1, dt=0.01)
    assert_close(motion.q, expected.q, 20 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_batches_of_any_size(size):
    robot = zoo.pendulum(2)
    q = np.random.default_rng(0).normal(size=(2, size, 2))
    motion = simulate(robot, q, duration=0.03, dt=0.01, tau=control)
    assert motion.q.shape == motion.tau.shape == (4, 2, size, 2)
    for i in range(size):
        alone = simulate(robot, q[1, i], duration=0.03, dt=0.01, tau=control)
        assert_close(motion.q[:, 1, i], alone.q, 20 * EPS)


def test_a_sample_that_is_not_finite_leaves_the_others_alone():
    robot = zoo.quadruped()
    q = np.broadcast_to(robot.neutral(), (9, robot.nq)).copy()
    q[3, 8] = np.nan
    q[5, 9] = np.inf
    motion = simulate(robot, q, duration=0.02, dt=0.01)
    for i in range(9):
        later = motion.q[1:, i], motion.qd[1:, i]
        assert all((np.isnan(x) if i in (3, 5) else np.isfinite(x)).all() for x in later)


def test_a_motion_that_blows_up_says_when():
    b = hinge.MechanismBuilder("stiff", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, about_com=np.eye(3))
    b.add("wheel", "world", hinge.Revolute(damping=1e6), inertia=body)
    with pytest.raises(SingularError, match="simulate 'stiff': the motion is not finite at t = "):
        simulate(hinge.Robot(b.build()), [0.0], [1.0], duration=10.0, dt=0.1)


class Memory:
    """A controller that remembers."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, q, qd):
        self.calls += 1
        return [0.01 * self.calls, 0.0]


UNTRACEABLE = {
    "a branch": (lambda t, q, qd: [1.0, 0.0] if t < 0.05 else [0.0, 0.0], "no order"),
    "a library": (lambda t, q, qd: np.linalg.eigvalsh(np.diag(q)), "eigvalsh"),
    "a memory": (Memory(), "it has a memory"),
    "noise": (lambda t, q, qd: np.random.default_rng().normal(size=2), "it has a memory"),
    "a shape": (lambda t, q, qd: np.zeros((2, 2)), r"of one sample it has shape \(2, 2\)"),
}


slow = pytest.mark.filterwarnings("ignore::hinge.TraceWarning")


@slow
@pytest.mark.parametrize("case", UNTRACEABLE)
def test_what_cannot_be_traced_is_called(case):
    force, why = UNTRACEABLE[case]
    keywords = dict(tau=force, duration=0.1, dt=0.01, method="semi_implicit_euler")
    with pytest.raises(TraceError, match=f"(?s)cannot be compiled as one kernel: tau .*{why}"):
        simulate(zoo.pendulum(2), [0.1, 0.2], compiled=True, **keywords)
    if case == "a shape":
        keywords["tau"] = lambda t, q, qd: np.zeros((3, 2)) + q[0]
        motion = simulate(zoo.pendulum(2), np.ones((3, 2)), **keywords)
        assert motion.q.shape == (11, 3, 2)
        return
    motion = simulate(zoo.pendulum(2), [0.1, 0.2], **keywords)
    assert len(set(motion.tau[:, 0])) > 1 and np.isfinite(motion.q).all()


def clipped(t, q, qd):
    low = float(q[0]) < 0.0
    return -q if low else -2.0 * q


SLOW = {
    "a branch": (lambda: clipped, r"cannot become a float.*\(test_simulate.py:\d+: low = float"),
    "a memory": (Memory, r"it has a memory \(test_simulate.py:\d+\)"),
    "a shape": (lambda: lambda t, q, qd: np.zeros((2, 2)) + q, r"\(test_simulate.py:\d+\)"),
}


@pytest.mark.parametrize("case", SLOW)
def test_steps_from_python_are_not_taken_without_a_word(case):
    """Once, with the reason and the line; not where that was asked for."""
    make, why = SLOW[case]
    given = dict(duration=0.05, dt=0.01)
    start = np.ones((2, 2)) if case == "a shape" else np.ones(2)
    with pytest.warns(TraceWarning, match=f"every step is taken from Python.*{why}") as told:
        simulate(zoo.pendulum(2), start, tau=make(), **given)
    assert len(told) == 1 and told[0].filename == __file__
    simulate(zoo.pendulum(2), start, tau=make(), **given, compiled=False)


@pytest.mark.parametrize("scalar", [False, True])
def test_a_law_that_sums_up_is_told_what_to_do(scalar):
    total = [np.zeros(2)]

    def integral(t, q, qd):
        total[0] = np.array([total[0][0] + q[0], 0.0]) if scalar else total[0] + q
        return -total[0]

    with pytest.raises(ArgumentError, match="tau has kept symbols .* needs compiled=False"):
        simulate(zoo.pendulum(2), [0.1, 0.2], tau=integral, duration=0.1, dt=0.01)
    total[0] = np.zeros(2)
    simulate(zoo.pendulum(2), [0.1, 0.2], tau=integral, duration=0.1, dt=0.01, compiled=False)
    assert np.isfinite(total[0].astype(float)).all()


@slow
def test_a_law_that_lets_samples_meet_is_called():
    robot = zoo.pendulum(2)
    q = np.array([[0.1, 0.2], [1.0, -1.0], [2.0, 0.5], [0.0, 0.0]])

    def follow(t, q, qd):
        return q.mean(axis=0) - q

    with pytest.raises(TraceError, match="depends on the others"):
        simulate(robot, q, tau=follow, duration=0.1, dt=0.01, compiled=True)
    motion = simulate(robot, q, tau=follow, duration=0.1, dt=0.01)
    assert_close(motion.tau[0], q.mean(axis=0) - q, 10 * EPS)

    # a law that is written for one sample serves a batch
    gains = np.array([[3.0, 1.0], [0.0, 2.0]])
    motion = simulate(robot, q, tau=lambda t, q, qd: -gains @ q, duration=0.1, dt=0.01)
    assert_close(motion.tau, -motion.q @ gains.T, 10 * EPS)


@pytest.mark.parametrize(
    "method",
    [
        "rk4",
        "semi_implicit_euler",
        *(pytest.param(m, marks=pytest.mark.long) for m in ("implicit_midpoint", "variational")),
        pytest.param("adaptive", marks=pytest.mark.long),
    ],
)
def test_large_mechanisms_in_one_kernel_move_as_step_by_step(method):
    """With a law, and forces on the bodies; one run and several at once."""
    robot = zoo.snake(41)
    s = random_state(robot, 3)
    law = {"tau": lambda t, q, qd: -0.3 * qd + t, "f_ext": 0.1 * np.asarray(s.f_ext)}
    asked = {"duration": 0.004, "dt": 0.001, "method": method, **law}
    slowly = simulate(robot, s.q, s.qd, **asked, compiled=False)
    motion = simulate(robot, s.q, s.qd, **asked, compiled=True)
    for ours, expected in ((motion.q, slowly.q), (motion.qd, slowly.qd)):
        assert_close(ours[-1], expected[-1], 1e5 * EPS)
    many = simulate(robot, np.tile(s.q, (9, 1)), np.tile(s.qd, (9, 1)), **asked, compiled=True)
    assert_close(many.q[-1, 8], slowly.q[-1], 1e5 * EPS)


def test_large_mechanisms_that_are_no_loop_go_step_by_step():
    robot = zoo.snake(41)
    q, still = np.linspace(0, 1, robot.nq), np.zeros(robot.nv)
    held = {"constraints": [hinge.Contact("link1")], "duration": 0.01, "dt": 0.01}
    with pytest.raises(TraceError, match="the robot has 41 bodies: more than 40 with constraints"):
        simulate(robot, q, **held, compiled=True)
    motion = simulate(
        robot, q, duration=0.02, dt=0.01, compiled=False, method="semi_implicit_euler"
    )
    assert_close(motion.qd[1], 0.01 * robot.forward_dynamics(q, still, still), 10 * EPS)


def test_a_batch_is_many_single_runs():
    robot = zoo.pendulum(2)
    q = np.array([[0.1, 0.2], [1.0, -1.0], [2.0, 0.5]])
    motion = simulate(robot, q, tau=[0.1, 0.0], duration=0.05, dt=0.01)
    assert motion.q.shape == (6, 3, 2) and motion.energy.shape == (6, 3)
    for i in range(3):
        single = simulate(robot, q[i], tau=[0.1, 0.0], duration=0.05, dt=0.01)
        assert_close(motion.q[:, i], single.q, 0.0)
    forces = simulate(robot, q[0], tau=np.zeros((5, 2)), duration=0.02, dt=0.01)
    assert forces.q.shape == (3, 5, 2)
    with pytest.raises(ArgumentError, match=r"sample is 3; expected numbers from 0 to 2"):
        motion.plot(sample=3)


def test_damping_and_friction_take_energy_out():
    b = hinge.MechanismBuilder("damped", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, about_com=np.eye(3))
    b.add("a", "world", hinge.Revolute(damping=0.5), inertia=body)
    b.add("b", "world", hinge.Revolute(friction=0.2), inertia=body)
    dt = 0.01
    motion = simulate(hinge.Robot(b.build()), [0, 0], [1.0, 1.0], duration=1.0, dt=dt)
    # rk4 leaves λ⁵ dt⁴ t / 120
    assert_close(motion.qd[:, 0], np.exp(-0.5 * motion.t), 0.5**5 * dt**4 / 120)
    assert_close(motion.qd[:, 1], 1 - 0.2 * motion.t, 20 * EPS)


def test_losses_of_followers_load_their_leader():
    """Power is what counts: −Σ damping q̇_k², −Σ friction |q̇_k| over all joints."""
    mech = gripper().mechanism
    bodies = [
        replace(
            b, joint=replace(b.joint, damping=(0.3,) * b.joint.nv, friction=(0.2,) * b.joint.nv)
        )
        for b in mech.bodies
    ]
    robot = hinge.Robot(replace(mech, bodies=tuple(bodies)))
    qd = np.array([1.0, -2.0, 0.5])
    rates = np.concatenate(robot.mechanism.rates(qd))
    power = -0.3 * rates @ rates - 0.2 * np.abs(rates).sum()
    assert_close(robot.passive_forces(np.zeros(3), qd) @ qd, power, 10 * EPS)


def test_external_forces_act_throughout():
    robot = hinge.Robot(
        hinge.MechanismBuilder("puck", gravity=(0, 0, 0))
        .add("puck", "world", hinge.Free(), inertia=hinge.Inertia(2.0, about_com=np.eye(3)))
        .build()
    )
    motion = simulate(robot, robot.neutral(), f_ext=[[0, 0, 0, 1.0, 0, 0]], duration=1.0, dt=0.1)
    assert_close(motion.q[-1, :3], np.array([0.25, 0, 0]), 100 * EPS)


def test_type_checkers_know_all_methods():
    assert set(get_args(import_module("hinge.motion.simulate").Method)) == set(METHODS)


def test_what_was_meant_is_said():
    robot = zoo.arm(2)
    for wrong, meant in (
        ("T", "duration"),
        ("timestep", "dt"),
        ("u", "tau"),
        ("integrator", "meth"),
    ):
        with pytest.raises(
            ArgumentError, match=f"{wrong} is not an argument; did you mean '{meant}"
        ):
            simulate(robot, [0.1, 0.2], **{wrong: 1.0})
    series = np.zeros((100, 2))
    for ways in ({}, dict(duration=0.1)):
        with pytest.raises(
            ArgumentError, match=r"tau has shape \(100, 2\), .* 100 steps give taus"
        ):
            simulate(robot, [0.1, 0.2], tau=series, **ways)
    with pytest.raises(ArgumentError, match="tau is ragged"):
        simulate(robot, [0.1, 0.2], tau=[[1.0], [1.0, 2.0]])
    # a batch that is meant
    starts = np.zeros((100, 2))
    assert simulate(robot, starts, tau=series, duration=0.1).q.shape == (101, 100, 2)
    assert simulate(robot, starts[0], tau=series, duration=0.01).q.shape == (11, 100, 2)
    with pytest.raises(
        ArgumentError, match=r"out is not .* 0.01; a step of time .*\(q, dt \* qd\)"
    ):
        robot.integrate(starts[0], starts[0], 0.01)


def test_trajectory_draws_itself(tmp_path):
    robot = zoo.quadruped()
    motion = simulate(robot, robot.neutral(), duration=0.02, dt=0.01)
    figure = motion.plot(tmp_path / "motion.svg")
    assert len(figure.axes) == 3
    assert "<svg" in (tmp_path / "motion.svg").read_text()[:1000]
    assert motion.frame_positions("FL_foot").shape == (3, 3)


BAD = {
    "duration": (dict(duration=-1.0), "duration is -1.0; expected a finite number above 0"),
    "dt": (dict(dt=0.0), "dt is 0.0"),
    "method": (dict(method="euler"), "method is 'euler'; expected one of 'rk4', 'semi"),
    "q": (dict(q=[0.0]), r"q has shape \(1,\)"),
    "qd": (dict(qd=[np.nan, 0.0]), r"qd\[0\] is nan"),
    "tau": (dict(tau=[1.0, 2.0, 3.0]), r"simulate 'pendulum2': tau has shape \(3,\); expected"),
    "force": (dict(tau=lambda t, q, qd: [1.0]), r"tau has shape \(1,\); expected"),
    "wide force": (
        dict(tau=lambda t, q, qd: np.zeros((3, 2))),
        r"tau has leading shape \(3,\); the motion has \(\)",
    ),
    "taus": (dict(taus=np.zeros((9, 2))), r"taus has shape \(9, 2\); expected \(10, …, 2\)"),
    "one of taus": (dict(taus=np.zeros(2)), r"taus has shape \(2,\); expected \(steps, …, 2\)"),
    "one number of taus": (
        dict(taus=[[0.0, 0.0]] * 9 + [[0.0, np.nan]]),
        r"taus\[9, 1\] is nan; expected finite numbers",
    ),
    "no force": (dict(tau=lambda t, q, qd: None), "tau gave None; does the function end in ret"),
    "two arguments": (dict(tau=lambda t, q: q), r"of \(t, q\); expected one of \(t, q, qd\)"),
    "other function": (dict(tau=np.sin), r"expected one of \(t, q, qd\) of one sample"),
    "text": (dict(tau=lambda t, q, qd: "push"), "tau is .push.; expected"),
    "ragged": (dict(tau=lambda t, q, qd: [[1], [1, 2]]), "tau is ragged; expected shape"),
    "not finite": (dict(tau=lambda t, q, qd: q * np.nan), r"tau\[0\] is nan at t = 0; expected"),
    "not finite later": (
        dict(tau=lambda t, q, qd: hinge.where(hinge.less(t, 0.05), q, q * np.nan)),
        r"tau\[0\] is nan at t = 0.05; expected",
    ),
    "masked": (dict(q=np.ma.array([0.1, 0.2], mask=[0, 1])), "q has masked entries"),
    "masked force": (
        dict(tau=lambda t, q, qd: np.ma.array([0.1, 0.2], mask=[0, 1])),
        "tau has masked entries",
    ),
    "constraints": (dict(constraints=["tip"]), "'tip' among the constraints is not a hinge.Loop"),
    "robot": (dict(robot=zoo.pendulum(2).mechanism), "simulate needs a Robot, got Mechanism; make"),
    "every": (dict(every=2.5), "every is 2.5; expected a whole number, of the 10 steps"),
    "too rare": (dict(every=11), "every is 11"),
    "together": (dict(q=np.zeros((2, 2)), qd=np.zeros((3, 2))), "leading shapes do not broadcast"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    change, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        usual = {"robot": zoo.pendulum(2), "q": [0.0, 0.1], "duration": 0.1, "dt": 0.01}
        simulate(**{**usual, **change})


def test_taus_tell_how_long_the_motion_is():
    robot, forces = zoo.pendulum(2), np.full((7, 2), 0.1)
    motion = simulate(robot, [0.1, 0.2], taus=forces, dt=0.01)
    told = simulate(robot, [0.1, 0.2], taus=forces, dt=0.01, duration=0.07)
    assert len(motion.t) == 8 and np.array_equal(motion.q, told.q)
    assert simulate(robot, [0.1, 0.2], dt=0.01).t[-1] == 1.0


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "variational"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_motion_ends_at_its_duration(method, compiled):
    """By a shorter last step; not for what rounding makes of a whole number of steps."""
    robot = zoo.pendulum(2)
    ways = dict(method=method, compiled=compiled)
    run = simulate(robot, [0.1, 0.2], duration=0.0105, dt=0.001, **ways)
    assert len(run.t) == 12 and run.t[-1] == 0.0105
    before = simulate(robot, [0.1, 0.2], duration=0.01, dt=0.001, **ways)
    assert_close(run.q[:-1], before.q, EPS)
    fine = simulate(robot, [0.1, 0.2], duration=0.0105, dt=0.0005, **ways)
    assert_close(run.q[-1], fine.q[-1], 1e-4)
    assert np.abs(run.q[-1] - run.q[-2]).max() > 0
    assert len(simulate(robot, [0.1, 0.2], duration=0.3, dt=0.1, **ways).t) == 4
    assert len(simulate(robot, [0.1, 0.2], duration=0.0105, dt=0.001, every=5, **ways).t) == 3
    short = simulate(robot, [0.1, 0.2], duration=1e-4, dt=1.0, **ways)
    assert short.t.tolist() == [0.0, 1e-4] and np.isfinite(short.q).all()


def test_a_shorter_last_step_has_its_own_force():
    robot, forces = zoo.pendulum(2), np.arange(22.0).reshape(11, 2)
    both = [
        simulate(robot, [0.1, 0.2], taus=forces, duration=0.0105, dt=0.001, compiled=c)
        for c in (True, False)
    ]
    assert_close(both[0].qd, both[1].qd, 10 * EPS)
    with pytest.raises(ArgumentError, match=r"expected \(11, …, 2\)"):
        simulate(robot, [0.1, 0.2], taus=forces[:10], duration=0.0105, dt=0.001)

"""The simulator: orders of accuracy on manifolds, conservation, losses, the trajectory."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, simulate, zoo
from hinge.simulate import joint_losses
from mechanisms import EPS, assert_close, gripper, random_state


def end_state(robot, method, dt, duration=0.2):
    s = random_state(robot, 1)
    motion = simulate(robot, s.q, s.qd, tau=0.1 * s.qdd, duration=duration, dt=dt, method=method)
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
    motion = simulate(robot, s.q, s.qd, duration=1.0, dt=0.01)
    assert np.ptp(motion.energy) < 1e-7 * motion.energy[0]
    momentum = robot.momentum(motion.q, motion.qd)
    assert_close(momentum, np.broadcast_to(momentum[0], momentum.shape), 1e-8)


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

    motion = simulate(robot, [0, 0.1], tau=force, duration=0.1, dt=0.01)
    assert motion.tau.shape == (11, 2)
    assert_close(motion.tau[:, 0], np.sin(motion.t), 0.0)
    assert {0.0, 0.005, 0.01} <= {round(t, 12) for t in seen}


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
    with pytest.raises(ArgumentError, match=r"plot draws one trajectory; .* shape \(3,\)"):
        motion.plot()


def test_damping_and_friction_take_energy_out():
    b = hinge.MechanismBuilder("damped", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, about_com=np.eye(3))
    b.add("a", "world", hinge.Revolute(damping=0.5), inertia=body)
    b.add("b", "world", hinge.Revolute(friction=0.2), inertia=body)
    motion = simulate(hinge.Robot(b.build()), [0, 0], [1.0, 1.0], duration=1.0, dt=0.01)
    assert_close(motion.qd[:, 0], np.exp(-0.5 * motion.t), 1e-9)
    assert_close(motion.qd[:, 1], 1 - 0.2 * motion.t, 1e-9)


def test_losses_of_followers_load_their_leader():
    """Power is what counts: −Σ damping q̇_k², −Σ friction |q̇_k| over all joints."""
    mech = gripper().mechanism
    from dataclasses import replace

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
    assert_close(joint_losses(robot)(qd) @ qd, power, 10 * EPS)


def test_external_forces_act_throughout():
    robot = hinge.Robot(
        hinge.MechanismBuilder("puck", gravity=(0, 0, 0))
        .add("puck", "world", hinge.Free(), inertia=hinge.Inertia(2.0, about_com=np.eye(3)))
        .build()
    )
    motion = simulate(robot, robot.neutral(), f_ext=[[0, 0, 0, 1.0, 0, 0]], duration=1.0, dt=0.1)
    assert_close(motion.q[-1, :3], np.array([0.25, 0, 0]), 100 * EPS)


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
    "no step": (dict(duration=1e-4, dt=1.0), "less than one step"),
    "method": (dict(method="euler"), "method is 'euler'; expected one of 'rk4', 'semi"),
    "q": (dict(q=[0.0]), r"q has shape \(1,\)"),
    "qd": (dict(qd=[np.nan, 0.0]), r"qd\[0\] is nan"),
    "tau": (dict(tau=[1.0, 2.0, 3.0]), r"simulate 'pendulum2': tau has shape \(3,\); expected"),
    "force": (dict(tau=lambda t, q, qd: [1.0]), r"tau has shape \(1,\); expected"),
    "wide force": (
        dict(tau=lambda t, q, qd: np.zeros((3, 2))),
        r"tau has leading shape \(3,\); the motion has \(\)",
    ),
    "together": (dict(q=np.zeros((2, 2)), qd=np.zeros((3, 2))), "leading shapes do not broadcast"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    change, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        simulate(zoo.pendulum(2), **{"q": [0.0, 0.1], "duration": 0.1, "dt": 0.01, **change})

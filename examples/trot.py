"""A quadruped that trots: model-predictive control by sampled rollouts over rigid contact.

Fifty times a second the controller looks 0.4 s ahead: some hundred rollouts of the whole robot on
its four feet, with rigid contact and friction, in one kernel; each with other offsets on the joint
targets of a stepping reference.  The offsets are then weighed by what their rollouts cost (MPPI).
The robot that is controlled is not the model: its trunk is heavier, its ground more slippery, its
steps in time shorter, and somebody pushes it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import options, save

import hinge

LEGS = ("FL", "FR", "RL", "RR")
FEET = [f"{leg}_foot" for leg in LEGS]
PERIOD, LIFT = 0.5, 0.07  # s, m
THIGH, BEND = 0.25, 0.7  # m, rad
KP, KD, MOST = 80.0, 3.0, 60.0  # N m/rad, N m s/rad, N m


@dataclass
class Plan:
    """How far and how often it looks ahead."""

    speed: float = 0.4
    dt: float = 5e-3
    steps: int = 80
    held: int = 8  # steps for which an offset stays
    samples: int = 96
    noise: float = 0.1  # rad
    temperature: float = 0.05


def standing(robot: hinge.Robot) -> np.ndarray:
    """Knees bent, feet on the ground."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, BEND, -2 * BEND], 4)
    q[2] = -robot.frame_pose(q, FEET[0])[2, 3]
    return q


def reference(t: np.ndarray, speed: float) -> np.ndarray:
    """Joint angles (…, 12) of a trot at times t: diagonal legs together, half the time down."""
    out = []
    for leg in LEGS:
        phase = (t / PERIOD + (0.0 if leg in ("FL", "RR") else 0.5)) % 1.0
        swing = np.clip(2 * phase - 1, 0.0, 1.0)  # the second half of each period
        there = np.where(phase < 0.5, 1 - 4 * phase, 4 * phase - 3)  # forward 1, back −1
        stride = 0.25 * speed * PERIOD * there
        length = 2 * THIGH * np.cos(BEND) - LIFT * np.sin(np.pi * swing) ** 2
        bend = np.arccos(length / (2 * THIGH))
        out += [0 * t, bend - stride / length, -2 * bend]
    return np.stack(out, axis=-1)


def motors(q: Any, qd: Any, target: Any) -> Any:
    """Joint forces towards the targets, no more than motors can."""
    tau = KP * (target - q[7:]) - KD * qd[6:]
    tau = hinge.minimum(hinge.maximum(tau, -MOST), MOST)
    return np.concatenate([np.zeros(6), tau])


def cost(robot: hinge.Robot, q: Any, qd: Any, tau: Any, offset: Any, speed: Any) -> Any:
    """Of a moment: speed, height, heading and levelness, effort."""
    R = robot.alg.frame_pose(q, "trunk")[:3, :3]
    v, w = R @ qd[3:6], qd[:3]
    track = 4 * (v[0] - speed) ** 2 + 4 * v[1] * v[1] + v[2] * v[2]
    level = 20 * (R[2, 0] * R[2, 0] + R[2, 1] * R[2, 1]) + 10 * R[1, 0] * R[1, 0]
    place = 100 * (q[2] - 0.37) ** 2 + 2 * q[1] * q[1]
    return track + level + place + 0.05 * (w @ w) + 1e-4 * (tau @ tau) + 2 * (offset @ offset)


def rollouts(robot: hinge.Robot, ground: hinge.Ground, speed: float) -> Any:
    """Steps of the model under targets, and what they cost: one kernel for all samples."""

    @robot.rollout(
        state=("q", "qd", "forces", "total"),
        inputs=("target", "offset"),
        forces=(4, 3),
        target=(12,),
        offset=(12,),
    )
    def run(q: Any, qd: Any, forces: Any, total: Any, target: Any, offset: Any, dt: Any) -> Any:
        tau = motors(q, qd, target + offset)
        after = ground.step(robot, q, qd, tau, dt, forces)
        spent = total + dt * cost(robot, after.q, after.qd, tau, offset, speed)
        return after.q, after.qd, after.forces, spent

    return run


class Trotter:
    """The controller: targets for the joints from the state of the robot."""

    def __init__(self, robot: hinge.Robot, ground: hinge.Ground, plan: Plan, seed: int = 0) -> None:
        self.plan, self.rng = plan, np.random.default_rng(seed)
        self.run = rollouts(robot, ground, plan.speed)
        self.knots = np.zeros((plan.steps // plan.held, 12))
        self.since = 0.0

    def update(self, t: float, q: np.ndarray, qd: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Better offsets, seen from the state at time t; those for now (12,)."""
        plan = self.plan
        while t - self.since >= plan.held * plan.dt - 1e-9:
            self.knots = np.concatenate([self.knots[1:], 0 * self.knots[:1]])
            self.since += plan.held * plan.dt
        tried = self.rng.normal(size=(len(self.knots), plan.samples, 12)) * plan.noise
        tried[:, 0] = 0.0
        tried += self.knots[:, None]
        now = t + plan.dt * np.arange(plan.steps)
        row = np.minimum((now - self.since) / (plan.held * plan.dt), len(self.knots) - 1)
        target = reference(now, plan.speed)[:, None]
        start = q, qd, forces, 0.0, target, tried[row.astype(int)], plan.dt
        *_, spent = self.run(*start, every=plan.steps)
        costs = np.where(np.isfinite(spent[-1]), spent[-1], np.inf)
        w = np.exp(-(costs - costs.min()) / plan.temperature)
        self.knots = np.einsum("ksu,s->ku", tried, w / w.sum())
        return self.knots[0]


@dataclass
class Walk:
    """What came of it: states (T, …), forces (T, 4, 3), and how the time was spent."""

    motion: hinge.Trajectory
    thinking: float


def walk(plan: Plan, seconds: float, push: float = 0.0, seed: int = 0) -> Walk:
    """Trot for a while; push: N, sideways on the trunk for 0.2 s in the middle."""
    robot = hinge.zoo.quadruped()
    other = hinge.Robot(heavier(robot.mechanism, 1.1))
    dt, per = 2.5e-3, 8  # of the robot itself; steps between two updates
    grounds = [hinge.Ground(FEET, friction=mu, law="rigid") for mu in (0.7, 0.6)]
    # on one core, with twice as many samples in a register
    model = hinge.Robot(robot.mechanism, dtype=np.float32, threads=1)
    control = Trotter(model, grounds[0], plan, seed)

    @other.rollout(
        state=("q", "qd", "forces"), inputs=("target", "shove"), forces=(4, 3), target=(12,)
    )
    def move(q: Any, qd: Any, forces: Any, target: Any, shove: Any, h: Any) -> Any:
        tau = motors(q, qd, target)
        R = other.alg.frame_pose(q, "trunk")[:3, :3]
        side = np.concatenate([np.zeros(3), R.T @ np.array([0, shove, 0])])
        f_ext = np.stack([side, *np.zeros((len(other.body_names) - 1, 6))])
        after = grounds[1].step(other, q, qd, tau, h, forces, f_ext)
        return after.q, after.qd, after.forces, tau

    q, qd, forces = standing(robot), np.zeros(18), np.zeros((4, 3))
    rows, thinking = [], 0.0
    for i in range(round(seconds / (dt * per))):
        t = i * dt * per
        begin = time.process_time()
        offset = control.update(t, q, qd, forces)
        # the first compiles
        thinking += time.process_time() - begin if i else 0.0
        target = reference(t + dt * np.arange(per), plan.speed) + offset
        shove = np.full(per, push if 0 < t - 0.5 * seconds < 0.2 else 0.0)
        found = move(q, qd, forces, target, shove, dt)
        q, qd, forces = (x[-1] for x in found[:3])
        rows.append(found)
        if not np.isfinite(q).all():
            break
    qs, qds, fs, taus = (np.concatenate(x) for x in zip(*rows, strict=True))
    times = dt * np.arange(1, len(qs) + 1)
    motion = hinge.Trajectory(other, times, qs, qds, taus, ground=grounds[1], forces=fs)
    return Walk(motion, thinking)


def heavier(mechanism: hinge.Mechanism, by: float) -> hinge.Mechanism:
    """The mechanism with another trunk."""
    own: Any = mechanism.bodies[mechanism.body_index("trunk")].inertia
    trunk = hinge.Inertia(by * own.mass, own.com, by * own.about_com)
    return hinge.edit.with_inertia(mechanism, "trunk", trunk)


def upright(motion: hinge.Trajectory) -> bool:
    """Whether it never fell."""
    R = motion.robot.frame_pose(motion.q, "trunk")[:, :3, :3]
    return bool(np.all(R[:, 2, 2] > 0.8) and np.all(motion.q[:, 2] > 0.25))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    plan, seconds = Plan(), 1.0 if asked.quick else 10.0
    if asked.quick:
        plan.samples = 32
    alone = walk(Plan(noise=0.0, samples=2), 0.5 if asked.quick else 3.0).motion
    found = walk(plan, seconds, push=60.0)
    motion = found.motion
    print(f"the reference alone {'does not fall' if upright(alone) else 'falls'}")
    gone = motion.q[-1, 0]
    print(
        f"{'trotted' if upright(motion) else 'fell'}: {gone:.2f} m in {motion.t[-1]:.1f} s, "
        f"{np.abs(motion.q[:, 1]).max():.2f} m aside at most, pushed by 60 N"
    )
    print(
        f"thinking took {found.thinking:.1f} s of one core, {motion.t[-1] / found.thinking:.1f} "
        f"times as fast as the robot: {plan.samples} rollouts of {plan.steps} steps in 20 ms"
    )
    draw(motion, asked.out, asked.quick)


def draw(motion: hinge.Trajectory, out: Any, quick: bool) -> None:
    """Forces of the feet, and how the trunk goes; the last steps as a film."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    shown = motion.t > motion.t[-1] - 1.0
    for i, leg in enumerate(LEGS):
        left.plot(motion.t[shown], motion.forces[shown, i, 2] + 250 * i, lw=1, label=leg)
    left.set(xlabel="time  [s]", ylabel="normal forces, 250 N apart")
    right.plot(motion.t, motion.q[:, 0], label="x  [m]")
    right.plot(motion.t, motion.q[:, 1], label="y  [m]")
    right.plot(motion.t, motion.q[:, 2], label="z  [m]")
    right.set(xlabel="time  [s]", title="trunk")
    save(figure, out / "trot.svg")
    step = 40 if quick else 24
    some = np.flatnonzero(motion.t > motion.t[-1] - 2.0)[::step]
    film = hinge.Trajectory(
        motion.robot, motion.t[some], motion.q[some], motion.qd[some], motion.tau[some]
    )
    film.draw(out / "trot.gif", size=(560, 350))
    print(f"wrote {out / 'trot.gif'}")


if __name__ == "__main__":
    main()

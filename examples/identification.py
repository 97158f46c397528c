"""Identification of an arm: from a file that is wrong, by a motion that shows it, to a controller.

The Panda of example-robot-data is the machine (without that package an arm of the zoo); the model
has every mass, centre and moment wrong by up to 40 %, and knows nothing of damping and friction.
The machine follows an exciting trajectory, torques are measured with 5 % noise, and what is found
drives it along another motion, with feedforward from the file and from what was found.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save

import hinge

NOISE, WRONG = 0.05, 0.4
# s, of measurements and of the simulated machine, whose friction is stiff
DT, STEP = 0.002, 0.0002
TERMS = ("damping", "friction")


def machine() -> hinge.Robot:
    """The Panda, fingers welded, with damping and friction; nobody knows its numbers."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
        path = next(Path(str(f.locate())) for f in files if f.name == "panda.urdf")
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        mech = hinge.zoo.arm(7).mechanism
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mech = hinge.load(path, package_dirs=[path.parents[4]]).mechanism
            for finger in ("panda_finger_joint2", "panda_finger_joint1"):
                mech = hinge.edit.weld(mech, finger)
    worn = [replace(b, joint=replace(b.joint, damping=0.5, friction=0.3)) for b in mech.bodies[1:]]
    return hinge.Robot(replace(mech, bodies=(mech.bodies[0], *worn)))


def file_of(robot: hinge.Robot, rng: np.random.Generator) -> hinge.Robot:
    """The model that comes with it: every body wrong, joints without losses."""
    bodies = [robot.mechanism.bodies[0]]
    for body in robot.mechanism.bodies[1:]:
        own, (mass, moments) = body.inertia, 1 + rng.uniform(-WRONG, WRONG, size=2)
        com = own.com * (1 + rng.uniform(-WRONG, WRONG, size=3))
        other = hinge.Inertia(own.mass * mass, com, own.about_com * moments)
        bodies.append(
            replace(body, inertia=other, joint=replace(body.joint, damping=0, friction=0))
        )
    return hinge.Robot(replace(robot.mechanism, bodies=tuple(bodies)))


def torques(robot: hinge.Robot, q: Any, qd: Any, qdd: Any) -> np.ndarray:
    """What the motors give."""
    return robot.inverse_dynamics(q, qd, qdd) - robot.passive_forces(q, qd)


def tracking(robot: hinge.Robot, feed: np.ndarray, goal: Any, rate: Any) -> np.ndarray:
    """The motion of the machine under feedforward, and soft feedback towards the goal."""
    M = np.diag(robot.mass_matrix(goal[0]))

    @robot.rollout(inputs=("goal", "rate", "feed"), goal=(7,), rate=(7,), feed=(7,))
    def run(q: Any, qd: Any, goal: Any, rate: Any, feed: Any) -> Any:
        tau = feed + M * (100 * (goal - q) + 20 * (rate - qd)) + robot.alg.passive_forces(q, qd)
        qd = qd + STEP * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, STEP * qd), qd

    return run(goal[0], rate[0], goal, rate, feed)[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    rng, arm = np.random.default_rng(3), machine()
    file = file_of(arm, rng)
    seconds = 4.0 if asked.quick else 10.0
    order = 3 if asked.quick else 5
    motion = hinge.exciting_trajectory(file, seconds, order, joint_terms=TERMS, velocity=1.5)
    print(f"exciting trajectory: condition {motion.condition:.1f}, within all limits")

    t = np.arange(0.0, seconds, 0.01 if asked.quick else DT)
    q, qd, qdd = motion.at(t)
    truth = torques(arm, q, qd, qdd)
    tau = truth + NOISE * truth.std(axis=0) * rng.normal(size=truth.shape)
    found = hinge.identify(file, q, qd, tau, qdd, joint_terms=TERMS)
    true_base = found.base.matrix @ arm.linear_parameters(TERMS).values
    away = (found.base_values - true_base) / found.base_std
    print(
        f"identified: {found.base.rank} combinations, {100 * found.misfit:.1f} % left over,",
        end=" ",
    )
    print(f"off by {np.sqrt((away**2).mean()):.2f} σ on average, {np.abs(away).max():.1f} at most")

    # another motion, of which nothing was measured
    other = hinge.exciting_trajectory(file, seconds, 3, velocity=1.5, starts=1, seed=7)
    goal, rate, push = other.at(np.arange(0.0, seconds, STEP))
    models = {"file": file, "found": found.robot, "true": arm}
    feed = {name: torques(robot, goal, rate, push) for name, robot in models.items()}
    moved = {name: tracking(arm, tau, goal, rate) for name, tau in feed.items()}
    off = {name: np.degrees(np.abs(x[:-1] - goal[1:]).max(axis=1)) for name, x in moved.items()}
    size = np.sqrt((feed["true"] ** 2).mean(axis=0))
    for name in ("file", "found"):
        wrong = np.sqrt(((feed[name] - feed["true"]) ** 2).mean(axis=0)) / size
        print(f"{name}: torques off by {100 * wrong.max():.2g} %, tracks to {off[name].max():.2g}°")

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    joint = 3
    some = slice(None, None, 1 if asked.quick else 5)
    for x, look, label in (
        (tau, "0.8", "measured, 5 % noise"),
        (torques(file, q, qd, qdd), "C3", "file"),
        (tau - found.residuals, "C0", "found"),
    ):
        axes[0].plot(t[some], x[some, joint], color=look, lw=1, label=label)
    axes[0].set(title=f"torque of joint {joint + 1}", xlabel="time  [s]", ylabel="N m")
    given = found.base.matrix @ file.linear_parameters(TERMS).values
    scale = np.maximum(np.abs(true_base), 0.01)
    axes[1].semilogy(np.abs(given - true_base) / scale, "C3.", label="file")
    axes[1].semilogy(np.abs(found.base_values - true_base) / scale, "C0.", label="found")
    axes[1].semilogy(found.base_std / scale, "k_", ms=4, label="σ that identify tells")
    axes[1].set(title="base parameters, relative error", xlabel="number")
    for name, colour in (("file", "C3"), ("found", "C0"), ("true", "C7")):
        thin = slice(None, None, 50)
        time = STEP * np.arange(1, len(goal))[thin]
        axes[2].semilogy(time, off[name][thin] + 1e-4, colour, lw=1, label=name)
    axes[2].set(
        title="another motion, tracked", xlabel="time  [s]", ylabel="degrees off"
    )
    save(figure, asked.out / "identification.svg")
    shown = np.linspace(0, len(goal) - 2, 4 if asked.quick else 40).astype(int)
    points = {name: arm.poses(moved[name][shown])[..., :3, 3] for name in ("file", "found")}
    animate(asked.out / "identification.gif", {f"feedforward: {n}": x for n, x in points.items()})


if __name__ == "__main__":
    main()

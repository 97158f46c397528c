"""Inverse kinematics: an arm along a circle, which it leaves where it must; steps to an answer."""

from __future__ import annotations

import numpy as np
from common import panels, save

import hinge

TARGETS, SHOWN = 1000, 12


def circle(count: int) -> np.ndarray:
    """Points of a circle that is partly out of reach, in the plane of the arm."""
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.stack([0.75 + 0.6 * np.cos(angle), 0 * angle, 0.5 + 0.6 * np.sin(angle)], axis=-1)


def links(arm: hinge.Robot, q: np.ndarray) -> np.ndarray:
    """Where the joints and the tool are: (…, points, 3)."""
    bodies = arm.poses(q)[..., :3, 3]
    tool = arm.frame_pose(q, "tool")[..., None, :3, 3]
    return np.concatenate([0 * tool, bodies, tool], axis=-2)


def main() -> None:
    """Draw."""
    arm = hinge.zoo.arm(7)
    figure, (left, right) = panels(2, height=3.8)
    points = circle(SHOWN)
    answer = arm.inverse_kinematics("tool", points, 0.3 * np.ones(7))
    for q, reached in zip(answer.q, answer.reached, strict=True):
        x, _, z = links(arm, q).T
        left.plot(x, z, "-o", ms=2.5, lw=1, color="tab:blue" if reached else "tab:red", alpha=0.7)
    left.plot(*circle(200).T[[0, 2]], ":", color="C7", lw=0.8)
    left.plot(*points.T[[0, 2]], "kx", ms=5)
    left.set(xlabel="x / m", ylabel="z / m", aspect="equal")
    left.set_title("reached (blue), unreachable: as near as can be (red)", fontsize=9)

    rng = np.random.default_rng(0)
    wanted = np.array([arm.random_configuration(rng) for _ in range(TARGETS)])
    targets = arm.frame_pose(wanted, "tool")
    starts = {"no start": None, "0.1 rad away": wanted + 0.1 * rng.normal(size=wanted.shape)}
    for label, q0 in starts.items():
        steps = np.sort(arm.inverse_kinematics("tool", targets, q0).iterations)
        right.step(steps, np.arange(1, TARGETS + 1) / TARGETS, label=label)
    right.set(xscale="log", xlabel="steps", ylabel="poses found", ylim=(0, 1.02))
    right.set_title(f"{TARGETS} poses of a 7-joint arm to 1e-9", fontsize=9)
    right.legend()
    save(figure, "inverse_kinematics")


if __name__ == "__main__":
    main()

"""Pose control in total rates: Lyapunov functions of six arms, and half a turn of error."""

from __future__ import annotations

import numpy as np
from common import panels, random_chain, save

import hinge
from hinge.control import PoseFeedback

SECONDS, ARMS, JOINTS = 60.0, 6, 7


def arms() -> None:
    rng = np.random.default_rng(12)
    figure, axes = panels(2)
    for i in range(ARMS):
        robot = random_chain(JOINTS, rng)
        target = robot.frame_pose(rng.normal(size=JOINTS), "tool")
        start = rng.normal(size=JOINTS)
        line = f"arm {i + 1}:"
        for a, orientation in zip(axes, ("angle", "axes"), strict=True):
            law = PoseFeedback(robot, "tool", target, 3.0, 20.0, orientation)
            ways = {"duration": SECONDS, "dt": 2e-3, "every": 25, "limits": False}
            run = hinge.simulate(robot, start, None, law, **ways)
            W = law.lyapunov(run.q, run.qd)
            a.semilogy(run.t, W + 1e-16, label=f"arm {i + 1}")
            grip = np.linalg.svd(robot.jacobian(run.q[-1], "tool"), compute_uv=False)[-1]
            rise = np.diff(W).max()
            end = np.abs(law.error(run.q[-1])).max()
            line += (
                f"  {orientation}: error {end:.0e}, σ_min {grip:.3f}, largest rise of W {rise:.0e};"
            )
        print(line)
    for a, name in zip(axes, ("angle", "axes"), strict=True):
        a.set(xlabel="time  [s]", ylabel="W  [J]", title=f'orientation="{name}"', ylim=(1e-9, 1e3))
    axes[0].legend(fontsize="x-small")
    save(figure, "pose_feedback")


def half_turn() -> None:
    b = hinge.MechanismBuilder("ball", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, about_com=np.diag([1.0, 1.2, 0.8]))
    b.add("ball", "world", hinge.Spherical(), inertia=body)
    robot = hinge.Robot(b.build())
    figure, (left, right) = panels(2)
    angles = np.linspace(0, np.pi, 200)
    left.plot(np.degrees(angles), 2 * np.sin(angles), label='"axes": 2 sin θ')
    left.plot(np.degrees(angles), 2 * angles, label='"angle": 2 θ')
    left.set(xlabel="error of orientation  [degrees]", ylabel="moment / stiffness", title="pull")
    left.legend()
    for off in (0.0, 1e-6, 1e-2):
        target = np.eye(4)
        target[:3, :3] = hinge.algebra.rotation.about_axis(np.eye(3)[0], np.array([np.pi - off]))
        for orientation, style in (("axes", "--"), ("angle", "-")):
            law = PoseFeedback(robot, "ball", target, 2.0, 5.0, orientation)
            run = hinge.simulate(robot, robot.neutral(), None, law, duration=12, dt=5e-3)
            error = np.degrees(np.linalg.norm(law.error(run.q)[:, :3], axis=-1))
            kind = "all three" if orientation == "angle" else f"{off:g} rad short"
            right.plot(run.t, error, style, label=f"{orientation}, {kind}")
            print(f"{orientation}, {off:g}: {error[-1]:.2g} degrees after 12 s")
    right.set(xlabel="time  [s]", ylabel="error  [degrees]", title="from half a turn away")
    lines, labels = right.get_legend_handles_labels()
    once = dict(zip(labels, lines, strict=True))
    right.legend(once.values(), once.keys(), fontsize="x-small", loc="center right")
    save(figure, "half_turn")


def main() -> None:
    arms()
    half_turn()


if __name__ == "__main__":
    main()

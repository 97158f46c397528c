"""Energy over a million steps: Runge–Kutta, semi-implicit Euler, both midpoint rules, variational.

A free top, a double pendulum and an arm of seven joints that falls, 1 ms a step.
"""

from __future__ import annotations

import time

import numpy as np
from common import panels, save

import hinge

STEPS, STEP, KEPT = 1_000_000, 1e-3, 400
METHODS = {
    "RK4": "rk4",
    "semi-implicit Euler": "semi_implicit_euler",
    "midpoint, q̇": "joint_midpoint",
    "midpoint, ν": "implicit_midpoint",
    "variational": "variational",
}


def top() -> hinge.Robot:
    """A free body with three different moments of inertia."""
    b = hinge.MechanismBuilder("free top", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, about_com=np.diag([1.0, 2.0, 3.0]))
    return hinge.Robot(b.add("top", "world", hinge.Free(), inertia=body).build())


def cases() -> dict[str, tuple[hinge.Robot, np.ndarray, np.ndarray]]:
    """Robots and where they start."""
    free, double, arm = top(), hinge.zoo.pendulum(2), hinge.zoo.arm(7)
    return {
        "free top": (free, free.neutral(), np.array([3.0, 0.1, -2.0, 0.0, 0.0, 0.0])),
        "double pendulum": (double, np.array([1.5, 0.5]), np.zeros(2)),
        "arm(7)": (arm, arm.neutral() + 0.5, np.zeros(7)),
    }


def errors(robot: hinge.Robot, q, qd, method: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Times, |E − E₀| there, and microseconds a step; what is not finite ends the curve."""
    begin = time.perf_counter()
    settings = dict(duration=STEPS * STEP, dt=STEP, method=method, every=max(1, STEPS // KEPT))
    # as a batch of one, NaN where a single run would raise
    run = hinge.simulate(robot, q[None], qd[None], limits=False, **settings)
    each = (time.perf_counter() - begin) / STEPS * 1e6
    energy = run.energy[:, 0]
    fine = np.isfinite(energy)
    return run.t[fine], np.abs(energy - energy[0])[fine], each


def main() -> None:
    figure, axes = panels(3, width=11.0)
    for ax, (title, (robot, q, qd)) in zip(axes, cases().items(), strict=True):
        for label, method in METHODS.items():
            t, error, each = errors(robot, q, qd, method)
            end = "" if len(t) > 0.99 * min(KEPT, STEPS) else f", not finite after {t[-1]:.0f} s"
            print(
                f"{title:16s} {label:20s} largest {error.max():.1e} J, last tenth "
                f"{error[-len(error) // 10 :].mean():.1e} J, {each:.2f} us a step{end}"
            )
            ax.loglog(t[1:], error[1:] + 1e-16, label=label, lw=0.8)
        ax.set(title=title, xlabel="time  [s]")
    axes[0].set(ylabel="|error of the energy|  [J]")
    axes[0].legend(fontsize="x-small")
    save(figure, "long_motion")


if __name__ == "__main__":
    main()

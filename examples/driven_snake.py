"""A snake adrift of which every third joint is driven; the others bend on springs.

The driven joints follow a travelling wave, hybrid dynamics gives their forces and the motion of all
the rest; without anything to push against, the centre of mass stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge
from hinge.algebra.small import sin

LINKS, DRIVEN = 10, 3
AMPLITUDE, PACE, LAG = 0.5, 2.5, 0.9


def snake() -> hinge.Robot:
    """The snake of the zoo without gravity, with springs on the joints that are not driven."""
    mech = hinge.zoo.snake(LINKS).mechanism
    bodies = list(mech.bodies)
    for k in range(2, LINKS + 1):
        if (k - 2) % DRIVEN:
            joint = replace(bodies[k].joint, stiffness=0.6, damping=0.02)
            bodies[k] = replace(bodies[k], joint=joint)
    return hinge.Robot(replace(mech, bodies=tuple(bodies), gravity=(0.0, 0.0, 0.0)))


ROBOT = snake()
JOINTS = ROBOT.joint_names[1:]
ACTIVE = JOINTS[::DRIVEN]


def wave(t: Any) -> tuple[Any, Any, Any]:
    """Angles, rates and accelerations of all joints in a travelling wave that starts gently."""
    phase = PACE * t - LAG * np.arange(len(JOINTS))
    ramp = hinge.minimum(0.5 * t, 1.0)
    s, c = (np.array([sin(p + shift) for p in phase]) for shift in (0.0, np.pi / 2))
    return AMPLITUDE * ramp * s, AMPLITUDE * ramp * PACE * c, -AMPLITUDE * ramp * PACE**2 * s


def law(t: Any, q: Any, qd: Any) -> Any:
    """The forces of the driven joints, which keep to the wave; springs act by themselves."""
    angle, rate, push = wave(t)
    drive = push + 60.0 * (angle - q[7:]) + 15.0 * (rate - qd[6:])
    springs, drive = ROBOT.alg.passive_forces(q, qd), np.concatenate([np.zeros(6), drive])
    return ROBOT.alg.hybrid_dynamics(q, qd, drive, springs, ACTIVE).tau - springs


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    dt, seconds = (0.02, 2.0) if asked.quick else (0.01, 8.0)

    run = hinge.simulate(ROBOT, ROBOT.neutral(), None, law, seconds, dt)
    t, q, tau = run.t, run.q, run.tau
    center = ROBOT.center_of_mass(q)
    print(f"{len(ACTIVE)} of {len(JOINTS)} joints are driven: {', '.join(ACTIVE)}")
    print(f"the centre of mass strays by {1e3 * np.abs(center - center[0]).max():.2g} mm")
    print(f"driving torques reach {np.abs(tau[:, 6:]).max():.2f} Nm")
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6, 4.5), sharex=True, layout="constrained")
    for i, name in enumerate(JOINTS[:6]):
        style = "-" if name in ACTIVE else ":"
        upper.plot(t, q[:, 7 + i], style, label=name + (" driven" if name in ACTIVE else ""))
    for name in ACTIVE:
        lower.plot(t, tau[:, ROBOT.v_slice(name)], label=name)
    upper.set(ylabel="angle  [rad]")
    lower.set(xlabel="time  [s]", ylabel="driving torque  [Nm]")
    save(figure, asked.out / "driven_snake.svg")
    picked = np.linspace(0, len(t) - 1, 4 if asked.quick else 28).astype(int)
    chain = skeleton(ROBOT, q[picked], "tail")
    animate(asked.out / "driven_snake.gif", {"every third joint driven": chain}, view=(40, -60))


if __name__ == "__main__":
    main()

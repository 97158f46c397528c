"""What the figures share: random chains, and files that come out the same every time."""

from __future__ import annotations

from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import hinge

matplotlib.style.use("hinge.look")
FOLDER = Path(__file__).parent


def save(figure: Figure, name: str) -> None:
    """Write a figure beside this file."""
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path.name}")


def panels(count: int, width: float = 9.0, height: float = 3.2) -> tuple[Figure, list]:
    """A row of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, count)))


def random_chain(n: int, rng: np.random.Generator) -> hinge.Robot:
    """n bodies on hinges about random axes, without gravity."""
    b = hinge.MechanismBuilder(f"chain{n}", gravity=(0, 0, 0))
    parent = "world"
    for i in range(n):
        points = 0.2 * rng.normal(size=(3, 6))
        second = points @ points.T
        body = hinge.Inertia(
            rng.uniform(0.5, 2.0), 0.3 * rng.normal(size=3), np.trace(second) * np.eye(3) - second
        )
        place = hinge.Transform(translation=0.5 * rng.normal(size=3))
        b.add(f"link{i}", parent, hinge.Revolute(rng.normal(size=3)), None, place, body)
        parent = f"link{i}"
    b.add_frame("tool", parent, hinge.Transform(translation=(0.2, 0.1, 0.3)))
    return hinge.Robot(b.build())


def with_energy(robot: hinge.Robot, rng: np.random.Generator, joules: float = 1.0):
    """A random state with so much kinetic energy."""
    q, qd = rng.normal(size=robot.nq), rng.normal(size=robot.nv)
    return q, qd * np.sqrt(joules / robot.kinetic_energy(q, qd))

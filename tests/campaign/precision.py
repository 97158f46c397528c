"""Solvers in single precision beside those in double precision."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import hinge
from hinge import Contact, zoo

from .lines import Outcome, line

__all__ = ["single_beside_double"]

_MADE = {
    "arm4": lambda: zoo.arm(4),
    "arm6": lambda: zoo.arm(6),
    "arm7": lambda: zoo.arm(7),
    "quadruped": zoo.quadruped,
}
_KINDS = ("point", "line", "flat", "weld")
# of the largest entry, what single precision may be off where rows are redundant
_OFF = 0.02


@lru_cache
def _pair(name: str) -> tuple[hinge.Robot, hinge.Robot]:
    robot = _MADE[name]()
    return robot, hinge.Robot(robot.mechanism, "float32")


@line("states", figure="of what was wanted, missed in single precision alone")
def single_beside_double(rng: np.random.Generator) -> Outcome:
    """Rates of frames and motions under redundant contacts in float32: where float64 has an answer
    there is one, as near; where constraints contradict each other there is none."""
    robot, single = _pair(str(rng.choice(list(_MADE))))
    n, frame = 32, robot.frame_names[-1]
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    wanted = rng.normal(size=(n, 6)) * 10.0 ** rng.uniform(-2, 2)
    J = robot.jacobian(q, frame)

    def missed(rates: np.ndarray) -> np.ndarray:
        return np.linalg.norm((J @ rates[..., None])[..., 0] - wanted, axis=1)

    given = [x.astype(np.float32) for x in (q, wanted)]
    found = single.differential_inverse_kinematics(*given, frame)
    assert np.isfinite(found).all(), robot.name
    more = missed(found) - missed(robot.differential_inverse_kinematics(q, wanted, frame))
    worst = float((more / np.linalg.norm(wanted, axis=1)).max())
    assert worst < _OFF, (robot.name, worst)
    _held(robot, single, q, rng)
    return Outcome(n, worst)


def _held(robot: hinge.Robot, single: hinge.Robot, q: np.ndarray, rng: np.random.Generator) -> None:
    """Motions with a contact that is there twice."""
    frames = rng.choice(robot.frame_names[1:], size=2)
    held = [Contact(str(frames[0]), str(rng.choice(_KINDS))) for _ in range(2)]
    still, tau = np.zeros((len(q), robot.nv)), rng.normal(size=(len(q), robot.nv))
    exact = robot.constrained_forward_dynamics(q, still, tau, held).qdd
    found = single.constrained_forward_dynamics(*map(np.float32, (q, still, tau)), held).qdd
    assert (np.isnan(exact) <= np.isnan(found)).all(), (robot.name, held)
    # of configurations that are nearly singular single precision knows little
    off = np.abs(found - exact).max(axis=1) / (1 + np.abs(exact).max(axis=1))
    assert np.nanmedian(off) < _OFF, (robot.name, held, off)

"""The numbers by which a hand moves the joints of a robot: one for each degree of freedom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..model.joint import Joint
from ..model.joints import Free, Spherical, Translation
from ..model.mechanism import Mechanism

__all__ = ["Dial", "dials"]

_TURN, _SLIDE = np.pi, 1.0  # rad, m: how far either way what has no limits may go
_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Dial:
    """One degree of freedom of a joint whose coordinates are `at` in q, and the range it has.

    A joint with as many coordinates as rates has the coordinate itself; others, whose coordinates
    are a quaternion, the component of the way from `home`: a vector of rotation.
    """

    label: str
    joint: Joint
    at: slice
    entry: int
    home: np.ndarray
    low: float
    high: float

    def read(self, q: np.ndarray) -> float:
        """Its number at q (nq,)."""
        return float(self._numbers(q[self.at])[self.entry])

    def turned(self, q: np.ndarray, value: float) -> np.ndarray:
        """q with this number, and all others as they were."""
        numbers = self._numbers(q[self.at]).copy()
        numbers[self.entry] = value
        moved = q.copy()
        moved[self.at] = self.joint.integrate(self.home, numbers) if self._is_round else numbers
        return moved

    @property
    def _is_round(self) -> bool:
        return self.joint.nq != self.joint.nv

    def _numbers(self, own: np.ndarray) -> np.ndarray:
        return self.joint.difference(self.home, own) if self._is_round else own


def dials(mechanism: Mechanism, q: np.ndarray) -> list[Dial]:
    """All of a mechanism that is at q."""
    found: list[Dial] = []
    for body in mechanism.bodies[1:]:
        if body.joint.mimic is None:
            start = mechanism.q_slice(body.joint_name).start
            for joint, label in _parts(body.joint, body.joint_name):
                at = slice(start, start + joint.nq)
                found += _of_joint(joint, label, at, q[at])
                start = at.stop
    return found


def _parts(joint: Joint, name: str) -> list[tuple[Joint, str]]:
    """What is free moves and turns on its own."""
    if isinstance(joint, Free):
        return [(Translation(), name), (Spherical(), f"{name} turn")]
    return [(joint, name)]


def _of_joint(joint: Joint, label: str, at: slice, home: np.ndarray) -> Iterator[Dial]:
    H = joint.H(joint.neutral())
    names = _AXES if isinstance(joint, Translation | Spherical) else [f"[{i}]" for i in range(9)]
    middle = np.zeros(joint.nv) if joint.nq != joint.nv else home
    for i in range(joint.nv):
        far = _TURN if H[i, :3].any() else _SLIDE
        limits = np.array([np.array(joint.lower)[i], np.array(joint.upper)[i]])
        low, high = np.where(np.isfinite(limits), limits, (middle[i] - far, middle[i] + far))
        own = f"{label} {names[i]}" if joint.nv > 1 else label
        yield Dial(own, joint, at, i, home.copy(), float(low), float(max(high, low + 1e-6)))

"""What laws of joint forces share: kernels for numbers, forces within what the joints can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.small import clip
from ..errors import ArgumentError
from ..robot import Robot
from ..runtime.kernel import Kernel

# gains of a unit mass, ω² in 1/s² and 2ω in 1/s: critically damped, there in half a second, and
# slow beside steps of a millisecond; what is not a unit mass takes them times its inertia
PULL, BRAKE = 100.0, 20.0

__all__ = ["BRAKE", "PULL", "Feedback", "check_gain", "numbers", "within"]


class Feedback(ABC):
    """τ(t, q, q̇), of one sample or of many, never more than the effort limits of the joints."""

    robot: Robot

    def __call__(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        """The joint forces, (…, nv)."""
        if np.asarray(q).dtype == object:
            return self._limited(t, np.asarray(q), np.asarray(qd))
        return self._kernel(np.asarray(t, float), q, qd)

    def _limited(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        return within(self.robot, self._force(t, q, qd))

    @abstractmethod
    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        """The force that is wished for, of one sample, on any scalar."""

    @cached_property
    def _kernel(self) -> Kernel:
        kernel = self.robot.compile(self._limited)
        kernel.name = f"{type(self).__name__} for {self.robot.name!r}"
        return kernel


def within(robot: Robot, tau: Any) -> np.ndarray:
    """Joint forces, each cut off at its effort limit."""
    pairs = zip(np.asarray(tau), robot.effort_limit, strict=True)
    return np.array([clip(x, -most, most) if most < np.inf else x for x, most in pairs])


def numbers(value: Any) -> np.ndarray:
    """The value as an array of numbers; of what has none, NaN."""
    try:
        x = np.asarray(value)
    except ValueError:
        return np.array(np.nan)
    return x.astype(float) if x.dtype.kind in "fiu" else np.array(np.nan)


def check_gain(where: str, name: str, value: ArrayLike, count: int) -> np.ndarray:
    """The gain as `count` numbers from 0 on, if it is one of them or one for all."""
    gain = numbers(value)
    if gain.shape not in ((), (count,)) or not (np.isfinite(gain) & (gain >= 0)).all():
        raise ArgumentError(
            f"{where}: {name} is {value!r}; expected a number from 0 on, or {count} of them"
        )
    return np.broadcast_to(gain, (count,))

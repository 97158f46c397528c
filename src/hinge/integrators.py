"""Steps of time on the joint manifolds, as functions that can be traced.

A step of length h takes (q, q̇) from t to t + h in one or more stages.  All stages of a method are
the same lines with different numbers, and ask for the acceleration once: compiled, a step has the
equations of motion in it once, however many stages there are.

Semi-implicit Euler:    q̇ ← q̇ + h q̈(t, q, q̇),   q ← q ⊞ h q̇

Runge–Kutta–Munthe-Kaas of order 4, the classical tableau on u with q(t) = q ⊞ u(t), in stages
(c, b, keep, end) = (0, 1, 0, 0), (½, 2, 1, 0), (½, 2, 1, 0), (1, 1, 1, ⅙):

    v = q̇ + c h a,   w ← u̇(c h w, v),   a ← q̈(t + c h, q ⊞ c h w, v)      of the stage before   (1)
    Σw ← keep Σw + b w,   Σa ← keep Σa + b a                                                     (2)
    q ← q ⊞ end h Σw,     q̇ ← q̇ + end h Σa                                                       (3)

where u̇(u, v) is the rate of u at which q ⊞ u moves with velocity v.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["METHODS", "Integrator", "System"]


class System(Protocol):
    """What moves."""

    def acceleration(self, t: Any, q: Any, qd: Any) -> Any:
        """q̈ at a time, in a state."""
        ...

    def move(self, q: Any, scale: Any, u: Any) -> Any:
        """q ⊞ scale · u."""
        ...

    def rate(self, scale: Any, u: Any, v: Any) -> Any:
        """The rate of x, at x = scale · u, at which q ⊞ x moves with velocity v."""
        ...


@dataclass(frozen=True)
class Integrator:
    """One stage of a step, and the numbers of each.

    advance(system, t, h, q, qd, memory, stage) gives the new q, qd and memory: so many vectors of
    size nv, 0 at the start, which a stage leaves for the next.
    """

    advance: Callable[..., tuple[Any, Any, tuple[Any, ...]]]
    memory: int = 0
    stages: tuple[tuple[float, ...], ...] = ((),)


def _semi_implicit_euler(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    qd = qd + h * system.acceleration(t, q, qd)
    return system.move(q, h, qd), qd, ()


def _rk4(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    w, a, w_sum, a_sum = memory
    c, b, keep, end = stage
    v, at = qd + c * h * a, system.move(q, c * h, w)
    w, a = system.rate(c * h, w, v), system.acceleration(t + c * h, at, v)  # (1)
    w_sum, a_sum = keep * w_sum + b * w, keep * a_sum + b * a  # (2)
    q, qd = system.move(q, end * h, w_sum), qd + end * h * a_sum  # (3)
    return q, qd, (w, a, w_sum, a_sum)


_TABLEAU = (
    (0.0, 1.0, 0.0, 0.0),
    (0.5, 2.0, 1.0, 0.0),
    (0.5, 2.0, 1.0, 0.0),
    (1.0, 1.0, 1.0, 1 / 6),
)

METHODS = {
    "rk4": Integrator(_rk4, memory=4, stages=_TABLEAU),
    "semi_implicit_euler": Integrator(_semi_implicit_euler),
}

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

Dormand and Prince's pair of orders 5 and 4 in the same way, six stages that are kept in memory, the
last of a step the first of the next; besides the step it leaves what the two orders differ by.

Implicit midpoint in total rates, solved by fixed-point iteration, a stage for each (start, end):

    q½ = q ⊞ ½h v;   f = −C(q½, n),   ε at t + ½h, q½, v                                         (4)
    (1 − ½h A) s = ν + ½h ε,   A = (f nᵀ − n fᵀ) / nᵀn                                           (5)
    n ← s,   v ← joint rates of s at q½                                                          (6)
    ν ← 2s − ν,   q ← q ⊞ h v,   q̇ ← joint rates of ν at q                                       (7)

A is skew and A n = f, because C does no work: half the square of ν changes by h εᵀs and by nothing
else, to rounding, after any number of iterations; at the fixed point n = s this is the midpoint
rule.  (5) has a solution in closed form, A being of rank two.  In joint rates the rule is

    v ← q̇ + ½h q̈(t + ½h, q ⊞ ½h v, v);   q ← q ⊞ h v,   q̇ ← 2v − q̇                              (8)

Variational: the motion makes the sum of L_d(q₀, q₁) = h L(q½, v) stationary, the middle q½ as far
from q₀ as from q₁ on every joint (`Joint.to_middle`).  What it carries along is the momentum p:

    p₀(v) = −∂L_d/∂q₀,   p₁(v) = ∂L_d/∂q₁ + A(p − p₀(v))   at q½(q, v), forces at t + ½h         (9)
    v ← v + M(q½)⁻¹ (p − p₀(v)), from v = 2q̇ − v of the step before, to p₀(v) = p               (10)
    q ← q₁(q½, v),   p ← p₁(v)                                                                  (11)
    q̇ = M(q)⁻¹ p                                                                                (12)

The momentum of the whole changes by impulses from outside and by nothing else, to rounding: what
(10) leaves unsolved is carried along by A, from the axes of q₀ to those of q₁.  Where (10) is
solved the map of (q, p) is symplectic, and the error of the energy stays bounded (Marsden and West,
Acta Numerica 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..graph.functions import where

__all__ = ["METHODS", "Integrator", "System", "integrator"]


class System(Protocol):
    """What moves."""

    def acceleration(self, t: Any, q: Any, qd: Any) -> Any:
        """q̈ at a time, in a state."""
        ...

    def continued(self, t: Any, q: Any, qd: Any, before: Any, span: Any) -> Any:
        """The same, near a q̈ before where constraints cannot be followed in such a time span."""
        ...

    def move(self, q: Any, scale: Any, u: Any) -> Any:
        """q ⊞ scale · u."""
        ...

    def rate(self, scale: Any, u: Any, v: Any) -> Any:
        """The rate of x, at x = scale · u, at which q ⊞ x moves with velocity v."""
        ...

    def precise_rate(self, scale: Any, u: Any, v: Any) -> Any:
        """The same, for long steps."""
        ...

    def total_rates(self, q: Any, qd: Any) -> Any:
        """ν."""
        ...

    def joint_rates(self, q: Any, nu: Any) -> Any:
        """q̇."""
        ...

    def coriolis(self, q: Any, nu: Any) -> Any:
        """C of ν̇ + C = ε."""
        ...

    def working(self, t: Any, q: Any, qd: Any) -> Any:
        """ε, gravity and losses included."""
        ...

    def to_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """The middle of a step of twice scale · v that starts at q."""
        ...

    def from_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """The end of a step of twice scale · v whose middle is q."""
        ...

    def momenta(self, q: Any, qd: Any) -> Any:
        """p = M q̇."""
        ...

    def rates(self, q: Any, p: Any) -> Any:
        """M⁻¹ p."""
        ...

    def passing(self, t: Any, h: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any]:
        """Momenta of a step of length h with q and v in its middle: at its start, and at its end
        if it starts with p.
        """
        ...


@dataclass(frozen=True)
class Integrator:
    """One stage of a step, and the numbers of each.

    advance(system, t, h, q, qd, memory, stage) gives the new q, qd and memory: so many vectors of
    size nv which a stage leaves for the next.  begin(system, q, qd) gives the first; they are 0 if
    there is none.
    """

    advance: Callable[..., tuple[Any, Any, tuple[Any, ...]]] = field(repr=False)
    memory: int = 0
    stages: tuple[tuple[float, ...], ...] = ((),)
    begin: Callable[[System, Any, Any], tuple[Any, ...]] | None = field(default=None, repr=False)


def _semi_implicit_euler(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    a = system.continued(t, q, qd, memory[0], h) if memory else system.acceleration(t, q, qd)
    qd = qd + h * a
    return system.move(q, h, qd), qd, (a,) * len(memory)


def _rk4(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    w, a, w_sum, a_sum = memory
    c, b, keep, end = stage
    v, at = qd + c * h * a, system.move(q, c * h, w)
    w, a = system.rate(c * h, w, v), system.continued(t + c * h, at, v, a, h)  # (1)
    w_sum, a_sum = keep * w_sum + b * w, keep * a_sum + b * a  # (2)
    q, qd = system.move(q, end * h, w_sum), qd + end * h * a_sum  # (3)
    return q, qd, (w, a, w_sum, a_sum)


def _midpoint(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    n, v = memory
    start, end = stage
    nu = system.total_rates(q, qd)
    n, v = start * nu + (1 - start) * n, start * qd + (1 - start) * v
    middle = system.move(q, 0.5 * h, v)
    f, eps = -system.coriolis(middle, n), system.working(t + 0.5 * h, middle, v)  # (4)
    s = _turned(0.5 * h, n, f, nu + 0.5 * h * eps)
    v = system.joint_rates(middle, s)  # (6)
    q = system.move(q, end * h, v)
    qd = end * system.joint_rates(q, 2 * s - nu) + (1 - end) * qd  # (7)
    return q, qd, (s, v)


def _turned(a: Any, n: Any, f: Any, b: Any) -> Any:
    """s of (5): (1 − a A) s = b."""
    nn, nf, ff = _dot(n, n), _dot(n, f), _dot(f, f)
    # at rest there is nothing to turn
    a = a / where(nn, nn, 1.0)
    nb, fb = _dot(n, b), _dot(f, b)
    det = 1 + a * a * (nn * ff - nf * nf)
    x = ((1 + a * nf) * nb - a * nn * fb) / det
    y = ((1 - a * nf) * fb + a * ff * nb) / det
    return b + a * (x * f - y * n)


def _variational(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    p, v = memory
    start, end = stage
    v = start * (2 * qd - v) + (1 - start) * v
    middle = system.to_middle(q, 0.5 * h, v)
    first, last = system.passing(t + 0.5 * h, h, middle, v, p)  # (9)
    at = system.from_middle(middle, end * 0.5 * h, v)
    x = system.rates(at, end * last + (1 - end) * (p - first))
    v, qd = v + (1 - end) * x, end * x + (1 - end) * qd  # (10), (12)
    return end * at + (1 - end) * q, qd, (end * last + (1 - end) * p, v)  # (11)


def _momenta(system: System, q: Any, qd: Any) -> tuple[Any, ...]:
    return system.momenta(q, qd), qd


def _dormand_prince(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    w, a, (c, last), here = memory[:6], memory[6:12], stage[:2], stage[8:]
    u, dv = (sum(b * x for b, x in zip(stage[2:8], k, strict=True)) for k in (w, a))
    at, v = system.move(q, h, u), qd + h * dv
    w_now, a_now = system.precise_rate(h, u, v), system.continued(t + c * h, at, v, a[0], h)
    pairs = zip((w, a), (w_now, a_now), strict=True)
    errors = [h * sum(e * x for e, x in zip(_ERROR, (*k, now), strict=True)) for k, now in pairs]
    # the last stage is the first of the next step, where u is 0
    w_now = last * v + (1 - last) * w_now
    w, a = (
        tuple(b * now + (1 - b) * x for b, x in zip(here, k, strict=True))
        for k, now in ((w, w_now), (a, a_now))
    )
    q, qd = last * at + (1 - last) * q, last * v + (1 - last) * qd
    return q, qd, (*w, *a, *errors)


def _first_stage(system: System, q: Any, qd: Any) -> tuple[Any, ...]:
    still = (np.zeros_like(qd),)
    return qd, *still * 5, system.acceleration(0.0, q, qd), *still * 7


def _from_here(memory: int, at: int) -> Callable[[System, Any, Any], tuple[Any, ...]]:
    """Memory at the start: zeros, but for the acceleration."""

    def begin(system: System, q: Any, qd: Any) -> tuple[Any, ...]:
        a = system.acceleration(0.0, q, qd)
        return tuple(a if i == at else np.zeros_like(qd) for i in range(memory))

    return begin


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=-1, keepdims=True)


def _joint_midpoint(
    system: System, t: Any, h: Any, q: Any, qd: Any, memory: tuple[Any, ...], stage: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    (start, end), (v, *before) = stage, memory
    v = start * qd + (1 - start) * v
    now = t + 0.5 * h, system.move(q, 0.5 * h, v), v
    # with as long a time span the iteration converges where constraints are stiffest
    a = system.continued(*now, before[0], 2 * h) if before else system.acceleration(*now)
    v = qd + 0.5 * h * a
    before = (end * a + (1 - end) * x for x in before)
    return system.move(q, end * h, v), qd + end * h * a, (v, *before)  # (8)


# where a step turns the joints of an arm by 0.1 rad, so many leave 1e-12 of the rates to solve
_ITERATIONS = ((1.0, 0.0), *((0.0, 0.0),) * 6, (0.0, 1.0))

_TABLEAU = (
    (0.0, 1.0, 0.0, 0.0),
    (0.5, 2.0, 1.0, 0.0),
    (0.5, 2.0, 1.0, 0.0),
    (1.0, 1.0, 1.0, 1 / 6),
)

# Dormand and Prince, J. Comp. Appl. Math. 6 (1980): c and a of stages 2 to 7
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_WEIGHTS = (
    (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0),
    (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0),
    (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# what the fifth order has more than the fourth
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# where a stage is kept: 2 … 6, and 7 as the first of the next step
_KEPT = tuple(tuple(float(i == j) for j in range(6)) for i in (1, 2, 3, 4, 5, 0))
_STAGES = tuple(
    (c, float(i == 5), *a, *kept)
    for i, (c, a, kept) in enumerate(zip(_NODES, _WEIGHTS, _KEPT, strict=True))
)

METHODS = {
    "rk4": Integrator(_rk4, memory=4, stages=_TABLEAU),
    "semi_implicit_euler": Integrator(_semi_implicit_euler),
    "implicit_midpoint": Integrator(_midpoint, memory=2, stages=_ITERATIONS),
    "joint_midpoint": Integrator(_joint_midpoint, memory=1, stages=_ITERATIONS),
    "adaptive": Integrator(_dormand_prince, memory=14, stages=_STAGES, begin=_first_stage),
    "variational": Integrator(_variational, memory=2, stages=_ITERATIONS, begin=_momenta),
}

# with constraints a stage knows the acceleration before
_CONSTRAINED = {
    "rk4": replace(METHODS["rk4"], begin=_from_here(4, at=1)),
    "semi_implicit_euler": Integrator(_semi_implicit_euler, memory=1, begin=_from_here(1, at=0)),
    "joint_midpoint": Integrator(
        _joint_midpoint, memory=2, stages=_ITERATIONS, begin=_from_here(2, at=1)
    ),
}


def integrator(method: str, constrained: bool) -> Integrator:
    """The stage of a method and its numbers."""
    return (_CONSTRAINED.get(method) if constrained else None) or METHODS[method]

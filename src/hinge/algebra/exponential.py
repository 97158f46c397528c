"""exp and log of rigid motions, and how they change: the groups SO(3) and SE(3), on any scalar.

A twist is (ω; v), and u = ω·ω = θ².  With cₖ(u) = Σ (−u)ʲ/(2j + k)!, which is cos θ, sin θ/θ,
(1 − cos θ)/θ², (θ − sin θ)/θ³, … for k = 0, 1, 2, 3, …,

    J = ∫₀¹ exp(s ω×) ds = 1 + c₂ ω× + c₃ ω×ω×                                                  (1)
    J⁻¹ = 1 − ½ ω× + d ω×ω×,  d = (c₃ − 2 c₄)/(2 c₂) = (1 − ½ θ cot ½θ)/θ²                      (2)

is the left Jacobian of SO(3), exp((ω + δ)×) ≈ exp((J δ)×) exp(ω×), and J v the translation of
exp(ω; v).  Since ad(ω; v) = [ω× 0; v× ω×] is ω× with dual numbers, that of SE(3) is J with them:

    [J 0; Q J],  Q = c₂ v× + c₃ (ω×v× + v×ω×) + 2 ω·v (c₂′ ω× + c₃′ ω×ω×)                      (3)
    cₖ′ = ½ (k cₖ₊₂ − cₖ₊₁)                                                                     (4)

The right Jacobians are those of −ω and −v.  Up to u = 1 the cₖ are series, past that the closed
forms, in which nothing is lost then: values and derivatives are right at every angle, zero too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .rotation import half_turn, skew
from .small import less, where

__all__ = [
    "left_jacobian",
    "left_jacobian_inverse",
    "pose_left_jacobian",
    "pose_left_jacobian_inverse",
    "translation_exp",
    "translation_log",
]

# of a series at u ≤ 1; what is left out is below rounding
_TERMS = 9


def translation_exp(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The translation J v of exp(w; v).  (1)"""
    c2, c3 = _coefficients(w)
    wv = skew(w) @ v
    return v + _times(c2, wv) + _times(c3, skew(w) @ wv)


def translation_log(w: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The v whose exp(w; v) has the translation p, J⁻¹ p for |w| < 2π.  (2)"""
    wp = skew(w) @ p
    return p - 0.5 * wp + _times(_inverse_coefficient(w), skew(w) @ wp)


def left_jacobian(w: np.ndarray) -> np.ndarray:
    """J of SO(3), (3, 3).  (1)"""
    c2, c3 = _coefficients(w)
    return np.eye(3) + _times(c2, skew(w)) + _times(c3, skew(w) @ skew(w))


def left_jacobian_inverse(w: np.ndarray) -> np.ndarray:
    """J⁻¹ of SO(3), (3, 3), for |w| < 2π.  (2)"""
    W = skew(w)
    return np.eye(3) - 0.5 * W + _times(_inverse_coefficient(w), W @ W)


def pose_left_jacobian(V: np.ndarray) -> np.ndarray:
    """[J 0; Q J] of SE(3), (6, 6).  (3)"""
    J, Q = left_jacobian(V[:3]), _coupling(V)
    return np.block([[J, np.zeros((3, 3))], [Q, J]])


def pose_left_jacobian_inverse(V: np.ndarray) -> np.ndarray:
    """[J⁻¹ 0; −J⁻¹ Q J⁻¹ J⁻¹] of SE(3), (6, 6), for |w| < 2π."""
    inverse = left_jacobian_inverse(V[:3])
    return np.block([[inverse, np.zeros((3, 3))], [-inverse @ _coupling(V) @ inverse, inverse]])


def _coupling(V: np.ndarray) -> np.ndarray:
    """Q of (3)."""
    w, v = V[:3], V[3:]
    u, (c2, c3) = w @ w, _coefficients(w)
    near, over = _sides(u)
    c4 = where(near, _series(4, u), (0.5 - c2) * over)
    c5 = where(near, _series(5, u), (1 / 6 - c3) * over)
    W, U, along = skew(w), skew(v), w @ v
    WU = W @ U
    # v×w× is the transpose of w×v×
    rate = _times(along * (2 * c4 - c3), W) + _times(along * (3 * c5 - c4), W @ W)  # (4)
    return _times(c2, U) + _times(c3, WU + WU.T) + rate


def _times(x: Any, A: np.ndarray) -> np.ndarray:
    """x A; scalars of some packages would take the whole array themselves."""
    return np.array([x]) * A


def _coefficients(w: np.ndarray) -> tuple[Any, Any]:
    """c₂ and c₃ of a rotation vector."""
    u, (cosine, sine) = w @ w, half_turn(w)
    near, over = _sides(u)
    c2 = 2 * sine * sine
    return c2, where(near, _series(3, u), (1 - 2 * sine * cosine) * over)


def _inverse_coefficient(w: np.ndarray) -> Any:
    """d of (2)."""
    u, (cosine, sine) = w @ w, half_turn(w)
    near, over = _sides(u)
    series = (_series(3, u) - 2 * _series(4, u)) / (4 * sine * sine)
    return where(near, series, (1 - cosine / (2 * sine)) * over)


def _sides(u: Any) -> tuple[Any, Any]:
    """Whether the series are to be taken, and 1/u where they are not."""
    near = less(u, 1.0)
    return near, 1 / where(near, 1.0, u)


def _series(k: int, u: Any) -> Any:
    """cₖ for u ≤ 1, from its last term on."""
    total: Any = 1.0
    for j in range(_TERMS - 1, 0, -1):
        total = 1 - u * total * (1 / ((2 * j + k - 1) * (2 * j + k)))
    scale = 1.0
    for j in range(2, k + 1):
        scale /= j
    return scale * total

"""Bodies that can exist: the ten numbers of each as a log-Cholesky factor, relative to a start.

Ten numbers are those of some body if and only if its pseudo-inertia

    P = [Σ h; h* m],   Σ = ½ tr(J) 1 − J,                                                       (1)

the second moments of its mass, is positive semidefinite.  With the factor P₀ = L L* of the start,

    P = L T T* L*,   T lower triangular, its diagonal exp(θ)                                    (2)

is positive definite for every θ, of ten numbers; θ = 0 is the start, and θ has no units: a mass
that is a tenth off is a θ of about 0.05.  (C. Rucker and P. Wensing, "Smooth parameterization of
rigid body inertia", 2022; here relative to the start.)
"""

from __future__ import annotations

import numpy as np

from ..algebra.spatial import Inertia
from ..model.parameters import inertia_of
from .information import triangle

__all__ = ["BACK", "Bodies", "inertia_from"]

_LOWER = np.tril_indices(4)
_DIAGONAL = _LOWER[0] == _LOWER[1]
# second moments below this, beside those of a ball of the same mass, are none that a body has
_LEAST = 1e-6
# a body of which nothing is known: this part of the robot's mass, within this radius in m
_PART, _RADIUS = 1e-3, 0.05


def _forms() -> tuple[np.ndarray, np.ndarray]:
    """(10, 4, 4) each: P = Σ πᵢ there[i], and πᵢ = ⟨back[i], P⟩."""
    there, back = np.zeros((2, 10, 4, 4))
    there[0, 3, 3] = back[0, 3, 3] = 1.0
    for i in range(3):
        there[1 + i, i, 3] = there[1 + i, 3, i] = 1.0
        back[1 + i, i, 3] = back[1 + i, 3, i] = 0.5
    pairs = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
    for n, (i, j) in enumerate(pairs, 4):
        there[n, i, j] = there[n, j, i] = -1.0
        back[n, i, j] = back[n, j, i] = -0.5
        if i == j:
            there[n, :3, :3] += 0.5 * np.eye(3)
            back[n, :3, :3] += np.eye(3)
            back[n, i, i] = 0.0
    return there, back


_THERE, BACK = _forms()


class Bodies:
    """Maps θ, ten numbers per body, to π, ten numbers per body that some body has."""

    def __init__(self, start: np.ndarray) -> None:
        """start: (n, 10), made such as bodies have if they are not."""
        total = start[:, 0].sum()
        self.factors = np.array([_factor(p, total) for p in start]).reshape(-1, 4, 4)
        self.start = self.values(np.zeros(10 * len(start)))

    def values(self, theta: np.ndarray) -> np.ndarray:
        """π, (n, 10)."""
        L = self.factors @ self._inner(theta)
        return np.einsum("kab,nab->nk", BACK, L @ np.swapaxes(L, -1, -2))

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """∂π/∂θ of each body, (n, 10, 10)."""
        T = self._inner(theta)
        L, out = self.factors @ T, np.empty((len(T), 10, 10))
        for i, (a, b) in enumerate(zip(*_LOWER, strict=True)):
            dT = np.zeros_like(T)
            dT[:, a, b] = T[:, a, b] if a == b else 1.0
            dP = self.factors @ dT @ np.swapaxes(L, -1, -2)
            out[:, :, i] = 2 * np.einsum("kab,nab->nk", BACK, dP)
        return out

    def _inner(self, theta: np.ndarray) -> np.ndarray:
        theta = theta.reshape(-1, 10)
        T = np.zeros((len(theta), 4, 4))
        T[:, _LOWER[0], _LOWER[1]] = np.where(_DIAGONAL, np.exp(theta), theta)
        return T


def inertia_from(numbers: np.ndarray) -> Inertia:
    """The body with these ten numbers."""
    M = inertia_of(numbers)
    com = M.h / M.mass if M.mass else np.zeros(3)
    about = M.J - M.mass * (com @ com * np.eye(3) - np.outer(com, com))
    return Inertia(float(M.mass), com, about)


def _factor(numbers: np.ndarray, total: float) -> np.ndarray:
    """L with P = L L*; what no body has is made as small as a body may have it."""
    P = np.einsum("k,kab->ab", numbers, _THERE)
    if P[3, 3] <= 0:
        P = _PART * max(total, 1.0) * np.diag([_RADIUS**2] * 3 + [1.0])
    com = P[:3, 3] / P[3, 3]
    sizes, axes = np.linalg.eigh(P[:3, :3] - P[3, 3] * np.outer(com, com))
    least = _LEAST * P[3, 3] * _RADIUS**2
    root = np.zeros((4, 4))
    root[:3, :3] = axes * np.sqrt(np.maximum(sizes, least))
    root[:3, 3], root[3, 3] = np.sqrt(P[3, 3]) * com, np.sqrt(P[3, 3])
    # any root of P will do; the triangular one from its QR
    R = triangle(root.T)
    return R.T * np.sign(np.diag(R))

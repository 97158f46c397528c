"""The gyroscopic matrix M̂ of a moving inertia, kept as twelve numbers.  Paper L, section 2.

M̂ = ½(V×* M − M V× − Q[MV]) makes M̂ V the gyroscopic force of a body that moves with V = (ω; u),
and 2 M̂ δV its change.  About any origin its right half is zero and its lower half is skew:

    M̂ = [ A    0 ]     A = ω×(J − ½ tr(J) 1) − h×u×,     P = m u + ω×h                        (1)
        [ −P×  0 ]

P is the momentum.  Both survive a change of frame and a sum over bodies, so that the composite M̂
of many bodies has the same form:  A ← R A Rᵀ − p×(RP)×,  P ← R P                               (2)
"""

from __future__ import annotations

import numpy as np

from ...algebra.rotation import skew, turned_matrix, turned_vector
from ...algebra.small import scaled_identity
from ...algebra.spatial import ForceTransfer, SpatialInertia, congruence

__all__ = ["Gyroscopic", "gyroscopic"]


class Gyroscopic:
    """M̂ of a body or of many, as A (3, 3) and P (3,)."""

    __slots__ = ("A", "P")

    def __init__(self, A: np.ndarray, P: np.ndarray) -> None:
        self.A, self.P = A, P

    @classmethod
    def zero(cls) -> Gyroscopic:
        """Of nothing."""
        return cls(np.zeros((3, 3)), np.zeros(3))

    @property
    def numbers(self) -> np.ndarray:
        """All numbers, (12,): A, P."""
        return np.concatenate([self.A.ravel(), self.P])

    @classmethod
    def of_numbers(cls, x: np.ndarray) -> Gyroscopic:
        """The matrix with these `numbers`."""
        return cls(x[:9].reshape(3, 3), x[9:])

    @property
    def left(self) -> np.ndarray:
        """The left half, (6, 3): all that is not zero."""
        return np.concatenate([self.A, -skew(self.P)])

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        """M̂ (w; ·) for the angular part w (3,) or (3, n) of motions: forces (6,) or (6, n)."""
        return np.concatenate([self.A @ w, -(skew(self.P) @ w)])

    def adjoint(self, H: np.ndarray) -> np.ndarray:
        """The moments, (3, n), of M̂ᵀ H for motions H (6, n); the forces are zero."""
        return self.A.T @ H[:3] + skew(self.P) @ H[3:]

    def __add__(self, other: Gyroscopic) -> Gyroscopic:
        return Gyroscopic(self.A + other.A, self.P + other.P)


def gyroscopic(M: SpatialInertia, V: np.ndarray) -> Gyroscopic:
    """M̂ of an inertia that moves with V; linear in V."""
    w, u = V[:3], V[3:]
    lifted = M.J - scaled_identity(0.5 * np.trace(M.J))
    A = skew(w) @ lifted - _product(M.h, u)
    return Gyroscopic(A, M.mass * u - M.h_cross @ w)  # (1)


@congruence.register
def _(M: Gyroscopic, phi: ForceTransfer) -> Gyroscopic:
    if phi.turn is not None:
        base, i, c, s = phi.turn
        turned = Gyroscopic(turned_matrix(M.A, i, c, s), turned_vector(M.P, i, c, s))
        return congruence(turned, base)
    P = phi.R @ M.P
    return Gyroscopic(phi.R @ M.A @ phi.R.T - _product(phi.p, P), P)  # (2)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a×b× = b aᵀ − (a·b) 1."""
    outer = np.outer(b, a)
    return outer - scaled_identity(np.trace(outer))

"""Linear algebra on batches of matrices of numbers that NumPy does not have."""

from __future__ import annotations

import numpy as np

__all__ = ["expm"]

# numerator of the Padé approximant of order 13, and the largest norm it is good for (Higham 2005)
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_NORM = 5.371920351148152


def expm(A: np.ndarray) -> np.ndarray:
    """e^A of square matrices (…, n, n), by scaling and squaring of a Padé approximant.

    Each matrix is halved as often as it needs; one that is not finite has NaN for its exponential.
    Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
    """
    norm = np.abs(A).sum(axis=-2).max(axis=-1, initial=0.0)
    finite = np.isfinite(norm)
    large = np.where(finite, np.maximum(norm, _NORM), _NORM)
    halvings = np.ceil(np.log2(large / _NORM))[..., None, None]
    A = np.where(finite[..., None, None], A, 0.0) / 2.0**halvings
    b, one = _PADE, np.eye(A.shape[-1])
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A2 @ A4
    odd = (
        A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * one
    )
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2
    U, V = A @ odd, even + b[0] * one
    X = np.linalg.solve(V - U, V + U)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(int(halvings.max(initial=0.0))):
            X = np.where(i < halvings, X @ X, X)
    sound = np.isfinite(X).all(axis=(-2, -1)) & finite
    return np.where(sound[..., None, None], X, np.nan)

"""What data say about parameters: the triangular root of their normal equations, added up.

Rows (Y | τ), each in units of its noise, are kept as the triangle R of their QR factorisation: as
exact as the rows themselves, of constant size, and more rows, or the loss of old ones, cost the
same however many there were.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Information", "triangle"]


def triangle(rows: np.ndarray) -> np.ndarray:
    """R of the QR factorisation."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


class Information:
    """min ‖A π − b‖² has the solution and the value that all rows together have."""

    def __init__(self, parameters: int) -> None:
        self.triangle = np.zeros((0, parameters + 1))
        self.rows = 0

    def add(self, Y: np.ndarray, tau: np.ndarray, forgetting: float = 1.0) -> None:
        """More rows, (…, parameters) and (…,), in units of noise; those before count less."""
        new = np.concatenate([Y, tau[..., None]], axis=-1).reshape(-1, self.triangle.shape[1])
        stacked = np.concatenate([np.sqrt(forgetting) * self.triangle, new])
        self.triangle = triangle(stacked)
        self.rows += len(new)

    @property
    def A(self) -> np.ndarray:
        """A."""
        return self.triangle[:, :-1]

    @property
    def b(self) -> np.ndarray:
        """b."""
        return self.triangle[:, -1]

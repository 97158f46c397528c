"""Least squares over bodies that can exist: Levenberg and Marquardt's steps in θ.

    min  ‖A π(θ) − b‖² + ‖θ − θ₀‖² / spread²                                                    (1)

π(θ): ten numbers per body through its log-Cholesky factor, numbers of joints as they are, none
below zero.  θ₀ is the start: what the data do not show stays as it is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .bodies import Bodies

__all__ = ["Problem", "solve"]

_STEPS = 200
# a step that makes the residual smaller by no more than this is the last
_ENOUGH = 1e-9
# steps so short that they lead nowhere
_STUCK = 1e12


@dataclass(frozen=True)
class Problem:
    """What is to be found.

    bodies: the start; joints: the start of the numbers of joints, (n,), and scales, how much of
    each is a θ of 1; free: which entries of θ are not held; spread: of the prior, in θ.
    """

    bodies: Bodies
    joints: np.ndarray
    scales: np.ndarray
    free: np.ndarray
    spread: float

    @property
    def start(self) -> np.ndarray:
        """θ₀."""
        return np.concatenate([np.zeros(self.bodies.start.size), self.joints / self.scales])

    def values(self, theta: np.ndarray) -> np.ndarray:
        """π(θ)."""
        n = self.bodies.start.size
        return np.concatenate([self.bodies.values(theta[:n]).ravel(), theta[n:] * self.scales])

    def slopes(self, A: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """A ∂π/∂θ."""
        n = self.bodies.start.size
        blocks = A[:, :n].reshape(len(A), n // 10, 10)
        inner = np.einsum("rni,nij->rnj", blocks, self.bodies.slopes(theta[:n]))
        return np.concatenate([inner.reshape(len(A), n), A[:, n:] * self.scales], axis=1)


def solve(
    problem: Problem, A: np.ndarray, b: np.ndarray, guess: np.ndarray | None = None
) -> np.ndarray:
    """θ of the smallest residual; guess: where to begin, if not at the start."""
    start, damping = problem.start, 1e-4
    theta = start if guess is None else guess
    joints = np.arange(len(theta)) >= problem.bodies.start.size

    def residual(at: np.ndarray) -> np.ndarray:
        return np.concatenate([A @ problem.values(at) - b, (at - start) / problem.spread])

    r = residual(theta)
    for _ in range(_STEPS):
        J = np.concatenate([problem.slopes(A, theta), np.eye(len(theta)) / problem.spread])
        free = problem.free & ~(joints & (theta <= 0) & (J.T @ r > 0))
        to, new = theta, r
        while damping < _STUCK:
            to = theta + _step(J[:, free], r, damping, free)
            to[joints] = np.maximum(to[joints], 0.0)
            new = residual(to)
            if new @ new <= r @ r:
                break
            damping *= 4
        damping = max(damping / 10, 1e-12)
        gain = r @ r - new @ new
        if gain >= 0:
            theta, r = to, new
        if gain <= _ENOUGH * (r @ r):
            break
    return theta


def _step(J: np.ndarray, r: np.ndarray, damping: float, free: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(J, axis=0)
    stacked = np.concatenate([J, np.sqrt(damping) * np.diag(size)])
    out = np.zeros(len(free))
    Q, R = np.linalg.qr(stacked)
    out[free] = np.linalg.solve(R, -Q[: len(r)].T @ r)
    return out

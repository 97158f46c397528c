"""Linear–quadratic control: the gains that cost least, about a point or along a motion.

    ẋ = A x + B u,    min ∫ xᵀQx + uᵀRu dt :   AᵀP + PA − PBR⁻¹BᵀP + Q = 0,   K = R⁻¹BᵀP         (1)
    x ← A x + B u,    min Σ xᵀQx + uᵀRu    :   P = Q + Aᵀ(P⁻¹ + BR⁻¹Bᵀ)⁻¹A,
                                               K = (R + BᵀPB)⁻¹BᵀPA                             (2)

u = −K x.  (2) is solved by doubling: P of 1, 2, 4, 8, … steps, with W = 1 + G H,

    A ← A W⁻¹ A,   G ← G + A W⁻¹ G Aᵀ,   H ← H + Aᵀ H W⁻¹ A,    from A, G = BR⁻¹Bᵀ, H = Q        (3)

and H → P.  A Cayley transform turns (1) into (2): with A_γ = A − γ1 and W = A_γᵀ + H A_γ⁻¹ G

    A₀ = 1 + 2γ W⁻ᵀ,   G₀ = 2γ A_γ⁻¹ G W⁻¹,   H₀ = 2γ W⁻¹ H A_γ⁻¹                                (4)

Along a motion the equation (2) is run backward from its end, with A and B of every step.

x = (q ⊟ q̂, q̇ − q̇̂) along the joints' tangents, u = τ − τ̂ of the driven joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SingularError
from ..robot import Robot, check_robot
from ..runtime.arguments import broadcast, single
from ..runtime.check import check_number
from .law import Feedback, within

__all__ = ["Gains", "LinearFeedback", "Tracking", "lqr", "riccati", "tracking"]

_DOUBLINGS = 60
_LEFT = 1e-13  # of P: what another doubling may still change


class Gains(NamedTuple):
    """u = −K x with K (m, n), and the cost xᵀP x, (n, n), of what is still to come."""

    K: np.ndarray
    P: np.ndarray


class LinearFeedback(Feedback):
    """τ = τ̂ − K (q ⊟ q̂, q̇), within the effort limits.

    q: (nq,) and tau: (nv,), the point that it is for; gains: (nv, 2 nv); cost: (2 nv, 2 nv).
    """

    def __init__(
        self, robot: Robot, q: np.ndarray, tau: np.ndarray, gains: np.ndarray, cost: np.ndarray
    ) -> None:
        self.robot, self.q, self.tau, self.gains, self.cost = robot, q, tau, gains, cost

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        x = np.concatenate([self.robot.alg.difference(self.q, q), qd])
        return self.tau - self.gains @ x


def lqr(
    robot: Robot,
    q: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    tau: ArrayLike | None = None,
    dt: float | None = None,
    active: Sequence[str] | ArrayLike | None = None,
) -> LinearFeedback:
    """The law that holds a robot at rest at q, (nq,), at the least cost.

    Q: (2 nv, 2 nv) or its diagonal, of positions and rates; R: of the driven forces, likewise, or
    one number.  tau: (nv,), what holds it there, by default the forces of gravity.
    dt: how long each force is held, None for a law in continuous time.
    active: the driven joints, names or a mask; None for all.
    """
    where = f"lqr of {check_robot('lqr', robot).name!r}"
    nv, still = robot.nv, np.zeros(robot.nv)
    goal = single(where, [robot._argument("q", q)])["q"]
    hold = robot.gravity_forces(goal) if tau is None else tau
    hold = single(where, [robot._argument("tau", hold)])["tau"]
    driven = np.flatnonzero(np.ones(nv) if active is None else robot.mechanism.driven(active))
    _check_rest(where, robot, goal, hold, driven)
    A, B = robot.linearize(goal, still, hold, dt)
    found = riccati(A, B[:, driven], Q, R, discrete=dt is not None)
    gains = np.zeros((nv, 2 * nv))
    gains[driven] = found.K
    return LinearFeedback(robot, goal, hold, gains, found.P)


class Tracking(Feedback):
    """τ = τ̂ − K (q ⊟ q̂, q̇ − q̇̂) of the step that t is in, within the effort limits.

    q: (T + 1, nq), qd: (T + 1, nv), tau: (T, nv), the motion, in steps of dt; gains: (T, nv, 2 nv).
    As a law it takes numbers: which step it is cannot be traced.
    """

    def __init__(
        self, robot: Robot, dt: float, motion: Sequence[np.ndarray], K: np.ndarray
    ) -> None:
        self.robot, self.dt, self.gains = robot, dt, K
        self.q, self.qd, self.tau = motion

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        i = min(max(int(t / self.dt + 1e-9), 0), len(self.tau) - 1)
        off = self.robot.difference(self.q[i], q)
        return self.tau[i] - self.gains[i] @ np.concatenate([off, qd - self.qd[i]])

    def __call__(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        """The joint forces, (nv,), of one sample."""
        return within(self.robot, self._force(t, np.asarray(q), np.asarray(qd)))


def tracking(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    dt: float,
    Q: ArrayLike,
    R: ArrayLike,
    active: Sequence[str] | ArrayLike | None = None,
) -> Tracking:
    """The law that brings a robot back to a motion at the least cost: q (T + 1, nq), tau (T, nv).

    dt: of a step, in which a force is held.  Q, R, active: as in `lqr`; Q counts at the end, too.
    """
    where = f"tracking of {check_robot('tracking', robot).name!r}"
    named = {"q": q, "qd": qd, "tau": tau}
    motion = [broadcast(where, [robot._argument(n, x)])[n] for n, x in named.items()]
    steps = len(motion[2]) if motion[2].ndim == 2 else 0
    if not steps or [len(x) for x in motion] != [steps + 1, steps + 1, steps]:
        raise ArgumentError(
            f"{where}: q, qd and tau have shapes {', '.join(str(x.shape) for x in motion)}; "
            f"expected (T + 1, {robot.nq}), (T + 1, {robot.nv}), (T, {robot.nv})"
        )
    driven = np.flatnonzero(np.ones(robot.nv) if active is None else robot.mechanism.driven(active))
    held = check_number(where, "dt", dt, above=0)
    A, B = robot.linearize(motion[0][:-1], motion[1][:-1], motion[2], held)
    P, r = _weight("Q", Q, 2 * robot.nv, 0.0), _weight("R", R, len(driven), np.finfo(float).tiny)
    cost, gains = P, np.zeros((steps, robot.nv, 2 * robot.nv))
    for i in range(steps - 1, -1, -1):
        a, b = A[i], B[i][:, driven]
        K = np.linalg.solve(r + b.T @ P @ b, b.T @ P @ a)
        P = cost + a.T @ P @ (a - b @ K)  # (2)
        P, gains[i, driven] = (P + P.T) / 2, K
    return Tracking(robot, held, motion, gains)


def riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, discrete: bool = True) -> Gains:
    """The gains of x ← A x + B u (2), or of ẋ = A x + B u (1), for costs Q and R.

    A: (n, n), B: (n, m); Q and R: matrices, their diagonals, or one number.
    """
    a, b, q, r = _checked(A, B, Q, R)
    G = b @ np.linalg.solve(r, b.T)
    with np.errstate(all="ignore"):
        P = _doubled(a, G, q) if discrete else _doubled(*_cayley(a, G, q))
    if np.isfinite(P).all():
        step = a if discrete else np.eye(len(a))
        K = np.linalg.solve(r + discrete * (b.T @ P @ b), b.T @ P @ step)
        modes = np.linalg.eigvals(a - b @ K)
        if np.abs(modes).max() < 1 if discrete else modes.real.max() < 0:
            return Gains(K, P)
    raise SingularError(
        "riccati: no gains make this stable: a mode that grows is out of reach of the inputs, "
        "or costs nothing; drive other joints, or give every state a cost"
    )


def _doubled(A: np.ndarray, G: np.ndarray, H: np.ndarray) -> np.ndarray:
    """P of (2), by (3)."""
    for _ in range(_DOUBLINGS):
        if not (np.isfinite(A).all() and np.isfinite(G).all() and np.isfinite(H).all()):
            return np.full_like(H, np.nan)
        W = np.eye(len(A)) + G @ H
        left, right = np.linalg.solve(W, A), np.linalg.solve(W, G)
        new = H + A.T @ H @ left
        A, G, change = A @ left, G + A @ right @ A.T, np.abs(new - H).max()
        G, H = (G + G.T) / 2, (new + new.T) / 2
        if change <= _LEFT * np.abs(H).max():
            break
    return H


def _cayley(A: np.ndarray, G: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, ...]:
    """A₀, G₀, H₀ of (4)."""
    one, gamma = np.eye(len(A)), 1.1 * max(np.linalg.norm(A, 1), 1e-3)
    shifted = np.linalg.inv(A - gamma * one)
    W = np.linalg.inv((A - gamma * one).T + H @ shifted @ G)
    return one + 2 * gamma * W.T, 2 * gamma * shifted @ G @ W, 2 * gamma * W @ H @ shifted


def _checked(A: Any, B: Any, Q: Any, R: Any) -> tuple[np.ndarray, ...]:
    a, b = np.asarray(A, float), np.asarray(B, float)
    n = len(a)
    if a.shape != (n, n) or b.ndim != 2 or len(b) != n or not b.size:
        raise ArgumentError(
            f"riccati: A has shape {a.shape} and B {b.shape}; expected (n, n) and (n, m)"
        )
    return a, b, _weight("Q", Q, n, 0.0), _weight("R", R, b.shape[1], np.finfo(float).tiny)


def _weight(name: str, value: Any, n: int, least: float) -> np.ndarray:
    """A symmetric matrix from a matrix, a diagonal or a number, whose eigenvalues are enough."""
    x = np.asarray(value, float)
    if x.ndim < 2 and x.shape in ((), (n,)):
        x = np.diag(np.broadcast_to(x, (n,)))
    good = x.shape == (n, n) and np.isfinite(x).all() and np.allclose(x, x.T, rtol=1e-9)
    rounding = 1e-12 * np.abs(x).max() if good and not least else 0.0
    if not good or np.linalg.eigvalsh(x).min() < least - rounding:
        raise ArgumentError(
            f"riccati: {name} is {value!r}; expected a number, {n} of them or a symmetric "
            f"({n}, {n}), {'positive' if least else 'not negative'}"
        )
    return (x + x.T) / 2


def _check_rest(
    where: str, robot: Robot, q: np.ndarray, tau: np.ndarray, driven: np.ndarray
) -> None:
    """The robot stays at q under tau, and the joints that are not driven have no part in it."""
    needed = robot.gravity_forces(q) - robot.passive_forces(q, np.zeros(robot.nv))
    scale = 1e-6 * (1 + np.abs(needed).max())
    idle = np.setdiff1d(np.arange(robot.nv), driven)
    if np.abs(tau - needed).max() > scale or np.abs(tau[idle]).max(initial=0.0) > scale:
        raise ArgumentError(
            f"{where}: at q the robot does not stay at rest: it takes {needed.tolist()}, tau is "
            f"{tau.tolist()}, driven are the DoF {driven.tolist()}; give a q where they suffice"
        )

"""Kinematics of bodies and frames (paper F, part 2; math §1.5, §1.7, §3).

    outward   V(k) = φ*(p,k) V(p) + H*(k) q̇(k)
              α(k) = φ*(p,k) α(p) + H*(k) q̈(k) + a(k),   a(k) = V(k) × H*(k) q̇(k) + Ḣ*(k) q̇(k)
    inward    X(p) = X(p,k) X(k), the frame as seen from every body between it and the ground
    outward   J(k) = φ*(k,frame) H*(k), in the reference that X(0) tells

Velocities, accelerations and Jacobians of a frame come in one of three references:

    "body"      the frame's own axes and origin
    "aligned"   the world's axes, the frame's origin (the velocity of a point, as one measures it)
    "world"     the world's axes and origin

An acceleration is always the time derivative of the velocity in the same reference, so that it is
J q̈ + J̇ q̇ with the Jacobian of that reference.  All sums stay between neighbouring frames: a robot
10 km away loses no digits in its own axes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..algebra.rotation import skew
from ..algebra.spatial import Transform, cross_motion
from ..errors import ArgumentError
from ..model.mechanism import Frame, Mechanism
from ..model.protocol import Descents
from .declare import algorithm

__all__ = [
    "Reference",
    "frame_acceleration",
    "frame_pose",
    "frame_velocity",
    "jacobian",
    "poses",
    "velocity_product_acceleration",
]

Reference = Literal["aligned", "body", "world"]


@algorithm(result="poses")
def poses(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """X_WB of every body: (n_bodies, 4, 4), in the order of `body_names`.  O(N)."""
    return np.array([X.matrix for X in _body_poses(mech, q)[1:]]).reshape(-1, 4, 4)


@algorithm(result="pose")
def frame_pose(mech: Mechanism, q: np.ndarray, frame: str) -> np.ndarray:
    """X_WF of one frame: (4, 4).  O(depth)."""
    return _frame_pose(mech, q, mech.frame(frame)).matrix


@algorithm(loops=True, result="J")
def jacobian(
    mech: Descents, q: np.ndarray, frame: str, reference: Reference = "aligned"
) -> np.ndarray:
    """J (6, nv): the frame moves with J q̇, angular part first.  O(depth)."""
    F = mech.frame(frame)
    H, phi = mech.H(q), mech.phi(q)
    X, J = mech.slots(2)
    X[F.body] = F.placement
    for p, k in mech.ancestors(F.body):
        X[p] = phi[k].pose @ X[k]
    for p, k in mech.descent(F.body):
        J[k] = _expressed(X[k].transfer.T @ H[k].T, X[p], reference).T
        # X(0) goes along
        X[k] = X[p]
    return mech.join_descent(F.body, J, 6)


@algorithm(result="velocity")
def frame_velocity(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, frame: str, reference: Reference = "aligned"
) -> np.ndarray:
    """The velocity (ω; v) of a frame: (6,).  O(N)."""
    F = mech.frame(frame)
    V, _ = _motion(mech, q, qd, np.zeros(mech.nv))
    return _expressed(F.transfer.T @ V[F.body], _frame_pose(mech, q, F), reference)


@algorithm(result="acceleration")
def frame_acceleration(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    frame: str,
    reference: Reference = "aligned",
) -> np.ndarray:
    """The time derivative of `frame_velocity` in the same reference: (6,).  O(N).

    "body" and "world" are spatial accelerations; "aligned" is (ω̇; p̈), what an accelerometer at the
    frame's origin feels but for gravity.
    """
    F = mech.frame(frame)
    V, alpha = _motion(mech, q, qd, qdd)
    velocity = F.transfer.T @ V[F.body]
    acceleration = F.transfer.T @ alpha[F.body]
    if reference == "aligned":
        turning = skew(velocity[:3]) @ velocity[3:]
        acceleration = acceleration + np.concatenate([np.zeros(3), turning])
    return _expressed(acceleration, _frame_pose(mech, q, F), reference)


@algorithm()
def velocity_product_acceleration(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, frame: str, reference: Reference = "aligned"
) -> np.ndarray:
    """J̇ q̇, the acceleration of a frame when q̈ = 0: (6,).  O(N)."""
    return frame_acceleration(mech, q, qd, np.zeros(mech.nv), frame, reference)


def _motion(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """V(k) and α(k) of every body, in body axes."""
    H, phi, H_rate = mech.H(q), mech.phi(q), mech.H_rate(q, qd)
    qd_, qdd_ = mech.rates(qd), mech.rates(qdd)
    V, alpha = mech.slots(2)
    for p, k in mech.outward():
        W = H[k].T @ qd_[k]
        V[k] = phi[k].T @ V[p] + W
        a = cross_motion(V[k], W) + H_rate[k].T @ qd_[k]
        alpha[k] = phi[k].T @ alpha[p] + H[k].T @ qdd_[k] + a
    return V, alpha


def _body_poses(mech: Mechanism, q: np.ndarray) -> list[Transform]:
    phi = mech.phi(q)
    X = mech.filled(lambda k: Transform())
    for p, k in mech.outward():
        X[k] = X[p] @ phi[k].pose
    return X


def _frame_pose(mech: Mechanism, q: np.ndarray, F: Frame) -> Transform:
    phi = mech.phi(q)
    X = F.placement
    for _, k in mech.ancestors(F.body):
        X = phi[k].pose @ X
    return X


def _expressed(V: np.ndarray, X_WF: Transform, reference: Reference) -> np.ndarray:
    """A motion given in the frame's own axes and origin, in the reference asked for."""
    if reference == "body":
        return V
    R, p = X_WF.rotation, X_WF.translation
    aligned = np.concatenate([R @ V[:3], R @ V[3:]])
    if reference == "aligned":
        return aligned
    if reference == "world":
        shift = skew(p) @ aligned[:3]
        return aligned + np.concatenate([np.zeros_like(shift), shift])
    raise ArgumentError(
        f"reference is {reference!r}; choose 'aligned' (world axes at the frame's origin), 'body' "
        f"(the frame's axes and origin) or 'world' (the world's axes and origin)"
    )

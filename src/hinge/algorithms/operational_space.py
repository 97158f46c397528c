"""Operational space: the inertia that frames have when pushed.  Papers L §4 and D §6; math §6.

Forces F on frames reach the joints through ψ, in which every joint gives way; with z = ψ B F

    inward    z(k) = Σ φ(k,c) (z(c) − G(c) H(c) z(c)) + B(k)                                    (1)
              Λ⁻¹ = B* Ω B = Σ (H(k) z(k))* D⁻¹(k) (H(k) z(k))                                  (2)

for unit forces F: no mass matrix is formed, and no Jacobian.

Λ exists where the rows of J are independent.  Row j is at an angle θ to the others, in the metric
M⁻¹, and whatever its unit

              1/sin²θ(j) = (Λ⁻¹)(j,j) Λ(j,j)                                                    (3)

Λ is lost where that is beyond what the rounding of Λ⁻¹ leaves, and where a row is nothing but
rounding beside those of the same unit, which leaves the square of it in (Λ⁻¹)(j,j).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import inverse_spd, mirror_lower, solve_spd, sqrt
from ..algebra.spatial import ForceTransfer, congruence
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .declare import algorithm
from .kinematics import Reference
from .riccati import released

__all__ = [
    "OperationalInertia",
    "operational_space_inertia",
    "operational_space_inertia_inverse",
    "operational_space_inertia_margin",
    "reach",
]


class OperationalInertia(NamedTuple):
    """Λ (6 f, 6 f) and how far it is from being lost (1 + 6 f,): NaN where it is."""

    inertia: np.ndarray
    margin: np.ndarray


@algorithm()
def operational_space_inertia(
    mech: Mechanism,
    q: np.ndarray,
    frames: str | Sequence[str],
    reference: Reference = "aligned",
) -> np.ndarray:
    """Λ, (6 f, 6 f): f frames pushed with Λ a accelerate with a, from rest and without gravity.

    There is none where the frames cannot move in every direction, and then the numbers mean
    nothing: see `operational_space_inertia_margin`.  O(N f²) and an inverse.
    """
    return inverse_spd(operational_space_inertia_inverse(mech, q, frames, reference))


@algorithm()
def operational_space_inertia_margin(
    mech: Mechanism,
    q: np.ndarray,
    frames: str | Sequence[str],
    reference: Reference = "aligned",
    rounding: float = 1e-14,
) -> OperationalInertia:
    """Λ and roots of what is left to the bounds of (3), rounding being the relative one of Λ⁻¹."""
    inverse = operational_space_inertia_inverse(mech, q, frames, reference)
    inertia = inverse_spd(inverse)
    rows = np.diagonal(inverse)
    lost = rounding * rows * np.diagonal(inertia)  # (3)
    kinds = rows.reshape(-1, 2, 3)
    left = kinds - rounding**2 * kinds.sum(axis=(0, 2)).reshape(2, 1)
    return OperationalInertia(inertia, sqrt(np.array([1 - lost @ lost, *left.ravel()])))


@algorithm(independent_joints=True)
def operational_space_inertia_inverse(
    mech: Mechanism,
    q: np.ndarray,
    frames: str | Sequence[str],
    reference: Reference = "aligned",
) -> np.ndarray:
    """Λ⁻¹ = J M⁻¹ Jᵀ, (6 f, 6 f): the accelerations of f frames by unit forces.  O(N f²)."""
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    H, phi = mech.H(q), mech.phi(q)
    P = mech.filled(lambda k: mech.M[k].matrix)
    z = _unit_forces(mech, phi, names, reference)
    out: Any = np.zeros((6 * len(names), 6 * len(names)))
    for p, k in mech.inward():
        D, G, P_plus = released(P[k], H[k], mech.armature[k], mech.least[k])
        P[p] = P[p] + congruence(P_plus, phi[k])
        eps = H[k] @ z[k]
        z[p] = z[p] + phi[k] @ (z[k] - G @ eps)  # (1)
        out = out + eps.T @ solve_spd(D, eps)  # (2)
    return mirror_lower(out)


def _unit_forces(
    mech: Mechanism, phi: list[Any], names: tuple[str, ...], reference: Reference
) -> list[np.ndarray]:
    """B(k): a unit force of each kind on each frame, on the body that carries it."""
    columns = []
    for name in names:
        body, transfer = reach(mech, phi, name, reference)
        at = transfer @ np.eye(6)
        columns.append([at if k == body else np.zeros((6, 6)) for k in range(len(mech.bodies))])
    return [np.hstack(parts) for parts in zip(*columns, strict=True)]


def reach(
    mech: Mechanism, phi: list[Any], frame: str, reference: Reference
) -> tuple[int, ForceTransfer]:
    """The body that carries a frame, and φ(body, frame) for forces given in the reference."""
    place = mech.frame(frame)
    if reference not in ("aligned", "body", "world"):
        raise ArgumentError(
            f"reference is {reference!r} for frame {frame!r}; expected 'aligned', 'body' or 'world'"
        )
    if reference == "body":
        return place.body, place.transfer
    R, p = np.eye(3), np.zeros(3)
    for _, k in mech.ancestors(place.body):
        R, p = phi[k].R @ R, phi[k].R @ p + phi[k].p
    at = place.placement.translation if reference == "aligned" else -R.T @ p
    return place.body, ForceTransfer(R.T, at)

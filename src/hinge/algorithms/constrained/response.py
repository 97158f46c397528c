"""What constraints feel of an articulated mechanism, and what their forces do to it.  math §6.

Unit forces along the rows of K ride inward with the articulated inertias of `riccati.py`, beside
the forces z that the motion at q̈ = 0 needs and does not get (`forward_dynamics.py`):

    inward    Z(k) = Σ φ(k,c) (Z(c) − G(c) E(c)) + B(k),   E(k) = H(k) Z(k)                     (1)
              z(k) = Σ φ(k,c) (z(c) + G(c) ε(c)) + f̂(k),   ε(k) = τ(k) − H(k) z(k)              (2)
              A = K M⁻¹ Kᵀ = Σ E*(k) D⁻¹(k) E(k)                                                (3)
              K q̈_free = Σ E*(k) D⁻¹(k) ε(k)                                                    (4)
    outward   α⁺(k) = φ*(p,k) α(p),   α(0) = 0                                                  (5)
              q̈(k) = D⁻¹(k) (ε(k) + E(k) λ) − G*(k) α⁺(k)                                       (6)
              α(k) = α⁺(k) + H*(k) q̈(k)                                                         (7)

No mass matrix is formed, and no Jacobian; the columns of a constraint exist on the way from its
frames to the ground and nowhere else.  (4) is the acceleration along the rows before anything is
swept outward, so that one outward sweep gives q̈ with all forces in it.

Degrees of freedom whose motion is given are held as in `hybrid_dynamics.py`: rows of H are zero for
them, and D has a one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...algebra.small import Factor, mirror_lower
from ...algebra.spatial import congruence
from ...model.mechanism import Mechanism
from ...model.protocol import PerBody
from ..declare import for_any_mechanism
from ..riccati import released
from .description import count_rows, row_slices
from .rows import Held, reach

__all__ = ["Felt", "Response", "response"]


class Felt(NamedTuple):
    """What the rows of constraints feel.

    A: K M⁻¹ Kᵀ, (rows, rows); free: K q̈_free, (rows,); bound: what A(i,i) would be if nothing
    cancelled in it, (rows,).  slices: where the rows of each constraint are.
    """

    A: np.ndarray
    free: np.ndarray
    bound: np.ndarray
    slices: list[slice]


class Response(Protocol):
    """A mechanism under constraints, by whichever way it is worked out."""

    @property
    def felt(self) -> Felt:
        """What the rows feel."""
        ...

    def qdd(self, forces: np.ndarray) -> np.ndarray:
        """q̈ (nv,) under forces λ (rows,)."""
        ...


@for_any_mechanism
def response(
    mech: Mechanism,
    q: np.ndarray,
    places: Sequence[Held],
    f: PerBody,
    tau: np.ndarray,
    active: np.ndarray | None = None,
) -> Response:
    """The inward sweep.  O(N) and O(depth · rows²).

    f: what each body needs for the motion that it is to be a change of; tau: (nv,).
    active: (nv,), 1 for degrees of freedom that keep that motion; none by default.
    """
    m = mech.rates(np.zeros(mech.nv) if active is None else active)
    H, phi, tau_ = mech.H(q), mech.phi(q), mech.rates(tau)
    P, z = mech.filled(lambda k: mech.M[k].matrix), mech.filled(lambda k: f[k])
    G, D, eps = mech.slots(3)
    E: list[dict[int, np.ndarray]] = [{} for _ in mech.bodies]
    columns, sums = _columns(mech, places), _Sums(mech, phi, places)
    for p, k in mech.inward():
        free = 1 - m[k]
        H[k] = free[:, None] * H[k]
        D_k, G[k], P_plus = released(
            P[k], H[k], free * mech.armature[k] + m[k], free * mech.least[k]
        )
        D[k], eps[k] = Factor(D_k), free * tau_[k] - H[k] @ z[k]
        E[k] = {i: H[k] @ Z for i, Z in columns[k].items()}
        sums.add(D[k], eps[k], E[k])
        sums.add_bounds(k, D[k].d_inv, H[k])
        if p:
            P[p] = P[p] + congruence(P_plus, phi[k])
            z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps[k])  # (2)
            for i, Z in columns[k].items():
                moved = phi[k] @ (Z - G[k] @ E[k][i])  # (1)
                columns[p][i] = columns[p].get(i, 0.0) + moved
    return _Swept(mech, H, phi, sums.felt, D, G, eps, E)


class _Swept(NamedTuple):
    """What the inward sweep leaves: of every body the factor of D, G, ε, and E per constraint."""

    mech: Mechanism
    H: list[Any]
    phi: list[Any]
    felt: Felt
    D: list[Any]
    G: list[Any]
    eps: list[Any]
    E: list[dict[int, np.ndarray]]

    def qdd(self, forces: np.ndarray) -> np.ndarray:
        """The outward sweep.  O(N)."""
        H, phi = self.H, self.phi
        qdd, alpha = self.mech.slots(2)
        for p, k in self.mech.outward():
            along = (E @ forces[self.felt.slices[i]] for i, E in self.E[k].items())
            alpha_plus = phi[k].T @ alpha[p]  # (5)
            qdd[k] = self.D[k].solve(sum(along, self.eps[k])) - self.G[k].T @ alpha_plus  # (6)
            alpha[k] = alpha_plus + H[k].T @ qdd[k]  # (7)
        return self.mech.join(qdd)


def _columns(mech: Mechanism, places: Sequence[Held]) -> list[dict[int, np.ndarray]]:
    """B(k): the unit forces of each constraint on the bodies that carry its frames."""
    columns: list[dict[int, np.ndarray]] = [{} for _ in mech.bodies]
    for i, h in enumerate(places):
        for body, Z in h.unit_forces():
            columns[body][i] = Z
    return columns


class _Sums:
    """A, K q̈_free and bounds, as the sweep adds to them."""

    def __init__(self, mech: Mechanism, phi: PerBody, places: Sequence[Held]) -> None:
        self.slices = row_slices([h.constraint for h in places])
        self.reaches = [reach(mech, phi, h) for h in places]
        rows = count_rows([h.constraint for h in places])
        self._A, self.free, self.bound = (
            np.zeros(shape, dtype=object) for shape in ((rows, rows), rows, rows)
        )

    def add(self, D: Factor, eps: np.ndarray, E: dict[int, np.ndarray]) -> None:
        """(3) and (4) of one body."""
        half = {i: D.half(x) for i, x in E.items()}
        scaled = {i: D.d_inv[:, None] * y for i, y in half.items()}
        own = D.half(eps)
        for i, y in scaled.items():
            rows = self.slices[i]
            self.free[rows] = self.free[rows] + y.T @ own
            for j in (j for j in half if j <= i):
                columns = self.slices[j]
                self._A[rows, columns] = self._A[rows, columns] + y.T @ half[j]

    def add_bounds(self, k: int, D_inv: np.ndarray, H: np.ndarray) -> None:
        """The same with the sizes of what a joint feels, as if it all were of one sign."""
        for rows, felt in zip(self.slices, self.reaches, strict=True):
            if k in felt:
                self.bound[rows] = self.bound[rows] + felt[k](H) ** 2 @ D_inv

    @property
    def felt(self) -> Felt:
        """The sums; of A the lower blocks were added."""
        free, bound = (np.array(x.tolist()) for x in (self.free, self.bound))
        return Felt(mirror_lower(self._A), free, bound, self.slices)

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
from ...algebra.spatial import ForceTransfer, congruence
from ...model.protocol import Descents, PerBody, Slot
from ..declare import for_any_mechanism
from ..riccati import released
from .description import row_slices
from .rows import Held, Reach

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

    def qdd(self, forces: np.ndarray, doubt: Any = 0.0) -> np.ndarray:
        """q̈ (nv,) under forces λ (rows,); doubt: 0, or NaN where there is no answer."""
        ...


@for_any_mechanism
def response(
    mech: Descents,
    q: np.ndarray,
    places: Sequence[Held],
    z: Slot,
    tau: np.ndarray,
    active: np.ndarray | None = None,
) -> Response:
    """The inward sweep.  O(N) and O(depth · rows²).

    z: what each body needs for the motion that it is to be a change of, used up; tau: (nv,).
    active: (nv,), 1 for degrees of freedom that keep that motion; none by default.
    """
    m = mech.rates(np.zeros(mech.nv) if active is None else active)
    H, phi, tau_ = mech.H(q), mech.phi(q), mech.rates(tau)
    P, E = mech.filled(lambda k: mech.M[k].matrix), mech.slots(len(places))
    H_free = mech.each(lambda k: (1 - m[k])[:, None] * H[k])
    G, D, eps = mech.slots(3)
    Z, sums = [mech.riding(dict(h.unit_forces())) for h in places], _Sums(mech, places)
    for p, k in mech.inward():
        free = 1 - m[k]
        rotors = free * mech.armature[k] + m[k]
        D_k, G[k], P_plus = released(P[k], H_free[k], rotors, free * mech.least[k])
        D[k], eps[k] = Factor(D_k), free * tau_[k] - H_free[k] @ z[k]
        P[p] = P[p] + congruence(P_plus, phi[k])
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps[k])  # (2)
        passing = sums.passing(k)
        for i in passing:
            E[i][k] = H_free[k] @ Z[i][k]
            Z[i][p] = Z[i][p] + phi[k] @ (Z[i][k] - G[k] @ E[i][k])  # (1)
        sums.add(D[k], eps[k], {i: E[i][k] for i in passing})
        sums.add_bounds(k, D[k].d_inv, H_free[k], phi[k])
    return _Swept(mech, H_free, phi, sums, sums.felt(), D, G, eps, E)


class _Swept(NamedTuple):
    """What the inward sweep leaves: of every body the factor of D, G, ε, and E per constraint."""

    mech: Descents
    H: PerBody
    phi: PerBody
    sums: _Sums
    felt: Felt
    D: PerBody
    G: PerBody
    eps: PerBody
    E: list[PerBody]

    def qdd(self, forces: np.ndarray, doubt: Any = 0.0) -> np.ndarray:
        """The outward sweep.  O(N)."""
        H, phi, (lam, none) = self.H, self.phi, map(self.mech.shared, (forces, doubt))
        qdd, alpha = self.mech.slots(2)
        for p, k in self.mech.outward():
            rows = self.felt.slices
            along = (self.E[i][k] @ lam.value[rows[i]] for i in self.sums.passing(k))
            alpha_plus = phi[k].T @ alpha[p]  # (5)
            free = self.eps[k] + none.value
            qdd[k] = self.D[k].solve(sum(along, free)) - self.G[k].T @ alpha_plus  # (6)
            alpha[k] = alpha_plus + H[k].T @ qdd[k]  # (7)
        return self.mech.join(qdd)


class _Sums:
    """A, K q̈_free and bounds, as the sweep adds to them: of A the lower blocks."""

    def __init__(self, mech: Descents, places: Sequence[Held]) -> None:
        self.slices = row_slices([h.constraint for h in places])
        self.reaches = [Reach(mech, h) for h in places]
        sizes = [len(h.axes) for h in places]
        self.free, self.bound = ([mech.shared(np.zeros(n)) for n in sizes] for _ in range(2))
        self.A = [
            [mech.shared(np.zeros((n, m))) for m in sizes[: i + 1]] for i, n in enumerate(sizes)
        ]

    def passing(self, k: Any) -> list[int]:
        """The constraints on whose ways body k is."""
        return [i for i, reach in enumerate(self.reaches) if reach.passes(k)]

    def add(self, D: Factor, eps: np.ndarray, E: dict[int, np.ndarray]) -> None:
        """(3) and (4) of one body."""
        half = {i: D.half(x) for i, x in E.items()}
        scaled = {i: D.d_inv[:, None] * y for i, y in half.items()}
        own = D.half(eps)
        for i, y in scaled.items():
            self.free[i].value = self.free[i].value + y.T @ own
            for j in (j for j in half if j <= i):
                self.A[i][j].value = self.A[i][j].value + y.T @ half[j]

    def add_bounds(self, k: Any, D_inv: np.ndarray, H: np.ndarray, phi: ForceTransfer) -> None:
        """The same with the sizes of what a joint feels, as if it all were of one sign."""
        for i in self.passing(k):
            sizes = self.reaches[i].felt(k, H, phi) ** 2 @ D_inv
            self.bound[i].value = self.bound[i].value + sizes

    def felt(self) -> Felt:
        """The sums."""
        n = self.slices[-1].stop if self.slices else 0
        A = np.zeros((n, n), dtype=object)
        for rows, blocks in zip(self.slices, self.A, strict=True):
            for columns, block in zip(self.slices, blocks, strict=False):
                A[rows, columns] = block.value
        free, bound = (
            np.concatenate([np.zeros(0), *(x.value for x in parts)])
            for parts in (self.free, self.bound)
        )
        return Felt(mirror_lower(A), free, bound, self.slices)

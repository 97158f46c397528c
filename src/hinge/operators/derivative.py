"""Derivatives of operators along a motion of the joints, as operators again.  Paper D §6, App. A.

In body axes M is constant and H changes only where a joint's axes move in its body; what moves is
the transfer from body to parent.  With vJ(k) = H*(k) q̇(k) the velocity across joint k and P⁺ = τ̄P,

    d ℰ_φ = ℰ_φ [vJ×*],    d φ = φ dℰ_φ φ,    d ψ = ψ dℰ_ψ ψ,    d ℰ_ψ = dℰ_φ τ̄ + ℰ_φ dτ̄
    d P(p) = Σ φ(p,k) Λ⁺(k) φ*(p,k),   Λ⁺ = τ̄ dP τ̄* − (Y + Y*) + vJ×*P⁺ + (vJ×*P⁺)*,  Y = τ̄P dH* G*
    d D = H dP H* + dH P H* + H P dH*,    d G = (dP H* + P dH* − G dD) D⁻¹
    d L = L Φ(L⁻¹ dD L⁻*) for the root D = L L*, Φ taking what is above the diagonal and half of it

The direction q̇ may be a velocity (time derivatives) or a unit vector of the tangent (sensitivity to
one joint): q moves along it as `integrate` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.small import half_upper, mirror_lower
from ..algebra.spatial import congruence, cross_force
from ..errors import ArgumentError
from .articulation import Articulation
from .block import Block, block
from .decompose import local_blocks
from .expr import Adjoint, Identity, Product, Sum, Zero, product, total
from .leaves import Chain, Data, Hop, Local, Named, Pick
from .operator import Operator

__all__ = ["Along", "derivative"]


def derivative(A: Operator, direction: Any) -> Operator:
    """dA along a direction (nv,) of the joint rates, as an operator.

    `derivative(o.phi, qd)` is the time derivative of φ at velocity qd; `derivative(o.D,
    np.eye(nv)[i])` the sensitivity of D to degree of freedom i.
    """
    if A.home is None:
        return Zero(A.out, A.into)
    rates = A.at.rates("the direction of a derivative", direction)
    return Along(A.home, rates)(A.symbol).bind(A.at)


class Along:
    """Derivatives of symbols along one direction."""

    def __init__(self, home: Any, direction: Data) -> None:
        self.home, self.direction = home, direction

    def __call__(self, A: Operator) -> Operator:
        match A:
            case Identity() | Zero():
                return Zero(A.out, A.into)
            case Named() | Adjoint():
                return self(A.opened)
            case Sum(terms=terms):
                return total([(c, self(t)) for c, t in terms])
            case Product(factors=f):
                parts = [product([*f[:i], self(x), *f[i + 1 :]]) for i, x in enumerate(f)]
                return total([(1, part) for part in parts])
            case Block(rows=rows):
                return block([[self(entry) for entry in row] for row in rows])
            case Hop() | Chain() | Pick() | Local() if A.adjoint:
                return self(A.T).T
            case Hop():
                return A @ self.turning
            case Chain():
                return A @ self(A.once) @ A
            case Local(inverse=True):
                return -(A @ self(A.inv) @ A)
            case Local():
                return self.local(A)
        return self.pick(A)

    @staticmethod
    def pick(A: Operator) -> Operator:
        """Frames fixed to bodies do not move in them."""
        if isinstance(A, Pick) and A.into.name.endswith("(body)"):
            return Zero(A.out, A.into)
        raise ArgumentError(
            f"no rule differentiates {A}; for a frame's B take reference='body', whose axes turn "
            f"with the body"
        )

    def local(self, A: Local) -> Operator:
        """Block-diagonal leaves, by what they are."""
        home = self.home
        for s in home.sets:
            if A == s.P:
                return self.dP(s)
            if A == s.D:
                dH = self(s.H)
                return s.H @ self.dP(s) @ s.H.T + dH @ s.P @ s.H.T + s.H @ s.P @ dH.T
            if s.D_root == A:
                return self.dD_root(s)
            if A == s.G:
                inner = self.dP(s) @ s.H.T + s.P @ self(s.H).T - A @ self(s.D)
                return inner @ s.D.inv
        if A.constant:
            return Zero(A.out, A.into)
        if A in (home.H, *((home.H_a, home.H_p) if home.is_split else ())):
            return self.dH(A)
        raise ArgumentError(f"no rule differentiates {A}")

    def _local(self, like: Local, name: str, tex: str, make: Any, **kind: Any) -> Local:
        spaces, needs = (like.out, like.into), (self.direction,)
        return Local(*spaces, self.home, name=name, tex=tex, make=make, needs=needs, **kind)

    @property
    def turning(self) -> Local:
        """[vJ×*], the force cross operator of the velocity across each joint."""
        return self._local(self.home.M, "VJ_cross", r"[v_J\times^*]", _crosses)

    def dH(self, A: Local) -> Operator:
        """The rate of H, or of rows of it; zero if no joint's axes move in its body."""
        if not self.home.bends:
            return Zero(A.out, A.into)
        picked = self.home.rows(A)

        def rows(at: Any, direction: Data) -> list[np.ndarray]:
            full = at.mechanism.H_rate(at.q, direction.value)
            return [block[p] for block, p in zip(full, picked, strict=True)]

        return self._local(A, f"d{A.name}", rf"\dot {A.tex}", rows)

    def dD_root(self, s: Articulation) -> Local:
        """The rate of the root, L Φ(L⁻¹ dD L⁻*)."""

        def blocks(at: Any, direction: Data) -> list[np.ndarray]:
            rate = Along(s.home, direction)(s.D)
            inner = s.D_root.inv @ rate @ s.D_root.inv.T
            roots = zip(at.blocks(s.D_root), local_blocks(at, inner), strict=True)
            return [L @ half_upper(A) for L, A in roots]

        return self._local(s.D_root, f"d{s.D_root.name}", rf"\dot {{{s.D_root.tex}}}", blocks)

    def dP(self, s: Articulation) -> Local:
        """The rate of the articulated inertias."""

        def blocks(at: Any, direction: Data) -> list[np.ndarray]:
            return _dP(at, s, direction)

        return self._local(s.P, f"d{s.P.name}", rf"\dot {s.P.tex}", blocks, symmetric=True)


def _crosses(at: Any, direction: Data) -> list[np.ndarray]:
    """vJ×* as (6, 6) matrices."""
    rates = at.mechanism.rates(direction.value)
    velocities = [H.T @ r for H, r in zip(at.H_blocks, rates, strict=True)]
    return [np.column_stack([cross_force(V, e) for e in np.eye(6)]) for V in velocities]


def _dP(at: Any, s: Articulation, direction: Data) -> list[np.ndarray]:
    mech, along = at.mechanism, Along(s.home, direction)
    H, P, G, turning = (at.blocks(leaf) for leaf in (s.H, s.P, s.G, along.turning))
    dH = along(s.H)
    bent = at.blocks(dH) if isinstance(dH, Local) else None
    dP = [np.zeros((6, 6)) for _ in mech.bodies]
    for p, k in mech.inward():
        through = np.eye(6) - G[k] @ H[k]
        carried = turning[k] @ through @ P[k]
        if bent is not None:
            carried = carried - through @ P[k] @ bent[k].T @ G[k].T
        rate = through @ dP[k] @ through.T + carried + carried.T
        dP[p] = dP[p] + congruence(mirror_lower(rate), at.phi_blocks[k])
    return dP

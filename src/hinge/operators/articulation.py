"""The operators that come from letting joints go: P, D, G, K, τ̄, ℰ_ψ, ψ, Ω, Υ.

One set belongs to all joints, another to the passive ones of a split.  Their blocks come from one
Riccati sweep, run when the first of them meets a vector:

    D = H P H* + J,   G = P H* D⁻¹,   τ̄ = I − G H,   K = ℰ_φ G,   ℰ_ψ = ℰ_φ τ̄,   ψ = (I − ℰ_ψ)⁻¹
    Ω = ψ* H* D⁻¹ H ψ,   Υ(k) = τ̄*(k) φ*(p,k) Υ(p) φ(p,k) τ̄(k) + H*(k) D⁻¹(k) H(k)
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.small import mirror_lower, solve_spd, upper_root
from ..algorithms.riccati import Riccati, riccati
from .expr import Identity, Zero
from .leaves import Chain, Local, Named
from .operator import Operator

__all__ = ["Articulation"]


class Solved:
    """D⁻¹ of a symmetric positive definite D: it solves instead of being formed."""

    def __init__(self, D: np.ndarray) -> None:
        self.D, self.T = D, self

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return solve_spd(self.D, x)


class Articulation:
    """The operators of the joints that H belongs to, J being their armature, as symbols."""

    def __init__(
        self, home: Any, H: Local, J: Operator, armature: list[np.ndarray], suffix: str = ""
    ) -> None:
        self.home, self.H, self.J, self._armature, self._suffix = home, H, J, armature, suffix
        self.E_phi, self.phi, self.M = home.E_phi, home.phi, home.M

    def _names(self, name: str, tex: str) -> dict[str, Any]:
        sub = self._suffix[1:]
        under = f"_{{{sub}}}" if sub else ""
        return {"home": self.home, "name": f"{name}{self._suffix}", "tex": f"{tex}{under}"}

    def _riccati(self, at: Any) -> Riccati:
        """P, D and G of every body at a configuration, by one sweep inward."""
        given = at.mechanism, at.blocks(self.H), at.phi_blocks, self._armature
        return at.once(("riccati", self._suffix), lambda: riccati(*given))

    @cached_property
    def P(self) -> Local:
        """Articulated-body inertias, body → body."""
        b, names = self.home.body, self._names("P", "P")
        return Local(b, b, **names, make=lambda at: self._riccati(at).P, symmetric=True)

    @cached_property
    def D(self) -> Local:
        """H P H* + J, joint → joint; its inverse is known."""
        return Local(
            self.H.out,
            self.H.out,
            **self._names("D", "D"),
            make=lambda at: _square(self._riccati(at).D),
            invert=lambda at: [Solved(D) for D in _square(self._riccati(at).D)],
            symmetric=True,
        )

    @cached_property
    def D_root(self) -> Local:
        """L with D = L L*, upper triangular blocks, joint → joint; its inverse is known."""
        return Local(
            self.H.out,
            self.H.out,
            **self._names("D_root", r"D^{1/2}"),
            make=lambda at: [upper_root(D)[0] for D in at.blocks(self.D)],
            invert=lambda at: [upper_root(D)[1] for D in at.blocks(self.D)],
        )

    @cached_property
    def G(self) -> Local:
        """P H* D⁻¹, the gain, joint → body."""
        names = self._names("G", "G")
        return Local(self.home.body, self.H.out, **names, make=self._gains)

    def _gains(self, at: Any) -> list[Any]:
        return [np.zeros((6, 0)), *self._riccati(at).G[1:]]

    def _named(self, name: str, tex: str, definition: Operator, symmetric: bool = False) -> Named:
        d = definition
        return Named(d.out, d.into, **self._names(name, tex), definition=d, symmetric=symmetric)

    @cached_property
    def K(self) -> Named:
        """ℰ_φ G, joint → body."""
        return self._named("K", "K", self.E_phi @ self.G)

    @cached_property
    def tau_bar(self) -> Named:
        """I − G H, body → body: what a joint lets through."""
        return self._named("tau_bar", r"\overline{\tau}", Identity() - self.G @ self.H)

    @cached_property
    def E_psi(self) -> Named:
        """ℰ_φ τ̄, body → body: forces to the parent, through a joint that gives way."""
        return self._named("E_psi", r"\mathcal{E}_\psi", self.E_phi @ self.tau_bar)

    @cached_property
    def psi(self) -> Chain:
        """(I − ℰ_ψ)⁻¹, body → body."""
        b, names = self.home.body, self._names("psi", r"\psi")
        return Chain(b, b, **names, hop=self.E_phi, once=self.E_psi, gain=(self.G, self.H))

    @cached_property
    def Omega(self) -> Named:
        """ψ* H* D⁻¹ H ψ, body → body: accelerations that forces on free bodies cause."""
        inner = self.psi.T @ self.H.T @ self.D.inv @ self.H @ self.psi
        return self._named("Omega", r"\Omega", inner, symmetric=True)

    @cached_property
    def Upsilon(self) -> Local:
        """The block diagonal of Ω, body → body, by one sweep outward."""
        b, names = self.home.body, self._names("Upsilon", r"\Upsilon")
        return Local(b, b, **names, make=self._Upsilon, symmetric=True)

    def _Upsilon(self, at: Any) -> list[Any]:
        H, G, D_inv = (at.blocks(leaf) for leaf in (self.H, self.G, self.D.inv))
        Y = [h.T @ (d @ h) for h, d in zip(H, D_inv, strict=True)]
        for p, k in at.mechanism.outward():
            if p:
                hop = at.phi_blocks[k].T
                through = np.eye(6) - H[k].T @ G[k].T
                carried = through @ (hop @ (hop @ Y[p]).T) @ through.T
                Y[k] = Y[k] + mirror_lower(carried)
        return Y

    @cached_property
    def innovations(self) -> Operator:
        """I − HψK, joint → joint: what is new in each joint force, given those beyond it."""
        return Identity() - self.H @ self.psi @ self.K

    @cached_property
    def factor(self) -> Operator:
        """I + HφK, joint → joint: the inverse of the innovations."""
        return Identity() + self.H @ self.phi @ self.K

    @cached_property
    def mass(self) -> Operator:
        """H φ M φ* H* + J, joint → joint: the mass matrix as an operator."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.J

    @cached_property
    def mass_factor(self) -> Operator:
        """m = [I + HφK] D^½, joint → joint, with m m* the mass operator."""
        return self.factor @ self.D_root

    @property
    def has_armature(self) -> bool:
        """Whether a joint of the set has armature: some identities then change."""
        return not isinstance(self.J, Zero)


def _square(D: list[Any]) -> list[Any]:
    return [np.zeros((0, 0)), *D[1:]]

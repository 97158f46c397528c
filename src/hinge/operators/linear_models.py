"""Linearised dynamics as operators.  Paper L, Lemmas 3.1, 3.2, 4.6 and 4.7; math §3, §5.

    δτ = 𝓜 δq̈ + A_D δq̇ + B_D δq        δq̈ = 𝓜⁻¹ δτ − A_C δq̇ − B_C δq

    A_D = Hφ [M φ*(Ḣ+H′) + 2M̂ φ*H*]
    B_D = Hφ [M φ*H″ + 2M̂ φ*H′ + Z̄ φ*H* + F] − E                                     (3.1)
    A_C = 𝓛* [D⁻¹Hψ Y_A + K̂*φ*H*] + K*ψ*(Ḣ+H′)
    B_C = 𝓛* [D⁻¹Hψ Y_B + K̂*φ*H′ + K^z*φ*H* − D⁻¹𝓛 E] + K*ψ*H″                       (4.6, 4.7)

𝓛 = I − HψK; H′, H″, F, E, Z̄ are those of `linearized/nominal.py`, K̂ = ℰ_φ Ĝ, and Ĝ, G^z, Y_A, Y_B
those of `linearized/articulated.py`, with the factor 2 of M̂ inside.  Each operator applies to a
perturbation in a few sweeps; the matrices are never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.linearized.articulated import Articulated, articulated
from ..algorithms.linearized.gyroscopic import gyroscopic
from ..algorithms.linearized.loads import Load, load_stiffness
from ..algorithms.linearized.nominal import Nominal, nominal
from .decompose import decompose
from .expr import Operator
from .leaves import Blocks, Local
from .library import Operators

__all__ = ["LinearOperators", "linearized"]


class LinearOperators(NamedTuple):
    """𝓜, A_D, B_D of inverse dynamics and 𝓜⁻¹, A_C, B_C of forward dynamics, joint → joint."""

    mass: Operator
    A_D: Operator
    B_D: Operator
    mass_inv: Operator
    A_C: Operator
    B_C: Operator


def linearized(
    o: Operators,
    qd: Any,
    qdd: Any,
    f_ext: Any = None,
    points: Any = None,
    load: Load = "body",
    composite: bool = False,
) -> LinearOperators:
    """The linear model at the motion (q, q̇, q̈), as operators on δq, δq̇, δq̈, δτ.

    qdd: of the nominal motion, also where only forces are given.  f_ext, points, load: as in
    `robot.inverse_dynamics_derivatives`.  composite: A_D, B_D by Lemma 3.2, with the inertias of
    all bodies beyond each joint taken together.
    """
    mech = o.mechanism
    rates, growth = (o.joint.vector(f"{x} of linearized", v) for x, v in (("qd", qd), ("qdd", qdd)))
    if f_ext is not None:
        f_ext = o.body.vector("f_ext of linearized", np.ravel(f_ext)).reshape(-1, 6)
    n = nominal(mech, o.q, rates, growth, f_ext)
    Z = load_stiffness(mech, f_ext, points, load)
    maps = _Maps(o, n, articulated(mech, n, Z), Z)
    return LinearOperators(o.mass, *_inverse(o, maps, composite), o.mass.inv, *_forward(o, maps))


def _inverse(o: Operators, m: _Maps, composite: bool) -> tuple[Operator, Operator]:
    M, M_hat, Z = (
        decompose(o.phi @ X @ o.phi.T) if composite else o.phi @ X @ o.phi.T
        for X in (o.M, m.M_hat, m.Z)
    )
    A_D = o.H @ (M @ m.H_sum + M_hat @ o.H.T)
    B_D = o.H @ (M @ m.H_second + M_hat @ m.H_first + Z @ o.H.T + o.phi @ m.F) - m.E
    return A_D, B_D


def _forward(o: Operators, m: _Maps) -> tuple[Operator, Operator]:
    L, S, K = o.innovations.T, o.D.inv @ o.H @ o.psi, o.K.T @ o.psi.T
    K_hat, K_z = (o.E_phi @ G for G in (m.G_hat, m.G_z))
    A_C = L @ (S @ m.Y_A + K_hat.T @ o.phi.T @ o.H.T) + K @ m.H_sum
    own = K_hat.T @ o.phi.T @ m.H_first + K_z.T @ o.phi.T @ o.H.T
    B_C = L @ (S @ m.Y_B + own - o.D.inv @ o.innovations @ m.E) + K @ m.H_second
    return A_C, B_C


class _Maps:
    """The block-diagonal operators of a linear model."""

    def __init__(self, o: Operators, n: Nominal, a: Articulated, Z: Sequence[Any]) -> None:
        joint, body = o.joint, o.body

        def local(name: str, tex: str, out: Any, into: Any, make: Callable[[], Any]) -> Local:
            return Local(out, into, o, name=name, tex=tex, blocks=Blocks(make))

        self.H_first = local("H_first", "H'", body, joint, lambda: _columns(n.H_first))
        self.H_sum = local("H_sum", r"(\dot H + H')", body, joint, lambda: _columns(n.H_sum))
        self.H_second = local("H_second", "H''", body, joint, lambda: _columns(n.H_second))
        self.F = local("F", "F", body, joint, lambda: _columns(n.F))
        self.E = local("E", "E", joint, joint, lambda: [np.zeros((0, 0)), *n.E[1:]])
        self.Z = local("Z", r"\overline{Z}", body, body, lambda: list(Z))
        self.M_hat = local("M_hat", r"2\hat M", body, body, lambda: _gyrations(o, n))
        self.G_hat = local("G_hat", r"\hat G", body, joint, lambda: _moments(a.G_hat))
        self.G_z = local("G_z", "G^z", body, joint, lambda: _columns(a.G_z))
        self.Y_A = local("Y_A", "Y_A", body, joint, lambda: _columns(a.Y_A))
        self.Y_B = local("Y_B", "Y_B", body, joint, lambda: _columns(a.Y_B))


def _columns(blocks: Sequence[Any]) -> list[Any]:
    return [np.zeros((6, 0)), *blocks[1:]]


def _moments(blocks: Sequence[Any]) -> list[Any]:
    return [np.zeros((6, 0)), *(np.vstack([G, np.zeros(G.shape)]) for G in blocks[1:])]


def _gyrations(o: Operators, n: Nominal) -> list[Any]:
    """2 M̂ of every body, (6, 6); its right half is zero."""
    lefts = (gyroscopic(M, V + V).left for M, V in zip(o.mechanism.M, n.V, strict=True))
    return [np.hstack([left, np.zeros((6, 3))]) for left in lefts]

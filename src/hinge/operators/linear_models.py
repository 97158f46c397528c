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
from ..model.mechanism import Mechanism
from .decompose import decompose
from .leaves import Data, Local
from .library import Operators
from .operator import Operator

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
    needs = (
        o.rates("qd of linearized", qd),
        o.rates("qdd of linearized", qdd),
        None if f_ext is None else o.forces("f_ext of linearized", f_ext),
        None if points is None else Data(np.array(points), (o.mechanism.n_bodies, 3)),
        load,
    )
    maps = _Maps(o, needs)
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


class _Motion(NamedTuple):
    """What the block-diagonal operators of a linear model are made of."""

    n: Nominal
    a: Articulated
    Z: Sequence[Any]


def _motion(at: Any, *needs: Any) -> _Motion:
    qd, qdd, f_ext, points = (x and x.value for x in needs[:4])

    def make() -> _Motion:
        n = nominal(at.mechanism, at.q, qd, qdd, f_ext)
        Z = load_stiffness(at.mechanism, f_ext, points, needs[4])
        return _Motion(n, articulated(at.mechanism, n, Z), Z)

    return at.once(("linearized", needs), make)


_Make = Callable[[_Motion], Sequence[Any]]


class _Maps:
    """The block-diagonal operators of a linear model; needs: q̇, q̈, f_ext, points, load."""

    def __init__(self, o: Operators, needs: tuple[Any, ...]) -> None:
        joint, body = o.joint, o.body

        def local(
            name: str, tex: str, out: Any, into: Any, make: Callable[[_Motion], Any]
        ) -> Local:
            names = {"name": name, "tex": tex, "needs": needs}
            made = Local(out, into, o.home, **names, make=lambda at, *x: make(_motion(at, *x)))
            return made.bind(o)

        self.H_first = local("H_first", "H'", body, joint, lambda m: _columns(m.n.H_first))
        self.H_sum = local("H_sum", r"(\dot H + H')", body, joint, lambda m: _columns(m.n.H_sum))
        self.H_second = local("H_second", "H''", body, joint, lambda m: _columns(m.n.H_second))
        self.F = local("F", "F", body, joint, lambda m: _columns(m.n.F))
        self.E = local("E", "E", joint, joint, lambda m: [np.zeros((0, 0)), *m.n.E[1:]])
        self.Z = local("Z", r"\overline{Z}", body, body, lambda m: list(m.Z))
        self.M_hat = local("M_hat", r"2\hat M", body, body, lambda m: _gyrations(o.mechanism, m.n))
        self.G_hat = local("G_hat", r"\hat G", body, joint, lambda m: _moments(m.a.G_hat))
        self.G_z = local("G_z", "G^z", body, joint, lambda m: _columns(m.a.G_z))
        self.Y_A = local("Y_A", "Y_A", body, joint, lambda m: _columns(m.a.Y_A))
        self.Y_B = local("Y_B", "Y_B", body, joint, lambda m: _columns(m.a.Y_B))


def _columns(blocks: Sequence[Any]) -> list[Any]:
    return [np.zeros((6, 0)), *blocks[1:]]


def _moments(blocks: Sequence[Any]) -> list[Any]:
    return [np.zeros((6, 0)), *(np.vstack([G, np.zeros(G.shape)]) for G in blocks[1:])]


def _gyrations(mech: Mechanism, n: Nominal) -> list[Any]:
    """2 M̂ of every body, (6, 6); its right half is zero."""
    lefts = (gyroscopic(M, V + V).left for M, V in zip(mech.M, n.V, strict=True))
    return [np.hstack([left, np.zeros((6, 3))]) for left in lefts]

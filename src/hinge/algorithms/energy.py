"""Centre of mass, momentum and energy (math §1.4, §3).

    outward   V(k) = φ*(p,k) V(p) + H*(k) q̇(k),   h(k) = M(k) V(k)                              (1)
    inward    h(p) = h(p) + φ(p,k) h(k)                                                         (2)
              m(p) = m(p) + m(k),   mc(p) = mc(p) + R(p,k) mc(k) + m(k) p(p,k)                  (3)

Momenta h, masses m and first moments mc of the whole mechanism arrive at the ground.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..algebra.rotation import skew
from ..algebra.small import is_zero
from ..algebra.spatial import ForceTransfer
from ..errors import ArgumentError, ModelError
from ..model.mechanism import Mechanism
from ..model.protocol import Tree
from .declare import algorithm

__all__ = [
    "center_of_mass",
    "center_of_mass_jacobian",
    "generalized_momentum",
    "kinetic_energy",
    "momentum",
    "potential_energy",
    "total_mass",
]


@algorithm()
def total_mass(mech: Mechanism) -> Any:
    """The mass of all moving bodies, kg."""
    return sum(M.mass for M in mech.M)


@algorithm()
def center_of_mass(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """The centre of mass of all moving bodies, (3,) in the world.  O(N)."""
    return _first_moment(mech, mech.phi(q)) / _some_mass(mech)


@algorithm()
def center_of_mass_jacobian(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """∂c/∂q, (3, nv): the centre of mass moves with J q̇, in world axes.  O(N).

    What a joint carries, of mass m and first moment mc, gets the momentum m v + ω × mc.
    """
    H, phi = mech.H(q), mech.phi(q)
    mass, mc, R_W = (
        [M.mass for M in mech.M],
        [M.h for M in mech.M],
        mech.filled(lambda k: np.eye(3)),
    )
    for p, k in mech.outward():
        R_W[k] = R_W[p] @ phi[k].R
    columns = {}
    for p, k in mech.inward():
        columns[k] = R_W[k] @ (mass[k] * H[k].T[3:] - skew(mc[k]) @ H[k].T[:3])
        mass[p] = mass[p] + mass[k]
        mc[p] = mc[p] + phi[k].R @ mc[k] + mass[k] * phi[k].p  # (3)
    return mech.join_columns(columns, 3) / _some_mass(mech)


@algorithm()
def momentum(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, about: Literal["com", "world"] = "com"
) -> np.ndarray:
    """The spatial momentum (angular; linear) in world axes: (6,).  O(N).

    about: "com", the moment is taken about the centre of mass; "world", about the world's origin.
    """
    if about not in ("com", "world"):
        raise ArgumentError(f"about is {about!r}; choose 'com' or 'world'")
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    _, h = _moving(mech, H, phi, qd_)
    if about == "com":
        phi = _from_the_first(mech, phi)
    for p, k in mech.inward():
        h[p] = h[p] + phi[k] @ h[k]  # (2)
    if about == "world":
        return h[0]
    shift = skew(_first_moment(mech, phi) / _some_mass(mech)) @ h[0][3:]
    return h[0] - np.concatenate([shift, np.zeros(3)])


@algorithm(joint_level=True, loops=True)
def generalized_momentum(mech: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """M(q) q̇, armature included: (nv,).  O(N), no mass matrix is formed."""
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    _, h = _moving(mech, H, phi, qd_)
    (joint,) = mech.slots(1)
    for p, k in mech.inward():
        joint[k] = H[k] @ h[k] + mech.armature[k] * qd_[k]
        h[p] = h[p] + phi[k] @ h[k]  # (2)
    return mech.join(joint)


@algorithm(joint_level=True)
def kinetic_energy(mech: Tree, q: np.ndarray, qd: np.ndarray) -> Any:
    """½ Σ V* M V + ½ Σ armature q̇² = ½ q̇ᵀ M(q) q̇: a scalar, in J.  O(N)."""
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    V, h = _moving(mech, H, phi, qd_)
    twice = 0.0
    for _, k in mech.outward():
        twice = twice + V[k] @ h[k] + qd_[k] @ (mech.armature[k] * qd_[k])
    return 0.5 * twice


@algorithm()
def potential_energy(mech: Mechanism, q: np.ndarray) -> Any:
    """−Σ m g·c, zero with every centre of mass at the world's origin: a scalar, in J.  O(N)."""
    return -(np.array(mech.gravity) @ _first_moment(mech, mech.phi(q)))


def _moving(mech: Tree, H: Any, phi: Any, qd: Any) -> tuple[list[Any], list[Any]]:
    """V(k) and h(k) of each body by itself (1); qd: the rates of each joint."""
    V, h = mech.slots(2)
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ qd[k]
        h[k] = mech.M[k] @ V[k]
    return V, h


def _some_mass(mech: Mechanism) -> Any:
    """That of all moving bodies, if it is not zero."""
    mass = total_mass(mech)
    if is_zero(mass):
        raise ModelError(f"{mech.name!r} has no mass and so no centre of mass; give a body mass")
    return mass


def _from_the_first(mech: Mechanism, phi: list[Any]) -> list[Any]:
    """φ with the ground's origin where the first body is: near, wherever the mechanism is."""
    out, roots = list(phi), [k for p, k in mech.outward() if p == 0]
    for k in roots:
        out[k] = ForceTransfer(phi[k].R, phi[k].p - phi[roots[0]].p)
    return out


def _first_moment(mech: Mechanism, phi: list[Any]) -> np.ndarray:
    """Σ m c in the axes of the ground, from its origin: (3,)."""
    mass, mc = [M.mass for M in mech.M], [M.h for M in mech.M]
    for p, k in mech.inward():
        mass[p] = mass[p] + mass[k]
        mc[p] = mc[p] + phi[k].R @ mc[k] + mass[k] * phi[k].p  # (3)
    return mc[0]

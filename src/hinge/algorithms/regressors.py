"""Regressors: what is linear in the masses of bodies, as a matrix times them.  math §3.

Forces, energies and momenta are linear in the ten numbers of each body, π(k) = (m, h = m c, J about
the body's origin: xx, yx, yy, zx, zy, zz), the rows of `inertia` in `model/parameters.py`:

    M(k) V = B(V) π(k),                     B = [0 −u× L(ω); u ω× 0],   V = (ω; u)              (1)
    M(k) α + b(k) = A(V, α) π(k),           A = [0 −p̈× L(ω̇) + ω× L(ω); p̈ U 0]                  (2)

with J x = L(x) (J_xx, …, J_zz) and U = ω̇× + ω×ω×.  The force of body k is felt at each joint j
before it through that joint's axes seen from the body, S(j, k), which are carried outward:

    S(k, k) = H*(k),   S(j, k) = φ*(p, k) S(j, p)                                               (3)
    Y(j, k) = S*(j, k) A(k):   τ = Y π                                                          (4)

Of long mechanisms Y comes row by row: with the velocities W(k) that a virtual v gives the bodies,

    W(k) = φ*(p, k) W(p) + H*(k) v(k),   (v* Y)(k) = W*(k) A(k)                                 (5)

is one sweep.  Joints add columns for numbers of their own, chosen by name: armature, damping,
friction, stiffness, in the order of bodies, one per DoF of a joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import skew
from ..algebra.spatial import ForceTransfer, carried_acceleration, turning
from ..errors import ArgumentError
from ..model.joint import Joint
from ..model.mechanism import Body, Mechanism, did_you_mean
from ..model.parameters import inertia_numbers
from ..model.protocol import PerBody, Tree
from .declare import algorithm
from .passive import dry_friction

__all__ = [
    "JOINT_TERMS",
    "EnergyRegressors",
    "LinearParameters",
    "energy_regressor",
    "joint_terms_of",
    "linear_parameters",
    "momentum_regressor",
    "torque_regressor",
    "torque_regressor_joints",
    "torque_regressor_row",
]

# what a joint may add, each linear in a number of its own
JOINT_TERMS = ("armature", "damping", "friction", "stiffness")
_OF_BODY = ("m", "mx", "my", "mz", "Jxx", "Jyx", "Jyy", "Jzx", "Jzy", "Jzz")


class LinearParameters(NamedTuple):
    """π: what the columns of a regressor multiply.

    names: "link7.m", "link7.mx" (m times the centre's x), …, "link7.Jzz", then "joint1.damping";
    values: (parameters,), those of the mechanism.
    """

    names: tuple[str, ...]
    values: np.ndarray


class EnergyRegressors(NamedTuple):
    """T = kinetic · π and U = potential · π, (10 n_bodies,) each."""

    kinetic: np.ndarray
    potential: np.ndarray


def linear_parameters(mech: Mechanism, joint_terms: Sequence[str] = ()) -> LinearParameters:
    """The names and values of π, in the order of columns; joint_terms as in the regressor."""
    names, values = [], []
    for body in mech.bodies[1:]:
        names += [f"{body.name}.{word}" for word in _OF_BODY]
        values += inertia_numbers(body.inertia.spatial)
    for term in joint_terms_of(mech.name, joint_terms):
        for body in mech.bodies[1:]:
            own = np.array(getattr(body.joint, term))
            marks = [""] if len(own) == 1 else [f"[{i}]" for i in range(len(own))]
            names += [f"{body.joint_name}.{term}{mark}" for mark in marks]
            values += list(own)
    return LinearParameters(tuple(names), np.array(values))


def joint_terms_of(where: str, terms: Any) -> tuple[str, ...]:
    """One name or several, of those that there are."""
    chosen = (terms,) if isinstance(terms, str) else tuple(terms)
    for term in chosen:
        if term not in JOINT_TERMS:
            hint = did_you_mean(str(term), JOINT_TERMS)
            raise ArgumentError(f"{where}: joints have no term {term!r}; {hint}")
    if len(set(chosen)) < len(chosen):
        raise ArgumentError(f"{where}: joint_terms {', '.join(chosen)}: name each once")
    return chosen


@algorithm()
def torque_regressor(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    joint_terms: Sequence[str] = (),
) -> np.ndarray:
    """Y(q, q̇, q̈) with τ = Y π, (nv, parameters) (1)–(4).  O(N · depth).

    joint_terms: some of `JOINT_TERMS`; τ is then what motors give, passive forces taken off.
    """
    H, phi = mech.H(q), mech.phi(q)
    A = _force_maps(mech, H, phi, q, qd, qdd)
    axes: list[dict[int, np.ndarray]] = [{}]
    columns = []
    for p, k in mech.outward():
        axes.append({j: phi[k].T @ S for j, S in axes[p].items()} | {k: H[k].T})  # (3)
        blocks = {j: (S.T @ A[k]).T for j, S in axes[k].items()}  # (4)
        columns.append(mech.join_columns(blocks, 10).T)
    own = torque_regressor_joints(mech, q, qd, qdd, joint_terms)
    return np.concatenate([*columns, own], axis=1)


@algorithm()
def torque_regressor_joints(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    joint_terms: Sequence[str] = (),
) -> np.ndarray:
    """The columns of Y for the numbers of joints: (nv, terms · DoF of joints).  O(N) non-zeros."""
    values = mech.coordinates(q), mech.rates(qd), mech.rates(qdd)
    columns = [np.zeros((mech.nv, 0))]
    for term in joint_terms_of(mech.name, joint_terms):
        for _, k in mech.outward():
            own = _joint_columns(mech.bodies[k], term, *(x[k] for x in values))
            columns.append(mech.join_columns({k: own.T}, own.shape[1]).T)
    return np.concatenate(columns, axis=1)


def _joint_columns(
    body: Body, term: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> np.ndarray:
    """∂τ/∂number, (nv, nv) of one joint."""
    if term == "stiffness":
        springs = [_with_stiffness(body.joint, u) for u in np.eye(body.joint.nv)]
        return -np.array([joint.spring_force(q) for joint in springs]).T
    of = {"armature": qdd, "damping": qd, "friction": qd}[term]
    return np.diag(dry_friction(of) if term == "friction" else of)


def _with_stiffness(joint: Joint, stiffness: np.ndarray) -> Joint:
    """The joint with other springs, though they be such as have no potential by themselves."""
    other = copy(joint)
    object.__setattr__(other, "stiffness", tuple(stiffness))
    return other


@algorithm(loops=True)
def torque_regressor_row(
    mech: Tree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """v* Y of the bodies, (10 n_bodies,): the power of a virtual velocity v (5).  O(N)."""
    H, phi, v_ = mech.H(q), mech.phi(q), mech.rates(v)
    A = _force_maps(mech, H, phi, q, qd, qdd)
    W, row = mech.slots(2)
    row[0] = np.zeros(0)
    for p, k in mech.outward():
        W[k] = phi[k].T @ W[p] + H[k].T @ v_[k]
        row[k] = W[k] @ A[k]
    return mech.join_bodies(row)


def _force_maps(
    mech: Tree, H: PerBody, phi: PerBody, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> Any:
    """A(k) of each body (2): (6, 10)."""
    qd_, qdd_, H_rate = mech.rates(qd), mech.rates(qdd), mech.H_rate(q, qd)
    V, alpha, A = mech.slots(3)
    alpha[0] = -mech.free_fall
    for p, k in mech.outward():
        W = H[k].T @ qd_[k]
        V[k] = phi[k].T @ V[p] + W
        own = H[k].T @ qdd_[k] + H_rate[k].T @ qd_[k]
        alpha[k] = carried_acceleration(phi[k], V[p], alpha[p], W) + own
        A[k] = force_map(V[k], alpha[k])
    return A


@algorithm(loops=True)
def energy_regressor(mech: Tree, q: np.ndarray, qd: np.ndarray) -> EnergyRegressors:
    """Kinetic and potential energy as products with π: (10 n_bodies,) each.  O(N).

    As `kinetic_energy` without armature, and `potential_energy`.
    """
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    V, lift, kinetic, potential = mech.slots(4)
    # g and −g·p of each body's origin, in its axes
    lift[0] = np.append(mech.free_fall[3:], 0.0)
    kinetic[0] = potential[0] = np.zeros(0)
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ qd_[k]
        g = lift[p][:3]
        lift[k] = np.append(phi[k].R.T @ g, lift[p][3] - g @ phi[k].p)
        kinetic[k] = 0.5 * (V[k] @ momentum_map(V[k]))
        potential[k] = np.concatenate([lift[k][3:], -lift[k][:3], np.zeros(6)])
    return EnergyRegressors(mech.join_bodies(kinetic), mech.join_bodies(potential))


@algorithm(loops=True)
def momentum_regressor(mech: Tree, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """The spatial momentum about the world's origin, world axes, as a product with π.  O(N).

    (6, 10 n_bodies), (angular; linear), as `momentum(q, qd, about="world")`.
    """
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    V, R, r, columns = mech.slots(4)
    R[0], r[0], columns[0] = np.eye(3), np.zeros(3), np.zeros((6, 0))
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ qd_[k]
        R[k], r[k] = R[p] @ phi[k].R, r[p] + R[p] @ phi[k].p
        columns[k] = ForceTransfer(R[k], r[k]) @ momentum_map(V[k])
    return mech.join_bodies(columns)


def momentum_map(V: np.ndarray) -> np.ndarray:
    """B(V) with M V = B π, (6, 10) (1)."""
    w, u = V[:3], V[3:]
    top = np.concatenate([np.zeros((3, 1)), -skew(u), _moments(w)], axis=1)
    bottom = np.concatenate([u[:, None], skew(w), np.zeros((3, 6))], axis=1)
    return np.concatenate([top, bottom])


def force_map(V: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """A(V, α) with M α + b = A π, (6, 10) (2); α = (ω̇; p̈) as in inverse dynamics."""
    w, a = V[:3], alpha[3:]
    turn = _moments(alpha[:3]) + skew(w) @ _moments(w)
    top = np.concatenate([np.zeros((3, 1)), -skew(a), turn], axis=1)
    bottom = np.concatenate([a[:, None], turning(w, alpha[:3]), np.zeros((3, 6))], axis=1)
    return np.concatenate([top, bottom])


def _moments(w: np.ndarray) -> np.ndarray:
    """L(ω) with J ω = L (J_xx, J_yx, J_yy, J_zx, J_zy, J_zz)."""
    (x, y, z), o = w, 0.0
    return np.array([[x, y, o, z, o, o], [o, x, y, o, z, o], [o, o, o, x, y, z]])

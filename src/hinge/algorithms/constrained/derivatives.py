"""How a held mechanism, and what holds it, change.  Paper L, Algorithm 6; math §3, §5.

With the forces of the constraints held fixed, in the axes in which they are solved for, M q̈ and
K q̈ − k change by what Algorithm 6 and `changes.py` know; the same factor as for the motion answers:

    M ∂q̈ − K* ∂λ = −∂ID,     K ∂q̈ = −∂(K q̈ − k)                                                 (1)

All limbs of a mechanism that has but one body on the ground feel each other through that body, the
base, only.  With its joint b held, Algorithm 6 gives for the others, l,

    q̈_l = X + Y ∂λ − T q̈_b,   Y = M_l⁻¹ K_l*        D q̈_b = S + Z ∂λ,   Z = K_b* − T* K_l*      (2)

limb by limb: M_l⁻¹ and X have blocks on their diagonals only, and the rows of Y are those of limbs
that something holds.  What is left is as large as the base and the rows of K:

    A = K_l Y + Z* D⁻¹ Z,   B = D⁻¹ Z A⁻¹,   D_c⁻¹ = D⁻¹ − B Z* D⁻¹,   β = ∂(K q̈ − k) + K_l X   (3)
    ∂λ = −B* S − A⁻¹ β,   ∂q̈_b = D_c⁻¹ S − B β,   ∂q̈_l by (2)                                   (4)

Where nothing holds the limb of a direction, β = 0 and all comes from S: ∂q̈_l = X + C S with
C = −Y B* − T D_c⁻¹, which is also ∂q̈_l/∂τ_b                                                    (5)

A base that moves freely takes up whatever its own motion adds to its acceleration: H″ δq and
(Ḣ + H′) δq̇ are taken off its q̈ at the end, and nothing else has to know of them                (6)

A is that of the motion.  Of rows that depend on others the least pivots are left out, so that
A⁻¹ is one of its generalised inverses: ∂q̈ is unique, and ∂λ one of the changes that go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import mirror_lower, sparse_product, vanishes
from ...model.mechanism import Mechanism
from ...model.protocol import Descents, PerBody
from ..declare import algorithm, for_any_mechanism
from ..linearized.articulated import articulated
from ..linearized.forward_derivatives import all_directions
from ..linearized.nominal import Nominal, nominal
from .changes import changes
from .description import Constraint
from .forward import Solved, solved_motion
from .multipliers import DOUBLE, generalized_inverse
from .rows import in_given_axes, pushed, pushes

__all__ = [
    "ConstrainedChanges",
    "ConstrainedDerivatives",
    "Core",
    "Limbs",
    "all_loads",
    "constrained_changes",
    "constrained_forward_dynamics_derivatives",
    "in_doubt",
    "limbs_of",
]


class ConstrainedDerivatives(NamedTuple):
    """∂q̈ over q, q̇, τ, (nv, nv) each, and ∂λ over the same, (rows, nv) each."""

    dq: Any
    dqd: Any
    dtau: Any
    forces_dq: Any
    forces_dqd: Any
    forces_dtau: Any


class Limbs(NamedTuple):
    """A mechanism whose base is held (2): base, how many DoF its joint has, the first ones.

    inverse: [D⁻¹ −T*; −T M_l⁻¹], (nv, nv).  dq, dqd: S and, below, X, (nv, nv) each.
    """

    base: int
    inverse: np.ndarray
    dq: np.ndarray
    dqd: np.ndarray

    def pushed(self, tau: np.ndarray) -> np.ndarray:
        """S and X of joint forces: (nv, n)."""
        b, N = self.base, self.inverse
        above = tau[:b] + sparse_product(N[:b, b:], tau[b:])
        return np.concatenate([above, sparse_product(N[b:, b:], tau[b:])])

    @property
    def units(self) -> np.ndarray:
        """S and X of a unit force at each joint: (nv, nv)."""
        units = np.eye(len(self.inverse), dtype=self.inverse.dtype)
        units[:, self.base :] = self.inverse[:, self.base :]
        return units


@algorithm(joint_level=True)
def constrained_forward_dynamics_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    anchors: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedDerivatives:
    """∂q̈ and ∂λ over q, q̇, τ, ∂q along the joints' tangents.  O(N²) and O(N rows²).

    f_ext keeps its components in body axes; anchors stay where they are.
    """
    solved = solved_motion(mech, q, qd, tau, constraints, f_ext, mask, anchors, rounding)
    loads = pushed(mech, solved.places, solved.forces, f_ext)
    n, taken = _taken_up(mech, nominal(mech, q, qd, solved.qdd, loads))
    limbs = limbs_of(mech, n, q, qd, solved.qdd, loads)
    rows = changes(mech, n, solved.places, solved.forces)
    core = Core(limbs, rows.K, generalized_inverse(solved.felt, mask, rounding))
    moved = limbs.dq + limbs.pushed(rows.pushed.T) @ rows.push
    dq, forces_dq = core.answer(moved, rows.dq)
    dqd, forces_dqd = core.answer(limbs.dqd, rows.dqd)
    dtau, forces_dtau = core.answer(limbs.units, np.zeros(rows.K.shape))
    forces = forces_dq + rows.turn, forces_dqd, forces_dtau
    return ConstrainedDerivatives(
        in_doubt(dq - taken[0], solved),
        dqd - taken[1],
        mirror_lower(dtau).reshape(dtau.shape),
        *(in_given_axes(solved.places, x) for x in forces),
    )


def _taken_up(mech: Mechanism, n: Nominal) -> tuple[Nominal, tuple[np.ndarray, np.ndarray]]:
    """The motion without H″ and Ḣ + H′ of a base that moves freely, and both in their places (6).

    Zeros for all other bases: a joint of fewer DoF cannot take them up, a rotor does not feel them.
    """
    still, nowhere = np.zeros((6, 6)), np.zeros((mech.nv, mech.nv))
    alone = sum(p == 0 for p, _ in mech.outward()) == 1 and not mech.has_followers
    free = alone and n.H[1].shape == (6, 6) and (n.H[1] == np.eye(6)).all()
    if not free or (mech.armature[1] != 0).any():
        return n, (nowhere, nowhere)
    second, total = (mech.join_blocks({(1, 1): x[1]}) for x in (n.H_second, n.H_sum))
    H_second, H_sum = ([x[0], still, *x[2:]] for x in (n.H_second, n.H_sum))
    return n._replace(H_sum=H_sum, H_second=H_second), (second, total)


class ConstrainedChanges(NamedTuple):
    """A held motion, and what its derivatives need beside those of the free one under the loads.

    qdd: (nv,).  loads: all forces on bodies, (n_bodies, 6).  K; dq, dqd: of K q̈ − k; turn: of λ, as
    its axes turn; (rows, nv) each.  pushed, push: with pushed* push, (nv, nv), the joint forces of
    λ beyond loads in body axes, (any, nv) each.  A_inv: (rows, rows).
    """

    qdd: Any
    loads: Any
    K: Any
    dq: Any
    dqd: Any
    turn: Any
    pushed: Any
    push: Any
    A_inv: Any


@algorithm(loops=True)
def constrained_changes(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    anchors: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedChanges:
    """The part of the derivatives that constraints add, all rows in the axes given.  O(N rows)."""
    solved = solved_motion(mech, q, qd, tau, constraints, f_ext, mask, anchors, rounding)
    push = mech.placed(pushes(solved.places, solved.forces))
    n = nominal(mech, q, qd, solved.qdd, f_ext, push)
    rows = changes(mech, n, solved.places, solved.forces, given_axes=True)
    half = in_given_axes(solved.places, generalized_inverse(solved.felt, mask, rounding))
    A_inv = in_given_axes(solved.places, half.T)
    return ConstrainedChanges(solved.qdd, all_loads(mech, f_ext, push), *rows, A_inv)


def all_loads(mech: Descents, f_ext: np.ndarray | None, push: PerBody) -> np.ndarray:
    """The forces on bodies, (n_bodies, 6), with what constraints push."""
    f, (loads,) = mech.wrenches(f_ext), mech.slots(1)
    for _, k in mech.outward():
        loads[k] = f[k] + push[k]
    return mech.join_wrenches(loads)


@for_any_mechanism
def limbs_of(
    mech: Mechanism, n: Nominal, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, loads: np.ndarray
) -> Limbs:
    """By Algorithm 6, on the nominal motion; of several bodies on the ground none is a base."""
    a = articulated(mech, n, mech.each(lambda k: np.zeros((6, 6))))
    on_ground = [k for p, k in mech.outward() if p == 0]
    held = on_ground[0] if len(on_ground) == 1 else None
    dq, dqd, inverse = all_directions(mech, n, a, held)
    return Limbs(0 if held is None else n.H[held].shape[1], inverse, dq, dqd)


def in_doubt(dq: np.ndarray, solved: Solved) -> np.ndarray:
    """∂q̈, NaN where there is no q̈: it need not depend on it, nor on λ."""
    dq[:1, :1] = dq[:1, :1] + (solved.met - 1)
    return dq


class Core:
    """(3): how limbs and the base go with what holds them."""

    def __init__(self, limbs: Limbs, K: np.ndarray, A_inv: np.ndarray) -> None:
        b = self.base = limbs.base
        self.K_l, self.A_inv, self.minus_T = K[:, b:], A_inv, limbs.inverse[b:, :b]
        D_inv, moved = limbs.inverse[:b, :b], limbs.pushed(K.T)
        self.Y = moved[b:]
        held = D_inv @ moved[:b]
        self.B = held @ A_inv
        self.D_inv = mirror_lower(D_inv - self.B @ held.T).reshape(b, b)
        self.C = self.minus_T @ self.D_inv - sparse_product(self.Y, self.B.T)  # (5)

    def answer(self, moved: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂q̈ (nv, n) and ∂λ (rows, n), from S over X and the changes of the rows."""
        S, X = moved[: self.base], moved[self.base :]
        beta = rows + sparse_product(self.K_l, X)
        forces = -(self.B.T @ S + self.A_inv @ beta)
        base = self.D_inv @ S - self.B @ beta  # (4)
        free = np.array([all(map(vanishes, column)) for column in beta.T], dtype=bool)
        limbs = np.zeros(X.shape, dtype=forces.dtype)
        limbs[:, free] = self.C @ S[:, free]
        limbs[:, ~free] = sparse_product(self.Y, forces[:, ~free]) + self.minus_T @ base[:, ~free]
        return np.concatenate([base, X + limbs]), forces

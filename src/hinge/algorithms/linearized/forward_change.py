"""Forward dynamics and its change in one direction, both from one articulated recursion.

What bodies need for the change of a motion, at δq̈ = 0, are forces (those of Algorithm 1 in
`linearized/inverse_derivatives.py`, not yet summed), and the inertias P, D, G of `riccati.py` that
answer τ with q̈ answer δτ with δq̈ once more:

    f̂    = M α + b − f_ext              at q̈ = 0, as in `inverse_dynamics.py`                   (1)
    δf̂   = M η + 2 M̂ ϑ + F δq           at δq̈ = 0, on the nominal motion with q̈                 (2)

    inward    z(k) = f̂(k) + Σ φ(k,c) (z(c) + G(c) ε(c)),   ε(k) = τ(k) − H z(k)                 (3)
    outward   q̈(k) = D⁻¹ ε − G* φ*(p,k) α(p),   α(k) = φ*(p,k) α(p) + H* q̈(k)                   (4)

and the same for δf̂, δτ + E δq and δq̈.  In loops over a chain that takes two thirds of the
operations of Algorithm 5 with its q̈, which keeps a little more of the digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...model.mechanism import Mechanism
from ...model.protocol import PerBody, Tree
from ..declare import algorithm
from ..inverse_dynamics import motion
from ..riccati import Riccati, riccati
from .gyroscopic import gyroscopic
from .nominal import Nominal, nominal

__all__ = ["ForwardDynamicsChange", "forward_dynamics_change"]


class ForwardDynamicsChange(NamedTuple):
    """q̈ and δq̈, each (nv,)."""

    qdd: np.ndarray
    dqdd: np.ndarray


@algorithm(joint_level=True, loops=True, independent_joints=True)
def forward_dynamics_change(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> ForwardDynamicsChange:
    """q̈, and how it changes if q, q̇, τ change by dq, dqd, dtau; each (nv,).  O(N).

    A general hinge takes 487 multiplications and 445 additions.
    dq is along the joints' tangents; f_ext is fixed in body axes.
    """
    H, phi = mech.H(q), mech.phi(q)
    r = riccati(mech, H, phi)
    f = motion(mech, H, phi, q, qd, np.zeros(mech.nv), f_ext).f  # (1)
    qdd = mech.join(_answer(mech, r, H, phi, mech.rates(tau), f))
    n = nominal(mech, q, qd, qdd, f_ext)
    dqdd = _answer(mech, r, H, phi, *_changed(mech, n, dq, dqd, dtau))
    return ForwardDynamicsChange(qdd, mech.join(dqdd))


def _changed(mech: Tree, n: Nominal, *change: Any) -> tuple[Any, Any]:
    """δτ + E δq of every joint and δf̂ of every body; change: dq, dqd, dtau."""
    dq, dqd, dtau = (mech.rates(x) for x in change)
    theta, eta, df, felt = mech.slots(4)
    theta[0] = np.zeros(3)
    for p, k in mech.outward():
        turn = n.H[k][:3] @ dqd[k] + n.H_first[k][:3] @ dq[k]
        theta[k] = n.phi[k].R.T @ theta[p] + turn
        eta[k] = n.phi[k].T @ eta[p] + n.H_sum[k] @ dqd[k] + n.H_second[k] @ dq[k]
        gyration = gyroscopic(mech.M[k], n.V[k] + n.V[k]) @ theta[k]
        df[k] = mech.M[k] @ eta[k] + gyration + n.F[k] @ dq[k]  # (2)
        felt[k] = dtau[k] + n.E[k] @ dq[k]
    return felt, df


def _answer(mech: Tree, r: Riccati, H: PerBody, phi: PerBody, tau: PerBody, needed: PerBody) -> Any:
    """The accelerations with which joints answer forces, what bodies need by themselves given."""
    z = mech.filled(lambda k: needed[k])
    eps, alpha, qdd = mech.slots(3)
    for p, k in mech.inward():
        eps[k] = tau[k] - H[k] @ z[k]
        z[p] = z[p] + phi[k] @ (z[k] + r.G[k] @ eps[k])  # (3)
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p]
        qdd[k] = r.D_inv[k] @ eps[k] - r.G[k].T @ alpha_plus
        alpha[k] = alpha_plus + H[k].T @ qdd[k]  # (4)
    return qdd

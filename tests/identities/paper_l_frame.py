"""Paper L in its own terms: dense operators, everything about one inertial point in its axes.

H has a column per DoF here (the papers' H*), S[V] is V×*, Q[f]V = −S[V]f.  Rates may be those of
hinge, whose H is constant in the child (or S(q), universal joints), or twists constant in the
parent ("left"): then q is displaced by exp(S δ) T instead of T exp(S δ).
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
from scipy.linalg import block_diag

import hinge
from dense import crf, crm, of_bodies
from hinge.algebra.rotation import skew
from identities.paper_d_cases import TREES, near
from mechanisms import complex_step, everything, random_state

__all__ = ["CASES", "OneFrame", "Q", "S", "change", "moving", "near"]
Z3 = np.zeros((3, 3))
S = crf


def Q(f):
    """Q[f]V = −S[V]f."""
    a, b = skew(f[:3]), skew(f[3:])
    return np.block([[a, b], [b, Z3]])


def adjoint(R, p):
    """Ad: motions in the axes of a frame to motions about the origin in the ground's axes."""
    return np.block([[R, Z3], [skew(p) @ R, R]])


class OneFrame:
    """H, M, Φ, … of a robot at q."""

    def __init__(self, robot: hinge.Robot, q: np.ndarray, left: bool = False) -> None:
        self.robot, self.mech, self.q, self.left = robot, robot.mechanism, q, left
        mech = self.mech
        self.n = self.size = mech.n_bodies
        self.N = robot.nv
        self.poses = robot.alg.poses(q)
        self.Ad = [None, *(adjoint(X[:3, :3], X[:3, 3]) for X in self.poses)]
        rows = mech.H(q)
        hinges = [self._hinge(k, rows[k]) for k in range(1, self.n + 1)]
        self.H, self.H_list = block_diag(*hinges), [None, *hinges]
        inverse = [None, *(np.linalg.inv(A) for A in self.Ad[1:])]
        bodies = zip(mech.M[1:], inverse[1:], strict=True)
        self.M = block_diag(*(A.T @ M.matrix @ A for M, A in bodies))
        self.J = np.diag(np.concatenate(mech.armature))
        hop = np.zeros((self.n, self.n))
        for p, k in mech.outward():
            if p:
                hop[p - 1, k - 1] = 1
        self.E_phi = np.kron(hop, np.eye(6))
        self.Phi = np.kron(np.linalg.inv(np.eye(self.n) - hop), np.eye(6))
        self.I = np.eye(6 * self.n)
        roots = hop.sum(axis=0) == 0
        self.fall = np.kron(roots, -mech.free_fall)

    def _hinge(self, k, rows):
        """H_k = Ad_k S_k, or Ad of the joint's frame on the parent times S."""
        if not self.left:
            return self.Ad[k] @ rows.T
        body = self.mech.bodies[k]
        parent = self.poses[body.parent - 1] if body.parent else np.eye(4)
        X = parent @ body.placement.matrix
        return adjoint(X[:3, :3], X[:3, 3]) @ body.joint.H(self.mech.coordinates(self.q)[k]).T

    def at(self, displacement):
        """The same robot displaced along its tangent; a first order is all that matters."""
        if self.left:
            child = OneFrame(self.robot, self.q).H
            displacement = np.linalg.lstsq(child, self.H @ displacement, rcond=None)[0]
        return lambda h: OneFrame(
            self.robot, self.robot.alg.integrate(self.q, h * displacement), self.left
        )

    def joints(self, x):
        """Per body, the entries of a joint vector."""
        return self.mech.rates(x)

    def columns(self, make):
        """The operator with the columns make(k) of each body, bodies from 1."""
        return block_diag(*(make(k) for k in range(1, self.n + 1)))

    def H_dot(self, nu):
        """Ḣ along the motion."""
        V, V_plus = self.velocities(nu)
        if self.left:
            return self.columns(lambda k: crm(V_plus[k]) @ self.H_list[k])
        rate = self.mech.H_rate(self.q, nu)
        return self.columns(lambda k: crm(V[k]) @ self.H_list[k] + self.Ad[k] @ rate[k].T)

    def velocities(self, nu):
        """V_k and V_λ of every body."""
        return self.with_parents(self.Phi.T @ (self.H @ nu), np.zeros(6))

    def with_parents(self, x, ground):
        """A stack of vectors, and those of the parents, with the ground first."""
        own = [ground, *x.reshape(-1, 6)]
        return own, [ground, *(own[b.parent] for b in self.mech.bodies[1:])]

    def nominal(self, nu, nud, fext):
        """V, α, x, f, τ of math §1 in operator form; fext about the frame's origin."""
        V = self.Phi.T @ (self.H @ nu)
        alpha = self.Phi.T @ (self.H @ nud + self.H_dot(nu) @ nu + self.fall)
        x = self.M @ alpha + of_bodies(S, V) @ (self.M @ V) - fext
        f = self.Phi @ x
        return SimpleNamespace(V=V, alpha=alpha, x=x, f=f, tau=self.H.T @ f + self.J @ nud)

    def M_hat(self, V):
        """½(S[V]M + M S[V]ᵀ − Q[MV])."""
        turn = of_bodies(S, V)
        return 0.5 * (turn @ self.M + self.M @ turn.T - of_bodies(Q, self.M @ V))

    def maps(self, nu, nud, n):
        """H′, H″, F, E of the table of math §2, and Ḣ."""
        V, V_plus = self.with_parents(n.V, np.zeros(6))
        alpha, alpha_plus = self.with_parents(n.alpha, -self.mech.free_fall)
        f, H, E = [None, *n.f.reshape(-1, 6)], self.H_list, np.zeros((self.N, self.N))
        F = self.columns(lambda k: -Q(f[k]) @ H[k])
        if self.left:
            first = self.columns(lambda k: crm(V[k]) @ H[k])
            second = of_bodies(crm, n.alpha) @ self.H + of_bodies(crm, n.V) @ first
            E = block_diag(*(h.T @ -Q(g) @ h for h, g in zip(H[1:], f[1:], strict=True)))
            return self.H_dot(nu), first, second, F, E
        joint = [self.slopes(k, nu, nud) for k in range(1, self.n + 1)]
        first, slope, bend, own = [], [], [], []
        for k, (s, b, e) in enumerate(joint, 1):
            slope.append(self.Ad[k] @ s)
            first.append(crm(V_plus[k]) @ H[k] + slope[-1])
            bend.append(crm(V[k]) @ slope[-1] + self.Ad[k] @ b)
            own.append(np.einsum("bai,i->ab", e, self.Ad[k].T @ f[k]))
        second = self.columns(
            lambda k: crm(alpha_plus[k]) @ H[k] + crm(V_plus[k]) @ first[k - 1] + bend[k - 1]
        )
        return self.H_dot(nu), block_diag(*first), second, F, block_diag(*own)

    def slopes(self, k, nu, nud):
        """[∂_b S ν]_b, [∂_b S ν̇ + Σ_c ν_c ∂_b(∂_c S) ν]_b and ∂_b S_a of a joint in the body."""
        body, rates = self.mech.bodies[k], self.joints(nu)[k]
        q = self.mech.coordinates(self.q)[k]
        turn = block_diag(body.offset.rotation.T, body.offset.rotation.T)
        shift = adjoint(np.eye(3), -body.offset.translation)
        d, dd = (
            x @ (turn @ shift).T for x in (body.joint.H_slope(q), body.joint.H_rate_slope(q, rates))
        )
        accelerations = self.joints(nud)[k]
        slope = np.array([x.T @ rates for x in d]).T
        bend = np.array([x.T @ accelerations + y.T @ rates for x, y in zip(d, dd, strict=True)]).T
        return slope.reshape(6, -1), bend.reshape(6, -1), d


CASES = {name: (robot, False) for name, robot in TREES.items() if robot.nv}
CASES |= {"everything": (everything(), False), "left twists": (TREES["mixed with rotors"], True)}


@cache
def moving(name, seed=1):
    """A robot at a state: its operators, nominal motion, and the maps of its joints."""
    robot, left = CASES[name]
    s = random_state(robot, seed)
    o = OneFrame(robot, s.q, left)
    o.nu, o.nud = s.qd, s.qdd
    forces = zip(o.Ad[1:], s.f_ext, strict=True)
    o.fext = np.concatenate([np.linalg.inv(A).T @ f for A, f in forces])
    o.nominal_ = n = o.nominal(o.nu, o.nud, o.fext)
    o.H_rate, o.H1, o.H2, o.F, o.E = o.maps(o.nu, o.nud, n)
    o.M_hat_, o.mass = o.M_hat(n.V), o.H.T @ o.Phi @ o.M @ o.Phi.T @ o.H + o.J
    return o


def change(o, fn, dq=None, dnu=None, dnud=None):
    """δ fn(frame, ν, ν̇) along a displacement of q, ν and ν̇."""
    zero = np.zeros(o.N)
    path = o.at(zero if dq is None else dq)
    dnu, dnud = (zero if x is None else x for x in (dnu, dnud))
    return complex_step(lambda h: fn(path(h), o.nu + h * dnu, o.nud + h * dnud))

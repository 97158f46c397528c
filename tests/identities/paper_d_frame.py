"""Paper D in its own terms: a serial chain of hinges, bodies counted from the tip, inertial axes.

Dense operators; `A.T` is the paper's A*, and Ṽ* is −(V ×*).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import hinge
from dense import block_diagonal, crm, of_bodies
from hinge.algebra.rotation import skew
from mechanisms import complex_step, random_chain, random_state

__all__ = ["Motion", "Operators"]


def angular(V):
    """The motion without its linear part."""
    return np.concatenate([V[:3], np.zeros(3)])


@dataclass
class Operators:
    """H, φ, M, P, D, G, … of a chain at q, tip first, inertial axes."""

    robot: hinge.Robot
    q: np.ndarray

    def __post_init__(self):
        poses = self.robot.alg.poses(self.q)[::-1]
        bodies = self.robot.mechanism.bodies[:0:-1]
        hinges, inertias, hops = [], [], []
        for X, body in zip(poses, bodies, strict=True):
            R = X[:3, :3]
            hinges.append(np.concatenate([R @ np.array(body.joint.axis), np.zeros(3)])[None])
            turn = block_diagonal([R, R])
            inertias.append(turn @ body.inertia.spatial.matrix @ turn.T)
        for near, far in zip(poses[1:], poses, strict=False):
            lever = skew(far[:3, 3] - near[:3, 3])
            hops.append(np.block([[np.eye(3), lever], [np.zeros((3, 3)), np.eye(3)]]))
        self.H, self.M = block_diagonal(hinges), block_diagonal(inertias)
        self.one, self.unit = np.eye(len(self.M)), np.eye(len(self.H))
        self.E_phi = np.zeros_like(self.M)
        for k, hop in enumerate(hops):
            self.E_phi[6 * k + 6 : 6 * k + 12, 6 * k : 6 * k + 6] = hop
        self.phi = np.linalg.inv(self.one - self.E_phi)
        self._riccati(hinges, inertias, hops)

    def _riccati(self, hinges, inertias, hops):
        P, D, G, P_plus, P_k = [], [], [], [], inertias[0]
        for k, h in enumerate(hinges):
            D_k = h @ P_k @ h.T
            G_k = P_k @ h.T / D_k
            P.append(P_k), D.append(D_k), G.append(G_k)
            P_plus.append(P_k - G_k @ h @ P_k)
            if k < len(hops):
                P_k = inertias[k + 1] + hops[k] @ P_plus[k] @ hops[k].T
        self.P, self.D, self.G = block_diagonal(P), block_diagonal(D), block_diagonal(G)
        self.P_plus = block_diagonal(P_plus)
        self.tau = self.G @ self.H
        self.tau_bar = self.one - self.tau
        self.K, self.E_psi = self.E_phi @ self.G, self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(self.one - self.E_psi)
        self.root = np.sqrt(self.D)
        self.m = (self.unit + self.H @ self.phi @ self.K) @ self.root

    @property
    def momenta(self):
        """φMφ*, whose derivative is (A.12)."""
        return self.phi @ self.M @ self.phi.T


class Motion:
    """A chain that moves: its operators at one state, velocities, and rates by complex steps."""

    def __init__(self, n: int = 4, seed: int = 5) -> None:
        self.robot = robot = random_chain(n, np.random.default_rng(seed))
        s = random_state(robot, 1)
        self.q, self.qd, self.qdd = s.q, s.qd, s.qdd
        self.n = robot.nv
        self.o = o = Operators(robot, s.q)
        self.theta_d, self.torque = s.qd[::-1], s.qdd
        self.mass = robot.alg.mass_matrix(s.q)[::-1, ::-1]
        self.m = np.linalg.cholesky(self.mass)
        self.l = np.linalg.inv(self.m)
        self.root_inv = np.linalg.inv(o.root)
        self.V = o.phi.T @ o.H.T @ self.theta_d
        self.V_plus = o.E_phi.T @ self.V
        self.nu = self.m.T @ self.theta_d
        self.xi = self.root_inv @ self.nu
        self.tilde_V = of_bodies(crm, self.V)
        # angular velocities of bodies, across joints, and of the bodies inboard
        self.omega = of_bodies(lambda v: crm(angular(v)), self.V)
        self.delta = of_bodies(crm, o.H.T @ self.theta_d)
        self.parent = self.omega - self.delta

    def rate(self, name, qd=None):
        """The time derivative of an operator along the motion, in inertial axes."""
        qd = self.qd if qd is None else qd
        return complex_step(lambda h: getattr(Operators(self.robot, self.q + h * qd), name))

    def slope(self, name, i):
        """∂/∂θ_i, i counted from the tip."""
        return self.rate(name, np.eye(self.n)[self.n - 1 - i])

    def mass_slope(self, i):
        """∂𝓜/∂θ_i, by the robot."""
        e = np.eye(self.n)[self.n - 1 - i]
        return complex_step(lambda h: self.robot.alg.mass_matrix(self.q + h * e))[::-1, ::-1]

    def spins(self, i):
        """ℍ_δ (body i alone), ℍ_s (outboard of i), ℍ (both)."""
        h = crm(angular(self.o.H[i, 6 * i : 6 * i + 6]))
        zero = np.zeros((6, 6))
        own = block_diagonal([h if k == i else zero for k in range(self.n)])
        beyond = block_diagonal([h if k < i else zero for k in range(self.n)])
        return own, beyond, own + beyond

    def rate_along_the_motion(self, normalized, torque=None):
        """Of ν or ξ where forward dynamics leads, joint forces `torque` acting (default none)."""
        tau = np.zeros(self.n) if torque is None else torque[::-1]
        alg = self.robot.alg
        qdd = alg.forward_dynamics(self.q, self.qd, tau)
        return complex_step(
            lambda h: alg.total_rates(self.q + h * self.qd, self.qd + h * qdd, normalized)
        )[::-1]

    def carried_inward(self, source):
        """Λ = ℰ_ψ Λ ℰ_ψ* + source, a block-diagonal operator."""
        Lambda = source
        for _ in range(self.n):
            Lambda = self.o.E_psi @ Lambda @ self.o.E_psi.T + source
        return Lambda

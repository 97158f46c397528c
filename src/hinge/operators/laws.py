"""The identities of the spatial operator algebra, one function each: both sides, and when.

A law is read from left to right by `simplify`.  Each is written for a set of joints that give way
(all of them, or the passive ones of a split), on any tree; those that lose their meaning when a
joint has armature say so and are left alone there; beside each stands the law with the rotors in
it, which always holds.  Numbers in brackets: papers L and D, and U where it is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .articulation import Articulation
from .expr import Identity, Zero
from .operator import Operator

__all__ = ["LAWS", "Law", "laws_of"]

Sides = tuple[Operator, Operator]
I = Identity()


@dataclass(frozen=True)
class Law:
    """An identity: its name, its equation as text, both sides for a set of joints."""

    name: str
    equation: str
    sides: Callable[[Articulation], Sides]
    without_armature: bool = False

    def holds(self, s: Articulation) -> bool:
        """Whether it is true for these joints."""
        return not (self.without_armature and s.has_armature)


LAWS: list[Law] = []


def _law(sides: Callable[[Articulation], Sides]) -> Callable[[Articulation], Sides]:
    LAWS.append(Law(sides.__name__, _equation(sides), sides))
    return sides


def _law_without_armature(sides: Callable[[Articulation], Sides]) -> Callable[..., Sides]:
    LAWS.append(Law(sides.__name__, _equation(sides), sides, without_armature=True))
    return sides


def _equation(sides: Callable[..., Sides]) -> str:
    return (sides.__doc__ or "").strip()


def laws_of(s: Articulation) -> list[Law]:
    """The laws that hold for a set of joints."""
    return [law for law in LAWS if law.holds(s)]


# factorisations


@_law
def innovations_factorisation(s: Articulation) -> Sides:
    """[I + HφK] D [I + HφK]* = HφMφ*H* + J  (4.2)"""
    return s.factor @ s.D @ s.factor.T, s.mass


@_law
def innovations_of_the_mass(s: Articulation) -> Sides:
    """[I − HψK] (HφMφ*H* + J) = D [I + HφK]*  (4.2, 4.3)"""
    return s.innovations @ s.mass, s.D @ s.factor.T


@_law
def innovations_undo_the_factor(s: Articulation) -> Sides:
    """[I − HψK] [I + HφK] = I  (4.3)"""
    return s.innovations @ s.factor, Identity(s.H.out)


@_law
def factor_undoes_the_innovations(s: Articulation) -> Sides:
    """[I + HφK] [I − HψK] = I  (4.3)"""
    return s.factor @ s.innovations, Identity(s.H.out)


@_law
def innovations_turn_phi_into_psi(s: Articulation) -> Sides:
    """[I − HψK] Hφ = Hψ  (B.1)"""
    return s.innovations @ s.H @ s.phi, s.H @ s.psi


@_law
def phi_gain_innovations(s: Articulation) -> Sides:
    """φK [I − HψK] = ψK  (B.2)"""
    return s.phi @ s.K @ s.innovations, s.psi @ s.K


@_law
def phi_less_psi(s: Articulation) -> Sides:
    """ψKHφ = φ − ψ  (B.5)"""
    return s.psi @ s.K @ s.H @ s.phi, s.phi - s.psi


@_law
def phi_less_psi_again(s: Articulation) -> Sides:
    """φKHψ = φ − ψ  (B.5)"""
    return s.phi @ s.K @ s.H @ s.psi, s.phi - s.psi


@_law
def accelerations_of_free_joints(s: Articulation) -> Sides:
    """(HφMφ*H* + J)⁻¹ HφMφ* = [I − HψK]* D⁻¹HψP + K*ψ*  (4.5)"""
    joints = s.innovations.T @ s.D.inv
    left = joints @ s.innovations @ s.H @ s.phi @ s.M @ s.phi.T
    return left, joints @ s.H @ s.psi @ s.P + s.K.T @ s.psi.T


# inertias


@_law
def riccati(s: Articulation) -> Sides:
    """P − ℰ_ψPℰ_φ* = M  (4.9, A.14)"""
    return s.P - s.E_psi @ s.P @ s.E_phi.T, s.M


@_law
def riccati_with_the_gain(s: Articulation) -> Sides:
    """P − ℰ_φPℰ_φ* + KDK* = M  (A.14)"""
    return s.P - s.E_phi @ s.P @ s.E_phi.T + s.K @ s.D @ s.K.T, s.M


@_law_without_armature
def riccati_both_ways(s: Articulation) -> Sides:
    """P − ℰ_ψPℰ_ψ* = M, without armature  (4.9)"""
    return s.P - s.E_psi @ s.P @ s.E_psi.T, s.M


@_law
def riccati_both_ways_and_rotors(s: Articulation) -> Sides:
    """P − ℰ_ψPℰ_ψ* − KJK* = M"""
    return s.P - s.E_psi @ s.P @ s.E_psi.T - s.K @ s.J @ s.K.T, s.M


@_law_without_armature
def free_joints_see_D(s: Articulation) -> Sides:
    """HψMψ*H* = D, without armature"""
    return s.H @ s.psi @ s.M @ s.psi.T @ s.H.T, s.D


@_law
def free_joints_see_D_and_rotors(s: Articulation) -> Sides:
    """HψMψ*H* + [I − HψK] J [I − HψK]* = D"""
    left = s.H @ s.psi @ s.M @ s.psi.T @ s.H.T
    return left + s.innovations @ s.J @ s.innovations.T, s.D


@_law
def psi_M_phi(s: Articulation) -> Sides:
    """ψMφ* = ψP + Pφ* − P"""
    return s.psi @ s.M @ s.phi.T, s.psi @ s.P + s.P @ s.phi.T - s.P


@_law_without_armature
def psi_M_psi(s: Articulation) -> Sides:
    """ψMψ* = ψP + Pψ* − P, without armature"""
    return s.psi @ s.M @ s.psi.T, s.psi @ s.P + s.P @ s.psi.T - s.P


@_law
def psi_M_psi_and_rotors(s: Articulation) -> Sides:
    """ψMψ* + ψKJK*ψ* = ψP + Pψ* − P"""
    left = s.psi @ s.M @ s.psi.T + s.psi @ s.K @ s.J @ s.K.T @ s.psi.T
    return left, s.psi @ s.P + s.P @ s.psi.T - s.P


@_law
def joints_feel_D(s: Articulation) -> Sides:
    """HPH* + J = D"""
    return s.H @ s.P @ s.H.T + s.J, s.D


@_law
def gain(s: Articulation) -> Sides:
    """PH*D⁻¹ = G"""
    return s.P @ s.H.T @ s.D.inv, s.G


@_law
def gain_times_D(s: Articulation) -> Sides:
    """PH* = GD"""
    return s.P @ s.H.T, s.G @ s.D


@_law
def D_cancels(s: Articulation) -> Sides:
    """DD⁻¹ = I"""
    return s.D @ s.D.inv, Identity(s.H.out)


@_law
def D_cancels_again(s: Articulation) -> Sides:
    """D⁻¹D = I"""
    return s.D.inv @ s.D, Identity(s.H.out)


# gains: projections without armature, and what the rotors leave of that


@_law_without_armature
def gain_moves_its_joint(s: Articulation) -> Sides:
    """HG = I, without armature"""
    return s.H @ s.G, Identity(s.H.out)


@_law
def gain_and_rotor_move_the_joint(s: Articulation) -> Sides:
    """HG + JD⁻¹ = I"""
    return s.H @ s.G + s.J @ s.D.inv, Identity(s.H.out)


@_law_without_armature
def joint_lets_nothing_through(s: Articulation) -> Sides:
    """Hτ̄ = 0, without armature"""
    return s.H @ s.tau_bar, Zero(s.H.out, s.P.out)


@_law
def joint_lets_its_rotor_through(s: Articulation) -> Sides:
    """Hτ̄ = JD⁻¹H"""
    return s.H @ s.tau_bar, s.J @ s.D.inv @ s.H


@_law_without_armature
def inertia_beyond_a_joint(s: Articulation) -> Sides:
    """τ̄Pτ̄* = τ̄P, without armature"""
    return s.tau_bar @ s.P @ s.tau_bar.T, s.tau_bar @ s.P


@_law
def inertia_beyond_a_joint_and_rotor(s: Articulation) -> Sides:
    """τ̄Pτ̄* + GJG* = τ̄P"""
    return s.tau_bar @ s.P @ s.tau_bar.T + s.G @ s.J @ s.G.T, s.tau_bar @ s.P


@_law_without_armature
def factor_is_a_chain(s: Articulation) -> Sides:
    """I + HφK = HφG, without armature  (A.31)"""
    return s.factor, s.H @ s.phi @ s.G


@_law
def chain_and_rotors_are_the_factor(s: Articulation) -> Sides:
    """HφG + JD⁻¹ = I + HφK"""
    return s.H @ s.phi @ s.G + s.J @ s.D.inv, s.factor


@_law_without_armature
def nothing_is_left_along_the_joint(s: Articulation) -> Sides:
    """τ̄PH* = 0, without armature  (B.6)"""
    return s.tau_bar @ s.P @ s.H.T, Zero(s.P.out, s.H.out)


@_law
def the_rotor_is_left_along_the_joint(s: Articulation) -> Sides:
    """τ̄PH* = GJ"""
    return s.tau_bar @ s.P @ s.H.T, s.G @ s.J


@_law_without_armature
def phi_tau_bar(s: Articulation) -> Sides:
    """Hφτ̄ = Hφℰ_ψ, without armature  (B.4)"""
    return s.H @ s.phi @ s.tau_bar, s.H @ s.phi @ s.E_psi


@_law
def phi_tau_bar_and_rotors(s: Articulation) -> Sides:
    """Hφτ̄ = Hφℰ_ψ + JD⁻¹H"""
    return s.H @ s.phi @ s.tau_bar, s.H @ s.phi @ s.E_psi + s.J @ s.D.inv @ s.H


@_law_without_armature
def newton_euler_column(s: Articulation) -> Sides:
    """φMφ*H* = (I + φKH)Pφ*H*, without armature  (B.3)"""
    left = s.phi @ s.M @ s.phi.T @ s.H.T
    return left, (I + s.phi @ s.K @ s.H) @ s.P @ s.phi.T @ s.H.T


@_law
def newton_euler_column_and_rotors(s: Articulation) -> Sides:
    """φMφ*H* = (I + φKH)Pφ*H* + φKJ"""
    left = s.phi @ s.M @ s.phi.T @ s.H.T
    right = (I + s.phi @ s.K @ s.H) @ s.P @ s.phi.T @ s.H.T
    return left, right + s.phi @ s.K @ s.J


# projections and operational space


@_law_without_armature
def omega_is_a_projection(s: Articulation) -> Sides:
    """ΩMΩ = Ω, without armature: ΩM is a projection  (U, Lemma 6.1)"""
    return s.Omega @ s.M @ s.Omega, s.Omega


@_law
def omega_and_rotors(s: Articulation) -> Sides:
    """ΩMΩ + ψ*H*D⁻¹ [I − HψK] J [I − HψK]* D⁻¹Hψ = Ω"""
    rotors = s.psi.T @ s.H.T @ s.D.inv @ s.innovations
    return s.Omega @ s.M @ s.Omega + rotors @ s.J @ rotors.T, s.Omega


@_law
def omega_M_phi(s: Articulation) -> Sides:
    """ΩMφ* = φ* − ψ* + ΩP  (U, A.8)"""
    return s.Omega @ s.M @ s.phi.T, s.phi.T - s.psi.T + s.Omega @ s.P


@_law_without_armature
def held_joints_do_not_move(s: Articulation) -> Sides:
    """(I − ΩM) φ*H* = 0, without armature"""
    left = (I - s.Omega @ s.M) @ s.phi.T @ s.H.T
    return left, Zero(left.out, left.into)


@_law
def held_rotors_move(s: Articulation) -> Sides:
    """(I − ΩM) φ*H* = ψ*H*D⁻¹ [I − HψK] J"""
    left = (I - s.Omega @ s.M) @ s.phi.T @ s.H.T
    return left, s.psi.T @ s.H.T @ s.D.inv @ s.innovations @ s.J


@_law
def what_omega_leaves(s: Articulation) -> Sides:
    """(ψ − PΩ)Mφ* = (ψ − PΩ)P + P(ψ* − I)  (U, A.9)"""
    rest = s.psi - s.P @ s.Omega
    return rest @ s.M @ s.phi.T, rest @ s.P + s.P @ (s.psi.T - I)


@_law
def inertia_with_joints_let_go(s: Articulation) -> Sides:
    """φM(I − ΩM)φ* = (ψ − PΩ)P + P(ψ* − I): S_aa between the held joints  (U, 5.1c, 6.8)"""
    left = s.phi @ s.M @ (I - s.Omega @ s.M) @ s.phi.T
    return left, (s.psi - s.P @ s.Omega) @ s.P + s.P @ (s.psi.T - I)


# chains


@_law
def phi_hops(s: Articulation) -> Sides:
    """φℰ_φ = φ − I"""
    return s.phi @ s.E_phi, s.phi - I


@_law
def hops_phi(s: Articulation) -> Sides:
    """ℰ_φφ = φ − I"""
    return s.E_phi @ s.phi, s.phi - I


@_law
def psi_hops(s: Articulation) -> Sides:
    """ψKH = ψℰ_φ − ψ + I  (from ψℰ_ψ = ψ − I)"""
    return s.psi @ s.K @ s.H, s.psi @ s.E_phi - s.psi + I


@_law
def hops_psi(s: Articulation) -> Sides:
    """KHψ = ℰ_φψ − ψ + I  (from ℰ_ψψ = ψ − I)"""
    return s.K @ s.H @ s.psi, s.E_phi @ s.psi - s.psi + I


@_law
def chains_differ_by_the_gain(s: Articulation) -> Sides:
    """ψ⁻¹ = φ⁻¹ + KH  (B.5)"""
    return s.phi.inv + s.K @ s.H, s.psi.inv

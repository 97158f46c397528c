"""The identities of the spatial operator algebra, one function each: both sides, and when.

A law is read from left to right by `simplify`.  Each is written for a set of joints that give way
(all of them, or the passive ones of a split), on any tree; those that lose their meaning when a
joint has armature say so and are left alone there.  Numbers in brackets: papers L and D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .articulation import Articulation
from .expr import Identity, Operator, Zero

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


# without armature, gains are projections


@_law_without_armature
def gain_moves_its_joint(s: Articulation) -> Sides:
    """HG = I, without armature"""
    return s.H @ s.G, Identity(s.H.out)


@_law_without_armature
def factor_is_a_chain(s: Articulation) -> Sides:
    """I + HφK = HφG, without armature  (A.31)"""
    return s.factor, s.H @ s.phi @ s.G


@_law_without_armature
def nothing_is_left_along_the_joint(s: Articulation) -> Sides:
    """τ̄PH* = 0, without armature  (B.6)"""
    return s.tau_bar @ s.P @ s.H.T, Zero(s.P.out, s.H.out)


@_law_without_armature
def phi_tau_bar(s: Articulation) -> Sides:
    """Hφτ̄ = Hφℰ_ψ, without armature  (B.4)"""
    return s.H @ s.phi @ s.tau_bar, s.H @ s.phi @ s.E_psi


@_law_without_armature
def newton_euler_column(s: Articulation) -> Sides:
    """φMφ*H* = (I + φKH)Pφ*H*, without armature  (B.3)"""
    left = s.phi @ s.M @ s.phi.T @ s.H.T
    return left, (I + s.phi @ s.K @ s.H) @ s.P @ s.phi.T @ s.H.T


# projections and operational space


@_law_without_armature
def omega_is_a_projection(s: Articulation) -> Sides:
    """ΩMΩ = Ω, without armature: ΩM is a projection  (U, Lemma 6.1)"""
    return s.Omega @ s.M @ s.Omega, s.Omega


@_law
def omega_M_phi(s: Articulation) -> Sides:
    """ΩMφ* = φ* − ψ* + ΩP  (U, A.8)"""
    return s.Omega @ s.M @ s.phi.T, s.phi.T - s.psi.T + s.Omega @ s.P


@_law_without_armature
def held_joints_do_not_move(s: Articulation) -> Sides:
    """(I − ΩM) φ*H* = 0, without armature"""
    left = (I - s.Omega @ s.M) @ s.phi.T @ s.H.T
    return left, Zero(left.out, left.into)


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

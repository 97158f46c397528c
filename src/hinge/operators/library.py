"""The operators of a mechanism at a configuration."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.small import inverse_spd
from ..algorithms.inverse_dynamics import motion_forces
from ..algorithms.kinematics import Reference
from ..algorithms.operational_space import reach
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .articulation import Articulation
from .expr import Identity, Operator, Zero
from .leaves import Blocks, Chain, Hop, Local, Pick
from .spaces import Space

__all__ = ["Operators"]


class Operators:
    """H, φ, ψ, M, P, D, G, K, τ̄, ℰ_φ, ℰ_ψ, Ω, Υ, B, I of a mechanism at a configuration q (nq,).

    Nothing is worked out before an expression meets a vector.  With a split into active and passive
    joints (active: names, or a flag per DoF), H_a and H_p pick the rows of H, and `passive` has the
    operators P, D, G, K, ψ, … of the passive joints let go while the active ones are held; they
    are here too as P_p, D_p, G_p, K_p, psi_p, Omega_p.
    """

    def __init__(self, mechanism: Mechanism, q: Any, active: Any = None) -> None:
        if mechanism.has_followers:
            raise ArgumentError(
                f"operators of {mechanism.name!r}: a joint mimics another, so the joint space is "
                f"not made of the spaces of the joints; weld it, or use the functions of the robot"
            )
        self.mechanism, self.q = mechanism, np.asarray(q)
        sizes = [b.joint.nv for b in mechanism.bodies]
        self.body = Space("body", (0, *[6] * mechanism.n_bodies))
        self.joint = Space("joint", tuple(sizes))
        split = None if active is None else mechanism.driven(active) == 1
        self._active = None if split is None else mechanism.rates(split)

    # leaves

    @cached_property
    def phi_blocks(self) -> list[Any]:
        """φ(p, k) of every body."""
        return self.mechanism.phi(self.q)

    @cached_property
    def H_blocks(self) -> list[np.ndarray]:
        """H(k) of every body."""
        return self.mechanism.H(self.q)

    I: Operator = Identity()

    @cached_property
    def H(self) -> Local:
        """Hinge maps, body → joint."""
        return self._local("H", self.joint, self.body, Blocks(lambda: self.H_blocks))

    @cached_property
    def M(self) -> Local:
        """Body inertias, body → body."""
        blocks = Blocks(
            lambda: self.mechanism.M,
            lambda: [np.zeros((0, 0)), *(inverse_spd(M.matrix) for M in self.mechanism.M[1:])],
        )
        return self._local("M", self.body, self.body, blocks, symmetric=True, constant=True)

    @cached_property
    def J(self) -> Operator:
        """Armature, joint → joint; zero if no joint has any."""
        return self._armature("J", self.joint, list(self.mechanism.armature))

    @cached_property
    def E_phi(self) -> Hop:
        """Forces from each body to its parent, body → body."""
        return Hop(self.body, self.body, self, name="E_phi", tex=r"\mathcal{E}_\phi")

    @cached_property
    def phi(self) -> Chain:
        """(I − ℰ_φ)⁻¹, body → body: forces from each body to all bodies it hangs on."""
        b, hop = self.body, self.E_phi
        return Chain(b, b, self, name="phi", tex=r"\phi", hop=hop, once=hop)

    def B(self, *frames: str, reference: Reference = "aligned") -> Pick:
        """Forces on frames as forces on the bodies that carry them, frame → body.

        reference: the axes of the force and the point it acts at, as in `robot.jacobian`; then
        `B.T @ phi.T @ H.T` is the Jacobian.
        """
        if not frames:
            raise ArgumentError("B needs the name of a frame, or several")
        places = tuple(reach(self.mechanism, self.phi_blocks, f, reference) for f in frames)
        space = Space(f"frame {', '.join(frames)} ({reference})", (6,) * len(frames))
        name = f"B({', '.join(repr(f) for f in frames)})"
        tex = rf"B_{{\text{{{', '.join(frames)}}}}}"
        return Pick(self.body, space, self, name=name, tex=tex, frames=places)

    def motion_forces(self, qd: Any, f_ext: Any = None) -> np.ndarray:
        """f, a body vector: what each body needs for the motion at q̈ = 0.

        Gravity, Coriolis and gyroscopic forces and f_ext (n_bodies, 6) are in it; H φ f are the
        bias forces.
        """
        maps = self.mechanism, self.H_blocks, self.phi_blocks
        rates, still = self.joint.vector("motion_forces", qd), np.zeros(self.mechanism.nv)
        if f_ext is not None:
            f_ext = self.body.vector("f_ext of motion_forces", np.ravel(f_ext)).reshape(-1, 6)
        return np.concatenate(motion_forces(*maps, self.q, rates, still, f_ext)[1:])

    # all joints let go

    @cached_property
    def free(self) -> Articulation:
        """P, D, G, K, ψ, … of all joints."""
        return Articulation(self, self.H, self.J, list(self.mechanism.armature))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _OF_JOINTS:
            return getattr(self.free, name)
        if name.endswith("_p") and name[:-2] in _OF_JOINTS:
            return getattr(self.passive, name[:-2])
        raise AttributeError(f"operators have no {name!r}")

    def __dir__(self) -> list[str]:
        return [*vars(type(self)), *_OF_JOINTS, *(f"{name}_p" for name in _OF_JOINTS)]

    # a split of the joints

    @cached_property
    def passive(self) -> Articulation:
        """P, D, G, K, ψ, … of the passive joints, the active ones held."""
        return Articulation(self, self.H_p, self.J_p, self._rotors(False), "_p")

    @cached_property
    def H_a(self) -> Local:
        """The rows of H of the active joints, body → active."""
        return self._rows("H_a", "active", True)

    @cached_property
    def H_p(self) -> Local:
        """The rows of H of the passive joints, body → passive."""
        return self._rows("H_p", "passive", False)

    @cached_property
    def J_a(self) -> Operator:
        """Armature of the active joints."""
        return self._armature("J_a", self.H_a.out, self._rotors(True))

    @cached_property
    def J_p(self) -> Operator:
        """Armature of the passive joints."""
        return self._armature("J_p", self.H_p.out, self._rotors(False))

    def _rotors(self, which: bool) -> list[np.ndarray]:
        return [a[self._picked(k, which)] for k, a in enumerate(self.mechanism.armature)]

    @property
    def is_split(self) -> bool:
        """Whether joints are split into active and passive ones."""
        return self._active is not None

    def _picked(self, k: int, which: bool) -> np.ndarray:
        if self._active is None:
            raise ArgumentError(
                f"the joints of {self.mechanism.name!r} are not split into active and passive; "
                f"ask for operators(q, active=…)"
            )
        return self._active[k] == which

    def rows(self, H: Local) -> list[np.ndarray]:
        """Which rows of each H(k) a hinge map has: flags per DoF."""
        if H.out == self.joint:
            return [np.ones(n, dtype=bool) for n in self.joint.sizes]
        which = H.out.name == "active"
        return [self._picked(k, which) for k in range(len(self.joint.sizes))]

    def _rows(self, name: str, space: str, which: bool) -> Local:
        picked = [self._picked(k, which) for k in range(len(self.joint.sizes))]
        out = Space(space, tuple(int(p.sum()) for p in picked))
        made = Blocks(lambda: [H[p] for H, p in zip(self.H_blocks, picked, strict=True)])
        return self._local(name, out, self.body, made)

    # making leaves

    def _local(self, name: str, out: Space, into: Space, blocks: Blocks, **kind: bool) -> Local:
        return Local(out, into, self, name=name, tex=name, blocks=blocks, **kind)

    def _armature(self, name: str, space: Space, rotors: list[np.ndarray]) -> Operator:
        if not any(r.any() for r in rotors):
            return Zero(space, space)
        made = Blocks(lambda: [np.diag(r) for r in rotors])
        return self._local(name, space, space, made, symmetric=True, constant=True)


_OF_JOINTS = (
    "P",
    "D",
    "D_root",
    "G",
    "K",
    "tau_bar",
    "E_psi",
    "psi",
    "Omega",
    "Upsilon",
    "innovations",
    "factor",
    "mass",
    "mass_factor",
)

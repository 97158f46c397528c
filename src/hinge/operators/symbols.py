"""The operators of a mechanism as symbols: made once, the same at every configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.small import inverse_spd
from ..algorithms.configuration import neutral
from ..algorithms.kinematics import Reference
from ..algorithms.operational_space import operational_space_inertia, reach
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .articulation import Articulation
from .expr import Identity, Product, Zero
from .inverse import theorem
from .leaves import Chain, Dense, Hold, Hop, Local, Pick
from .operator import Operator
from .spaces import Space
from .words import equal, polynomial

__all__ = ["OF_JOINTS", "Symbols"]

# those of a set of joints that give way: all of them, or with _p the passive ones of a split
OF_JOINTS = (
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


class Symbols:
    """H, φ, ψ, M, P, D, G, K, τ̄, ℰ_φ, ℰ_ψ, Ω, Υ, B, I of a mechanism, and what was made of them.

    active: names of joints, or a flag per DoF; splits the joints into active and passive ones.
    compile: (key, title, function of traced arrays, shapes by name) ↦ the same function of arrays
    of that dtype, with any leading shape; without it expressions run as plain Python.
    """

    I: Operator = Identity()

    def __init__(
        self,
        mechanism: Mechanism,
        active: Any = None,
        compile: Callable[..., Any] | None = None,
        dtype: Any = float,
    ) -> None:
        if mechanism.has_followers:
            raise ArgumentError(
                f"operators of {mechanism.name!r}: a joint mimics another, so the joint space is "
                f"not made of the spaces of the joints; weld it, or use the functions of the robot"
            )
        self.mechanism, self.compile, self.dtype = mechanism, compile, np.dtype(dtype)
        self.body = Space("body", (0, *[6] * mechanism.n_bodies))
        self.joint = Space("joint", tuple(b.joint.nv for b in mechanism.bodies))
        split = None if active is None else mechanism.driven(active) == 1
        self._active = None if split is None else mechanism.rates(split)
        self.known: dict[Any, Any] = {}

    def __getitem__(self, name: str) -> Operator:
        """The symbol of that name, or what a set of joints calls so."""
        found = self.known.get(name)
        if found is None:
            if name in OF_JOINTS:
                found = getattr(self.free, name)
            elif name.endswith("_p") and name[:-2] in OF_JOINTS:
                found = getattr(self.passive, name[:-2])
            else:
                found = getattr(self, name)
            self.known[name] = found
        return found

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for the key before, or is made now."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def theorem(self, A: Operator) -> Operator | None:
        """The inverse that a theorem gives, if any."""
        return theorem(A, self.sets) or self._of_mobility(A)

    def _of_mobility(self, A: Operator) -> Operator | None:
        """Λ for B*ΩB."""
        B = A.factors[-1] if isinstance(A, Product) else None
        if not isinstance(B, Pick):
            return None
        found = self.Lambda(B.frames, B.reference)
        return found if equal(polynomial(A), polynomial(found.back)) else None

    @property
    def sets(self) -> list[Articulation]:
        """The sets of joints that give way: all of them, and the passive ones of a split."""
        return [self.free, self.passive] if self.is_split else [self.free]

    # leaves

    @cached_property
    def H(self) -> Local:
        """Hinge maps, body → joint."""
        return self._local("H", self.joint, self.body, lambda at: at.H_blocks)

    @cached_property
    def M(self) -> Local:
        """Body inertias, body → body."""
        b, kind = self.body, {"symmetric": True, "constant": True}
        return self._local("M", b, b, lambda at: at.mechanism.M, invert=_inverses, **kind)

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

    def B(self, frames: tuple[str, ...], reference: Reference) -> Pick:
        """Forces on frames as forces on the bodies that carry them, frame → body."""
        key = "B", frames, reference
        return self.known[key] if key in self.known else self.once(key, lambda: self._B(*key[1:]))

    def _B(self, frames: tuple[str, ...], reference: Reference) -> Pick:
        if not frames:
            raise ArgumentError("B needs the name of a frame, or several")
        phi = self.mechanism.phi(neutral(self.mechanism))
        bodies = tuple(reach(self.mechanism, phi, f, reference)[0] for f in frames)
        space = Space(f"frame {', '.join(frames)} ({reference})", (6,) * len(frames))
        name = f"B({', '.join(repr(f) for f in frames)})"
        tex = rf"B_{{\text{{{', '.join(frames)}}}}}"
        which = {"frames": frames, "reference": reference, "bodies": bodies}
        return Pick(self.body, space, self, name=name, tex=tex, **which)

    def Lambda(self, frames: tuple[str, ...], reference: Reference) -> Dense:
        """(B*ΩB)⁻¹, the inertia that frames show together, frame → frame."""
        B = self.B(frames, reference)

        def make(at: Any) -> np.ndarray:
            return operational_space_inertia(at.mechanism, at.q, frames, reference)

        kind: dict[str, Any] = {"name": f"Lambda{B.name[1:]}", "tex": rf"\Lambda{B.tex[1:]}"}
        kind |= {"symmetric": True, "make": make, "back": B.T @ self.free.Omega @ B}
        made = lambda: Dense(B.into, B.into, self, **kind)  # noqa: E731
        return self.once(("Lambda", frames, reference), made)

    def C(self, constraints: tuple[Any, ...]) -> Hold:
        """Forces along the rows of constraints as forces on bodies, constraint → body."""
        return self.once(("C", constraints), lambda: self._C(constraints))

    def _C(self, constraints: tuple[Any, ...]) -> Hold:
        mech = self.mechanism
        frames = [(mech.frame(c.left).body, mech.frame(c.right).body) for c in constraints]
        ends = tuple((i, k) for i, bodies in enumerate(frames) for k in bodies if k)
        words = [f"{c.left} on {c.right} {c.axes}" for c in constraints]
        axes = [getattr(c, "reference", "") for c in constraints]
        named = [f"{word} {x}".strip() for word, x in zip(words, axes, strict=True)]
        space = Space(f"constraint {'; '.join(named)}", tuple(len(c.axes) for c in constraints))
        name = f"C({', '.join(repr(c.left) for c in constraints)})"
        tex = rf"C_{{\text{{{', '.join(c.left for c in constraints)}}}}}"
        which: dict[str, Any] = {"constraints": constraints, "ends": ends}
        return Hold(self.body, space, self, name=name, tex=tex, **which)

    # joints that give way

    @cached_property
    def free(self) -> Articulation:
        """P, D, G, K, ψ, … of all joints."""
        return Articulation(self, self.H, self.J, list(self.mechanism.armature))

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

    @property
    def is_split(self) -> bool:
        """Whether joints are split into active and passive ones."""
        return self._active is not None

    @cached_property
    def bends(self) -> bool:
        """Whether the axes of a joint move in its body, so that H depends on q."""
        mech = self.mechanism
        rates = mech.H_rate(neutral(mech), np.ones(mech.nv))
        return any(rate.dtype == object or rate.any() for rate in rates)

    def rows(self, H: Local) -> list[np.ndarray]:
        """Which rows of each H(k) a hinge map has: flags per DoF."""
        if H.out == self.joint:
            return [np.ones(n, dtype=bool) for n in self.joint.sizes]
        return self._picked(H.out.name == "active")

    def _picked(self, which: bool) -> list[np.ndarray]:
        if self._active is None:
            raise ArgumentError(
                f"the joints of {self.mechanism.name!r} are not split into active and passive; "
                f"ask for operators(q, active=…)"
            )
        return [flags == which for flags in self._active]

    def _rotors(self, which: bool) -> list[np.ndarray]:
        pairs = zip(self.mechanism.armature, self._picked(which), strict=True)
        return [armature[picked] for armature, picked in pairs]

    def _rows(self, name: str, space: str, which: bool) -> Local:
        picked = self._picked(which)
        out = Space(space, tuple(int(p.sum()) for p in picked))
        return self._local(
            name,
            out,
            self.body,
            lambda at: [H[p] for H, p in zip(at.H_blocks, picked, strict=True)],
        )

    def _armature(self, name: str, space: Space, rotors: list[np.ndarray]) -> Operator:
        if not any(r.any() for r in rotors):
            return Zero(space, space)
        kind = {"symmetric": True, "constant": True}
        return self._local(name, space, space, lambda at: [np.diag(r) for r in rotors], **kind)

    def _local(self, name: str, out: Space, into: Space, make: Any, **kind: Any) -> Local:
        return Local(out, into, self, name=name, tex=name, make=make, **kind)


def _inverses(at: Any) -> list[np.ndarray]:
    return [np.zeros((0, 0)), *(inverse_spd(M.matrix) for M in at.mechanism.M[1:])]

"""What a sweep sees of a mechanism, whichever stands behind it.

`Mechanism` gives numbers or traced scalars in body axes, `InGroundAxes` the same in the axes of the
ground, and `LoopMechanism` (`specialize/loop_mechanism.py`) one body for all of its kind.  A sweep
that keeps to `Tree` runs on all three; what it reads and writes per body goes by k, whatever k is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["Branches", "Descents", "Meetings", "PerBody", "Shared", "Slot", "Tree"]


class PerBody(Protocol):
    """One value per body, to be read."""

    def __getitem__(self, k: Any, /) -> Any: ...


class Slot(PerBody, Protocol):
    """One value per body, to be read and written."""

    def __setitem__(self, k: Any, value: Any, /) -> None: ...


class Shared(Protocol):
    """One value that belongs to no body, to be read and written."""

    value: Any


class Tree(Protocol):
    """Bodies and joints in a tree, as recursions from body to body see them."""

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        ...

    @property
    def has_followers(self) -> bool:
        """Whether some joint mimics another."""
        ...

    @property
    def M(self) -> PerBody:
        """M(k), the spatial inertia of each body about its frame."""
        ...

    @property
    def armature(self) -> PerBody:
        """The reflected rotor inertias of each joint."""
        ...

    @property
    def least(self) -> PerBody:
        """What an articulated inertia along each joint has to exceed to be more than rounding."""
        ...

    @property
    def free_fall(self) -> np.ndarray:
        """(0; g), the spatial acceleration of whatever nothing holds."""
        ...

    # at a configuration

    def phi(self, q: Any) -> PerBody:
        """φ(p, k) of each body k and its parent p."""
        ...

    def H(self, q: Any) -> PerBody:
        """H(k), the hinge map of each body's joint."""
        ...

    def H_rate(self, q: Any, qd: Any) -> PerBody:
        """The componentwise rate of H(k)."""
        ...

    def hinge_rates(self, q: Any, qd: Any, qdd: Any) -> PerBody:
        """How H(k) turns and bends as the joint moves, for derivatives of the dynamics."""
        ...

    # arrays, taken apart

    def coordinates(self, q: Any) -> PerBody:
        """The coordinates of each body's joint."""
        ...

    def rates(self, qd: Any) -> PerBody:
        """The rates, accelerations or forces of each body's joint."""
        ...

    def wrenches(self, f_ext: Any) -> PerBody:
        """The external force on each body."""
        ...

    def points(self, points: Any) -> PerBody:
        """The point of each body at which a force acts."""
        ...

    def driven(self, active: Any) -> Any:
        """1 for active DoF, 0 for passive ones."""
        ...

    def held_before(self, active: Any) -> PerBody:
        """Whether all DoF before each body's joint are active, as far as is known."""
        ...

    def locked_beyond(self, active: Any) -> PerBody:
        """Whether each body's joint and all beyond it are active, as far as is known."""
        ...

    def stretches(self, n: int) -> PerBody:
        """Whether each body is the first of n after one another; in loops all of them are."""
        ...

    # walks, what is kept on them, and what they give back

    def outward(self) -> Iterator[tuple[Any, Any]]:
        """(parent, body) from the base to the tips."""
        ...

    def inward(self) -> Iterator[tuple[Any, Any]]:
        """(parent, body) from the tips to the base."""
        ...

    def slots(self, n: int) -> list[Any]:
        """n slots to be filled in by a sweep; the ground's entries are six zeros."""
        ...

    def each(self, make: Callable[[Any], Any]) -> PerBody:
        """make(k) for every body, the ground included, to be read by a sweep."""
        ...

    def filled(self, make: Callable[[Any], Any]) -> Slot:
        """A slot with make(k) for every body, the ground included, to be changed by a sweep."""
        ...

    def shared(self, value: Any) -> Shared:
        """A value that belongs to no body, for sweeps to read and to change: sums, say."""
        ...

    def combined(self, make: Callable[..., Any], *arrays: Any) -> Any:
        """What is made of the entries of arrays (nv,), DoF by DoF."""
        ...

    def join(self, parts: Any) -> Any:
        """One value per DoF from those of each body's joint; followers push their leader."""
        ...

    def join_bodies(self, parts: Any) -> Any:
        """The columns of all bodies side by side, as many of each; the ground has none."""
        ...


class Descents(Tree, Protocol):
    """A tree with frames, and the ways to them from the ground and back.

    Loops know the ways to the frames that an algorithm is told of in advance, and to no others.
    """

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def bodies(self) -> Sequence[Any]:
        """The bodies, the ground first."""
        ...

    def frame(self, name: str) -> Any:
        """The named frame: its body, and where it is on it."""
        ...

    def ancestors(self, k: Any) -> Iterator[tuple[Any, Any]]:
        """(parent, body) from body k to its root; nothing for the ground."""
        ...

    def descent(self, k: Any, above: Any = 0) -> Iterator[tuple[Any, Any]]:
        """(parent, body) from the root, or from what a body above carries, to body k."""
        ...

    def common_ancestor(self, j: Any, k: Any) -> Any:
        """The nearest body that carries both of two bodies, or is one of them; 0 if none does."""
        ...

    def carries(self, k: Any, j: Any) -> bool:
        """Whether body j is body k or beyond it; the ground is beyond nothing."""
        ...

    def placed(self, values: Mapping[Any, Any]) -> PerBody:
        """The values on the bodies that have one, zeros of their shape on all others."""
        ...

    def riding(self, values: Mapping[Any, Any]) -> Slot:
        """The same, for one body or two, to be changed by a sweep inward along their ways."""
        ...

    def join_wrenches(self, parts: Any) -> Any:
        """(n_bodies, 6) from the forces on all bodies."""
        ...

    def join_rows(self, parts: Any, rows: int) -> Any:
        """(rows, nv) from the rows (dof, rows) of all bodies, as columns."""
        ...

    def join_descent(self, k: Any, parts: Any, rows: int) -> Any:
        """(rows, nv) from the rows (dof, rows) of the bodies from the root to k, as columns."""
        ...


class Meetings(Protocol):
    """What is brought to bodies along the branches beyond them."""

    def bring(self, j: Any, c: Any, what: Any) -> None:
        """Bring something to body j from its child c or beyond."""
        ...

    def pairs(self) -> Iterator[tuple[Any, Any, Any]]:
        """(j, a, b) for all that was brought to j through different children, a before b."""
        ...


class Branches(Tree, Protocol):
    """A tree along whose branches one can climb: for matrices over pairs of bodies."""

    def climb(self, k: Any) -> Iterator[tuple[Any, Any]]:
        """(parent, body) from body k to its root, without the last step onto the ground."""
        ...

    def pairs(self) -> Any:
        """Blocks (i, j) of pairs of bodies on one branch, to be filled in."""
        ...

    def meetings(self) -> Meetings:
        """What bodies bring to those where their branches meet."""
        ...

    def join_matrix(self, blocks: Mapping[tuple[Any, Any], Any]) -> np.ndarray:
        """The symmetric (nv, nv) from its blocks (i, j), i an ancestor of j or j itself."""
        ...

    def join_blocks(self, blocks: Mapping[tuple[Any, Any], Any]) -> np.ndarray:
        """(nv, nv) from blocks (i, j) of any pairs of bodies; those left out are zero."""
        ...

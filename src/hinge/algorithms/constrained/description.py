"""What may hold a mechanism: loops and grasps between frames, contacts of frames with the world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...algebra.spatial import Transform
from ...errors import ArgumentError
from ...model.mechanism import GROUND

__all__ = [
    "AXES",
    "Constraint",
    "Contact",
    "LoopConstraint",
    "as_constraints",
    "contacts_of",
    "count_rows",
    "refuse_unused_anchors",
    "row_slices",
]

AXES = ("ωx", "ωy", "ωz", "vx", "vy", "vz")
Kind = Literal["point", "line", "flat", "weld"]
_HELD: dict[str, tuple[int, ...]] = {
    "point": (3, 4, 5),
    "line": (0, 2, 3, 4, 5),
    "flat": (0, 1, 2, 3, 4, 5),
    "weld": (0, 1, 2, 3, 4, 5),
}


@dataclass(frozen=True)
class LoopConstraint:
    """Frame `left` stays on frame `right` along `axes`, given in the axes of `right`.

    axes: which of (ωx, ωy, ωz, vx, vy, vz) are held.  All six weld the frames (a grasp);
    (0, 1, 3, 4, 5) leaves a hinge about z, (3, 4, 5) a ball joint, (5,) a point on a plane.
    stiffness k_p, damping k_d: of the stabilisation, in 1/s² and 1/s; 0 for none.
    """

    left: str
    right: str
    axes: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    stiffness: float = 400.0
    damping: float = 40.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(np.atleast_1d(self.axes).tolist()))
        known = [i for i in range(6) if i in self.axes]
        if not known or list(self.axes) != known:
            raise ArgumentError(
                f"axes of the constraint {self.left!r} on {self.right!r} are {self.axes}; expected "
                f"some of 0 … 5 (ωx, ωy, ωz, vx, vy, vz), rising"
            )
        where = f"the constraint {self.left!r} on {self.right!r}"
        _check_from_zero(where, stiffness=self.stiffness, damping=self.damping)


@dataclass(frozen=True)
class Contact:
    """A frame held against the world where it is: a foot, a hand, a base bolted down.

    kind: "point", held in position (3 rows); "line", which turns freely about the frame's y axis
    (5 rows); "flat" and "weld", held altogether (6 rows), of which a flat one can push but not pull
    (`friction_residuals`).
    stiffness, damping: of the stabilisation, in 1/s² and 1/s; with a stiffness the frame is drawn
    to its anchor, a pose (4, 4), for a point also a position (3,), in the world: given here, or
    with each sample as `anchors=` (from `robot.anchors`).
    reference: the axes in which forces and rows are, "aligned" for those of the world, "body" for
    those of the frame; by default the world's for a point and the frame's for the others.
    friction: the coefficient μ; extent: half the length and half the width of a flat contact, along
    the frame's x and y, in m.
    """

    frame: str
    kind: Kind = "point"
    anchor: Any = None
    stiffness: float = 0.0
    damping: float = 0.0
    reference: Literal["aligned", "body"] | None = None
    friction: float = 0.7
    extent: tuple[float, float] = (0.1, 0.05)

    def __post_init__(self) -> None:
        where = f"the contact of {self.frame!r}"
        if self.kind not in _HELD:
            raise ArgumentError(f"{where}: kind is {self.kind!r}; expected one of {[*_HELD]}")
        reference = self.reference or ("aligned" if self.kind == "point" else "body")
        if reference not in ("aligned", "body") or (self.kind, reference) == ("line", "aligned"):
            raise ArgumentError(
                f"{where}: reference is {self.reference!r}; expected 'body', or for all but a line "
                f"'aligned'"
            )
        extent = np.atleast_1d(self.extent)
        if extent.shape != (2,) or extent.dtype.kind not in "fiu":
            raise ArgumentError(f"{where}: extent is {self.extent!r}; expected two half lengths")
        object.__setattr__(self, "extent", tuple(extent.astype(float).tolist()))
        length, width = self.extent
        gains = {"stiffness": self.stiffness, "damping": self.damping, "friction": self.friction}
        _check_from_zero(where, **gains, extent=length)
        _check_from_zero(where, extent=width)
        object.__setattr__(self, "reference", reference)
        object.__setattr__(self, "anchor", _as_pose(where, self.kind, self.anchor))

    @property
    def left(self) -> str:
        """The frame that is held."""
        return self.frame

    @property
    def right(self) -> str:
        """What it is held on."""
        return GROUND

    @property
    def axes(self) -> tuple[int, ...]:
        """Which of (ωx, ωy, ωz, vx, vy, vz) are held."""
        return _HELD[self.kind]


Constraint = LoopConstraint | Contact


def as_constraints(where: str, constraints: Any) -> tuple[Constraint, ...]:
    """One constraint or several as a tuple, if they are constraints."""
    is_one = isinstance(constraints, str) or not isinstance(constraints, Iterable)
    several: tuple[Any, ...] = (constraints,) if is_one else (*constraints,)
    for c in (c for c in several if not isinstance(c, Constraint)):
        raise ArgumentError(
            f"{where}: {c!r} among the constraints is not a hinge.LoopConstraint or a hinge.Contact"
        )
    return several


def contacts_of(constraints: Sequence[Constraint]) -> list[Contact]:
    """The contacts among constraints: the rows of `anchors`."""
    return [c for c in constraints if isinstance(c, Contact)]


def count_rows(constraints: Sequence[Constraint]) -> int:
    """How many rows all constraints have: the length of λ."""
    return sum(len(c.axes) for c in constraints)


def row_slices(constraints: Sequence[Constraint]) -> list[slice]:
    """Where the rows of each constraint are."""
    ends = np.cumsum([0, *(len(c.axes) for c in constraints)]).tolist()
    return [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def refuse_unused_anchors(where: str, constraints: Sequence[Constraint], anchors: Any) -> None:
    """Anchors that draw no contact anywhere are a mistake."""
    if anchors is not None and not any(c.stiffness for c in contacts_of(constraints)):
        raise ArgumentError(
            f"{where}: anchors are given, but no contact has a stiffness with which it could be "
            f"drawn to its own; give some contact one, or leave anchors out"
        )


def _check_from_zero(where: str, **numbers: Any) -> None:
    for name, x in numbers.items():
        if not isinstance(x, (int, float, np.number)) or not 0 <= x < np.inf:
            raise ArgumentError(f"{name} of {where} is {x!r}; expected a number from 0 on")


def _as_pose(where: str, kind: str, anchor: Any) -> Transform | None:
    """An anchor as a pose; the position of a point is enough."""
    if anchor is None or isinstance(anchor, Transform):
        return anchor
    X = np.asarray(anchor, float)
    if X.shape == (3,) and kind == "point":
        return Transform(translation=X)
    if X.shape != (4, 4) or not np.isfinite(X).all():
        raise ArgumentError(
            f"{where}: anchor has shape {X.shape}; expected a finite pose (4, 4), or for a point a "
            f"position (3,)"
        )
    return Transform(X[:3, :3], X[:3, 3])

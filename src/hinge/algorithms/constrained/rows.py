"""The rows of constraints: K, k and the error e.  Paper F eq. 34; math §3.

A constraint holds frame l on frame r, or on a frame of the world, along some axes.  With d from r
to l, and all vectors in the axes of the rows:

    K q̇ = (ω_l − ω_r;  u),   u = v_l − v_r − ω_r×d     the velocity of l relative to r          (1)
    K̇ q̇ = (ω̇_l − ω̇_r − ω_r×(ω_l − ω_r);
           v̇_l − v̇_r − ω̇_r×d − ω_r×(ω_r×d) − 2 ω_r×u)  at q̈ = 0                                (2)
    k = −K̇ q̇ − k_d K q̇ − k_p e                         K q̈ = k, and the error e dies out       (3)

(2) is the acceleration of l as seen from r.  Of a contact that holds more than a point, and whose
frame moves, it is the spatial acceleration instead, less by ω_l×v_l (as in Pinocchio): the rate of
its velocity in its own axes.  Where the contact is at rest, as it should be, both are the same.

Rows come in the axes of r (loops), of the world or of l (contacts).  Rows of which all three turns,
or none, and all three displacements, or none, are held, are solved for in the axes of l instead:
there a unit force on l is a constant column, and only vectors have to be turned, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.rotation import axial, skew
from ...algebra.spatial import ForceTransfer, Transform, carried_acceleration
from ...errors import ArgumentError
from ...model.mechanism import Frame, Mechanism
from ...model.protocol import Descents, PerBody, Shared, Slot
from ..declare import algorithm
from ..inverse_dynamics import motion
from ..kinematics import frame_pose
from .description import Constraint, Contact, contacts_of, count_rows

__all__ = [
    "Held",
    "Reach",
    "Wanted",
    "anchors",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "error",
    "felt_at_joints",
    "held",
    "in_given_axes",
    "in_solved_axes",
    "pushed",
    "pushes",
    "reach_of_joints",
    "solved_jacobian",
    "velocities",
    "wanted",
]


class Held(NamedTuple):
    """A constraint at a configuration, in the axes in which its rows are solved for.

    left, right: bodies; X, Y: the pose of frame l, turned to those axes, on either.
    Z: of frame l on frame r, or on the anchor; None where it has no anchor.
    turn: from those axes to the ones in which rows are given, None where these are the same.
    right_axes: whether the axes are those of frame r, and not of l.
    size: the squares of the lengths that cancel in Z.
    """

    constraint: Constraint
    left: int
    right: int
    X: Transform
    Y: Transform
    Z: Transform | None
    turn: np.ndarray | None
    right_axes: bool
    size: Any

    @property
    def axes(self) -> list[int]:
        """Which of the six are held."""
        return list(self.constraint.axes)

    def unit_forces(self) -> Iterator[tuple[int, np.ndarray]]:
        """A unit force along each row, as it acts on either body: (6, rows); none on the ground."""
        units = np.eye(6)[:, self.axes]
        for k, X, sign in ((self.left, self.X, 1.0), (self.right, self.Y, -1.0)):
            if k:
                yield k, sign * (X.transfer @ units)

    def given_forces(self, size: Any = 1.0) -> dict[int, np.ndarray]:
        """The same along the rows in the axes in which they are given, by bodies; size: of each."""
        own = [self.axes], [self.turn]
        return {k: _turned(z.T, *own).T * size for k, z in self.unit_forces()}


class Wanted(NamedTuple):
    """k and K q̇ of constraints, and the squares of the terms that k is made of: (rows,) each."""

    k: np.ndarray
    velocity: np.ndarray
    size: np.ndarray


@algorithm(loops=True)
def constraint_jacobian(
    mech: Descents, q: np.ndarray, constraints: Sequence[Constraint]
) -> np.ndarray:
    """K (rows, nv): K q̇ = 0 while the constraints hold (1).  O(depth) a row."""
    phi = mech.phi(q)
    places = held(mech, phi, constraints)
    forces = [h.given_forces() for h in places]
    return mech.join_rows(felt_at_joints(mech, mech.H(q), phi, forces), count_rows(constraints))


@algorithm(loops=True)
def constraint_bias(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[Constraint],
    anchors: np.ndarray | None = None,
) -> np.ndarray:
    """k (rows,) of K q̈ = k, stabilised (2), (3).  O(N)."""
    H, phi = mech.H(q), mech.phi(q)
    moving = motion(mech, H, phi, q, qd, np.zeros(mech.nv), None)
    places = held(mech, phi, constraints, anchors)
    return in_given_axes(places, wanted(places, moving.V, moving.alpha).k)


@algorithm(loops=True)
def constraint_error(
    mech: Descents,
    q: np.ndarray,
    constraints: Sequence[Constraint],
    anchors: np.ndarray | None = None,
) -> np.ndarray:
    """e (rows,): how far `left` is off `right` along the axes held; ė = K q̇ at e = 0.

    Angles are small-angle ones, half the skew part of the relative rotation; where just one of the
    three is free, they are the tilt of that free axis, whatever the turn about it.  A contact
    without an anchor is where it is.
    """
    places = held(mech, mech.phi(q), constraints, anchors)
    e = np.concatenate([np.zeros(0), *map(error, places)])
    return in_given_axes(places, e)


@algorithm()
def anchors(mech: Mechanism, q: np.ndarray, constraints: Sequence[Constraint]) -> np.ndarray:
    """The poses of the frames of all contacts, (contacts, 4, 4): where they are to stay."""
    poses = [frame_pose(mech, q, c.frame) for c in contacts_of(constraints)]
    return np.array(poses).reshape(-1, 4, 4)


# constraints at a configuration


def held(
    mech: Descents, phi: PerBody, constraints: Sequence[Constraint], anchors: Any = None
) -> list[Held]:
    """The constraints at a configuration, given φ; anchors: (contacts, 4, 4), of the contacts."""
    sides = [_sides(mech, phi, c) for c in constraints]
    poses = _anchor_poses(constraints, anchors)
    return [_held(c, *side, X) for c, side, X in zip(constraints, sides, poses, strict=True)]


def _held(
    c: Constraint, left: Frame, right: Frame, A_: Shared, B_: Shared, anchor: Transform | None
) -> Held:
    A, B = A_.value, B_.value
    Y, size = B.inv @ (A @ left.placement), _square(A.translation) + _square(B.translation)
    bodies = c, left.body, right.body
    if isinstance(c, Contact):
        Z, turn = None if anchor is None else anchor.inv @ Y, _aligned(c, Y)
        return Held(*bodies, left.placement, Y, Z, turn, False, size)
    Z = right.placement.inv @ Y
    turns = [i for i in c.axes if i < 3]
    if len(turns) % 3 == 0 and len(c.axes) % 3 == 0:
        return Held(*bodies, left.placement, Y, Z, Z.rotation, False, size)
    X = Transform(left.placement.rotation @ Z.rotation.T, left.placement.translation)
    return Held(*bodies, X, Transform(right.placement.rotation, Y.translation), Z, None, True, size)


def _aligned(c: Contact, Y: Transform) -> np.ndarray | None:
    return Y.rotation if c.reference == "aligned" else None


class _Sides(NamedTuple):
    """The frames of a constraint, and the poses of their bodies as seen from a body with both."""

    left: Frame
    right: Frame
    A: Shared
    B: Shared


def _sides(mech: Descents, phi: PerBody, c: Constraint) -> _Sides:
    left, right = mech.frame(c.left), mech.frame(c.right)
    if left.body == right.body:
        raise ArgumentError(
            f"{mech.name!r}: frames {c.left!r} and {c.right!r} of a constraint are both on body "
            f"{mech.bodies[left.body].name!r}, and cannot move against each other; name another "
            f"frame"
        )
    # from there on, not from the ground: far from it digits would be lost
    meet = mech.common_ancestor(left.body, right.body)
    A, B = (_pose_from(mech, phi, frame.body, meet) for frame in (left, right))
    return _Sides(left, right, A, B)


def _pose_from(mech: Descents, phi: PerBody, k: int, above: int) -> Shared:
    X = mech.shared(Transform())
    for _, j in mech.descent(k, above):
        X.value = X.value @ phi[j].pose
    return X


def _anchor_poses(constraints: Sequence[Constraint], anchors: Any) -> list[Transform | None]:
    """Where each contact is to stay, if that is known; None for loops."""
    given = iter(() if anchors is None else np.asarray(anchors))
    poses: list[Transform | None] = []
    for c in constraints:
        X = next(given, None) if isinstance(c, Contact) else None
        pose = None if X is None else Transform(X[:3, :3], X[:3, 3])
        poses.append(c.anchor if pose is None and isinstance(c, Contact) else pose)
    return poses


def in_given_axes(places: Sequence[Held], x: np.ndarray) -> np.ndarray:
    """Rows (rows, …) in the axes in which they are solved for, in those in which they are given."""
    return _turned(x, [h.axes for h in places], [h.turn for h in places])


def in_solved_axes(places: Sequence[Held], x: np.ndarray) -> np.ndarray:
    """Rows (rows, …) in the axes in which they are given, in those in which they are solved for."""
    turns = [None if h.turn is None else h.turn.T for h in places]
    return _turned(x, [h.axes for h in places], turns)


def _turned(
    x: np.ndarray, axes: Sequence[list[int]], turns: Sequence[np.ndarray | None]
) -> np.ndarray:
    """The rows of each constraint turned, three by three."""
    parts, start = [x[:0]], 0
    for held_axes, R in zip(axes, turns, strict=True):
        stop = start + len(held_axes)
        step = stop - start if R is None else 3
        blocks = [x[i : i + step] for i in range(start, stop, step)]
        parts += blocks if R is None else [R @ block for block in blocks]
        start = stop
    return np.concatenate(parts)


# what is asked of them


def solved_jacobian(mech: Descents, q: np.ndarray, places: Sequence[Held]) -> np.ndarray:
    """K in the axes in which rows are solved for: what unit forces do at the joints, transposed."""
    rows, forces = sum(len(h.axes) for h in places), [dict(h.unit_forces()) for h in places]
    return mech.join_rows(felt_at_joints(mech, mech.H(q), mech.phi(q), forces), rows)


def felt_at_joints(
    mech: Descents, H: PerBody, phi: PerBody, forces: Sequence[Mapping[int, np.ndarray]]
) -> Slot:
    """What the joint of each body feels of forces on bodies, (dof, columns): one sweep inward.

    forces: groups of columns (6, n), those of a group on one body or on two.
    """
    (K,), Z = mech.slots(1), [mech.riding(group) for group in forces]
    widths = [next(iter(group.values())).shape[1] for group in forces]
    for p, k in mech.inward():
        felt = [np.zeros((len(H[k]), n)) for n in (0, *widths)]
        for i, (group, z) in enumerate(zip(forces, Z, strict=True), 1):
            if any(mech.carries(k, end) for end in group):
                felt[i] = H[k] @ z[k]
                z[p] = z[p] + phi[k] @ z[k]
        K[k] = np.hstack(felt)
    return K


class Reach:
    """The size of what unit forces can do to the joints on their way, as they go inward."""

    def __init__(self, mech: Descents, h: Held) -> None:
        self.mech, self.axes = mech, h.axes
        sides = ((h.left, h.X), (h.right, h.Y))
        self._levers = {k: mech.shared(abs(X.translation).sum()) for k, X in sides if k}

    def passes(self, k: Any) -> bool:
        """Whether body k is on their way."""
        return any(self.mech.carries(k, end) for end in self._levers)

    def felt(self, k: Any, H: np.ndarray, phi: ForceTransfer) -> np.ndarray:
        """At the joint of body k, which they pass: (rows, dof).

        Turning by as much as they are, sliding by as far away as they act besides.
        """
        levers = [x for end, x in self._levers.items() if self.mech.carries(k, end)]
        turn, slide = abs(H[:, :3]).sum(axis=1), abs(H[:, 3:]).sum(axis=1)
        kinds = turn, turn * sum(x.value for x in levers) + slide
        for x in levers:
            x.value = x.value + abs(phi.p).sum()
        return np.array([kinds[i // 3] for i in self.axes])


def reach_of_joints(mech: Descents, H: PerBody, phi: PerBody, places: Sequence[Held]) -> Slot:
    """What the joint of each body would feel of unit forces if nothing cancelled: (dof, rows)."""
    (R,), reaches = mech.slots(1), [Reach(mech, h) for h in places]
    for _, k in mech.inward():
        sizes = [np.zeros((len(h.axes), len(H[k]))) for h in places]
        for i, reach in enumerate(reaches):
            if reach.passes(k):
                sizes[i] = reach.felt(k, H[k], phi[k])
        R[k] = np.concatenate([np.zeros((0, len(H[k]))), *sizes]).T
    return R


def pushes(places: Sequence[Held], forces: np.ndarray) -> dict[int, np.ndarray]:
    """What forces λ (rows,), in solved axes, do to the bodies that are held: (6,) each."""
    found, start = {}, 0
    for h in places:
        stop = start + len(h.axes)
        for k, B in h.unit_forces():
            found[k] = found.get(k, 0.0) + B @ forces[start:stop]
        start = stop
    return found


def pushed(
    mech: Mechanism, places: Sequence[Held], forces: np.ndarray, f_ext: Any = None
) -> np.ndarray:
    """External forces (n_bodies, 6) with those of the constraints among them, λ in solved axes."""
    wrenches = list(mech.wrenches(f_ext))
    for k, push in pushes(places, forces).items():
        wrenches[k] = wrenches[k] + push
    return np.array(wrenches[1:]).reshape(-1, 6)


def velocities(places: Sequence[Held], V: PerBody) -> Wanted:
    """K q̇, and no k: what an impact takes away."""
    parts = [np.zeros((2, 0))]
    for h in places:
        w, u = h.Y.transfer.T @ V[h.right], h.X.transfer.T @ V[h.left]
        size = np.array([_square(u[:3]) + _square(w[:3]), _square(u[3:]) + _square(w[3:])])
        parts.append(np.array([(u - w)[h.axes], size[[i // 3 for i in h.axes]]]))
    velocity, size = np.hstack(parts)
    return Wanted(np.zeros(len(velocity)), velocity, size)


def wanted(places: Sequence[Held], V: PerBody, alpha: PerBody) -> Wanted:
    """What constraints ask of q̈, from the motion at q̈ = 0 with the ground accelerated by −g."""
    nothing = Wanted(*(np.zeros(0) for _ in Wanted._fields))
    parts = [_wanted(h, V, alpha) for h in places]
    return Wanted(*map(np.concatenate, zip(nothing, *parts, strict=True)))


def _wanted(h: Held, V: PerBody, alpha: PerBody) -> Wanted:
    c, at_rest = h.constraint, np.zeros(6)
    if c.stiffness and h.Z is None:
        raise ArgumentError(
            f"the contact of {c.left!r} has a stiffness but no anchor to be drawn to; give it one, "
            f"or anchors= with the call (robot.anchors(q, contacts))"
        )
    w = h.Y.transfer.T @ V[h.right]
    u = h.X.transfer.T @ V[h.left] - w  # (1)
    a_left = carried_acceleration(h.X.transfer, V[h.left], alpha[h.left], at_rest)
    a_right = carried_acceleration(h.Y.transfer, V[h.right], alpha[h.right], at_rest)
    turn, slide = np.split(a_left - a_right, 2)
    slide = slide - 2 * skew(w[:3]) @ u[3:]
    if isinstance(c, Contact) and c.kind != "point":
        slide = slide - skew(u[:3]) @ u[3:]
    rate = np.concatenate([turn - skew(w[:3]) @ u[:3], slide])  # (2)
    k = -rate[h.axes] - c.damping * u[h.axes] - c.stiffness * error(h)  # (3)
    terms = (a_left, 1.0), (a_right, 1.0), (u, c.damping**2), (w, c.damping**2)
    sizes = np.array([sum(s * _square(x[i : i + 3]) for x, s in terms) for i in (0, 3)])
    sizes = sizes + c.stiffness**2 * np.array([1.0, h.size])
    return Wanted(k, u[h.axes], sizes[[i // 3 for i in h.axes]])


def error(h: Held) -> np.ndarray:
    """e in the axes in which rows are solved for."""
    if h.Z is None:
        return np.zeros(len(h.axes))
    R, d = h.Z.rotation, h.Z.translation
    turn = 0.5 * axial(R)
    free = [i for i in range(3) if i not in h.axes]
    if len(free) == 1:
        tilt = skew(np.eye(3)[free[0]])
        turn = tilt @ R[:, free[0]] if h.right_axes else -tilt @ R[free[0]]
    return np.concatenate([turn, d if h.right_axes else R.T @ d])[h.axes]


def _square(v: np.ndarray) -> Any:
    return sum(x * x for x in v)

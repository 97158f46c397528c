"""A tree as paths: heavy ones first, limbs of limbs after them, each cut into stretches.

From every body the path goes on to the child that carries most, so that a body has at most log₂ N
beginnings of paths between itself and the ground.  Level 0 has the paths that begin on the ground,
level 1 those that begin on bodies of level 0, and so on: the paths of a level are independent of
each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.mechanism import Mechanism, hinge_map

__all__ = ["Level", "levels", "stretches"]

# of the largest inertia along any joint, less than which a link does not hold by itself
_SLIGHT = 1e-6


class Level(NamedTuple):
    """Paths of equal rank, one after the other.

    bodies: in the order of rows, along each path outward; starts: the rows where paths begin.
    """

    bodies: list[int]
    starts: list[int]


def levels(mech: Mechanism) -> list[Level]:
    """The paths of a mechanism, by level."""
    bodies = mech.bodies
    carried = [1] * len(bodies)
    children: list[list[int]] = [[] for _ in bodies]
    for p, k in mech.inward():
        carried[p] += carried[k]
        children[p].append(k)
    found: list[Level] = []
    begin = children[0]
    while begin:
        level, after = Level([], []), []
        for k in begin:
            level.starts.append(len(level.bodies))
            while True:
                level.bodies.append(k)
                if not children[k]:
                    break
                heavy = max(children[k], key=lambda c: carried[c])
                after += [c for c in children[k] if c != heavy]
                k = heavy
        found.append(level)
        begin = after
    return found


def stretches(mech: Mechanism, level: Level, lanes: int) -> list[list[tuple[int, int]]]:
    """The degrees of freedom of a level, outward, in about as many stretches.

    Each is a body and the number of its own; a body without any has one all the same.  A stretch
    ends with the last of a body that has inertia.
    """
    own = {k: _own_inertia(mech, k) for k in level.bodies}
    least, each, ends = _SLIGHT * max(own.values()), [], []
    for k in level.bodies:
        count = max(mech.bodies[k].joint.nv, 1)
        each += [(k, i) for i in range(count)]
        ends += [False] * (count - 1) + [own[k] > least]
    n, length, cut, begin = len(each), -(-len(each) // lanes), [], 0
    while begin < n:
        end = min(begin + length, n)
        while end < n and not ends[end - 1]:
            end += 1
        cut.append(each[begin:end])
        begin = end
    return cut


def _own_inertia(mech: Mechanism, k: int) -> float:
    """The least inertia that a joint has to move, its link being all that there is."""
    body = mech.bodies[k]
    H = hinge_map(body, body.joint.H(body.joint.neutral()))
    S = H @ body.inertia.spatial.matrix @ H.T + np.diag(np.asarray(body.joint.armature, float))
    return float(np.linalg.eigvalsh(S)[0]) if len(S) else np.inf

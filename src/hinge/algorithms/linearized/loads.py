"""External forces that know how they change as the bodies move.  math §6.4.

A force f = (N; F) on a body is given in body axes at the body's origin, as always; its kind says
what stays when the body is displaced by δΞ = (δφ; δx):

    "body"    its components in body axes                          Z̄ = 0
    "world"   the force in space, where it is and whatever moves    Z̄ = −[ N×  F× ; F×  0 ]
    "dead"    F and its free couple in world axes, F at a point x   Z̄ = −[ N× + F×x×  0 ; F×  0 ]
              of the body

−Z̄ δΞ is the change of the force beyond being carried along with the body.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...algebra.rotation import skew
from ...errors import ArgumentError
from ...model.protocol import Tree

__all__ = ["LOADS", "Load", "load_stiffness"]

Load = Literal["body", "world", "dead"]
LOADS = ("body", "world", "dead")


def load_stiffness(mech: Tree, f_ext: Any, points: Any, load: Load) -> Any:
    """Z̄ of every body, (6, 6).  points: (n_bodies, 3), where dead loads act; None: the origins."""
    if load not in LOADS:
        raise ArgumentError(f"load is {load!r}; expected one of {', '.join(map(repr, LOADS))}")
    if f_ext is None or load == "body":
        return mech.each(lambda k: np.zeros((6, 6)))
    f, x = mech.wrenches(f_ext), mech.points(points)
    return mech.each(lambda k: _dead(f[k], x[k]) if load == "dead" else _fixed(f[k]))


def _fixed(f: np.ndarray) -> np.ndarray:
    N, F = skew(f[:3]), skew(f[3:])
    return -np.block([[N, F], [F, np.zeros((3, 3))]])


def _dead(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    N, F = skew(f[:3]), skew(f[3:])
    none = np.zeros((3, 3))
    return -np.block([[N + F @ skew(x), none], [F, none]])

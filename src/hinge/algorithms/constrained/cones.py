"""Friction cones: whether a foot can push with the forces that it is asked for.

With the normal along z of the axes of the forces, μ the coefficient, X and Y the half lengths of a
flat contact along x and y (S. Caron, Q.-C. Pham, Y. Nakamura, Stability of surface contacts for
humanoid robots: closed-form formulae of the contact wrench cone for rectangular support areas, ICRA
2015), residuals are at least 0 where it can:

    pushes            f_z                                                                       (1)
    does not slide    μ f_z − √(f_x² + f_y²)                                                    (2)
    does not tip      X f_z − |m_y|,   Y f_z − |m_x|                                            (3)
    does not twist    m_z − m_min,   m_max − m_z                                                (4)
                      m_min = −μ (X + Y) f_z + |Y f_x − μ m_x| + |X f_y − μ m_y|
                      m_max = +μ (X + Y) f_z − |Y f_x + μ m_x| − |X f_y + μ m_y|

A point has (1) and (2); a line along y has X = 0 in (3) and (4), and nothing to hold m_y with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...algebra.small import sqrt
from ...model.mechanism import Mechanism
from ..declare import algorithm
from .description import Constraint, Contact, row_slices

__all__ = ["friction_residuals"]


@algorithm(joint_level=True)
def friction_residuals(
    mech: Mechanism, forces: np.ndarray, constraints: Sequence[Constraint]
) -> np.ndarray:
    """What is left to the edges of the friction cones of λ (rows,), contact after contact.

    A point has 2 residuals, (1) and (2); a line 5, with (3) about x and (4); a flat contact 6;
    loops and welds none.
    """
    out: list[Any] = []
    for c, at in zip(constraints, row_slices(constraints), strict=True):
        if isinstance(c, Contact) and c.kind != "weld":
            out += _residuals(c, forces[at])
    return np.array(out)


def _residuals(c: Contact, rows: np.ndarray) -> list[Any]:
    wrench: list[Any] = [0.0] * 6
    for axis, x in zip(c.axes, rows, strict=True):
        wrench[axis] = x
    mx, my, mz, fx, fy, fz = wrench
    X, Y = (0.0 if c.kind == "line" else c.extent[0]), c.extent[1]
    mu = c.friction
    out = [fz, mu * fz - sqrt(fx * fx + fy * fy)]  # (1), (2)
    if c.kind == "point":
        return out
    tip = [X * fz - abs(my), Y * fz - abs(mx)]  # (3)
    most = mu * (X + Y) * fz
    low = -most + abs(Y * fx - mu * mx) + abs(X * fy - mu * my)
    high = most - abs(Y * fx + mu * mx) - abs(X * fy + mu * my)
    return [*out, *tip[c.kind == "line" :], mz - low, high - mz]  # (4)

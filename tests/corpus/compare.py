"""When two programs that read one file agree.

A difference counts relative to the largest entry of what is compared, in units that give every
degree of freedom an inertia of one: with u = √M_ii joint forces count as f/u, accelerations as u q̈,
the mass matrix as M/uuᵀ, so that a finger counts as much as a floating base.  1e-9 is allowed; for
accelerations the condition of M in these units times 1e-15, where that is more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import hinge
from hinge import algorithms as alg

TOLERANCE = 1e-9
LARGEST_CONDITION = 1e10  # beyond it nobody's accelerations have digits to compare


class PeerRefusesError(Exception):
    """The peer does not read the file, so that there is nothing to compare with."""


class DiffersError(Exception):
    """Both read the file and do not agree."""


def agree(
    what: str,
    ours: Any,
    theirs: Any,
    unit: Any = 1.0,
    *,
    tolerance: float = TOLERANCE,
    least: float = 0.0,
) -> None:
    """Raise if two results differ; least: the size of the terms of a result that may cancel."""
    ours, theirs = np.asarray(ours) * unit, np.asarray(theirs) * unit
    if ours.shape != theirs.shape:
        raise DiffersError(f"{what} has shape {ours.shape} here and {theirs.shape} there")
    scale = max(float(np.abs(theirs).max(initial=0.0)), least)
    off = float(np.abs(ours - theirs).max(initial=0.0))
    if not off <= tolerance * scale:
        raise DiffersError(f"{what}: off by {off:.2e} of {scale:.2e}")


def units(M: np.ndarray) -> np.ndarray:
    """√M_ii, or 1 where nothing is moved."""
    inertia = np.diag(M)
    return np.sqrt(np.where(inertia > 0, inertia, 1.0))


def of_accelerations(M: np.ndarray, u: np.ndarray) -> float | None:
    """The tolerance for accelerations; None where M says nothing about them."""
    condition = np.linalg.cond(M / np.outer(u, u))
    return max(TOLERANCE, 1e-15 * condition) if condition < LARGEST_CONDITION else None


def poses(mech: hinge.Mechanism, q: np.ndarray, names: Iterable[str]) -> np.ndarray:
    """(…, 4, 4), of links whether they move or are merged into others."""
    bodies = [np.eye(4), *alg.poses(mech, q)]
    frames = {frame.name: bodies[frame.body] @ frame.placement.matrix for frame in mech.frames}
    return np.array([frames[name] for name in names]).reshape(-1, 4, 4)

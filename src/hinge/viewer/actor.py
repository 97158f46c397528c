"""What a viewer needs of a robot, and where a robot stands while it moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..model.joints import Free
from ..model.mechanism import Mechanism
from .look import Look

__all__ = ["MOST_DRAWN", "Actor", "Place", "all_poses", "place_of"]

MOST_DRAWN = 8  # of a batch: the first, and ghosts
_DIRECTIONS = 200  # in which the outside of a body is looked for
_TOGETHER = 1000  # poses of a body whose points are kept


class Actor(Protocol):
    """A robot: it has a mechanism, and says where bodies and frames are."""

    @property
    def mechanism(self) -> Mechanism:
        """Its bodies, joints and frames."""
        ...

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def neutral(self) -> np.ndarray:
        """A configuration to start with: (nq,)."""
        ...

    def poses(self, q: Any) -> np.ndarray:
        """X_WB of every body: (…, n_bodies, 4, 4)."""
        ...

    def frame_pose(self, q: Any, frame: str) -> np.ndarray:
        """X_WF of a frame: (…, 4, 4)."""
        ...

    def inverse_kinematics(self, frame: Any, target: Any, q0: Any, **settings: Any) -> Any:
        """An answer with the q that brings frames nearest to targets."""
        ...

    def center_of_mass(self, q: Any) -> np.ndarray:
        """In the world: (…, 3)."""
        ...


def all_poses(actor: Actor, q: Any) -> np.ndarray:
    """X_WB of the ground and every body: (…, 1 + n_bodies, 4, 4)."""
    bodies = actor.poses(q)
    ground = np.broadcast_to(np.eye(4), (*bodies.shape[:-3], 1, 4, 4))
    return np.concatenate([ground, bodies], axis=-3)


@dataclass(frozen=True, eq=False)
class Place:
    """Where a robot stays: outermost points of it (N, 3), and the height of the ground."""

    points: np.ndarray
    ground: float

    @property
    def middle(self) -> np.ndarray:
        """Of the box around the points."""
        return (self.points.min(axis=0) + self.points.max(axis=0)) / 2

    @property
    def size(self) -> float:
        """The diagonal of the box, m."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))


def place_of(mechanism: Mechanism, look: Look, poses: np.ndarray) -> Place:
    """Where a robot is in all of these poses (…, 1 + n_bodies, 4, 4).

    The ground is where the mechanism has a floor; else what is loose stands on it, and for others
    it is at z = 0, or lower.
    """
    found = [np.zeros((0, 3))]
    for k, meshes in enumerate(look.visuals):
        if meshes:
            points = _outermost(np.concatenate([mesh.vertices for mesh in meshes]))
            found += _met(points, poses[..., k, :, :].reshape(-1, 4, 4))
    points = np.concatenate(found)
    points = points if len(points) else np.array([[-0.5] * 3, [0.5] * 3])
    loose = any(isinstance(b.joint, Free) and b.parent == 0 for b in mechanism.bodies[1:])
    low = float(points[:, 2].min())
    ground = low if loose else min(low, 0.0)
    return Place(points, ground if look.floor is None else look.floor)


def _met(points: np.ndarray, poses: np.ndarray) -> Iterator[np.ndarray]:
    """Where points of a body are in all of its poses (n, 4, 4); of many poses the outermost."""
    for start in range(0, len(poses), _TOGETHER):
        X = poses[start : start + _TOGETHER]
        there = (points @ np.swapaxes(X[:, :3, :3], 1, 2) + X[:, None, :3, 3]).reshape(-1, 3)
        there = there[np.isfinite(there).all(axis=1)]
        yield _outermost(there) if len(poses) > _TOGETHER and len(there) else there


def _outermost(points: np.ndarray) -> np.ndarray:
    """Those that are farthest in some of many directions."""
    # a spiral of even spacing on the sphere
    i = np.arange(_DIRECTIONS) + 0.5
    z, turn = 1 - 2 * i / _DIRECTIONS, i * np.pi * (3 - np.sqrt(5))
    r = np.sqrt(1 - z * z)
    directions = np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=-1)
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)])
    return points[np.unique((points @ directions.T).argmax(axis=0))]

"""Changing robots: every function returns a new one, of the kind it was given, and leaves it alone.

A `Robot` gives a `Robot` with the same dtype, threads and parameters, a `Mechanism` a `Mechanism`.
"""

from .bodies import with_frame, with_gravity, with_inertia
from .compose import attach, replace, subtree, without
from .joint_edits import lock, right_angles, single_axis, weld, with_joint
from .mesh_inertia import with_mesh_inertia
from .scale import enlarge, rescale

__all__ = [
    "attach",
    "enlarge",
    "lock",
    "replace",
    "rescale",
    "right_angles",
    "single_axis",
    "subtree",
    "weld",
    "with_frame",
    "with_gravity",
    "with_inertia",
    "with_joint",
    "with_mesh_inertia",
    "without",
]


def __dir__() -> list[str]:
    return __all__

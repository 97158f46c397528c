"""The chain that operations are counted on."""

from functools import cache

from hinge import Inertia, Mechanism, MechanismBuilder, Revolute, Transform
from hinge.algebra.rotation import from_rpy


@cache
def chain(n: int) -> Mechanism:
    """n times the same link on a hinge, its axis, placement and inertia general ones."""
    b = MechanismBuilder(f"chain{n}")
    placement = Transform(from_rpy(0.3, -0.7, 0.5), (0.1, -0.2, 0.3))
    moments = [[0.3, 0.02, -0.03], [0.02, 0.4, 0.05], [-0.03, 0.05, 0.35]]
    parent = "world"
    for i in range(n):
        body = Inertia(1.5, (0.1, 0.2, -0.15), moments)
        b.add(f"link{i}", parent, Revolute((1, 2, -3)), f"joint{i}", placement, body)
        parent = f"link{i}"
    b.add_frame("tip", parent)
    return b.build()

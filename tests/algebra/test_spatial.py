"""Laws of spatial vectors (math §1), and the shapes that the zoo is drawn with."""

import numpy as np
import pytest

from hinge import Transform, zoo
from hinge.algebra.rotation import from_rpy, is_rotation
from hinge.algebra.spatial import ForceTransfer, cross_force, cross_motion
from mechanisms import EPS, assert_close

RNG = np.random.default_rng(0)
V, W, Y, f = RNG.normal(size=(4, 6))
X = Transform(from_rpy(0.3, -1.1, 2.0), (0.4, -0.2, 0.9))
PHI = ForceTransfer(X.rotation, X.translation)


def test_cross_products_are_adjoint():
    """V ×* = −(V ×)ᵀ, so that the power of f along V × W is minus that of V ×* f along W."""
    assert_close(cross_force(V, f) @ W, -f @ cross_motion(V, W), 20 * EPS)


def test_jacobi_identity():
    left = cross_motion(V, cross_motion(W, Y))
    right = cross_motion(cross_motion(V, W), Y) + cross_motion(W, cross_motion(V, Y))
    assert_close(left, right, 20 * EPS)


def test_transfers_are_adjoint_and_carry_cross_products():
    assert_close((PHI @ f) @ V, f @ (PHI.T @ V), 20 * EPS)
    carried = cross_motion(PHI.T @ V, PHI.T @ W)
    assert_close(PHI.T @ cross_motion(V, W), carried, 20 * EPS)
    assert_close(PHI @ cross_force(PHI.T @ V, f), cross_force(V, PHI @ f), 20 * EPS)


@pytest.mark.parametrize("name", [n for n in zoo.__all__ if n != "tree"])
def test_every_body_of_the_zoo_can_be_drawn(name):
    """A cylinder lies along its link, from the joint to the far end, or is a wheel about it."""
    for body in getattr(zoo, name)().mechanism.bodies[1:]:
        (shape,) = body.visuals
        assert is_rotation(shape.placement.rotation)
        assert_close(shape.placement.translation, body.inertia.com, 0.0)
        if shape.kind == "cylinder":
            along = shape.placement.rotation[:, 2] * shape.size[1] / 2
            ends = np.array([shape.placement.translation + s * along for s in (-1, 1)])
            wheel = np.abs(ends.sum(axis=0)).max() < 4 * EPS
            assert wheel or np.abs(ends).sum(axis=1).min() < 4 * EPS

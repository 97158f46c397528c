"""Joints refuse what makes no sense, and draw configurations within their limits."""

import numpy as np
import pytest

import hinge
from hinge import ModelError
from mechanisms import JOINTS

BAD = {
    "zero axis": (lambda: hinge.Revolute((0, 0, 0)), r"Revolute: axis is \(0.0, 0.0, 0.0\)"),
    "short axis": (lambda: hinge.Prismatic((0, 1)), "Prismatic: axis is .* three finite numbers"),
    "nan axis": (lambda: hinge.Helical((0, np.nan, 1)), "Helical: axis is .* three finite numbers"),
    "nan pitch": (lambda: hinge.Helical((0, 0, 1), np.nan), "Helical: pitch is nan"),
    "parallel axes": (lambda: hinge.Universal((1, 0, 0), (-1, 0, 0)), "parallel"),
    "negative armature": (
        lambda: hinge.Revolute(armature=-1),
        "armature is -1; .* not be negative",
    ),
    "negative damping": (lambda: hinge.Planar(damping=(1, -2, 0)), "damping is -2"),
    "nan friction": (lambda: hinge.Revolute(friction=np.nan), "friction is NaN"),
    "a word": (lambda: hinge.Revolute(armature="much"), "armature is 'much'; give numbers"),
    "a letter": (lambda: hinge.Revolute("z"), "Revolute: axis is 'z'; give numbers"),
    "wrong count": (lambda: hinge.Planar(armature=(1, 2)), r"armature has shape \(2,\); .* or 3"),
    "limits crossed": (lambda: hinge.Revolute(lower=1, upper=-1), "lower limit .* above upper"),
    "bounded quaternion": (lambda: hinge.Spherical(lower=-1), "quaternion"),
    "mimic of many": (
        lambda: hinge.Planar(mimic=hinge.Mimic("x")),
        "has 3 DoF; only a joint of one",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_is_refused(case):
    make, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        make()


@pytest.mark.parametrize("kind", JOINTS)
def test_sizes_are_what_they_say(kind):
    joint = JOINTS[kind]
    rng = np.random.default_rng(0)
    q, v = joint.random(rng), rng.normal(size=joint.nv)
    assert joint.neutral().shape == q.shape == (joint.nq,)
    assert joint.H(q).shape == joint.H_rate(q, v).shape == (joint.nv, 6)
    assert np.linalg.matrix_rank(joint.H(q)) == joint.nv
    R, p = joint.pose(joint.neutral())
    np.testing.assert_array_equal(R, np.eye(3))
    np.testing.assert_array_equal(p, np.zeros(3))


@pytest.mark.parametrize(
    ("lower", "upper"), [(-0.1, 0.3), (2.0, 2.5), (5.0, np.inf), (-np.inf, -7.0)]
)
def test_random_configurations_respect_limits(lower, upper):
    rng = np.random.default_rng(0)
    joint = hinge.Revolute(lower=lower, upper=upper)
    q = np.array([joint.random(rng) for _ in range(100)])
    assert ((q >= lower) & (q <= upper)).all()
    assert np.ptp(q) > 0.1


def test_axes_are_normalised_and_data_is_per_dof():
    joint = hinge.Cylindrical((0, 3, 4), armature=0.5, damping=(1, 2))
    assert joint.axis == (0.0, 0.6, 0.8)
    assert joint.armature == (0.5, 0.5) and joint.damping == (1.0, 2.0)

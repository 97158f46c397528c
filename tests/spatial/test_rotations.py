"""`so3` beside SciPy, laws of rotations, and 50 digits: at zero, at a half turn, in gimbal lock."""

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hinge.spatial import so3
from mechanisms import EPS

RNG = np.random.default_rng(11)
W = RNG.normal(size=(200, 3))
R = Rotation.from_rotvec(W).as_matrix()
LAST = [3, 0, 1, 2]


def test_forms_are_those_of_scipy():
    theirs = Rotation.from_rotvec(W)
    assert np.abs(so3.exp(W) - R).max() <= 8 * EPS
    quats = theirs.as_quat(canonical=True)[:, LAST]
    assert np.abs(so3.to_quaternion(R) - quats).max() <= 8 * EPS
    scaled = quats * RNG.uniform(0.1, 10, size=(200, 1))
    assert np.abs(so3.from_quaternion(scaled) - R).max() <= 8 * EPS
    assert np.abs(so3.to_quaternion(-scaled) - quats).max() <= 8 * EPS
    assert np.abs(so3.log(R) - theirs.as_rotvec()).max() <= 16 * EPS
    assert np.abs(so3.log(quats) - theirs.as_rotvec()).max() <= 16 * EPS
    assert np.abs(so3.exp_quaternion(so3.log(R)) - quats).max() <= 16 * EPS
    assert np.abs(so3.to_rpy(R) - theirs.as_euler("xyz")).max() <= 100 * EPS
    assert np.abs(so3.from_rpy(so3.to_rpy(R)) - R).max() <= 16 * EPS
    axis, angle = so3.to_axis_angle(R)
    assert np.abs(angle - theirs.magnitude()).max() <= 16 * EPS
    assert np.abs(so3.from_axis_angle(3 * axis, angle) - R).max() <= 16 * EPS
    points = RNG.normal(size=(200, 3))
    assert np.abs(so3.act(R, points) - theirs.apply(points)).max() <= 16 * EPS
    assert np.abs(so3.compose(R, R[::-1]) - (theirs * theirs[::-1]).as_matrix()).max() <= 8 * EPS


def angles_near(center):
    steps = [0.0, 1e-300, 1e-200, 1e-100, 1e-20, 1e-16, 1e-12, 1e-8, 1e-4, 0.1]
    return [center + s * x for x in steps for s in (1, -1) if center + s * x >= 0]


@pytest.mark.parametrize("angle", [*angles_near(0.0), *angles_near(np.pi)])
def test_log_has_all_its_digits(angle):
    """Of the rotation by that angle, rounded to floats: at most its own rounding is left."""
    for n in (*np.eye(3), *-np.eye(3), *RNG.normal(size=(4, 3))):
        n = n / np.linalg.norm(n)
        with mpmath.workdps(400):
            w = [mpmath.mpf(float(angle)) * mpmath.mpf(float(x)) for x in n]
            theta = mpmath.sqrt(sum(x * x for x in w))
            half = mpmath.sin(theta / 2) / theta if theta else mpmath.mpf(1) / 2
            quat = np.array([float(mpmath.cos(theta / 2)), *(float(half * x) for x in w)])
            # the way that is not longer than half a turn
            turned = 1 if theta <= mpmath.pi else 1 - 2 * mpmath.pi / theta
            expected = np.array([float(x * turned) for x in w])
        scale = 6 * EPS * np.abs(expected).max()
        assert np.abs(so3.log(quat) - expected).max() <= scale
        found = so3.log(so3.from_quaternion(quat))
        side = -1 if found @ expected < 0 and abs(angle - np.pi) < 1e-15 else 1
        assert np.abs(side * found - expected).max() <= scale
        assert np.abs(so3.exp(found) - so3.from_quaternion(quat)).max() <= 8 * EPS


def test_at_exactly_a_half_turn_log_is_one_of_two():
    """Of a matrix the one with a positive largest entry, of a quaternion the one that it says."""
    for n in RNG.normal(size=(50, 3)):
        n /= np.linalg.norm(n)
        half = 2 * np.outer(n, n) / (n @ n) - np.eye(3)
        assert np.array_equal(half, half.T)
        w = so3.log(half)
        assert w[np.argmax(np.abs(w))] > 0
        assert np.abs(np.abs(w) - np.pi * np.abs(n)).max() <= 8 * EPS
        assert np.abs(so3.log([0, *n]) - np.pi * n).max() <= 8 * EPS
        assert np.abs(so3.log([0, *-n]) + np.pi * n).max() <= 8 * EPS
    for i, n in enumerate(np.eye(3)):
        assert np.array_equal(so3.log(2 * np.outer(n, n) - np.eye(3)), np.pi * np.eye(3)[i])


def test_float32_keeps_its_digits_at_both_ends():
    eps = np.finfo(np.float32).eps
    for angle in (0.0, 1e-30, 1e-6, 1e-3, 3.0, np.pi - 1e-3, np.pi - 1e-6):
        for n in RNG.normal(size=(10, 3)):
            w = (angle * n / np.linalg.norm(n)).astype(np.float32)
            found = so3.log(so3.exp(w))
            assert found.dtype == np.float32
            assert np.abs(np.abs(found) - np.abs(w)).max() <= 16 * eps * angle


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1e-9 - np.pi / 2])
def test_gimbal_lock_gives_the_rotation_back(pitch):
    for roll, yaw in RNG.uniform(-3, 3, size=(20, 2)):
        turned = so3.from_rpy([roll, pitch, yaw])
        found = so3.to_rpy(turned)
        assert np.abs(so3.from_rpy(found) - turned).max() <= 8 * EPS
        assert abs(found[1] - pitch) <= 1e-8
    assert so3.to_rpy(so3.from_rpy([0.0, np.pi / 2, 0.0]))[2] == 0


def test_laws_of_the_group():
    a, b = so3.random(1, 100), so3.random(2, 100)
    for x, y in ((a, b), (so3.to_quaternion(a), so3.to_quaternion(b))):
        step = so3.difference(x, y)
        assert np.abs(so3.difference(so3.integrate(x, step), y)).max() <= 40 * EPS
        assert np.abs(so3.distance(x, y) - np.linalg.norm(step, axis=1)).max() <= 16 * EPS
        assert np.abs(so3.distance(x, x)).max() <= 2e-8 and so3.distance(x[0], x[0]) <= 2e-8
        middle = so3.interpolate(x, y, np.full(100, 0.25))
        assert np.abs(so3.difference(x, middle) - 0.25 * step).max() <= 20 * EPS
        start, end = (so3.interpolate(x, y, np.full(100, t)) for t in (0.0, 1.0))
        assert np.abs(so3.distance(start, x)).max() <= 5e-8
        assert np.abs(so3.distance(end, y)).max() <= 5e-8
        unit = so3.compose(x, so3.inverse(x))
        assert np.abs(so3.log(unit)).max() <= 8 * EPS
    assert np.array_equal(so3.distance(np.eye(3), np.eye(3)), 0)


def test_jacobians_are_of_exp_and_log():
    """By central differences of the functions themselves, and by one another."""
    h = 1e-6
    for w in W[:20]:
        turned = so3.exp(w)
        for k, e in enumerate(np.eye(3)):
            up, down = (so3.log(so3.compose(turned.T, so3.exp(w + s * h * e))) for s in (1, -1))
            assert np.abs((up - down) / (2 * h) - so3.right_jacobian(w)[:, k]).max() < 1e-9
    assert np.abs(so3.right_jacobian(W) @ so3.right_jacobian_inverse(W) - np.eye(3)).max() < 1e-13
    assert np.abs(so3.left_jacobian(W) @ so3.left_jacobian_inverse(W) - np.eye(3)).max() < 1e-13
    assert np.abs(so3.left_jacobian(W) - R @ so3.right_jacobian(W)).max() <= 16 * EPS
    short = so3.log(R)
    assert np.abs(so3.log_jacobian(R) - so3.right_jacobian_inverse(short)).max() <= 1e-13


def test_normalize_is_the_polar_factor():
    for size in (1e-12, 1e-3, 0.3):
        near = R + size * RNG.normal(size=R.shape)
        U, s, Vt = np.linalg.svd(near)
        good = np.linalg.det(near) > 0.05
        found = so3.normalize(near[good])
        assert np.abs(found - (U @ Vt)[good]).max() <= 1e3 * EPS / s[good].min()
    mean = so3.normalize(R[:50].mean(axis=0) + 2 * np.eye(3))
    assert np.abs(mean @ mean.T - np.eye(3)).max() <= 16 * EPS
    assert np.abs(np.linalg.norm(so3.normalize(W[:, [0, 1, 2, 0]]), axis=1) - 1).max() <= 4 * EPS
    assert np.isnan(so3.normalize(np.stack([np.diag([1.0, 1, -1]), np.zeros((3, 3))]))).all()


def test_rates_of_quaternions():
    """dq/dt by complex steps along R exp(ω t)."""
    quats, w = so3.to_quaternion(R), RNG.normal(size=(200, 3))
    rate = so3.quaternion_rate(quats, w)
    stepped = so3.integrate(quats.astype(complex), 1e-30j * w).imag / 1e-30
    assert np.abs(rate - stepped).max() <= 8 * EPS
    assert np.abs(so3.angular_velocity(quats, rate) - w).max() <= 16 * EPS
    assert np.abs(so3.angular_velocity(3 * quats, 3 * rate) - w).max() <= 16 * EPS


def test_random_rotations_are_uniform():
    """The mean of R is zero, that of its trace squared is 1."""
    many = so3.random(5, 20_000)
    assert np.abs(many.mean(axis=0)).max() < 0.02
    assert abs((np.trace(many, axis1=1, axis2=2) ** 2).mean() - 1) < 0.05
    assert so3.random(5).shape == (3, 3) and so3.random(None, (2, 3)).shape == (2, 3, 3, 3)


def test_vectors_and_matrices():
    a, b = W[0], W[1]
    assert np.abs(so3.hat(a) @ b - np.cross(a, b)).max() <= 4 * EPS
    assert np.array_equal(so3.vee(so3.hat(W)), W)

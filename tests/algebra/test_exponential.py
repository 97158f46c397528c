"""exp, log and their Jacobians against series of 60 digits, at every angle, with derivatives."""

import mpmath
import numpy as np
import pytest

import hinge
from hinge.algebra import exponential, rotation
from hinge.algebra.rotation import skew
from mechanisms import EPS

# near zero, at ordinary angles, near a half turn and a whole one, and past many
SMALL = [0.0, 1e-300, 1e-160, 1e-18, 1e-9, 1e-5, 1e-2]
ANGLES = [*SMALL, 0.5, 0.99, 1.0, 1.01, 2.0, 3.0, np.pi - 1e-5, np.pi - 1e-9, np.pi, 3.3, 4.5]
LARGE = [6.0, 7.0, 20.0, 100.0, 1e4]
RNG = np.random.default_rng(7)
DIRECTIONS = RNG.normal(size=(3, 3))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]
v = RNG.normal(size=3)


def matrix_of(V):
    """[ω× v; 0 0] with many digits."""
    x = mpmath.zeros(4)
    w = skew(V[:3])
    for i in range(3):
        x[i, 3] = mpmath.mpf(float(V[3 + i]))
        for j in range(3):
            x[i, j] = mpmath.mpf(float(w[i, j]))
    return x


def ad_of(V):
    """[ω× 0; v× ω×] with many digits."""
    w, u = skew(V[:3]), skew(V[3:])
    whole = np.block([[w, np.zeros((3, 3))], [u, w]])
    return mpmath.matrix([[mpmath.mpf(float(x)) for x in row] for row in whole])


def integral(A):
    """∫₀¹ exp(s A) ds: the upper right block of exp [A 1; 0 0]."""
    n = A.rows
    big = mpmath.zeros(2 * n)
    big[:n, :n], big[:n, n:] = A, mpmath.eye(n)
    return mpmath.expm(big)[:n, n:]


def floats(x):
    return np.array(x.tolist(), dtype=float)


def twists(angles):
    return [np.concatenate([angle * n, v]) for angle in angles for n in DIRECTIONS]


@pytest.mark.parametrize("angle", [*ANGLES, *LARGE])
def test_exp_is_that_of_matrices(angle):
    """At 100 rad too, where the translation of a floating base was off by a hundredth."""
    for V in twists([angle]):
        with mpmath.workdps(60):
            expected = floats(mpmath.expm(matrix_of(V)))
        R = rotation.quaternion_matrix(rotation.quaternion_exp(V[:3]))
        # the angle itself is rounded
        tolerance = (8 + 2 * angle) * EPS
        assert np.abs(R - expected[:3, :3]).max() <= tolerance
        p = exponential.translation_exp(V[:3], V[3:])
        assert np.abs(p - expected[:3, 3]).max() <= tolerance * np.abs(v).max()


@pytest.mark.parametrize("angle", ANGLES)
def test_log_undoes_exp_to_rounding(angle):
    """In units of the rotation vector itself: no digit is lost near zero, nor near a half turn."""
    for V in twists([angle]):
        w = V[:3]
        back = exponential.translation_log(w, exponential.translation_exp(w, V[3:]))
        assert np.abs(back - V[3:]).max() <= 30 * EPS
        if angle <= np.pi:
            R = rotation.quaternion_matrix(rotation.quaternion_exp(w))
            for found in (rotation.rotation_log(R), rotation.quaternion_log(_quaternion(R))):
                # past a half turn by rounding the other way round is as short
                side = 1 if found @ w >= 0 else -1
                assert np.abs(side * found - w).max() <= 8 * EPS * angle


def _quaternion(R):
    return rotation.quaternion_from_matrix(R)


@pytest.mark.parametrize("angle", [*ANGLES, *LARGE])
def test_left_jacobians_are_integrals(angle):
    for V in twists([angle]):
        with mpmath.workdps(60):
            expected = floats(integral(ad_of(V)))
        assert np.abs(exponential.pose_left_jacobian(V) - expected).max() <= (30 + angle) * EPS
        assert np.abs(exponential.left_jacobian(V[:3]) - expected[:3, :3]).max() <= 30 * EPS


@pytest.mark.parametrize("angle", ANGLES)
def test_inverse_jacobians_are_inverses(angle):
    for V in twists([angle]):
        with mpmath.workdps(60):
            expected = floats(integral(ad_of(V)) ** -1)
        scale = np.abs(expected).max() ** 2
        found = exponential.pose_left_jacobian_inverse(V)
        assert np.abs(found - expected).max() <= 60 * EPS * scale
        found = exponential.left_jacobian_inverse(V[:3])
        assert np.abs(found - expected[:3, :3]).max() <= 60 * EPS * scale


def components(V):
    """All of it, weighed into one number."""
    weights = np.random.default_rng(1).normal(size=(6, 6))
    parts = [exponential.pose_left_jacobian(V), exponential.pose_left_jacobian_inverse(V)]
    quaternion = rotation.quaternion_exp(V[:3])
    other = rotation.quaternion_log(quaternion + np.array([0.1, 0, 0, 0])) @ V[3:]
    return sum(np.sum(weights * part) for part in parts) + quaternion @ weights[0, :4] + other


@pytest.mark.parametrize("angle", [*SMALL, 1e-15, 1e-12, 0.9, 1.1, 3.0, 4.0])
def test_derivatives_are_right_at_every_angle(angle):
    """The first by complex steps to rounding, the second by their differences: zero too."""
    gradient = hinge.compile(hinge.grad(components), V=(6,))
    hessian = hinge.compile(hinge.hessian(components), V=(6,))

    def stepped(V):
        steps = 1e-30j * np.eye(6)
        return np.array([components(V + step).imag for step in steps]) / 1e-30

    for V in twists([angle]):
        assert np.abs(gradient(V) - stepped(V)).max() <= 1e4 * EPS
        h = 1e-5
        rows = [(stepped(V + h * e) - stepped(V - h * e)) / (2 * h) for e in np.eye(6)]
        assert np.abs(hessian(V) - np.array(rows)).max() <= 1e-7


def test_a_floating_base_turns_and_slides_as_far_as_one_likes():
    """q ⊞ δ with turns of 100 rad is what steps of a hundredth of it lead to."""
    robot = hinge.zoo.space_arm(2)
    step = np.zeros(robot.nv)
    step[:6] = 60.0, -70.0, 38.0, 1.0, 2.0, -3.0
    q = robot.random_configuration(0)
    once, many = robot.integrate(q, step), q
    for _ in range(1000):
        many = robot.integrate(many, step / 1000)
    assert np.abs(once[:3] - many[:3]).max() < 1e-12

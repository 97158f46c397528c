"""`se3` beside Pinocchio, laws of rigid motions, and many digits near zero and a half turn."""

import mpmath
import numpy as np
import pytest

import hinge
from hinge.algebra.spatial import cross_force, cross_motion
from hinge.spatial import se3, so3
from mechanisms import EPS

RNG = np.random.default_rng(13)
V = np.concatenate([RNG.uniform(-1.7, 1.7, size=(100, 3)), RNG.normal(size=(100, 3))], axis=1)
# (linear; angular) of (angular; linear), and back
SWAP = [3, 4, 5, 0, 1, 2]


def test_functions_are_those_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    for twist in V:
        X, M = se3.exp(twist), pin.exp6(twist[SWAP])
        assert np.abs(X - M.homogeneous).max() <= 16 * EPS
        assert np.abs(se3.log(X) - pin.log6(M).vector[SWAP]).max() <= 1e-13
        assert np.abs(so3.log(X[:3, :3]) - pin.log3(M.rotation)).max() <= 1e-14
        order = np.ix_(SWAP, SWAP)
        pairs = [
            (se3.right_jacobian(twist), pin.Jexp6(twist[SWAP])[order]),
            (se3.log_jacobian(X), pin.Jlog6(M)[order]),
            (so3.log_jacobian(X[:3, :3]), pin.Jlog3(M.rotation)),
            (so3.right_jacobian(twist[:3]), pin.Jexp3(twist[:3])),
            (se3.adjoint(X), M.action[order]),
            (se3.coadjoint(X), M.dualAction[order]),
            (se3.ad(twist), pin.Motion(twist[SWAP]).action[order]),
        ]
        for ours, theirs in pairs:
            assert np.abs(ours - theirs).max() <= 2e-13 * max(1, np.abs(theirs).max())
        x = se3.exp_quaternion(twist)
        assert np.abs(x - pin.exp6_quat(twist[SWAP])[[0, 1, 2, 6, 3, 4, 5]]).max() <= 16 * EPS


@pytest.mark.parametrize("angle", [0.0, 1e-200, 1e-12, 1e-7, 1e-3, 0.5, 3.0, np.pi - 1e-9, np.pi])
def test_log_has_all_its_digits(angle):
    for n in (*np.eye(3), *RNG.normal(size=(4, 3))):
        twist = np.array([*(angle * n / np.linalg.norm(n)), 0.3, -0.7, 1.1])
        with mpmath.workdps(250):
            A = mpmath.zeros(4)
            w = so3.hat(twist[:3])
            for i in range(3):
                A[i, 3] = mpmath.mpf(float(twist[3 + i]))
                for j in range(3):
                    A[i, j] = mpmath.mpf(float(w[i, j]))
            X = np.array(mpmath.expm(A).tolist(), dtype=float)
        assert np.abs(se3.exp(twist) - X).max() <= 12 * EPS
        found = se3.log(X)
        if found[:3] @ twist[:3] < 0:
            # the other of two
            assert angle > 3.1 and np.abs(se3.exp(found) - X).max() <= 16 * EPS
        else:
            assert np.abs(found[:3] - twist[:3]).max() <= 8 * EPS * angle
            assert np.abs(found[3:] - twist[3:]).max() <= 30 * EPS


def test_laws_of_the_group():
    a, b, c = (se3.random(seed, 100) for seed in (1, 2, 3))
    quats = [se3.to_quaternion(x) for x in (a, b, c)]
    for x, y, z in ((a, b, c), quats):
        left, right = se3.compose(se3.compose(x, y), z), se3.compose(x, se3.compose(y, z))
        assert np.abs(left - right).max() <= 16 * EPS
        assert np.abs(se3.log(se3.compose(x, se3.inverse(x)))).max() <= 16 * EPS
        step = se3.difference(x, y)
        assert np.abs(se3.difference(se3.integrate(x, step), y)).max() <= 1e-13
        half = se3.interpolate(x, y, np.full(100, 0.5))
        assert np.abs(se3.difference(x, half) - 0.5 * step).max() <= 1e-13
        point = RNG.normal(size=(100, 3))
        twice = se3.act(x, se3.act(y, point))
        assert np.abs(se3.act(se3.compose(x, y), point) - twice).max() <= 16 * EPS
        assert np.abs(se3.normalize(x) - x).max() <= 8 * EPS
        assert np.abs(se3.adjoint(se3.compose(x, y)) - se3.adjoint(x) @ se3.adjoint(y)).max() <= (
            64 * EPS
        )
    assert np.abs(se3.from_quaternion(quats[0]) - a).max() <= 8 * EPS
    R, p = se3.to_parts(a)
    assert np.array_equal(se3.from_parts(R, p), a)
    assert np.abs(se3.from_parts(so3.to_quaternion(R), p) - a).max() <= 8 * EPS


def test_adjoints_carry_and_are_dual():
    X, twist, other, f = se3.random(4), V[0], V[1], V[2]
    A, C = se3.adjoint(X), se3.coadjoint(X)
    assert np.abs(C.T @ A - np.eye(6)).max() <= 16 * EPS
    moved = se3.compose(se3.compose(X, se3.exp(twist)), se3.inverse(X))
    assert np.abs(se3.log(moved) - A @ twist).max() <= 64 * EPS
    assert np.abs(se3.ad(twist) @ other - cross_motion(twist, other)).max() <= 8 * EPS
    assert np.abs(se3.coad(twist) @ f - cross_force(twist, f)).max() <= 8 * EPS
    assert np.array_equal(se3.coad(twist), -se3.ad(twist).T)


def test_jacobians_are_of_exp_and_log():
    h = 1e-6
    for twist in V[:10]:
        X = se3.exp(twist)
        for k, e in enumerate(np.eye(6)):
            up, down = (se3.difference(X, se3.exp(twist + s * h * e)) for s in (1, -1))
            assert np.abs((up - down) / (2 * h) - se3.right_jacobian(twist)[:, k]).max() < 1e-8
            up, down = (se3.log(se3.integrate(X, s * h * e)) for s in (1, -1))
            assert np.abs((up - down) / (2 * h) - se3.log_jacobian(X)[:, k]).max() < 1e-8
    for left, right in (
        (se3.left_jacobian, se3.left_jacobian_inverse),
        (se3.right_jacobian, se3.right_jacobian_inverse),
    ):
        assert np.abs(left(V) @ right(V) - np.eye(6)).max() <= 1e-13
    assert np.abs(se3.left_jacobian(V) - se3.adjoint(se3.exp(V)) @ se3.right_jacobian(V)).max() <= (
        1e-13
    )


def test_poses_of_robots_go_in_and_out():
    """A floating base moves as `se3` says, and its q is (p, quaternion)."""
    robot = hinge.zoo.space_arm(2)
    q = robot.random_configuration(1)
    step = np.zeros(robot.nv)
    step[:6] = V[0]
    moved = robot.integrate(q, step)
    assert np.abs(moved[:7] - se3.integrate(q[:7], V[0])).max() <= 8 * EPS
    assert np.abs(robot.difference(q, moved)[:6] - se3.difference(q[:7], moved[:7])).max() <= 1e-14
    assert np.abs(robot.poses(q)[0] - se3.from_quaternion(q[:7])).max() <= 8 * EPS


def test_transforms_answer_by_machine_code():
    """The numbers of the plain code, and its messages."""
    from hinge.algebra.spatial import MACHINE_CODE, PLAIN_CODE

    for X in se3.random(6, 20):
        T = hinge.Transform.from_matrix(X)
        assert np.array_equal(T.matrix, X) and not T.rotation.flags.writeable
        assert np.abs(T.quaternion - PLAIN_CODE["quaternion"](X[:3, :3])).max() <= 2 * EPS
        assert np.array_equal((T @ T).rotation, X[:3, :3] @ X[:3, :3])
        assert np.array_equal(T.inv.translation, -X[:3, :3].T @ X[:3, 3])
    assert MACHINE_CODE["parts"] is not PLAIN_CODE["parts"]
    with pytest.raises(hinge.ModelError, match="a pose is.*nearest one is hinge.spatial.se3"):
        hinge.Transform.from_matrix(2 * X)
    with pytest.raises(hinge.ModelError, match=r"expected finite numbers of shape \(4, 4\)"):
        hinge.Transform.from_matrix(np.eye(3))
    with pytest.raises(hinge.ModelError):
        hinge.Transform.from_matrix(se3.random(0, 2))
    assert hinge.Transform.from_matrix(np.eye(4).tolist()) == hinge.Transform()
    with pytest.raises(hinge.ImmutableError):
        T.rotation = np.eye(3)

"""Derivatives of held mechanisms: exact along every direction, whatever holds them."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Contact, LoopConstraint
from hinge.algorithms.constrained.multipliers import generalized_inverse
from hinge.algorithms.constrained.response import Felt
from mechanisms import EPS, ROBOTS, along, assert_close, everything, random_state

FEET = tuple(Contact(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR"))
GAINS = {"stiffness": 30.0, "damping": 7.0}
ANCHOR = np.array([[0.8, 0.0, 0.6, 0.3], [0, 1, 0, -0.2], [-0.6, 0.0, 0.8, 0.1], [0, 0, 0, 1]])
LEFT, RIGHT = "left_universal", "right_spherical"
KINDS = {
    "weld": LoopConstraint(LEFT, RIGHT),
    "hinge": LoopConstraint(LEFT, RIGHT, (0, 1, 3, 4, 5)),
    "ball": LoopConstraint(LEFT, RIGHT, (3, 4, 5)),
    "two axes on the world": LoopConstraint(LEFT, "world", (2, 5)),
    "point": Contact(LEFT, anchor=ANCHOR, **GAINS),
    "point, body": Contact(LEFT, reference="body"),
    "line": Contact(LEFT, "line", anchor=ANCHOR, **GAINS),
    "flat": Contact(LEFT, "flat"),
    "weld, aligned": Contact(LEFT, "weld", anchor=ANCHOR, reference="aligned", **GAINS),
}


def by_complex_step(robot, s, fn, directions):
    """∂q̈ and ∂λ over q, q̇, τ of fn(q, qd, tau), along each of the directions."""
    columns = [[[], [], []], [[], [], []]]
    for e in directions.T:
        path = along(robot, s.q, e)
        moved = (
            fn(path(1e-30j), s.qd, s.qdd),
            fn(s.q, s.qd + 1e-30j * e, s.qdd),
            fn(s.q, s.qd, s.qdd + 1e-30j * e),
        )
        for i in range(2):
            for part, x in zip(columns[i], moved, strict=True):
                part.append(x[i].astype(complex).imag / 1e-30)
    return [np.array(part).T for parts in columns for part in parts]


def assert_derivatives(robot, s, constraints, bound=2000 * EPS, **given):
    """The forces τ are as large as the accelerations of the state."""
    alg = robot.alg
    got = alg.constrained_forward_dynamics_derivatives(s.q, s.qd, s.qdd, constraints, **given)

    def motion(q, qd, tau):
        return alg.constrained_forward_dynamics(q, qd, tau, constraints, **given)

    along_all = np.eye(robot.nv)
    directions = along_all if robot.nv < 30 else np.random.default_rng(0).normal(size=(robot.nv, 3))
    expected = by_complex_step(robot, s, motion, directions)
    for name, x, y in zip(got._fields, got, expected, strict=True):
        assert_close(x.astype(float) @ directions, y, bound, what=name)
    return got


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_exact_for_all_that_may_be_held(kind):
    """All joints, branches, a floating base, gravity, armature, forces, stabilisation."""
    robot = everything()
    s = random_state(robot, 5)
    assert_derivatives(robot, s, [KINDS[kind]], f_ext=s.f_ext)


@pytest.mark.parametrize("name", ["tree0", "tree1", "gripper"])
def test_derivatives_of_trees_on_the_ground_and_of_mimics(name):
    robot = ROBOTS[name]
    s = random_state(robot, 3)
    names = [n for n in robot.frame_names if n != "world"]
    held = [LoopConstraint("pad", "left", (2, 5))]
    if name != "gripper":
        held = [Contact(names[-1]), LoopConstraint(names[-1], names[len(names) // 2], (0, 4))]
    assert_derivatives(robot, s, held, f_ext=s.f_ext)


def test_a_mask_leaves_the_derivatives_of_those_that_act():
    robot = ROBOTS["quadruped"]
    s, mask = random_state(robot, 1), np.array([1.0, 0.0, 0.0, 1.0])
    got = assert_derivatives(robot, s, FEET, mask=mask)
    rows = np.repeat(mask, 3) == 1
    act = [c for c, m in zip(FEET, mask, strict=True) if m]
    alone = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, s.qdd, act)
    for x, y in zip(got[:3], alone[:3], strict=True):
        assert_close(x, y, 200 * EPS)
    for x, y in zip(got[3:], alone[3:], strict=True):
        assert_close(x[rows], y, 200 * EPS)
        assert_close(x[~rows], np.zeros((6, robot.nv)), 0.0)


def test_anchors_stay_where_they_are():
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 2)
    soft = [Contact(c.frame, **GAINS) for c in FEET]
    there = robot.anchors(random_state(robot, 4).q, soft)
    assert_derivatives(robot, s, soft, anchors=there)


@pytest.mark.parametrize("name", ["arm", pytest.param("quadruped", marks=pytest.mark.long)])
def test_compiled_derivatives_are_the_same_sample_by_sample(name):
    robot = ROBOTS[name]
    feet = FEET if name == "quadruped" else Contact(robot.frame_names[-1])
    states = [random_state(robot, i) for i in range(3)]
    q, qd, tau = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    found = robot.constrained_forward_dynamics_derivatives(q, qd, tau, feet)
    again = robot.constrained_forward_dynamics_derivatives(q, qd, tau, feet, out=found)
    one = robot.constrained_forward_dynamics_derivatives(q[1], qd[1], tau[1], feet)
    several = feet if name == "quadruped" else [feet]
    generic = robot.alg.constrained_forward_dynamics_derivatives(q[1], qd[1], tau[1], several)
    for x, y, z, w in zip(found, again, one, generic, strict=True):
        assert x is y
        assert_close(x[1], w, 5e4 * EPS)
        assert_close(z, w, 5e4 * EPS)


def test_rows_said_twice_change_nothing():
    """Redundant constraints: ∂q̈ is that without them; ∂λ goes with it."""
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 1)
    twice = [
        *FEET,
        Contact("FL_foot", reference="body"),
        LoopConstraint("FR_foot", "world", (4,), 0, 0),
    ]
    once = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, s.qdd, FEET)
    got = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, s.qdd, twice)
    for x, y in zip(got[:3], once[:3], strict=True):
        assert_close(x.astype(float), y, 1e4 * EPS)
    K, K_once = (robot.alg.constraint_jacobian(s.q, c) for c in (twice, FEET))
    for x, y in ((got.forces_dqd, once.forces_dqd), (got.forces_dtau, once.forces_dtau)):
        assert_close(K.T @ x, K_once.T @ y, 1e4 * EPS)


def test_generalized_inverses_of_less_than_full_rank():
    """A G A = A and G A G = G, in any units, rows dependent, zero or masked."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(6, 4)) * np.logspace(-3, 3, 6)[:, None]
    K[4] = 0.0
    A = K @ K.T
    felt = Felt(A, np.zeros(6), np.diagonal(A) + 1, [slice(0, 2), slice(2, 6)])
    G = generalized_inverse(felt)
    scale = np.sqrt(np.diagonal(A) + (np.diagonal(A) == 0))
    units = np.outer(scale, scale)
    assert_close(A @ G @ A / units, A / units, 1e5 * EPS)
    assert_close(G @ A @ G * units, G * units, 1e5 * EPS)
    assert np.linalg.matrix_rank(G * units) == 4
    part = generalized_inverse(felt, np.array([1.0, 0.0]))
    assert_close(part[:2, :2] * units[:2, :2], np.linalg.inv(A[:2, :2]) * units[:2, :2], 1e3 * EPS)
    assert not part[2:].any()


@pytest.mark.parametrize("name", ["everything", "tree1", "quadruped", "gripper"])
def test_derivatives_of_impacts_are_exact(name):
    """With restitution, masks, mimics; whatever stabilises the constraints."""
    robot = everything() if name == "everything" else ROBOTS[name]
    s = random_state(robot, 6)
    held = {
        "everything": [KINDS["hinge"], Contact("right_free", "flat", anchor=ANCHOR, **GAINS)],
        "tree1": [Contact(robot.frame_names[-1])],
        "quadruped": FEET,
        "gripper": [LoopConstraint("pad", "left", (2, 5))],
    }[name]
    given = {"restitution": np.linspace(0.1, 0.4, len(held))}
    if name == "quadruped":
        given["mask"] = np.array([1.0, 0.0, 1.0, 1.0])
    alg = robot.alg
    got = alg.impulse_dynamics_derivatives(s.q, s.qd, held, **given)

    def impact(q, qd, _):
        return alg.impulse_dynamics(q, qd, held, **given)

    expected = by_complex_step(robot, s, impact, np.eye(robot.nv))
    for x, y, name in zip(got, [expected[i] for i in (0, 1, 3, 4)], got._fields, strict=True):
        assert_close(x.astype(float), y, 2000 * EPS, what=name)
    plain = alg.impulse_dynamics_derivatives(s.q, s.qd, held)
    K = alg.constraint_jacobian(s.q, held)
    assert_close(K @ plain.dqd.astype(float), np.zeros(K.shape), 1e4 * EPS)


@pytest.mark.long
def test_long_robots_come_sample_by_sample():
    """By parts, whatever the lead; float32 too; where an argument is wrong, it is said."""
    robot = hinge.zoo.snake(44)
    tip, states = Contact(robot.frame_names[-1]), [random_state(robot, i) for i in range(2)]
    q, qd, tau = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    both = robot.constrained_forward_dynamics_derivatives(q, qd, tau, tip)
    for _ in range(3):
        one = robot.constrained_forward_dynamics_derivatives(q[1], qd[1], tau[1], tip)
    for x, y in zip(both, one, strict=True):
        assert_close(x[1], y, 1e6 * EPS)
    generic = robot.alg.constrained_forward_dynamics_derivatives(q[1], qd[1], tau[1], [tip])
    for x, y in zip(one, generic, strict=True):
        assert_close(x, y.astype(float), 1e7 * EPS)
    with pytest.raises(ArgumentError, match="constrained_forward_dynamics_derivatives of"):
        robot.constrained_forward_dynamics_derivatives(q[1], qd[1], tau[1][:3], tip)

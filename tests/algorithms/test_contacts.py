"""Contacts: frames held where they are, some of them, sample by sample."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Contact, LoopConstraint, zoo
from mechanisms import EPS, ROBOTS, along, assert_close, complex_step, everything, random_state

LEGS = ("FL", "FR", "RL", "RR")
FEET = tuple(Contact(f"{leg}_foot") for leg in LEGS)
KINDS = {
    "point": Contact("FL_foot"),
    "point, body": Contact("FL_foot", reference="body"),
    "line": Contact("FL_foot", "line"),
    "flat": Contact("FL_foot", "flat"),
    "weld, aligned": Contact("FL_foot", "weld", reference="aligned"),
}


def saddle(robot, s, tau, constraints, f_ext=None, anchors=None):
    """q̈ and λ by dense algebra."""
    K = robot.alg.constraint_jacobian(s.q, constraints)
    k = robot.alg.constraint_bias(s.q, s.qd, constraints, anchors)
    M, bias = robot.mass_matrix(s.q), robot.bias_forces(s.q, s.qd, f_ext)
    A = np.block([[M, -K.T], [K, np.zeros((len(k), len(k)))]])
    found = np.linalg.lstsq(A, np.concatenate([tau - bias, k]), rcond=1e-13)[0]
    return found[: robot.nv], found[robot.nv :]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_frame(kind):
    """K is the frame's Jacobian; K q̈ = k is the acceleration that is meant."""
    robot, c = ROBOTS["quadruped"], KINDS[kind]
    s, rows = random_state(robot, 1), list(c.axes)
    K = robot.alg.constraint_jacobian(s.q, [c])
    assert_close(K, robot.jacobian(s.q, c.frame, c.reference)[rows], 20 * EPS)
    k = robot.alg.constraint_bias(s.q, s.qd, [c])
    R = robot.frame_pose(s.q, c.frame)[:3, :3]
    spatial = robot.velocity_product_acceleration(s.q, s.qd, c.frame, "body")
    point = robot.velocity_product_acceleration(s.q, s.qd, c.frame, "aligned")
    if c.kind == "point":
        expected = np.r_[np.zeros(3), point[3:] if c.reference == "aligned" else R.T @ point[3:]]
    else:
        turned = np.r_[R @ spatial[:3], R @ spatial[3:]]
        expected = spatial if c.reference == "body" else turned
    assert_close(-k, expected[rows], 100 * EPS)


@pytest.mark.parametrize("kind", ["point", "line", "flat", "point, body", "weld, aligned"])
def test_what_is_drawn_to_its_anchor_gets_there(kind):
    """At the anchor e = 0 and ė = K q̇; k has −k_d K q̇ − k_p e in it."""
    robot, plain = ROBOTS["quadruped"], KINDS[kind]
    s = random_state(robot, 2)
    gains = dict(stiffness=30.0, damping=7.0, reference=plain.reference)
    here = robot.anchors(s.q, plain)
    drawn = [Contact("FL_foot", plain.kind, here[0], **gains)]
    alg = robot.alg
    assert_close(alg.constraint_error(s.q, drawn), np.zeros(len(plain.axes)), 50 * EPS)
    path = along(robot, s.q, s.qd)
    rate = complex_step(lambda h: alg.constraint_error(path(h), drawn))
    K = alg.constraint_jacobian(s.q, drawn)
    assert_close(rate, K @ s.qd, 200 * EPS)
    there = np.real(path(0.1))
    error, K = alg.constraint_error(there, drawn), alg.constraint_jacobian(there, drawn)
    k = alg.constraint_bias(there, s.qd, drawn) - alg.constraint_bias(there, s.qd, [plain])
    assert_close(k, -7.0 * K @ s.qd - 30.0 * error, 200 * EPS)
    open_anchor = [Contact("FL_foot", plain.kind, **gains)]
    same = alg.constraint_bias(there, s.qd, open_anchor, here)
    assert_close(same, alg.constraint_bias(there, s.qd, drawn), 100 * EPS)


def test_everything_at_once():
    """All joints, branches, a floating base, gravity, armature, forces, loops, contacts."""
    robot = everything()
    s = random_state(robot, 5)
    constraints = [
        Contact("left_free", "flat"),
        LoopConstraint("left_universal", "right_spherical", (0, 1, 3, 4, 5)),
        Contact("right_free", stiffness=10.0, damping=2.0),
        LoopConstraint("right_helical", "base", (5,)),
    ]
    anchors = robot.alg.anchors(random_state(robot, 6).q, constraints)
    given = s.q, s.qd, s.qdd, constraints, s.f_ext, None, anchors
    motion = robot.alg.constrained_forward_dynamics(*given)
    qdd, forces = saddle(robot, s, s.qdd, constraints, s.f_ext, anchors)
    assert_close(motion.qdd, qdd, 1e5 * EPS)
    assert_close(motion.forces, forces, 1e5 * EPS)


def test_a_snake_of_two_hundred_held_at_both_ends():
    robot = zoo.snake(200)
    s = random_state(robot, 1)
    names = robot.body_names
    ends = [Contact(names[-1], "flat"), LoopConstraint(names[100], names[0], (3, 4, 5))]
    found = robot.alg.constrained_forward_dynamics(s.q, s.qd, s.qdd, ends, s.f_ext)
    K = robot.alg.constraint_jacobian(s.q, ends)
    needed = robot.alg.inverse_dynamics(s.q, s.qd, found.qdd, s.f_ext) - K.T @ found.forces
    scale = np.abs(K.T @ found.forces).max()
    assert_close(needed, s.qdd, 1e6 * EPS, scale)
    k = robot.alg.constraint_bias(s.q, s.qd, ends)
    assert_close(K @ found.qdd, k, 1e6 * EPS, np.abs(K * found.qdd).max())


def test_feet_that_do_not_act_might_as_well_not_be_there():
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 3)
    masks = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]])
    found = robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, FEET, s.f_ext, mask=masks)
    for mask, qdd, forces in zip(masks, *found, strict=True):
        fewer = [c for c, m in zip(FEET, mask, strict=True) if m]
        alone = robot.alg.constrained_forward_dynamics(s.q, s.qd, s.qdd, fewer, s.f_ext)
        assert_close(qdd, alone.qdd, 1e3 * EPS)
        acting = np.repeat(mask, 3) == 1
        assert_close(forces[acting], alone.forces, 1e3 * EPS)
        assert not forces[~acting].any()


def test_anchors_come_with_the_samples():
    robot, soft = ROBOTS["quadruped"], [Contact("FL_foot", stiffness=50.0, damping=9.0), FEET[1]]
    s = random_state(robot, 4)
    anchors = robot.anchors(np.array([s.q, robot.neutral()]), soft)
    assert anchors.shape == (2, 2, 4, 4)
    found = robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, soft, anchors=anchors)
    for i in range(2):
        told = [Contact("FL_foot", anchor=anchors[i, 0], stiffness=50.0, damping=9.0), FEET[1]]
        expected = robot.alg.constrained_forward_dynamics(s.q, s.qd, s.qdd, told)
        assert_close(found.qdd[i], expected.qdd, 1e3 * EPS)
    with pytest.raises(ArgumentError, match="anchors are given, but no contact has a stiffness"):
        robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, FEET[:2], anchors=anchors)
    with pytest.raises(ArgumentError, match="'FL_foot' has a stiffness but no anchor"):
        robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, soft)


def test_a_standing_quadruped_is_carried_by_its_feet():
    """Whatever the legs do, the feet give the body what moves its centre of mass."""
    robot = zoo.quadruped()
    q, still = robot.neutral(), np.zeros(robot.nv)
    motion = robot.constrained_forward_dynamics(q, still, still, FEET)
    for c in FEET:
        held = robot.frame_acceleration(q, still, motion.qdd, c.frame)[3:]
        assert_close(held, np.zeros(3), 1e3 * EPS, 9.81)
    carried = motion.forces.reshape(4, 3).sum(axis=0)
    base = robot.inverse_dynamics(q, still, motion.qdd)[3:6]
    assert_close(carried, base, 1e4 * EPS)


def test_forces_move_with_complex_steps():
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 1)

    def forces(h):
        q = along(robot, s.q, s.qd)(h)
        return robot.alg.constrained_forward_dynamics(q, s.qd, s.qdd, FEET).forces

    slope, step = complex_step(forces), 1e-6
    central = (forces(step) - forces(-step)) / (2 * step)
    assert_close(slope, np.real(central), 1e-7)


WRONG = {
    "kind": (dict(kind="ball"), r"kind is 'ball'; expected one of \['point', 'line'"),
    "reference": (dict(reference="world"), "reference is 'world'; expected 'body', or"),
    "line": (dict(kind="line", reference="aligned"), "reference is 'aligned'; expected 'body'"),
    "gain": (dict(stiffness=-1.0), "stiffness of the contact of 'foot' is -1.0; expected a number"),
    "friction": (dict(friction="ice"), "friction of the contact of 'foot' is 'ice'"),
    "extent": (dict(extent=(0.1, 0.2, 0.3)), "extent is .* expected two half lengths"),
    "anchor": (dict(kind="flat", anchor=(0, 0, 0)), r"anchor has shape \(3,\); expected a finite"),
}


@pytest.mark.parametrize("what", WRONG)
def test_descriptions_that_make_no_sense_say_so(what):
    given, message = WRONG[what]
    with pytest.raises(ArgumentError, match=message):
        Contact("foot", **given)


def test_a_point_needs_no_more_than_a_position():
    position = Contact("foot", anchor=(1, 2, 3)).anchor
    assert position == hinge.Transform(translation=(1.0, 2.0, 3.0))
    assert hash(Contact("foot", anchor=np.eye(4))) == hash(Contact("foot", anchor=np.eye(4)))

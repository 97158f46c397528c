"""Closing loops: closed to rounding, nearest by the metric, held joints and limits kept."""

import numpy as np
import pytest

import hinge
from algorithms.test_constraints import PLANAR, REDUNDANT, four_bar, frames
from hinge import LoopConstraint, MechanismBuilder, Revolute, Spherical, Transform
from hinge.algebra.rotation import from_rpy, quaternion_from_matrix
from hinge.model.parameters import parameters
from mechanisms import EPS, ROBOTS, assert_close, random_state

BALL, WELD = (3, 4, 5), (0, 1, 2, 3, 4, 5)


def slopes(robot, q0, q):
    """∂(q ⊟ q₀) along each degree of freedom at q, by differences: (nv, nv)."""
    h, steps = 1e-5, np.eye(robot.nv)
    ends = [robot.difference(q0, robot.integrate(q, s * h * steps)) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


@pytest.mark.parametrize(
    ("name", "axes"), [("tree0", WELD), ("humanoid", BALL), ("quadruped", (3, 5))]
)
def test_the_nearest_configuration_is_found(name, axes):
    """What is left of the gradient of the distance is forces of the constraints."""
    robot = ROBOTS[name]
    loop = LoopConstraint(*frames(robot), axes)
    closed = robot.assemble(random_state(robot, 2).q, loop).q
    rng = np.random.default_rng(3)
    starts = robot.integrate(closed, 0.1 * rng.normal(size=(5, robot.nv)))
    found = robot.assemble(starts, [loop])
    assert found.closed.all() and found.gap.max() < 1e-13
    for q0, q, x in zip(starts, found.q, found.moved, strict=True):
        assert_close(robot.integrate(q0, x), q, 1e-13)
        K = robot.alg.constraint_jacobian(q, [loop])
        downhill = slopes(robot, q0, q) @ robot.mass_matrix(q0) @ x
        held = K.T @ np.linalg.lstsq(K.T, downhill, rcond=1e-10)[0]
        assert np.abs(downhill - held).max() < 1e-6 * np.abs(downhill).max()


@pytest.mark.parametrize("metric", ["mass", "plain", (1.0, 5.0, 0.1)])
def test_parallelogram_by_search(metric):
    """All closed configurations near the start are one curve: the nearest point on it."""
    robot, q0 = four_bar(), np.array([0.4, 0.1, 0.0])
    found = robot.assemble(q0, [PLANAR], metric=metric)
    W = robot.mass_matrix(q0) if metric == "mass" else np.eye(3)
    W = np.diag(metric) if isinstance(metric, tuple) else W
    angles = np.linspace(-1, 1, 20001)
    x = np.stack([angles, -angles, angles], axis=-1) - q0
    best = angles[np.argmin(np.einsum("ni,ij,nj->n", x, W, x))]
    assert found.q == pytest.approx([best, -best, best], abs=1e-4)
    again = robot.assemble(q0, [REDUNDANT], metric=metric)
    assert_close(again.q, found.q, 1e-7)


def test_velocities_take_an_impulse_of_the_constraints():
    robot, s = ROBOTS["tree0"], random_state(ROBOTS["tree0"], 5)
    loop = LoopConstraint(*frames(robot), BALL)
    found = robot.assemble(s.q, loop, s.qd)
    K, M = robot.alg.constraint_jacobian(found.q, [loop]), robot.mass_matrix(found.q)
    assert_close(K @ found.qd, np.zeros(3), 1e-12)
    jump = M @ (found.qd - s.qd)
    assert_close(jump, K.T @ np.linalg.lstsq(K.T, jump, rcond=None)[0], 1e-11)
    assert robot.kinetic_energy(found.q, found.qd) < robot.kinetic_energy(found.q, s.qd)


def test_held_joints_stay_and_lead():
    robot = four_bar()
    found = robot.assemble([0.4, 0.1, 0.0], [PLANAR], [2.0, 0, 0], hold=["left_joint"])
    assert_close(found.q, [0.4, -0.4, 0.4], 1e-12)
    assert_close(found.qd, [2.0, -2.0, 2.0], 1e-12)
    mask = robot.assemble([0.4, 0.1, 0.0], [PLANAR], hold=[True, False, False])
    assert_close(mask.q, found.q, 1e-12)


def test_held_rates_that_no_motion_keeps():
    robot = four_bar()
    everything = robot.assemble([0.4, -0.4, 0.4], [PLANAR], [1.0, 1.0, 0], hold=robot.joint_names)
    assert everything.status == "stuck" and not everything.closed
    assert everything.qd.tolist() == [1.0, 1.0, 0]


def test_out_of_reach_is_open_by_what_is_missing():
    """Two rods of 1 m each, whose tip should be on a point 2.5 m away."""
    b = MechanismBuilder("rods")
    rod = hinge.Inertia(1.0, (0.5, 0, 0), np.eye(3) * 0.1)
    b.add("near", "world", Revolute((0, 1, 0)), inertia=rod)
    b.add(
        "far", "near", Revolute((0, 1, 0)), placement=Transform(translation=(1, 0, 0)), inertia=rod
    )
    b.add_frame("tip", "far", Transform(translation=(1, 0, 0)))
    b.add_frame("target", "world", Transform(translation=(2.5, 0, 0)))
    robot = hinge.Robot(b.build())
    found = robot.assemble([0.3, -0.2], LoopConstraint("tip", "target", (3, 5)))
    assert found.status == "open" and not found.closed
    assert found.gap == pytest.approx(0.5, abs=1e-6)
    assert str(found) == "open; 'tip' is off 'target' by 0.5 m along vx"
    few = robot.assemble([0.3, -2.2], LoopConstraint("tip", "target", (3, 5)), max_iterations=1)
    assert few.status == "unfinished"


def limited(lower):
    b = MechanismBuilder("two links")
    rod = hinge.Inertia(1.0, (0.5, 0, 0), np.eye(3) * 0.1)
    along = Transform(translation=(1, 0, 0))
    b.add("near", "world", Revolute((0, 1, 0)), "shoulder", inertia=rod)
    b.add("far", "near", Revolute((0, 1, 0), lower=lower), "elbow", placement=along, inertia=rod)
    b.add_frame("tip", "far", along)
    b.add_frame("target", "world", Transform(translation=(1.2, 0, -0.3)))
    return hinge.Robot(b.build()), LoopConstraint("tip", "target", (3, 5))


def test_limits_are_kept_if_asked():
    robot, loop = limited(lower=0.0)
    start = [0.0, -1.0]
    bent = robot.assemble(start, loop)
    assert bent.closed and bent.q[1] < 0
    within = robot.assemble(start, loop, limits=True)
    assert within.closed and within.q[1] > 0
    tight, loop = limited(lower=3.0)
    off = tight.assemble([0.0, 3.1], loop, limits=True)
    assert off.status == "open" and off.q[1] == 3.0


def test_half_turns_are_the_largest_gaps():
    """Where an error by sines sees none."""
    b = MechanismBuilder("ball")
    b.add("ball", "world", Spherical(), inertia=hinge.Inertia(1.0, (0, 0, 0.1), np.eye(3)))
    robot = hinge.Robot(b.build())
    for axes in (WELD, (0, 1, 2), (0, 1), (1, 2)):
        loop = LoopConstraint("ball", "world", axes)
        for turn in ((np.pi, 0, 0), (0, np.pi, 0), (0.0, 0, np.pi), (3.1, 0.2, 0.1)):
            q = quaternion_from_matrix(from_rpy(*turn))
            found = robot.assemble(q, loop)
            R = robot.frame_pose(found.q, "ball")[:3, :3]
            assert found.closed
            for axis in {(0, 1): [2], (1, 2): [0]}.get(axes, [0, 1, 2]):
                assert R[axis, axis] == pytest.approx(1.0, abs=1e-12)


def test_batches_and_samples_that_are_not_finite():
    robot = four_bar()
    q = np.random.default_rng(0).normal(size=(2, 3, 3))
    q[1, 2, 0] = np.nan
    found = robot.assemble(q, [PLANAR], qd=np.ones(3))
    assert found.status.shape == (2, 3) and found.q.shape == found.qd.shape == (2, 3, 3)
    assert found.status[1, 2] == "unfinished" and np.isnan(found.qd[1, 2]).all()
    assert found.closed.sum() == 5 and str(found).startswith("5 closed, 1 unfinished")
    assert_close(found.q[0, 1], robot.assemble(q[0, 1], [PLANAR]).q, 1e-7)
    assert robot.assemble(np.zeros((0, 3)), [PLANAR], qd=np.zeros((0, 3))).q.shape == (0, 3)
    one = robot.assemble(q[0, 0], [])
    assert one.closed and one.q.tolist() == q[0, 0].tolist()
    assert str(one) == "closed; no constraints"


def test_followers_single_precision_and_numbers_of_the_mechanism():
    robot = ROBOTS["gripper"]
    found = robot.assemble(random_state(robot, 0).q, LoopConstraint("pad", "left", (5,)))
    assert found.closed and found.gap < 1e-14
    single = hinge.Robot(four_bar().mechanism, dtype=np.float32)
    assert single.assemble([0.4, 0.1, 0.0], [PLANAR]).gap < 1e-6
    robot = four_bar()
    inertia = np.stack([parameters(robot.mechanism)["inertia"]] * 2)
    inertia[1, 0] *= 1e4
    found = robot.assemble([0.4, 0.1, 0.0], [PLANAR], inertia=inertia)
    assert_close(found.q[0], robot.assemble([0.4, 0.1, 0.0], [PLANAR]).q, 1e-7)
    assert found.q[1, 0] == pytest.approx(0.4, abs=1e-3)


def test_what_is_refused():
    robot = four_bar()
    with pytest.raises(hinge.ArgumentError, match="metric is 'heavy'"):
        robot.assemble(np.zeros(3), [PLANAR], metric="heavy")
    with pytest.raises(hinge.ArgumentError, match="nv = 3 weights above 0"):
        robot.assemble(np.zeros(3), [PLANAR], metric=(1, 0, 1))
    with pytest.raises(hinge.ArgumentError, match="expected one of 'gravity'"):
        robot.assemble(np.zeros(3), [PLANAR], mass=1.0)
    with pytest.raises(hinge.ArgumentError, match="is not a hinge.LoopConstraint"):
        robot.assemble(np.zeros(3), ["bar"])
    with pytest.raises(hinge.ArgumentError, match="no joint 'lift'"):
        robot.assemble(np.zeros(3), [PLANAR], hold=["lift"])


def test_a_joint_without_inertia_needs_another_metric():
    b = MechanismBuilder("massless")
    b.add("near", "world", Revolute((0, 1, 0)), inertia=hinge.Inertia(1.0, (0.5, 0, 0), np.eye(3)))
    b.add("far", "near", Revolute((0, 1, 0)), placement=Transform(translation=(1, 0, 0)))
    b.add_frame("tip", "far", Transform(translation=(1, 0, 0)))
    b.add_frame("target", "world", Transform(translation=(1.2, 0, -0.3)))
    robot, loop = hinge.Robot(b.build()), LoopConstraint("tip", "target", (3, 5))
    with pytest.raises(hinge.SingularError, match="'far_joint' moves no inertia.*metric='plain'"):
        robot.assemble([0.1, 0.5], loop)
    two = robot.assemble([[0.1, 0.5], [0.2, 0.5]], loop)
    assert two.status.tolist() == ["unfinished"] * 2
    assert robot.assemble([0.1, 0.5], loop, metric="plain").closed
    assert robot.assemble([0.1, 0.5], loop, qd=[1.0, 0.0], metric="plain").gap < 100 * EPS


@pytest.mark.parametrize("kind", ["point", "line", "flat"])
@pytest.mark.parametrize("reference", ["aligned", "body"])
def test_contacts_stay_where_they_are_or_go_to_their_anchors(kind, reference):
    robot, s = ROBOTS["humanoid"], random_state(ROBOTS["humanoid"], 1)
    if (kind, reference) == ("line", "aligned"):
        return
    foot = hinge.Contact("left_sole", kind, reference=reference)
    hands = LoopConstraint("left_hand", "right_hand", BALL)
    found = robot.assemble(s.q, [hands, foot])
    before, after = (robot.frame_pose(q, "left_sole") for q in (s.q, found.q))
    assert found.closed and np.abs(found.moved).max() > 0.1
    assert_close(after[:3, 3], before[:3, 3], 1e-9)
    if kind == "flat":
        assert_close(after, before, 1e-9)
    lifted = before.copy()
    lifted[:3, 3] += 0.05, -0.1, 0.2
    lifted[:3, :3] = from_rpy(0.2, 0.1, -0.3) @ lifted[:3, :3]
    anchored = hinge.Contact("left_sole", kind, anchor=lifted, reference=reference)
    after = robot.frame_pose(robot.assemble(s.q, [anchored, hands]).q, "left_sole")
    assert_close(after[:3, 3], lifted[:3, 3], 1e-9)
    if kind != "point":
        assert_close(after[:3, 1], lifted[:3, 1], 1e-9)


def test_long_batches_go_part_by_part(monkeypatch):
    robot = four_bar()
    q = np.random.default_rng(1).normal(size=(7, 3))
    whole = robot.assemble(q, [PLANAR], qd=q)
    monkeypatch.setattr("hinge.robot.assembly._TOGETHER", 2)
    parts = robot.assemble(q, [PLANAR], qd=q)
    assert parts.status.tolist() == whole.status.tolist() == ["closed"] * 7
    assert_close(parts.q, whole.q, 1e-7)
    assert_close(parts.qd, whole.qd, 1e-6)

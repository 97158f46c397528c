"""Inverse kinematics reaches what can be reached, keeps limits, and says so when it cannot."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Task, Transform, zoo
from hinge.algorithms.configuration import limits
from hinge.algorithms.inverse_kinematics import inverse_kinematics
from mechanisms import BODY, EPS, JOINTS, assert_close, everything, gripper

ARM = zoo.arm(7)
STOP = 1e-9  # of the error of a task at which it is reached, unless told otherwise


def at(x, y, z):
    X = np.eye(4)
    X[:3, 3] = (x, y, z)
    return X


def configurations(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([robot.random_configuration(rng) for _ in range(count)])


def assert_kept(robot, q):
    bounds = limits(robot.mechanism)
    at = q[..., bounds.place[bounds.bounded]]
    assert (at >= bounds.lower[bounds.bounded]).all()
    assert (at <= bounds.upper[bounds.bounded]).all()


def turned(R):
    """The angle of rotations."""
    return np.arccos(np.clip((np.trace(R, axis1=-2, axis2=-1) - 1) / 2, -1, 1))


# what is reached


def test_poses_of_the_arm_are_reached():
    targets = ARM.frame_pose(configurations(ARM, 200), "tool")
    answer = ARM.inverse_kinematics("tool", targets)
    assert answer.reached.all() and str(answer) == "200 reached"
    assert_close(ARM.frame_pose(answer.q, "tool"), targets, 2 * STOP)
    assert_kept(ARM, answer.q)
    assert np.linalg.norm(answer.error, axis=-1).max() <= STOP
    assert answer.q.shape == (200, 7) and answer.error.shape == (200, 6)


def test_a_sample_is_answered_alike_alone_and_in_any_batch():
    targets = ARM.frame_pose(configurations(ARM, 40), "tool")
    many = ARM.inverse_kinematics("tool", targets.reshape(5, 8, 4, 4))
    assert many.q.shape == (5, 8, 7) and many.status.shape == many.starts.shape == (5, 8)
    for i in (3, 17):
        one = ARM.inverse_kinematics("tool", targets[i])
        assert one.status == "reached" and one.starts == many.starts.flat[i]
        assert_close(one.q, many.q.reshape(-1, 7)[i], 1e-6)


def test_the_seed_decides():
    target = ARM.frame_pose(ARM.random_configuration(5), "tool")
    q = [ARM.inverse_kinematics("tool", target, seed=seed).q for seed in (0, 0, 1)]
    assert np.array_equal(q[0], q[1]) and not np.allclose(q[0], q[2], atol=1e-3)


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_takes_part(kind):
    b = hinge.MechanismBuilder(kind)
    turn = Transform(translation=(0.2, -0.1, 0.3))
    b.add("base", "world", hinge.Revolute((0, 0, 1)), placement=turn, inertia=BODY)
    b.add("middle", "base", JOINTS[kind], placement=turn, inertia=BODY, offset=turn)
    b.add("tip", "middle", hinge.Revolute((0, 1, 0)), placement=turn, inertia=BODY)
    robot = hinge.Robot(b.build())
    targets = robot.frame_pose(configurations(robot, 12), "tip")
    answer = robot.inverse_kinematics("tip", targets)
    assert answer.reached.all()
    assert_close(robot.frame_pose(answer.q, "tip"), targets, 2 * STOP)


def test_mimic_joints_move_together_and_keep_the_limits_of_followers():
    robot = gripper()
    target = robot.frame_pose(np.array([0.3, 0.2, 0.4]), "pad")
    answer = robot.inverse_kinematics("pad", target)
    assert answer.reached
    assert_close(robot.frame_pose(answer.q, "pad"), target, 2 * STOP)
    b = hinge.MechanismBuilder("pair")
    b.add("a", "world", hinge.Prismatic((1, 0, 0), lower=-1, upper=1), "lead")
    follower = hinge.Prismatic((1, 0, 0), lower=0, upper=0.4, mimic=hinge.Mimic("lead", -0.5, 0.1))
    b.add("b", "world", follower)
    pair = hinge.Robot(b.build())
    bounds = limits(pair.mechanism)
    assert_close(np.array([bounds.lower[0], bounds.upper[0]]), np.array([-0.6, 0.2]), 4 * EPS)
    stopped = pair.inverse_kinematics("a", (0.5, 0, 0))
    assert_close(stopped.q, np.array([0.2]), 4 * EPS)
    assert stopped.status == "unreachable" and stopped.limits.tolist() == [1]


def test_a_half_turn_is_the_largest_error_not_none():
    robot = hinge.Robot(hinge.MechanismBuilder("ball").add("b", "world", hinge.Spherical()).build())
    target = np.diag([1.0, -1.0, -1.0, 1.0])
    answer = robot.inverse_kinematics("b", target, robot.neutral(), starts=1)
    assert answer.reached and answer.iterations > 1
    assert_close(robot.frame_pose(answer.q, "b"), target, 2 * STOP)
    far = robot.inverse_kinematics("b", target, robot.neutral(), starts=1, iterations=1)
    assert_close(np.linalg.norm(far.error), np.pi, 1e-12)


def test_tasks_of_a_frame():
    target = ARM.frame_pose(ARM.random_configuration(3), "tool")
    place = ARM.inverse_kinematics("tool", target, task="position")
    assert place.reached and place.error.shape == (3,)
    assert_close(ARM.frame_pose(place.q, "tool")[:3, 3], target[:3, 3], 2 * STOP)
    assert np.array_equal(ARM.inverse_kinematics("tool", target[:3, 3]).q, place.q)
    way = ARM.inverse_kinematics("tool", target[:3, :3], task="orientation")
    assert way.reached
    assert_close(ARM.frame_pose(way.q, "tool")[:3, :3], target[:3, :3], 2 * STOP)
    again = ARM.inverse_kinematics("tool", Transform(target[:3, :3]), task="orientation")
    assert np.array_equal(again.q, way.q)


def test_an_axis_points_along_a_vector():
    vectors = np.random.default_rng(0).normal(size=(20, 3))
    answer = ARM.inverse_kinematics(Task("tool", "direction", axis=(1, 0, 1)), vectors)
    assert answer.reached.all()
    points = ARM.frame_pose(answer.q, "tool")[:, :3, :3] @ np.array([1, 0, 1]) / np.sqrt(2)
    assert_close(points, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 2 * STOP)
    along_z = ARM.inverse_kinematics("tool", vectors[0], task="direction")
    z = ARM.frame_pose(along_z.q, "tool")[:3, 2]
    assert_close(z, vectors[0] / np.linalg.norm(vectors[0]), 2 * STOP)


def test_the_centre_of_mass_above_two_feet():
    robot = zoo.humanoid()
    feet = [n for n in robot.frame_names if n.endswith("foot")][:2]
    q = robot.neutral()
    poses = [robot.frame_pose(q, foot) for foot in feet]
    com = robot.center_of_mass(q) + (0.02, 0.01, -0.05)
    tasks = [*feet, Task(kind="center_of_mass")]
    answer = robot.inverse_kinematics(tasks, [*poses, com], q)
    assert answer.reached and answer.starts == 1 and answer.error.shape == (15,)
    assert_close(robot.center_of_mass(answer.q), com, 2 * STOP)
    for foot, X in zip(feet, poses, strict=True):
        assert_close(robot.frame_pose(answer.q, foot), X, 2 * STOP)


def test_the_jacobian_of_the_centre_of_mass_is_its_derivative():
    for robot in (everything(), gripper()):
        q, h = robot.random_configuration(1), 1e-30
        ahead = [robot.alg.integrate(q, h * 1j * e) for e in np.eye(robot.nv)]
        expected = np.array([robot.alg.center_of_mass(x).imag / h for x in ahead]).T
        assert_close(robot.center_of_mass_jacobian(q), expected, 100 * EPS)


def test_weights_share_out_what_cannot_be_had_and_priorities_do_not():
    """Two points wanted of a slide: the weighted mean; or the first."""
    b = hinge.MechanismBuilder("slide")
    b.add("a", "world", hinge.Prismatic((1, 0, 0)))
    robot = hinge.Robot(b.build())
    targets = [(0.0, 0, 0), (1.0, 0, 0)]
    one, three = Task("a", "position"), Task("a", "position", weight=3.0)
    shared = robot.inverse_kinematics([one, three], targets, starts=2)
    assert_close(shared.q, np.array([0.75]), 1e-3)
    second = Task("a", "position", weight=3.0, priority=1)
    ruled = robot.inverse_kinematics([second, one], targets[::-1], starts=2)
    assert_close(ruled.q, np.array([0.0]), 1e-6)
    assert shared.status == ruled.status == "not found"


def test_a_posture_is_preferred_where_tasks_leave_a_choice():
    target = ARM.frame_pose(ARM.random_configuration(3), "tool")
    q0 = ARM.inverse_kinematics("tool", target).q
    posture = q0 + 0.4 * np.sin(np.arange(7))
    answer = ARM.inverse_kinematics("tool", target, q0, posture=posture)
    assert answer.reached
    assert_close(ARM.frame_pose(answer.q, "tool"), target, 2 * STOP)
    # nearer, and at rest: what is left of the wish would move the tool, or pass a limit
    assert np.linalg.norm(answer.q - posture) < 0.95 * np.linalg.norm(q0 - posture)
    J = ARM.jacobian(answer.q, "tool", "body")
    wish = posture - answer.q
    free = wish - np.linalg.pinv(J) @ (J @ wish)
    assert np.linalg.norm(free[answer.limits == 0]) < 2e-3 or (answer.limits != 0).any()


def test_joints_can_be_held():
    robot = zoo.quadruped()
    q0 = robot.neutral()
    q0[robot.q_slice("FL_knee")] = -1.0
    goal = robot.frame_pose(q0, "FL_foot")[:3, 3] + (0.02, 0.01, 0.03)
    base = robot.joint_names[0]
    answer = robot.inverse_kinematics("FL_foot", goal, q0, hold=[base])
    assert answer.reached
    assert np.array_equal(answer.q[:7], q0[:7])
    elsewhere = robot.inverse_kinematics("FL_foot", goal, hold=base)
    assert np.array_equal(elsewhere.q[:7], robot.neutral()[:7])


def test_it_stays_near_the_start():
    q0 = 0.9 * configurations(ARM, 30, seed=1)
    targets = ARM.frame_pose(ARM.integrate(q0, 0.05 * np.ones(7)), "tool")
    answer = ARM.inverse_kinematics("tool", targets, q0)
    assert answer.reached.all() and (answer.starts == 1).all()
    assert np.abs(answer.q - q0).max() < 0.3


def test_other_numbers():
    robot = hinge.Robot(ARM.mechanism, dtype=np.float32)
    targets = ARM.frame_pose(configurations(ARM, 50), "tool")
    answer = robot.inverse_kinematics("tool", targets)
    assert answer.q.dtype == np.float32 and answer.reached.all()
    assert_close(ARM.frame_pose(answer.q.astype(float), "tool"), targets, 3e-4)


def test_the_plain_algorithm_takes_the_same_steps():
    q0 = ARM.random_configuration(1)
    target = ARM.frame_pose(ARM.random_configuration(2), "tool")
    for tasks, targets in (
        ((Task("tool"),), [target]),
        ((Task("tool", "position"),), [target[:3, 3]]),
    ):
        plain = inverse_kinematics(ARM.mechanism, q0, tasks, targets)
        kernel = ARM.inverse_kinematics(tasks, targets, q0, starts=1)
        assert kernel.reached == bool(plain.found) and kernel.iterations == plain.iterations
        assert_close(kernel.q, plain.best, 1e-6)


# what is not


def test_out_of_reach_is_unreachable_and_as_near_as_can_be():
    reach = sum(0.3 * 0.9**i for i in range(1, 7))
    goal = at(5.0, 0.0, 0.3)
    answer = ARM.inverse_kinematics("tool", goal, task="position")
    assert answer.status == "unreachable"
    assert abs(np.linalg.norm(answer.error) - (5.0 - reach)) < 1e-3
    assert_kept(ARM, answer.q)


def test_what_is_called_unreachable_is():
    """No configuration comes near, nor does it say so of what a configuration has."""
    targets = ARM.frame_pose(configurations(ARM, 300), "tool")
    points = targets[:, :3, 3] * np.linspace(0.0, 3.0, 300)[:, None]
    answer = ARM.inverse_kinematics("tool", points, starts=3)
    reached = ARM.frame_pose(configurations(ARM, 4_000, seed=1), "tool")[:, :3, 3]
    lost = answer.status == "unreachable"
    assert lost.any() and answer.reached.any()
    for point in points[lost]:
        assert np.linalg.norm(reached - point, axis=1).min() > 1e-3
    # too near is also out of reach, for two links of different lengths
    b = hinge.MechanismBuilder("two")
    b.add("a", "world", hinge.Revolute((0, 0, 1)))
    b.add("b", "a", hinge.Revolute((0, 0, 1)), placement=Transform(translation=(1.0, 0, 0)))
    b.add_frame("tip", "b", Transform(translation=(0.3, 0, 0)))
    two = hinge.Robot(b.build())
    status = two.inverse_kinematics("tip", [(0.69, 0, 0), (0.71, 0, 0), (1.31, 0, 0)]).status
    assert status.tolist() == ["unreachable", "reached", "unreachable"]
    # the wrist of a pose that points outward is beyond the first link
    R = np.diag([-1.0, -1.0, 1.0])
    pose = Transform(R, (1.0, 0, 0))
    assert two.inverse_kinematics("tip", pose, starts=3).status == "unreachable"


def test_limits_can_make_a_target_unreachable():
    b = hinge.MechanismBuilder("short")
    b.add("a", "world", hinge.Prismatic((1, 0, 0), lower=0.0, upper=1.0))
    robot = hinge.Robot(b.build())
    assert robot.inverse_kinematics("a", at(0.7, 0, 0)).reached
    answer = robot.inverse_kinematics("a", at(1.5, 0, 0))
    assert answer.status == "unreachable" and answer.limits.tolist() == [1]
    assert_close(answer.q, np.array([1.0]), 4 * EPS)
    assert "a_joint at its upper limit" in str(answer)
    assert "not found" in str(robot.inverse_kinematics("a", at(0.5, 0.1, 0)))


def test_a_stall_is_cured_by_another_start():
    """A stretched arm and a target on its line: no joint can start towards it."""
    robot = zoo.pendulum(2)
    goal = at(0.0, 0.0, -1.0)
    stuck = robot.inverse_kinematics("tip", goal, robot.neutral(), task="position", starts=1)
    assert stuck.status == "not found" and stuck.starts == 1
    assert robot.inverse_kinematics("tip", goal, robot.neutral(), task="position").reached
    beyond = robot.inverse_kinematics("tip", at(0.0, 0.0, -3.0), task="position")
    assert beyond.status == "unreachable"


def test_running_out_is_not_called_anything_better():
    target = ARM.frame_pose(ARM.random_configuration(2), "tool")
    answer = ARM.inverse_kinematics("tool", target, iterations=1, starts=1)
    assert answer.status == "not found" and not answer.reached and answer.iterations == 2


def test_a_sample_that_is_not_finite_leaves_the_others_alone():
    targets = ARM.frame_pose(configurations(ARM, 20), "tool")
    targets[4, 0, 3] = np.nan
    answer = ARM.inverse_kinematics("tool", targets)
    assert answer.reached.sum() == 19 and answer.status[4] == "not found"
    assert np.isnan(answer.q[4]).all() and np.isnan(answer.error[4]).all()
    none = ARM.inverse_kinematics("tool", np.zeros((0, 3)))
    assert none.q.shape == (0, 7) and none.status.shape == (0,)


def test_a_robot_that_cannot_move():
    robot = hinge.Robot(hinge.MechanismBuilder("post").add("post", "world").build())
    assert robot.inverse_kinematics("post", np.eye(4)).reached
    assert robot.inverse_kinematics("post", (1.0, 0, 0)).status == "unreachable"


BAD = {
    "shape": (
        dict(target=np.ones((5, 2))),
        r"target has shape \(5, 2\); expected shape \(…, 4, 4\): a pose",
    ),
    "text": (dict(target="here"), "target is 'here'; expected a pose"),
    "masked": (dict(target=np.ma.array(np.eye(4), mask=np.eye(4))), "target has masked entries"),
    "not a pose": (dict(target=2 * np.eye(4)), "target is not a pose"),
    "one of many": (dict(target=[np.eye(4), 2 * np.eye(4)]), r"target\[1\] is not a pose"),
    "mirrored": (dict(target=-np.eye(3), task="orientation"), "target is not a rotation"),
    "nan": (dict(target=np.full((4, 4), np.nan)), "target is not a pose"),
    "no direction": (dict(target=(0, 0, 0), task="direction"), r"a direction \(0, 0, 0\)"),
    "task": (dict(task="reach"), "task is 'reach'; expected one of 'pose', 'position'"),
    "tolerance": (dict(tolerance=0.0), "tolerance is 0.0; expected a finite number above 0"),
    "iterations": (dict(iterations=0), "iterations is 0"),
    "half an iteration": (dict(iterations=0.5), "iterations is 0.5; expected a whole"),
    "starts": (dict(starts=0), "starts is 0"),
    "starts text": (dict(starts="many"), "starts is 'many'"),
    "seed": (dict(seed=-1), "seed is -1"),
    "start": (dict(q0=np.zeros(3)), r"q0 has shape \(3,\)"),
    "start nan": (dict(q0=np.full(7, np.nan)), r"q0\[0\] is nan"),
    "posture": (dict(posture=np.zeros(3)), r"posture has shape \(3,\)"),
    "leads": (dict(target=np.zeros((4, 3)), q0=np.zeros((3, 7))), "leading shapes do not"),
    "frame": (dict(frame="hand"), "no frame 'hand'"),
    "no frame": (dict(frame=7), "frame is 7"),
    "targets": (dict(frame=["tool", "tool"], target=[np.eye(4)]), "2 frames and 1 targets"),
    "hold": (dict(hold=["elbow"]), "no joint 'elbow'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    change, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        ARM.inverse_kinematics(**{"frame": "tool", "target": np.eye(4), **change})


BAD_TASKS = {
    "kind": (("tool", "reach"), {}, "expected one of 'pose'"),
    "no frame": ((), {}, "the centre of mass has no frame"),
    "weight": (("tool",), dict(weight=0), "weight is 0"),
    "priority": (("tool",), dict(priority=-1), "priority is -1"),
    "axis": (("tool", "direction"), dict(axis=(0, 0, 0)), "axis is"),
    "axis text": (("tool", "direction"), dict(axis="up"), "axis is 'up'"),
}


@pytest.mark.parametrize("case", BAD_TASKS)
def test_bad_tasks_are_refused(case):
    given, more, message = BAD_TASKS[case]
    with pytest.raises(ArgumentError, match=message):
        Task(*given, **more)


# along paths


def circle(robot, steps, lead=()):
    """Poses around that of a middling configuration."""
    middle = robot.frame_pose(0.4 * np.ones(robot.nq), "tool")
    angle = np.linspace(0, 2 * np.pi, steps).reshape(-1, *[1] * len(lead))
    X = np.broadcast_to(middle, (steps, *lead, 4, 4)).copy()
    X[..., 0, 3] += 0.1 * np.sin(angle)
    X[..., 2, 3] += 0.1 * (np.cos(angle) - 1)
    return X


def test_a_path_is_followed_without_jumps():
    path, q0 = circle(ARM, 200), 0.4 * np.ones(7)
    answer = ARM.follow("tool", path, q0)
    assert answer.reached.all() and answer.q.shape == (200, 7)
    assert_close(ARM.frame_pose(answer.q, "tool"), path, 2 * STOP)
    assert np.abs(np.diff(answer.q, axis=0)).max() < 0.1
    many = ARM.follow("tool", circle(ARM, 50, (3,)), q0 + 0.01 * np.arange(3)[:, None])
    assert many.q.shape == (50, 3, 7) and many.reached.all()
    found = ARM.follow("tool", path)
    assert found.reached.all() and np.abs(np.diff(found.q, axis=0)).max() < 0.1


def test_where_a_path_cannot_be_followed_it_says_so():
    path = circle(ARM, 60)
    path[20:30, 0, 3] += 5.0
    answer = ARM.follow("tool", path, 0.4 * np.ones(7))
    assert (answer.status[20:30] == "unreachable").all() and answer.reached[:20].all()
    assert_kept(ARM, answer.q)


def test_paths_of_several_tasks_and_a_posture():
    path, q0 = circle(ARM, 40), 0.4 * np.ones(7)
    tasks = [Task("tool", "position"), Task("tool", "direction")]
    answer = ARM.follow(tasks, [path, path[..., :3, 2]], q0, posture=q0, tolerance=1e-4)
    assert answer.reached.all()
    assert_close(ARM.frame_pose(answer.q, "tool")[:, :3, 2], path[:, :3, 2], 2e-4)
    with pytest.raises(ArgumentError, match="targets have 40, 39 steps"):
        ARM.follow(tasks, [path, path[1:, :3, 2]], q0)


# differential


def boxed(J, v, low, high, mu):
    """The bounded least squares of an independent solver."""
    from scipy.optimize import lsq_linear

    A = np.vstack([J, mu * np.eye(J.shape[1])])
    return lsq_linear(A, np.concatenate([v, np.zeros(J.shape[1])]), (low, high), method="bvls").x


def fast_arm():
    b = hinge.MechanismBuilder("fast")
    parent = "world"
    for i, axis in enumerate(np.eye(3)[[2, 1, 0, 1, 2, 1, 0]]):
        joint = hinge.Revolute(axis, lower=-1.5, upper=1.2, velocity_limit=0.5 + 0.1 * i)
        place = Transform(translation=(0.1, 0.05 * i, 0.3))
        b.add(f"l{i}", parent, joint, placement=place, inertia=BODY)
        parent = f"l{i}"
    return hinge.Robot(b.build())


FAST = fast_arm()


def test_rates_within_limits_are_those_of_bounded_least_squares():
    robot, rng, dt = FAST, np.random.default_rng(0), 0.02
    q = configurations(robot, 60)
    q[:20, 2] = 1.2
    velocity = rng.normal(size=(60, 6)) * rng.choice([0.1, 1.0], size=(60, 1))
    rates = robot.differential_inverse_kinematics(q, velocity, "l6", dt=dt, damping=0.01)
    fast = np.array([0.5 + 0.1 * i for i in range(7)])
    low, high = np.maximum((-1.5 - q) / dt, -fast), np.minimum((1.2 - q) / dt, fast)
    assert (rates >= low - 1e-12).all() and (rates <= high + 1e-12).all()
    J = robot.jacobian(q, "l6")
    best = np.array([boxed(*x, 0.01) for x in zip(J, velocity, low, high, strict=True)])

    def cost(x):
        return np.square(np.einsum("nij,nj->ni", J, x) - velocity).sum(1) + 1e-4 * (x * x).sum(1)

    assert (cost(rates) <= 1.02 * cost(best) + 1e-9).all()
    assert np.mean(np.abs(rates - best).max(axis=1) < 1e-6) > 0.9
    assert ((rates <= low) | (rates >= high)).any(axis=1).mean() > 0.3


def test_other_rates_are_kept_where_they_do_not_disturb():
    robot = FAST
    q, velocity = np.array([0.3, -0.8, 0.5, -1.0, 0.4, 0.7, -0.2]), 0.05 * np.ones(6)
    wish = 0.1 * np.sin(np.arange(7.0))
    plain, more = (
        robot.differential_inverse_kinematics(q, velocity, "l6", qd, reference="body")
        for qd in (0 * wish, wish)
    )
    J = robot.jacobian(q, "l6", "body")
    for rates in (plain, more):
        assert_close(J @ rates, velocity, 1e-5)
    free = np.eye(7) - np.linalg.pinv(J) @ J
    assert_close(more - plain, free @ wish, 1e-5)


@pytest.mark.parametrize("name", ["dt", "damping"])
def test_rates_need_a_time_and_some_damping(name):
    for wrong in (0.0, -1.0, np.nan, "long"):
        with pytest.raises(ArgumentError, match=f"{name} is .*; expected a finite number above 0"):
            FAST.differential_inverse_kinematics(np.zeros(7), np.zeros(6), "l6", **{name: wrong})
    with pytest.raises(ArgumentError, match=r"velocity has shape \(3,\)"):
        FAST.differential_inverse_kinematics(np.zeros(7), np.zeros(3), "l6")


def test_a_control_loop_never_passes_a_limit():
    robot, dt, down = FAST, 0.02, [0, 0, 0, 0, 0, -1.0]
    q = np.zeros(7)
    for _ in range(150):
        rates = robot.differential_inverse_kinematics(q, down, "l6", dt=dt, damping=0.01)
        q = robot.integrate(q, dt * rates)
        assert_kept(robot, q - 2 * EPS * np.sign(q))
    assert q[2] == pytest.approx(-1.5, abs=1e-12)


def following(low, high, ratio=1.0, chained=False):
    """A finger that another one mimics, whose limits are these; perhaps by way of a third."""
    b = hinge.MechanismBuilder("following")
    body = hinge.Inertia(1.0, (0, 0, 0.1), 0.01 * np.eye(3))
    b.add("lead", "world", hinge.Revolute((0, 1, 0), lower=-1.0, upper=1.0), inertia=body)
    if chained:
        third = hinge.Revolute((0, 1, 0), mimic=hinge.Mimic("lead_joint", 2.0))
        b.add("third", "world", third, inertia=body)
    mimic = hinge.Mimic("third_joint" if chained else "lead_joint", ratio)
    follower = hinge.Revolute((0, 1, 0), lower=low, upper=high, mimic=mimic)
    b.add("follow", "lead", follower, inertia=body)
    b.add_frame("tip", "follow", hinge.Transform(translation=(0, 0, 0.3)))
    return hinge.Robot(b.build())


@pytest.mark.parametrize("chained", [False, True])
def test_limits_of_followers_are_limits_of_their_leader(chained):
    robot = following(-0.5, 0.2, ratio=0.5, chained=chained)
    times = 1.0 if chained else 0.5
    q = robot.random_configuration(0, 1000)
    assert (times * q >= -0.5).all() and (times * q <= 0.2).all()
    assert q.max() - q.min() > 0.6
    found = robot.inverse_kinematics("tip", robot.frame_pose(q, "tip"))
    assert (found.status == "reached").all()
    assert (times * found.q >= -0.5 - 1e-12).all() and (times * found.q <= 0.2 + 1e-12).all()
    beyond = robot.frame_pose(np.array([0.3 / times]), "tip")
    assert robot.inverse_kinematics("tip", beyond).status != "reached"


def test_limits_that_exclude_each_other_are_refused():
    robot = following(2.8, 3.0)
    for call in (
        lambda: robot.inverse_kinematics("tip", np.eye(4)),
        lambda: robot.follow("tip", np.array([np.eye(4)] * 2)),
        lambda: robot.differential_inverse_kinematics(np.zeros(1), np.ones(6), "tip"),
        lambda: hinge.control.quintic(robot, np.zeros(1), np.ones(1), 1.0),
        lambda: robot.alg.inverse_kinematics(np.zeros(1), (hinge.Task("tip"),), [np.eye(4)]),
    ):
        with pytest.raises(hinge.ModelError, match="'lead_joint' would have to be from 2.8 to 3"):
            call()
    # the leader's own are what is drawn from
    assert np.abs(robot.random_configuration(0, 100)).max() <= 1.0
    # where they touch there is one configuration, roundings apart
    touching = following(0.3, 0.5, ratio=0.3)
    assert touching.random_configuration(0) == pytest.approx(1.0)
    found = touching.inverse_kinematics("tip", touching.frame_pose([1.0], "tip"))
    assert found.status == "reached"

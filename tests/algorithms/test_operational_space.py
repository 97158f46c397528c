"""Operational-space inertia where there is none: one sample raises, in a batch it is NaN."""

import numpy as np
import pytest

import hinge
from hinge import Robot, SingularError, zoo
from hinge.algebra.rotation import from_rpy
from mechanisms import EPS, ROBOTS, random_state

QUADRUPED = ROBOTS["quadruped"]


def chain(joints, size=1.0, far=0.0, axis=None, seed=0):
    """Hinges about random axes or all about one; links of a size, the first one far away."""
    rng = np.random.default_rng(seed)
    b, parent = hinge.MechanismBuilder(f"chain{joints}"), "world"
    for i in range(joints):
        turn = from_rpy(*rng.normal(size=3)) if axis is None or i == 0 else np.eye(3)
        shift = (size + far * (i == 0)) * rng.normal(size=3)
        about = rng.normal(size=3) if axis is None else axis
        body = hinge.Inertia(1.0, 0.1 * size * rng.normal(size=3), size**2 * np.diag([1, 1.2, 0.9]))
        placement = hinge.Transform(turn, shift)
        b.add(f"link{i}", parent, hinge.Revolute(about), None, placement, body)
        parent = f"link{i}"
    b.add_frame("hook", parent, hinge.Transform(translation=(0.1 * size, 0.2 * size, 0)))
    return Robot(b.build())


# robot, frames, reference, rank of J M⁻¹ Jᵀ
STUCK = {
    "five joints": (chain(5), "hook", "aligned", 5),
    "millimetres, a kilometre away": (chain(4, 1e-3, 1e3), "hook", "world", 4),
    "hectometres": (chain(3, 1e2), "hook", "body", 3),
    "six joints in a plane": (chain(6, axis=(1, 2, 3)), "hook", "aligned", 3),
    "followers": (ROBOTS["gripper"], "pad", "aligned", 3),
    "rows exactly zero": (ROBOTS["pendulum"], "tip", "aligned", 2),
    "two frames on a body": (ROBOTS["arm"], ("tool", "link7"), "body", 6),
    "a foot and its trunk": (QUADRUPED, ("FL_foot", "trunk"), "aligned", 9),
}


@pytest.mark.parametrize("name", STUCK)
def test_frames_that_cannot_move_everywhere_have_no_inertia(name):
    robot, frames, reference, rank = STUCK[name]
    q = np.stack([random_state(robot, seed).q for seed in range(64)])
    assert np.isnan(robot.operational_space_inertia(q, frames, reference)).all()
    rows = 6 if isinstance(frames, str) else 12
    told = f"{rows} × {rows} and has rank {rank}, the robot nv = {robot.nv}; use operational_sp"
    with pytest.raises(SingularError, match=told):
        robot.operational_space_inertia(q[0], frames, reference)


def test_the_message_names_the_frames():
    with pytest.raises(SingularError, match="of 'chain5': frame 'hook' cannot move in every dir"):
        chain(5).operational_space_inertia(np.ones(5), "hook")
    with pytest.raises(SingularError, match="frames 'tool', 'link7' cannot move"):
        ROBOTS["arm"].operational_space_inertia(np.ones(7), ["tool", "link7"])
    with pytest.raises(hinge.ArgumentError, match=r"frames is \[\]; expected names"):
        ROBOTS["arm"].operational_space_inertia(np.ones(7), [])
    with pytest.raises(hinge.ArgumentError, match="frames is 3; expected names"):
        ROBOTS["arm"].operational_space_inertia_inverse(np.ones(7), 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_only_the_singular_sample_of_a_batch_is_nan(dtype):
    robot = Robot(zoo.arm(6).mechanism, dtype=dtype)
    q = np.random.default_rng(0).uniform(0.5, 1.0, size=(2, 3, 6))
    q[1, 1] = 0.0  # stretched
    q[0, 2, 3] = np.nan
    Lambda = robot.operational_space_inertia(q, "tool")
    assert (np.isnan(Lambda).all(axis=(2, 3)) == [[False, False, True], [False, True, False]]).all()
    assert robot.operational_space_inertia(q[:0], "tool").shape == (0, 3, 6, 6)
    with pytest.raises(SingularError, match="has rank 3, the robot nv = 6"):
        robot.operational_space_inertia(np.zeros(6), "tool")


@pytest.mark.parametrize("bend", [1e-1, 1e-2, 1e-3, 1e-4])
def test_inertia_is_given_until_its_last_digit_is_lost(bend):
    robot = zoo.arm(6)
    q = np.array([0.3, 0.4, 0.9, bend, 1.0, 0.2])  # sin²θ falls with bend⁴
    inverse = robot.operational_space_inertia_inverse(q, "tool")
    scale = 1 / np.sqrt(np.diag(inverse))
    least = np.linalg.eigvalsh(scale[:, None] * inverse * scale)[0]
    if bend == 1e-4:
        assert least < 96 * EPS
        with pytest.raises(SingularError, match="has rank 5, the robot nv = 6"):
            robot.operational_space_inertia(q, "tool")
    else:
        Lambda = robot.operational_space_inertia(q, "tool")
        assert np.abs(Lambda @ inverse - np.eye(6)).max() < 1e2 * EPS / least


def test_a_joint_without_inertia_keeps_its_own_message():
    b = hinge.MechanismBuilder("whip")
    b.add("a", "world", hinge.Free(), inertia=hinge.Inertia(1.0, (1, 0, 0), np.eye(3)))
    b.add("b", "a", hinge.Revolute(), placement=hinge.Transform(translation=(1, 0, 0)))
    robot = Robot(b.build())
    with pytest.raises(SingularError, match="joint 'b_joint' moves no inertia here"):
        robot.operational_space_inertia(robot.neutral(), "b")

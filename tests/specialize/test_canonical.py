"""The canonical mechanism moves as the original does: joint forces, accelerations, mass matrix."""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge import MechanismBuilder, Revolute, Robot, Transform, algorithms, zoo
from hinge.algebra.rotation import from_rpy, is_rotation
from hinge.graph.program import trace
from hinge.specialize.canonical import Reframed, TurnedRevolute, canonical
from mechanisms import BODY, EPS, JOINTS, ROBOTS, assert_close, random_state

SKEW = Transform(from_rpy(0.3, -0.4, 1.0), (0.1, 0.25, -0.2))
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def chain(*links):
    """A robot of (joint, placement) after one another; a third entry is the body's offset."""
    b = MechanismBuilder("chain", gravity=(1.0, -2.0, 9.0))
    parent = "world"
    for i, (joint, placement, *offset) in enumerate(links):
        b.add(f"body{i}", parent, joint, f"joint{i}", placement, BODY, *offset)
        parent = f"body{i}"
    return Robot(b.build())


def at(*p, turn=(0.0, 0.0, 0.0)):
    return Transform(from_rpy(*turn), p)


# how the axis of a joint may lie to the next one
AXES = {
    "parallel": [(Revolute(Z), at(0.1, 0.2, 0.3)), (Revolute(Z), at(0.5, -0.2, 0.7))],
    "antiparallel": [
        (Revolute(Z), at(0, 0, 0)),
        (Revolute(Z), at(0.5, 0.1, 0, turn=(np.pi, 0, 0))),
    ],
    "coincident": [(Revolute(Z), at(0.1, 0.2, 0.3)), (Revolute(Z), at(0, 0, 0.7))],
    "coincident and turned": [
        (Revolute(Z), at(0, 0, 0)),
        (Revolute(Z), at(0, 0, 1, turn=(0, 0, 2))),
    ],
    "intersecting": [(Revolute(Z), at(0, 0, 0)), (Revolute(X), at(0, 0, 0.4, turn=(0.3, 1, 0.2)))],
    "perpendicular": [(Revolute(Z), at(0, 0, 0)), (Revolute(X), at(0.3, 0.2, 0.4))],
    "skew": [(Revolute((1, 2, 3)), SKEW), (Revolute((3, -1, 1)), SKEW)],
    "slides": [(hinge.Prismatic((1, 1, 0)), SKEW), (Revolute(X), SKEW), (hinge.Prismatic(Z), SKEW)],
    "offsets": [(Revolute(X), SKEW, SKEW), (Revolute((0, 1, 1)), SKEW, at(0.3, 0, 0.1))],
    "on the ground": [
        (Revolute(Z), at(0, 0, 0)),
        (Revolute(Z), at(0, 0, 0)),
        (Revolute(Z), at(1, 0, 0)),
    ],
}
CHAINS = {f"axes {name}": chain(*links) for name, links in AXES.items()}
for kind, joint in JOINTS.items():
    CHAINS[f"{kind} between"] = chain((Revolute(X), SKEW), (joint, SKEW, SKEW), (Revolute(Z), SKEW))
    CHAINS[f"{kind} first"] = chain((joint, SKEW), (joint, at(0.2, 0, 0.1)))
    CHAINS[f"{kind} with armature"] = chain(
        (Revolute(Z), SKEW), (replace(joint, armature=0.3), SKEW)
    )
TREES = {f"tree {seed}": zoo.tree(seed, 10) for seed in range(20, 26)}
EVERYTHING = {**ROBOTS, **CHAINS, **TREES}


def assert_same_motion(mech, form, state, bound):
    """inverse dynamics with forces, forward dynamics, mass matrix and energy."""
    thin, s = form.mechanism, state
    forces = form.forces(s.f_ext)
    tau = algorithms.inverse_dynamics(mech, s.q, s.qd, s.qdd, s.f_ext)
    assert_close(algorithms.inverse_dynamics(thin, s.q, s.qd, s.qdd, forces), tau, bound)
    M = algorithms.mass_matrix(mech, s.q)
    assert_close(algorithms.mass_matrix(thin, s.q), M, bound)
    energy = algorithms.kinetic_energy(mech, s.q, s.qd)
    assert_close(algorithms.kinetic_energy(thin, s.q, s.qd), energy, bound)
    if mech.nv:
        qdd = algorithms.forward_dynamics(mech, s.q, s.qd, tau, s.f_ext)
        got = algorithms.forward_dynamics(thin, s.q, s.qd, tau, forces)
        assert_close(got, qdd, bound * np.linalg.cond(M))


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_lean_mechanism_moves_alike(name):
    robot = EVERYTHING[name]
    form = canonical(robot.mechanism)
    for seed in range(2):
        bound = 100 * EPS * max(1, robot.mechanism.n_bodies / 4)
        assert_same_motion(robot.mechanism, form, random_state(robot, seed), bound)


@pytest.mark.parametrize("name", EVERYTHING)
def test_frames_stay_rotations(name):
    form = canonical(EVERYTHING[name].mechanism)
    for body, frame in zip(form.mechanism.bodies, form.frames, strict=True):
        for R in (body.placement.rotation, frame.rotation):
            assert is_rotation(R) and np.abs(R @ R.T - np.eye(3)).max() < 100 * EPS
            assert abs(np.linalg.det(R) - 1) < 100 * EPS
        assert body.offset == Transform()


@pytest.mark.parametrize("name", [*CHAINS, *TREES])
def test_axes_are_along_z(name):
    for body in canonical(EVERYTHING[name].mechanism).mechanism.bodies:
        if isinstance(body.joint, (Revolute, hinge.Prismatic, hinge.Helical, hinge.Cylindrical)):
            assert body.joint.axis == Z


TILTS = [0.1, 1e-2, 1e-4, 3.7e-6, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 3e-13, 1e-13, 1e-14, 1e-15]


@pytest.mark.parametrize("tilt", TILTS)
def test_nearly_parallel_axes_cost_no_digits(tilt):
    between = (Revolute((tilt, tilt / 2, 1)), at(0.3, 0.2, 0.5))
    robot = chain((Revolute(X), SKEW), (Revolute(Z), SKEW), between, (Revolute(Z), at(0.1, 0.2, 0)))
    form = canonical(robot.mechanism)
    assert max(np.abs(frame.translation).max() for frame in form.frames) < 10
    for seed in range(3):
        assert_same_motion(robot.mechanism, form, random_state(robot, seed), 100 * EPS)


@pytest.mark.parametrize("off", TILTS)
def test_what_is_nearly_a_right_angle_or_on_an_axis_costs_no_digits(off):
    """As in files with angles of thirteen digits, and lengths that are nearly 0."""
    near = at(0.3, off, -off, turn=(np.pi / 2 + off, 0, -np.pi / 2 + off / 3))
    robot = chain(
        (Revolute(Z), near), (Revolute(Z), near), (Revolute(X), near), (Revolute(Z), near)
    )
    form = canonical(robot.mechanism)
    for seed in range(3):
        assert_same_motion(robot.mechanism, form, random_state(robot, seed), 100 * EPS)


def test_right_angles_are_exact():
    """What rounding made of them is 0 or 1 again."""
    turns = [(a * np.pi / 2, b * np.pi / 2, c * np.pi / 2) for a, b, c in np.ndindex(4, 4, 4)]
    links = [(Revolute(Z), at(0.3, 0.1, 0.2, turn=turn)) for turn in turns]
    for body in canonical(chain(*links).mechanism).mechanism.bodies[1:]:
        R, p = body.placement.rotation, body.placement.translation
        assert set(np.abs(R).ravel()) <= {0.0, 1.0} or isinstance(body.joint, TurnedRevolute)
        assert not ((np.abs(p) > 0) & (np.abs(p) < 1e-3)).any()


@pytest.mark.parametrize("name", AXES)
def test_x_is_the_common_normal_of_two_hinges(name):
    _, first, second, *_ = canonical(CHAINS[f"axes {name}"].mechanism).mechanism.bodies
    if isinstance(first.joint, Revolute) and isinstance(second.joint, Revolute):
        axis, p = second.placement.rotation[:, 2], second.placement.translation
        assert axis[0] == 0
        assert abs(p[1] * axis[2] - p[2] * axis[1]) < 4 * EPS


def test_what_a_hinge_cannot_tell_moves_to_the_parent():
    bodies = canonical(CHAINS["axes skew"].mechanism).mechanism.bodies
    for body in bodies[1:]:
        M = body.inertia.spatial
        assert M.mass == 0 and M.h[2] == 0
        assert abs(M.J[0, 0] + M.J[1, 1] - M.J[2, 2]) < 4 * EPS
    # the ground swallows what reaches it
    assert bodies[0] == CHAINS["axes skew"].mechanism.bodies[0]


def test_data_of_joints_are_kept():
    data = {"damping": 0.1, "friction": 0.2, "lower": -1, "upper": 2, "armature": 0.5}
    limits = {"velocity_limit": 3.0, "effort_limit": 4.0}
    robot = chain((Revolute(X, **data, **limits), SKEW), (Revolute((1, 1, 0), **data), SKEW))
    kept = canonical(robot.mechanism).mechanism.bodies[1:]
    assert any(isinstance(body.joint, TurnedRevolute) for body in kept)
    for body, original in zip(kept, robot.mechanism.bodies[1:], strict=True):
        for name in (*data, *limits, "mimic"):
            assert getattr(body.joint, name) == getattr(original.joint, name)
    follower = canonical(ROBOTS["gripper"].mechanism).mechanism
    assert follower.has_followers and follower.nv == ROBOTS["gripper"].nv


def test_the_same_mechanism_has_the_same_forces():
    mech = ROBOTS["tree0"].mechanism
    form, f_ext = Reframed.same(mech), random_state(ROBOTS["tree0"], 0).f_ext
    assert form.mechanism is mech and np.array_equal(form.forces(f_ext), f_ext)
    assert Reframed.same(ROBOTS["empty"].mechanism).forces(np.zeros((0, 6))).shape == (0, 6)


def test_a_lean_arm_costs_less():
    mech = zoo.arm(7).mechanism
    full, thin = (
        trace(lambda q, v, a, m=m: algorithms.inverse_dynamics(m, q, v, a), [(7,)] * 3).ops
        for m in (mech, canonical(mech).mechanism)
    )
    assert sum(thin) < 0.9 * sum(full)


def test_all_methods_share_the_frames_of_a_mechanism():
    """They are made once, also for a mechanism that is read again; of another they are others."""
    here, again, other = (zoo.snake(n).mechanism for n in (5, 5, 6))
    assert canonical(here) is canonical(again) and canonical(here) is not canonical(other)

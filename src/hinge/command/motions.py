"""Motions for the demonstration: a quadruped that is pushed, and any robot through its ranges."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from .. import zoo
from ..errors import ArgumentError
from ..model.joints import Free
from ..model.mechanism import Mechanism
from ..motion.trajectory import Trajectory
from ..robot import Robot
from ..viewer.actor import all_poses, place_of
from ..viewer.arrows import lengths
from ..viewer.look import look_of
from ..viewer.stance import standing

__all__ = ["FORCE", "Push", "pushed", "through_its_ranges"]

_LEGS = ("FL", "FR", "RL", "RR")
_STEP, _KEPT = 1e-3, 10  # s, and of how many steps one is kept
FORCE = 60.0  # N
_DURATION = 3.5  # s
_PUSHED = (0.5, 1.1)  # s
_MOTORS, _GROUND = (80.0, 4.0), (2e4, 2e2)  # stiffness, damping: N m/rad, N m s/rad; N/m, N s/m
_POSES, _SHORTEST, _FRAMES = 4, 1.2, 100  # of a tour: stops, s between two, samples in a second
_FARTHEST = 1.5  # rad or m, from the neutral pose: some legs could go round and round
_PART = 0.8  # of the ranges and of the greatest rates that a tour makes use of


class Push(NamedTuple):
    """The motion of the pushed quadruped, its steps, and the seconds they took: cold, and again.

    forces: the push, points and vectors in world axes, each (T, 1, 3); the arrow of a force ends
    where it pushes.
    """

    motion: Trajectory
    forces: tuple[np.ndarray, np.ndarray]
    steps: int
    cold: float
    again: float


def pushed() -> Push:
    """The zoo's quadruped on its feet, pushed sideways; its motors bring it back."""
    robot = zoo.quadruped()
    run, start = _standing(robot)
    t = _STEP * np.arange(round(_DURATION / _STEP))
    on = np.clip((t - _PUSHED[0]) / (_PUSHED[1] - _PUSHED[0]), 0.0, 1.0)
    push = np.outer(FORCE * np.sin(np.pi * on) ** 2, (0.0, 1.0, 0.0))
    began = time.perf_counter()
    run(start, np.zeros(robot.nv), push, _STEP)
    half = time.perf_counter()
    q, qd, tau = run(start, np.zeros(robot.nv), push, _STEP)
    ended = time.perf_counter()
    some = slice(None, None, _KEPT)
    motion = Trajectory(robot, t[some], q[some], qd[some], tau[some])
    return Push(motion, _at_the_side(motion, push[some]), len(t), half - began, ended - half)


def _at_the_side(motion: Trajectory, push: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forces (T, 3) on the trunk in its axes, as arrows (T, 1, 3) that end at its side."""
    mech = motion.robot.mechanism
    look = look_of(mech)
    poses = all_poses(motion.robot, motion.q)
    newton = lengths(mech, place_of(mech, look, poses).size)
    side = min(mesh.vertices[:, 1].min() for mesh in look.visuals[1])
    R, p = poses[:, 1, :3, :3], poses[:, 1, :3, 3]
    vectors = np.einsum("tij,tj->ti", R, push)
    points = p + side * R[:, :, 1] - newton * vectors
    return points[:, None], vectors[:, None]


def _standing(robot: Robot) -> tuple[Any, np.ndarray]:
    """Steps of the robot whose feet springs pin to the ground, and the pose in which it stands."""
    alg, feet = robot.alg, [f"{leg}_foot" for leg in _LEGS]
    stand, still = _stance(robot), np.zeros(robot.nv)
    # motors and ground share the weight: g = (0; τ) + Jᵀ f
    J = np.concatenate([alg.jacobian(stand, foot)[3:] for foot in feet])
    g = alg.inverse_dynamics(stand, still, still)
    f = np.linalg.lstsq(J[:, :6].T, g[:6], rcond=None)[0]
    carry = (g - J.T @ f)[6:]
    (kp, kd), (stiff, damp) = _MOTORS, _GROUND
    at = [alg.frame_pose(stand, foot)[:3, 3] for foot in feet] + f.reshape(4, 3) / stiff

    def step(q: Any, qd: Any, push: Any, dt: Any) -> Any:
        motors = carry + kp * (stand[7:] - q[7:]) - kd * qd[6:]
        f_ext = [np.zeros(6) for _ in robot.body_names]
        f_ext[0] = np.concatenate([np.zeros(3), push])
        for foot, p in zip(feet, at, strict=True):
            X, v = alg.frame_pose(q, foot), alg.frame_velocity(q, qd, foot)[3:]
            local = X[:3, :3].T @ (stiff * (p - X[:3, 3]) - damp * v)
            frame = robot.mechanism.frame(foot)
            moment = np.cross(frame.placement.translation, local)
            f_ext[frame.body - 1] = np.concatenate([moment, local])
        tau = np.concatenate([np.zeros(6), motors])
        qd = qd + dt * alg.forward_dynamics(q, qd, tau, np.stack(f_ext))
        return alg.integrate(q, dt * qd), qd, tau

    return robot.rollout(step, inputs=("push",), push=(3,)), stand


def _stance(robot: Robot) -> np.ndarray:
    """Knees bent, feet at height 0."""
    q = robot.neutral()
    for leg in _LEGS:
        q[robot.q_slice(f"{leg}_pitch")], q[robot.q_slice(f"{leg}_knee")] = 0.7, -1.4
    q[2] = -robot.alg.frame_pose(q, "FL_foot")[2, 3]
    return q


def through_its_ranges(robot: Robot) -> Trajectory:
    """From the neutral pose through some others within limits and back; free bodies stay.

    Between two poses everything moves along one line, q₀ ⊕ s Δ with s(t) of fifth order, as slowly
    as the limits of rates want it; joint forces are those of inverse dynamics.
    """
    mech = robot.mechanism
    moved = _moved(mech)
    if not moved.any():
        raise ArgumentError(f"demo: {robot.name!r} has no joint that could be moved")
    home, rng = standing(robot), np.random.default_rng(1)
    poses = [home, *(_somewhere(robot, home, moved, rng) for _ in range(_POSES)), home]
    legs = [_leg(robot, a, b) for a, b in zip(poses[:-1], poses[1:], strict=True)]
    q, qd, qdd = (np.concatenate([leg[i] for leg in legs]) for i in range(3))
    t = np.arange(len(q)) / _FRAMES
    return Trajectory(robot, t, q, qd, robot.inverse_dynamics(q, qd, qdd))


def _moved(mech: Mechanism) -> np.ndarray:
    """Which DoF are of joints and not of free bodies, (nv,)."""
    moved = np.ones(mech.nv, dtype=bool)
    for body in mech.bodies[1:]:
        if isinstance(body.joint, Free):
            moved[mech.v_slice(body.joint_name)] = False
    return moved


def _somewhere(
    robot: Robot, home: np.ndarray, moved: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A pose within limits, those of joints that follow others too."""
    way = _PART * moved * robot.difference(home, robot.random_configuration(rng))
    way = way.clip(-_FARTHEST, _FARTHEST)
    q = robot.integrate(home, way)
    while _beyond(robot.mechanism, q) and np.abs(way).max() > 1e-3:
        way *= 0.8
        q = robot.integrate(home, way)
    return q


def _beyond(mech: Mechanism, q: np.ndarray) -> bool:
    """Whether a joint is outside of its limits."""
    pairs = zip(mech.coordinates(q)[1:], mech.bodies[1:], strict=True)
    return any(
        np.any(x < body.joint.lower) or np.any(x > body.joint.upper)
        for x, body in pairs
        if body.joint.nq == body.joint.nv
    )


def _leg(robot: Robot, q0: np.ndarray, q1: np.ndarray) -> tuple[np.ndarray, ...]:
    """q, q̇ and q̈ on the way from one pose to another, the end left out."""
    way = robot.difference(q0, q1)
    # s = 10x³ − 15x⁴ + 6x⁵ is quickest in the middle: 15/8 of the mean
    duration = max(_SHORTEST, 15 / 8 * np.max(np.abs(way) / (_PART * _quickest(robot.mechanism))))
    count = int(np.ceil(duration * _FRAMES))
    x, T = np.arange(count)[:, None] / count, count / _FRAMES
    s = x**3 * (10 - 15 * x + 6 * x**2)
    rate, bend = 30 * x**2 * (1 - x) ** 2 / T, 60 * x * (1 - x) * (1 - 2 * x) / T**2
    return robot.integrate(np.broadcast_to(q0, (count, robot.nq)), s * way), rate * way, bend * way


def _quickest(mech: Mechanism) -> np.ndarray:
    """The limits of rates, but no more than half a turn (or half a metre) in a second, (nv,)."""
    limits = np.full(mech.nv, np.inf)
    for body in mech.bodies[1:]:
        if body.joint.mimic is None:
            joint, at = body.joint, mech.v_slice(body.joint_name)
            turns = np.abs(joint.H(joint.neutral())[:, :3]).any(axis=1)
            limits[at] = np.minimum(np.array(joint.velocity_limit), np.where(turns, np.pi, 0.5))
    # one that may not move at all is not waited for
    return np.where(limits > 0, limits, np.inf)

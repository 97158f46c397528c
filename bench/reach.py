"""Inverse kinematics: how many targets are found, and how long one takes, beside TRAC-IK and pink.

Targets are poses of random configurations within the limits.  Everyone's answers are judged alike:
by our forward kinematics, to 1e-6 rad and m, and by the limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import hinge
from hinge.algebra.rotation import quaternion_from_matrix
from hinge.algorithms.configuration import limits

from .others import installed
from .robots import Case

__all__ = ["FRAMES", "Reached", "reach"]

FRAMES = {
    "panda": ("panda_link8",),
    "ur5": ("tool0",),
    "talos": (
        "gripper_left_base_link",
        "gripper_right_base_link",
        "left_sole_link",
        "right_sole_link",
    ),
}
_BASES = {"panda": "panda_link0", "ur5": "base_link"}
TOLERANCE, PATIENCE, NEARBY = 1e-6, 5e-3, 0.1
_ROUNDS = 5

Solve = Callable[[Sequence[np.ndarray], np.ndarray | None], np.ndarray]


@dataclass(frozen=True)
class Reached:
    """How one contestant did: what part of so many targets was found, and seconds for each."""

    case: Case
    start: str
    who: str
    targets: int
    found: float
    seconds: float


def reach(case: Case, quick: bool) -> Iterator[Reached]:
    """From no start, and from one nearby."""
    robot, frames = hinge.Robot(case.mechanism, threads=1), FRAMES[case.name]
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(200 if quick else 1000)])
    near = robot.integrate(q, NEARBY * rng.normal(size=(len(q), robot.nv)))
    near = limits(case.mechanism).kept(near.T).T
    targets = [robot.frame_pose(q, frame) for frame in frames]
    peers = _peers(case, robot, frames, rng)
    for start, q0 in (("none", None), ("nearby", near)):
        best = dict.fromkeys(peers, np.inf)
        answers: dict[str, np.ndarray] = {}
        for _ in range(2 if quick else _ROUNDS):
            for who, (count, solve) in peers.items():
                given = [X[:count] for X in targets], None if q0 is None else q0[:count]
                if who in answers:
                    begin = time.perf_counter()
                    solve(*given)
                    best[who] = min(best[who], (time.perf_counter() - begin) / len(given[0][0]))
                else:
                    answers[who] = solve(*given)
        for who, got in answers.items():
            found = _found(robot, frames, [X[: len(got)] for X in targets], got)
            yield Reached(case, start, who, len(got), found, best[who])


def _found(robot: hinge.Robot, frames: Sequence[str], targets: Any, q: np.ndarray) -> float:
    """What part of answers (n, nq) is right."""
    good = (np.abs(limits(robot.mechanism).kept(q.T).T - q) < TOLERANCE).all(axis=1)
    for frame, X in zip(frames, targets, strict=True):
        Y = robot.frame_pose(q, frame)
        turn = np.swapaxes(X, -1, -2)[:, :3, :3] @ Y[:, :3, :3]
        angle = np.array(
            [2 * np.arcsin(np.linalg.norm(quaternion_from_matrix(R)[1:])) for R in turn]
        )
        good &= (
            np.hypot(angle, np.linalg.norm(Y[:, :3, 3] - X[:, :3, 3], axis=1)) < 1.01 * TOLERANCE
        )
    return float(good.mean())


def _peers(
    case: Case, robot: hinge.Robot, frames: Sequence[str], rng: np.random.Generator
) -> dict[str, tuple[int, Solve]]:
    """Who takes part, and on how many of the targets."""

    def batch(targets: Sequence[np.ndarray], q0: np.ndarray | None) -> np.ndarray:
        return robot.inverse_kinematics(frames, targets, q0, tolerance=TOLERANCE).q

    def one(targets: Sequence[np.ndarray], q0: np.ndarray | None) -> np.ndarray:
        starts = [None] * len(targets[0]) if q0 is None else q0
        pairs = zip(zip(*targets, strict=True), starts, strict=True)
        solve = robot.inverse_kinematics
        return np.array([solve(frames, X, s, tolerance=TOLERANCE).q for X, s in pairs])

    found: dict[str, tuple[int, Solve]] = {"hinge": (10**9, batch), "hinge, one by one": (200, one)}
    if installed("pytracik") and case.name in _BASES:
        found["TRAC-IK"] = (200, _tracik(case, robot, frames[0], rng))
    if installed("pink") and installed("quadprog"):
        found["pink"] = (10, _pink(case, robot, frames, rng))
    return found


def _tracik(case: Case, robot: hinge.Robot, frame: str, rng: np.random.Generator) -> Solve:
    """TRAC-IK with its own restarts, from a random configuration if there is no start."""
    import pytracik

    speed = pytracik.SolveType.Speed
    # what it bounds is every component
    each = TOLERANCE / np.sqrt(6)
    solver = pytracik.TRAC_IK(_BASES[case.name], frame, case.urdf, PATIENCE, each, speed)
    # as they are, where a file has soft limits besides
    bounds = limits(case.mechanism)
    pytracik.set_joint_limits(solver, bounds.lower.tolist(), bounds.upper.tolist())

    def solve(targets: Sequence[np.ndarray], q0: np.ndarray | None) -> np.ndarray:
        answers = []
        for i, X in enumerate(targets[0]):
            seed = robot.random_configuration(rng) if q0 is None else q0[i]
            w, x, y, z = quaternion_from_matrix(X[:3, :3])
            code, *got = pytracik.ik(solver, seed, *X[:3, 3], x, y, z, w)
            answers.append(got if code > 0 else seed)
        return np.array(answers)

    return solve


def _pink(case: Case, robot: hinge.Robot, frames: Sequence[str], rng: np.random.Generator) -> Solve:
    """pink's differential steps, 100 at most, from a random configuration if there is no start."""
    import pinocchio as pin
    from pink import Configuration, solve_ik
    from pink.tasks import FrameTask

    root = [pin.JointModelFreeFlyer()] if case.floating else []
    model = pin.buildModelFromXML(case.urdf, *root)
    data = model.createData()
    order = [case.mechanism.q_slice(n) for n in model.names[2 if case.floating else 1 :]]
    tasks = [FrameTask(frame, position_cost=1.0, orientation_cost=1.0) for frame in frames]

    def there(q: np.ndarray) -> np.ndarray:
        joints = [q[at] for at in order]
        base = [q[:3], q[4:7], q[3:4]] if case.floating else []
        return np.concatenate([*base, *joints])

    def back(x: np.ndarray) -> np.ndarray:
        q = np.empty(robot.nq)
        if case.floating:
            q[:3], q[3:4], q[4:7] = x[:3], x[6:7], x[3:6]
        start = 7 if case.floating else 0
        for i, at in enumerate(order):
            q[at] = x[start + i]
        return q

    def solve(targets: Sequence[np.ndarray], q0: np.ndarray | None) -> np.ndarray:
        answers = []
        for i in range(len(targets[0])):
            seed = robot.random_configuration(rng) if q0 is None else q0[i]
            state = Configuration(model, data, there(seed))
            for task, X in zip(tasks, targets, strict=True):
                task.set_target(pin.SE3(X[i]))
            for _ in range(100):
                errors = [task.compute_error(state) for task in tasks]
                if max(map(np.linalg.norm, errors)) < TOLERANCE:
                    break
                rates = solve_ik(state, tasks, 1.0, solver="quadprog", safety_break=False)
                state.integrate_inplace(rates, 1.0)
            answers.append(back(state.q))
        return np.array(answers)

    return solve

"""Free-flying robots: momentum, reaction-mode control, base control.  Paper U §6.2, §7; math §7.

A base floats: its six DoF are passive, the arm's are active.  Every function takes one sample, of
numbers or traced scalars, so that `robot.compile` and `simulate` make kernels of them; `active` is
names of joints or a mask of numbers.

    ḣ = φ(world, base) τ_base + gravity              about the world's origin                   (1)
    [J_G; J_D] q̈_a = [V̇ − bias; q̈_p − bias_p]        reaction mode: tool and base as one task   (2)
    V̇ = V̇_des + k_d (V_des − V) + k_p e              a frame that follows a trajectory          (3)

Tasks of unequal rank are solved one after the other, each in the null space of those before it:

    x ← x + N Aₙᵀ(Aₙ Aₙᵀ + λ²)⁻¹ (b − A x),   Aₙ = A N,   N ← N − Aₙ⁺ Aₙ                        (4)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import skew
from ..algebra.small import solve_spd
from ..algebra.spatial import ForceTransfer
from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics
from ..errors import ArgumentError
from ..graph.functions import less, where
from ..model.joints import Free
from ..robot import Robot
from ..specialize.arrays import array_shape

__all__ = [
    "Target",
    "base_control",
    "follow",
    "momentum_after",
    "momentum_rate",
    "pose_error",
    "prioritized",
    "reaction_control",
]


def __dir__() -> list[str]:
    return __all__


# of a task's mean singular value: what is below is not asked of the joints
_DAMPING = 1e-4
_STEPS = 3


class Target(NamedTuple):
    """Where a frame is wanted: pose (4, 4), velocity and acceleration (6,), world axes at it."""

    pose: Any
    velocity: Any = np.zeros(6)
    acceleration: Any = np.zeros(6)


def momentum_rate(robot: Robot, q: Any, tau: Any) -> np.ndarray:
    """ḣ about the world's origin, (6,): what the force on the base and gravity make it (1).

    h is `robot.momentum(q, qd, about="world")`.  tau: (nv,), of which the base's entries count.
    """
    mech, base = robot.mechanism, _base(robot)
    _check_shapes("momentum_rate", robot, q=q, tau=tau)
    X = robot.alg.frame_pose(q, mech.bodies[mech.joint_index(base)].name)
    wrench = ForceTransfer(X[:3, :3], X[:3, 3]) @ np.asarray(tau)[robot.v_slice(base)]
    weight = robot.total_mass * np.array(mech.gravity)
    moment = skew(robot.alg.center_of_mass(q)) @ weight
    return wrench + np.concatenate([moment, weight])


def momentum_after(robot: Robot, h: Any, t: np.ndarray, q: np.ndarray, tau: np.ndarray) -> Any:
    """h(t) = h + ∫ ḣ dt along a trajectory, by trapezoids: (T, 6); t (T,), q (T, nq), tau (T, nv).

    What `robot.momentum(q, qd, about="world")` must be; it needs no velocities.
    """
    rate = robot.compile(lambda q, tau: momentum_rate(robot, q, tau))(q, tau)
    steps = 0.5 * np.diff(t)[:, None] * (rate[1:] + rate[:-1])
    return np.asarray(h) + np.concatenate([np.zeros((1, 6)), np.cumsum(steps, axis=0)])


def prioritized(tasks: Sequence[tuple[Any, Any]], x: Any) -> np.ndarray:
    """The x nearest to a wish that solves A x = b for each (A, b), earlier ones first (4).

    What a task cannot reach beside those before it, it meets in the sense of least squares.
    """
    x = np.asarray(x)
    N = np.eye(len(x))
    for A, b in tasks:
        if np.shape(A) != (*np.shape(b), len(x)):
            raise ArgumentError(
                f"prioritized: a task A x = b has A of shape {np.shape(A)} and b of shape "
                f"{np.shape(b)}; expected (m, {len(x)}) and (m,), the wish has {len(x)} entries"
            )
        inside = A @ N
        damping = _DAMPING**2 * np.trace(A @ A.T) / len(A)
        square = inside @ inside.T + damping * np.eye(len(A))
        step = np.zeros(len(A))
        for _ in range(_STEPS):
            step = step + solve_spd(square, b - A @ x - inside @ (inside.T @ step))
        x = x + inside.T @ step
        N = N - inside.T @ solve_spd(square, inside)
        N = N @ N @ N  # what the damping left of the task in N, to the third power
    return x


def reaction_control(
    robot: Robot,
    q: Any,
    qd: Any,
    frame: str,
    acceleration: Any,
    active: Any,
    qdd_passive: Any = None,
    wish: Any = None,
    tau_passive: Any = None,
) -> HybridDynamics:
    """The motion that gives a frame an acceleration (6,) and moves the base the least (2).

    qdd_passive: (np,), the passive accelerations wanted, zero by default, in the null space of the
    frame's; wish: (na,), active accelerations that the null space of both is left to.
    """
    mask = robot.mechanism.driven(active)
    tau = np.zeros(robot.nv) if tau_passive is None else np.asarray(tau_passive)
    _check_shapes("reaction_control", robot, q=q, qd=qd, tau=tau, acceleration=acceleration)
    given = q, qd, tau
    J_G = robot.alg.generalized_jacobian(q, frame, mask)
    J_D = robot.alg.disturbance_jacobian(q, mask)
    bias = robot.alg.generalized_bias(*given, frame, mask)
    bias_p = robot.alg.disturbance_bias(*given, mask)
    still = np.zeros(J_D.shape[0]) if qdd_passive is None else np.asarray(qdd_passive)
    start = np.zeros(J_D.shape[1]) if wish is None else np.asarray(wish)
    tasks = [(J_G, np.asarray(acceleration) - bias), (J_D, still - bias_p)]
    x = prioritized(tasks, start)
    return robot.alg.hybrid_dynamics(q, qd, _scattered(mask, x), tau, mask)


def follow(
    robot: Robot,
    q: Any,
    qd: Any,
    frame: str,
    target: Target | Any,
    active: Any,
    stiffness: float = 0.0,
    damping: float = 0.0,
    wish: Any = None,
    tau_passive: Any = None,
) -> HybridDynamics:
    """The forces that make a frame follow a trajectory, whatever the passive DoF do (paper U §6.2).

    target: a `Target`, or a pose (4, 4) that stays.
    stiffness k_p (1/s²) and damping k_d (1/s) bring it back to where it should be (3).
    wish: (na,), active accelerations that the null space of the task is left to.
    """
    mask = robot.mechanism.driven(active)
    tau = np.zeros(robot.nv) if tau_passive is None else np.asarray(tau_passive)
    pose, goal, push = target if isinstance(target, Target) else Target(target)
    _check_shapes("follow", robot, q=q, qd=qd, tau=tau, pose=pose, velocity=goal, acceleration=push)
    velocity = robot.alg.frame_velocity(q, qd, frame)
    error = pose_error(robot.alg.frame_pose(q, frame), pose)
    wanted = np.asarray(push) + stiffness * error + damping * (np.asarray(goal) - velocity)  # (3)
    J_G = robot.alg.generalized_jacobian(q, frame, mask)
    bias = robot.alg.generalized_bias(q, qd, tau, frame, mask)
    start = np.zeros(J_G.shape[1]) if wish is None else np.asarray(wish)
    x = prioritized([(J_G, wanted - bias)], start)
    return robot.alg.hybrid_dynamics(q, qd, _scattered(mask, x), tau, mask)


def pose_error(pose: Any, target: Any) -> np.ndarray:
    """(½ Σ y × ŷ; p̂ − p) over the axes y: what is left to turn and to go, (6,), world axes."""
    pose, target = np.asarray(pose), np.asarray(target)
    turn = sum(skew(pose[:3, i]) @ target[:3, i] for i in range(3))
    return np.concatenate([0.5 * np.asarray(turn), target[:3, 3] - pose[:3, 3]])


def base_control(
    robot: Robot,
    q: Any,
    qd: Any,
    pose: Any,
    stiffness: tuple[float, float],
    damping: tuple[float, float],
    dead_band: tuple[float, float] = (0.0, 0.0),
) -> np.ndarray:
    """Joint forces (nv,) that hold the base at a pose (4, 4): its own entries only.

    stiffness, damping: (turning, moving), in Nm/rad and N/m, Nms/rad and Ns/m.  dead_band: (angle,
    distance), below which the thrusters that turn, or those that move, stay off.
    """
    base = _base(robot)
    _check_shapes("base_control", robot, q=q, qd=qd, pose=pose)
    body = robot.mechanism.bodies[robot.mechanism.joint_index(base)].name
    X, at = robot.alg.frame_pose(q, body), robot.v_slice(base)
    error, V = pose_error(X, pose), np.asarray(qd)[at]
    parts = []
    for i, part in enumerate((slice(0, 3), slice(3, 6))):
        e = error[part]
        push = stiffness[i] * (X[:3, :3].T @ e) - damping[i] * V[part]
        on = less(dead_band[i] ** 2, e @ e) if dead_band[i] else 1.0
        parts.append(where(on, push, np.zeros(3)))
    return np.concatenate([np.zeros(at.start), *parts, np.zeros(robot.nv - at.stop)])


def _check_shapes(where: str, robot: Robot, **arrays: Any) -> None:
    """Every array has the shape of one sample."""
    shapes = {"pose": (4, 4), "velocity": (6,), "acceleration": (6,)}
    for name, x in arrays.items():
        wanted = shapes.get(name) or array_shape(robot.mechanism, name)
        if np.shape(x) != wanted:
            raise ArgumentError(
                f"{where} for {robot.name!r}: {name} has shape {np.shape(x)}; expected {wanted}, "
                f"one sample: robot.compile makes a kernel of it that takes batches"
            )


def _base(robot: Robot) -> str:
    """The joint on which the robot floats."""
    for body in robot.mechanism.bodies[1:]:
        if body.parent == 0 and isinstance(body.joint, Free):
            return body.joint_name
    raise ArgumentError(
        f"{robot.name!r} has no base that floats: no body hangs on the ground by a Free joint; "
        f"load it with floating_base=True"
    )


def _scattered(mask: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(nv,) with x at the active DoF and zeros at the others."""
    return np.eye(len(mask))[:, mask == 1] @ x

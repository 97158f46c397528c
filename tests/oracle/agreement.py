"""Every result of a robot against the same result of an oracle, at one state.

A difference counts relative to the largest magnitude of what is compared.  Joint forces,
accelerations and mass matrices are compared in units that give each degree of freedom an inertia of
one, so that a finger counts as much as a floating base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import hinge
from dense import biggest
from mechanisms import EPS, Generic, State, assert_close, random_state

TOLERANCE = 200 * EPS


def assert_agrees(what: str, got, expected, tolerance: float = TOLERANCE, scale=None) -> None:
    """|got − expected| ≤ tolerance · scale, the scale being the largest expected magnitude."""
    scale = biggest(np.asarray(expected)) if scale is None else scale
    assert_close(got, expected, tolerance, scale, what)


def wild_state(robot: hinge.Robot, seed: int) -> State:
    """A random state, within the joint limits for even seeds and far outside for odd ones."""
    state = random_state(robot, seed)
    if seed % 2 == 0:
        return state
    far = 4 * np.random.default_rng(seed).normal(size=robot.nv)
    return replace(state, q=robot.integrate(state.q, far))


def agree_on_poses(oracle, s: State, tolerance: float = TOLERANCE) -> None:
    """Poses of all bodies and of all frames but the ground's."""
    robot, names = oracle.robot, [n for n in oracle.robot.frame_names if n != "world"]
    assert_agrees("poses", robot.poses(s.q), oracle.poses(s.q), tolerance)
    got = [robot.frame_pose(s.q, name) for name in names]
    assert_agrees("frame_pose", got, [oracle.frame_pose(s.q, name) for name in names], tolerance)


def agree_on_frame_motion(
    oracle, s: State, frames: Sequence[str], tolerance: float = TOLERANCE
) -> None:
    """Jacobians, velocities and accelerations of frames in all references."""
    calls = {
        "jacobian": (s.q,),
        "frame_velocity": (s.q, s.qd),
        "frame_acceleration": (s.q, s.qd, s.qdd),
        "velocity_product_acceleration": (s.q, s.qd),
    }
    for reference in ("aligned", "body", "world"):
        for name, args in calls.items():
            got, expected = (
                [getattr(who, name)(*args, frame, reference) for frame in frames]
                for who in (oracle.robot, oracle)
            )
            # where J̇ q̇ is zero, so are its terms but for rounding: they are as large as q̇²
            scale = max(biggest(expected), biggest(s.qd) ** 2 if "product" in name else 0.0)
            assert_agrees(f"{name} {reference}", got, expected, tolerance, scale)


def agree_on_energy(oracle, s: State, tolerance: float = TOLERANCE) -> None:
    """Centre of mass, momentum about it and about the origin, kinetic and potential energy."""
    calls = [
        (1, "center_of_mass", s.q),
        (1, "momentum", s.q, s.qd, "com"),
        (1, "momentum", s.q, s.qd, "world"),
        (1, "kinetic_energy", s.q, s.qd),
        (1, "potential_energy", s.q),
    ]
    _agree(oracle, calls, tolerance)


def agree_on_forces(oracle, s: State, tolerance: float = TOLERANCE) -> None:
    """The mass matrix and joint forces, with and without external ones."""
    u = _units(oracle, s)
    calls = [
        (1 / u, "inverse_dynamics", s.q, s.qd, s.qdd),
        (1 / u, "inverse_dynamics", s.q, s.qd, s.qdd, s.f_ext),
        (1 / u, "bias_forces", s.q, s.qd),
        (1 / u, "bias_forces", s.q, s.qd, s.f_ext),
        (1 / u, "gravity_forces", s.q),
        (1 / np.outer(u, u), "mass_matrix", s.q),
    ]
    _agree(oracle, calls, tolerance)


def agree_on_accelerations(oracle, s: State, tolerance: float = TOLERANCE) -> None:
    """The inverse mass matrix and accelerations, with and without external forces."""
    u = _units(oracle, s)
    tau = u * s.qdd
    tolerance = max(tolerance, _conditioned(oracle, s, u))
    calls = [
        (np.outer(u, u), "mass_matrix_inverse", s.q),
        (u, "forward_dynamics", s.q, s.qd, tau),
        (u, "forward_dynamics", s.q, s.qd, tau, s.f_ext),
    ]
    _agree(oracle, calls, tolerance)


def _conditioned(oracle, s: State, u: np.ndarray) -> float:
    """What rounding may cost accelerations."""
    return EPS * min(10 * np.linalg.cond(oracle.mass_matrix(s.q) / np.outer(u, u)), 4e5)


def _units(oracle, s: State) -> np.ndarray:
    """√inertia of each degree of freedom, or 1 where nothing is moved."""
    inertia = np.diag(oracle.mass_matrix(s.q))
    return np.sqrt(np.where(inertia > 0, inertia, 1.0))


def _agree(oracle, calls, tolerance: float) -> None:
    """unit · result of each call (unit, name, *args), on both sides."""
    for unit, name, *args in calls:
        got, expected = (unit * getattr(who, name)(*args) for who in (oracle.robot, oracle))
        how = f" {args[-1]}" if isinstance(args[-1], str) else " f_ext" * (np.ndim(args[-1]) == 2)
        assert_agrees(name + how, got, expected, tolerance)


def agree_on_kernels(robot: hinge.Robot, s: State, accelerations: bool) -> None:
    """Compiled forces, mass matrix and, if asked, accelerations against the generic code."""
    generic = Generic(robot)
    u = _units(generic, s)
    calls = [
        (TOLERANCE, 1 / u, "inverse_dynamics", s.q, s.qd, s.qdd),
        (TOLERANCE, 1 / np.outer(u, u), "mass_matrix", s.q),
    ]
    if accelerations:
        bound = max(TOLERANCE, _conditioned(generic, s, u))
        calls.append((bound, u, "forward_dynamics", s.q, s.qd, u * s.qdd))
    for bound, unit, name, *args in calls:
        got, expected = (unit * getattr(who, name)(*args) for who in (robot, generic))
        assert_agrees(name, got, expected, bound)


def agree_on_configurations(oracle, s: State, seed: int, tolerance: float = TOLERANCE) -> None:
    """integrate and difference over steps below half a turn."""
    robot = oracle.robot
    dv = np.random.default_rng(seed).uniform(-1.8, 1.8, size=robot.nv)
    q1 = robot.integrate(s.q, dv)
    missed = oracle.missed(s.q, dv, q1)
    assert_agrees("integrate", missed, np.zeros_like(missed), tolerance, biggest(dv))
    got, expected = oracle.G @ robot.difference(s.q, q1), oracle.difference(s.q, q1)
    assert_agrees("difference", got, expected, tolerance)

"""Mechanisms, states and complex-step references for the tests of paper L."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np

import hinge
from hinge import algorithms
from hinge.algorithms.declare import ALGORITHMS
from mechanisms import EPS, ROBOTS, complex_jacobian, everything, random_state

__all__ = ["EPS", "TREES", "loads", "mutated", "random_state", "reference_inverse"]

TREES = {**ROBOTS, "everything": everything()}


def loads(robot: hinge.Robot, q, f_ext, points, load):
    """q′ ↦ the external forces in body axes at q′, f_ext at q, for each kind of load."""
    poses = robot.alg.poses(q)
    R, x = poses[:, :3, :3], poses[:, :3, 3]
    N, F = (np.einsum("kij,kj->ki", R, f) for f in (f_ext[:, :3], f_ext[:, 3:]))
    arm = np.einsum("kij,kj->ki", R, points)
    if load == "dead":
        N = N - np.cross(arm, F)
    else:
        N = N + np.cross(x, F)

    def at(q):
        poses = robot.alg.poses(q)
        R, x = poses[:, :3, :3], poses[:, :3, 3]
        lever = np.einsum("kij,kj->ki", R, points) if load == "dead" else -x
        moment = N + np.cross(lever, F)
        return np.concatenate([np.einsum("kji,kj->ki", R, y) for y in (moment, F)], axis=1)

    return (lambda q: f_ext) if load == "body" else at


def reference_inverse(robot, s, force=None):
    """∂τ/∂q, ∂τ/∂q̇ by complex steps, and M."""
    alg, n = robot.alg, robot.nv
    force = force or (lambda q: s.f_ext)

    def tau(dq, dqd):
        q = alg.integrate(s.q, dq)
        return alg.inverse_dynamics(q, s.qd + dqd, s.qdd, force(q))

    still = np.zeros(n)
    B = complex_jacobian(lambda d: tau(d, still), still)
    A = complex_jacobian(lambda d: tau(still, d), still)
    return B, A, alg.mass_matrix(s.q)


def reference_forward(robot, s, force=None):
    """∂q̈/∂q, ∂q̈/∂q̇ by complex steps, and M⁻¹, at the forces of the state's accelerations."""
    alg, n = robot.alg, robot.nv
    force = force or (lambda q: s.f_ext)
    tau = alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)

    def qdd(dq, dqd):
        q = alg.integrate(s.q, dq)
        return alg.forward_dynamics(q, s.qd + dqd, tau, force(q))

    still = np.zeros(n)
    B = complex_jacobian(lambda d: qdd(d, still), still)
    A = complex_jacobian(lambda d: qdd(still, d), still)
    return B, A, np.linalg.inv(alg.mass_matrix(s.q)), tau


def worst(got, expected):
    """The largest error relative to the largest entry (at least 1) of each matrix."""
    errors = [
        np.abs(g - e).max(initial=0) / max(1.0, np.abs(e).max(initial=0))
        for g, e in zip(got, expected, strict=True)
    ]
    return max(errors)


def mutated(name: str, changes: dict[str, dict[str, str]]) -> types.ModuleType:
    """The module algorithms.name, with lines changed in it and in modules it stands on.

    changes: module → {old text: new text}; every old text must be there exactly once.  Modules that
    are changed come first; those that follow see them instead of the originals.
    """
    folder = Path(algorithms.__file__).parent
    made: dict[str, types.ModuleType] = {}
    declared = dict(ALGORITHMS)
    for module in [*(m for m in changes if m != name), name]:
        source = (folder / f"{module.replace('.', '/')}.py").read_text()
        for old, new in changes.get(module, {}).items():
            assert source.count(old) == 1, f"{module}: {source.count(old)} times {old!r}"
            source = source.replace(old, new)
        copy = types.ModuleType(f"hinge.algorithms.{module}")
        copy.__package__ = copy.__name__.rpartition(".")[0]
        originals = {f"hinge.algorithms.{m}": sys.modules[f"hinge.algorithms.{m}"] for m in made}
        sys.modules.update({f"hinge.algorithms.{m}": made[m] for m in made})
        try:
            exec(compile(source, f"{module} (changed)", "exec"), copy.__dict__)
        finally:
            sys.modules.update(originals)
            ALGORITHMS.update(declared)
        made[module] = copy
    return made[name]

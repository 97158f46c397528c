"""Every compiled method of a robot, in JAX: its results, and its derivatives in both modes."""

from functools import partial

import numpy as np
import pytest

import hinge
from hinge.algorithms.declare import ALGORITHMS
from hinge.robot.method import methods_of
from hinge.specialize.arrays import array_shape

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("jax.numpy", reason="JAX is not installed")
check_grads = pytest.importorskip("jax.test_util", reason="JAX is not installed").check_grads

ROBOTS = {"fixed": hinge.zoo.arm(4), "floating": hinge.zoo.space_arm(2)}
METHODS = {method.name: method for method in methods_of(hinge.Robot)}
SETTINGS = {
    "frame": "tool",
    "frames": ("tool",),
    "active": ("joint1", "joint2"),
    "constraints": (hinge.Contact("tool", "point"),),
}
# only what is welded holds a base that nothing drives; what two joints leave free is one axis
OTHERS = {
    "constrained_inverse_dynamics": (hinge.Contact("tool", "weld"),),
    "constrained_hybrid_dynamics": (hinge.LoopConstraint("tool", "world", axes=(4,)),),
}
# what needs rates that are those of coordinates, or has kinks where joints have no limits
FIXED_ONLY = ("christoffel", "mass_factor_curl", "differential_inverse_kinematics")
CASES = [(n, k) for n in METHODS for k in ROBOTS if k == "fixed" or n not in FIXED_ONLY]


@pytest.fixture(autouse=True)
def in_double():
    with jax.enable_x64(True):
        yield


def settings_of(name):
    settings = SETTINGS | {"constraints": OTHERS.get(name, SETTINGS["constraints"])}
    return {p.name: settings[p.name] for p in METHODS[name].parameters if p.name in settings}


def arrays_of(robot, name, rng):
    """Random arrays, quaternions of any length."""
    settings, out = settings_of(name), {}
    for p in METHODS[name].parameters:
        if p.is_array and p.required:
            shape = array_shape(robot.mechanism, p.name, settings)
            out[p.name] = rng.uniform(-0.6, 0.6, size=shape)
            if p.name in ("q", "q0", "q1"):
                out[p.name] = robot.random_configuration(rng)
                if robot.nq != robot.nv:
                    out[p.name][3:7] *= rng.uniform(0.7, 1.4)
    return out


def of(robot, name):
    """The method as a function of its arrays by place."""
    method, settings = getattr(hinge.jax.robot(robot), name), settings_of(name)
    names = [p.name for p in METHODS[name].parameters if p.is_array and p.required]
    return lambda *arrays: method(**dict(zip(names, arrays, strict=True)), **settings)


def flat(results):
    parts = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.ravel(x) for x in parts])


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_results_and_changes(name, kind):
    """Results are those of the robot; changes are those by complex steps, to 1e-10."""
    robot, rng = ROBOTS[kind], np.random.default_rng(len(name))
    given = arrays_of(robot, name, rng)
    fn, settings = of(robot, name), settings_of(name)
    direct = getattr(robot, name)(**given, **settings)
    ways = {n: rng.normal(size=x.shape) for n, x in given.items()}
    points, directions = tuple(given.values()), tuple(ways.values())
    results, changes = jax.jvp(fn, points, directions)
    assert type(results) is type(direct) or not isinstance(direct, tuple)
    np.testing.assert_allclose(flat(results), flat(direct), rtol=1e-13, atol=1e-13)
    h = 1e-30
    moved = {n: x + 1j * h * ways[n] for n, x in given.items()}
    function = partial(ALGORITHMS[name].function, robot.mechanism, **settings)
    expected = flat(function(**moved)).imag / h
    scale = 1 + np.abs(expected).max(initial=0)
    np.testing.assert_allclose(flat(changes) / scale, expected / scale, atol=1e-10)
    weights = jax.tree.map(lambda x: rng.normal(size=x.shape), results)
    _, back = jax.vjp(fn, *points)
    total = sum((g * d).sum() for g, d in zip(back(weights), directions, strict=True))
    # the damping of inverse kinematics is small
    close = 1e-6 if name == "differential_inverse_kinematics" else 1e-10
    assert abs(total - flat(weights) @ flat(changes)) < close * scale * flat(weights).size


# the functions that others are built on, once more by finite differences, and twice
@pytest.mark.parametrize("kind", ROBOTS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "poses"])
def test_finite_differences_agree(name, order, kind):
    robot, rng = ROBOTS[kind], np.random.default_rng(3)
    given = tuple(arrays_of(robot, name, rng).values())
    assert check_grads(of(robot, name), given, order=order, rtol=2e-3, atol=2e-3) is None

"""Very long mechanisms: one sample by one kernel, batches by another that keeps less of a body."""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.specialize import routing

METHODS = {"diagonal_dynamics": ("q", "nu", "tau"), "diagonal_coriolis": ("q", "nu")}


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(routing, "MANY_INERTIAS", 44)


def states(robot, *lead):
    rng = np.random.default_rng(5)
    q = robot.random_configuration(rng, lead)
    return {"q": q, **{n: rng.uniform(-1, 1, (*lead, robot.nv)) for n in ("nu", "tau")}}


def robots():
    base = zoo.space_arm(44).mechanism
    return hinge.Robot(zoo.snake(45).mechanism), hinge.Robot(base)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("name", METHODS)
def test_both_kernels_give_what_the_source_gives(few_are_many, name, normalized):
    for robot in robots():
        x = states(robot, 3)
        given = [x[n] for n in METHODS[name]]
        many = getattr(robot, name)(*given, normalized=normalized)
        for i in range(3):
            one = [a[i] for a in given]
            expected = getattr(robot.alg, name)(*one, normalized=normalized)
            size = np.abs(expected).max()
            for _ in range(4):
                found = getattr(robot, name)(*one, normalized=normalized)
                assert np.abs(found - expected).max() < 200 * np.finfo(float).eps * size
            assert np.abs(many[i] - expected).max() < 200 * np.finfo(float).eps * size


def test_every_spelling_of_one_sample_and_of_several(few_are_many):
    robot, _ = robots()
    one, several = states(robot), states(robot, 2, 3)
    whole = robot.diagonal_dynamics(**several)
    for _ in range(4):
        first = robot.diagonal_dynamics(*one.values())
        assert np.array_equal(robot.diagonal_dynamics(**one), first)
        out = np.empty(robot.nv)
        assert robot.diagonal_dynamics(**one, out=out) is out and np.array_equal(out, first)
        lists = {n: x.tolist() for n, x in one.items()}
        assert np.array_equal(robot.diagonal_dynamics(**lists), first)
        ones = {n: x[None] for n, x in one.items()}
        assert np.array_equal(robot.diagonal_dynamics(**ones), first[None])
        assert np.array_equal(robot.diagonal_dynamics(**several), whole)
        mixed = several | {"q": one["q"]}
        assert robot.diagonal_dynamics(**mixed).shape == (2, 3, robot.nv)


def test_wrong_samples_are_refused_as_ever(few_are_many):
    robot, _ = robots()
    x = states(robot)
    for _ in range(4):
        with pytest.raises(hinge.ArgumentError, match="nu has"):
            robot.diagonal_dynamics(x["q"], x["nu"][1:], x["tau"])
        with pytest.raises(hinge.ArgumentError, match=r"nu\[0\] is nan"):
            robot.diagonal_dynamics(x["q"], x["nu"] * np.nan, x["tau"])

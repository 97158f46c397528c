"""Rollouts and their derivatives in time, against differences."""

import numpy as np
import pytest

import hinge
from hinge.differentiable import DifferentiableRollout
from hinge.errors import ArgumentError

ROBOT, STEPS = hinge.zoo.space_arm(1), 7


def step(q, qd, tau, h):
    qd = qd + h * ROBOT.alg.forward_dynamics(q, qd, tau)
    return ROBOT.alg.integrate(q, h * qd), qd, ROBOT.alg.kinetic_energy(q, qd)


@pytest.fixture(scope="module")
def motion():
    return DifferentiableRollout(ROBOT.rollout(step, inputs=("tau",)))


def given():
    rng = np.random.default_rng(0)
    start = 1.2 * ROBOT.random_configuration(rng), rng.normal(size=ROBOT.nv)
    return *start, rng.normal(size=(STEPS, ROBOT.nv)), 0.05


def test_both_ways_in_time_agree_with_differences(motion):
    x, rng = given(), np.random.default_rng(1)
    dots = [rng.normal(size=np.shape(a)) for a in x]
    y = motion.rollout(*x)
    (q, qd, tau, h), (dq, dqd, dtau, dh) = x, dots
    results = motion.push(q, qd, dq, dqd, tau, dtau, h, dh)
    changes = [results[2], results[3], results[5]]
    small = 1e-6
    ahead, behind = ([a + s * small * d for a, d in zip(x, dots, strict=True)] for s in (1, -1))
    near = zip(motion.rollout(*ahead), motion.rollout(*behind), strict=True)
    for mine, (a, b) in zip(changes, near, strict=True):
        there = (a - b) / (2 * small)
        assert np.abs(mine - there).max() <= 1e-7 * np.abs(there).max()
    costs = [rng.normal(size=a.shape) for a in y]
    before = [np.concatenate([a[None], b[:-1]]) for a, b in zip(x[:2], y[:2], strict=True)]
    nothing = [np.zeros(ROBOT.nq), np.zeros(ROBOT.nv), np.zeros(())]
    backward = [a[::-1] for a in (*before, x[2], *costs)]
    bars = np.empty((STEPS, ROBOT.nv))
    ends = motion.pull.fill([bars], [*nothing, *backward, np.array(x[3])], (), STEPS, 1)
    total = [*ends[:2], bars[::-1], ends[2]]
    weighed = sum(np.sum(c * d) for c, d in zip(costs, changes, strict=True))
    assert weighed == pytest.approx(sum(np.sum(b * d) for b, d in zip(total, dots, strict=True)))


def test_names_of_each_kind(motion):
    assert (motion.states, motion.inputs, motion.parameters) == (["q", "qd"], ["tau"], ["h"])
    assert motion.recorded == ((ROBOT.nq,), (ROBOT.nv,), ())


def test_shapes_are_looked_at(motion):
    nq, nv = (ROBOT.nq,), (ROBOT.nv,)
    assert motion.lead([(2, *nq), (3, 1, *nv), (STEPS, *nv), ()]) == (3, 2)
    assert motion.steps([nq, nv, (STEPS, *nv), ()], None) == STEPS
    with pytest.raises(ArgumentError, match=r"takes 4 arrays \(q, qd, tau, h\), got 1"):
        motion.lead([nq])
    with pytest.raises(ArgumentError, match=r"tau has shape .*expected shape \(steps, …, "):
        motion.lead([nq, nv, nv, ()])
    with pytest.raises(ArgumentError, match="do not broadcast"):
        motion.lead([(2, *nq), (3, *nv), (STEPS, *nv), ()])
    with pytest.raises(ArgumentError, match=f"how many steps. tau {STEPS}, steps= 3"):
        motion.steps([nq, nv, (STEPS, *nv), ()], 3)

"""How whole motions change: against motions that did change, and forward against adjoint."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import hinge
from hinge import simulate, trajectory_sensitivity, zoo
from hinge.graph.loop import LoopProgram
from hinge.graph.program import Program
from hinge.graph.relay import Relay
from hinge.model.parameters import parameters
from hinge.motion import trajectory_sensitivity as module
from mechanisms import EPS, assert_close, everything

STEPS, DT = 15, 0.02
CASES = [
    ("acrobot", "rk4"),
    ("acrobot", "semi_implicit_euler"),
    ("floating", "semi_implicit_euler"),
]
ROBOTS = {"acrobot": zoo.acrobot(), "floating": zoo.space_arm(1)}


@cache
def case(name, method):
    """A motion, changes of everything it depends on, and the change of the motion."""
    robot, rng = ROBOTS[name], np.random.default_rng(0)
    nv = robot.nv
    start = robot.random_configuration(rng), rng.normal(size=nv)
    taus, f_ext = rng.normal(size=(STEPS, nv)), rng.normal(size=(len(robot.body_names), 6))
    s = trajectory_sensitivity(robot, *start, taus, DT, method, f_ext, ("inertia", "gravity"))
    own = parameters(robot.mechanism)
    d = {
        "dq": rng.normal(size=nv),
        "dqd": rng.normal(size=nv),
        "dtaus": rng.normal(size=(STEPS, nv)),
    }
    d |= {
        "inertia": rng.normal(size=own["inertia"].shape) * own["inertia"],
        "gravity": rng.normal(size=3),
    }
    return robot, s, d, s.forward(**d)


@pytest.mark.parametrize(("name", "method"), CASES)
def test_forward_is_the_difference_of_two_motions(name, method):
    robot, s, d, change = case(name, method)
    own = parameters(robot.mechanism)

    def moved(e):
        return simulate(
            robot,
            robot.integrate(s.q[0], e * d["dq"]),
            s.qd[0] + e * d["dqd"],
            taus=s.taus + e * d["dtaus"],
            duration=STEPS * DT,
            dt=DT,
            method=method,
            f_ext=s.f_ext,
            limits=False,
            inertia=own["inertia"] + e * d["inertia"],
            gravity=own["gravity"] + e * d["gravity"],
        )

    h = 1e-6
    there, back = moved(h), moved(-h)
    assert_close(change.dq, robot.difference(back.q, there.q) / (2 * h), 10 * EPS / h)
    assert_close(change.dqd, (there.qd - back.qd) / (2 * h), 10 * EPS / h)
    assert np.array_equal(change.dq[0], d["dq"]) and np.array_equal(change.dqd[0], d["dqd"])


@pytest.mark.parametrize(("name", "method"), CASES)
def test_adjoint_is_adjoint_to_forward(name, method):
    robot, s, d, change = case(name, method)
    costs = np.random.default_rng(1).normal(size=(2, STEPS + 1, robot.nv))
    g = s.adjoint(*costs)
    one = np.sum(costs * np.array(change))
    parts = [g.q @ d["dq"], g.qd @ d["dqd"], np.sum(g.taus * d["dtaus"])]
    parts += [np.sum(g.numbers[n] * d[n]) for n in ("inertia", "gravity")]
    assert abs(one - sum(parts)) < 20 * EPS * np.abs(parts).sum()
    assert list(g.numbers) == ["gravity", "inertia"]


@pytest.mark.parametrize("lead", [(), (3,)])
def test_stages_in_a_loop_are_the_step_as_a_whole(lead, monkeypatch):
    """Forward and backward, with forces on bodies, numbers and a base that floats."""
    robot, rng = hinge.Robot(ROBOTS["floating"].mechanism), np.random.default_rng(1)
    nv = robot.nv
    start = robot.random_configuration(rng, lead), rng.normal(size=(*lead, nv))
    taus, f_ext = rng.normal(size=(STEPS, *lead, nv)), rng.normal(size=(robot.n_bodies, 6))
    dq, dqd, dtaus = rng.normal(size=nv), rng.normal(size=nv), rng.normal(size=taus.shape)
    cost = rng.normal(size=(2, STEPS + 1, *lead, nv))
    found = []
    for most in (10**6, 0):
        monkeypatch.setattr(module, "MOST_WHOLE", most)
        robot = hinge.Robot(robot.mechanism)
        s = trajectory_sensitivity(robot, *start, taus, DT, "rk4", f_ext, ("gravity",))
        assert bool(s._rows) == (most == 0)
        back, change = s.adjoint(*cost), s.forward(dq, dqd, dtaus, gravity=np.ones(3))
        found.append([*change, *back[:3], back[3]["gravity"]])
    for whole, looped in zip(*found, strict=True):
        assert whole.shape == looped.shape
        assert_close(looped, whole, 1e4 * EPS)


def damped(robot):
    """The same with springs and losses at all joints."""
    mech = robot.mechanism
    bodies = [
        replace(b, joint=replace(b.joint, stiffness=0.3, damping=0.2)) if k else b
        for k, b in enumerate(mech.bodies)
    ]
    return replace(mech, bodies=tuple(bodies))


@pytest.mark.parametrize(
    "method", [pytest.param("rk4", marks=pytest.mark.long), "semi_implicit_euler"]
)
@pytest.mark.parametrize(
    ("name", "lead"), [("everything", (2,)), pytest.param("snake", (), marks=pytest.mark.long)]
)
def test_loops_over_bodies_are_the_step_in_one_piece(name, lead, method, monkeypatch):
    """Both ways of one mechanism: forward and backward, with springs, losses and outer forces."""
    mech = damped({"everything": everything(), "snake": zoo.snake(44)}[name])
    robot, rng = hinge.Robot(mech), np.random.default_rng(4)
    start = robot.random_configuration(rng), rng.normal(size=(*lead, robot.nv))
    taus, f_ext = rng.normal(size=(4, *lead, robot.nv)), rng.normal(size=(robot.n_bodies, 6))
    d, costs = rng.normal(size=(2, robot.nv)), rng.normal(size=(2, 5, *lead, robot.nv))
    found = []
    for long in (False, True):
        monkeypatch.setattr(module, "_is_for_loops", lambda *_, long=long: long)
        s = trajectory_sensitivity(hinge.Robot(mech), *start, taus, 1e-3, method, f_ext)
        found.append([*s.forward(*d, taus), *s.adjoint(*costs)[:3]])
        assert isinstance(s._push.scan.step, Relay) == isinstance(s._pull.scan.step, Relay) == long
    for whole, looped in zip(*found, strict=True):
        assert_close(looped, whole, 1e5 * EPS)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_motions_of_long_mechanisms_change_in_loops(method, monkeypatch):
    """Against motions that did change; no part of a step has the dynamics unrolled."""
    monkeypatch.setattr(module, "MOST_STRAIGHT", 40)
    robot, rng = zoo.snake(60), np.random.default_rng(5)
    nv, h = robot.nv, 1e-5
    q, qd, taus = robot.random_configuration(rng), rng.normal(size=nv), rng.normal(size=(6, nv))
    dq, dqd, costs = *rng.normal(size=(2, nv)), rng.normal(size=(2, 7, nv))
    s = trajectory_sensitivity(robot, q, qd, taus, 1e-3, method)
    change, back = s.forward(dq, dqd), s.adjoint(*costs)
    there, before = (
        trajectory_sensitivity(robot, robot.integrate(q, e * dq), qd + e * dqd, taus, 1e-3, method)
        for e in (h, -h)
    )
    assert_close(change.dq, robot.difference(before.q, there.q) / (2 * h), 1e3 * EPS / h)
    assert_close(change.dqd, (there.qd - before.qd) / (2 * h), 1e3 * EPS / h)
    felt = costs * np.array(change)
    assert abs(felt.sum() - back.q @ dq - back.qd @ dqd) < 1e5 * EPS * np.abs(felt).sum()
    for rollout in (s._push, s._pull):
        glue, sweeps = rollout.scan.step.parts[::2], rollout.scan.step.parts[1::2]
        assert all(isinstance(part.program, LoopProgram) for part in sweeps)
        assert all(sum(part.program.ops) < 60 * nv for part in glue)


def test_steps_of_one_stage_are_loops_later_than_others():
    few, many = (zoo.snake(n).mechanism for n in (module.MOST_STRAIGHT, module.MOST_STRAIGHT + 1))
    assert not module._is_for_loops(few, "semi_implicit_euler")
    assert module._is_for_loops(many, "semi_implicit_euler")
    assert module._is_for_loops(few, "rk4")
    assert not module._is_for_loops(zoo.snake(40).mechanism, "rk4")


def test_numbers_of_long_mechanisms_are_unrolled():
    robot = zoo.snake(42)
    zero = np.zeros(robot.nv)
    still = robot.neutral(), zero, np.zeros((2, robot.nv))
    s = trajectory_sensitivity(robot, *still, 1e-3, "semi_implicit_euler", numbers="gravity")
    assert isinstance(s._pull.scan.step, Program)
    change = s.forward(gravity=[0.0, 0.0, 1.0])
    assert_close(change.dqd[-1][5], 2e-3, 1e4 * EPS)


def test_parts_add_up():
    _, s, d, change = case("acrobot", "rk4")
    parts = [s.forward(**{name: x}) for name, x in d.items()]
    assert_close(sum(p.dq for p in parts), change.dq, 20 * EPS)
    assert_close(sum(p.dqd for p in parts), change.dqd, 20 * EPS)


def test_one_step_is_the_linear_model_of_the_step():
    """Semi-implicit Euler: δq̇ ← δq̇ + h(…), δq ← δq + h δq̇, for hinges."""
    robot, h = zoo.acrobot(), 0.01
    q, qd, tau, dq, dqd = np.random.default_rng(2).normal(size=(5, 2))
    s = trajectory_sensitivity(robot, q, qd, tau[None], h, "semi_implicit_euler")
    got = s.forward(dq, dqd)
    speed = dqd + h * robot.forward_dynamics_jvp(q, qd, tau, dq, dqd, np.zeros(2))
    assert_close(got.dqd[1], speed, 10 * EPS)
    assert_close(got.dq[1], dq + h * speed, 10 * EPS)


def test_batches_are_motions_side_by_side():
    robot, rng = zoo.acrobot(), np.random.default_rng(3)
    q, qd, taus = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.normal(size=(5, 4, 2))
    s = trajectory_sensitivity(robot, q, qd, taus, 0.01)
    one = trajectory_sensitivity(robot, q[2], qd[2], taus[:, 2], 0.01)
    many, alone = s.forward(dq=np.ones(2)), one.forward(dq=np.ones(2))
    assert many.dq.shape == (6, 4, 2)
    assert_close(many.dq[:, 2], alone.dq, 10 * EPS)
    costs = rng.normal(size=(2, 6, 4, 2))
    many, alone = s.adjoint(*costs), one.adjoint(*costs[:, :, 2])
    assert_close(many.taus[:, 2], alone.taus, 10 * EPS)
    assert_close(many.q[2], alone.q, 10 * EPS)


def test_wrong_arguments():
    robot, x = zoo.acrobot(), np.zeros(2)
    with pytest.raises(hinge.ArgumentError, match="method is 'euler'; expected one of 'rk4'"):
        trajectory_sensitivity(robot, x, x, np.zeros((3, 2)), method="euler")
    with pytest.raises(hinge.ArgumentError, match="numbers is 'mass'; expected one of 'gravity'"):
        trajectory_sensitivity(robot, x, x, np.zeros((3, 2)), numbers=("mass",))
    with pytest.raises(hinge.ArgumentError, match="taus has shape"):
        trajectory_sensitivity(robot, x, x, np.zeros(2))
    s = trajectory_sensitivity(robot, x, x, np.zeros((3, 2)))
    with pytest.raises(hinge.ArgumentError, match=r"dq has shape \(3, 2\); expected \(4, 2\)"):
        s.adjoint(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(hinge.ArgumentError, match="inertia is not among the .* name it in numb"):
        s.forward(inertia=np.zeros((2, 10)))
    for taus in ("abc", [[0.0, 1.0], [0.0]], np.zeros((3, 2), complex)):
        with pytest.raises(hinge.ArgumentError, match="taus (is 'abc'|has dtype|is ragged)"):
            trajectory_sensitivity(robot, x, x, taus)
    for value in ("abc", [[0.0, 1.0], [0.0]], np.zeros(2, complex)):
        with pytest.raises(hinge.ArgumentError, match="dq (is 'abc'|has dtype|is ragged)"):
            s.forward(dq=value)
        with pytest.raises(hinge.ArgumentError, match="dq (is 'abc'|has dtype|is ragged)"):
            s.adjoint(value, np.zeros((4, 2)))
    with pytest.raises(hinge.ArgumentError, match="needs a Robot, got Mechanism; .*hinge.Robot"):
        trajectory_sensitivity(robot.mechanism, x, x, np.zeros((3, 2)))


def test_what_is_not_finite_spoils_only_its_own_motion():
    robot, x = zoo.acrobot(), np.zeros(2)
    one = trajectory_sensitivity(robot, x, x, np.zeros((3, 2)))
    with pytest.raises(hinge.SingularError, match="a change that was given is not"):
        one.forward(dtaus=np.full((3, 2), np.nan))
    cost = np.zeros((4, 2))
    cost[2, 0] = np.inf
    with pytest.raises(hinge.SingularError, match="the result is not finite"):
        one.adjoint(cost, np.zeros((4, 2)))
    change = one.forward(dq=[[1.0, 0.0], [np.nan, 0.0]]).dq
    assert np.isfinite(change[:, 0]).all() and np.isnan(change[:, 1, 0]).all()


def test_changes_have_the_dtype_of_the_robot():
    robot = hinge.Robot(zoo.acrobot().mechanism, dtype=np.float32)
    s = trajectory_sensitivity(robot, [0.1, 0.2], [0, 0], np.zeros((3, 2)), numbers="gravity")
    found = [*s.forward(dq=[1, 0]), *s.adjoint(np.ones((4, 2)), np.ones((4, 2)))[:3]]
    assert {x.dtype for x in found} == {np.dtype(np.float32)}
    assert tuple(s.numbers) == ("gravity",)

"""Programs that hand arrays on give what their parts give in turn."""

import numpy as np

from hinge import zoo
from hinge.graph.interpret import interpret
from hinge.graph.relay import trace_relay
from hinge.graph.scan import Scan
from hinge.runtime.rollout import Rollout
from loop_cases import looped
from mechanisms import EPS, assert_close


def swinging(robot, twice):
    """A step of time with forward dynamics in it as loops, once or twice."""
    program = looped(robot.mechanism, "forward_dynamics")
    still = np.zeros((robot.mechanism.n_bodies, 6))

    def step(call, q, qd, dt):
        # some of what is handed on is a constant, and some of it twice the same
        (a,) = call(program, q, qd, np.array([0.5, *-qd[1:]]), still)
        if twice:
            (b,) = call(program, q + dt * qd, qd + dt * a, -qd, still)
            a = 0.5 * (a + b)
        return q + dt * qd, qd + dt * a

    return trace_relay(step, [(robot.nq,), (robot.nv,), ()], "swinging")


def test_a_relay_is_its_parts_in_turn():
    robot = zoo.arm(5)
    rng = np.random.default_rng(0)
    for twice in (False, True):
        relay = swinging(robot, twice)
        assert (
            len(relay.parts) == 3 + 2 * twice and relay.digest != swinging(zoo.arm(4), twice).digest
        )
        q, qd = rng.normal(size=(2, 5))
        tau = np.array([0.5, *-qd[1:]])
        expected = robot.forward_dynamics(q, qd, tau)
        if twice:
            later = robot.forward_dynamics(q + 0.01 * qd, qd + 0.01 * expected, -qd)
            expected = 0.5 * (expected + later)
        new = interpret(relay, [q, qd, np.array(0.01)])
        assert_close(new[0], q + 0.01 * qd, 10 * EPS)
        assert_close(new[1], qd + 0.01 * expected, 1000 * EPS)


def test_what_is_called_again_is_one_call():
    robot = zoo.arm(5)
    program = looped(robot.mechanism, "forward_dynamics")
    still = np.zeros((robot.mechanism.n_bodies, 6))

    def step(call, q, qd):
        first, again, other = (call(program, q, x, qd, still)[0] for x in (qd, 1.0 * qd, 2 * qd))
        return first + again, other

    relay = trace_relay(step, [(5,), (5,)], "again")
    assert len(relay.parts) == 5
    q, qd = np.random.default_rng(2).normal(size=(2, 5))
    twice, _ = interpret(relay, [q, qd])
    assert_close(twice, 2 * robot.forward_dynamics(q, qd, qd), 1000 * EPS)


def test_machine_code_of_a_relay_is_what_it_means():
    """Many steps, of one sample and of several."""
    robot, rng = zoo.arm(5), np.random.default_rng(1)
    scan = Scan(swinging(robot, True), 2, recorded=(0, 1))
    shapes = {"q": (5,), "qd": (5,), "dt": ()}
    rollout = Rollout(scan, shapes, 2)
    for lead in ((), (9,)):
        q, qd = rng.normal(size=(2, *lead, 5))
        got = rollout(q, qd, 0.01, steps=7)
        expected = interpret(scan, [q, qd, np.full(lead, 0.01)], steps=7)
        for ours, meant in zip(got, expected, strict=True):
            assert_close(ours, meant, 1e4 * EPS)

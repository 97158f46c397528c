"""Functions that call sweeps, differentiated: as if the sweeps had been part of their graphs."""

from functools import partial

import numpy as np
import pytest

from hinge import algorithms, zoo
from hinge.functions.derivatives import jvp, vjp
from hinge.functions.through_sweeps import pulled_through, pushed_through
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.graph.relay import trace_relay
from hinge.robot.sweeps import Sweeps
from mechanisms import EPS, assert_close, everything

ROBOTS = {"arm": zoo.arm(3), "everything": everything()}


def twice(mech, sweeps, call, dv, qd, tau):
    """Accelerations, and those after a step with them; one more that nothing depends on."""
    q = algorithms.integrate(mech, algorithms.neutral(mech), dv)

    def answered(*state):
        if call is None:
            return algorithms.forward_dynamics(mech, *state)
        return call(sweeps.of(mech, "forward_dynamics", ("q", "qd", "tau")), *state)[0]

    a = answered(q, qd, tau)
    answered(q, 2 * qd, tau)
    later = algorithms.integrate(mech, q, 0.1 * qd)
    return qd + 0.1 * a, answered(later, qd * a, tau - 0.3 * a)


def derivative(robot, kind):
    """The same with its sweeps in the graph and called: two programs, of primals and directions."""
    mech, nv = robot.mechanism, (robot.nv,)
    fn = partial(twice, mech, Sweeps())
    plain, through = {
        "push": (jvp, lambda call, x, d: sum(pushed_through(fn, call, x, d), ())),
        "pull": (vjp, lambda call, x, d: pulled_through(fn, call, x, d)),
    }[kind]
    count = 3 if kind == "push" else 2
    shapes = [nv] * (3 + count)

    def whole(*given):
        x, d = given[:3], given[3:]
        values = fn(None, *x) if kind == "push" else ()
        return *values, *plain(partial(fn, None))(x, d)

    called = trace_relay(lambda call, *given: through(call, given[:3], given[3:]), shapes, kind)
    return trace(whole, shapes), called


@pytest.mark.parametrize("kind", ["push", "pull"])
@pytest.mark.parametrize("name", ROBOTS)
def test_calls_are_differentiated_as_if_they_were_part_of_the_graph(name, kind):
    whole, called = derivative(ROBOTS[name], kind)
    rng = np.random.default_rng(0)
    given = list(rng.normal(size=(len(whole.inputs), *whole.inputs[0])))
    expected, got = interpret(whole, given), interpret(called, given)
    assert len(got) == len(expected) == (4 if kind == "push" else 3)
    for x, y in zip(got, expected, strict=True):
        assert_close(x, y, 1e5 * EPS)


def test_backward_only_what_is_needed_is_run():
    """The first sweep, for the state of the second, and the gradients of all three."""
    _, called = derivative(ROBOTS["arm"], "pull")
    sweeps = [part.program.name for part in called.parts[1::2]]
    assert sweeps == ["forward_dynamics", *["forward_dynamics_vjp"] * 3]

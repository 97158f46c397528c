"""Where values of loops are: little is kept of a body, and what passes on needs no more room."""

import numpy as np
import pytest

from hinge import zoo
from hinge.emit.llvm import fast
from hinge.emit.rows import Rows
from hinge.graph.interpret import interpret
from hinge.runtime.kernel import Kernel
from loop_cases import ARRAYS, looped, swapping
from mechanisms import EPS, assert_close, random_state


def rows(n, name="forward_dynamics"):
    return Rows(looped(zoo.snake(n).mechanism, name))


def test_of_a_long_chain_little_is_kept_and_passing_rows_do_not_grow():
    short, long = (rows(n).areas for n in (20, 40))
    assert (long["kept"].size - short["kept"].size) / 20 == 9
    for name in ("inward", "outward"):
        assert short[name].size == long[name].size


@pytest.mark.parametrize("name", ARRAYS)
def test_results_are_written_where_they_belong(name):
    assert not rows(9, name).gathered


def test_results_that_not_every_body_has_are_gathered():
    assert [i for i, _ in Rows(swapping()[0]).gathered] == [4]


def test_values_that_share_a_place_are_never_there_together():
    """At one time, that is, in one body."""
    found = rows(9)
    kept = [
        (p.at, found.uses[e], owners(found, e)) for e, p in found.places.items() if p.area == "kept"
    ]
    together = [
        (a, b)
        for at, a, mine in kept
        for other, b, yours in kept
        if at == other and a is not b and a.first < b.last and b.first < a.last and mine & yours
    ]
    assert len({at for at, _, _ in kept}) < len(kept) and not together


def owners(found, entry):
    """The roles of the bodies that have an entry: those whose steps touch it, or all of them."""
    if found.uses[entry].by_children:
        return set(range(len(found.program.stages[0].steps)))
    return {
        role
        for stage in found.program.stages
        for role, step in enumerate(stage.steps)
        if entry in {(x.which, x.entry) for x in step.used if x.kind == "slot"}
        or entry in {(s.slot, s.entry) for s in step.stores}
    }


def test_one_sample_that_the_stack_should_not_hold(monkeypatch):
    """Then the call works in memory of its own, and calls do not disturb each other."""
    monkeypatch.setattr(fast, "MOST_STACK", 0)
    robot = zoo.tree(4, 12)
    program = looped(robot.mechanism, "inverse_dynamics")
    kernel = Kernel(program)
    for seed in range(4):
        s = random_state(robot, seed)
        given = s.q, s.qd, s.qdd, np.asarray(s.f_ext)
        assert_close(kernel(*given), interpret(program, list(given))[0], 1000 * EPS)

"""The workspace: a machine with few registers does what it is told and gets it right."""

from itertools import groupby

import numpy as np
import pytest

from hinge import algorithms
from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS, SINCOS
from hinge.graph.program import trace
from hinge.graph.schedule import ordered, turned_together
from hinge.graph.workspace import step_plan
from mechanisms import EPS, ROBOTS, random_state


@pytest.fixture(scope="module")
def program():
    mech = ROBOTS["quadruped"].mechanism
    return trace(
        lambda q, qd, qdd: algorithms.inverse_dynamics(mech, q, qd, qdd),
        [(mech.nq,), (mech.nv,), (mech.nv,)],
    )


class Machine:
    """Executes a plan with registers, a workspace and results; counts what is kept and moved."""

    def __init__(self, program, plan, inputs, workspace=()):
        self.wanted, self.plan, self.inputs = {v.id for v in program.values}, plan, inputs
        self.workspace = [*workspace, *[np.nan] * (plan.slots - len(workspace))]
        self.results, self.held = {}, {}
        self.stores = self.fetches = self.most = 0
        for piece in plan.pieces:
            for step in piece:
                for node in step.nodes:
                    self.step(node, step.gone if node is step.node else ())
            assert not self.held, "something is held from one piece to the next"

    def step(self, node, gone):
        self.held[node.id] = OPERATIONS[node.op].value(*map(self.value, node.args))
        if node.id in self.plan.slot:
            self.stores += 1
            self.workspace[self.plan.slot[node.id]] = self.held[node.id]
        if node.id in self.wanted:
            self.results[node.id] = self.held[node.id]
        for id in gone:
            self.held.pop(id, None)
        if node.op != "mul":  # a product may be one operation with the sum that follows
            self.most = max(self.most, len(self.held))

    def value(self, node):
        if node.op == "const":
            return node.value
        if node.id not in self.held:
            self.fetches += 1
            self.held[node.id] = self.fetched(node)
        return self.held[node.id]

    def fetched(self, node):
        if node.op == "input":
            return self.inputs[node.value]
        if node.id in self.plan.slot:
            return self.workspace[self.plan.slot[node.id]]
        return self.results[node.id]


def planned(program, registers, size=10**6, traffic=np.inf):
    wanted = {v.id for v in program.values}
    return step_plan(ordered(program.values), size, registers, wanted, traffic=traffic)


def run(program, registers, size=10**6, traffic=np.inf):
    s = random_state(ROBOTS["quadruped"], 1)
    plan = planned(program, registers, size, traffic)
    machine = Machine(program, plan, np.concatenate([s.q, s.qd, s.qdd]))
    (expected,) = interpret(program, [s.q, s.qd, s.qdd])
    results = np.array([machine.results[v.id] for v in program.values])
    np.testing.assert_allclose(results, expected, rtol=0, atol=100 * EPS * np.abs(expected).max())
    return machine


@pytest.mark.parametrize("registers", [1, 2, 5, 14, 30, 10**4])
@pytest.mark.parametrize("size", [1, 7, 300, 10**6])
def test_a_machine_with_so_many_registers_gets_the_right_numbers(program, registers, size):
    machine = run(program, registers, size)
    # what the last operation made may be on its way to memory
    assert machine.most <= registers + 1


@pytest.mark.parametrize("size", [1, 2, 7, 50, 1000])
def test_pieces_hand_values_on(program, size):
    """With registers enough only what a later piece needs is stored, and slots are used again."""
    plan = run(program, None, size).plan
    assert all(len(piece) <= size for piece in plan.pieces)
    assert [s.node for piece in plan.pieces for s in piece] == ordered(program.values).nodes
    made = [{step.node.id for step in piece} for piece in plan.pieces]
    for here, piece in zip(made, plan.pieces, strict=True):
        for a in (a for step in piece for a in step.node.args if a.op not in ("const", "input")):
            assert a.id in here or a.id in plan.slot or a in program.values
    assert plan.slots < len(plan.slot) / 2 if len(plan.pieces) > 5 else plan.slots <= len(plan.slot)


def test_pieces_end_where_much_was_stored_and_fetched(program):
    machine = run(program, 14, traffic=100)
    assert 3 < len(machine.plan.pieces) <= (machine.stores + machine.fetches) / 50
    assert len(run(program, 10**4, traffic=10**3).plan.pieces) == 1


def test_more_registers_mean_less_to_store_and_to_fetch(program):
    machines = [run(program, n) for n in (4, 8, 16, 32, 10**4)]
    for few, many in zip(machines, machines[1:], strict=False):
        assert few.stores > many.stores and few.fetches > many.fetches
    everything = {n.id for n in program.nodes if n.op == "input"}
    assert machines[-1].stores == 0 and machines[-1].fetches == len(everything)


def test_the_value_that_is_needed_last_leaves():
    """x0 is needed at the end only: it goes, and comes back."""
    program = trace(lambda x: x[0] * x[1] * x[1] * x[2] * x[2] * x[0], [(3,)])
    machine = Machine(program, planned(program, 2), [2.0, 3.0, 5.0])
    assert list(machine.results.values()) == [4 * 9 * 25]
    assert machine.stores == 0 and machine.fetches == 4


def test_a_product_stands_before_the_sum_it_becomes_one_with():
    program = trace(lambda x: [x[0] * x[1], x[2] * x[3] + x[4] * x[0] + x[1] * x[2]], [(5,)])
    (piece,) = planned(program, 30).pieces
    ops = [[node.op for node in step.nodes] for step in piece]
    # the first is a result of its own, the second stays a product
    assert ops == [["mul"], ["mul"], ["mul", "add"], ["mul", "add"]]
    assert all(step.product.id in step.gone for step in piece[2:])


def test_slots_are_used_again(program):
    plan = planned(program, 14)
    assert plan.slots < 0.7 * len(plan.slot)
    assert max(plan.slot.values()) < plan.slots


def test_what_is_ready_is_fetched_where_it_is():
    program = trace(lambda x: np.sin(x[0]) * x[1] + x[0], [(2,)])
    ready = {n.id: 3 for n in program.nodes if n.op == "sin"}
    wanted = {v.id for v in program.values}
    plan = step_plan(ordered(program.values, ready), 100, 8, wanted, ready, 4)
    assert plan.slots == 4 and plan.slot == ready
    workspace = [0.0, 0.0, 0.0, 0.25]
    assert list(Machine(program, plan, [1.0, 2.0], workspace).results.values()) == [1.5]


def turning():
    """Angles that need sines of others, in two layers of two each."""

    def fn(x):
        first = np.sin(x[:2] + 1) * x[2]
        second = np.cos(first * x[3] + first[::-1])
        return np.sin(second * x[3] - x[2]) * second * first

    return trace(fn, [(4,)])


def test_sines_that_need_no_other_stand_side_by_side():
    program = turning()
    order = ordered(program.values)
    together = turned_together(order)
    assert {n.id for n in together.nodes} == {n.id for n in order.nodes}
    place = {node.id: i for i, node in enumerate(together.nodes)}
    assert all(place[a.id] < place[n.id] for n in together.nodes for a in n.args if a.id in place)
    turned = [node.op in SINCOS for node in together.nodes]
    assert [len([*run]) for is_turned, run in groupby(turned) if is_turned] == [2, 2, 2]
    assert [a.id for a in together.arguments] == [a.id for n in together.nodes for a in n.args]
    plain = ordered(trace(lambda x: x[0] * x[1], [(2,)]).values)
    assert turned_together(plain) is plain


def test_operations_apart_are_pieces_of_their_own():
    program, x = turning(), np.array([0.3, -0.4, 0.7, 1.1])
    wanted = {v.id for v in program.values}
    plan = step_plan(turned_together(ordered(program.values)), 5, 8, wanted, apart=SINCOS)
    kinds = [{node.op in SINCOS for step in piece for node in step.nodes} for piece in plan.pieces]
    assert all(len(kind) == 1 for kind in kinds) and sum(True in kind for kind in kinds) == 3
    machine, (expected,) = Machine(program, plan, x), interpret(program, [x])
    assert [machine.results[v.id] for v in program.values] == pytest.approx(list(expected), abs=0)


def test_nothing_to_compute_is_no_piece():
    assert planned(trace(lambda x: (x, 1.0), [(2,)]), 8).pieces == []

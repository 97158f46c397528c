"""Programs: tracing, counting, telling apart, and putting in order."""

from typing import NamedTuple

import numpy as np
import pytest

import hinge
from hinge import TraceError, algorithms
from hinge.graph.interpret import interpret
from hinge.graph.program import Program, trace
from hinge.graph.scalar import Graph
from hinge.graph.schedule import depth_first, first_angles, ordered
from hinge.graph.workspace import step_plan
from mechanisms import EPS, ROBOTS


def norm(x):
    return np.sqrt(x @ x)


# tracing


def test_inputs_are_numbered_through_all_arguments():
    program = trace(lambda a, b, c: (c, b.T, a), [(2,), (2, 2), ()])
    assert [repr(v) for v in program.values] == ["x6", "x2", "x4", "x3", "x5", "x0", "x1"]
    assert program.inputs == ((2,), (2, 2), ()) and program.outputs == ((), (2, 2), (2,))
    assert program.input_sizes == [2, 4, 1] and program.output_sizes == [1, 4, 2]


def test_what_is_nan_for_certain_spoils_its_sample():
    """A constant is not looked at when a sample's numbers are; infinity stays what it is."""
    values = trace(lambda x: np.array([x[0], np.nan, np.inf]), [(2,)]).values
    assert [v.op for v in values] == ["input", "mul", "const"]
    assert trace(lambda: np.nan, []).values[0].op == "const"


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


def test_the_form_of_the_results_is_kept():
    assert trace(norm, [(3,)]).form is None
    assert trace(lambda x: (x,), [(3,)]).form is tuple
    assert trace(lambda x: Pair(x, x), [(3,)]).form is Pair
    assert trace(lambda x: [x[0], 1, np.float32(2)], [(3,)]).outputs == ((3,),)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (None, "NoneType"),
        ({"a": 1}, "dict"),
        ("text", "str"),
        (1j, "complex"),
        ([True], "bool"),
        (([1.0], [None]), "NoneType"),
    ],
)
def test_results_are_numbers(result, told):
    with pytest.raises(TraceError, match=f"step returned a {told}.* among its results"):
        trace(lambda x: result, [(2,)], "step")


@pytest.mark.parametrize("fn", [np.cbrt, np.spacing, lambda x: np.nextafter(x, 1)])
def test_what_traced_scalars_do_not_have_is_told(fn):
    with pytest.raises(TraceError, match="step cannot be traced: .*the page on compiling"):
        trace(fn, [(2,)], "step")


def test_errors_of_the_function_itself_stay_as_they_are():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        trace(lambda x, y: x, [(2,)], "step")


def test_a_result_of_another_trace_is_refused():
    stray = Graph().input()
    with pytest.raises(TraceError, match="two traces"):
        trace(lambda x: stray, [(2,)])


def test_operations_are_counted():
    def fn(x, y):
        d = x[0] * x[1] + x[2] - y / x[0] + 1 / x[0]
        angles = np.sin(x[1]) * np.cos(x[1]) * np.cos(x[0])
        others = hinge.where(hinge.less(y, d), abs(y), np.sqrt(d)) + hinge.atan2(y, d)
        return d * angles + hinge.minimum(others, hinge.maximum(-d, 3.0)), x[0] * x[1]

    ops = trace(fn, [(3,), ()]).ops
    assert ops == (5, 5, 1, 2, 7)
    assert (ops.multiplications, ops.additions, ops.divisions, ops.sincos, ops.others) == ops


# telling programs apart


def test_the_digest_is_that_of_the_arithmetic():
    same = trace(norm, [(3,)])
    assert trace(lambda y: np.sqrt(y @ y), [(3,)], "other").digest == same.digest
    # what is traced and then not used leaves no trace
    assert trace(lambda x: (np.sin(x), norm(x))[1], [(3,)]).digest == same.digest
    others = [
        trace(norm, [(2,)]),
        trace(lambda x: norm(x[0]), [(1, 3)]),
        trace(lambda x: [norm(x)], [(3,)]),
        trace(lambda x: (norm(x),), [(3,)]),
        trace(lambda x: x @ x, [(3,)]),
        trace(lambda x: norm(x[::-1]), [(3,)]),
        trace(lambda x: norm(x) * 2, [(3,)]),
        trace(lambda x: norm(x) * (2 + 2**-51), [(3,)]),
        trace(lambda x, y: norm(x), [(3,), ()]),
        trace(lambda x: x[0] - x[1], [(2,)]),
        trace(lambda x: x[1] - x[0], [(2,)]),
    ]
    assert len({p.digest for p in [same, *others]}) == len(others) + 1


# order


def quadruped_program():
    mech = ROBOTS["quadruped"].mechanism
    return trace(
        lambda q, qd, qdd: algorithms.inverse_dynamics(mech, q, qd, qdd),
        [(mech.nq,), (mech.nv,), (mech.nv,)],
    )


PROGRAM = quadruped_program()


def in_order(values, ready=()):
    return ordered(values, ready).nodes


@pytest.mark.parametrize("listed", [depth_first, in_order])
def test_arguments_come_before_their_uses(listed):
    order = listed(PROGRAM.values)
    place = {node.id: i for i, node in enumerate(order)}
    assert len(place) == len(order)
    needed = {n.id for n in PROGRAM.nodes if n.op not in ("const", "input")}
    assert set(place) == needed
    for node in order:
        assert all(place[a.id] < place[node.id] for a in node.args if a.id in place)


def test_values_are_made_when_they_are_needed():
    """Depth first: of many values that are written down first, few are waiting at a time."""
    program = trace(lambda x: np.sin(x) * x, [(300,)])
    assert step_plan(ordered(program.values), 10).slots <= 4


def test_of_two_orders_the_one_with_less_waiting():
    """Sweeps stay as they were written, results that need little in common are made one by one."""

    def ids(in_order, program):
        return [node.id for node in in_order(program.values)]

    order = ids(in_order, PROGRAM)
    assert order == sorted(order) != ids(depth_first, PROGRAM)
    program = trace(lambda x: np.sin(x) * x, [(300,)])
    assert ids(in_order, program) == ids(depth_first, program)


def test_what_is_ready_is_not_made_again():
    program = trace(lambda x: np.sin(x + 1) * x + np.cos(2 * np.sin(3 * x)), [(2,)])
    angles = first_angles(program.nodes)
    assert [node.op for node in angles] == ["add", "add", "mul", "mul"]
    ready = {n.id for n in program.nodes if n.op == "sin"}
    for order in (in_order(program.values, ready), depth_first(program.values, ready)):
        assert sorted(node.op for node in order) == ["add"] * 2 + ["cos"] * 2 + ["mul"] * 4


# interpreting


def test_interpret_keeps_leading_shape_and_dtype():
    program = trace(lambda A, x: (A @ x, 2.0), [(2, 3), (3,)])
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(4, 5, 2, 3)), rng.normal(size=(4, 5, 3))
    y, two = interpret(program, [A, x])
    assert y.shape == (4, 5, 2) and two.shape == (4, 5) and (two == 2).all()
    np.testing.assert_allclose(y, (A @ x[..., None])[..., 0], rtol=20 * EPS)
    y, two = interpret(program, [A.astype(np.float32), x.astype(np.float32)])
    assert y.dtype == two.dtype == np.float32
    (constant,) = interpret(Program("c", (), ((2,),), (Graph().const(3),) * 2), [])
    assert constant.tolist() == [3, 3]

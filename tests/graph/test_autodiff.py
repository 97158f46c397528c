"""Derivatives: local rules, sweeps on graphs, and functions of functions on robots."""

import inspect
from functools import partial
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

import hinge
from hinge.algebra.small import cos, sin, sqrt
from hinge.errors import ArgumentError, TraceError
from hinge.functions.derivatives import grad, hessian, jacobian, jvp, vjp
from hinge.graph.autodiff import adjoints, jacobian_nodes, substitute, tangents
from hinge.graph.functions import less, maximum, minimum, where
from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS
from hinge.graph.program import Program, trace
from hinge.graph.scalar import Graph, reachable
from mechanisms import EPS, ROBOTS, assert_close, complex_jacobian, random_state

EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sqrt": mpmath.sqrt,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "atan2": mpmath.atan2,
    "abs": abs,
    "min": min,
    "max": max,
    **{op: getattr(mpmath, op) for op in ("exp", "expm1", "log", "log1p", "sinh", "cosh", "tanh")},
    **{op: getattr(mpmath, op) for op in ("asinh", "acosh", "atanh", "tan", "asin", "acos")},
    "hypot": mpmath.hypot,
    "pow": mpmath.power,
    "fmod": lambda a, b: a - b * int(a / b),
    "floor": mpmath.floor,
    "rint": mpmath.nint,
    "sign": mpmath.sign,
    "less": lambda a, b: mpmath.mpf(a < b),
    "at_most": lambda a, b: mpmath.mpf(a <= b),
    "equal": lambda a, b: mpmath.mpf(a == b),
    "where": lambda c, a, b: a if c else b,
}


def numbers(values, point):
    """What nodes are worth where the inputs are the point."""
    values = list(values)
    program = Program("values", ((len(point),),), ((len(values),),), tuple(values))
    return interpret(program, [np.asarray(point, dtype=float)])[0]


def precise(values, point):
    """The same, in many digits."""
    worth = {}
    for node in reachable(values):
        if node.op == "const":
            worth[node.id] = mpmath.mpf(node.value)
        elif node.op == "input":
            worth[node.id] = point[node.value]
        else:
            worth[node.id] = EXACT[node.op](*(worth[a.id] for a in node.args))
    return [worth[v.id] for v in values]


def differences(values, point, h="1e-20"):
    """∂value/∂input by central differences in 60 digits: exact to 40, away from kinks."""
    with mpmath.workdps(60):
        columns, step = [], mpmath.mpf(h)
        for j in range(len(point)):
            sides = []
            for side in (step, -step):
                x = [mpmath.mpf(float(p)) for p in point]
                x[j] += side
                sides.append(precise(values, x))
            columns.append([float((a - b) / (2 * step)) for a, b in zip(*sides, strict=True)])
        return np.array(columns).T


def leaves(graph, n):
    return [graph.input() for _ in range(n)]


# local rules


@pytest.mark.parametrize("op", OPERATIONS)
def test_rule_is_the_derivative(op):
    rng = np.random.default_rng(len(op))
    for _ in range(20):
        point = rng.uniform(-3, 3, size=OPERATIONS[op].arity)
        if op in ("sqrt", "log", "log1p", "acosh", "pow"):
            point = np.abs(point) + (op == "acosh")
        if op in ("asin", "acos", "atanh"):
            point = point / 3
        graph = Graph()
        # interned as it is, since a quotient would be folded into a product
        node = graph.intern(op, tuple(leaves(graph, OPERATIONS[op].arity)))
        slopes = OPERATIONS[op].slopes
        partials = [s(node) if callable(s) else graph.const(s or 0) for s in slopes]
        assert_close(numbers(partials, point), differences([node], point)[0], 8 * EPS)


def test_kinks_take_the_documented_side():
    assert grad(abs)(0.0) == grad(abs)(-0.0) == 0
    for fn in (minimum, maximum):
        assert [float(g) for g in grad(fn, (0, 1))(2.0, 2.0)] == [1, 0]
        # one that moves alone is followed, whichever was traced first
        assert grad(fn, 0)(2.0, 2.0) == grad(fn, 1)(2.0, 2.0) == 1
        assert grad(lambda x, f=fn: f(x, 0))(0.0) == grad(lambda x, f=fn: f(0, x))(0.0) == 1
        assert grad(lambda x, f=fn: grad(lambda y: f(y, x))(x) + 0 * x, 0)(3.0) == 0
    assert [float(g) for g in grad(less, (0, 1))(2.0, 2.0)] == [0, 0]
    slopes = grad(lambda c, x: where(c, 2 * x, 3 * x), (0, 1))
    assert [float(g) for g in slopes(1.0, 5.0)] == [0, 2]
    assert [float(g) for g in slopes(0.0, 5.0)] == [0, 3]


def test_root_of_zero_is_infinitely_steep():
    assert grad(sqrt)(0.0) == np.inf


def test_derivatives_share_what_is_there():
    """cos x is the other half of the sincos; √x and 1/x give their slopes themselves."""
    ops = trace(grad(lambda x: sin(x) * cos(x)), [()]).ops
    assert ops.sincos == 1
    graph = Graph()
    x = graph.input()
    (slope,) = tangents([x.sqrt()], {x: 1})
    assert [n.op for n in reachable([slope])].count("sqrt") == 1
    (slope,) = tangents([1 / x], {x: 1})
    assert sorted(n.op for n in reachable([slope])) == ["const", "div", "input", "mul", "neg"]


# branches that are not taken

GUARDED = {
    "then": lambda x: where(less(0, x), sqrt(x), 0),
    "else": lambda x: where(less(x, 0), 0, sqrt(x)),
    "sum": lambda x: x + 2 * where(less(0, x), x * sqrt(x), 0),
    "max": lambda x: sqrt(maximum(x, 0)) * 3,
    "min": lambda x: sqrt(-minimum(0, -x)),
    "nested": lambda x: where(less(-2, x), where(less(0, x), sqrt(x), 0), 0),
    "nested, other arms": lambda x: where(less(x, -2), 0, where(less(x, 0), 0, sqrt(x))),
    "nested, mixed": lambda x: where(less(x, -2), 0, where(less(0, x), sqrt(x), 0)),
    "nested, mixed again": lambda x: where(less(-2, x), where(less(x, 0), 0, sqrt(x)), 0),
    "same condition": lambda x: where(less(0, x), where(less(0, x), sqrt(x), 0), 0),
    "chain": lambda x: sqrt(maximum(sqrt(maximum(x, 0)), 0)),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_branch_not_taken_spoils_nothing(name):
    """√ has no slope left of 0 and an infinite one at 0; the branch has derivative 0 there."""
    fn = GUARDED[name]
    there = 1.0 if name == "sum" else 0.0
    right = differences(trace(lambda x: fn(x[0]), [(1,)]).values, [0.7])
    forward, backward = jvp(fn), grad(fn)
    for x, expected in ((-3.0, there), (-1.0, there), (0.7, right.item())):
        assert_close(backward(x), expected, 4 * EPS)
        assert_close(forward((x,), (1.0,)), expected, 4 * EPS)


# sweeps


def random_values(graph, xs, rng, size):
    """The last of many operations on one another, tame enough for any number of them."""
    nodes = [*xs, graph.const(0.5), graph.const(-1.25)]
    make = graph.make
    kinds = [
        lambda a, b, c: a + b,
        lambda a, b, c: a - b,
        lambda a, b, c: a * b.sin(),
        lambda a, b, c: a.cos() * b.cos(),
        lambda a, b, c: -a,
        lambda a, b, c: a / (2 + b * b),
        lambda a, b, c: (0.1 + a * a).sqrt(),
        lambda a, b, c: make("atan2", a, 1 + b.cos() + b * b),
        lambda a, b, c: abs(a),
        lambda a, b, c: make("min", a, b),
        lambda a, b, c: make("max", a, b),
        lambda a, b, c: make("where", make("less", a, b), b * c, c),
    ]
    for _ in range(size):
        a, b, c = (nodes[i] for i in rng.integers(len(nodes), size=3))
        nodes.append(kinds[rng.integers(len(kinds))](a, b, c))
    return nodes[-5:]


@pytest.mark.parametrize("seed", range(20))
def test_forward_is_backward_is_the_jacobian(seed):
    rng = np.random.default_rng(seed)
    graph = Graph()
    xs = leaves(graph, 4)
    values = random_values(graph, xs, rng, 60)
    v, w, point = rng.normal(size=4), rng.normal(size=5), rng.normal(size=4)
    expected = differences(values, point)
    scale = max(1.0, np.abs(expected).max())
    got = numbers(jacobian_nodes(values, xs).ravel(), point).reshape(5, 4)
    assert_close(got, expected, 10 * EPS, scale)
    dots = tangents(values, dict(zip(xs, v, strict=True)))
    assert_close(numbers(dots, point), expected @ v, 20 * EPS, scale)
    bars = adjoints(values, w, xs)
    assert_close(numbers([bars[x] for x in xs], point), w @ expected, 20 * EPS, scale)


def test_jacobian_is_the_same_from_both_ends():
    """Few leaves and many values go forward, few values and many leaves backward."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = Graph()
        xs = leaves(graph, 3)
        values = random_values(graph, xs, rng, 40)
        point = rng.normal(size=3)
        whole = numbers(jacobian_nodes(values, xs).ravel(), point).reshape(5, 3)
        rows = [numbers(jacobian_nodes([v], xs)[0], point) for v in values]
        columns = [numbers(jacobian_nodes(values, [x])[:, 0], point) for x in xs]
        # a tangent with respect to one leaf holds the others still
        assert_close(rows, whole, 4 * EPS)
        assert_close(np.transpose(columns), whole, 4 * EPS)


def test_leaves_need_not_be_inputs():
    graph = Graph()
    x = graph.input()
    y = x.sin()
    z = y * y + x
    assert numbers(tangents([z], {y: 1}), [0.3]) == 2 * np.sin(0.3)
    assert numbers(adjoints([z], [1], [y]).values(), [0.3]) == 2 * np.sin(0.3)
    both = numbers(jacobian_nodes([z], [x, y])[0], [0.3])
    assert_close(both, [1, 2 * np.sin(0.3)], EPS)


def test_inputs_are_the_leaves_unless_named():
    graph = Graph()
    x, y, unused = leaves(graph, 3)
    bars = adjoints([x * y, x], [1, 2])
    assert set(bars) == {x, y} and unused not in bars
    assert list(numbers([bars[x], bars[y]], [3, 5, 0])) == [7, 3]


def test_values_may_be_leaves_constants_and_equal():
    graph = Graph()
    x, y = leaves(graph, 2)
    J = jacobian_nodes([x, x, graph.const(3), x * y], [x, y, x])
    assert numbers(J.ravel(), [2, 7]).reshape(4, 3).tolist() == [
        [1, 0, 1],
        [1, 0, 1],
        [0, 0, 0],
        [7, 2, 7],
    ]
    assert tangents([], {x: 1}) == [] and jacobian_nodes([], [x]).shape == (0, 1)
    assert adjoints([], [], [x])[x].value == 0


def test_derivatives_that_cancel_leave_no_trace():
    graph = Graph()
    x = graph.input()
    (dot,) = tangents([(x + 1) - x], {x: 1})
    assert dot.op == "const" and dot.value == 0


def test_substitute_folds_anew():
    graph = Graph()
    x, y = leaves(graph, 2)
    changed, same = substitute([x * y + x.sin(), y.cos()], {x: graph.const(0)})
    assert changed.op == "const" and changed.value == 0
    assert same is y.cos()


# cost


def total(fn, shapes):
    return sum(trace(fn, shapes).ops)


def chain(graph, n):
    x, y = leaves(graph, 2)
    z = x
    for _ in range(n // 2):
        z = z * y + x
    return x, y, z


@pytest.mark.long
def test_sweeps_are_linear_and_deep_graphs_do_not_overflow():
    made = {}
    for n in (10_000, 100_000):
        graph = Graph()
        x, y, z = chain(graph, n)
        start = graph.count
        (dot,) = tangents([z], {x: 1, y: 1})
        bars = adjoints([z], [1])
        assert jacobian_nodes([z], [x, y])[0, 0] is bars[x]
        made[n] = graph.count - start
        assert substitute([dot], {x: y})[0] is not dot
    assert made[100_000] < 8 * 100_000
    assert made[100_000] < 10.01 * made[10_000]


@pytest.mark.parametrize("name", ["arm", "quadruped", "tree0"])
def test_gradient_costs_a_few_times_the_function(name):
    robot = ROBOTS[name]
    shapes = [(robot.nq,), (robot.nv,), (robot.nv,)]
    energy = total(robot.alg.kinetic_energy, shapes[:2])
    assert total(grad(robot.alg.kinetic_energy, (0, 1)), shapes[:2]) < 5 * energy
    forces = total(robot.alg.inverse_dynamics, shapes)
    forward, backward = jvp(robot.alg.inverse_dynamics), vjp(robot.alg.inverse_dynamics)
    assert total(lambda *a: forward(a[:3], a[3:]), shapes * 2) < 3 * forces
    assert total(lambda *a: backward(a[:3], a[3]), [*shapes, (robot.nv,)]) < 5 * forces


def test_jacobian_goes_the_cheaper_way():
    def many_to_one(x):
        return sum(sin(x[i]) * x[i - 1] for i in range(len(x)))

    def one_to_many(x):
        return np.array([sin(x * (i + 1)) * x for i in range(50)])

    assert total(jacobian(many_to_one), [(50,)]) < 5 * total(many_to_one, [(50,)])
    assert total(jacobian(one_to_many), [()]) < 5 * total(one_to_many, [()])
    # a diagonal is found whichever way
    assert total(jacobian(lambda x: x * x * x), [(50,)]) <= 50 * 7


def test_structural_zeros_stay_constants():
    """∂τ/∂q̈ is zero between joints of different branches, and known to be."""
    for name in ("quadruped", "tree0"):
        robot = ROBOTS[name]
        shapes = [(robot.nq,), (robot.nv,), (robot.nv,)]
        J = np.array(trace(jacobian(robot.alg.inverse_dynamics, 2), shapes).values)
        J = J.reshape(robot.nv, robot.nv)
        bodies = robot.mechanism.bodies
        apart = 0
        for k, body in enumerate(bodies[1:], 1):
            for l, other in enumerate(bodies[1:], 1):
                if not on_the_way(bodies, k, l) and not on_the_way(bodies, l, k):
                    block = J[robot.v_slice(body.joint_name), robot.v_slice(other.joint_name)]
                    assert all(n.op == "const" and n.value == 0 for n in block.ravel())
                    apart += 1
        assert apart > 20


def on_the_way(bodies, k, l):
    """Whether body k is l or between l and the ground."""
    while l > k:
        l = bodies[l].parent
    return l == k


# robots


@pytest.mark.parametrize(
    ("name", "argnum"),
    [(n, i) for n in ("arm", "quadruped", "tree0") for i in range(3)],
)
def test_jacobian_of_inverse_dynamics(name, argnum):
    robot = ROBOTS[name]
    s = random_state(robot, argnum)
    state = [s.q, s.qd, s.qdd]
    shapes = [a.shape for a in state]
    fn = robot.alg.inverse_dynamics
    (got,) = interpret(trace(jacobian(fn, argnum), shapes), state)
    expected = complex_jacobian(
        lambda x: fn(*state[:argnum], x, *state[argnum + 1 :]), state[argnum]
    )
    assert_close(got, expected, 20 * EPS)
    if argnum == 2:
        assert_close(got, robot.alg.mass_matrix(s.q), 20 * EPS)


VECTORS = ["pendulum", "arm", "cartpole", "acrobot", "gripper"]


@pytest.mark.parametrize("name", VECTORS)
def test_energies_give_momenta_forces_and_the_mass_matrix(name):
    robot = ROBOTS[name]
    s = random_state(robot, 3)
    M = robot.alg.mass_matrix(s.q)
    assert_close(grad(robot.alg.kinetic_energy, 1)(s.q, s.qd), M @ s.qd, 20 * EPS)
    assert_close(hessian(robot.alg.kinetic_energy, 1)(s.q, s.qd), M, 20 * EPS)
    assert_close(grad(robot.alg.potential_energy)(s.q), robot.alg.gravity_forces(s.q), 20 * EPS)


def test_lagrange_gives_inverse_dynamics():
    """d/dt ∂T/∂q̇ − ∂(T − U)/∂q = τ."""
    robot = ROBOTS["arm"]
    s = random_state(robot, 4)

    def lagrangian(q, qd):
        return robot.alg.kinetic_energy(q, qd) - robot.alg.potential_energy(q)

    def forces(q, qd, qdd):
        momentum_rate = jvp(grad(lagrangian, 1))((q, qd), (qd, qdd))
        return momentum_rate - grad(lagrangian)(q, qd)

    kernel = robot.compile(forces)
    assert_close(kernel(s.q, s.qd, s.qdd), robot.inverse_dynamics(s.q, s.qd, s.qdd), 10 * EPS)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_tangent_of_a_quaternion_joint(name):
    """∂U(q ⊞ δ)/∂δ at δ = 0 is the gravity force, on any joint; the height's is a Jacobian row."""
    robot = ROBOTS[name]
    q, zero = random_state(robot, 1).q, np.zeros(robot.nv)
    slope = grad(lambda q, d: robot.alg.potential_energy(robot.alg.integrate(q, d)), 1)
    assert_close(slope(q, zero), robot.gravity_forces(q), 10 * EPS)
    frame = robot.frame_names[-1]

    def place(q, d):
        return robot.alg.frame_pose(robot.alg.integrate(q, d), frame)[:3, 3]

    assert_close(jacobian(place, 1)(q, zero), robot.jacobian(q, frame)[3:], 20 * EPS)


@pytest.mark.long
def test_second_derivative_along_the_tangent_of_a_quaternion():
    """Symmetric, and the rate of the first one, which is taken by complex steps."""
    robot = ROBOTS["humanoid"]
    q, zero = random_state(robot, 1).q, np.zeros(robot.nv)

    def energy(q, d):
        return robot.alg.potential_energy(robot.alg.integrate(q, d))

    def slope(d):
        steps = 1e-30j * np.eye(robot.nv)
        return np.array([np.imag(energy(q, d + step)) / 1e-30 for step in steps])

    H = hessian(energy, 1)(q, zero)
    h = 1e-4
    sides = [(slope(h * e) - slope(-h * e)) / (2 * h) for e in np.eye(robot.nv)]
    assert_close(H, H.T, 10 * EPS)
    assert_close(H, np.array(sides), h * h)


@pytest.mark.parametrize("name", ["arm", "quadruped", "empty"])
def test_dot_products_agree(name):
    """w · (J v) = (Jᵀ w) · v."""
    robot = ROBOTS[name]
    s, v, w = (random_state(robot, i) for i in (5, 6, 7))
    primals, change = (s.q, s.qd, s.qdd), (v.q, v.qd, v.qdd)
    forward = jvp(robot.alg.inverse_dynamics)(primals, change)
    backward = vjp(robot.alg.inverse_dynamics)(primals, w.qd)
    other = sum(b @ c for b, c in zip(backward, change, strict=True))
    assert_close(w.qd @ forward, other, 100 * EPS)
    assert [b.shape for b in backward] == [c.shape for c in change]


# nesting


def test_three_deep():
    x = np.array([0.3, -0.7])

    def fn(x):
        return x[0] ** 3 * sin(x[1]) + 2 * x[0] * x[1] * x[1]

    s, c = np.sin(x[1]), np.cos(x[1])
    a = x[0]
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0] = 6 * s
    expected[0, 0, 1] = expected[0, 1, 0] = expected[1, 0, 0] = 6 * a * c
    expected[0, 1, 1] = expected[1, 0, 1] = expected[1, 1, 0] = -3 * a * a * s + 4
    expected[1, 1, 1] = -(a**3) * c
    assert_close(jacobian(hessian(fn))(x), expected, 4 * EPS)
    assert_close(jacobian(jacobian(grad(fn)))(x), expected, 4 * EPS)


def test_three_deep_on_a_robot():
    """Each derivative of the potential is the complex step of the one before."""
    robot = ROBOTS["pendulum"]
    q = random_state(robot, 2).q
    second = hessian(robot.alg.potential_energy)
    assert_close(second(q), complex_jacobian(robot.alg.gravity_forces, q), 20 * EPS)
    program = trace(second, [q.shape])
    expected = complex_jacobian(lambda q: interpret(program, [q])[0].ravel(), q)
    assert_close(jacobian(second)(q), expected.reshape(2, 2, 2), 20 * EPS)


def test_scalars_of_the_outer_function_stay_still():
    """The inner derivative moves its own argument alone, even if another is the same scalar."""
    assert grad(lambda x: grad(lambda y: x * y)(x))(5.0) == 1
    assert grad(lambda x: x * grad(lambda y: x + y)(x))(5.0) == 1
    product = grad(lambda x, y: x * y * y)
    assert hinge.compile(lambda x: product(x, x), x=())(3.0) == 9


def test_inside_a_trace_any_scalar_will_do():
    """Results of operations, constants, and numbers among traced scalars are all leaves."""

    def fn(a):
        b, c = a
        return b * b * c

    at = jacobian(fn)
    kernel = hinge.compile(lambda x: at([sin(x[0]), 2.0]), x=(1,))
    assert_close(kernel([0.4]), [4 * np.sin(0.4), np.sin(0.4) ** 2], EPS)
    assert_close(hinge.compile(lambda x: at(np.zeros(2)) + x, x=())(1.5), [1.5, 1.5], EPS)
    slope = grad(lambda x, d: (x + d) * (x + d), 1)
    assert hinge.compile(lambda x: slope(x, 0.0), x=())(3.0) == 6


def test_derivatives_compile_into_kernels_for_batches():
    robot = ROBOTS["arm"]
    kernel = robot.compile(hessian(robot.alg.potential_energy))
    q = np.random.default_rng(0).normal(size=(3, 2, 7))
    got = kernel(q)
    assert got.shape == (3, 2, 7, 7)
    assert_close(got, np.swapaxes(got, -1, -2), 10 * EPS)
    one = hessian(robot.alg.potential_energy)(q[1, 1])
    assert_close(got[1, 1], one, 10 * EPS)


# forms of arguments and results


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def pair(x, y):
    return Pair(np.outer(x, y), x @ x)


def test_shapes_are_those_of_results_and_arguments():
    A = np.arange(6.0).reshape(2, 3)
    J = jacobian(lambda A: A.T @ A)(A)
    assert J.shape == (3, 3, 2, 3)
    assert_close(J[0, 1], [[A[0, 1], A[0, 0], 0], [A[1, 1], A[1, 0], 0]], EPS)
    assert grad(lambda x: x * x)(3).shape == ()
    assert hessian(lambda A: np.sum(A * A * A))([[1, 2]]).shape == (1, 2, 1, 2)
    assert jacobian(lambda x: np.ones(3))([1.0, 2.0]).tolist() == [[0, 0]] * 3


def test_results_keep_their_form():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    J = jacobian(pair)(x, y)
    assert type(J) is Pair and J.first.shape == (2, 3, 2) and J.second.tolist() == [2, 4]
    both = jacobian(pair, (0, 1))(x, y)
    assert type(both) is Pair and [j.shape for j in both.first] == [(2, 3, 2), (2, 3, 3)]
    assert both.second[1].tolist() == [0, 0, 0]
    dot = jvp(pair)((x, y), (None, y))
    assert type(dot) is Pair and dot.first.tolist() == np.outer(x, y).tolist() and dot.second == 0
    bars = vjp(pair)((x, y), (None, 1.0))
    assert bars[0].tolist() == [2, 4] and bars[1].tolist() == [0, 0, 0]
    H = hessian(lambda a, b: a * a * b, (0, 1))(2.0, 3.0)
    assert [[float(h) for h in row] for row in H] == [[6, 4], [4, 0]]
    plain = jacobian(lambda x: (x, 2 * x))(1.0)
    assert type(plain) is tuple and [float(p) for p in plain] == [1, 2]


def test_inside_a_trace_results_keep_their_form():
    def fn(x, y):
        J = jacobian(pair, (0, 1))(x, y)
        return J.first[1], J.second[0]

    got = hinge.compile(fn, x=(2,), y=(3,))([1, 2], [3, 4, 5])
    assert got[0].shape == (2, 3, 3) and got[1].tolist() == [2, 4]


def test_kernels_are_kept():
    calls = []

    def fn(x):
        calls.append(x)
        return x @ x

    slope = grad(fn)
    for x in ([1, 2], [3.0, 4.0], np.float32([5, 6])):
        assert slope(x).tolist() == [2 * x[0], 2 * x[1]]
    assert len(calls) == len(slope.kernels) == 1
    assert slope([1.0]).tolist() == [2] and len(slope.kernels) == 2
    moving = jvp(lambda x, y: x * y)
    assert moving((2.0, 3.0), (1.0, None)) == 3 and moving((2.0, 3.0), (None, 1.0)) == 2
    assert len(moving.kernels) == 2


def test_a_robot_without_joints():
    robot = ROBOTS["empty"]
    q = robot.neutral()
    assert grad(robot.alg.potential_energy)(q).shape == (0,)
    assert jacobian(robot.alg.poses)(q).shape == (*robot.alg.poses(q).shape, 0)
    assert hessian(robot.alg.kinetic_energy, 1)(q, q).shape == (0, 0)


def test_a_derivative_says_what_it_is():
    robot = ROBOTS["arm"]
    slope = grad(partial(robot.alg.kinetic_energy), 1)
    assert repr(slope) == "<grad of kinetic_energy>"
    assert list(inspect.signature(slope).parameters) == ["q", "qd"]
    assert repr(jacobian(np.sin)) == "<jacobian of sin>"


# what does not fit


@pytest.mark.parametrize("argnums", [-1, 1.0, "q", True, (0, -2), (1, 1), (), None])
def test_argnums_must_be_numbers_of_arguments(argnums):
    with pytest.raises(ArgumentError, match="argnums is .*expected the number of an argument"):
        grad(np.sum, argnums)


def test_messages():
    def fails(match, call):
        with pytest.raises(ArgumentError, match=match):
            call()

    def norm(x):
        return x @ x

    def double(x):
        return 2 * x

    x = np.ones(3)
    fails(r"grad of double: .* shape \(3,\); grad needs a single", lambda: grad(double)(x))
    fails("grad of pair: .* a tuple of 2; grad needs", lambda: grad(pair)(x, x))
    fails("argnums is 2, but it was called with 1 arg", lambda: jacobian(norm, 2)(x))
    fails(r"called with 2 arguments; the function takes \(x\)", lambda: grad(norm)(x, x))
    fails("holds <U4; expected real numbers", lambda: jacobian(lambda x, name: x)(x, "tool"))
    fails("holds complex128; expected real", lambda: grad(norm)(1j * x))
    fails("has dtype complex128", lambda: [g(a) for g in [grad(norm)] for a in (x, 1j * x)])
    fails("holds object", lambda: grad(norm)([None]))
    fails("primals is a ndarray; expected a tuple", lambda: jvp(norm)(x, (x,)))
    fails("tangents is a ndarray; expected a tuple", lambda: jvp(norm)((x,), x))
    fails("got 1 arguments; expected two", lambda: vjp(norm)((x,)))
    fails("1 primals but 2 tangents", lambda: jvp(norm)((x,), (x, x)))
    fails(r"tangent 1 has shape \(2,\); expected \(3,\)", lambda: jvp(pair)((x, x), (x, x[:2])))
    fails(r"cotangent 0 has shape \(\); expected \(3,\)", lambda: vjp(double)((x,), 1.0))
    fails("is a tuple of 1; the function returns an array", lambda: vjp(double)((x,), (x,)))
    fails("is an array; the function returns a tuple of 2", lambda: vjp(pair)((x, x), x))
    fails("is a tuple of 3; the function returns a tuple of 2", lambda: vjp(pair)((x, x), (x,) * 3))


def test_results_must_be_numbers():
    with pytest.raises(TraceError, match="jacobian of .* returned a str_ among its results"):
        jacobian(lambda x: "seven")(1.0)


def test_traced_scalars_in_a_closure_belong_to_the_arguments():
    """Numbers alone do not say which trace is meant."""
    with pytest.raises(TraceError, match="two traces met"):
        hinge.compile(lambda x: grad(lambda y: x * y)(1.0), x=())

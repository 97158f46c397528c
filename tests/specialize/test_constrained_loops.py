"""Mechanisms that are held, as loops: what the generic code gives, at a cost linear in size."""

from functools import partial

import numpy as np
import pytest

import hinge
from hinge import Contact, LoopConstraint, SingularError, TraceError, zoo
from hinge.algorithms.constrained.description import contacts_of, count_rows
from hinge.graph.interpret import interpret
from hinge.graph.loop import LoopProgram
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel
from hinge.specialize import routing
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops
from hinge.specialize.programs import needed, robot_program, unrolled_program
from hinge.specialize.walks import walk_to, walks_of
from loop_cases import held_in_loops
from mechanisms import EPS, assert_close, everything, random_state

ARM, QUADRUPED, SNAKE = zoo.arm(9), zoo.quadruped(), zoo.snake(60)
EVERYTHING = everything()
HELD = {
    "point": (ARM, (Contact("tool"),)),
    "flat": (ARM, (Contact("tool", "flat"),)),
    "two on one chain": (ARM, (Contact("tool"), Contact("link6"))),
    "inner on outer": (ARM, (LoopConstraint("link4", "tool", axes=(3, 4, 5)),)),
    "outer on inner": (ARM, (LoopConstraint("tool", "link4", axes=(0, 1, 2)),)),
    "on the world": (ARM, (LoopConstraint("world", "link7", axes=(0, 1, 3)),)),
    "feet": (
        QUADRUPED,
        (
            Contact("FL_foot"),
            Contact("RR_foot", "flat", reference="aligned"),
            LoopConstraint("FR_foot", "RL_foot", axes=(5,)),
            Contact("FR_foot", anchor=np.zeros(3), stiffness=9.0, damping=3.0),
        ),
    ),
    "every joint": (
        EVERYTHING,
        (
            Contact(EVERYTHING.frame_names[-1]),
            LoopConstraint(*EVERYTHING.frame_names[-1:2:-4][:2], axes=(3, 4, 5)),
        ),
    ),
    "nothing": (ARM, ()),
}
ASKED = {
    "forward": ("constrained_forward_dynamics", ("q", "qd", "tau")),
    "masked": ("constrained_forward_dynamics", ("q", "qd", "tau", "f_ext", "mask")),
    "impulse": ("impulse_dynamics", ("q", "qd", "restitution", "mask")),
    "hybrid": ("constrained_hybrid_dynamics", ("q", "qd", "qdd_active", "tau_passive", "f_ext")),
    "jacobian": ("constraint_jacobian", ("q",)),
    "changes": ("constrained_changes", ("q", "qd", "tau", "f_ext", "anchors")),
    "inverse": (
        "constrained_inverse_dynamics",
        ("q", "qd", "qdd", "f_ext", "tau_weights", "force_weights"),
    ),
    "inverse, masked": ("constrained_inverse_dynamics", ("q", "qd", "qdd", "mask")),
}
# of hybrid dynamics one DoF is driven: the others are left to the constraints
DRIVEN = 1


def given_of(robot, names, constraints, seed=3):
    """Arrays of these names."""
    s, rng = random_state(robot, seed), np.random.default_rng(seed)
    known = {"q": s.q, "qd": s.qd, "f_ext": s.f_ext}
    known["mask"] = np.arange(len(constraints)) % 2.0
    known["restitution"] = rng.random(len(constraints))
    known["force_weights"] = rng.random(count_rows(constraints)) + 0.5
    known["tau_weights"] = rng.random(robot.nv) + 0.5
    contacts = contacts_of(constraints)
    known["anchors"] = robot.alg.anchors(s.q, constraints) + 0.01 * np.eye(4)[:, [3, 0, 1, 2]]
    if "anchors" in names and not any(c.stiffness for c in contacts):
        names = [n for n in names if n != "anchors"]
    return {n: known[n] if n in known else rng.normal(size=robot.nv) for n in names}


def driven(robot, asked, constraints):
    """Which DoF are driven; for inverse dynamics all but the one that the rows feel most."""
    if asked == "hybrid":
        return tuple(i == DRIVEN for i in range(robot.nv))
    if asked == "inverse" and constraints:
        K = robot.alg.constraint_jacobian(random_state(robot, 3).q, constraints)
        return tuple(i != int(abs(K).sum(axis=0).argmax()) for i in range(robot.nv))
    return (True,) * robot.nv if asked.startswith("inverse") else None


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("title", HELD)
def test_loops_agree_with_the_generic_code(title, asked):
    (robot, constraints), (name, names) = HELD[title], ASKED[asked]
    active, given = driven(robot, asked, constraints), given_of(robot, names, constraints)
    program = held_in_loops(robot, name, given, constraints, active)
    static = {} if active is None else {"active": active}
    expected = getattr(robot.alg, name)(**given, constraints=constraints, **static)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for a, b in zip(interpret(program, list(given.values())), expected, strict=True):
        assert_close(a, b, 1e5 * EPS)


@pytest.mark.parametrize("title", ["flat", "inner on outer"])
def test_machine_code_does_what_the_steps_say(title):
    """One sample and a batch, in both precisions; marks and anchors come with the samples."""
    robot, constraints = HELD[title]
    name, names = ASKED["masked"]
    given = given_of(robot, names, constraints)
    program = held_in_loops(robot, name, names, constraints)
    for dtype, eps in ((np.float64, EPS), (np.float32, np.finfo(np.float32).eps)):
        arrays = [np.asarray(x, dtype) for x in given.values()]
        expected = interpret(program, [x.astype(float) for x in arrays])
        kernel = Kernel(program, name, dtype=dtype, backend=Cpu(threads=1))
        many = kernel(*(np.tile(x, (9, *[1] * x.ndim)) for x in arrays))
        for one, batch, x in zip(kernel(*arrays), many, expected, strict=True):
            assert_close(one, x, 1e4 * eps)
            assert_close(batch[7], x, 1e4 * eps)


LONG = {
    "point": (Contact("tail"),),
    "flat": (Contact("tail", "flat"),),
    "two": (Contact("tail"), Contact("link30")),
    "closed": (LoopConstraint("tail", "link20", axes=(3, 4, 5)),),
    "twice": (Contact("tail"), Contact("tail")),
}


@pytest.mark.parametrize("title", LONG)
def test_a_long_snake_through_the_front_door(title):
    constraints = LONG[title]
    given = given_of(SNAKE, ("q", "qd", "tau"), constraints)
    route = SNAKE.explain("constrained_forward_dynamics", constraints=constraints)
    assert "loop over bodies" in route
    expected = SNAKE.alg.constrained_forward_dynamics(**given, constraints=constraints)
    one = SNAKE.constrained_forward_dynamics(**given, constraints=constraints)
    batch = {n: np.tile(x, (5, 1)) for n, x in given.items()}
    many = SNAKE.constrained_forward_dynamics(**batch, constraints=constraints)
    for a, b, x in zip(one, many, expected, strict=True):
        assert_close(a, x, 1e5 * EPS)
        assert_close(b[3], x, 1e5 * EPS)


# what drives a snake on the loose: not its head
MUSCLES = (False,) * 6 + (True,) * (SNAKE.nv - 6)


def test_who_carries_what_of_a_long_snake():
    """The joints of the head are passive; what nothing can give is refused as of a short one."""
    held = (Contact("tail", "flat"), Contact("link30", "flat"))
    given = given_of(SNAKE, ("q", "qd", "qdd", "f_ext"), held)
    text = SNAKE.explain("constrained_inverse_dynamics", constraints=held, active=MUSCLES)
    assert "loop over bodies" in text
    one = SNAKE.constrained_inverse_dynamics(**given, constraints=held, active=MUSCLES)
    batch = {n: np.array([x] * 5) for n, x in given.items()}
    many = SNAKE.constrained_inverse_dynamics(**batch, constraints=held, active=MUSCLES)
    expected = SNAKE.alg.constrained_inverse_dynamics(**given, constraints=held, active=MUSCLES)
    for a, b, x in zip(one, many, expected, strict=True):
        assert_close(a, x, 1e5 * EPS)
        assert_close(b[3], x, 1e5 * EPS)
    need = SNAKE.inverse_dynamics(**given) - one.tau
    K = SNAKE.alg.constraint_jacobian(given["q"], held)
    assert_close(K.T @ one.forces, need, 1e5 * EPS)
    with pytest.raises(SingularError, match="can give the passive joint 'head_free' the force"):
        SNAKE.constrained_inverse_dynamics(**given, constraints=(), active=MUSCLES)


@pytest.mark.parametrize("title", [*LONG, "nothing"])
def test_the_jacobian_of_what_holds_a_long_snake(title, monkeypatch):
    monkeypatch.setattr(routing, "FEW_ALIKE_HELD", 3)
    constraints, q = LONG.get(title, ()), random_state(SNAKE, 1).q
    kernel = SNAKE.kernel("constraint_jacobian", "q", constraints=constraints)
    assert isinstance(kernel.program, LoopProgram)
    expected = SNAKE.alg.constraint_jacobian(q, constraints)
    assert_close(kernel(q), expected, 100 * EPS)
    assert_close(kernel(np.tile(q, (5, 1)))[2], expected, 100 * EPS)


def test_a_long_tree_with_branches_is_held(monkeypatch):
    """Ways that meet far from the ground, on a body between others."""
    monkeypatch.setattr(routing, "FEW_ALIKE_HELD", 3)
    robot = _bush()
    ends = LoopConstraint("left19", "right19", axes=(3, 4, 5)), Contact("right9")
    given = given_of(robot, ("q", "qd", "tau"), ends)
    assert isinstance(_program(robot, ends), LoopProgram)
    expected = robot.alg.constrained_forward_dynamics(**given, constraints=ends)
    found = robot.constrained_forward_dynamics(**given, constraints=ends)
    for a, x in zip(found, expected, strict=True):
        assert_close(a, x, 1e5 * EPS)


def _bush():
    """Two branches of twenty bodies on a trunk of ten."""
    b = hinge.MechanismBuilder("bush")
    inertia = hinge.Inertia(1.0, (0.1, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    branches = ("trunk", None, 10), ("left", "trunk9", 20), ("right", "trunk9", 20)
    for branch, parent, count in branches:
        for i in range(count):
            axis = hinge.Revolute((0.0, 0.0, 1.0) if i % 2 else (0.0, 1.0, 0.0))
            at = hinge.Transform(translation=(0.2, 0.1 if branch == "left" else 0.0, 0.0))
            place = {} if parent is None else {"parent": parent}
            b.add(f"{branch}{i}", joint=axis, placement=at, inertia=inertia, **place)
            parent = f"{branch}{i}"
    return hinge.Robot(b.build())


def _program(robot, constraints):
    static = {"constraints": constraints}
    return robot_program(
        robot.mechanism, "constrained_forward_dynamics", ("q", "qd", "tau"), static
    )


def test_few_bodies_of_a_kind_are_unrolled():
    """Every contact makes the bodies on its way kinds of their own."""
    robot = zoo.snake(42)
    contacts = tuple(Contact(f"link{i}") for i in range(3, 42, 3))
    text = robot.explain("constrained_forward_dynamics", constraints=contacts)
    assert "kinds of them are as much code" in text and "unrolled" in text
    # of a longer one there are more of each
    for n, plan in ((42, "unrolled"), (400, "loops")):
        given = {"constraints": tuple(Contact(f"link{i}") for i in range(3, 42, 8))}
        way = routing.route(zoo.snake(n).mechanism, "constrained_forward_dynamics", (), given)
        assert way.plan == plan


@pytest.mark.parametrize("title", ["flat", "two", "closed"])
def test_cost_is_linear_and_near_that_of_free_motion(title):
    """Operations of a body on the way, beside those of forward dynamics; code as much for all."""
    programs = [_program(zoo.snake(n), LONG[title]) for n in (60, 100)]
    free = [
        robot_program(zoo.snake(n).mechanism, "forward_dynamics", ("q", "qd", "tau"), {})
        for n in (60, 100)
    ]
    (a, b), (c, d) = ([sum(p.ops) for p in pair] for pair in (programs, free))
    assert b - a < 2.6 * (d - c)
    assert abs(programs[0].written - programs[1].written) < 0.01 * programs[0].written
    lines = unrolled_program(
        zoo.snake(60).mechanism,
        "constrained_forward_dynamics",
        ("q", "qd", "tau"),
        {"constraints": LONG[title]},
    )
    assert a < 1.35 * sum(lines.ops)


@pytest.mark.parametrize(
    ("name", "title", "least", "most"),
    [
        ("constraint_jacobian", "flat", 0.2, 0.4),
        ("constrained_inverse_dynamics", "flat", 0.8, 1.2),
        ("constrained_changes", "point", 2.0, 2.8),
        ("constrained_changes", "closed", 2.5, 4.0),
        ("impulse_changes", "point", 1.5, 2.5),
    ],
)
def test_a_body_more_costs_as_much_wherever_it_is(name, title, least, most):
    """Beside free motion; what is written is the same whatever the length."""
    static = {"constraints": LONG[title]}
    found, free = [], []
    for n in (60, 100):
        mech = zoo.snake(n).mechanism
        own = static | ({"active": (True,) * (n + 5)} if "inverse" in name else {})
        arrays = tuple(a for a in needed(mech, name, own) if a != "active")
        found.append(robot_program(mech, name, arrays, own))
        free.append(robot_program(mech, "forward_dynamics", ("q", "qd", "tau"), {}))
    assert all(isinstance(program, LoopProgram) for program in found)
    (a, b), (c, d) = ([sum(p.ops) for p in pair] for pair in (found, free))
    assert least < (b - a) / (d - c) < most
    assert abs(found[0].written - found[1].written) < 0.01 * found[0].written


def test_constraints_that_contradict_each_other_are_refused():
    """As of straight-line code: an error in a single call, NaN in a batch."""
    robot = zoo.snake(60)
    torn = [Contact("tail", anchor=(x, 0.0, 0.0), stiffness=100.0) for x in (0.0, 1.0)]
    q, x = robot.neutral(), np.zeros((2, robot.nv))
    with pytest.raises(SingularError, match="no motion keeps 'tail' on 'world' along axis 3"):
        robot.constrained_forward_dynamics(q, x[1], x[0], torn)
    marks = np.array([[1.0, 0.0], [1.0, 1.0]])
    found = robot.constrained_forward_dynamics(np.tile(q, (2, 1)), x, x, torn, mask=marks)
    assert np.isfinite(found.qdd[0]).all() and np.isnan(found.qdd[1]).all()


def test_what_belongs_to_no_body():
    """Sums over bodies, used between sweeps, in sweeps, and once more when they have changed."""

    def shares(mech, qd, scale):
        total, (part, out), rates = mech.shared(0.0), mech.slots(2), mech.rates(qd)
        for _, k in mech.outward():
            total.value = total.value + rates[k][0]
        twice = 2 * total.value
        for _, k in mech.inward():
            part[k] = rates[k] / total.value
            total.value = total.value + part[k][0]
        half = mech.shared(np.asarray(scale) * (twice + total.value))
        for _, k in mech.outward():
            out[k] = part[k] + half.value
        return mech.join(out), np.array([twice, total.value])

    mech, qd = zoo.arm(6).mechanism, np.arange(1.0, 7.0)
    program = trace_loops(shares, canonical(mech), {"qd": (6,), "scale": ()}, "shares")
    expected = shares(mech, qd, 0.5)
    for found in (interpret(program, [qd, np.array(0.5)]), Kernel(program)(qd, 0.5)):
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 10 * EPS)


def test_errors_and_biases_of_constraints_are_loops_too(monkeypatch):
    """What an algorithm gives belongs to no body at all."""
    monkeypatch.setattr(routing, "FEW_ALIKE_HELD", 3)
    constraints, s = (*LONG["closed"], Contact("link30", anchor=np.eye(4))), random_state(SNAKE, 2)
    for name, given in (("constraint_error", (s.q,)), ("constraint_bias", (s.q, s.qd))):
        kernel = SNAKE.kernel(name, *("q", "qd")[: len(given)], constraints=constraints)
        assert isinstance(kernel.program, LoopProgram)
        expected = getattr(SNAKE.alg, name)(*given, constraints)
        assert_close(kernel(*given), expected, 1000 * EPS)


@pytest.mark.filterwarnings("ignore::hinge.TraceWarning")
def test_a_long_robot_in_contact_is_simulated():
    """By calls of the robot's methods, with a law that cannot be traced and without one."""
    robot, settings = zoo.snake(44), {"duration": 0.02, "dt": 1e-3, "constraints": Contact("tail")}
    q = robot.random_configuration(3)

    def unknown(t, q, qd):
        return np.zeros(robot.nv) if float(t) >= 0 else qd

    traced = hinge.simulate(robot, q, **settings)
    called = hinge.simulate(robot, q, tau=unknown, **settings)
    assert_close(traced.q[-1], called.q[-1], 1e5 * EPS)


def test_what_children_add_cannot_be_read_of_a_body():
    def summed(mech, qd):
        x, rates = *mech.slots(1), mech.rates(qd)
        for _, k in mech.outward():
            x[k] = rates[k]
        for p, k in mech.inward():
            x[p] = x[p] + x[k]
        return x[4] * np.ones(2)

    mech = ARM.mechanism
    with pytest.raises(TraceError, match=r"not what their children add .* read of \['link4'\]"):
        trace_loops(summed, canonical(mech), {"qd": (9,)}, "x", None, [walk_to(mech, ("link4",))])


def test_values_at_the_ends_of_walks():
    """What a body has after a sweep, and what is placed on it."""
    robot, contact = ARM, Contact("link4")

    def moved(mech, qd, constraints):
        (end,) = [mech.frame(c.left).body for c in constraints]
        x, out, rates = *mech.slots(2), mech.rates(qd)
        x[0] = np.array([1.0])
        for p, k in mech.outward():
            x[k] = x[p] + rates[k]
        push = mech.placed({end: x[end] * x[0]})
        for _, k in mech.outward():
            out[k] = push[k] + x[k]
        return mech.join(out)

    mech, given = robot.mechanism, {"constraints": (contact,)}
    program = trace_loops(
        partial(moved, **given), canonical(mech), {"qd": (9,)}, "moved", None, walks_of(mech, given)
    )
    qd = np.arange(9.0)
    assert_close(interpret(program, [qd])[0], moved(mech, qd, **given), 10 * EPS)

"""Sweeps as loops give what the unrolled and the generic code give, at a cost linear in size."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import hinge
from hinge import TraceError, algorithms, zoo
from hinge.emit.rows import Rows
from hinge.functions.derivatives import jvp, vjp
from hinge.graph.interpret import interpret
from hinge.graph.loop import LoopProgram
from hinge.graph.scalar import reachable
from hinge.robot.answers import robot_kernel
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel
from hinge.specialize import by_coordinates
from hinge.specialize.arrays import array_shape
from hinge.specialize.canonical import Reframed, canonical
from hinge.specialize.loops import trace_loops
from hinge.specialize.programs import robot_program, unrolled_program
from hinge.specialize.routing import MOST_UNROLLED
from loop_cases import ARRAYS, frame_in_loops, looped, split_in_loops, swapping
from mechanisms import EPS, Generic, assert_close, everything, gripper, random_state

ROBOTS = {
    "chain": zoo.arm(9),
    "tree": zoo.tree(4, 12),
    "quadruped": zoo.quadruped(),
    "humanoid": zoo.humanoid(),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("robot_name", ROBOTS)
def test_loops_agree_with_the_generic_code(robot_name, name):
    robot = ROBOTS[robot_name]
    kernel = Kernel(looped(robot.mechanism, name), name, backend=Cpu(threads=1))
    states = [random_state(robot, seed) for seed in range(9)]
    given = [[getattr(s, {"tau": "qdd"}.get(a, a)) for s in states] for a in ARRAYS[name]]
    got = kernel(*(np.array(a) for a in given))
    for i in range(len(states)):
        expected = getattr(robot.alg, name)(*(a[i] for a in given))
        assert_close(got[i], expected, 3000 * EPS)


@pytest.mark.parametrize(
    ("third", "load"), [("qdd", "dead"), pytest.param("tau", "world", marks=pytest.mark.long)]
)
def test_loops_of_linearized_dynamics_agree_with_the_generic_code(third, load):
    """All joints, on a floating base with branches, with forces."""
    robot, rng = everything(), np.random.default_rng(2)
    mech, s = robot.mechanism, random_state(robot, 4)
    given = {"q": s.q, "qd": s.qd, third: s.qdd}
    given |= {f"d{n}": rng.normal(size=robot.nv) for n in ("q", "qd", third)}
    given |= {"f_ext": s.f_ext, "points": rng.normal(size=(mech.n_bodies, 3))}
    name = "inverse_dynamics_jvp" if third == "qdd" else "forward_dynamics_jvp"
    arrays = {a: array_shape(mech, a) for a in given}
    algorithm = partial(getattr(algorithms, name), load=load)
    program = trace_loops(algorithm, canonical(mech), arrays, name)
    (got,) = interpret(program, list(given.values()))
    assert_close(got, getattr(robot.alg, name)(**given, load=load), 3e4 * EPS)


@pytest.mark.parametrize(
    ("third", "load"), [("qdd", "dead"), pytest.param("tau", "world", marks=pytest.mark.long)]
)
def test_loops_of_gradients_agree_with_the_generic_code(third, load):
    robot, rng = everything(), np.random.default_rng(2)
    mech, s = robot.mechanism, random_state(robot, 4)
    given = {"q": s.q, "qd": s.qd, third: s.qdd, "cotangent": rng.normal(size=robot.nv)}
    given |= {"f_ext": s.f_ext, "points": rng.normal(size=(mech.n_bodies, 3))}
    name = "inverse_dynamics_vjp" if third == "qdd" else "forward_dynamics_vjp"
    arrays = {a: array_shape(mech, a) for a in given}
    algorithm = partial(getattr(algorithms, name), load=load)
    program = trace_loops(algorithm, canonical(mech), arrays, name)
    expected = getattr(robot.alg, name)(**given, load=load)
    for x, y in zip(interpret(program, list(given.values())), expected, strict=True):
        assert_close(x, y, 3e4 * EPS)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_loops_of_products_by_coordinates(kind, monkeypatch):
    """Of all joints, quaternions of any length among them, what the graph gives."""
    robot, rng = everything(), np.random.default_rng(3)
    monkeypatch.setattr(by_coordinates, "LEAST_BODIES", 0)
    monkeypatch.setattr(by_coordinates, "whole", lambda *_: SimpleNamespace(plan="loops"))
    mech, s = robot.mechanism, random_state(robot, 4)
    given = {"q": 1.2 * s.q, "qd": s.qd, "qdd": s.qdd, "f_ext": s.f_ext}
    make = by_coordinates.looped_product(mech, "inverse_dynamics", tuple(given), kind, (0, 2))

    def force(q, qdd):
        return robot.alg.inverse_dynamics(q, s.qd, qdd, s.f_ext)

    at = given["q"], s.qdd
    if kind == "jvp":
        given |= {"d(q)": rng.normal(size=robot.nq), "d(qdd)": rng.normal(size=robot.nv)}
        expected = (jvp(force)(at, (given["d(q)"], given["d(qdd)"])),)
    else:
        given["bar(0)"] = rng.normal(size=robot.nv)
        expected = vjp(force)(at, given["bar(0)"])
    program = make({n: x.shape for n, x in given.items()}, kind)
    for x, y in zip(interpret(program, list(given.values())), expected, strict=True):
        assert_close(x, y, 3e4 * EPS)


def test_what_is_zero_for_every_body_is_neither_kept_nor_used():
    """Without loads that turn, their stiffness is zero, and the loops know it."""
    mech = zoo.snake(50).mechanism
    names = ("q", "qd", "tau", "dq", "dqd", "dtau", "f_ext")
    arrays = {a: array_shape(mech, a) for a in names}

    def cost(load):
        algorithm = partial(algorithms.forward_dynamics_jvp, load=load)
        return trace_loops(algorithm, canonical(mech), arrays, "jvp").ops.multiplications / 50

    assert cost("world") > cost("body") + 200


def test_zeros_are_believed_until_something_is_written():
    def sums(mech, qd):
        """Entry 0 is never written, entry 1 only by bodies, entry 2 comes down from the ground."""
        x, tau = mech.slots(2)
        x[0] = np.array([0.0, 0.0, 3.0])
        rates = mech.rates(qd)
        for p, k in mech.outward():
            x[k] = np.array([2.0 * x[p][0], x[p][1] + rates[k][0], x[p][2]])
            tau[k] = np.array([x[k][0] + x[k][1] + x[k][2]])
        return mech.join(tau)

    program = trace_loops(sums, canonical(zoo.arm(5).mechanism), {"qd": (5,)}, "sums")
    loads = {load for stage in program.stages for step in stage.steps for load in step.loads}
    assert {load.entry for load in loads if load.kind == "slot"} == {1, 2}
    qd = np.arange(5.0)
    assert np.array_equal(Kernel(program)(qd), 3 + np.cumsum(qd))


def test_what_is_overwritten_is_read_before():
    def swaps(mech, qd):
        x, tau = mech.slots(2)
        rates = mech.rates(qd)
        x[0] = np.array([1.0, 2.0])
        for p, k in mech.outward():
            x[k] = np.array([x[p][1] + rates[k][0], x[p][0]])
        for p, k in mech.inward():
            old = x[p]
            x[p] = np.array([3.0 * x[k][0], old[0] + x[k][1]])
            tau[k] = np.array([old[0] - old[1] * x[k][0]])
        return mech.join(tau)

    mech, qd = zoo.arm(6).mechanism, np.array([0.5, -1.0, 2.0, 0.25, 3.0, -0.75])
    program = trace_loops(swaps, canonical(mech), {"qd": (6,)}, "swaps")
    expected = swaps(mech, qd)
    assert_close(interpret(program, [qd])[0], expected, 10 * EPS)
    assert_close(Kernel(program)(qd), expected, 10 * EPS)
    assert_close(Kernel(program)(np.tile(qd, (9, 1)))[5], expected, 10 * EPS)


def test_halves_of_a_symmetric_matrix_are_kept_once():
    """Entries that are equal for every body are stored and loaded once."""
    program = looped(zoo.arm(9).mechanism, "forward_dynamics")
    stores = {(s.slot, s.entry) for stage in program.stages for t in stage.steps for s in t.stores}
    sizes = Counter(slot for slot, _ in stores)
    assert 21 in sizes.values() and 36 not in sizes.values()


@pytest.mark.parametrize("robot_name", ROBOTS)
def test_every_kind_keeps_what_it_needs_itself(robot_name):
    """Driven joints a row of P, the others G: both in one place, and nothing of either twice."""
    robot = ROBOTS[robot_name]
    program, active = split_in_loops(robot)
    for kind, role in enumerate(zip(*(stage.steps for stage in program.stages), strict=True)):
        used = {(x.which, x.entry) for step in role for x in step.used if x.row == "own"}
        others = {step for stage in program.stages for step in stage.steps}
        used |= {(x.which, x.entry) for step in others for x in step.used if x.row == "parent"}
        used |= {(slot, entry) for slot, _, entry in program.results}
        stored = {(s.slot, s.entry) for step in role for s in step.stores if s.row == "own"}
        assert stored <= used, kind
    states = [random_state(robot, seed) for seed in range(9)]
    given = [np.array([getattr(s, a) for s in states]) for a in ("q", "qd", "qdd", "qdd")]
    got = Kernel(program, "hybrid", backend=Cpu(threads=1))(*given)
    for i in range(len(states)):
        expected = robot.alg.hybrid_dynamics(*(x[i] for x in given), active=active)
        for a, b in zip(got, expected, strict=True):
            assert_close(a[i], b, 1e5 * EPS)


def test_split_mechanisms_keep_little():
    """Of a long snake half of whose joints are driven, 13 numbers a body instead of 25."""
    short, long = (Rows(split_in_loops(zoo.snake(n))[0]).areas["kept"].size for n in (20, 40))
    assert (long - short) / 20 <= 13


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_made_of_numbers_alone_is_a_number(name):
    """No step works out what is the same for every sample."""
    program = looped(zoo.snake(9).mechanism, name)
    for step in (step for stage in program.stages for step in stage.steps):
        fixed = {i for i, load in enumerate(step.loads) if load.kind == "number"}
        for node in reachable(s.value for s in step.stores):
            numbers = [a.op == "const" or (a.op == "input" and a.value in fixed) for a in node.args]
            assert not numbers or not all(numbers)


def test_numbers_that_are_made_beforehand_are_right():
    def scaled(mech, qd):
        """Twice the mass less one, times the rate; what comes besides is zero for every body."""
        rates, (tau,) = mech.rates(qd), mech.slots(1)
        for _, k in mech.outward():
            M = mech.M[k].matrix
            tau[k] = (2.0 * M[5, 5] - 1.0) * rates[k] + (M[0, 0] - M[5, 5] - 3.0) * rates[k]
        return mech.join(tau)

    b, masses = hinge.MechanismBuilder("beads"), (3.0, 2.0, 4.0, 8.0)
    for i, m in enumerate(masses):
        ball = hinge.Inertia(m, about_com=(m + 3.0) * np.eye(3))
        b.add(f"bead{i}", f"bead{i - 1}" if i else "world", hinge.Revolute(), inertia=ball)
    program = trace_loops(scaled, Reframed.same(b.build()), {"qd": (4,)}, "scaled")
    assert program.ops.multiplications == 4 and program.ops.additions == 0
    qd, expected = np.arange(4.0), (2 * np.array(masses) - 1) * np.arange(4.0)
    assert np.array_equal(interpret(program, [qd])[0], expected)
    assert np.array_equal(Kernel(program)(qd), expected)


@pytest.mark.parametrize(
    ("name", "arrays", "most"),
    [
        ("inverse_dynamics", ("q", "qd", "qdd"), 1.2),
        ("forward_dynamics", ("q", "qd", "tau"), 1.17),
        ("total_rates", ("q", "qd"), 1.17),
        ("diagonal_dynamics", ("q", "nu", "tau"), 1.11),
    ],
)
def test_loops_cost_little_more_than_straight_lines(name, arrays, most):
    mech = zoo.snake(MOST_UNROLLED + 4).mechanism
    loops = robot_program(mech, name, arrays, {})
    assert sum(loops.ops) <= most * sum(unrolled_program(mech, name, arrays, {}).ops)


@pytest.mark.parametrize("name", ARRAYS)
def test_nothing_is_stored_that_nobody_needs(name):
    program = looped(zoo.snake(9).mechanism, name)
    steps = [step for stage in program.stages for step in stage.steps]
    needed = {(x.which, x.entry) for step in steps for x in step.used if x.kind == "slot"}
    needed |= {(slot, entry) for slot, _, entry in program.results}
    assert {(s.slot, s.entry) for step in steps for s in step.stores} == needed


def test_a_step_loads_before_it_stores():
    program, x, expected = swapping()
    assert np.array_equal(interpret(program, [x])[0], expected)
    assert np.array_equal(Kernel(program)(x), expected)


def test_large_mechanisms_are_looped_and_small_ones_are_not():
    small, large = (zoo.snake(n).mechanism for n in (MOST_UNROLLED, MOST_UNROLLED + 1))
    arrays = ("q", "qd", "tau")
    kinds = [robot_kernel(m, "forward_dynamics", arrays, ()).program for m in (small, large)]
    assert [isinstance(program, LoopProgram) for program in kinds] == [False, True]


def test_a_long_snake_through_the_front_door():
    robot = zoo.snake(120)
    s, generic = random_state(robot, 0), Generic(robot)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(tau, generic.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), 120 * 10 * EPS)
    qdd = robot.forward_dynamics(s.q, s.qd, tau, s.f_ext)
    again = generic.inverse_dynamics(s.q, s.qd, qdd, s.f_ext)
    assert_close(again, tau, 120 * 50 * EPS)
    spoiled = np.tile(s.q, (3, 1))
    spoiled[1, -1] = np.nan
    batch = robot.gravity_forces(spoiled)
    assert np.isnan(batch[1]).all() and np.isfinite(batch[[0, 2]]).all()


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_cost_is_linear_and_code_size_constant(name):
    programs = [looped(zoo.snake(n).mechanism, name) for n in (50, 100, 200)]
    cost = [sum(program.ops) for program in programs]
    assert cost[2] - cost[1] == 2 * (cost[1] - cost[0])
    sizes = {sum(len(s.loads) for stage in p.stages for s in stage.steps) for p in programs}
    assert len(sizes) == 1
    assert programs[0].digest == looped(zoo.snake(50).mechanism, name).digest
    assert programs[0].digest != programs[1].digest


@pytest.mark.parametrize("reference", ["aligned", "body", "world"])
@pytest.mark.parametrize("robot_name", [*ROBOTS, "everything"])
def test_jacobians_in_loops_agree_with_the_generic_code(robot_name, reference):
    """Of frames at a tip, halfway, on the ground: bodies beside the way have no part in them."""
    robot = everything() if robot_name == "everything" else ROBOTS[robot_name]
    names = robot.frame_names
    for frame in (names[-1], names[len(names) // 2], names[0]):
        program = frame_in_loops(robot, frame, reference)
        kernel = Kernel(program, "jacobian", backend=Cpu(threads=1))
        q = np.array([random_state(robot, seed).q for seed in range(9)])
        for got, one in zip(kernel(q), q, strict=True):
            expected = robot.alg.jacobian(one, frame, reference)
            assert_close(got, expected, 1000 * EPS)
            assert_close(kernel(one), expected, 1000 * EPS)


def test_loops_know_the_ways_that_they_are_told_of():
    match = r"'arm9': loops know the ways to .* told of, \['link4'\], not to 'link9'"
    with pytest.raises(TraceError, match=match):
        frame_in_loops(ROBOTS["chain"], "tool", way="link4")


def test_a_frame_far_from_the_ground_through_the_front_door():
    """One near the ground is unrolled, however many bodies there are beyond."""
    robot = zoo.snake(MOST_UNROLLED + 10)
    q = random_state(robot, 3).q
    for frame in ("tail", "link5"):
        assert_close(robot.jacobian(q, frame), robot.alg.jacobian(q, frame), 1000 * EPS)
    assert "a loop over bodies" in robot.explain("jacobian", frame="tail")
    assert "5 bodies between the ground and the frame" in robot.explain("jacobian", frame="link5")


def test_what_cannot_be_looped_says_so():
    with pytest.raises(TraceError, match="'gripper' has joints that mimic others"):
        looped(gripper().mechanism, "inverse_dynamics")
    with pytest.raises(TraceError, match="total_mass gives neither joint forces nor"):
        arm = canonical(zoo.arm(3).mechanism)
        trace_loops(lambda mech, q: mech.nv, arm, {"q": (3,)}, "total_mass")


def test_followers_in_a_large_mechanism_are_unrolled():
    snake = zoo.snake(MOST_UNROLLED + 1).mechanism
    both = hinge.edit.attach(snake, gripper().mechanism, "tail", prefix="hand/")
    program = robot_kernel(both, "gravity_forces", ("q",), ()).program
    assert not isinstance(program, LoopProgram)


def forked(links):
    """A snake of so many links, and an arm of four on the last but three."""
    snake, arm = zoo.snake(links), zoo.arm(4).mechanism
    return hinge.Robot(hinge.edit.attach(snake.mechanism, arm, snake.body_names[-4], prefix="arm/"))


def test_matrices_of_long_mechanisms_with_branches_come_by_columns():
    robot, name = forked(62), "mass_matrix_inverse"
    assert "column by column" in robot.explain(name) and "one branch only" in robot.explain(name)
    q = np.array([random_state(robot, seed).q for seed in range(3)])
    got = getattr(robot, name)(q)
    out = np.empty_like(got)
    assert getattr(robot, name)(q, out=out) is out and np.array_equal(out, got)
    assert np.array_equal(got, np.swapaxes(got, 1, 2))
    expected = getattr(robot.alg, name)(q[1])
    assert_close(got[1], expected, 1e5 * EPS)
    assert_close(getattr(robot, name)(q[1]), got[1], 1e3 * EPS)
    q[0, 9] = np.nan
    spoiled = getattr(robot, name)(q)
    assert np.isnan(spoiled[0]).all() and np.array_equal(spoiled[1:], got[1:])
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake62': q\[9\] is nan"):
        getattr(robot, name)(q[0])
    with pytest.raises(
        hinge.ArgumentError, match=rf"{name} of 'snake62': out is not a writeable, .* array"
    ):
        getattr(robot, name)(q[1], out=np.zeros(50))


@pytest.mark.parametrize(("which", "load"), [("inverse", "dead"), ("forward", None)])
def test_derivatives_of_long_mechanisms_are_loops_or_come_by_columns(which, load):
    """With and without forces; a bad sample is bad alone; wrong arguments are told."""
    robot, rng, name = forked(41), np.random.default_rng(7), f"{which}_dynamics_derivatives"
    states = [random_state(robot, seed) for seed in range(3)]
    q, qd, third = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    n = robot.mechanism.n_bodies
    forces = {} if load is None else {"f_ext": rng.normal(size=(n, 6)), "load": load}
    forces |= {"points": rng.normal(size=(n, 3))} if load == "dead" else {}
    got = getattr(robot, name)(q, qd, third, **forces)
    one = getattr(robot, name)(q[1], qd[1], third[1], **forces)
    expected = getattr(robot.alg, name)(q[1], qd[1], third[1], **forces)
    for a, b, c in zip(got, one, expected, strict=True):
        assert_close(a[1], c, 1e5 * EPS)
        assert_close(b, a[1], 1e4 * EPS)
    assert np.array_equal(got[2], np.swapaxes(got[2], 1, 2))
    out = tuple(np.empty_like(x) for x in got)
    assert getattr(robot, name)(q, qd, third, **forces, out=out)[1] is out[1]
    assert all(np.array_equal(a, b) for a, b in zip(out, got, strict=True))
    qd[0, 9] = np.nan
    for a, b in zip(getattr(robot, name)(q, qd, third, **forces), got, strict=True):
        assert np.isnan(a[0]).all() and np.array_equal(a[1:], b[1:])
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake41': qd\[9\] is nan"):
        getattr(robot, name)(q[0], qd[0], third[0], **forces)
    with pytest.raises(hinge.ArgumentError, match=rf"{name} of 'snake41': out has 1 arrays"):
        getattr(robot, name)(q, qd, third, **forces, out=out[:1])


def test_matrices_of_a_bush_are_unrolled():
    """What counts is how many blocks there are, not how many bodies."""
    b = hinge.MechanismBuilder("bush")
    for i in range(70):
        b.add(
            f"leaf{i}", "world", hinge.Revolute((0, 1, 0)), inertia=hinge.Inertia(1.0, (0.2, 0, 0))
        )
    robot = hinge.Robot(b.build())
    q, zero = np.linspace(-1, 1, 70), np.zeros(70)
    assert np.array_equal(np.count_nonzero(robot.mass_matrix(q), axis=1), np.ones(70))
    assert robot.kernel("mass_matrix", "q").ops.multiplications < 70
    d = robot.inverse_dynamics_derivatives(q, zero, zero)
    assert_close(d.dqdd, robot.mass_matrix(q), 0.0)
    assert "generalized_momentum" not in {key[0] for key in robot._kept}


def test_a_long_mechanism_without_mass_has_no_inverse():
    b, parent = hinge.MechanismBuilder("ghost"), "world"
    for i in range(65):
        b.add(f"link{i}", parent, hinge.Revolute((0, 0, 1) if i % 2 else (0, 1, 0)))
        parent = f"link{i}"
    robot = hinge.Robot(b.build())
    q = np.zeros(robot.nq)
    assert_close(robot.mass_matrix(q), np.zeros((robot.nv, robot.nv)), 0.0)
    with pytest.raises(hinge.SingularError, match="inverse of 'ghost': joint 'link64_joint' moves"):
        robot.mass_matrix_inverse(q)

"""The methods of a robot: what they are before and after calls, and every way to call them."""

import copy
import gc
import inspect
import pickle
import pydoc
import re
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, HingeError, Robot, zoo
from hinge.model.parameters import parameters, with_parameters
from hinge.robot.method import Method
from hinge.robot.synonyms import METHODS
from hinge.runtime.door import Door
from marks import short_way
from mechanisms import EPS, assert_close, gripper, random_state
from type_checker import wrong_lines

COMPILED = sorted(
    {m.name for k in Robot.__mro__ for m in vars(k).values() if isinstance(m, Method)}
)


def settings(robot, name):
    """Arguments that a method needs besides arrays."""
    known = {
        "frame": robot.frame_names[-1],
        "frames": robot.frame_names[-1],
        "active": robot.joint_names[1:],
        "constraints": (hinge.LoopConstraint(robot.frame_names[-1], "world", axes=(3,)),),
    }
    return {p.name: known[p.name] for p in vars_of(name) if p.required and not p.is_array}


def vars_of(name):
    """The parameters of a compiled method."""
    return inspect.getattr_static(Robot, name).parameters


def arrays(robot, name, lead=()):
    """Random arrays for those that a method needs."""
    rng = np.random.default_rng(3)
    out = {}
    for p in vars_of(name):
        if p.required and p.is_array:
            shape = robot._argument(p.name, None, settings(robot, name)).shape
            q = np.broadcast_to(robot.random_configuration(1), (*lead, robot.nq)).copy()
            is_q = p.name in ("q", "q0", "q1")
            out[p.name] = q if is_q else rng.normal(size=(*lead, *shape))
    return out


def same(got, expected):
    """Whether results are equal, one or several."""
    if isinstance(expected, tuple):
        return all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
    return np.array_equal(got, expected)


def nearly(got, expected):
    """The same to a digit or so: code for one sample may round otherwise than that for many."""
    pairs = zip(got, expected, strict=True)
    return all(np.abs(a - b).max(initial=0) <= 4 * EPS * np.abs(b).max(initial=0) for a, b in pairs)


# sums of its long products are fused otherwise for one sample than for many
ROUNDED_APART = {"constrained_forward_dynamics_derivatives"}


def spelled(name, given):
    """The same arguments by place, by name, and in between."""
    order = [p.name for p in vars_of(name) if p.name in given]
    places = [p.name for p in vars_of(name)][: len(order)]
    yield (), given
    if order == places:
        yield tuple(given[n] for n in order), {}
        yield (given[order[0]],), {n: given[n] for n in reversed(order[1:])}


@pytest.mark.parametrize("name", COMPILED)
def test_every_spelling_goes_straight_to_machine_code(name, monkeypatch):
    robot = zoo.arm(3)
    given = {**arrays(robot, name), **settings(robot, name)}
    method = getattr(robot, name)
    expected = method(**given)
    for args, keywords in spelled(name, given):
        method(*args, **keywords)
        getattr(robot, name)(*args, **keywords)
    batch = {**arrays(robot, name, (2,)), **settings(robot, name)}
    several = getattr(robot, name)(**batch)
    monkeypatch.setattr(hinge.Kernel, "evaluate", None)
    monkeypatch.setattr(Method, "call", None)
    straight = [getattr(robot, name)(*args, **keywords) for args, keywords in spelled(name, given)]
    as_checked = nearly if name in ROUNDED_APART else same
    for got in straight:
        assert type(got) is type(expected)
        assert same(got, straight[0]) and as_checked(got, expected)
    got = getattr(robot, name)(**batch)
    assert type(got) is type(several) and same(got, several)


@pytest.mark.parametrize("name", COMPILED)
def test_results_go_where_they_are_wanted(name):
    robot = zoo.arm(3)
    given = {**arrays(robot, name, (2,)), **settings(robot, name)}
    method = getattr(robot, name)
    expected = method(**given)
    fresh = np.zeros_like(expected) if isinstance(expected, np.ndarray) else None
    out = [np.zeros_like(x) for x in expected] if fresh is None else fresh
    for _ in range(3):
        got = getattr(robot, name)(**given, out=out)
        assert got is out or all(a is b for a, b in zip(got, out, strict=True))
        assert same(got, expected)


@pytest.mark.parametrize("name", [*COMPILED, "linearize", "operators", "inverse_kinematics"])
def test_a_method_stays_a_method(name):
    robot = zoo.arm(3)
    plain = getattr(Robot, name)

    def look():
        method = getattr(robot, name)
        names = [n for n in inspect.signature(method).parameters if n != "numbers"]
        # numbers of the mechanism are keywords of robots that have them open
        expected = list(inspect.signature(plain).parameters)[1:]
        assert names == [n for n in expected if n != "numbers"]
        assert method.__doc__ == plain.__doc__ and method.__doc__
        assert method.__name__ == plain.__name__ and callable(method)
        assert method.__doc__.split("\n")[0] in pydoc.render_doc(method)
        assert pickle.loads(pickle.dumps(method)).__name__ == name

    look()
    if name in COMPILED:
        for _ in range(3):
            getattr(robot, name)(**arrays(robot, name), **settings(robot, name))
        look()
    assert name in dir(robot)


def test_defaults_stand_in_the_signature():
    robot = zoo.arm(2)
    q = np.zeros(2)
    for _ in range(3):
        robot.jacobian(q, "tool")
    text = str(inspect.signature(robot.jacobian))
    assert text == "(q, frame, reference='aligned', out=None)"


class Heavier(Robot):
    """A robot with a method and an attribute of its own."""

    def __init__(self, mechanism):
        self.early = 1
        super().__init__(mechanism)
        self.factor = 2

    def mass_matrix(self, q, out=None):
        """Twice as much."""
        return 2 * super().mass_matrix(q)


def test_methods_can_be_overridden():
    mech, q = zoo.arm(2).mechanism, np.ones(2)
    robot, plain = Heavier(mech), Robot(mech)
    for _ in range(4):
        assert np.array_equal(robot.mass_matrix(q), 2 * plain.mass_matrix(q))
        assert np.array_equal(robot.crba(q), plain.crba(q))
    assert "Twice" in robot.mass_matrix.__doc__ and robot.factor == 2
    assert np.array_equal(copy.copy(robot).crba(q), plain.crba(q))
    again = pickle.loads(pickle.dumps(robot))
    assert again.factor == 2 and np.array_equal(again.mass_matrix(q), robot.mass_matrix(q))
    assert copy.deepcopy(robot).factor == 2 and robot.early == 1


@short_way
def test_a_method_fetched_before_its_first_call_finds_the_door(monkeypatch):
    robot, q = zoo.arm(3), np.ones(3)
    early, of_class = robot.inverse_dynamics, partial(Robot.inverse_dynamics, robot)
    expected = [early(q, q, q) for _ in range(3)][0]
    monkeypatch.setattr(Method, "call", None)
    for method in (early, of_class, robot.inverse_dynamics):
        assert np.array_equal(method(q, qdd=q, qd=q), expected)


@short_way
def test_what_an_interrupted_door_half_learned_is_forgotten(monkeypatch):
    """What its table has addresses of might go, and something else come to lie there."""
    robot, q, write = zoo.arm(3), np.ones(3), Door._write
    expected = [robot.jacobian(q, "tool", r) for r in ("world", "body", "aligned")]

    def interrupted(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(Door, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            robot.jacobian(q, "tool", "world")
    door = robot.jacobian.__self__[3]
    assert not door._answers and door._table[2:4].tolist() == [0, -1]
    for _ in range(3):
        got = [robot.jacobian(q, "tool", r) for r in ("world", "body", "aligned")]
        assert np.array_equal(got, expected)
    assert len(door._answers) == door._table[2] == 3


def test_a_robot_pickles_without_what_it_has_learned():
    robot = zoo.arm(3)
    s = random_state(robot, 0)
    before = pickle.dumps(robot)
    for _ in range(3):
        tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    assert pickle.dumps(robot) == before
    again = pickle.loads(before)
    assert np.array_equal(again.inverse_dynamics(s.q, s.qd, s.qdd), tau)


def test_a_robot_that_nobody_needs_is_collected():
    robot = Robot(zoo.arm(2).mechanism)
    for _ in range(3):
        robot.mass_matrix(np.zeros(2))
    gone = weakref.ref(robot)
    del robot
    gc.collect()
    assert gone() is None


def test_no_array_is_kept():
    robot = zoo.arm(2)

    class Watched(np.ndarray):
        """Arrays that can be watched."""

    gone = []
    for _ in range(4):
        q, out = np.zeros(2).view(Watched), np.zeros((2, 2)).view(Watched)
        robot.mass_matrix(np.asarray(q), out=out.view(np.ndarray))
        robot.inverse_dynamics(q, q, q)
        gone += [weakref.ref(q), weakref.ref(out)]
        del q, out
    gc.collect()
    assert not any(ref() is not None for ref in gone)


def test_many_frames_take_turns():
    """More settings than a door remembers."""
    robot = zoo.humanoid()
    q = robot.random_configuration(0)
    frames = robot.frame_names
    assert len(frames) > 9
    for _ in range(3):
        for frame in frames:
            assert_close(robot.frame_pose(q, frame), robot.alg.frame_pose(q, frame), 8 * EPS)


def test_threads_take_turns_at_one_door():
    """More settings than a door remembers, asked for and forgotten while others are in them."""
    robot = zoo.humanoid()
    q = np.array([robot.random_configuration(i) for i in range(400)])
    frames = robot.frame_names[-12:]
    expected = {frame: robot.frame_pose(q, frame) for frame in frames}
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            frame = frames[rng.integers(len(frames))]
            if not np.array_equal(robot.frame_pose(q, frame), expected[frame]):
                wrong.append(frame)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_names_that_are_equal_but_not_the_same_object():
    robot, q = zoo.arm(3), np.ones(3)
    expected = robot.frame_pose(q, "tool")
    for _ in range(5):
        assert np.array_equal(robot.frame_pose(q, "".join(["to", "ol"])), expected)
        assert np.array_equal(
            robot.frame_pose(**{"".join(["q"]): q, "fra" + "me": "tool"}), expected
        )


SLIDE = hinge.LoopConstraint("tool", "world", axes=(3,))
CHOICES = {
    "reference": ["aligned", "body", "world"],
    "about": ["com", "world"],
    "normalized": [True, False],
    "load": ["body", "world"],
    "kind": [1, 2],
    "order": [1],
    "method": [None, "articulated", "conventional"],
    "active": [("joint1",), ("joint2", "joint3"), [True, False, True], "joint3"],
    "frame": ["tool", "link2", "world"],
    "frames": ["tool", ("tool", "link1")],
    "constraints": [SLIDE, (SLIDE,), [SLIDE, hinge.Contact("link2", damping=3.0)]],
}


def random_call(robot, method, rng):
    """Random settings and forces for a method, spelled at random."""
    given = arrays(robot, method.name, (2,) if rng.random() < 0.3 else ())
    for p in method.parameters:
        if p.name in CHOICES and (p.required or rng.random() < 0.5):
            words = ["sweep", "scan"] if p.default == "sweep" else CHOICES[p.name]
            given[p.name] = words[rng.integers(len(words))]
        elif p.name == "f_ext" and rng.random() < 0.4:
            given["f_ext"] = None if rng.random() < 0.3 else rng.normal(size=(3, 6))
    order = [p.name for p in method.parameters]
    most = next((i for i, n in enumerate(order) if n not in given), len(order))
    places = int(rng.integers(most + 1))
    names = [n for n in order[places:] if n in given]
    rng.shuffle(names)
    return [given[n] for n in order[:places]], {n: given[n] for n in names}


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_any_calls_in_any_order_give_what_the_checked_way_gives(seed):
    rng, robot, other = np.random.default_rng(seed), zoo.arm(3), zoo.arm(3)
    # of which not every random call has an answer
    special = ("constrained_inverse_dynamics", "friction_residuals")
    chosen = [inspect.getattr_static(Robot, n) for n in COMPILED if n not in special]
    methods = [chosen[i] for i in rng.choice(len(chosen), 8, replace=False)]
    for _ in range(150):
        method = methods[rng.integers(len(methods))]
        places, names = random_call(robot, method, rng)
        got = getattr(robot, method.name)(*places, **names)
        expected = getattr(Robot, method.name)(other, *places, **names)
        assert type(got) is type(expected)
        parts = (got, expected) if isinstance(got, tuple) else ((got,), (expected,))
        for a, b in zip(*parts, strict=True):
            assert_close(a, b, 100 * EPS)


def test_defaults_are_not_what_was_asked_first():
    robot = zoo.quadruped()
    s = random_state(robot, 0)
    for about in ("world", "world", None, "com", None, "world", None):
        keywords = {} if about is None else {"about": about}
        expected = robot.alg.momentum(s.q, s.qd, **keywords)
        assert_close(robot.momentum(s.q, s.qd, **keywords), expected, 50 * EPS)
    for reference in ("body", "body", "body", None, "world", None):
        given = () if reference is None else (reference,)
        expected = robot.alg.jacobian(s.q, "trunk", *given)
        assert_close(robot.jacobian(s.q, "trunk", *given), expected, 50 * EPS)


def test_a_list_that_changes_is_read_again():
    robot = zoo.arm(3)
    x, active = np.ones(3), ["joint1"]
    first = [robot.hybrid_dynamics(x, x, x, x, active) for _ in range(3)][-1]
    active[0] = "joint2"
    second = robot.hybrid_dynamics(x, x, x, x, active)
    assert not np.array_equal(first.tau, second.tau)
    assert_close(second.tau, robot.alg.hybrid_dynamics(x, x, x, x, ["joint2"]).tau, 20 * EPS)


@short_way
def test_constraints_in_tuples_and_lists_go_straight_to_machine_code(monkeypatch):
    """Whoever holds them; a list is looked into at every call."""
    robot, x = zoo.arm(3), np.ones(3)
    a, b = SLIDE, hinge.LoopConstraint("tool", "world", axes=(4,))
    spellings = [lambda: a, lambda: (a, b), lambda: [a, b], lambda: [b], tuple]
    move, mask = robot.constrained_forward_dynamics, [1.0]
    for make in spellings:
        for _ in range(3):
            getattr(robot, move.__name__)(x, x, x, make())
    robot.constrained_forward_dynamics(x, x, x, [a], mask=np.array(mask))
    expected = [robot.alg.constrained_forward_dynamics(x, x, x, _listed(f())) for f in spellings]
    monkeypatch.setattr(Method, "call", None)
    for make, motion in zip(spellings, expected, strict=True):
        assert_close(robot.constrained_forward_dynamics(x, x, x, make()).qdd, motion.qdd, 100 * EPS)
    robot.constrained_forward_dynamics(x, x, x, [a], mask=np.array(mask))
    with pytest.raises(TypeError):
        robot.constrained_forward_dynamics(x, x, x, [b, a])


def _listed(constraints):
    return [constraints] if isinstance(constraints, hinge.LoopConstraint) else constraints


def test_forces_come_and_go():
    robot = gripper()
    s = random_state(robot, 0)
    with_forces = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    without = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd)
    for _ in range(4):
        assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), with_forces, 50 * EPS)
        assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd, None), without, 50 * EPS)
        assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd, f_ext=s.f_ext), with_forces, 50 * EPS)
        assert_close(robot.inverse_dynamics(s.q, qd=s.qd, qdd=s.qdd), without, 50 * EPS)


WRONG = {
    "one too many": (lambda r, x: r.mass_matrix(x, None, x), "got 3 arguments; it takes q, out"),
    "unknown": (lambda r, x: r.inverse_dynamics(x, x, x, fext=x), "fext is not an argument; did y"),
    "twice": (lambda r, x: r.inverse_dynamics(x, x, x, q=x), "q is given twice"),
    "missing": (lambda r, x: r.inverse_dynamics(x, qdd=x), "qd is missing, or None; it takes q, "),
    "no number": (lambda r, x: r.inverse_dynamics(x, x, "fast"), "qdd is 'fast'; expected shape"),
    "name first": (lambda r, x: r.frame_pose("tool", x), "frame is an array.*takes q, frame, out"),
    "no name": (lambda r, x: r.jacobian(x, x), r"frame is an array of shape \(3,\); expected a n"),
    "duration": (lambda r, x: r.integrate(x, x, 0.01), "out is not a .*, but 0.01"),
    "another's word": (lambda r, x: r.inverse_dynamics(x, x, qddot=x), "did you mean 'qdd'"),
    "a search": (lambda r, x: r.inverse_kinematics("tool", x, q_init=x), "did you mean 'q0'"),
    "a search's": (
        lambda r, x: r.follow("tool", x, start=x),
        "start is not an argument; did you mean 'target'",
    ),
    "two things": (lambda r, x: r.inverse_kinematics("tool", np.eye(3)), "rotation, or three poi"),
    "number of a closed robot": (lambda r, x: r.mass_matrix(x, inertia=x), "inertia is folded"),
    "frame": (lambda r, x: r.frame_pose(x, "toll"), "did you mean 'tool'"),
    "NaN": (lambda r, x: r.mass_matrix(x * np.nan), "is nan; expected finite numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_say_so_at_first_and_later(wrong):
    call, message = WRONG[wrong]
    robot, x = zoo.arm(3), np.ones(3)
    for _ in range(4):
        with pytest.raises(HingeError, match=message):
            call(robot, x)
        robot.mass_matrix(x), robot.inverse_dynamics(x, x, x), robot.frame_pose(x, "tool")


@pytest.mark.parametrize("name", ["gravity", "dtype", "threads", "mechanism", "mass", "crba"])
def test_what_would_be_ignored_cannot_be_set(name):
    robot = zoo.arm(2)
    with pytest.raises(hinge.ImmutableError, match=f"robot 'arm2': {name} cannot be set"):
        setattr(robot, name, 1)


def test_dir_shows_what_users_use():
    shown = [n for n in dir(zoo.arm(2)) if not n.startswith("_")]
    assert set(COMPILED) < set(shown)
    assert all(getattr(Robot, n).__doc__ for n in shown)
    assert not {"keep", "apply", "argument", "opened", "asked"} & set(shown)


def test_numbers_of_the_mechanism_take_the_short_way(monkeypatch):
    robot = Robot(zoo.arm(3).mechanism, parameters=("inertia", "gravity"))
    x = np.ones(3)
    numbers = parameters(robot.mechanism)
    plain = robot.inverse_dynamics(x, x, x)
    for _ in range(2):
        heavy = robot.inverse_dynamics(x, x, x, inertia=2 * numbers["inertia"])
        robot.inverse_dynamics(x, x, x)
    text = str(inspect.signature(robot.inverse_dynamics))
    assert text == "(q, qd, qdd, f_ext=None, out=None, inertia=None, gravity=None)"
    other = Robot(with_parameters(robot.mechanism, inertia=2 * numbers["inertia"]))
    assert_close(heavy, other.inverse_dynamics(x, x, x), 50 * EPS)
    monkeypatch.setattr(hinge.Kernel, "evaluate", None)
    assert_close(robot.inverse_dynamics(x, x, x), plain, 0.0)
    again = robot.inverse_dynamics(x, x, x, inertia=2 * numbers["inertia"])
    assert_close(again, heavy, 0.0)


def test_other_arrays_take_the_checked_way():
    robot = zoo.arm(3)
    s = random_state(robot, 0)
    expected = [robot.inverse_dynamics(s.q, s.qd, s.qdd) for _ in range(3)][-1]
    twice = np.repeat(s.q, 2)
    for q in (list(s.q), tuple(s.q), twice[::2], s.q.astype(">f8"), s.q.astype(np.longdouble)):
        assert_close(robot.inverse_dynamics(q, s.qd, s.qdd), expected, 10 * EPS)
    with pytest.raises(ArgumentError, match="q has shape"):
        robot.inverse_dynamics(twice, s.qd, s.qdd)


PROGRAM = """
import numpy as np
import hinge

def use(robot: hinge.Robot, q: np.ndarray) -> None:
    tau: np.ndarray = robot.inverse_dynamics(q, q, qdd=q, f_ext=None)
    robot.inverse_dynamics(q, q, q, f_exd=q)           # a misspelt keyword
    robot.inverse_dynamics(q, q)                       # one argument too few
    robot.jacobian(q, "tool", reference="base")        # a choice that there is not
    robot.mass_matrix(q, inertia=q)
    robot.mass_matrix(q, inertias=q)                   # a misspelt number of the mechanism
    slopes: np.ndarray = robot.forward_dynamics_derivatives(q, q, q).dtau
    second = robot.forward_dynamics_derivatives(q, q, q, order=2).dq_dtau
    robot.forward_dynamics_derivatives(q, q, q).dq_dtau    # that is of second order
    motion: hinge.Trajectory = hinge.simulate(robot, q, duration=1.0, gravity=(0, 0, 0))
    hinge.simulate(robot, q, duraton=1.0)              # a misspelt keyword
    robot.alg.mass_matrix(q, q)                        # one argument too many

    @robot.compile
    def step(q: np.ndarray, dt: float) -> np.ndarray:
        return q + dt * slopes @ q

    moved: np.ndarray = step(q, 0.1) + step(q, dt=0.1) + step(q, 0.1, out=q)
    step(q, td=0.1)                                    # a misspelt keyword
    kernel = hinge.compile(lambda x: x * 2, x=(3,))
    print(tau, second, motion, moved, kernel(q))
"""


def test_a_type_checker_knows_what_methods_take(tmp_path):
    found, marked = wrong_lines(tmp_path, PROGRAM)
    assert found == marked


@pytest.mark.parametrize("name", sorted(METHODS))
def test_names_of_other_libraries_lead_to_ours(name):
    robot = zoo.arm(2)
    for ours in METHODS[name]:
        assert hasattr(robot, ours)
    with pytest.raises(
        AttributeError, match=re.escape(f"'Robot' object has no attribute {name!r}")
    ):
        getattr(robot, name)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("forward_kinematics", "'poses' or 'frame_pose'"),
        ("fk", "'poses' or 'frame_pose'"),
        ("computeJointJacobians", "'jacobian'"),
        ("jacobianTimeVariation", "'velocity_product_acceleration'"),
        ("nle", "'bias_forces'"),
        ("nonLinearEffects", "'bias_forces'"),
        ("ik", "'inverse_kinematics'"),
    ],
)
def test_what_is_meant_is_said_and_nothing_else_suggested(name, ours):
    with pytest.raises(AttributeError, match=f"hinge calls that {ours}") as raised:
        getattr(zoo.arm(2), name)
    # Python would suggest the name whose letters are nearest, of the object that it is given
    assert raised.value.obj is None


def test_other_names_are_left_to_python():
    robot = zoo.arm(2)
    with pytest.raises(AttributeError) as raised:
        _ = robot.mass_matrx
    assert raised.value.obj is robot and not hasattr(robot, "_nothing")

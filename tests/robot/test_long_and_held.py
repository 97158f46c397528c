"""Derivatives of long mechanisms that are held: what the generic code gives, for any number."""

import numpy as np
import pytest

import hinge
from hinge import Contact, LoopConstraint, SingularError, zoo
from hinge.robot.held import ByHeld
from hinge.specialize import routing
from mechanisms import EPS, assert_close, everything, random_state

SNAKE, EVERYTHING = zoo.snake(44), everything()
TREE = zoo.tree(3, 50)
ANCHORED = Contact("tail", anchor=np.zeros(3), stiffness=9.0, damping=3.0)
HELD = {
    "point": (SNAKE, (Contact("tail"),)),
    "flat": (SNAKE, (Contact("tail", "flat"),)),
    "closed": (SNAKE, (LoopConstraint("tail", "link20", axes=(0, 1, 3, 4, 5)),)),
    "two": (SNAKE, (ANCHORED, LoopConstraint("link40", "link9", axes=(0, 1, 3)))),
    "twice": (SNAKE, (Contact("tail"), Contact("tail"))),
    "branches": (TREE, (Contact(TREE.frame_names[-1]), Contact(TREE.frame_names[20], "flat"))),
    "every joint": (
        EVERYTHING,
        (
            Contact(EVERYTHING.frame_names[-1]),
            LoopConstraint(*EVERYTHING.frame_names[-1:2:-4][:2], axes=(3, 4, 5)),
        ),
    ),
}


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    """Derivatives of these come by parts, as those of longer ones do, short mechanisms' too."""
    monkeypatch.setattr(routing, "MOST_UNROLLED", 8)
    monkeypatch.setattr(routing, "MOST_BLOCKS", 64)


def fresh(title):
    """A robot that has made nothing yet, what holds it, and a state of it."""
    robot, held = HELD[title]
    robot = hinge.Robot(robot.mechanism)
    return robot, held, random_state(robot, 4)


def compare(found, expected, bound):
    for field, got in zip(expected._fields, found, strict=True):
        assert_close(got, getattr(expected, field), bound, what=field)


@pytest.mark.filterwarnings("ignore::hinge.errors.OpenLoopWarning")
@pytest.mark.parametrize("title", HELD)
def test_the_held_motion_and_how_it_changes(title):
    """One sample and a batch, against the plain code of the recursions."""
    robot, held, s = fresh(title)
    tau, f = np.random.default_rng(2).normal(size=robot.nv), s.f_ext
    expected = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held, f)
    many = [np.array([x] * 3) for x in (s.q, s.qd, tau)]
    name = "constrained_forward_dynamics_derivatives"
    assert "by parts, from constrained_changes, forward_" in robot.explain(name, constraints=held)
    one = robot.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held, f_ext=f)
    batch = robot.constrained_forward_dynamics_derivatives(*many, held, f_ext=f)
    compare(one, expected, 1e6 * EPS)
    compare([x[1] for x in batch], expected, 1e6 * EPS)


@pytest.mark.filterwarnings("ignore::hinge.errors.OpenLoopWarning")
@pytest.mark.parametrize("title", HELD)
def test_an_impact_and_how_it_changes(title):
    robot, held, s = fresh(title)
    back = None if title == "twice" else np.linspace(0.2, 0.7, len(held))
    expected = robot.alg.impulse_dynamics_derivatives(s.q, s.qd, held, back)
    found = robot.impulse_dynamics_derivatives(s.q, s.qd, held, restitution=back)
    compare(found, expected, 1e6 * EPS)
    without = robot.impulse_dynamics_derivatives(np.array([s.q] * 2), np.array([s.qd] * 2), held)
    compare(
        [x[0] for x in without], robot.alg.impulse_dynamics_derivatives(s.q, s.qd, held), 1e6 * EPS
    )


def test_they_are_the_slopes_of_the_motion():
    """A long snake along a random direction, by complex steps of the plain code."""
    robot, held, s = fresh("two")
    rng = np.random.default_rng(0)
    tau, (dq, dqd, dtau) = rng.normal(size=robot.nv), rng.normal(size=(3, robot.nv))
    d = robot.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held)
    h, alg = 1e-30j, robot.alg
    moved = alg.constrained_forward_dynamics(
        alg.integrate(s.q, h * dq), s.qd + h * dqd, tau + h * dtau, held
    )
    slopes = [x.imag / abs(h) for x in moved]
    assert_close(d.dq @ dq + d.dqd @ dqd + d.dtau @ dtau, slopes[0], 1e7 * EPS)
    along = d.forces_dq @ dq + d.forces_dqd @ dqd + d.forces_dtau @ dtau
    assert_close(along, slopes[1], 1e7 * EPS)


def test_marks_anchors_and_single_precision():
    robot, held, s = fresh("two")
    single = hinge.Robot(robot.mechanism, dtype=np.float32)
    tau, at = np.random.default_rng(2).normal(size=robot.nv), np.eye(4)[None] * [[1.0]]
    for mask in ((1, 0), (0, 1), (1, 1)):
        more = {"mask": np.array(mask, float), "anchors": at}
        found = robot.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held, **more)
        plain = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held, **more)
        compare(found, plain, 1e6 * EPS)
    q, qd, tau, *rest = (np.float32(x) for x in (s.q, s.qd, tau, *more.values()))
    more = dict(zip(more, rest, strict=True))
    coarse = single.constrained_forward_dynamics_derivatives(q, qd, tau, held, **more)
    assert {x.dtype for x in coarse} == {np.dtype(np.float32)}
    compare(coarse, plain, 1e4 * np.finfo(np.float32).eps)


def test_what_contradicts_itself_is_refused():
    """In a single call with its name; in a batch one sample is NaN, in all matrices."""
    robot = hinge.Robot(SNAKE.mechanism)
    torn = [Contact("tail", anchor=(x, 0.0, 0.0), stiffness=100.0) for x in (0.0, 1.0)]
    q, x = robot.neutral(), np.zeros((2, robot.nv))
    why = "constrained_forward_dynamics_derivatives of .* no motion keeps 'tail' on 'world'"
    with pytest.raises(SingularError, match=why.replace("_derivatives", "")):
        robot.constrained_forward_dynamics_derivatives(q, x[0], x[0], torn)
    marks = np.array([[1.0, 0.0], [1.0, 1.0]])
    two = np.tile(q, (2, 1))
    found = robot.constrained_forward_dynamics_derivatives(two, x, x, torn, mask=marks)
    assert all(np.isfinite(a[0]).all() and np.isnan(a[1]).all() for a in found)


def test_in_arrays_that_are_there():
    robot, held, s = fresh("point")
    tau = np.zeros(robot.nv)
    expected = robot.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held)
    out = tuple(np.empty_like(x) for x in expected)
    found = robot.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, held, out=out)
    assert all(a is b for a, b in zip(found, out, strict=True))
    compare(out, expected, EPS)


def test_which_way_goes_what(monkeypatch):
    """Past 64 bodies by parts; below one sample of a motion from M⁻¹, and impacts unrolled."""
    monkeypatch.undo()
    held = {"constraints": (Contact("tail"),)}
    motion, impact = "constrained_forward_dynamics_derivatives", "impulse_dynamics_derivatives"
    plans = {
        (n, name, samples): routing.route(zoo.snake(n).mechanism, name, (), held, samples)
        for n in (20, 50, 70)
        for name in (motion, impact)
        for samples in (1, None)
    }
    found = {key: (way.plan, way.pieces[1:2]) for key, way in plans.items()}
    free = (routing.Piece("forward_dynamics_derivatives"),)
    inverse = (routing.Piece("inverse_dynamics_derivatives"),)
    assert found[20, motion, None] == found[50, impact, None] == ("unrolled", ())
    assert found[50, motion, 1] == ("parts", inverse) and found[50, motion, None] == ("parts", free)
    for samples in (1, None):
        assert found[70, motion, samples] == found[70, impact, samples] == ("parts", free)
    robot = zoo.snake(70)
    answer = robot._answer(motion, ("q", "qd", "tau"), held, tuple)
    assert isinstance(answer, ByHeld) and answer.entry(None) is None

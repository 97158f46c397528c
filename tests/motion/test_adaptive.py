"""Steps of any length: errors as asked for, dense output, events."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hinge
from hinge import ArgumentError, HingeError, SingularError, simulate, zoo
from hinge.motion.dense import Stretches, states
from mechanisms import EPS, JOINTS, assert_close, random_state

PENDULUM = zoo.pendulum(1)


def adaptive(robot, *state, **settings):
    return simulate(robot, *state, method="adaptive", **settings)


def ball():
    b = hinge.MechanismBuilder("ball")
    b.add("ball", "world", hinge.Prismatic((0, 0, 1)), inertia=hinge.Inertia(1.0))
    return hinge.Robot(b.build())


def height(t, q, qd):
    return q[0]


def marked(fn, **marks):
    """A function with attributes, as `solve_ivp` has them."""

    def event(t, q, qd):
        return fn(t, q, qd)

    for name, value in marks.items():
        setattr(event, name, value)
    return event


# accuracy


def test_it_agrees_with_another_integrator():
    robot, n = zoo.arm(4), 4
    s = random_state(robot, 1)

    def rate(t, y):
        qdd = robot.forward_dynamics(y[:n], y[n:], [0.1 * np.sin(t)] * n)
        return np.concatenate([y[n:], qdd])

    times = np.linspace(0, 1, 101)
    start = np.concatenate([s.q, s.qd])
    exact = solve_ivp(rate, (0, 1), start, "DOP853", times, rtol=1e-12, atol=1e-12).y.T
    law = lambda t, q, qd: np.sin(t) * np.full(n, 0.1)  # noqa: E731
    errors = []
    for tolerance in (1e-5, 1e-7, 1e-9):
        settings = {"rtol": tolerance, "limits": False}
        run = adaptive(robot, s.q, s.qd, law, duration=1.0, dt=0.01, **settings)
        assert_close(run.t, times, 4 * EPS)
        errors.append(np.abs(np.concatenate([run.q, run.qd], axis=1) - exact).max())
        assert run.taken > 10 and run.rejected < run.taken
    assert errors[0] < 0.3 and errors[2] < 1e-5
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


@pytest.mark.parametrize("seed", [0, 1])
def test_quaternions_branches_and_springs(seed):
    """Against many short steps of another method; every joint type is in one of the two."""
    robot = zoo.tree(seed, 6)
    s = random_state(robot, 1)
    exact = simulate(robot, s.q, s.qd, duration=1.0, dt=5e-4, every=20, f_ext=s.f_ext)
    run = adaptive(robot, s.q, s.qd, duration=1.0, dt=0.01, rtol=1e-9, f_ext=s.f_ext)
    assert_close(robot.difference(exact.q, run.q), np.zeros_like(run.qd), 1e-7)
    assert_close(run.qd, exact.qd, 1e-6)


@pytest.mark.parametrize("kind", ["spherical", "planar", "free", "universal"])
def test_dense_output_is_of_sixth_order(kind):
    """Of a body on one joint: a quintic between two states that are exact."""
    b = hinge.MechanismBuilder(kind)
    body = hinge.Inertia(1.0, (0.1, 0.2, 0.3), np.diag([0.5, 0.6, 0.7]))
    robot = hinge.Robot(b.add("body", "world", JOINTS[kind], inertia=body).build())
    s = random_state(robot, 2)
    errors = []
    for h in (0.4, 0.2):
        run = simulate(robot, s.q, s.qd, duration=h, dt=h / 400)
        qdd = robot.forward_dynamics(run.q, run.qd, 0 * run.qd)
        ends = [x[i : i + 1] for i in (0, 400) for x in (run.q, run.qd, qdd)]
        piece = Stretches(np.zeros(1, int), np.zeros(1), np.array([h]), *ends)
        q, qd = states(robot, piece, np.array([0.4]))
        errors.append(
            (np.abs(robot.difference(q[0], run.q[160])).max(), np.abs(qd[0] - run.qd[160]).max())
        )
    ratios = np.divide(*errors)
    assert ratios[0] > 40 and ratios[1] > 20, (errors, ratios)


def test_samples_have_steps_of_their_own():
    robot = zoo.space_arm(2)
    q = np.stack([random_state(robot, i).q for i in range(5)])
    qd = np.stack([(i + 1) * random_state(robot, i).qd for i in range(5)])
    run = adaptive(robot, q, qd, duration=1.0, dt=0.1)
    assert run.q.shape == (11, 5, robot.nq) and len(set(run.taken)) > 1
    for i in range(5):
        alone = adaptive(robot, q[i], qd[i], duration=1.0, dt=0.1)
        assert alone.taken == run.taken[i]
        assert_close(run.q[:, i], alone.q, 100 * EPS)
    bad = q.copy()
    bad[2, 3] = np.nan
    other = adaptive(robot, bad, qd, duration=1.0, dt=0.1)
    assert np.isnan(other.q[1:, 2]).all()
    assert np.array_equal(other.q[:, [0, 1, 3, 4]], run.q[:, [0, 1, 3, 4]])


@pytest.mark.filterwarnings("ignore::hinge.TraceWarning")
def test_laws_that_cannot_be_traced_take_steps_together():
    def law(t, q, qd):
        return -0.5 * np.array(q, float)

    robot, q = zoo.pendulum(2), np.array([[0.1, 0.2], [1.0, -0.5]])
    run = adaptive(robot, q, tau=law, duration=0.5, dt=0.1)
    exact = adaptive(robot, q, tau=lambda t, q, qd: -0.5 * q, duration=0.5, dt=0.1, rtol=1e-10)
    assert run.taken[0] == run.taken[1]
    assert_close(run.q, exact.q, 1e-4)
    one = adaptive(robot, q[0], tau=law, duration=0.5, dt=0.1)
    assert_close(one.q, exact.q[:, 0], 1e-4)


def test_single_precision_and_no_joints():
    robot = hinge.Robot(zoo.arm(3).mechanism, dtype=np.float32)
    run = adaptive(robot, np.ones(3), duration=0.2, dt=0.1)
    exact = adaptive(zoo.arm(3), np.ones(3), duration=0.2, dt=0.1)
    assert run.q.dtype == np.float32
    assert_close(run.q, exact.q, 1e-2)
    empty = hinge.Robot(hinge.MechanismBuilder("empty").add("post", "world").build())
    assert adaptive(empty, [], duration=0.2, dt=0.1).q.shape == (3, 0)


# events


@pytest.mark.parametrize("method", ["adaptive", "rk4", "variational", "semi_implicit_euler"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_terminal_event_ends_the_motion(method, compiled):
    robot, dt = ball(), 0.01
    hit = marked(height, terminal=True, direction=-1)
    run = simulate(
        robot, [1.0], [2.0], duration=3.0, dt=dt, method=method, events=hit, compiled=compiled
    )
    when = (2 + np.sqrt(4 + 2 * 9.81)) / 9.81
    loose = 2 * dt if method == "semi_implicit_euler" else 20 * EPS
    assert abs(run.t[-1] - when) < loose and run.events[0].t[0] == pytest.approx(run.t[-1])
    assert len(run.t) == len(run.q) == len(run.tau) == 71
    assert np.abs(run.q[-1]).max() < 1e-14
    assert_close(run.q[-1], run.events[0].q[0], 10 * EPS)


def test_events_are_found_with_their_direction():
    """Of a pendulum: where it is lowest, and where it turns, a quarter of its period apart."""
    low, turn = marked(height), marked(lambda t, q, qd: qd[0])
    up = marked(height, direction=1)
    called = marked(lambda t, q, qd: float(q[0]))
    run = adaptive(
        PENDULUM, [1.0], duration=3.0, dt=0.1, rtol=1e-10, events=[low, turn, up, called]
    )
    zeros, turns, ups, same = run.events
    quarter = zeros.t[0]
    assert_close(zeros.t, quarter * np.array([1.0, 3.0, 5.0]), 1e-8)
    assert_close(turns.t, quarter * np.array([2.0, 4.0, 6.0])[: len(turns.t)], 1e-8)
    assert_close(ups.t, zeros.t[1:2], EPS)
    assert_close(same.t, zeros.t, EPS)
    assert np.abs(zeros.q).max() < 1e-12 and np.abs(turns.qd).max() < 1e-10
    fixed = simulate(PENDULUM, [1.0], duration=3.0, dt=1e-3, events=low)
    assert_close(fixed.events[0].t, zeros.t, 1e-8)


def test_events_of_a_batch_and_with_forces_of_each_step():
    run = simulate(
        PENDULUM, [[1.0], [0.5]], taus=np.full((1000, 2, 1), 0.01), dt=1e-3, events=height
    )
    found = run.events[0]
    assert found.sample.tolist() == [1, 0] and (np.diff(found.t) > 0).all()
    again = adaptive(PENDULUM, [[1.0], [0.5]], tau=[0.01], duration=1.0, rtol=1e-9, events=height)
    assert_close(again.events[0].t, found.t, 1e-6)
    forced = simulate(
        ball(), [0.1], taus=np.full((300, 1), 2.0), dt=1e-3, events=marked(height, terminal=True)
    )
    assert abs(forced.t[-1] - np.sqrt(0.2 / 7.81)) < 1e-12
    assert len(forced.tau) == len(forced.t) and (forced.tau == 2.0).all()


# refusals

BAD = {
    "rtol": (dict(rtol=1e-6, method="rk4"), "method 'rk4' does not look at its error; leave it"),
    "atol": (dict(atol=1e-6, method="rk4"), "atol is 1e-06, and method 'rk4' does not look at"),
    "steps": (dict(max_steps=9, method="rk4"), "max_steps is 9, and method 'rk4' does not look"),
    "no steps": (dict(max_steps=0.5), "max_steps is 0.5; expected a whole number above 0"),
    "no tolerance": (dict(rtol=0.0), "rtol is 0.0; expected a finite number above 0"),
    "too fine": (dict(rtol=1e-17), "rtol is 1e-17; float64 cannot tell less than 2e-15 apart"),
    "every": (dict(every=2), "every is 2; events and method 'adaptive' look at every step"),
    "taus": (dict(taus=np.zeros((10, 1))), "taus are held for steps of dt, and method 'adaptive'"),
    "event": (dict(events=lambda q: q[0]), r"event 0 is .*; expected a function of \(t, q, qd\)"),
    "no event": (dict(events=[3]), "event 0 is 3; expected a function"),
    "event's value": (dict(events=lambda t, q, qd: q), r"event 0 gave array\(.*; expected one fin"),
    "event in a batch": (
        dict(q=[[0.1], [0.2]], events=marked(height, terminal=True)),
        "event 0 is terminal, and ends one motion; this is a batch",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_meant_is_refused(case):
    change, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        usual = dict(robot=PENDULUM, q=[0.1], duration=0.1, dt=0.01, method="adaptive")
        simulate(**{**usual, **change})


def test_a_jump_without_end_is_refused():
    """A force that is not finite from a time on: no step is short enough."""
    law = lambda t, q, qd: hinge.where(hinge.less(t, 0.05), 0 * q, q / (t - t))  # noqa: E731
    with pytest.raises(SingularError, match="no step from t = 0.05 on is short enough"):
        adaptive(PENDULUM, [0.1], tau=law, duration=0.1, dt=0.01)
    run = adaptive(PENDULUM, [[0.1], [0.2]], tau=law, duration=0.1, dt=0.01)
    assert np.isnan(run.q[-1]).all() and np.isfinite(run.q[4]).all()
    with pytest.raises(HingeError):
        adaptive(PENDULUM, [0.1], tau=lambda t, q: q)


def noise(t, q, qd):
    return np.random.default_rng().normal(size=q.shape)


def stiff(t, q, qd):
    return np.array([-1.0, -1e9]) * q


STILL = {
    "noise": (noise, 200, {"compiled": False}, "joint[12]"),
    "stiff": (stiff, 2000, {}, "joint2"),
}


@pytest.mark.parametrize("case", STILL)
def test_a_motion_that_stands_still_is_refused(case):
    """Where, in which state, and which joint it waits for; of a batch that sample alone."""
    law, most, given, joint = STILL[case]
    said = rf"stands still at t = .* of 0.5: \d+ steps so far.*error of joint '{joint}' at q = \["
    with pytest.raises(SingularError, match=rf"{said}.*qd = \[.*max_steps = {most}"):
        still = {"duration": 0.5, "max_steps": most, "limits": False}
        adaptive(zoo.arm(2), [0.3, 0.2], tau=law, **still, **given)


def test_of_a_batch_what_stands_still_is_nan():
    """One pendulum hangs, the other is on a spring that is far too stiff for its motion."""
    stiff = lambda q: -1e9 * (q - 0.6)  # noqa: E731
    law = lambda t, q, qd: hinge.where(hinge.less(0.0, q), stiff(q), 0.0 * q)  # noqa: E731
    run = adaptive(PENDULUM, [[-0.5], [0.5]], tau=law, duration=0.1, dt=0.02, max_steps=500)
    assert np.isfinite(run.q[:, 0]).all() and np.isnan(run.q[-1, 1]).all()


def test_steps_may_be_as_many_as_are_asked_for():
    given = dict(q=[0.3, 0.2], tau=stiff, duration=1e-3, dt=1e-4, limits=False)
    with pytest.raises(SingularError, match="stands still .* allow more than max_steps = 40"):
        adaptive(zoo.arm(2), max_steps=40, **given)
    run = adaptive(zoo.arm(2), max_steps=100_000, **given)
    assert np.isfinite(run.q).all() and run.taken + run.rejected > 40


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_an_event_that_is_no_number_is_refused(method):
    event = lambda t, q, qd: np.sqrt(q[0] - 5.0)  # noqa: E731
    with pytest.raises(
        ArgumentError, match=r"event 0 gave nan at t = 0, q = \[0.1\]; expected one"
    ):
        simulate(PENDULUM, [0.1], duration=0.1, dt=0.01, method=method, events=event)
    # of a batch a state that is none says nothing of the event
    q = np.array([[0.1], [np.nan]])
    run = simulate(PENDULUM, q, duration=2.0, dt=0.01, method=method, events=lambda t, q, qd: q[0])
    assert set(run.events[0].sample) == {0}


@pytest.mark.parametrize("change", [{"duration": 1e300}, {"dt": 1e-300}, {"dt": 5e-324}])
def test_steps_without_number_are_refused(change):
    with pytest.raises(ArgumentError, match=r"duration = .* in steps of dt = .* more than 1e\+10"):
        simulate(PENDULUM, [0.1], **change)

"""Functions that others give may write into their arguments: what they get is their own."""

from inspect import getsource

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import ArgumentError, control, simulate, zoo
from mechanisms import EPS, assert_close, random_state

ARM = zoo.arm(3)
GOAL = np.array([0.5, 0.3, -0.4])
STATE = random_state(ARM, 0)


def pure(t, q, qd):
    return -20.0 * (q - GOAL) - 2.0 * qd


def writing(t, q, qd):
    q -= GOAL
    qd *= 2.0
    return -20.0 * q - qd


WAYS = {
    "rk4": {},
    "in Python": {"compiled": False},
    "variational": {"method": "variational"},
    "adaptive": {"method": "adaptive"},
    "adaptive in Python": {"method": "adaptive", "compiled": False},
    "on rigid ground": {"ground": hinge.Ground(["tool"], law="rigid")},
    "on rigid ground in Python": {
        "ground": hinge.Ground(["tool"], law="rigid"),
        "compiled": False,
    },
}


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("way", WAYS)
def test_a_law_that_writes_moves_the_robot_as_one_that_does_not(way, shape):
    q, qd = np.broadcast_to(STATE.q, (*shape, 3)), np.zeros(3)
    motions = [simulate(ARM, q, qd, tau, 0.05, **WAYS[way]) for tau in (writing, pure)]
    for name in ("q", "qd", "tau"):
        assert_close(*(getattr(m, name) for m in motions), 10 * EPS, what=name)


def test_another_process_finds_the_code_of_what_was_compiled(tmp_path):
    """A law that writes leaves nothing in the cache that one which does not would find."""
    laws = "".join(map(getsource, (writing, pure)))
    code = """import numpy as np, hinge
GOAL = np.array([0.5, 0.3, -0.4])
{laws}
given = dict(tau={law}, duration=0.5, compiled={compiled})
print(hinge.simulate(hinge.zoo.arm(3), np.zeros(3), **given).q[-1].tolist())
"""
    found = []
    for law, compiled in (("writing", None), ("pure", None), ("pure", False)):
        own = code.format(laws=laws, law=law, compiled=compiled)
        found.append(eval(run_python(own, XDG_CACHE_HOME=str(tmp_path))))
    assert found[0] == found[1]
    assert_close(np.array(found[0]), np.array(found[2]), 1e-10)


@pytest.mark.parametrize("compiled", [None, False])
def test_events_and_what_is_kept_leave_the_motion_as_it_is(compiled):
    def halfway(t, q, qd):
        q -= 0.5 * GOAL
        return q[0] if compiled is None else float(q[0])

    def distance(q):
        q -= GOAL
        return q @ q

    given = np.zeros(3), np.zeros(3), pure, 1.0
    kept = {"far": hinge.Max(distance), "mean": hinge.Mean(lambda q: (q - GOAL) @ (q - GOAL))}
    found = simulate(ARM, *given, events=halfway, compiled=compiled)
    plain = simulate(ARM, *given, events=lambda t, q, qd: q[0] - 0.5 * GOAL[0])
    assert len(found.events[0].t)
    assert_close(found.events[0].t, plain.events[0].t, 1e-9)
    assert_close(found.q, plain.q, 1e-10)
    if compiled is None:
        reduced = simulate(ARM, *given, keep=kept)
        errors = ((plain.q[1:] - GOAL) ** 2).sum(axis=-1)
        assert_close(reduced.kept.far, errors.max(), 10 * EPS)
        assert_close(reduced.kept.mean, errors.mean(), 10 * EPS)


def test_steps_of_rollouts_may_write():
    def step(q, qd, dt):
        qd += dt * ARM.alg.forward_dynamics(q, qd, np.zeros(3))
        q += dt * qd
        return q, qd

    def again(q, qd, dt):
        qd = qd + dt * ARM.alg.forward_dynamics(q, qd, np.zeros(3))
        return q + dt * qd, qd

    def worst(q):
        q *= q
        return q

    state = STATE.q, STATE.qd, 1e-3
    pairs = [ARM.rollout(fn, dt=())(*state, steps=50) for fn in (step, again)]
    assert_close(*(q for q, _ in pairs), 0.0)
    kept = {"worst": hinge.Max(worst), "rate": hinge.Sum(lambda q, qd: qd @ qd)}
    found = ARM.rollout(step, keep=kept, dt=())(*state, steps=50)
    q, qd = pairs[1]
    assert_close(found.worst, (q * q).max(axis=0), 0.0)
    assert_close(found.rate, (qd * qd).sum(), 100 * EPS)


def test_reductions_of_ones_own_may_write():
    class Decaying(hinge.Reduction):
        def start(self, shape, dtype):
            return np.zeros(shape, dtype)

        def update(self, total, value):
            total *= 0.5
            total += value
            return total

        def finish(self, total, steps):
            total /= steps
            return total

    fall = hinge.rollout(
        lambda z, w: (z + w, w), ("z",), keep={"late": Decaying(lambda z: z)}, z=(2,), w=(2,)
    )
    z = np.cumsum(np.ones((6, 2)), axis=0)
    total = 0.0
    for row in z[:4]:
        total = 0.5 * total + row
    assert_close(fall(np.zeros(2), np.ones(2), steps=4).late, total / 4, EPS)
    blocks = hinge.rollout(
        lambda z, w: (z + w, w),
        ("z",),
        ("w",),
        keep={"late": Decaying(lambda z: z)},
        z=(2,),
        w=(2,),
    )
    steps = [np.ones((2, 2))] * 2
    assert_close([*blocks.stream(np.zeros(2), steps)][-1].late, total / 4, EPS)


def test_derivatives_are_at_the_arguments_as_they_were():
    def fn(x, y):
        x *= y
        y += 1.0
        return (x * y).sum()

    def plain(x, y):
        return (x * y * (y + 1.0)).sum()

    at = np.array([0.3, -0.8]), np.array([1.5, 0.4])
    both = [
        lambda f: hinge.grad(f, (0, 1))(*at),
        lambda f: hinge.jacobian(f, (0, 1))(*at),
        lambda f: [b for row in hinge.hessian(f, (0, 1))(*at) for b in row],
        lambda f: hinge.jvp(f)(at, (at[1], None)),
        lambda f: hinge.vjp(f)(at, 1.0),
        lambda f: hinge.compile(f, x=(2,), y=(2,))(*at),
    ]
    for ask in both:
        for got, wanted in zip(np.atleast_1d(ask(fn)), np.atleast_1d(ask(plain)), strict=True):
            assert_close(got, wanted, 4 * EPS)
    nested = hinge.compile(lambda x, y: hinge.grad(fn)(x, y) + x * y, x=(2,), y=(2,))
    assert_close(nested(*at), at[1] * (at[1] + 1) + at[0] * at[1], 4 * EPS)


def test_planners_take_residuals_and_steps_that_write():
    def running(q, qd, tau):
        q -= GOAL
        tau *= 0.05
        return np.concatenate([0.3 * q, tau])

    def terminal(q, qd):
        q -= GOAL
        return 10 * q

    def bound(q, qd, tau):
        qd -= 5.0
        return qd

    def step(q, qd, tau, dt):
        qd += dt * ARM.alg.forward_dynamics(q, qd, tau)
        q += dt * qd
        return q, qd

    pure = (
        lambda q, qd, tau: np.concatenate([0.3 * (q - GOAL), 0.05 * tau]),
        lambda q, qd: 10 * (q - GOAL),
    )
    start = np.zeros(3), np.zeros(3)
    more = [{}, {"step": step}]
    plans = [
        control.ILQR(ARM, *r, dt=0.02, inequality=bound, **own)(*start, np.zeros((20, 3)))
        for r in (pure, (running, terminal))
        for own in more
    ]
    assert len({p.cost for p in plans[::2]}) == 1
    assert_close(plans[1].cost, plans[0].cost, 1e-6)
    both = pure, (running, terminal)
    laws = [control.MPPI(ARM, *r, dt=0.02, steps=20, samples=64) for r in both]
    assert_close(*(law(*start) for law in laws), 0.0)


def test_a_step_that_gives_no_state_is_refused():
    wrong = lambda q, qd, tau, dt: (q, qd[:2])  # noqa: E731
    with pytest.raises(ArgumentError, match=r"step gives \(3,\), \(2,\); expected the next"):
        control.ILQR(ARM, lambda q, qd, tau: tau, lambda q, qd: q, dt=0.02, step=wrong)


def test_a_reduction_that_changes_its_shape_is_refused():
    class Growing(hinge.Reduction):
        def start(self, shape, dtype):
            return np.zeros(shape, dtype)

        def update(self, total, value):
            return np.stack([total, value])

    with pytest.raises(ArgumentError, match=r"Growing.update gives \(\(2, 3\),\); expected an arr"):
        simulate(ARM, STATE.q, keep={"x": Growing(lambda q: q)}, duration=0.01)

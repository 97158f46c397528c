"""Rollouts: a thousand Runge–Kutta steps, ours in one kernel, the others' as users write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hinge

from .measure import Row, Settings, WrongResultError, interleave
from .others import Mujoco, installed
from .peers import Contestant, Pinocchio
from .robots import Case, States, random_states

__all__ = ["ROBOTS", "STEPS", "rollouts"]

# arms whose coordinates are everyone's
ROBOTS = ("panda", "ur5")
STEPS, DT = 1000, 1e-3
BATCHES = (1, 4096)
# a mechanical system forgets its last digits as it goes
AGREEMENT = 1e-6
# the others' batches are loops over samples: a few of them tell the time of all
_FEW = 16

_PIN_STEP = """
def roll(q, v):
    for _ in range(steps):
        a1 = pin.aba(model, data, q, v, tau).copy()
        v2 = v + 0.5 * h * a1
        a2 = pin.aba(model, data, pin.integrate(model, q, 0.5 * h * v), v2, tau).copy()
        v3 = v + 0.5 * h * a2
        a3 = pin.aba(model, data, pin.integrate(model, q, 0.5 * h * v2), v3, tau).copy()
        v4 = v + h * a3
        a4 = pin.aba(model, data, pin.integrate(model, q, h * v3), v4, tau)
        q = pin.integrate(model, q, h / 6 * (v + 2 * v2 + 2 * v3 + v4))
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q
"""


@dataclass(frozen=True)
class Runner:
    """A contestant, and how many samples one run of it has."""

    contestant: Contestant
    samples: int


def rollouts(case: Case, settings: Settings) -> Iterator[Row]:
    """One sample and a batch, on one thread; seconds are per step and sample."""
    # losses are no business of the others' bare dynamics
    still = {"damping": 0.0, "friction": 0.0}
    bodies = [replace(b, joint=replace(b.joint, **still)) for b in case.mechanism.bodies]
    mechanism = replace(case.mechanism, bodies=tuple(bodies))
    for batch in BATCHES:
        states = random_states(mechanism, batch)
        few = states.head(min(batch, _FEW))
        runners = [_hinge(mechanism, states)]
        if installed("pinocchio"):
            runners.append(_pin(case, few))
        if installed("mujoco"):
            runners.append(_mujoco(case, few))
        yield _row(case, batch, runners, settings)


def _row(case: Case, batch: int, runners: list[Runner], settings: Settings) -> Row:
    ours, *others = runners
    everyone = [r.contestant for r in runners]
    times = interleave(everyone, settings)
    differences = {}
    for r in others:
        a, b = ours.contestant.result()[: r.samples], r.contestant.result()
        differences[r.contestant.name] = worst = float(np.abs(a - b).max())
        if not worst < AGREEMENT:
            raise WrongResultError(f"rollouts of {r.contestant.name} differ by {worst:.1e}")
    each = {r.contestant.name: times[r.contestant.name] / r.samples / STEPS for r in runners}
    return Row.of(case, f"{STEPS} steps of RK4", "rollout", batch, everyone, each, differences)


def _hinge(mechanism: hinge.Mechanism, states: States) -> Runner:
    one = len(states.q) == 1
    q, qd = (x[0] if one else x for x in (states.q, states.qd))
    scope: dict[str, Any] = {"simulate": hinge.simulate, "q": q, "qd": qd}
    scope |= {"robot": hinge.Robot(mechanism, threads=1), "steps": STEPS, "dt": DT, "out": []}
    # of a batch, one state in ten is kept: memory would be measured otherwise
    scope["every"] = 1 if one else 10
    call = "simulate(robot, q, qd, duration=steps * dt, dt=dt, every=every, limits=False)"
    last = lambda: np.atleast_2d(scope["out"][0].q[-1])  # noqa: E731
    return Runner(Contestant("hinge", f"out[:] = [{call}]", scope, last), len(states.q))


def _pin(case: Case, states: States) -> Runner:
    peer = Pinocchio(case)
    scope: dict[str, Any] = {"pin": peer.pin, "model": peer.model, "data": peer.data}
    scope |= {"tau": np.zeros(case.nv), "h": DT, "steps": STEPS, "out": []}
    exec(_PIN_STEP, scope)
    scope["states"] = list(zip(states.q, states.qd, strict=True))
    text = "out[:] = [roll(q, v) for q, v in states]"
    return Runner(Contestant("pin", text, scope, lambda: np.array(scope["out"])), len(states.q))


def _mujoco(case: Case, states: States) -> Runner:
    peer = Mujoco(case)
    import mujoco.rollout as rollout

    model, count = peer.model, len(states.q)
    model.opt.timestep = DT
    model.opt.integrator = peer.mujoco.mjtIntegrator.mjINT_RK4
    start = np.concatenate([np.zeros((count, 1)), states.q, states.qd], axis=1)
    scope: dict[str, Any] = {"rollout": rollout.rollout, "model": model, "start": start}
    scope |= {"data": peer.mujoco.MjData(model), "steps": STEPS}
    scope["state"] = np.zeros((count, STEPS, start.shape[1]))
    text = "rollout(model, data, start, nstep=steps, state=state)"
    last = lambda: scope["state"][:, -1, 1 : 1 + case.nv]  # noqa: E731
    return Runner(Contestant("mujoco", text, scope, last), count)

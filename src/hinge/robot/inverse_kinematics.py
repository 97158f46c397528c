"""Inverse kinematics of a robot: the search as a kernel, and what its end tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.configuration import limits
from ..algorithms.inverse_kinematics import Rules, Search, approach, improve, new_search, spread
from ..algorithms.reach import out_of_reach
from ..algorithms.tasks import TARGETS, Task
from ..graph.program import trace
from ..graph.scan import Scan
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from .answers import known_key
from .goals import Question

if TYPE_CHECKING:
    from .front import Front

__all__ = ["InverseKinematics", "followed", "search_kernel", "searched"]

# steps between looks at who is done, which few samples do without
_ROUND, _FEW = 16, 16
# operations after which somebody may want to see progress
_LONG = 4_000_000_000


@dataclass(frozen=True)
class InverseKinematics:
    """The answer of inverse kinematics, and how good it is, sample by sample.

    q: (…, nq), within the limits; of a sample that is not reached the nearest that was found.
    status: (…), "reached": every task is within the tolerance; "unreachable": proven to be out of
    reach, by the lengths of links and slides; "not found": neither.  A str for one sample.
    error: (…, rows), task after task, angles before lengths, in rad and m; in the axes of the
    frame, of the centre of mass in those of the world.
    iterations, starts: (…), how many steps were taken, from how many starts.
    limits: (…, nv), −1 and 1 for a DoF at its lower and upper limit, else 0.
    """

    q: np.ndarray
    status: Any
    error: np.ndarray
    iterations: Any
    starts: Any
    limits: np.ndarray
    joints: tuple[str, ...] = field(repr=False)

    @property
    def reached(self) -> Any:
        """Whether the targets were reached: (…)."""
        return self.status == "reached"

    def __str__(self) -> str:
        if isinstance(self.status, str):
            return f"{self.status}{self._why()}"
        words, counts = np.unique(self.status, return_counts=True)
        return ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))

    def _why(self) -> str:
        """How near one sample came, and what it met."""
        met = [
            f"{name} at its {'upper' if at > 0 else 'lower'} limit"
            for name, at in zip(self.joints, self.limits, strict=True)
            if at
        ]
        far = float(np.linalg.norm(self.error))
        told = f" after {_many(self.iterations, 'step')} from {_many(self.starts, 'start')}"
        told += f", error {far:.2g}"
        return told + (f", with {', '.join(met)}" if met and self.status != "reached" else "")


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


# the search


def searched(robot: Front, ask: Question, rules: Rules, seed: Any) -> InverseKinematics:
    """The answer to a question, from seeded starts where they are needed."""
    n, loop, at = ask.n, _loop(robot, ask), _loop(robot, ask).at
    state = np.empty((n, loop.size), robot.dtype)
    state[:] = loop.start(seed)
    if ask.q0 is not None:
        state[:, at["q"]] = state[:, at["best"]] = loop.kept(ask.q0)
    rest = [*ask.arrays, np.array(rules, robot.dtype)]
    left = None if ask.sound is None else np.flatnonzero(ask.sound)
    for steps in loop.rounds(n, rules):
        if left is None:
            (state,) = loop.kernel.fill([], [state, *rest], (n,), steps, steps)
            left = np.flatnonzero(state[:, -1] == 0)
        else:
            part = [state[left], *(x[left] for x in rest[:-1]), rest[-1]]
            (state[left],) = loop.kernel.fill([], part, (len(left),), steps, steps)
            left = left[state[left, -1] == 0]
        if not len(left):
            break
    found, taken, starts = (state[:, at[n].start] for n in ("found", "iterations", "starts"))
    starts = np.minimum(starts, rules.most_starts).astype(int)
    q, error = state[:, at["best"]], state[:, at["error"]]
    return loop.answer(ask, ask.lead, q, error, found > 0, taken.astype(int), starts, rules)


def followed(robot: Front, ask: Question, rules: Rules, first: np.ndarray) -> InverseKinematics:
    """Answers along paths of targets (steps, n, …), each from the one before; first: (n, nq)."""
    steps, n, loop = len(ask.arrays[0]), ask.n, _loop(robot, ask)
    rows = sum(task.rows for task in ask.tasks)
    shapes = [(steps, n, *shape) for shape in ((robot.nq,), (rows,), ())]
    q, error, found = results = robot._backend.empty(shapes, robot.dtype)
    arrays = [loop.kept(first), *ask.arrays, np.array(rules, robot.dtype)]
    loop.following(int(rules.most_steps)).fill(results, arrays, (n,), steps, 1)
    taken = np.full((steps, n), int(rules.most_steps))
    lead = (steps, *ask.lead)
    return loop.answer(ask, lead, q, error, found > 0, taken, np.ones_like(taken), rules)


def search_kernel(robot: Front, ask: Question) -> Rollout:
    """What takes the steps of a search."""
    return _loop(robot, ask).kernel


def _loop(robot: Front, ask: Question) -> _Loop:
    asked = ("inverse_kinematics", ask.tasks, ask.with_posture, ask.moving)
    return robot._keep_recent(asked, lambda: _Loop(robot, *asked[1:]))


class _Loop:
    """What searches for answers to like questions, of a robot, have in common.

    at: where each part of a `Search` is in the state of a sample; size: how long that is.
    """

    def __init__(
        self, robot: Front, tasks: tuple[Task, ...], posture: bool, moving: tuple[float, ...]
    ) -> None:
        self.robot, self.tasks, self.posture, self.moving = robot, tasks, posture, moving
        bounds = limits(robot.mechanism)
        self.low, self.high = (bounds.kept(np.full(robot.nq, x)) for x in (-np.inf, np.inf))
        some = bounds.bounded
        self.bounded = some, bounds.place[some], bounds.lower[some], bounds.upper[some]
        self.zero = new_search(robot.mechanism, tasks, robot.neutral(), np.zeros(robot.nv))
        ends = np.cumsum([np.size(x) for x in self.zero])
        self.at = {
            name: slice(int(end) - np.size(x), int(end))
            for name, x, end in zip(Search._fields, self.zero, ends, strict=True)
        }
        self.size = int(ends[-1])
        self.starts: dict[Any, np.ndarray] = {}

    def kept(self, q: np.ndarray) -> np.ndarray:
        """Configurations (n, nq) within the limits."""
        return np.minimum(np.maximum(q, self.low), self.high)

    def start(self, seed: int) -> np.ndarray:
        """The state of a search before its first step."""
        if seed not in self.starts:
            mech, u = self.robot.mechanism, np.random.default_rng(seed).uniform(size=self.robot.nv)
            q = spread(mech, u, self.robot.neutral(), np.array(self.moving))
            parts = new_search(mech, self.tasks, q, u)
            self.starts = {seed: np.concatenate([np.ravel(x) for x in parts])}
        return self.starts[seed]

    def rounds(self, n: int, rules: Rules) -> Iterable[int]:
        """How many steps to take before looking who is done: for few samples all of them."""
        budget = (int(rules.most_starts) + 1) * int(rules.most_steps)
        if n <= _FEW:
            return (budget,)
        rounds = [_ROUND] * -(-budget // _ROUND)
        long = n * sum(self.kernel.ops) * _ROUND * _FEW > _LONG
        return progress(rounds, f"inverse kinematics of {self.robot.name!r}") if long else rounds

    @cached_property
    def kernel(self) -> Rollout:
        """`improve` as a loop of steps, until all samples are done."""
        mech = self.robot.mechanism

        def step(state: Any, *rest: Any) -> Any:
            parts = (state[at] for at in self.at.values())
            shapes = (np.shape(x) for x in self.zero)
            s = Search(*(x if shape else x[0] for x, shape in zip(parts, shapes, strict=True)))
            *targets, rules = rest
            posture = targets.pop() if self.posture else None
            new = improve(mech, self.tasks, s, targets, Rules(*rules), posture, self.moving)
            return np.concatenate([np.ravel(x) for x in new])

        return self._kernel("inverse_kinematics", step, (self.size,), {"until": self.size - 1})

    def following(self, steps: int) -> Rollout:
        """`approach` as the stages of a step from target to target; the last stage only looks."""
        mech = self.robot.mechanism

        def step(q: Any, *rest: Any) -> tuple[Any, ...]:
            *targets, rules, last = rest
            posture = targets.pop() if self.posture else None
            given = targets, Rules(*rules), posture, self.moving
            return approach(mech, self.tasks, q, *given, last[0])

        stages = (*[(0.0,)] * steps, (1.0,))
        more = {"inputs_per_step": len(self.tasks), "stages": stages, "recorded": (0, 1, 2)}
        return self._kernel("follow", step, (self.robot.nq,), more)

    def _kernel(
        self, name: str, step: Any, state: tuple[int, ...], more: dict[str, Any]
    ) -> Rollout:
        """Steps towards targets as one kernel; more: what kind of a `Scan` they are."""
        robot = self.robot
        asked = (name, self.tasks, self.posture, self.moving, tuple(more.items()))
        shapes = {"state": state}
        shapes |= {f"target {i}": TARGETS[task.kind] for i, task in enumerate(self.tasks)}
        shapes |= {"posture": (robot.nq,)} if self.posture else {}
        shapes |= {"rules": (len(Rules._fields),)}
        stage = [(1,)] if "stages" in more else []

        def make() -> Scan:
            return Scan(trace(step, [*shapes.values(), *stage], name), 1, **more)

        def new() -> Rollout:
            key = known_key(robot.mechanism, asked)
            title, inputs = f"{name} of {robot.name!r}", more.get("inputs_per_step", 0)
            settings = {"dtype": robot.dtype, "backend": robot._backend, "key": key}
            return Rollout(make, shapes, 1, inputs, title, **settings)

        return robot._keep_recent(asked, new)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """The joint of every DoF."""
        mech, names = self.robot.mechanism, [""] * self.robot.nv
        for b in mech.bodies[1:]:
            if b.joint.mimic is None:
                dof = mech.v_slice(b.joint_name)
                names[dof] = [b.joint_name] * (dof.stop - dof.start)
        return tuple(names)

    def answer(
        self,
        ask: Question,
        lead: tuple[int, ...],
        q: np.ndarray,
        error: np.ndarray,
        found: np.ndarray,
        iterations: np.ndarray,
        starts: np.ndarray,
        rules: Rules,
    ) -> InverseKinematics:
        """Results of samples in the leading shape of the call, and what is to be said of them."""
        if ask.sound is not None:
            found = found & ask.sound
            q, error = (np.where(ask.sound[:, None], x, np.nan) for x in (q, error))
        status = _WORDS[found.view(np.int8)]
        if not found.all():
            lost = ~found if ask.sound is None else ask.sound & ~found
            for task, target in zip(self.tasks, ask.arrays, strict=False):
                beyond = out_of_reach(self.robot.mechanism, task, target, float(rules.tolerance))
                status[beyond & lost] = "unreachable"
        some, places, lower, upper = self.bounded
        met, there = np.zeros((*found.shape, self.robot.nv), dtype=np.int8), q[..., places]
        met[..., some] = (there >= upper).view(np.int8) - (there <= lower).view(np.int8)
        return InverseKinematics(
            q.reshape(*lead, self.robot.nq),
            _shaped(status, lead),
            _angles(self.tasks, error).reshape(*lead, error.shape[-1]),
            _shaped(iterations, lead),
            _shaped(starts, lead),
            met.reshape(*lead, self.robot.nv),
            self.joints,
        )


_WORDS = np.array(["not found", "reached", "unreachable"])


def _shaped(x: np.ndarray, lead: tuple[int, ...]) -> Any:
    """One value per sample; of one sample the value itself."""
    return x.reshape(lead) if lead else x.item()


def _angles(tasks: Sequence[Task], error: np.ndarray) -> np.ndarray:
    """Errors with vectors as long as the angles in the place of chords 2 sin θ/2."""
    error, start = error.copy(), 0
    for task in tasks:
        if task.angular:
            part = error[..., start : start + task.angular]
            chord = np.sqrt((part * part).sum(axis=-1, keepdims=True))
            angle = 2 * np.arcsin(np.minimum(chord / 2, 1))
            part *= np.divide(angle, chord, out=np.ones_like(chord), where=chord > 0)
        start += task.rows
    return error

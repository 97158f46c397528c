"""Steps whose length follows from the error that is allowed, of Dormand and Prince's method.

Each sample of a batch has a step of its own; a step that is too long is taken again.  The loop over
steps is Python, a step is one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, SingularError
from ..robot import Robot
from ..runtime.check import check_number, check_whole
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from .dense import Stretches, states
from .integrators import Integrator, System

__all__ = [
    "Tolerance",
    "Travelled",
    "Trip",
    "called_step",
    "check_tolerance",
    "kernel_step",
    "rows",
]

# of the fifth order, with what is safe: Hairer, Nørsett and Wanner, II.4
_SAFETY, _LEAST, _MOST, _POWER = 0.9, 0.2, 5.0, -0.2

# (t, h, q, qd, memory) of all samples to q, qd, memory
Step = Callable[..., tuple[np.ndarray, np.ndarray, list[np.ndarray]]]


# Steps that a motion may try: in a kernel, where one of an arm takes 0.1 ms, and where a law is
# called, which takes 2 ms.  Within a twentieth of them it has to get a thousandth further.
_MOST_STEPS, _MOST_CALLED = 200_000, 20_000


class Tolerance(NamedTuple):
    """The error that a step may make: absolute + relative · size, of every entry of q and qd.

    most: how many steps there may be, None for what takes some 20 s.
    """

    relative: float
    absolute: float
    most: int | None


class Travelled(NamedTuple):
    """A motion in stretches, and how many steps of each sample were taken and taken back."""

    pieces: Stretches
    taken: np.ndarray
    rejected: np.ndarray


def kernel_step(kernel: Rollout, robot: Robot, acting: dict[str, np.ndarray]) -> Step:
    """A step of all samples, each of its own length, by machine code."""

    def step(t: Any, h: Any, q: Any, qd: Any, memory: list[Any]) -> tuple[Any, Any, list[Any]]:
        arrays = {**acting, "t": t[None], "dt": h, "q": q, "qd": qd}
        arrays |= {f"memory{i}": x for i, x in enumerate(memory)}
        found = [np.asarray(arrays[n], robot.dtype) for n in kernel.shapes]
        results = [np.empty((1, len(t), n), robot.dtype) for n in (robot.nq, robot.nv)]
        q, qd, *memory = kernel.fill(results, found, (len(t),), 1, 1)
        return q, qd, memory

    return step


def called_step(system: System, way: Integrator, lead: tuple[int, ...]) -> Step:
    """The same by calls from Python, all samples alike."""

    def step(t: Any, h: Any, q: Any, qd: Any, memory: list[Any]) -> tuple[Any, Any, list[Any]]:
        state = [x.reshape(*lead, x.shape[-1]) for x in (q, qd, *memory)]
        q, qd, kept = state[0], state[1], tuple(state[2:])
        for stage in way.stages:
            q, qd, kept = way.advance(system, t.max(), h.max(), q, qd, kept, stage)
        q, qd, *memory = (np.reshape(x, (len(t), x.shape[-1])) for x in (q, qd, *kept))
        return q, qd, memory

    return step


def check_tolerance(
    where: str,
    robot: Robot,
    method: str,
    rtol: float | None,
    atol: float | None,
    max_steps: int | None,
) -> Tolerance | None:
    """What an adaptive method is allowed; other methods know no tolerance."""
    if method != "adaptive":
        for name, x in (("rtol", rtol), ("atol", atol), ("max_steps", max_steps)):
            if x is not None:
                raise ArgumentError(
                    f"{where}: {name} is {x!r}, and method {method!r} does not look at its error; "
                    f"leave it out, or take method 'adaptive'"
                )
        return None
    least = float(10 * np.finfo(robot.dtype).eps)
    relative = check_number(where, "rtol", max(1e-6, 100 * least) if rtol is None else rtol, 0)
    if relative < least:
        raise ArgumentError(
            f"{where}: rtol is {relative}; {robot.dtype} cannot tell less than {least:.0e} apart"
        )
    absolute = check_number(where, "atol", 1e-3 * relative if atol is None else atol, 0)
    most = None if max_steps is None else check_whole(where, "max_steps", max_steps)
    return Tolerance(relative, absolute, most)


def rows(
    robot: Robot, pieces: Stretches, times: np.ndarray, lead: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """q and q̇ of all samples at the times, NaN where a motion did not get so far."""
    count = int(np.prod(lead))
    found = [np.full((len(times), count, n), np.nan, robot.dtype) for n in (robot.nq, robot.nv)]
    by_sample = np.argsort(pieces.sample, kind="stable")
    cuts = np.searchsorted(pieces.sample[by_sample], np.arange(count + 1))
    which, at, who = [], [], []
    for i in range(count):
        own = by_sample[cuts[i] : cuts[i + 1]]
        if len(own):
            met = np.flatnonzero(times <= pieces.t[own[-1]] + 1.0000001 * pieces.h[own[-1]])
            which.append(own[np.searchsorted(pieces.t[own], times[met], side="right") - 1])
            at.append(met)
            who.append(np.full(len(met), i))
    if which:
        chosen, row, sample = (np.concatenate(x) for x in (which, at, who))
        on = pieces[chosen]
        share = np.clip((times[row] - on.t) / on.h, 0.0, 1.0)
        for x, y in zip(found, states(robot, on, share), strict=True):
            x[row, sample] = y
    return found[0].reshape(len(times), *lead, -1), found[1].reshape(len(times), *lead, -1)


class Trip:
    """A motion in steps of any length: where all samples are, as rows of arrays."""

    def __init__(
        self,
        where: str,
        robot: Robot,
        step: Step,
        state: tuple[np.ndarray, np.ndarray, list[np.ndarray]],
        end: float,
        tolerance: Tolerance,
    ) -> None:
        self.where, self.robot, self.step, self.end = where, robot, step, end
        self.tolerance, (self.q, self.qd, self.memory) = tolerance, state
        count = len(self.q)
        self.neutral, self.most = robot.neutral(), np.full(count, _MOST)
        self.taken, self.rejected = (np.zeros(count, int) for _ in range(2))
        self.rounds, self.looked = 0, np.full(count, -np.inf)
        self.sizes = self._sizes(self.q, self.qd)
        rates = self.memory[0], self.memory[6]
        pace = self._norm(rates, self.sizes)
        size, starts = self._norm(self.sizes, self.sizes), np.isfinite(pace)
        pace, size = (np.where(starts, x, 1.0) for x in (pace, size))
        self.h = np.fmin(0.01 * (size + 1e-3) / (pace + 1e-12), end)
        # of a batch, a sample that does not start does not hold up the others
        self.t = np.where(starts | (count == 1), 0.0, end)

    def until(self, enough: Callable[[Stretches], bool], together: bool) -> Travelled:
        """To the end, or to where there is enough.

        together: all samples take the same steps, for laws that are called with all of them.
        """
        parts = []
        how_far = lambda: float(self.t.min() / self.end)  # noqa: E731
        for part in progress(self._parts(together), self.where, how_far):
            parts.append(part)
            if enough(part):
                break
        return Travelled(Stretches.joined(parts), self.taken, self.rejected)

    def _parts(self, together: bool) -> Iterator[Stretches]:
        """What each round of steps adds."""
        while (going := self.t < self.end).any():
            # a remainder that is rounding is not left over
            h = np.where(self.t + 1.0000001 * self.h > self.end, self.end - self.t, self.h)
            h = np.where(going, h[going].min() if together else h, 0.0)
            q, qd, memory = self.step(self.t, h, self.q, self.qd, self.memory)
            sizes = self._sizes(q, qd)
            self.misses = memory[-2:], list(map(np.fmax, self.sizes, sizes))
            error = self._norm(*self.misses)
            error = np.full_like(error, error[going].max()) if together else error
            fine = going & (error <= 1)
            grown = np.clip(_SAFETY * np.fmax(error, 1e-9) ** _POWER, _LEAST, self.most)
            # a step that was taken back is not grown right away
            self.most = np.where(fine, _MOST, 1.0)
            self.taken, self.rejected = self.taken + fine, self.rejected + (going & ~fine)
            self.h = np.where(going, h * grown, self.h)
            yield self._accept(fine, h, q, qd, memory)
            self.sizes = _chosen(fine, sizes, self.sizes)
            self._refuse_standstill(going & ~fine)
            most = _MOST_CALLED if together else _MOST_STEPS
            self._refuse_crawling(h, self.tolerance.most or most)

    def _accept(self, fine: Any, h: Any, q: Any, qd: Any, memory: list[Any]) -> Stretches:
        """The samples whose step is good go on."""
        before = self.t, h, self.q, self.qd, self.memory[6], q, qd, memory[6]
        part = Stretches(np.flatnonzero(fine), *(x[fine] for x in before))
        self.t = np.where(fine, np.where(self.t + h >= self.end, self.end, self.t + h), self.t)
        old = self.q, self.qd, *self.memory
        self.q, self.qd, *self.memory = _chosen(fine, (q, qd, *memory), old)
        return part

    def _refuse_standstill(self, again: np.ndarray) -> None:
        stuck = again & (self.h < 10 * np.spacing(np.maximum(self.t, self.end * 1e-6)))
        if stuck.any() and len(self.t) == 1:
            raise SingularError(
                f"{self.where}: no step from t = {self.t[0]:g} on is short enough for the "
                f"tolerance: the forces jump or are not finite there, or a joint moves no inertia "
                f"at all, or loops are at a dead point, at q = {self.q[0].tolist()}; give rtol and "
                f"atol that can be met, or the joint armature, or take method 'rk4'"
            )
        # of a batch such a sample is NaN from here on
        self.t = np.where(stuck, self.end, self.t)

    def _refuse_crawling(self, h: np.ndarray, most: int) -> None:
        """Of samples that go on for ever, or nearly so."""
        self.rounds += 1
        slow = np.zeros(len(self.t), bool)
        if self.rounds % max(1, most // 20) == 0:
            slow = self.t < np.minimum(self.looked + 1e-3 * self.end, self.end)
            self.looked = self.t
        if self.rounds >= most:
            slow = self.t < self.end
        if slow.any() and len(self.t) == 1:
            raise SingularError(
                f"{self.where}: the motion stands still at t = {self.t[0]:.6g} of "
                f"{self.end:g}: {self.rounds} steps so far, the last {h[0]:.2g} s long, shortened "
                f"by {self._worst()} at {self._state()}; forces that jump, are noisy or very stiff "
                f"do that: make them smooth, give rtol and atol that can be met, take a method "
                f"with steps of dt, or allow more than max_steps = {most}"
            )
        # of a batch such a sample is NaN from here on
        self.t = np.where(slow, self.end, self.t)

    def _worst(self) -> str:
        """The joint of the largest error."""
        relative, absolute, _ = self.tolerance
        ratios = [
            np.abs(x[0]) / (absolute + relative * y[0]) for x, y in zip(*self.misses, strict=True)
        ]
        at, mech = int(np.argmax(np.fmax(*ratios))), self.robot.mechanism
        names = (b.joint_name for b in mech.bodies[1:] if b.joint.mimic is None)
        return next(f"the error of joint {n!r}" for n in names if at < mech.v_slice(n).stop)

    def _state(self) -> str:
        """Where a single motion is, shortened."""
        with np.printoptions(precision=4, threshold=8, edgeitems=3, linewidth=1000):
            return f"q = {self.q[0]}, qd = {self.qd[0]}"

    def _sizes(self, q: np.ndarray, qd: np.ndarray) -> list[np.ndarray]:
        """How large the entries are: of q as far as it is from neutral."""
        return [np.abs(self.robot.difference(self.neutral, q)), np.abs(qd)]

    def _norm(self, parts: Sequence[np.ndarray], sizes: Sequence[np.ndarray]) -> np.ndarray:
        """Of changes of q and q̇ in units of the tolerance: the root of the mean square."""
        relative, absolute, _ = self.tolerance
        pairs = zip(parts, sizes, strict=True)
        ratio = np.concatenate([x / (absolute + relative * y) for x, y in pairs], axis=-1)
        found = np.sqrt(np.sum(ratio * ratio, axis=-1) / max(1, ratio.shape[-1]))
        # what is not finite is no step at all
        return np.where(np.isfinite(found), found, np.inf)


def _chosen(fine: np.ndarray, new: Sequence[Any], old: Sequence[Any]) -> list[np.ndarray]:
    """Rows of the new where they are fine, of the old elsewhere."""
    return [np.where(fine[:, None], x, y) for x, y in zip(new, old, strict=True)]

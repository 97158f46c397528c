"""Closing loops: the nearest configuration that keeps constraints, and the nearest velocity.

With q₀ what is given, x = q ⊟ q₀ what it is moved by and W the metric, e the gaps of the loops:

    ½ xᵀ W x is least among all q with e(q) = 0                                                 (1)
    q ← q ⊞ −W⁻¹Kᵀ(K W⁻¹Kᵀ + μ²)⁻¹ e             closes: μ is raised until the gaps shrink      (2)
    q ← q ⊞ −a P x,  P = 1 − W⁻¹Kᵀ(K W⁻¹Kᵀ)⁺K    slides back towards q₀ while closed            (3)
    q̇ ← P q̇                                      the nearest velocity with K q̇ = 0              (4)

W is the mass matrix at q₀: then lengths and angles weigh what they move, whatever the units and the
coordinates, and (4) is what an impulse of the constraints does.  x of (1) counts along the straight
motion from q₀, so that where joints turn in space W is carried to q by the rates of x.  Angles are
whole ones, a half turn is the largest gap and not none.

All samples of a batch walk together, each with its own μ and a; those that are done rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algorithms.configuration import limits, precise_rate
from ..algorithms.constrained.description import Constraint
from ..algorithms.singular import loose_joint, why_singular
from ..errors import SingularError
from ..model.mechanism import Mechanism
from ..runtime.progress import progress
from .gaps import anchors_of, gaps, units_of, worst_gap

if TYPE_CHECKING:
    from .front import Front

__all__ = ["Assembly", "assembled"]

# a slope below this, relative to |B| |e|, is level ground
_FLAT = 1e-9
# keeps (2) solvable where rows are redundant; far too small to slow a regular step
_LEAST_DAMPING = 1e-8
# singular values below this of the largest are redundant rows
_REDUNDANT = 1e-9
# what is left to slide, beside the way that was moved
_NEAR = 1e-8
_SLIDES = 60
# numbers that are not calculated with
_LARGEST = 1e60
# samples that walk together, so that their matrices are a few megabytes
_TOGETHER = 4096
# in units of the tolerance, what K q̇ may be beside 1 and the rates
_SLIP = 1e3
# how far one step may turn a joint
_STRIDE = 0.5


@dataclass(frozen=True, eq=False)
class Assembly:
    """A configuration that keeps constraints, and how well.

    q (…, nq), qd (…, nv), zero if none was given; moved: q ⊟ q₀ (…, nv).
    error (…, rows): the gaps that are left, in rad and m, in the axes of `right`.
    status (…): "closed"; "open", where no way on closes the loops: out of reach, or held off;
    "unfinished", where the iterations ran out or numbers were not finite; "stuck", closed, but held
    joints have rates that no motion keeps.  One word for one sample, an array of them for a batch.
    """

    q: np.ndarray
    qd: np.ndarray
    status: Any
    error: np.ndarray
    moved: np.ndarray
    iterations: Any
    constraints: tuple[Constraint, ...] = field(repr=False)

    @property
    def closed(self) -> Any:
        """Whether the loops are closed: (…)."""
        return np.asarray(self.status) == "closed" if self.q.ndim > 1 else self.status == "closed"

    @property
    def gap(self) -> Any:
        """The largest gap, in rad or m: (…)."""
        return np.abs(self.error).max(axis=-1, initial=0.0)

    def __str__(self) -> str:
        """How it ended, in words; of a batch for the sample that is worst."""
        states = np.atleast_1d(self.status).ravel()
        words = [f"{(states == s).sum()} {s}" for s in dict.fromkeys(states.tolist())]
        ended = str(self.status) if self.q.ndim == 1 else ", ".join(words)
        return f"{ended}; {worst_gap(self.constraints, self.error)}"


def assembled(
    robot: Front,
    constraints: tuple[Constraint, ...],
    arrays: Mapping[str, np.ndarray],
    held: np.ndarray,
    limits: bool,
    metric: Any,
    tolerance: float,
    most: int,
) -> Assembly:
    """The answer for arrays q, qd and numbers of the mechanism, checked and broadcast."""
    lead = arrays["q"].shape[:-1]
    flat = {n: x.reshape(-1, *x.shape[len(lead) :]) for n, x in arrays.items()}
    settings = held, limits, metric, tolerance, not lead
    starts = range(0, max(1, len(flat["q"])), _TOGETHER)
    parts = []
    for i in progress(starts, f"assemble {robot.name!r}"):
        some = {n: x[i : i + _TOGETHER] for n, x in flat.items()}
        # samples out of range are told by their status
        with np.errstate(all="ignore"):
            parts.append(_assembled_together(robot, constraints, some, most, settings))
    q, qd, error, moved, words, steps = map(np.concatenate, zip(*parts, strict=True))
    q, qd, error, moved = (x.reshape(*lead, x.shape[-1]) for x in (q, qd, error, moved))
    ended = (words.reshape(lead), steps.reshape(lead)) if lead else (str(words[0]), int(steps[0]))
    return Assembly(q, qd, ended[0], error, moved, ended[1], constraints)


def _assembled_together(
    robot: Front,
    constraints: tuple[Constraint, ...],
    flat: Mapping[str, np.ndarray],
    most: int,
    settings: tuple[np.ndarray, bool, Any, float, bool],
) -> tuple[np.ndarray, ...]:
    """q, qd, gaps, q ⊟ q₀, words of status and numbers of steps of some samples."""
    numbers = {n: x for n, x in flat.items() if n not in ("q", "qd")}
    closing = _Closing(robot, constraints, np.array(flat["q"], float), numbers, *settings)
    q, error, words, steps = closing.run(most)
    qd = np.zeros((len(q), robot.nv))
    if "qd" in flat:
        qd, slip = closing.velocity(q, np.array(flat["qd"], float))
        allowed = _SLIP * closing.tolerance * (1 + np.abs(qd).max(axis=-1, initial=0.0))
        words[(words == "closed") & (np.abs(slip).max(axis=-1, initial=0.0) > allowed)] = "stuck"
    return q, qd, error, closing.difference(q, np.arange(len(q))), words, steps


class _Solved(NamedTuple):
    """K W^-½ of samples, taken apart: U (n, rows, r), s (n, r), V (n, nv, r), and W^-½."""

    U: np.ndarray
    s: np.ndarray
    V: np.ndarray
    root: np.ndarray

    def closing(self, e: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """The step of (2)."""
        inside = self.s / (self.s**2 + (mu[:, None] * self.s[:, :1]) ** 2 + 1e-300)
        return -_times(self.root, _times(self.V, inside * _times(_turned(self.U), e)))

    def taken(self, e: np.ndarray) -> np.ndarray:
        """W⁻¹Kᵀ(K W⁻¹Kᵀ)⁺ e, redundant rows left out."""
        rows = self.s > _REDUNDANT * self.s[:, :1]
        back = np.where(rows, 1 / np.where(rows, self.s, 1.0), 0.0)
        return _times(self.root, _times(self.V, back * _times(_turned(self.U), e)))

    def free(self, x: np.ndarray) -> np.ndarray:
        """P x of (3)."""
        y = np.linalg.solve(self.root, x[..., None])[..., 0] if x.size else x
        V = self.V * (self.s > _REDUNDANT * self.s[:, :1])[:, None]
        return _times(self.root, y - _times(V, _times(_turned(V), y)))


class _Closing:
    """The loops of a robot to be closed from q (n, nq), with numbers (n, …) of the mechanism.

    held (nv,): 1 for degrees of freedom that stay; limits: those of joints are kept.
    metric: "mass", "plain", or weights (nv,); alone: this is one sample, which may raise.
    """

    def __init__(
        self,
        robot: Front,
        constraints: tuple[Constraint, ...],
        q: np.ndarray,
        numbers: Mapping[str, np.ndarray],
        held: np.ndarray,
        limits: bool,
        metric: Any,
        tolerance: float,
        alone: bool,
    ) -> None:
        self.alone = alone
        self.robot, self.constraints, self.start = robot, constraints, q
        self.numbers, self.tolerance, self.free = numbers, tolerance, 1.0 - held
        self.units = units_of(robot.mechanism, constraints)
        self.low, self.high = _limits(robot.mechanism, limits)
        self.slots = _coordinates(robot.mechanism)
        self.curved = any(not b.joint.commuting for b in robot.mechanism.bodies[1:])
        self.by_mass = isinstance(metric, str) and metric == "mass"
        self.W = self._metric(metric)
        relative, K = self._ask("constraint_closure", q, np.arange(len(q)))
        self.anchors = anchors_of(constraints, relative)
        self.fine = np.logical_and.reduce([_in_range(x) for x in (q, relative, K, self.W)])

    def run(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, the gaps, words of status, and the number of steps, of each sample."""
        everyone = np.arange(len(self.start))
        q, steps, good = self.start.copy(), np.zeros(len(everyone), int), everyone[self.fine]
        q[good], settled = self._close(self._clipped(q[good]), good, most, steps)
        closed = self.fine & self._is_closed(self.gaps(q, everyone))
        words = np.array(["unfinished"] * len(q), dtype=object)
        words[good[settled]] = "open"
        words[closed] = "closed"
        near = everyone[closed]
        q[near] = self._slide(q[near], near, most, steps)
        return q, self.gaps(q, everyone), words, steps

    def velocity(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q̇ of (4), and K q̇; held joints keep their rates, the others follow."""
        some = np.flatnonzero(self.fine & _in_range(q) & _in_range(qd))
        W = self._masses(q[some], some) if self.by_mass else self.W[some]
        some, W = some[_in_range(W)], W[_in_range(W)]
        K, v = self._ask("constraint_closure", q[some], some)[1], qd[some]
        mask = np.broadcast_to(self.free, v.shape)
        v = v - _taken_apart(K, W, mask, self.units).taken(_times(K, v) / self.units)
        out, left = np.full_like(qd, np.nan), np.full((len(qd), K.shape[1]), np.nan)
        out[some], left[some] = v, _times(K, v)
        return out, left

    def gaps(self, q: np.ndarray, which: np.ndarray) -> np.ndarray:
        """e of samples."""
        relative = self._ask("constraint_closure", q, which)[0]
        return gaps(self.constraints, relative, self.anchors[which])

    # walking

    def _close(
        self, q: np.ndarray, which: np.ndarray, most: int, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps (2) until the gaps are rounding, or no way leads down; and where that is known."""
        q, mu = q.copy(), np.full(len(q), 1e-4)
        settled = np.zeros(len(q), bool)
        for _ in range(most):
            now = np.flatnonzero(~settled)
            if not len(now):
                break
            e, K, W = self._at(q[now], which[now])
            dq, slope = self._step(q[now], e, K, W, mu[now])
            trial = self._clipped(self._moved(q[now], dq))
            before, after = (self._size(x) for x in (e, self.gaps(trial, which[now])))
            done = self._is_closed(e)
            better = (after < before) & np.isfinite(after)
            q[now[better]] = trial[better]
            steps[which[now]] += 1
            mu[now] = np.where(better, np.maximum(mu[now] / 10, _LEAST_DAMPING), mu[now] * 4)
            # where the loops are closed, steps go on as long as they halve what rounding leaves
            rested = done & ~(after < 0.5 * before)
            settled[now] = rested | (~done & (slope <= _FLAT)) | (mu[now] > 1e8)
        return q, settled

    def _slide(self, q: np.ndarray, which: np.ndarray, most: int, steps: np.ndarray) -> np.ndarray:
        """Steps (3), each closed again, until nothing is left to slide."""
        q, pace = q.copy(), np.ones(len(q))
        going = np.ones(len(q), bool)
        for _ in range(_SLIDES):
            now = np.flatnonzero(going)
            if not len(now):
                break
            _, K, W = self._at(q[now], which[now])
            x = self.difference(q[now], which[now])
            dq = -self._projected(q[now], x, K, W)
            way, left = _length(W, x), _length(W, dq)
            near = left <= _NEAR * way + 1e-300
            start = self._clipped(self._moved(q[now], pace[now, None] * dq))
            trial, _ = self._close(start, which[now], most, steps)
            back = self.difference(trial, which[now])
            shorter = _length(self.W[which[now]], back) <= way * (1 + 1e-12)
            taken = ~near & shorter & self._is_closed(self.gaps(trial, which[now]))
            q[now[taken]] = trial[taken]
            pace[now] = np.where(taken, np.minimum(1.0, 2 * pace[now]), 0.5 * pace[now])
            going[now] = ~near & (pace[now] > 1e-3)
        return q

    def _step(
        self, q: np.ndarray, e: np.ndarray, K: np.ndarray, W: np.ndarray, mu: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The step (2) over joints that no limit stops, and how steep it is there."""
        mask = np.broadcast_to(self.free, (len(q), len(self.free)))
        dq = _taken_apart(K, W, mask, self.units).closing(e / self.units, mu) * mask
        mask = mask * ~self._blocked(q, dq)
        solved = _taken_apart(K, W, mask, self.units)
        dq = solved.closing(e / self.units, mu) * mask
        down = _times(_turned(solved.U), e / self.units)
        size = self._size(e) * solved.s[:, 0] if solved.s.size else self._size(e)
        slope = np.linalg.norm(solved.s * down, axis=-1) / np.where(size > 0, size, 1.0)
        stride = _STRIDE * self.units.max(initial=1.0)
        longest = np.abs(dq).max(axis=-1, keepdims=True, initial=0.0)
        return dq * np.minimum(1.0, stride / np.maximum(longest, 1e-300)), slope

    def _projected(self, q: np.ndarray, x: np.ndarray, K: np.ndarray, W: np.ndarray) -> np.ndarray:
        """P x of (3) over joints that no limit stops."""
        mask = np.broadcast_to(self.free, x.shape)
        dq = _taken_apart(K, W, mask, self.units).free(x * mask) * mask
        mask = mask * ~self._blocked(q, -dq)
        return _taken_apart(K, W, mask, self.units).free(x * mask) * mask

    def _blocked(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Degrees of freedom at a limit that a step goes beyond."""
        at, known = q[:, self.slots], self.slots >= 0
        low = (at <= self.low[self.slots]) & (dq < 0)
        return known & (low | ((at >= self.high[self.slots]) & (dq > 0)))

    # what the robot says

    def _at(self, q: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """e, K, and W carried from q₀ to q."""
        relative, K = self._ask("constraint_closure", q, which)
        W = self.W[which]
        if self.curved:
            W = self._carried(W, self.difference(q, which))
        return gaps(self.constraints, relative, self.anchors[which]), K, W

    def _carried(self, W: np.ndarray, x: np.ndarray) -> np.ndarray:
        """W of the rates of x, for velocities at q."""
        robot, n = self.robot, x.shape[-1]
        turn = lambda u, v: precise_rate(robot.mechanism, u, v)  # noqa: E731
        kernel = robot._keep(("assemble", "rates"), lambda: robot.compile(turn))
        rates = np.asarray(kernel(x[:, None], np.eye(n)), float)
        return rates @ W @ _turned(rates)

    def _metric(self, metric: Any) -> np.ndarray:
        if self.by_mass:
            return self._masses(self.start, np.arange(len(self.start)))
        weights = np.ones(self.robot.nv) if isinstance(metric, str) else metric
        return np.tile(np.diag(weights), (len(self.start), 1, 1))

    def _masses(self, q: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Mass matrices; NaN where they are no metric, of one sample an error."""
        M = self._ask("mass_matrix", q, which)
        sound = _positive(_masked(M, np.broadcast_to(self.free, M.shape[:2])))
        if self.alone and not sound.all():
            where, mech = f"assemble of {self.robot.name!r}", self.robot.mechanism
            why = why_singular(where, loose_joint(mech, M[0], 1 - self.free))
            raise SingularError(f"{why}, or take metric='plain'")
        return np.where(sound[:, None, None], M, np.nan)

    def difference(self, q: np.ndarray, which: np.ndarray) -> np.ndarray:
        """x of (1)."""
        return np.asarray(self.robot._ask("difference", {}, q0=self.start[which], q1=q), float)

    def _moved(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        return np.asarray(self.robot._ask("integrate", {}, q=q, dv=dq), float)

    def _ask(self, name: str, q: np.ndarray, which: np.ndarray) -> Any:
        """An algorithm at configurations of some samples."""
        static = {"constraints": self.constraints} if name == "constraint_closure" else {}
        numbers = {n: x[which] for n, x in self.numbers.items()}
        found = self.robot._ask(name, static, q=q, **numbers)
        many = isinstance(found, tuple)
        return tuple(np.asarray(x, float) for x in found) if many else np.asarray(found, float)

    def _clipped(self, q: np.ndarray) -> np.ndarray:
        return np.clip(q, self.low[:-1], self.high[:-1])

    def _size(self, e: np.ndarray) -> np.ndarray:
        return np.linalg.norm(e / self.units, axis=-1)

    def _is_closed(self, e: np.ndarray) -> np.ndarray:
        return np.abs(e).max(axis=-1, initial=0.0) <= self.tolerance


def _taken_apart(K: np.ndarray, W: np.ndarray, mask: np.ndarray, units: np.ndarray) -> _Solved:
    """K W^-½ of the degrees of freedom that may move."""
    root = _turned(np.linalg.inv(np.linalg.cholesky(_masked(W, mask))))
    B = (K * mask[:, None] / units[:, None]) @ root
    U, s, V = np.linalg.svd(B, full_matrices=False)
    return _Solved(U, s, _turned(V), root)


def _masked(W: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """W of the degrees of freedom that may move, 1 for the others."""
    return W * mask[:, :, None] * mask[:, None, :] + np.eye(W.shape[-1]) * (1 - mask)[:, None]


def _positive(W: np.ndarray) -> np.ndarray:
    """Which of some matrices are metrics."""
    try:
        return np.asarray(np.isfinite(np.linalg.cholesky(W)).all(axis=(-2, -1)))
    except np.linalg.LinAlgError:
        return np.array([False]) if len(W) == 1 else np.concatenate([_positive(x[None]) for x in W])


def _in_range(x: np.ndarray) -> np.ndarray:
    """Which samples are finite, and far from overflow."""
    return np.asarray((np.abs(x) < _LARGEST).all(axis=tuple(range(1, x.ndim))))


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[..., None])[..., 0]


def _turned(A: np.ndarray) -> np.ndarray:
    return np.swapaxes(A, -1, -2)


def _length(W: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ni,nij,nj->n", x, W, x))


def _coordinates(mech: Mechanism) -> np.ndarray:
    """The coordinate of each degree of freedom that has one of its own, −1 where none (nv,)."""
    slots = np.full(mech.nv, -1)
    for b in mech.bodies[1:]:
        if b.joint.mimic is None and b.joint.nq == b.joint.nv:
            q, v = mech.q_slice(b.joint_name), mech.v_slice(b.joint_name)
            slots[v] = np.arange(q.start, q.stop)
    return slots


def _limits(mech: Mechanism, wanted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits of q, of followers too; one more at the end for what has none."""
    low, high = np.full(mech.nq + 1, -np.inf), np.full(mech.nq + 1, np.inf)
    if wanted:
        bounds = limits(mech)
        some = bounds.bounded
        low[bounds.place[some]], high[bounds.place[some]] = bounds.lower[some], bounds.upper[some]
    return low, high

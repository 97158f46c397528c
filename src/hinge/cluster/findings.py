"""Parameter studies: points in blocks, measured and reduced on the workers.

A block is one task, from the points to what its samples are reduced to; what blocks give is put
together in the order of the blocks, so many at a time, and what is left comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, final
from uuid import uuid4

import numpy as np

from ..errors import ArgumentError
from ..robot import Robot
from ..runtime.check import check_whole
from ..runtime.door import owner_of
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from ..runtime.threads import limited
from .parcel import Parcel
from .points import Points
from .reductions import Block, Reduction
from .trouble import Trouble, failed, spoiled
from .work import Place, Work, check_place, work_of

__all__ = ["Findings", "studied"]

dask: Any = import_module("dask")
# how many blocks are put together at once
_TOGETHER = 16


class Findings(dict):
    """What a study found, by name.

    count: the samples that were reduced; troubles: those that could not be, and why.
    """

    def __init__(self, found: Mapping[str, Any], count: int, troubles: list[Trouble]) -> None:
        dict.__init__(self, found)
        self.count, self.troubles = count, troubles

    def __reduce__(self) -> Any:
        return Findings, (dict(self), self.count, self.troubles)


class _Partial(NamedTuple):
    """What some blocks give: states of reductions, None where no sample is left."""

    states: tuple[Any, ...]
    samples: int
    troubles: list[Trouble]


@final
class _Job:
    """A study as it travels: what is done, with which points, and how it is reduced."""

    def __init__(
        self,
        where: str,
        what: Any,
        points: Points,
        reduce: Mapping[str, Reduction],
        settings: Mapping[str, Any],
        place: tuple[str | None, int],
    ) -> None:
        self.where, self.points = where, points
        self.what: Any = what
        self.reduce, self.settings = dict(reduce), dict(settings)
        self.work: Work | None = None
        lives = "cpu"
        if isinstance(what, (Kernel, Rollout)) or isinstance(owner_of(what), Robot):
            first = points.block(0, min(2, len(points)))
            self.work, takes, lives = work_of(where, what, (), {**first, **settings})
            self.fixed = {a.name: np.asarray(a.value) for a in takes if a.name not in first}
            self.what = None
        self.place: Place = check_place(where, *place, lives)
        self.shapes: list[tuple[int, ...]] = self._tried()

    def _tried(self) -> list[tuple[int, ...]]:
        """The shapes of what is measured, found with the first two points.

        Before any are sent out, mistakes are told that way, and code is compiled.
        """
        count = min(2, len(self.points))
        points = self.points.block(0, count)
        found = self.measured(points, count)
        # with any numbers: these may be the ones that have no answer
        zeros = [np.zeros_like(x) for x in found]
        self.reduced(zeros, points, 0, np.ones(count, dtype=bool))
        return [x.shape[1:] for x in found]

    @property
    def name(self) -> str:
        """What its tasks are called."""
        return self.work.name if self.work else getattr(self.what, "__name__", "study")

    def measured(self, block: Mapping[str, np.ndarray], count: int) -> list[np.ndarray]:
        """What is reduced, of a block of points."""
        if self.work is None:
            with limited(self.place.threads):
                # what it is given is used again: the function may write into it
                given = {**block, **self.settings}
                own = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in given.items()}
                results = self.what(**own)
        else:
            arrays = [block.get(n, self.fixed.get(n)) for n, *_ in self.work.takes]
            found = self.work([np.asarray(x) for x in arrays], self.place, len(self.points) == 1)
            results = found if self.work.form is not None else found[0]
        return [
            r.measured(f"{self.where}, {name}", results, count) for name, r in self.reduce.items()
        ]

    def reduced(
        self,
        found: list[np.ndarray],
        points: Mapping[str, np.ndarray],
        begin: int,
        sound: np.ndarray,
    ) -> tuple[Any, ...]:
        """What a block becomes.

        begin: the number of its first sample; sound: which samples have an answer.
        """
        numbers, states = np.arange(begin, begin + len(sound)), []
        for reduction, x in zip(self.reduce.values(), found, strict=True):
            chosen = np.ones_like(sound) if reduction.whole else sound
            rows = {n: p[chosen] for n, p in points.items()}
            block = Block(x[chosen], numbers[chosen], rows)
            states.append(reduction.start(block) if chosen.any() else None)
        return tuple(states)


def studied(
    where: str,
    what: Any,
    points: Points,
    reduce: Mapping[str, Reduction],
    size: int,
    settings: Mapping[str, Any],
    place: tuple[str | None, int],
) -> Any:
    """The findings, to be computed by Dask."""
    for name, reduction in reduce.items():
        if not isinstance(reduction, Reduction):
            raise ArgumentError(
                f"{where}: reduce[{name!r}] is {reduction!r}; expected a Reduction, such as "
                f"hinge.cluster.mean()"
            )
    if both := [n for n in points.names if n in settings]:
        raise ArgumentError(f"{where}: {', '.join(both)} is both of the points and a setting")
    check_whole(where, "size", size, above=1)
    job = _Job(where, what, points, reduce, settings, place)
    sent = dask.delayed(
        Parcel(where, job), traverse=False, name=f"{job.name}_compiled-{uuid4().hex}"
    )
    graph, last = _tasks(job.name, sent.key, len(points), size)
    layers = import_module("dask.highlevelgraph").HighLevelGraph
    whole = layers.from_collections(last, graph, dependencies=[sent])
    return import_module("dask.delayed").Delayed(last, whole)


def _tasks(name: str, job: str, count: int, size: int) -> tuple[dict[Any, Any], str]:
    """The tasks by their keys, and the key of the last one; job: the key of the study itself."""
    unique = uuid4().hex
    graph: dict[Any, Any] = {
        (f"{name}-{unique}", i): (_run, job, i, *span)
        for i, span in enumerate(_blocks(count, size))
    }
    keys, level = list(graph), 0
    while len(keys) > 1:
        groups = [keys[i : i + _TOGETHER] for i in range(0, len(keys), _TOGETHER)]
        found = {
            (f"{name}_reduced-{unique}", level, i): (_together, job, group)
            for i, group in enumerate(groups)
        }
        graph, keys, level = {**graph, **found}, list(found), level + 1
    last = f"{name}_findings-{unique}"
    return {**graph, last: (_finished, job, keys[0])}, last


def _blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where blocks begin and end; none has one sample alone, whose code may round otherwise."""
    begin = 0
    while begin < count:
        end = count if count - begin <= size + 1 else begin + size
        yield begin, end
        begin = end


def _run(sent: Parcel, number: int, begin: int, end: int) -> _Partial:
    """On a worker: a block."""
    job: _Job = sent.open()
    count, extent = end - begin, (slice(begin, end),)
    try:
        points = job.points.block(begin, end)
        found = job.measured(points, count)
    except Exception as error:
        points, trouble = {}, failed((number,), extent, error)
        found = [np.full((count, *shape), np.nan) for shape in job.shapes]
    else:
        finite = [_finite(x) for x in found]
        given = {n: _finite(x) for n, x in points.items()}
        trouble = spoiled((number,), extent, np.logical_and.reduce(finite), given)
    sound = np.ones(count, dtype=bool)
    if trouble is not None:
        sound[trouble.samples[:, 0] - begin] = False
    states = job.reduced(found, points, begin, sound)
    return _Partial(states, int(sound.sum()), [] if trouble is None else [trouble])


def _finite(x: np.ndarray) -> Any:
    """Whether all numbers of each sample are."""
    return np.isfinite(x).reshape(len(x), -1).all(axis=1)


def _together(sent: Parcel, parts: list[_Partial]) -> _Partial:
    """On a worker: what blocks that follow each other give."""
    job: _Job = sent.open()
    states = []
    for i, reduction in enumerate(job.reduce.values()):
        there = [part.states[i] for part in parts if part.states[i] is not None]
        state = there[0] if there else None
        for other in there[1:]:
            state = reduction.combine(state, other)
        states.append(state)
    troubles = [trouble for part in parts for trouble in part.troubles]
    return _Partial(tuple(states), sum(part.samples for part in parts), troubles)


def _finished(sent: Parcel, part: _Partial) -> Findings:
    """On a worker: the end."""
    job: _Job = sent.open()
    found = {
        name: None if state is None else reduction.finish(state)
        for (name, reduction), state in zip(job.reduce.items(), part.states, strict=True)
    }
    return Findings(found, part.samples, part.troubles)

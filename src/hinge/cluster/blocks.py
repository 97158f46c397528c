"""Work mapped over arrays of Dask, block by block.

A block of results is a task that depends on blocks of the arguments and on the work itself, which
is one value of the graph: Dask brings it to each worker once.  Time and the axes of a sample are
whole in every block; samples are chunked as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import count, islice
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..runtime.arguments import Argument, check_kind, leading_shape
from .parcel import Parcel
from .trouble import Trouble, block_failed, failed, spoiled
from .work import Place, Work

__all__ = ["mapped"]

dask: Any = import_module("dask")
da: Any = import_module("dask.array")
layers: Any = import_module("dask.layers")


def mapped(work: Work, takes: Sequence[Argument], place: Place, report: bool) -> Any:
    """The results as arrays of Dask, and an array of troubles if asked for."""
    if not any(isinstance(a.value, da.Array) for a in takes):
        raise ArgumentError(
            f"{work.where}: none of {', '.join(a.name for a in takes)} is an array of Dask; "
            f"expected some, chunked over samples: "
            f"dask.array.from_array({takes[0].name}, chunks=(100_000, -1))"
        )
    arrays = [_checked(work.where, a) for a in takes]
    leads = [
        x.shape[int(a.timed) : x.ndim - len(a.shape)] for a, x in zip(takes, arrays, strict=True)
    ]
    lead = leading_shape(work.where, takes, leads)
    samples, numbers = tuple(range(len(lead))), count(len(lead))
    indices = [_index(a, len(own), samples, numbers) for a, own in zip(takes, leads, strict=True)]
    pairs = [y for x, index in zip(arrays, indices, strict=True) for y in (x, index)]
    chunks, aligned = da.core.unify_chunks(*pairs)
    pairs[::2] = aligned
    grid = tuple(chunks[i] for i in samples)
    done = _done(work, place, report, np.prod(lead) == 1, pairs, grid)
    results = [_part(done, work, i, shape, grid) for i, shape in enumerate(work.gives)]
    formed = results[0] if work.form is None else _formed(work.form, results)
    if not report:
        return formed
    ones = tuple((1,) * len(c) for c in grid)
    meta = np.empty((0,) * len(grid), object)
    name = f"{work.name}_troubles-{done.name.rpartition('-')[2]}"
    return formed, done.map_blocks(_trouble, chunks=ones, meta=meta, name=name)


def _formed(form: type, results: list[Any]) -> Any:
    return tuple(results) if form is tuple else form(*results)


def _checked(where: str, a: Argument) -> Any:
    """An argument as an array of Dask, in whose blocks samples are whole."""
    x = a.value if isinstance(a.value, da.Array) else da.from_array(np.asarray(a.value), chunks=-1)
    if type(x._meta) is not np.ndarray:
        raise ArgumentError(
            f"{where}: blocks of {a.name} are {type(x._meta).__name__}; expected arrays of NumPy: "
            f"{a.name}.map_blocks(np.asarray)"
        )
    if any(isnan(n) for n in x.shape):
        raise ArgumentError(
            f"{where}: {a.name} has chunks of unknown sizes {x.shape}; call "
            f"{a.name}.compute_chunk_sizes() first"
        )
    check_kind(where, a, x.dtype, x.shape)
    whole = [*range(int(a.timed)), *range(x.ndim - len(a.shape), x.ndim)]
    if cut := [i for i in whole if len(x.chunks[i]) > 1]:
        told = ", ".join(f"{i}: -1" for i in cut)
        raise ArgumentError(
            f"{where}: {a.name} has chunks {x.chunks}; expected {a.expected} with whole samples in "
            f"every block: {a.name}.rechunk({{{told}}})"
        )
    return x


def _index(
    a: Argument, axes: int, samples: tuple[int, ...], numbers: Iterator[int]
) -> tuple[int, ...]:
    """The numbers of the axes: those of samples, and new ones for time and what a sample has."""
    time = tuple(islice(numbers, int(a.timed)))
    return (*time, *samples[len(samples) - axes :], *islice(numbers, len(a.shape)))


def _done(
    work: Work,
    place: Place,
    report: bool,
    alone: bool,
    pairs: list[Any],
    grid: tuple[tuple[int, ...], ...],
) -> Any:
    """An array with blocks that hold all results of a block, and its trouble."""
    samples = tuple(range(len(grid)))
    token = dask.base.tokenize(work.token, place, report, *(x.name for x in pairs[::2]))
    shipped = dask.delayed(
        Parcel(work.where, work),
        pure=True,
        traverse=False,
        name=f"{work.name}_compiled-{work.token}",
    )
    run = partial(_run_block, place=place, report=report, alone=bool(alone))
    found = (layers.ArrayBlockIdDep(grid), samples, layers.ArraySliceDep(grid), samples)
    return da.blockwise(
        run,
        samples,
        shipped,
        None,
        *(found if samples else ((), None, (), None)),
        *pairs,
        name=f"{work.name}-{token}",
        concatenate=True,
        align_arrays=False,
        meta=np.empty((0,) * len(grid), object),
    )


class _Done(NamedTuple):
    """All results of a block, and its trouble; axes: of samples."""

    results: tuple[np.ndarray, ...]
    trouble: Trouble | None
    axes: int


def _run_block(
    sent: Parcel,
    block: tuple[int, ...],
    extent: tuple[slice, ...],
    *arrays: np.ndarray,
    place: Place,
    report: bool,
    alone: bool,
) -> _Done:
    """On a worker."""
    work: Work = sent.open()
    axes = len(extent)
    try:
        results = work(arrays, place, alone)
    except Exception as error:
        trouble = failed(block, extent, error)
        if not report:
            raise block_failed(work.where, trouble) from error
        size = tuple(s.stop - s.start for s in extent)
        time = () if work.records is None else (work.records,)
        shapes = [(*time, *size, *shape) for shape in work.gives]
        return _Done(tuple(np.full(s, np.nan, work.dtype) for s in shapes), trouble, axes)
    if not report:
        return _Done(results, None, axes)
    sound = [_finite(x, work.time, axes) for x in results]
    given = {
        name: _finite(x, int(timed), x.ndim - len(shape) - int(timed))
        for (name, shape, timed), x in zip(work.takes, arrays, strict=True)
    }
    return _Done(results, spoiled(block, extent, np.logical_and.reduce(sound), given), axes)


def _finite(x: np.ndarray, time: int, axes: int) -> Any:
    """Whether all numbers of each sample are."""
    others = (*range(time), *range(time + axes, x.ndim))
    return np.isfinite(x).all(axis=others)


def _part(
    done: Any, work: Work, i: int, shape: tuple[int, ...], grid: tuple[tuple[int, ...], ...]
) -> Any:
    """One of the results."""
    time = () if work.records is None else (work.records,)
    chunks = (*((n,) for n in time), *grid, *((n,) for n in shape))
    first = len(time) + len(grid)
    return done.map_blocks(
        _result,
        i,
        chunks=chunks,
        new_axis=[*range(len(time)), *range(first, first + len(shape))] or None,
        meta=np.empty((0,) * len(chunks), work.dtype),
        name=f"{work.name}_result-{done.name.rpartition('-')[2]}-{i}",
    )


def _result(done: _Done, i: int) -> np.ndarray:
    return done.results[i]


def _trouble(done: _Done) -> np.ndarray:
    """As an array with one entry."""
    found = np.empty((1,) * done.axes, object)
    # item by item: NumPy would take it apart
    found[(0,) * done.axes] = done.trouble
    return found

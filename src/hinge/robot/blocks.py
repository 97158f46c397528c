"""Batches larger than memory: calls a block of samples at a time, as they come or along arrays.

Neither needs more memory than a few blocks; what arrays are mapped from stays on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, final

import numpy as np

from ..errors import ArgumentError, located
from ..functions.reducing import ReducingRollout
from ..runtime.arguments import Argument, check_kind, leading_shape
from ..runtime.check import check_whole
from ..runtime.door import owner_of
from ..runtime.kernel import Kernel
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from ..specialize.arrays import array_shape
from .method import bound, methods_of

__all__ = ["in_blocks", "stream"]

# bytes of arguments and results that a block has, unless its size is told: enough that what a call
# costs besides does not count, and not much more than processors keep near
_BLOCK = 1 << 23


def stream(call: Callable[..., Any], blocks: Iterable[Any], **same: Any) -> Iterator[Any]:
    """Yield what a call gives for one block of samples after the other.

    call: anything that takes arrays: a method of a robot, a kernel, a rollout, a function.
    blocks: the arguments of each call: a tuple of them by place, a mapping by name, or a single
    array.  same: arguments that all calls have.

    for tau in hinge.stream(robot.inverse_dynamics, ((x["q"], x["qd"], x["qdd"]) for x in files)):
    """
    name = getattr(call, "name", None) or getattr(call, "__name__", "a call")
    for i, block in enumerate(progress(blocks, f"stream of {name}")):
        with located(f"block {i}"):
            result = _called(call, block, same)
        yield result
        # nobody else is to hold it while the next is made
        del result


def _called(call: Callable[..., Any], block: Any, same: Mapping[str, Any]) -> Any:
    if isinstance(block, Mapping):
        return call(**{**same, **block})
    return call(*block, **same) if isinstance(block, (tuple, list)) else call(block, **same)


def in_blocks(
    call: Callable[..., Any],
    *arguments: Any,
    out: Any = None,
    block: int | None = None,
    **named: Any,
) -> Any:
    """What call(*arguments, **named) gives, so many samples at a time.

    call: a compiled method of a robot, a kernel or a rollout.  Its arrays may be mapped from files
    (`np.memmap`), or be anything with a shape and slices that are arrays, as those of h5py and Zarr
    are.  The first dimension of their common leading shape is cut; an array without it goes with
    every block.
    out: what results are written to, likewise, of any dtype; None for new arrays in memory.
    block: how many samples at a time, None for about 8 MB of them.
    If it is interrupted, or a block is refused, the blocks before are in out.

    hinge.in_blocks(robot.inverse_dynamics, q, qd, qdd, out=np.memmap("tau.bin", float, "w+", …))
    """
    work = _work(call, arguments, named)
    whole = check_whole(work.where, "block", block) if block is not None else None
    results = _Results(work, out)
    size = whole or max(1, _BLOCK // results.bytes_per_sample)
    for begin in progress(range(0, max(work.samples, 1), size), work.where):
        end = min(begin + size, work.samples)
        with located(f"samples {begin} to {end - 1} of {work.samples}"):
            results.put(begin, end)
    return results.given


@final
class _Work:
    """A call, and how its arrays are cut.

    run: takes arrays in their order and, if that is so, out.
    shapes: of one sample of each array; timed: those that have steps before the samples.
    time: how many dimensions of the results come before the samples.
    """

    def __init__(
        self,
        where: str,
        run: Callable[..., Any],
        arrays: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        timed: Collection[str] = (),
        time: int = 0,
        takes_out: bool = False,
    ) -> None:
        self.where, self.run, self.time, self.takes_out = where, run, time, takes_out
        given = [Argument(n, _as_sliced(x), shapes[n], timed=n in timed) for n, x in arrays.items()]
        for a in given:
            check_kind(where, a, _dtype_of(where, a), tuple(a.value.shape))
        leads = [tuple(a.value.shape[a.timed : len(a.value.shape) - len(a.shape)]) for a in given]
        self.lead = leading_shape(where, given, leads)
        self.samples = self.lead[0] if self.lead else 1
        # what has the dimension that is cut, and where
        whole = [self.lead != () and own[:1] == self.lead[:1] for own in leads]
        same = [len(own) == len(self.lead) for own in leads]
        marks = zip(given, whole, same, strict=True)
        self.arrays = {a.name: a.value for a in given}
        self.at = {a.name: int(a.timed) if x and y else None for a, x, y in marks}

    def cut(self, begin: int, end: int) -> list[Any]:
        """The arguments of so many samples."""
        parts = []
        for name, x in self.arrays.items():
            at = self.at[name]
            parts.append(x if at is None else x[(slice(None),) * at + (slice(begin, end),)])
        return parts


def _dtype_of(where: str, a: Argument) -> np.dtype:
    try:
        return np.dtype(a.value.dtype)
    except TypeError:
        raise ArgumentError(
            f"{where}: {a.name} is a {type(a.value).__name__}; in_blocks takes arrays of NumPy and "
            f"of files: hinge.stream takes blocks of any kind"
        ) from None


def _as_sliced(x: Any) -> Any:
    """What can be cut; an array that is mapped from a file as one like others, where it is."""
    mapped = isinstance(x, np.memmap)
    return x if hasattr(x, "shape") and hasattr(x, "dtype") and not mapped else np.asarray(x)


def _work(call: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Work:
    """What a call is to be given, by what is called."""
    if isinstance(call, Kernel):
        given = call._in_order(arguments, named) if named else arguments
        names, here = call.names, call.backend.language == "llvm"
        _count(call.name, names, given)
        shapes = dict(zip(names, call.artifact.inputs, strict=True))
        return _Work(call.name, call, dict(zip(names, given, strict=True)), shapes, takes_out=here)
    if isinstance(call, (Rollout, ReducingRollout)):
        _count(call.name, list(call.shapes), arguments)
        arrays = dict(zip(call.shapes, arguments, strict=True))

        def run(*arrays: Any) -> Any:
            return call(*arrays, **named)

        return _Work(call.name, run, arrays, call.shapes, call.timed, int(call.records))
    return _method_work(call, arguments, named)


def _count(where: str, names: Sequence[str], given: Sequence[Any]) -> None:
    if len(given) != len(names):
        raise ArgumentError(f"{where} takes {', '.join(names)}; got {len(given)} arrays")


def _method_work(call: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Work:
    """A compiled method of a robot, as it is bound at first or as it is later, a door."""
    robot = owner_of(call)
    methods = methods_of(type(robot)) if hasattr(robot, "_doors") else {}
    method = next((m for m in methods if m.name == getattr(call, "__name__", "")), None)
    if method is None:
        raise ArgumentError(
            f"in_blocks: {call!r} is no compiled method of a robot, kernel or rollout, so that "
            f"nobody knows where to cut its arrays; hinge.stream takes any function, and blocks of "
            f"your own"
        )
    where, parameters = f"{method.name} of {robot.name!r}", method.of(robot)
    values = bound(where, parameters, arguments, named)
    arrays, static, _ = method.told_apart(robot, where, parameters, values)
    arrays = {n: x for n, x in arrays.items() if n not in robot._numbers}
    given = dict(zip([p.name for p in parameters], values, strict=True))
    settings = {n: x for n, x in given.items() if n not in arrays and n != "out"}
    shapes = {n: array_shape(robot.mechanism, n, static) for n in arrays}

    def run(*parts: Any, **out: Any) -> Any:
        return call(**dict(zip(arrays, parts, strict=True)), **settings, **out)

    return _Work(where, run, arrays, shapes, takes_out=robot.device == "cpu")


@final
class _Results:
    """Where results go, block by block; what is new is made when the first block is there."""

    def __init__(self, work: _Work, out: Any) -> None:
        self.work, self.given = work, out
        several = isinstance(out, (tuple, list))
        parts = list(out) if several else [out]
        self.parts = [] if out is None else [_as_sliced(x) for x in parts]
        self.direct = False
        for x in self.parts:
            self._refuse(x)

    @property
    def bytes_per_sample(self) -> int:
        """Of all arrays that are cut and, as far as they are known, of the results."""
        arrays = [*self.work.arrays.values(), *self.parts]
        total = sum(prod(x.shape) * np.dtype(x.dtype).itemsize for x in arrays)
        return max(1, total // max(self.work.samples, 1))

    def put(self, begin: int, end: int) -> None:
        """The results of so many samples, in their places."""
        arguments = self.work.cut(begin, end)
        if self.direct:
            parts = [x[begin:end] for x in self.parts]
            several = isinstance(self.given, (tuple, list))
            self.work.run(*arguments, out=tuple(parts) if several else parts[0])
            return
        result = self.work.run(*arguments)
        found = [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]
        self._expect(result, found)
        for x, new in zip(self.parts, found, strict=True):
            x[self._place(begin, end)] = new
        self.direct = self.work.takes_out and all(map(_is_same_kind, self.parts, found))

    def _place(self, begin: int, end: int) -> Any:
        if not self.work.lead:
            return ...
        return (slice(None),) * self.work.time + (slice(begin, end),)

    def _expect(self, result: Any, found: list[np.ndarray]) -> None:
        """Arrays for all samples like these; those of out have to be such."""
        shapes, at = [x.shape for x in found], self.work.time
        if self.work.lead:
            shapes = [s[:at] + (self.work.samples,) + s[at + 1 :] for s in shapes]
        if self.given is None:
            self.parts = [np.empty(s, x.dtype) for s, x in zip(shapes, found, strict=True)]
            self.given = _formed(result, self.parts)
        if [tuple(x.shape) for x in self.parts] != shapes:
            told = ", ".join(str(tuple(x.shape)) for x in self.parts)
            wanted = ", ".join(map(str, shapes))
            raise ArgumentError(f"{self.work.where}: out has shape {told}; expected {wanted}")

    def _refuse(self, x: Any) -> None:
        """What is not to be written, or where another block is still to be read."""
        if not isinstance(x, np.ndarray):
            return
        if not x.flags.writeable:
            raise ArgumentError(
                f"{self.work.where}: out is read-only; map it with mode 'r+' or 'w+'"
            )
        arrays = {n: a for n, a in self.work.arrays.items() if isinstance(a, np.ndarray)}
        for name, given in arrays.items():
            if np.may_share_memory(x, given) and _span(x) != _span(given):
                raise ArgumentError(
                    f"{self.work.where}: out shares memory with {name}, and is not the same array; "
                    f"give it memory of its own"
                )


def _span(x: np.ndarray) -> tuple[Any, ...]:
    return x.ctypes.data, x.shape, x.strides


def _formed(result: Any, parts: list[Any]) -> Any:
    """Arrays as a call gives them."""
    if not isinstance(result, tuple):
        return parts[0]
    return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)


def _is_same_kind(x: Any, found: np.ndarray) -> bool:
    """Whether a call can write into such an array itself."""
    is_plain = isinstance(x, np.ndarray) and not hasattr(x, "mask")
    return is_plain and x.dtype == found.dtype and x.flags.carray

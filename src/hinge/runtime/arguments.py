"""Arrays that calls are given: the one place that says whether they are right.

Every array has the shape of one sample, after any leading shape; leading shapes broadcast.  A call
without a leading shape is the strict one: NaN, infinity or a zero quaternion raise.  In a batch
such a sample gives NaN and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import is_masked
from ..errors import ArgumentError, SingularError

__all__ = [
    "Argument",
    "broadcast",
    "check_kind",
    "checked",
    "checked_out",
    "in_range",
    "leading_shape",
    "named",
    "out_of_the_way",
    "plain",
    "refuse_infinite",
    "single",
]


def no_check(sample: np.ndarray) -> str:
    """Nothing is wrong with any sample."""
    return ""


def as_it_is(sample: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Every sample is in the range of the dtype."""
    return sample


class Argument(NamedTuple):
    """An array argument: the shape of one sample, and what it holds.

    check: says what is wrong with a sample that has the right shape and finite entries, or "".
    in_range: the same sample in other numbers, where these are out of the range of a dtype.
    timed: it has a dimension for time before all others.
    endless: what to say of an entry that is infinite.
    """

    name: str
    value: Any
    shape: tuple[int, ...]
    meaning: str = ""
    check: Callable[[np.ndarray], str] = no_check
    in_range: Callable[[np.ndarray, np.dtype], np.ndarray] = as_it_is
    timed: bool = False
    endless: str = ""

    @property
    def expected(self) -> str:
        """The shape in words."""
        sizes = ", ".join([*(["steps"] if self.timed else []), "…", *map(str, self.shape)])
        return f"shape ({sizes})" + (f": {self.meaning}" if self.meaning else "")


def plain(x: Any, dtype: np.dtype) -> Any:
    """Numbers in a list, or in an array of another kind, as an array that machine code takes.

    x itself if it is one, and if it is nothing that can be one without a question.
    """
    if type(x) is np.ndarray and _is_ready(x, dtype):
        return x
    if is_masked(x):
        return x
    try:
        array = np.asarray(x)
    except ValueError:
        return x
    # such as one that is mapped from a file: taken where it is
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and _is_ready(array, dtype):
        return array
    if array.dtype.kind not in "fiub":
        return x
    with np.errstate(over="ignore"):
        made = array.astype(dtype, "C")
    return made if np.isfinite(made).all() else x


def _is_ready(x: np.ndarray, dtype: np.dtype) -> bool:
    return x.dtype == dtype and x.flags.c_contiguous and x.flags.aligned


def named(
    where: str,
    arrays: Sequence[Any],
    shapes: Mapping[str, tuple[int, ...]],
    timed: Collection[str] = (),
) -> list[Argument]:
    """As many arrays as there are names, each with the shape of a sample."""
    if len(arrays) != len(shapes):
        raise ArgumentError(
            f"{where} takes {len(shapes)} arrays ({', '.join(shapes)}), got {len(arrays)}"
        )
    pairs = zip(shapes.items(), arrays, strict=True)
    return [Argument(n, x, shape, timed=n in timed) for (n, shape), x in pairs]


def checked(
    where: str, arguments: Sequence[Argument], dtype: np.dtype, strict: bool = False
) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The arrays in that dtype, and their common leading shape.

    strict: without a leading shape, every number has to be finite and every sample sound.
    """
    arrays = [_array(where, a) for a in arguments]
    pairs = list(zip(arguments, arrays, strict=True))
    leads = [x.shape[int(a.timed) : x.ndim - len(a.shape)] for a, x in pairs]
    lead = leading_shape(where, arguments, leads)
    if strict and lead == ():
        for a, x in pairs:
            if problem := _wrong(a, x.astype(float, copy=False)):
                raise ArgumentError(f"{where}: {problem}")
    with np.errstate(over="ignore"):
        return [x.astype(dtype, copy=not x.flags.aligned) for x in arrays], lead


def in_range(arguments: Sequence[Argument], dtype: np.dtype) -> list[np.ndarray]:
    """Arguments of one sample, sound ones, in numbers that a dtype can deal with."""
    return [a.in_range(np.asarray(a.value), dtype).astype(dtype) for a in arguments]


def broadcast(where: str, arguments: Sequence[Argument]) -> dict[str, np.ndarray]:
    """The arguments as floats, checked and broadcast to their common leading shape."""
    arrays, lead = checked(where, arguments, np.dtype(float), strict=True)
    if lead == ():
        arrays = in_range(arguments, np.dtype(float))
    pairs = zip(arguments, arrays, strict=True)
    return {a.name: np.broadcast_to(x, lead + a.shape) for a, x in pairs}


def single(where: str, arguments: Sequence[Argument]) -> dict[str, np.ndarray]:
    """The arguments of a call that takes one sample only, checked."""
    arrays = broadcast(where, arguments)
    for a in arguments:
        if arrays[a.name].shape != a.shape:
            raise ArgumentError(
                f"{where}: {a.name} has shape {arrays[a.name].shape}; this call takes one sample: "
                f"{a.shape}"
            )
    return arrays


def refuse_infinite(where: str, lead: tuple[int, ...], results: Sequence[np.ndarray]) -> None:
    """Raise if results without a leading shape are not finite."""
    if lead == () and not all(np.isfinite(result).all() for result in results):
        raise SingularError(
            f"{where}: the result is not finite: there is no answer here, or a number overflows"
        )


def checked_out(
    where: str, shapes: Sequence[tuple[int, ...]], dtype: np.dtype, out: Any
) -> list[np.ndarray]:
    """The arrays that results of these shapes go into."""
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    for x, shape in zip(given, shapes, strict=False):
        good = isinstance(x, np.ndarray) and x.dtype == dtype and x.shape == shape
        # a masked array would keep its mask
        if not good or not x.flags.carray or hasattr(x, "mask"):
            step = "a step of time goes into the arguments, as in integrate(q, dt * qd)"
            given = f", but {x!r}; {step}" if np.isscalar(x) else ""
            raise ArgumentError(
                f"{where}: out is not a writeable, aligned, C-contiguous {dtype} array of shape "
                f"{shape}{given}"
            )
    if len(given) != len(shapes):
        raise ArgumentError(f"{where}: out has {len(given)} arrays; expected {len(shapes)}")
    if any(np.may_share_memory(x, y) for x, y in combinations(given, 2)):
        raise ArgumentError(f"{where}: arrays of out share memory; give every result its own")
    return given


def out_of_the_way(x: np.ndarray, results: Sequence[np.ndarray]) -> np.ndarray:
    """An argument, copied if writing a sample of the results could change another of its own."""
    return x.copy() if any(_in_the_way(x, out) for out in results) else x


def _array(where: str, a: Argument) -> np.ndarray:
    if is_masked(a.value):
        raise ArgumentError(
            f"{where}: {a.name} has masked entries; expected numbers throughout: fill them in, or "
            f"leave such samples out"
        )
    if isinstance(a.value, str):
        raise ArgumentError(f"{where}: {a.name} is {a.value!r}; expected {a.expected}")
    try:
        x = np.asarray(a.value)
    except ValueError:
        raise ArgumentError(f"{where}: {a.name} is ragged; expected {a.expected}") from None
    check_kind(where, a, x.dtype, x.shape)
    return x


def check_kind(where: str, a: Argument, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Refuse what is no real numbers of the shape of an argument."""
    if dtype.kind not in "fiub":
        raise ArgumentError(
            f"{where}: {a.name} has dtype {dtype}; expected real numbers of {a.expected} (other "
            f"scalars run through robot.alg)"
        )
    before = len(shape) - len(a.shape)
    if before < int(a.timed) or shape[before:] != a.shape:
        raise ArgumentError(f"{where}: {a.name} has shape {shape}; expected {a.expected}")


def _in_the_way(x: np.ndarray, out: np.ndarray) -> bool:
    if not np.may_share_memory(x, out):
        return False
    same = x.ctypes.data == out.ctypes.data and x.shape == out.shape
    return not same or not x.flags.c_contiguous


def leading_shape(
    where: str, arguments: Sequence[Argument], leads: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The leading shape that all those of arguments broadcast to."""
    if len(set(leads)) == 1:
        return leads[0]
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        told = ", ".join(f"{a.name} {lead}" for a, lead in zip(arguments, leads, strict=True))
        raise ArgumentError(f"{where}: leading shapes do not broadcast: {told}") from None


def _wrong(a: Argument, x: np.ndarray) -> str:
    """What is wrong with one sample of an argument, or nothing."""
    finite = np.isfinite(x)
    if not finite.all():
        bad = np.argwhere(~finite)[0]
        entry = ", ".join(map(str, bad))
        hint = a.endless if np.isinf(x[tuple(bad)]) else ""
        return f"{a.name}[{entry}] is {x[tuple(bad)]}; expected finite numbers{hint}"
    return a.check(x)

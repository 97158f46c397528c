"""Calls from the front door: check every array, broadcast leading shapes, run the kernel.

A call without a leading shape is the checked one: NaN, infinity, a zero quaternion or a singular
result raise.  In a batch such a sample gives NaN and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, SingularError
from .kernel import Kernel

__all__ = ["Argument", "broadcast", "evaluate", "no_check", "refuse_infinite", "single"]


def no_check(sample: np.ndarray) -> str:
    """Nothing is wrong with any sample."""
    return ""


class Argument(NamedTuple):
    """An array argument: the shape of one sample, and what it holds.

    check: says what is wrong with a sample that has the right shape and finite entries, or "".
    """

    name: str
    value: Any
    shape: tuple[int, ...]
    meaning: str
    check: Callable[[np.ndarray], str] = no_check


def evaluate(where: str, kernel: Kernel, arguments: Sequence[Argument], out: Any = None) -> Any:
    """The kernel over the broadcast leading shape of the arguments.

    where: what is being called on what, for messages, such as "inverse_dynamics of 'panda'".
    """
    arrays, lead = _sound(where, arguments)
    result = kernel(*(x.astype(kernel.dtype, copy=False) for x in arrays.values()), out=out)
    refuse_infinite(where, lead, result if kernel.artifact.several else [result])
    return result


def refuse_infinite(where: str, lead: tuple[int, ...], results: Sequence[np.ndarray]) -> None:
    """Raise if results without a leading shape are not finite."""
    if lead == () and not all(np.isfinite(result).all() for result in results):
        raise SingularError(
            f"{where}: the result is not finite: a joint here moves no inertia at all (a massless "
            f"tip, a zero inertia about the axis) or a number overflows; give the bodies beyond it "
            f"mass, or the joint armature"
        )


def broadcast(where: str, arguments: Sequence[Argument]) -> dict[str, np.ndarray]:
    """The arguments, checked and broadcast to their common leading shape."""
    arrays, lead = _sound(where, arguments)
    return {a.name: np.broadcast_to(arrays[a.name], lead + a.shape) for a in arguments}


def _sound(
    where: str, arguments: Sequence[Argument]
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The arguments, checked, and their common leading shape."""
    arrays = {a.name: _checked(where, a) for a in arguments}
    lead = _leading_shape(where, arguments, arrays)
    if lead == ():
        for a in arguments:
            if problem := _wrong(a, arrays[a.name]):
                raise ArgumentError(f"{where}: {problem}")
    return arrays, lead


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


def _checked(where: str, a: Argument) -> np.ndarray:
    try:
        x = np.asarray(a.value)
    except ValueError:
        raise ArgumentError(f"{where}: {a.name} is ragged; expected {_expected(a)}") from None
    if x.dtype.kind not in "fiub":
        raise ArgumentError(
            f"{where}: {a.name} has dtype {x.dtype}; expected real numbers of {_expected(a)} "
            f"(other scalars run through robot.alg)"
        )
    if x.shape[max(x.ndim - len(a.shape), 0) :] != a.shape:
        raise ArgumentError(f"{where}: {a.name} has shape {x.shape}; expected {_expected(a)}")
    return x.astype(float, copy=False)


def _expected(a: Argument) -> str:
    return f"shape (…, {', '.join(map(str, a.shape))}): {a.meaning}"


def _leading_shape(
    where: str, arguments: Sequence[Argument], arrays: Mapping[str, np.ndarray]
) -> tuple[int, ...]:
    leads = {a.name: arrays[a.name].shape[: arrays[a.name].ndim - len(a.shape)] for a in arguments}
    if len(set(leads.values())) == 1:
        return next(iter(leads.values()))
    try:
        return np.broadcast_shapes(*leads.values())
    except ValueError:
        told = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise ArgumentError(f"{where}: leading shapes do not broadcast: {told}") from None


def _wrong(a: Argument, x: np.ndarray) -> str:
    """What is wrong with one sample of an argument, or nothing."""
    finite = np.isfinite(x)
    if not finite.all():
        bad = np.argwhere(~finite)[0]
        entry = ", ".join(map(str, bad))
        return f"{a.name}[{entry}] is {x[tuple(bad)]}; expected finite numbers"
    return a.check(x)

"""Arguments of JAX's functions, checked when they are traced; kernels as such functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..functions.reducing import ReducingRollout
from ..runtime.check import check_whole
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from .loops import Family, TimeLoop
from .operation import Operation
from .primitive import call

__all__ = ["applied", "as_array", "kernel_function"]

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")


def kernel_function(kernel: Any) -> Callable[..., Any]:
    """A kernel or a rollout as a function of JAX arrays."""
    if isinstance(kernel, Rollout):
        return _rollout_function(kernel)
    if isinstance(kernel, ReducingRollout):
        return _reducing_function(kernel)
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"hinge.jax.function takes what robot.compile, hinge.compile or rollout made, got "
            f"{type(kernel).__name__}"
        )
    operation, names = Operation(kernel), kernel.names

    def fn(*arrays: Any, **named: Any) -> Any:
        given = kernel._in_order(arrays, named) if named else arrays
        results = applied(kernel.name, operation, names, given)
        return tuple(results) if operation.signature.several else results[0]

    return _called(fn, kernel.name)


def _rollout_function(rollout: Rollout) -> Callable[..., Any]:
    """A rollout: what it records."""
    family, names = Family(rollout), tuple(rollout.shapes)

    def fn(*arrays: Any, steps: int | None = None, every: int | None = 1) -> Any:
        _count(rollout.name, names, arrays)
        timed = range(rollout.states, rollout.states + rollout.inputs)
        given = {i: jnp.asarray(arrays[i]) for i in timed}
        for i, x in given.items():
            _lead(rollout.name, names[i], x, rollout.shapes[names[i]], time=1)
        many = rollout._steps([given.get(i, x) for i, x in enumerate(arrays)], steps)
        every = many if every is None else check_whole(rollout.name, "every", every)
        loop = family.loop(many, every)
        results = applied(rollout.name, loop, names, arrays)[: len(loop.scan.recorded)]
        return tuple(results) if loop.signature.several else results[0]

    return _called(fn, rollout.name)


def _reducing_function(rollout: ReducingRollout) -> Callable[..., Any]:
    """A rollout that reduces: the states at the end, and what it keeps."""
    inner = _rollout_function(rollout.rollout)

    def fn(*arrays: Any, steps: int | None = None) -> Any:
        return rollout.run(inner, rollout.starts, arrays, steps)

    return _called(fn, rollout.name)


def _called(fn: Any, name: str) -> Callable[..., Any]:
    fn.__name__, fn.__doc__ = name, f"{name}, as a function of JAX arrays."
    return fn


def _count(where: str, names: Sequence[str], arrays: Sequence[Any]) -> None:
    if len(arrays) != len(names):
        raise ArgumentError(f"{where}: got {len(arrays)} arguments; it takes {', '.join(names)}")


def applied(
    where: str, operation: Operation | TimeLoop, names: Sequence[str], arrays: Sequence[Any]
) -> list[Any]:
    """The results for arrays that are not checked yet."""
    _count(where, names, arrays)
    given = [as_array(where, n, x, operation.dtype) for n, x in zip(names, arrays, strict=True)]
    times = operation.times[0] if operation.times else (0,) * len(given)
    rows = list(zip(names, given, operation.inputs, times, strict=True))
    leads = [_lead(where, *row) for row in rows]
    try:
        lead = jnp.broadcast_shapes(*leads)
    except ValueError:
        told = ", ".join(f"{n} {tuple(x)}" for n, x in zip(names, leads, strict=True))
        raise ArgumentError(f"{where}: the leading shapes do not broadcast: {told}") from None
    whole = []
    for i, (own, (_, x, shape, t)) in enumerate(zip(leads, rows, strict=True)):
        if own or i < operation.states:
            x = x.reshape(x.shape[:t] + (1,) * (len(lead) - len(own)) + x.shape[t:])
            x = jnp.broadcast_to(x, x.shape[:t] + lead + shape)
        whole.append(x)
    return call(operation, *whole)


def _lead(where: str, name: str, x: Any, shape: tuple[int, ...], time: int) -> tuple[int, ...]:
    """The leading shape of an argument, after its time if it has one."""
    many = x.ndim - len(shape)
    if many < time or x.shape[many:] != shape:
        own = ", ".join(map(str, ("steps",) * time + ("…",) + shape))
        raise ArgumentError(f"{where}: {name} has shape {x.shape}; expected ({own})")
    return x.shape[time:many]


def as_array(where: str, name: str, x: Any, dtype: np.dtype) -> Any:
    """An array of JAX with that dtype; numbers and whole numbers become it, others are refused."""
    if dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ArgumentError(
            f"{where} computes in float64, and JAX has it switched off: "
            f"jax.config.update('jax_enable_x64', True) switches it on; or use float32, "
            f"hinge.Robot(mechanism, dtype='float32')"
        )
    array = jnp.asarray(x)
    weak = getattr(array, "weak_type", False) or jnp.issubdtype(array.dtype, jnp.integer)
    if array.dtype != dtype and not (weak and not jnp.issubdtype(array.dtype, jnp.complexfloating)):
        raise ArgumentError(
            f"{where}: {name} is {array.dtype}; it computes in {dtype}: give {name}.astype("
            f"'{dtype}'), or make a robot with hinge.Robot(mechanism, dtype='{array.dtype}')"
        )
    return array.astype(dtype)

"""What JAX is told of its primitive: what it gives, its code, how it batches, how it changes.

Arrays are (…, *shape): an argument has the whole leading shape of the call, or none, then it is the
same for all samples.  Those that go with time have that dimension before all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from . import handler
from .binding import call, primitive
from .operation import Operation, Origin, leading

__all__ = ["call"]

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
ad: Any = import_module("jax.interpreters.ad")
batching: Any = import_module("jax.interpreters.batching")
mlir: Any = import_module("jax.interpreters.mlir")

Shape = tuple[int, ...]
# cards would multiply matrices with three digits
_product = partial(jnp.einsum, precision="highest")


@jax.jit(static_argnames="operation")
def _jitted(*arrays: Any, operation: Any) -> Any:
    return call(operation, *arrays)


@primitive.def_impl
def _evaluated(*arrays: Any, operation: Any) -> Any:
    return _jitted(*arrays, operation=operation)


@primitive.def_abstract_eval
def _shaped(*arrays: Any, operation: Any) -> list[Any]:
    shapes = operation.shapes(leading(operation, [x.shape for x in arrays]))
    vma = getattr(arrays[0], "vma", None)
    more = {"vma": vma} if vma else {}
    return [jax.core.ShapedArray(shape, operation.dtype, **more) for shape in shapes]


# code


def _lowered(platform: str, ctx: Any, *arrays: Any, operation: Any) -> Any:
    """A call of the handler, which is registered now."""
    lead = leading(operation, [x.shape for x in ctx.avals_in])
    if operation.parts is not None and prod(lead) == 1:
        return mlir.lower_fun(operation.parts, multiple_results=True)(ctx, *arrays)
    code, many = operation.code(lead, platform), len(ctx.avals_out)
    handler.register(code, operation.dtype, operation.signature)
    if code.scratch:
        room = jax.core.ShapedArray((code.scratch,), np.uint8)
        ctx = ctx.replace(avals_out=[*ctx.avals_out, room])
    states = {i: many - operation.states + i for i in range(operation.states)}
    call_it = jax.ffi.ffi_lowering(code.name, operand_output_aliases=states or None)
    told = {name: np.int64(value) for name, value in code.attributes.items()}
    return call_it(ctx, *arrays, **told)[:many]


for _platform in ("cpu", "cuda"):
    mlir.register_lowering(primitive, partial(_lowered, _platform), platform=_platform)


# many at once


def _batched(arrays: Sequence[Any], dims: Sequence[Any], *, operation: Any) -> Any:
    """With one more leading dimension, the first, or after time."""
    new = [i for i, dim in enumerate(dims) if dim is not None]
    befores, afters = _times(operation)
    moved = list(arrays)
    for i in new:
        moved[i] = jnp.moveaxis(arrays[i], dims[i], befores[i])
    origin = operation.origin
    if set(new) <= set(operation.linear) and origin is not None and origin.matrices is not None:
        results = _by_matrices(origin, operation, moved, new)
    else:
        size = arrays[new[0]].shape[dims[new[0]]]
        results = call(operation, *_broadcast(operation, moved, new, size))
    return results, list(afters)


batching.primitive_batchers[primitive] = _batched


def _times(operation: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    inputs, outputs = operation.signature.inputs, operation.signature.outputs
    return operation.times or ((0,) * len(inputs), (0,) * len(outputs))


def _broadcast(operation: Any, arrays: Sequence[Any], new: Sequence[int], size: int) -> list[Any]:
    """Arrays with the whole leading shape, or without any; of some it has a new first dimension."""
    befores = _times(operation)[0]
    rows = list(zip(arrays, operation.inputs, befores, strict=True))
    own = [x.shape[t + (i in new) : x.ndim - len(s)] for i, (x, s, t) in enumerate(rows)]
    lead, out = max(own, key=len), []
    for i, (x, shape, t) in enumerate(rows):
        if i in new or own[i] or i < operation.states:
            ones = (1,) * (len(lead) - len(own[i]))
            first, time = (size if i in new else 1,), x.shape[:t]
            x = x.reshape(time + first + ones + own[i] + shape)
            x = jnp.broadcast_to(x, (*time, size, *lead, *shape))
        out.append(x)
    return out


# derivatives


def _changed(point: Any, dots: Any, *, operation: Any) -> Any:
    """Results and their changes along a direction."""
    results = call(operation, *point)
    moving = {i: dot for i, dot in enumerate(dots) if type(dot) is not ad.Zero}
    known = operation.matrices
    if known is not None and known.alone and set(moving) <= set(known.arguments):
        return results, _along(operation, point, moving)
    return results, operation.change(point, moving)


ad.primitive_jvps[primitive] = _changed


def _transposed(bars: Any, *arrays: Any, operation: Any) -> Any:
    """What a linear operation does to its results' cotangents."""
    which = tuple(i for i, x in enumerate(arrays) if ad.is_undefined_primal(x))
    known = [x for i, x in enumerate(arrays) if i not in which]
    made = operation.transpose(which, known, [ad.instantiate_zeros(bar) for bar in bars])
    found = dict(zip(which, made, strict=True))
    befores = _times(operation)[0]
    return [
        _summed(found[i], len(x.aval.shape), befores[i]) if i in which else None
        for i, x in enumerate(arrays)
    ]


def _summed(x: Any, rank: int, time: int) -> Any:
    """What all samples have to say to an argument that they share."""
    many = x.ndim - rank
    return x.sum(axis=tuple(range(time, time + many))) if many else x


ad.primitive_transposes[primitive] = _transposed


def _by_matrices(
    origin: Origin, operation: Operation, arrays: Sequence[Any], new: Sequence[int]
) -> list[Any]:
    """Many directions at one point: matrices, and products with them."""
    base, count = origin.base, len(origin.base.inputs)
    point, size = arrays[:count], arrays[new[0]].shape[0]
    lead, directions = leading(base, [x.shape for x in point]), []
    for i, shape in enumerate(operation.inputs[count:], count):
        x = arrays[i] if i in new else arrays[i][None]
        own = x.shape[1 : x.ndim - len(shape)]
        x = x.reshape(x.shape[:1] + (1,) * (len(lead) - len(own)) + own + shape)
        directions.append(jnp.broadcast_to(x, (size, *lead, *shape)))
    if origin.transposed:
        return _back(base, point, directions, origin.moving)
    return _along(base, point, dict(zip(origin.moving, directions, strict=True)))


def _along(base: Operation, point: Sequence[Any], dots: Mapping[int, Any]) -> list[Any]:
    """Changes of the results by matrices, from those of some arguments."""
    known: Any = base.matrices
    D, out = known.of(*point), [0.0] * len(base.signature.outputs)
    for i, dot in dots.items():
        if i in known.tangents:
            (dot,) = call(known.tangents[i], *_meeting(point[i], dot))
        for k in range(len(out)):
            if (k, i) in D:
                out[k] = out[k] + _product("...oi,...i->...o", D[k, i], dot)
    return out


def _back(
    base: Operation, point: Sequence[Any], bars: Sequence[Any], which: Sequence[int]
) -> list[Any]:
    """Cotangents of some arguments by matrices, from those of the results."""
    known: Any = base.matrices
    D, out = known.of(*point), []
    for i in which:
        terms = [_product("...oi,...o->...i", D[k, i], bar) for k, bar in enumerate(bars)]
        total = sum(terms[1:], terms[0])
        if i in known.tangents:
            (total,) = call(known.tangents[i].pulled((1,)), *_meeting(point[i], total))
        out.append(total)
    return out


def _meeting(x: Any, direction: Any) -> tuple[Any, Any]:
    """A point and its directions: both with all leading dimensions, or the point with none."""
    whole = direction.shape[:-1] + x.shape[-1:]
    return x if x.ndim == 1 else jnp.broadcast_to(x, whole), direction

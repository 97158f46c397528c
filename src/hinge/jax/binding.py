"""The one primitive of JAX that all operations are, and how it is called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

__all__ = ["call", "primitive"]

jax: Any = import_module("jax")
extend: Any = import_module("jax.extend.core")

primitive = extend.Primitive("hinge")
primitive.multiple_results = True


def call(operation: Any, *arrays: Any) -> list[Any]:
    """The results of an operation; arrays have the whole leading shape of the call, or none."""
    return primitive.bind(*_alike(arrays), operation=operation)


def _alike(arrays: Sequence[Any]) -> list[Any]:
    """Inside of shard_map: what is the same everywhere meets what is not, as different as that."""
    axes = [getattr(jax.typeof(x), "vma", frozenset()) for x in arrays]
    every = frozenset().union(*axes)
    return [
        jax.lax.pcast(x, tuple(every - own), to="varying") if own != every else x
        for x, own in zip(arrays, axes, strict=True)
    ]

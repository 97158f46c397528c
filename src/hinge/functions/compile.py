"""A function of one's own as a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..errors import ArgumentError
from ..runtime.backend import Backend
from ..runtime.devices import backend_of, check_device
from ..runtime.forks import MAKING
from ..runtime.kernel import Kernel

__all__ = ["checked_shapes", "compile", "compile_for"]


P = ParamSpec("P")
R = TypeVar("R")


def compile(
    fn: Callable[P, R],
    dtype: Any = np.float64,
    threads: int | None = None,
    device: str = "cpu",
    **shapes: tuple[int, ...],
) -> Kernel[P, R]:
    """A function of arrays, given the shape of each argument, as one fused kernel.

    device: where it runs, "cpu" or an NVIDIA card: "cuda", "cuda:1".

    `norm = hinge.compile(lambda x: np.sqrt(x @ x), x=(3,))`
    """
    backend = backend_of(check_device("compile", device), threads)
    return compile_for(backend, fn, dtype, shapes)


def compile_for(
    backend: Backend, fn: Callable[P, R], dtype: Any, shapes: Mapping[str, tuple[int, ...]]
) -> Kernel[P, R]:
    """The same on any backend."""
    names = list(inspect.signature(fn).parameters)
    title = getattr(fn, "__name__", "kernel")
    sizes = checked_shapes(f"compile {title}", names, shapes)
    with MAKING:
        # imported here as well: a fork has to wait for that too
        from ..graph.program import trace

        program = trace(fn, list(sizes.values()), title)
    return Kernel(program, title, names, dtype, backend)


def checked_shapes(
    where: str, names: list[str], shapes: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """The shape of each argument of a function, in their order."""
    if sorted(names) != sorted(shapes):
        raise ArgumentError(
            f"{where}: it takes {', '.join(names) or 'nothing'}; give the shape of each, "
            f"got {', '.join(shapes) or 'none'}"
        )
    for n, shape in shapes.items():
        whole = isinstance(shape, tuple) and all(isinstance(k, int) and k >= 0 for k in shape)
        if not whole:
            raise ArgumentError(
                f"{where}: the shape of {n} is {shape!r}; expected a tuple of whole numbers, () "
                f"for a scalar"
            )
    return {n: shapes[n] for n in names}

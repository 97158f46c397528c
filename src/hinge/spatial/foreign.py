"""Functions of rotations and poses on arrays of PyTorch, JAX and CasADi, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from ..runtime.devices import backend_of
from ..runtime.kernel import Kernel

__all__ = ["answered", "family"]

Shape = tuple[int, ...]


class Compiled(Protocol):
    """What is needed of a function."""

    name: str

    def form(self, shapes: Sequence[Shape]) -> int:
        """Which of the forms the shapes say."""
        ...

    def shapes(self, form: int) -> list[Shape]:
        """Those of the arguments."""
        ...

    def kernel(self, form: int, dtype: str) -> Kernel:
        """What computes it."""
        ...

    def plain(self, arrays: Sequence[np.ndarray]) -> Any:
        """The generic code."""
        ...


def family(values: Sequence[Any]) -> str | None:
    """The package whose arrays are among the values, None if all are numbers and NumPy's."""
    for x in values:
        for base in type(x).__mro__:
            package = base.__module__.partition(".")[0]
            if package in ("torch", "jax", "jaxlib", "casadi"):
                return "jax" if package == "jaxlib" else package
    return None


def answered(package: str, function: Compiled, values: Sequence[Any]) -> Any:
    """The result as an array of that package."""
    return {"torch": _torch, "jax": _jax, "casadi": _casadi}[package](function, values)


def _torch(function: Compiled, values: Sequence[Any]) -> Any:
    torch: Any = import_module("torch")
    first = next(x for x in values if isinstance(x, torch.Tensor))
    given = [torch.as_tensor(x, dtype=first.dtype, device=first.device) for x in values]
    dtype = "float32" if first.dtype is torch.float32 else "float64"
    kernel = function.kernel(function.form([tuple(x.shape) for x in given]), dtype)
    if first.device.type == "cuda":
        kernel = kernel.on(backend_of(str(first.device), None))
    return import_module("..torch", __package__).function(kernel)(*given)


def _jax(function: Compiled, values: Sequence[Any]) -> Any:
    jnp: Any = import_module("jax.numpy")
    given = [jnp.asarray(x) for x in values]
    dtype = "float64" if any(x.dtype == np.float64 for x in given) else "float32"
    kernel = function.kernel(function.form([x.shape for x in given]), dtype)
    return import_module("..jax", __package__).function(kernel)(*given)


def _casadi(function: Compiled, values: Sequence[Any]) -> Any:
    """SX by the generic code, whose operations are its own; MX and DM by the kernel."""
    casadi: Any = import_module("casadi")
    form = function.form([_shape(x) for x in values])
    if not any(isinstance(x, casadi.SX) for x in values):
        kernel = function.kernel(form, "float64")
        return import_module("..casadi", __package__).function(kernel)(*values)
    pairs = zip(values, function.shapes(form), strict=True)
    arrays = [_scalars(casadi.SX(x), shape) for x, shape in pairs]
    result = function.plain(arrays)
    if isinstance(result, tuple):
        return tuple(_matrix(casadi, x) for x in result)
    return _matrix(casadi, result)


def _shape(x: Any) -> Shape:
    """As NumPy has it: a column is a vector."""
    shape = tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
    return shape[:1] if len(shape) == 2 and shape[1] == 1 else shape


def _scalars(x: Any, shape: Shape) -> np.ndarray:
    entries = np.empty(int(np.prod(shape)), dtype=object)
    rows = shape[0] if shape else 1
    columns = shape[1] if len(shape) == 2 else 1
    entries[:] = [x[i, j] for i in range(rows) for j in range(columns)]
    return entries.reshape(shape)


def _matrix(casadi: Any, x: Any) -> Any:
    entries = np.atleast_1d(np.asarray(x, dtype=object))
    entries = entries[:, None] if entries.ndim == 1 else entries
    made = casadi.SX(*entries.shape)
    for i, row in enumerate(entries):
        for j, entry in enumerate(row):
            made[i, j] = entry
    return made

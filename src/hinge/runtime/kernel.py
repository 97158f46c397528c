"""Kernels: a program compiled for this machine, called on arrays with any leading shape."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..emit.llvm import module_text
from ..errors import ArgumentError
from ..trace.program import Operations, Program
from .engine import Library, Target, compile_text, fast_calls_work, host
from .threads import in_parallel

__all__ = ["Kernel"]

_RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_SCALARS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
# a thread is worth waking for about this many operations
_WORK_PER_THREAD = 500_000


class Kernel:
    """A compiled program.

    `kernel(*arrays, out=None)`: arguments of shape (…, *shape), leading shapes broadcast, results
    likewise; a NaN or a singular sample spoils only itself.  `kernel.call` is the same as a plain
    function of positional arguments, and the quickest for one sample.
    """

    def __init__(
        self,
        program: Program,
        names: Sequence[str] | None = None,
        dtype: Any = np.float64,
        threads: int | None = None,
        target: Target | None = None,
        otherwise: Callable[..., Any] | None = None,
    ) -> None:
        """names: of the arguments, for messages; threads: at most so many, None for all cores.

        otherwise: called with the arguments of a single call that does not fit, or whose result is
        not finite; by default the kernel works them out, and lets NaN pass.
        """
        self.program = program
        self.names = tuple(names or (f"argument {i + 1}" for i in range(len(program.inputs))))
        self.dtype = np.dtype(dtype)
        if self.dtype not in _SCALARS:
            raise ArgumentError(f"dtype is {self.dtype}; kernels come in float64 and float32")
        self.threads = threads
        self.target = host() if target is None else target
        self._otherwise = self._slow if otherwise is None else otherwise

    @property
    def ops(self) -> Operations:
        """What one sample costs."""
        return self.program.ops

    @cached_property
    def _library(self) -> Library:
        scalar = _SCALARS[self.dtype]
        text = module_text(self.program, self.target.lanes(scalar), scalar)
        return Library(compile_text(text, self.target), self.target)

    @cached_property
    def _run(self) -> Any:
        return _RUN(self._library.address("run"))

    @cached_property
    def _scratch_bytes(self) -> int:
        return ctypes.CFUNCTYPE(ctypes.c_int64)(self._library.address("workspace"))()

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The single call: arrays of exactly the expected kind take the short way."""
        if not fast_calls_work() or self.program.form not in (None, tuple):
            return self._otherwise
        return _method(self.program.name, self._library.address("fast"), self._otherwise)

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        if out is None and len(arguments) == len(self.program.inputs):
            return self.call(*arguments)
        return self._slow(*arguments, out=out)

    def _slow(self, *arguments: Any, out: Any = None) -> Any:
        """Any arguments that make sense: other dtypes, strides, leading shapes."""
        arrays, lead = self._checked(arguments)
        results = self._results(lead, out)
        self.run_batch(arrays, results, lead)
        if self.program.form is None:
            return results[0]
        return self.program.form(*results) if self.program.form is not tuple else tuple(results)

    def _checked(self, arguments: Sequence[Any]) -> tuple[list[np.ndarray], tuple[int, ...]]:
        name, shapes = self.program.name, self.program.inputs
        if len(arguments) != len(shapes):
            raise ArgumentError(
                f"{name} takes {len(shapes)} arrays ({', '.join(self.names)}), got {len(arguments)}"
            )
        arrays, leads = [], []
        for argument, shape, label in zip(arguments, shapes, self.names, strict=True):
            x = np.asarray(argument)
            if x.dtype.kind not in "fiub":
                raise ArgumentError(f"{name}: {label} has dtype {x.dtype}; expected real numbers")
            at = x.ndim - len(shape)
            if at < 0 or x.shape[at:] != shape:
                wanted = ", ".join(["…", *map(str, shape)])
                raise ArgumentError(f"{name}: {label} has shape {x.shape}; expected ({wanted})")
            arrays.append(x.astype(self.dtype, copy=False))
            leads.append(x.shape[:at])
        try:
            return arrays, np.broadcast_shapes(*leads)
        except ValueError:
            told = ", ".join(f"{n} {l}" for n, l in zip(self.names, leads, strict=True))
            raise ArgumentError(f"{name}: leading shapes do not broadcast: {told}") from None

    def _results(self, lead: tuple[int, ...], out: Any) -> list[np.ndarray]:
        shapes = [lead + shape for shape in self.program.outputs]
        if out is None:
            return [np.empty(shape, self.dtype) for shape in shapes]
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        for x, shape in zip(given, shapes, strict=False):
            good = isinstance(x, np.ndarray) and x.dtype == self.dtype and x.shape == shape
            if not good or not x.flags.c_contiguous or not x.flags.writeable:
                raise ArgumentError(
                    f"{self.program.name}: out is not a writeable C-contiguous {self.dtype} array "
                    f"of shape {shape}"
                )
        if len(given) != len(shapes):
            raise ArgumentError(
                f"{self.program.name}: out has {len(given)} arrays; expected {len(shapes)}"
            )
        return given

    def run_batch(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: tuple[int, ...]
    ) -> None:
        """Fill the results, which are contiguous, from arguments that broadcast to `lead`."""
        size = int(np.prod(lead, dtype=int))
        rows = [_rows(x, lead, shape) for x, shape in zip(arrays, self.program.inputs, strict=True)]
        item = self.dtype.itemsize
        strides = [stride for _, stride in rows]
        strides += [n * item for n in self.program.output_sizes]
        keep = [x for x, _ in rows]
        addresses = [x.ctypes.data for x in (*keep, *results)]
        a, s = np.array(addresses, dtype=np.uintp), np.array(strides, dtype=np.int64)
        lanes = self.target.lanes(_SCALARS[self.dtype])

        def work(begin: int, end: int) -> None:
            scratch = np.empty(self._scratch_bytes + 64, dtype=np.uint8)
            aligned = (scratch.ctypes.data + 63) // 64 * 64
            self._run(a.ctypes.data, s.ctypes.data, begin, end, aligned)

        cost = max(1, sum(self.ops)) + sum(self.program.output_sizes)
        in_parallel(work, size, lanes, self.threads, most=1 + size * cost // _WORK_PER_THREAD)


def _rows(x: np.ndarray, lead: tuple[int, ...], shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """An array whose samples are contiguous rows, and the bytes from one to the next."""
    item = x.dtype.itemsize
    size = int(np.prod(shape, dtype=int))
    if x.shape == shape and x.flags.c_contiguous:
        return x, 0
    if x.shape[: x.ndim - len(shape)] != lead:
        x = np.broadcast_to(x, lead + shape)
    if len(lead) == 1 and _packed(x.strides[1:], shape, item) and x.strides[0] >= 0:
        return x, x.strides[0]
    return np.ascontiguousarray(x), size * item


def _packed(strides: tuple[int, ...], shape: tuple[int, ...], item: int) -> bool:
    """Whether the entries of one sample lie next to each other."""
    for stride, n in zip(reversed(strides), reversed(shape), strict=True):
        if n > 1 and stride != item:
            return False
        item *= n
    return True


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def _method(name: str, address: int, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A built-in function on the code at an address; `otherwise` is what it falls back on."""
    definition = _MethodDef(name.encode(), address, 0x0080 | 0x0002, None)
    _KEPT.append(definition)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.byref(definition), otherwise, None)


# a function object points at its definition for as long as it lives
_KEPT: list[_MethodDef] = []

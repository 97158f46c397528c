"""Pieces as functions of a shared library, as CasADi wants external functions: machine code.

CasADi takes a function f from a library: `f` itself, `f_n_in`, `f_sparsity_in` and the like that
describe it, and its derivatives by their names, `jac_f` and `adj1_f`.  The library (see
`runtime/shared.py`) has jumps alone.  What computes leads to machine code; what describes leads to
Python, so that a derivative is traced when CasADi asks for its sparsity, and compiled when it is to
be called.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import traceback
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np

from ..emit.llvm.external import external_text
from ..runtime.engine import Library, helper_library
from ..runtime.shared import Goal, shared_library
from .package import casadi_package
from .pieces import Piece

__all__ = ["external"]

_WORD, _ADDRESS = ctypes.c_longlong, ctypes.c_void_p
_COUNT = ctypes.CFUNCTYPE(_WORD)
_LOOK_UP = ctypes.CFUNCTYPE(_ADDRESS, _WORD)
_WORK = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.POINTER(_WORD)] * 4)
_LINE = 64

# a matrix without rows and columns, and a name without letters
_NOTHING = np.zeros(3, dtype=np.int64)
# what CasADi may call for as long as the process lives
_KEPT: list[Any] = []


def external(piece: Piece, orders: int) -> Any | None:
    """The function of CasADi; None where no library can be made or loaded.

    orders: how many times it can be differentiated.
    """
    casadi = casadi_package()

    served = _family(_Served(piece.name, lambda: piece), orders)
    goals = {name: goal for one in served for name, goal in one.goals().items()}
    content = shared_library(goals)
    if content is None:
        return None
    _KEPT.append(served)
    # once it is loaded, the file is not needed any more
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{piece.name}.so")
        with open(path, "wb") as file:
            file.write(content)
        try:
            return casadi.external(piece.name, path)
        except RuntimeError:
            # a folder from which no code may be loaded
            return None


def _family(first: _Served, orders: int) -> list[_Served]:
    """The function and its derivatives, those of derivatives too."""
    if not orders:
        return [first]
    derived = (
        _Served(f"jac_{first.name}", lambda: first.piece.jacobian),
        _Served(f"adj1_{first.name}", lambda: first.piece.reverse),
    )
    return [first, *(one for each in derived for one in _family(each, orders - 1))]


@final
class _Served:
    """A piece, made when CasADi asks for it, and what describes it."""

    def __init__(self, name: str, make: Callable[[], Piece]) -> None:
        self.name, self._make = name, make
        # where the table of the call is, once it is made
        self._own = np.zeros(1, dtype=np.int64)
        nothing = _NOTHING.ctypes.data
        self._functions = {
            "n_in": _COUNT(_safe(lambda: len(self.piece.arguments), 0)),
            "n_out": _COUNT(_safe(lambda: len(self.piece.results), 0)),
            "name_in": _LOOK_UP(_safe(lambda i: self._names[0][i], nothing)),
            "name_out": _LOOK_UP(_safe(lambda i: self._names[1][i], nothing)),
            "sparsity_in": _LOOK_UP(_safe(lambda i: self._sparsities[0][i].ctypes.data, nothing)),
            "sparsity_out": _LOOK_UP(_safe(lambda i: self._sparsities[1][i].ctypes.data, nothing)),
            "work": _WORK(_safe(self._work, 1)),
        }

    def goals(self) -> dict[str, Goal]:
        """Its functions of the library."""
        described = {
            f"{self.name}_{what}": Goal(_address(function))
            for what, function in self._functions.items()
        }
        return {self.name: Goal(_call().address("call"), self._own.ctypes.data)} | described

    @cached_property
    def piece(self) -> Piece:
        """Traced now."""
        return self._make()

    @cached_property
    def _names(self) -> list[list[int]]:
        sides = self.piece.arguments, self.piece.results
        self._words = [[ctypes.create_string_buffer(x.name.encode()) for x in s] for s in sides]
        return [[ctypes.addressof(word) for word in words] for words in self._words]

    @cached_property
    def _sparsities(self) -> list[list[np.ndarray]]:
        return [[x.sparsity for x in side] for side in (self.piece.arguments, self.piece.results)]

    def _work(self, *sizes: Any) -> int:
        """How much room CasADi is to give: pointers, results, whole numbers, numbers; compiles."""
        piece, made = self.piece, self._table
        pointers = len(piece.arguments) + len(piece.used) + len(piece.made)
        for size, n in zip(sizes, (pointers, len(piece.results), 0, made.room), strict=True):
            size[0] = n
        self._own[0] = made.words.ctypes.data
        return 0

    @cached_property
    def _table(self) -> _Table:
        return _Table(self.piece)


@final
class _Table:
    """The words that `emit/llvm/external.py` reads, and what they point to.

    room: how many numbers the scratch has.
    """

    def __init__(self, piece: Piece) -> None:
        takes = [piece.arguments[j].entries for j in piece.used]
        gives = [piece.results[i].entries for i in piece.made]
        # a kernel without results is none
        run, scratch = self._loaded(piece) if gives else (0, 0)
        spare = scratch + 8 * piece.samples * np.cumsum([0, *gives])
        self.room = (int(spare[-1]) + _LINE) // 8
        self.strides = np.array([*(8 * n for n in takes + gives), piece.samples], dtype=np.int64)
        self.zeros = np.zeros(piece.samples * max(takes, default=0))
        self.words = np.array(
            [
                *(run, self.strides.ctypes.data, piece.samples, len(takes), len(gives)),
                *(self.zeros.ctypes.data, len(piece.arguments)),
                *(*piece.used, *piece.made, *spare[:-1]),
            ],
            dtype=np.int64,
        )

    def _loaded(self, piece: Piece) -> tuple[int, int]:
        """Where the code is, that for one sample if there is such, and the bytes of its scratch."""
        backend: Any = piece.kernel.backend
        self.library = Library(piece.kernel.artifact.code, backend.target)
        find = self.library.address
        single = find("single") if piece.samples == 1 else 0
        return single or find("run"), _COUNT(find("workspace"))()


def _safe(answer: Callable[..., int], otherwise: int) -> Callable[..., int]:
    """The answer to CasADi; what goes wrong is shown, and the answer is one that CasADi refuses."""

    def answered(*given: Any) -> int:
        try:
            return answer(*given)
        except BaseException:
            traceback.print_exc()
            return otherwise

    return answered


def _address(function: Any) -> int:
    return ctypes.cast(function, _ADDRESS).value or 0


@lru_cache(maxsize=1)
def _call() -> Library:
    """The code that all of them share."""
    return helper_library(external_text())

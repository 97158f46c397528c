"""Pieces as callbacks of CasADi: the same functions by way of Python, where no library can be."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .package import casadi_package
from .pieces import Piece, Slot

__all__ = ["callback"]

# CasADi has no reference to what it calls back
_KEPT: list[Any] = []


def callback(piece: Piece, orders: int) -> Any:
    """The function of CasADi; orders: how many times it can be differentiated."""
    called = _kind()(piece, orders)
    _KEPT.append(called)
    return called


@lru_cache(maxsize=1)
def _kind() -> type:
    """The class, which is one of CasADi's."""
    return type("Called", (_Answers, casadi_package().Callback), {})


class _Answers:
    """What CasADi asks a callback; numbers come and go where they lie."""

    def __init__(self, piece: Piece, orders: int) -> None:
        casadi_package().Callback.__init__(self)
        self.piece, self.orders = piece, orders
        self.construct(piece.name, {})  # pyright: ignore[reportAttributeAccessIssue]

    def get_n_in(self) -> int:
        """How many arguments."""
        return len(self.piece.arguments)

    def get_n_out(self) -> int:
        """How many results."""
        return len(self.piece.results)

    def get_name_in(self, i: int) -> str:
        """Of an argument."""
        return self.piece.arguments[i].name

    def get_name_out(self, i: int) -> str:
        """Of a result."""
        return self.piece.results[i].name

    def get_sparsity_in(self, i: int) -> Any:
        """Of an argument."""
        return _sparsity(self.piece.arguments[i])

    def get_sparsity_out(self, i: int) -> Any:
        """Of a result."""
        return _sparsity(self.piece.results[i])

    def has_eval_buffer(self) -> bool:
        """It is called with memory, not with matrices."""
        return True

    def eval_buffer(self, arg: Any, res: Any) -> int:
        """The kernel; 0 says that it worked."""
        piece = self.piece
        if piece.made:
            lead = () if piece.samples == 1 else (piece.samples,)
            takes = zip(piece.used, piece.kernel.artifact.inputs, strict=True)
            found = piece.kernel.call(*(_array(arg[j], lead + shape) for j, shape in takes))
            parts = found if isinstance(found, tuple) else (found,)
            for i, part in zip(piece.made, parts, strict=True):
                if res[i] is not None:
                    np.frombuffer(res[i])[:] = part.ravel()
        return 0

    def has_jacobian(self) -> bool:
        """Whether there are derivatives."""
        return self.orders > 0

    def get_jacobian(self, name: str, takes: Any, gives: Any, options: Any) -> Any:
        """A callback too."""
        return callback(self.piece.jacobian, self.orders - 1)

    def has_jac_sparsity(self, i: int, j: int) -> bool:
        """Whether zeros of derivatives are known."""
        return self.orders > 0

    def get_jac_sparsity(self, i: int, j: int, symmetric: bool) -> Any:
        """Of result i by argument j."""
        return _sparsity(self.piece.jacobian.results[i * len(self.piece.arguments) + j])

    def has_reverse(self, n: int) -> bool:
        """Whether there are products of n weights at a time with derivatives."""
        return self.orders > 0 and n == 1

    def get_reverse(self, n: int, name: str, takes: Any, gives: Any, options: Any) -> Any:
        """A callback too."""
        return callback(self.piece.reverse, self.orders - 1)


def _sparsity(slot: Slot) -> Any:
    words, (rows, columns) = slot.sparsity.tolist(), slot.shape
    kind = casadi_package().Sparsity
    return kind(rows, columns, words[2 : 3 + columns], words[3 + columns :])


def _array(memory: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape) if memory is None else np.frombuffer(memory).reshape(shape)

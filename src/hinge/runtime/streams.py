"""Streams of cards: which one the calls of a thread go to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import ArgumentError

__all__ = ["chosen_stream", "handle_of", "using"]

_CHOSEN = threading.local()


@contextmanager
def using(stream: Any) -> Iterator[None]:
    """Calls of this thread go to a stream: a handle, or a stream of PyTorch, CuPy, Numba, Warp."""
    before = chosen_stream()
    _CHOSEN.stream = before if stream is None else handle_of(stream)
    try:
        yield
    finally:
        _CHOSEN.stream = before


def chosen_stream() -> int | None:
    """The handle of the stream that calls of this thread go to, None for that of their arrays."""
    return getattr(_CHOSEN, "stream", None)


def handle_of(stream: Any) -> int:
    """The handle of a stream of any package."""
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr", "handle"):
        stream = getattr(stream, name, stream)
    stream = getattr(stream, "value", stream) or 0
    if not isinstance(stream, (int, np.integer)) or isinstance(stream, bool):
        raise ArgumentError(
            f"stream is {stream!r}; expected a handle (a whole number), or a stream of PyTorch, "
            f"CuPy, Numba or Warp"
        )
    return int(stream)

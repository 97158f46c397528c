"""Kernels on a card for Python to call: the table that `emit/llvm/card.py` works from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .array_kinds import exchange
from .artifact import Artifact
from .card_systems import SystemsLauncher
from .device_arrays import packed_strides
from .engine import Library, fast_calls_work, helper_library
from .entry import Entry
from .forks import MAKING
from .launcher import Launcher

__all__ = ["card_entry", "handing_entry"]

# a float of DLPack
_FLOAT = 2


def card_entry(
    launcher: Launcher | SystemsLauncher,
    artifact: Artifact,
    dtype: np.dtype,
    otherwise: Callable[..., Any],
    form: type,
) -> Entry | None:
    """Code that launches a kernel on tensors, and hands all other arguments on."""
    if not fast_calls_work():
        return None
    library, table = _code(), _table(launcher, artifact, dtype)
    return library.entry("card", (otherwise, form, table))


def handing_entry(otherwise: Callable[..., Any]) -> Entry | None:
    """Code that hands all arguments on, to what puts several launches together."""
    if not fast_calls_work():
        return None
    from ..emit.llvm.card import FIRST

    # no API of tensors to look into them
    return _code().entry("card", (otherwise, tuple, np.zeros(FIRST, dtype=np.int64)))


@lru_cache(maxsize=1)
def _code() -> Library:
    """The code that all kernels share."""
    with MAKING:
        from ..emit.llvm.card import card_text

        return helper_library(card_text())


def _table(launcher: Launcher | SystemsLauncher, artifact: Artifact, dtype: np.dtype) -> np.ndarray:
    """What the code knows of a kernel; without an API of its tensors, it hands all on."""
    from ..emit.llvm.card import ARRAY, ARRAYS, CUDA, DIMENSIONS, FIRST

    shapes, launch = (*artifact.inputs, *artifact.outputs), launcher.launch
    table = np.zeros(FIRST + ARRAY * len(shapes), dtype=np.int64)
    fits = len(shapes) <= ARRAYS and max(map(len, shapes), default=0) <= DIMENSIONS
    api, kind = exchange() if fits and artifact.inputs and not launch.scratch else (0, 0)
    counts = len(artifact.inputs), len(artifact.outputs)
    place = CUDA | launcher.card.number << 32
    table[:FIRST] = (
        *(api, kind, *counts, place, dtype.itemsize, artifact.several),
        *(launcher.address, launcher.function.handle, launch.threads),
        *(launch.shared, launch.samples, launcher.most),
    )
    for i, shape in enumerate(shapes if fits else ()):
        at = FIRST + ARRAY * i
        table[at : at + ARRAY] = _array(shape, dtype, DIMENSIONS)
    return table


def _array(shape: Sequence[int], dtype: np.dtype, room: int) -> list[int]:
    """What the table says of an array."""
    numbers = _FLOAT | 8 * dtype.itemsize << 8 | 1 << 16
    more = [0] * (room - len(shape))
    head = [prod(shape), (1 + len(shape)) | numbers << 32, len(shape)]
    return [*head, *shape, *more, *packed_strides(shape, 1), *more]

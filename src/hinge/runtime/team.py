"""The helpers of this process: started when a batch is first worth it, asleep between batches."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from typing import Any

import numpy as np

from .engine import fast_calls_work, helper_library
from .forks import MAKING
from .threads import thread_count

__all__ = ["HERE", "gather", "share"]

# the address of the team, for compiled code; 0 until it is started, and again in a fork
HERE = np.zeros(1, dtype=np.int64)
_STARTED: dict[str, object] = {}

_WORD, _POINTER = ctypes.c_int64, ctypes.c_void_p
_SHARE = ctypes.CFUNCTYPE(None, *[_POINTER] * 4, _WORD, _POINTER, *[_WORD] * 3)


def share(batch: tuple[Any, ...], scratch: int, room: int, helpers: int, grain: int) -> bool:
    """A batch (address of run, arrays, strides, samples) with at most so many helpers.

    scratch: room for each of them and for the caller.  Parts begin at multiples of the grain.
    False, and nothing done, where there is no team.
    """
    gather()
    team = int(HERE[0])
    if not team:
        return False
    _SHARE(_WORD.from_address(team).value)(team, *batch, scratch, room, helpers, grain)
    return True


def gather() -> None:
    """Start the team, once: one helper for every core but one."""
    token = object()
    if HERE[0] or not (fast_calls_work() and hasattr(os, "sched_yield")):
        return
    if _STARTED.setdefault("by", token) is not token:
        return
    _mind_forks()
    HERE[0] = _team(thread_count(None) - 1)


@lru_cache(maxsize=1)
def _mind_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """A fork has none of the threads."""
    HERE[0] = 0
    _STARTED.clear()


def _team(helpers: int) -> int:
    """A block of memory with its helpers at work; it is never freed, nor is their code."""
    with MAKING:
        from ..emit.llvm.team import HEADER, HELPER, LINE, LOCK, team_text

    library = helper_library(team_text())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    block = _python("PyMem_RawCalloc", _POINTER, _WORD, _WORD)(helpers + 1 + HELPER // LINE, LINE)
    team = -(-block // LINE) * LINE
    ways = [_address("PyThread_acquire_lock"), _address("PyThread_release_lock")]
    ways.append(_address("sched_yield"))
    _put(team + HEADER, library.address("share"), helpers, *ways)
    _put(team + LOCK, _taken_lock())
    begin = _python("PyThread_start_new_thread", ctypes.c_ulong, _POINTER, _POINTER)
    for i in range(helpers):
        own = team + HELPER + i * LINE
        _put(own, 0, _taken_lock(), team)
        # one that does not start is one that never comes in time
        begin(library.address("help"), own)
    return team


def _taken_lock() -> int:
    lock = _python("PyThread_allocate_lock", _POINTER)()
    _python("PyThread_acquire_lock", ctypes.c_int, _POINTER, ctypes.c_int)(lock, 1)
    return lock


def _put(address: int, *words: int) -> None:
    (_WORD * len(words)).from_address(address)[:] = words


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), _POINTER).value or 0


def _python(name: str, *types: Any) -> Any:
    """A function of the interpreter: its result, its arguments."""
    return ctypes.PYFUNCTYPE(*types)(_address(name))

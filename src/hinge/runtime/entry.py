"""Machine code that Python calls as it calls its own functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["Entry"]


class Entry(NamedTuple):
    """Where the code is, what it knows as `self`, and what keeps it in memory."""

    address: int
    own: tuple[Any, ...]
    library: Any

    def function(self, name: str, doc: str = "") -> Callable[..., Any]:
        """A built-in function that goes there."""
        definition = _definition(name, self.address, doc)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object]
        # a function keeps its module alive: here the library, that is the code
        return new(ctypes.byref(definition), self.own, self.library)


# of methodobject.h: arguments come as an array, the names of keywords behind them
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@cache
def _definition(title: str, address: int, doc: str) -> _MethodDef:
    """Kept for ever: a function object reads its definition even when it is collected."""
    words = doc.encode() if doc else None
    return _MethodDef(title.encode(), address, _FASTCALL | _KEYWORDS, words)

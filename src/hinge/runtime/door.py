"""Doors: one callable for every spelling of a method, straight to machine code where it can be.

What a door is told once (`learn`) it does by itself from then on; `emit/llvm/door.py` says how.
Arguments that are not arrays are told apart by identity, which for the immutable ones that are
learned means the same value: "tool" written in a program is one object, call after call.  Tuples
and lists are told apart by what is in them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from .engine import Library, helper_library
from .entry import Entry
from .forks import MAKING, fork_safe_lock

__all__ = ["Door", "Parameter", "owner_of"]

# what an array parameter is in a question, where it is given
_GIVEN = 0
# held by who writes a table
_LEARNING = fork_safe_lock()


class Parameter(NamedTuple):
    """A parameter of a method; required: it has no default."""

    name: str
    is_array: bool
    required: bool
    default: Any


class _Self(tuple):
    """What the code of a door knows; it pickles as the object that the method belongs to."""

    def __reduce__(self) -> Any:
        return _same, (self[2],)

    def __repr__(self) -> str:
        return repr(self[2])


def _same(x: Any) -> Any:
    return x


def owner_of(method: Any) -> Any:
    """What a bound method or the callable of a door belongs to, None if it is neither."""
    own = getattr(method, "__self__", None)
    return own[2] if isinstance(own, _Self) else own


@final
class Door:
    """The callable of one method of one object, and what it knows.

    otherwise: takes any arguments that the door does not know, or knows not to be right.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        doc: str,
        parameters: Sequence[Parameter],
        otherwise: Callable[..., Any],
    ) -> None:
        with MAKING:
            from ..emit.llvm.door import ANSWER, MOST_ANSWERS, NAMES, ROOM

        self.parameters = list(parameters)
        self._first, self._answer, self._room = NAMES + 2 * len(parameters), ANSWER, ROOM
        self._most = MOST_ANSWERS if len(parameters) <= ROOM else 0
        self._table = np.zeros(self._first + ANSWER * MOST_ANSWERS, dtype=np.int64)
        # what the table has addresses of
        self._names = [sys.intern(p.name) for p in parameters]
        self._answers: list[Any] = []
        self._turn = 0
        out = self._names.index("out") if "out" in self._names else -1
        self._table[:NAMES] = (len(parameters), out, 0, -1, self._first)
        self._table[NAMES : NAMES + len(parameters)] = [id(n) for n in self._names]
        defaults = [0 if p.required else id(p.default) for p in parameters]
        self._table[NAMES + len(parameters) : self._first] = defaults
        own = _Self((otherwise, self._table, owner, self))
        self.call = _code().entry("door", own).function(name, _document(name, doc, parameters))

    def learn(self, values: Sequence[Any], entry: Entry) -> None:
        """From now on, calls with arguments like these go straight to the entry.

        values: those of the parameters, in their order; arrays that are given are any arrays.
        entry: whoever asks for it keeps it, since a thread may be in it when it is forgotten here.
        """
        pairs = list(zip(self.parameters, values, strict=True))
        # arrays are not kept: neither they nor out are part of the question
        kept = [None if p.is_array else tuple(x) if type(x) is list else x for p, x in pairs]
        question = [
            _GIVEN if p.is_array and p.name != "out" and x is not None else _question(k)
            for (p, x), k in zip(pairs, kept, strict=True)
        ]
        if not self._most or not all(map(_is_lasting, kept)):
            return
        with _LEARNING:
            known = [a[0] for a in self._answers]
            if question in known:
                at = known.index(question)
            elif len(known) < self._most:
                at = len(known)
            else:
                at, self._turn = self._turn, (self._turn + 1) % self._most
            try:
                # the table first: until then another thread may be sent to what it says
                # items of tuples and lists, after their number
                lists = [q for q in question if isinstance(q, tuple)]
                items = {q: np.array([len(q), *q], dtype=np.int64) for q in lists}
                wanted = [items[q].ctypes.data + 1 if isinstance(q, tuple) else q for q in question]
                self._write(at, wanted, entry, max(len(known), at + 1))
                self._answers[at : at + 1] = [(question, kept, entry, items)]
            except BaseException:
                # an interrupt: what the table has addresses of may not be kept
                self._table[2:4] = (0, -1)
                self._answers.clear()
                raise

    def _write(self, at: int, question: list[int], entry: Entry, count: int) -> None:
        """The answer in the table; of calls with what is required and no more, it is direct."""
        arrays = [i for i, x in enumerate(question) if x == _GIVEN]
        row = np.zeros(self._answer, dtype=np.int64)
        row[:3] = (entry.address, id(entry.own), len(arrays))
        row[3 : 3 + len(arrays)] = arrays
        row[3 + self._room : 3 + self._room + len(question)] = question
        begin = self._first + at * self._answer
        if at == 0:
            # no thread may take the direct way to what is being replaced
            self._table[3] = -1
        self._table[begin : begin + self._answer] = row
        self._table[2] = count
        if at == 0:
            pairs = zip(self.parameters, question, strict=True)
            plain = all(x == (_GIVEN if p.required else id(p.default)) for p, x in pairs)
            self._table[3] = len(arrays) if plain else -1


@lru_cache(maxsize=1)
def _code() -> Library:
    """The code that all doors share."""
    with MAKING:
        from ..emit.llvm.door import door_text

        return helper_library(door_text())


def _question(value: Any) -> int | tuple[int, ...]:
    """What tells a value from others: which object it is, or which are in it."""
    return tuple(map(id, value)) if type(value) is tuple else id(value)


def _is_lasting(value: Any) -> bool:
    """Whether the same object will mean the same for ever."""
    if type(value) is tuple:
        return all(map(_is_lasting, value))
    frozen = is_dataclass(value) and type(value).__dataclass_params__.frozen  # pyright: ignore
    return value is None or type(value) in (str, int, float, bool) or frozen


def _document(name: str, doc: str, parameters: Sequence[Parameter]) -> str:
    """The docstring of a built-in function, its signature first."""
    words = [p.name if p.required else f"{p.name}={p.default!r}" for p in parameters]
    return f"{name}($self, {', '.join(words)})\n--\n\n{doc}"

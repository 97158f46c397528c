"""A shared library without a linker: names that lead to addresses of this process.

For packages that take functions from a library only, by name, as CasADi does.  Every function of
it is a jump to code that is in memory already, with one more argument behind those that it is
called with, the sixth: what the code knows as its own.  So a library is valid in this process
alone, and there is no more to it than tables of names (System V ABI, chapters 4 and 5):

    ELF header, program headers, symbols, hash table (one bucket), names, code | dynamic section
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Goal", "shared_library"]

_HEADER, _SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
_SYMBOL, _TAG = struct.Struct("<IBBHQQ"), struct.Struct("<qQ")
_SHARED, _FUNCTION = 3, 0x12
# kinds of segments, and what may be done with them
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_CODE, _DATA = 5, 6
# of the dynamic section
_HASH, _NAMES, _SYMBOLS, _NAMES_SIZE, _SYMBOL_SIZE, _END = 4, 5, 6, 10, 11, 0
# no system has larger pages
_PAGE = 1 << 16

# by machine: its number, and a jump with places for two addresses: its own, then the code's
_JUMPS = {
    # movabs $own, %r9; movabs $code, %rax; jmp *%rax
    "x86_64": (62, struct.Struct("<2sQ2sQ2s10x"), (b"\x49\xb9", b"\x48\xb8", b"\xff\xe0")),
    # ldr x5, own; ldr x16, code; br x16
    "aarch64": (
        183,
        struct.Struct("<4s4s4s4xQQ"),
        (b"\x85\x00\x00\x58", b"\xb0\x00\x00\x58", b"\x00\x02\x1f\xd6"),
    ),
}
_JUMP_SIZE = 32


class Goal(NamedTuple):
    """Where a function leads: the address of code, and what that has as its sixth argument."""

    code: int
    own: int = 0


def shared_library(goals: Mapping[str, Goal], machine: str | None = None) -> bytes | None:
    """The file of a library with these functions; None on a system of another kind.

    machine: as the system calls it, this one by default.
    """
    if machine is None:
        machine = os.uname().machine if sys.platform == "linux" else ""
    if machine not in _JUMPS or sys.maxsize < 2**32:
        return None
    number = _JUMPS[machine][0]
    names, code = _names(goals), b"".join(_jump(machine, goal) for goal in goals.values())
    count, first = len(goals) + 1, _HEADER.size + 4 * _SEGMENT.size
    # one bucket: each symbol leads to the next
    chain = struct.pack(f"<{3 + count}I", 1, count, 1, 0, *range(2, count), 0)
    at_hash = first + count * _SYMBOL.size
    at_names = at_hash + len(chain)
    at_code = -(-(at_names + len(names)) // _JUMP_SIZE) * _JUMP_SIZE
    end = at_code + len(code)
    tags = {_HASH: at_hash, _NAMES: at_names, _SYMBOLS: first}
    tags |= {_NAMES_SIZE: len(names), _SYMBOL_SIZE: _SYMBOL.size, _END: 0}
    dynamic = b"".join(_TAG.pack(*tag) for tag in tags.items())
    place = end, end + _PAGE, end + _PAGE, len(dynamic), len(dynamic)
    head = _HEADER.pack(
        *(b"\x7fELF\x02\x01\x01", _SHARED, number, 1, 0, _HEADER.size, 0, 0),
        *(_HEADER.size, _SEGMENT.size, 4, 64, 0, 0),
    )
    segments = [
        _SEGMENT.pack(_LOAD, _CODE, 0, 0, 0, end, end, _PAGE),
        _SEGMENT.pack(_LOAD, _DATA, *place, _PAGE),
        _SEGMENT.pack(_DYNAMIC, _DATA, *place, 8),
        # without it the stack would become executable
        _SEGMENT.pack(_STACK, _DATA, 0, 0, 0, 0, 0, 16),
    ]
    symbols = bytes(_SYMBOL.size) + _symbols(goals, at_code)
    filled = bytes(at_code - at_names - len(names))
    return b"".join([head, *segments, symbols, chain, names, filled, code, dynamic])


def _names(goals: Mapping[str, Goal]) -> bytes:
    return b"\0" + b"".join(name.encode() + b"\0" for name in goals)


def _symbols(goals: Mapping[str, Goal], at_code: int) -> bytes:
    """Where each function's name and its jump are."""
    rows, at_name = [], 1
    for i, name in enumerate(goals):
        at = at_code + i * _JUMP_SIZE
        rows.append(_SYMBOL.pack(at_name, _FUNCTION, 0, 1, at, _JUMP_SIZE))
        at_name += len(name.encode()) + 1
    return b"".join(rows)


def _jump(machine: str, goal: Goal) -> bytes:
    _, form, code = _JUMPS[machine]
    if machine == "x86_64":
        return form.pack(code[0], goal.own, code[1], goal.code, code[2])
    return form.pack(*code, goal.own, goal.code)

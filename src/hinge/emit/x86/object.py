"""Functions of machine code as an object file: ELF for x86-64, nothing to be filled in."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Assembled", "object_file"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_IDENTITY = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_RELOCATABLE, _X86_64 = 1, 62
_BITS, _SYMBOLS, _STRINGS, _ALLOCATED, _EXECUTABLE = 1, 2, 3, 2, 4
_GLOBAL_FUNCTION, _LINE = 0x12, 64
_NAMES = b"\0.text\0.symtab\0.strtab\0"


class Assembled(NamedTuple):
    """A function: its name, and its bytes, which may lie anywhere."""

    name: str
    code: bytes


def object_file(functions: Sequence[Assembled]) -> bytes:
    """All of them, each from a line of its own on."""
    text, strings, symbols = bytearray(), bytearray(b"\0"), [bytes(_SYMBOL.size)]
    for name, code in functions:
        text += b"\xcc" * (-len(text) % _LINE)
        symbols.append(_SYMBOL.pack(len(strings), _GLOBAL_FUNCTION, 0, 1, len(text), len(code)))
        text += code
        strings += name.encode() + b"\0"
    names, parts = _NAMES + bytes(strings), (bytes(text), b"".join(symbols))
    strings_at = len(_NAMES)
    starts = [_LINE, _LINE + len(text) + -len(text) % 8]
    starts.append(starts[1] + len(parts[1]))
    sections = [
        bytes(_SECTION.size),
        _SECTION.pack(1, _BITS, _ALLOCATED | _EXECUTABLE, 0, starts[0], len(text), 0, 0, _LINE, 0),
        _SECTION.pack(7, _SYMBOLS, 0, 0, starts[1], len(parts[1]), 3, 1, 8, _SYMBOL.size),
        _SECTION.pack(15, _STRINGS, 0, 0, starts[2] + strings_at, len(strings), 0, 0, 1, 0),
        _SECTION.pack(15, _STRINGS, 0, 0, starts[2], strings_at, 0, 0, 1, 0),
    ]
    end = starts[2] + len(names)
    table = end + -end % 8
    head = _HEADER.pack(
        _IDENTITY, _RELOCATABLE, _X86_64, 1, 0, 0, table, 0, 64, 0, 0, 64, len(sections), 4
    )
    body = parts[0] + bytes(-len(text) % 8) + parts[1] + names + bytes(-end % 8)
    return head + body + b"".join(sections)

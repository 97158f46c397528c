"""Object code made callable without LLVM, which is large and slow to load: ELF for x86-64 on Linux.

An object is copied into fresh memory: code, then constants, the places in both that depend on
addresses filled in.  For every symbol there is an entry in a table of addresses (the GOT), and a
jump through it for calls that may go too far for an offset of 32 bits.  Then all of it becomes
readable and executable; nothing is ever writable and executable at once.  Only what our own
objects have is known here: at anything else `load` gives up, and LLVM can do it.

    S + A − P   for R_X86_64_PC32, and R_X86_64_PLT32 with the jump for S if S is elsewhere
    G + A − P   for R_X86_64_GOTPCREL and its two relaxable kinds

Code that was compiled in pieces is several objects in a row, of which the last refers
to the others, and has the functions that are called from outside.

S: the symbol, G: its entry, A: the addend, P: the place (System V ABI, AMD64 supplement, §4.4).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["Image", "load", "objects_in", "packed"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_IDENTITY = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_SECTION = np.dtype(
    [("name", "u4"), ("kind", "u4"), ("flags", "u8"), ("address", "u8"), ("at", "u8")]
    + [("size", "u8"), ("link", "u4"), ("info", "u4"), ("align", "u8"), ("entry", "u8")]
)
_SYMBOL = np.dtype(
    [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2")]
    + [("value", "u8"), ("size", "u8")]
)
_RELOCATION = np.dtype([("at", "u8"), ("kind", "u4"), ("symbol", "u4"), ("addend", "i8")])

# kinds and flags of sections
_BITS, _SYMBOLS, _WITH_ADDENDS, _WITHOUT_ADDENDS = 1, 2, 4, 9
_KEPT, _CODE, _HARMLESS = 0x2, 0x4, 0x2 | 0x4 | 0x10 | 0x20 | 0x200
# where symbols are, and which can be seen from outside
_ELSEWHERE, _RESERVED, _GLOBAL = 0, 0xFF00, 1
# kinds of relocations
_PC32, _PLT32, _GOT = 2, 4, (9, 41, 42)
# jmp *offset(%rip), filled up with int3
_JUMP, _JUMP_SIZE = b"\xff\x25\0\0\0\0\xcc\xcc", 8


# what several objects in a row begin with
_SEVERAL = b"objects\n"


def packed(objects: Sequence[bytes]) -> bytes:
    """Objects as one; a single one as it is."""
    if len(objects) == 1:
        return objects[0]
    sizes = (len(objects), *map(len, objects))
    return b"".join([_SEVERAL, *(n.to_bytes(8, "little") for n in sizes), *objects])


def objects_in(code: bytes) -> list[bytes]:
    """What was packed."""
    if not code.startswith(_SEVERAL):
        return [code]
    count = int.from_bytes(code[8:16], "little")
    sizes = np.frombuffer(code, np.uint64, count, 16).tolist()
    ends = np.cumsum([16 + 8 * count, *sizes]).tolist()
    return [code[a:b] for a, b in zip(ends, ends[1:], strict=False)]


class Image:
    """Code in memory for as long as this lives; its functions found by name."""

    def __init__(self, memory: mmap.mmap, functions: dict[str, int]) -> None:
        self._memory, self.functions = memory, functions

    def address(self, name: str) -> int:
        """Where a function is, 0 if there is none of that name."""
        return self.functions.get(name, 0)


def load(code: bytes, symbols: Mapping[str, int]) -> Image | None:
    """The objects in memory, ready to be called; None if one is not of the kind known here.

    symbols: the addresses of what the objects refer to and do not have.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 2**32:
        return None
    try:
        return image_of([_Loading(x) for x in objects_in(code)], symbols)
    except (_UnknownError, ValueError, IndexError, KeyError, OverflowError, OSError):
        return None


class _UnknownError(Exception):
    """Something that our objects do not have."""


def _need(truth: object) -> None:
    if not truth:
        raise _UnknownError


class _Loading:
    """An object on its way into memory; positions are offsets in the image of all of them."""

    def __init__(self, code: bytes) -> None:
        self.code = np.frombuffer(code, np.uint8)
        _need(len(code) >= _HEADER.size)
        head = _HEADER.unpack_from(code)
        identity, kind, machine, at, size, count = *head[:3], head[6], head[11], head[12]
        _need(identity.startswith(_IDENTITY) and (kind, machine) == (_RELOCATABLE, _X86_64))
        _need(size == _SECTION.itemsize)
        self.sections = np.frombuffer(code, _SECTION, count, at)
        kinds, flags = self.sections["kind"], self.sections["flags"]
        self.kept = (flags & _KEPT != 0) & (self.sections["size"] > 0)
        _need(not (flags[self.kept] & ~np.uint64(_HARMLESS)).any())
        _need((kinds[self.kept] == _BITS).all() and not (kinds == _WITHOUT_ADDENDS).any())
        (table,) = _which(kinds == _SYMBOLS)
        self.symbols = self.read(table, _SYMBOL)
        self.names = self.read(self.sections[table]["link"], np.dtype("u1")).tobytes()

    def read(self, i: int, dtype: np.dtype) -> np.ndarray:
        """What a section holds."""
        at, size = int(self.sections[i]["at"]), int(self.sections[i]["size"])
        _need(at + size <= len(self.code))
        return self.code[at : at + size].view(dtype)

    def name(self, i: int) -> str:
        """The name of symbol i."""
        start = int(self.symbols[i]["name"])
        return self.names[start : self.names.index(0, start)].decode()

    def place_code(self, end: int) -> int:
        """Where code and jumps go, after the end of others; their own end."""
        self.is_code = self.kept & (self.sections["flags"] & _CODE != 0)
        self.start = np.zeros(len(self.sections), np.int64)
        for i in _which(self.is_code):
            end = self.put(i, end)
        self.jumps = _up(end, 16)
        return self.jumps + _JUMP_SIZE * len(self.symbols)

    def place_data(self, end: int) -> int:
        """Where the rest goes, which is only read."""
        for i in _which(self.kept & ~self.is_code):
            end = self.put(i, end)
        self.table = _up(end, 8)
        return self.table + 8 * len(self.symbols)

    def copy(self, target: np.ndarray) -> None:
        """The sections, to their places."""
        for i in _which(self.kept):
            content = self.read(i, np.dtype("u1"))
            target[self.start[i] : self.start[i] + len(content)] = content

    def public(self) -> dict[str, int]:
        """What can be seen from outside, and where it is."""
        public = _which(self.is_own & (self.symbols["info"] >> 4 == _GLOBAL))
        return {self.name(i): int(self.where[i]) for i in public}

    def relocate_all(self, target: np.ndarray) -> None:
        """Fill in the places that depend on addresses."""
        for i in _which(self.sections["kind"] == _WITH_ADDENDS):
            if self.kept[self.sections[i]["info"]]:
                self.relocate(target, int(self.sections[i]["info"]), self.read(i, _RELOCATION))

    def put(self, i: int, end: int) -> int:
        """Section i after the end of another; its own end."""
        size, align = int(self.sections[i]["size"]), int(self.sections[i]["align"])
        _need(align <= mmap.PAGESIZE and align & (align - 1) == 0 and size <= len(self.code))
        self.start[i] = _up(end, max(align, 1))
        return int(self.start[i]) + size

    def resolve(
        self, target: np.ndarray, base: int, given: Mapping[str, int], others: Mapping[str, int]
    ) -> None:
        """Where the symbols are, and the table and the jumps with that.

        given: addresses of what is outside; others: places of what objects before this one have.
        """
        section, n = self.symbols["section"], len(self.symbols)
        self.is_here = np.zeros(n, bool)
        inside = (section != _ELSEWHERE) & (section < _RESERVED)
        _need((section[inside] < len(self.sections)).all())
        self.is_here[inside] = self.kept[section[inside]]
        here, away = self.symbols[self.is_here], _which(section == _ELSEWHERE)
        _need((here["value"] <= self.sections["size"][here["section"]]).all())
        self.where = np.full(n, -1, np.int64)
        self.where[self.is_here] = self.start[here["section"]] + here["value"].astype(np.int64)
        self.is_own, self.is_away = self.is_here.copy(), np.zeros(n, bool)
        table = target[self.table : self.table + 8 * n].view(np.uint64)
        for i in away[1:]:
            name = self.name(i)
            if name in others:
                self.where[i], self.is_here[i] = others[name], True
            else:
                table[i], self.is_away[i] = given[name], True
        table[self.is_here] = np.uint64(base) + self.where[self.is_here].astype(np.uint64)
        jumps = target[self.jumps : self.jumps + _JUMP_SIZE * n].reshape(n, _JUMP_SIZE)
        jumps[:] = np.frombuffer(_JUMP, np.uint8)
        # both grow by 8 bytes from symbol to symbol; an offset counts from the end of the jump
        offset = self.table - (self.jumps + 6)
        jumps[:, 2:6] = np.frombuffer(struct.pack("<i", offset), np.uint8)

    def relocate(self, target: np.ndarray, section: int, items: np.ndarray) -> None:
        """Fill in the places of a section that depend on addresses."""
        symbol, kind = items["symbol"], items["kind"]
        last = int(self.sections[section]["size"]) - 4
        _need(last >= 0 and (items["at"] <= last).all())
        here, away = self.is_here[symbol], self.is_away[symbol]
        direct = here & ((kind == _PC32) | (kind == _PLT32))
        jumped, looked_up = away & (kind == _PLT32), (here | away) & np.isin(kind, _GOT)
        _need((direct | jumped | looked_up).all())
        S = np.where(direct, self.where[symbol], self.jumps + _JUMP_SIZE * symbol.astype(np.int64))
        S[looked_up] = self.table + 8 * symbol[looked_up].astype(np.int64)
        P = self.start[section] + items["at"].astype(np.int64)
        value = S + items["addend"] - P
        _need((np.abs(value) < 2**31).all())
        target[P[:, None] + np.arange(4)] = value.astype("<i4").view(np.uint8).reshape(-1, 4)


def image_of(objects: Sequence[_Loading], given: Mapping[str, int]) -> Image:
    """The whole way: all code, then from a page of its own on what is read, then the addresses."""
    end = 0
    for one in objects:
        end = one.place_code(end)
    end = _up(end, mmap.PAGESIZE)
    for one in objects:
        end = one.place_data(end)
    size = _up(end, mmap.PAGESIZE)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    target, known = np.frombuffer(memory, np.uint8), {}
    base = target.ctypes.data
    for one in objects:
        one.copy(target)
        one.resolve(target, base, given, known)
        one.relocate_all(target)
        known |= one.public()
    # with the same rights for all of it: a process has 65 530 mappings on Linux, and this is one
    _protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC)
    return Image(memory, {name: base + at for name, at in known.items()})


def _which(truth: np.ndarray) -> list[int]:
    return np.flatnonzero(truth).tolist()


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _protect(address: int, size: int, rights: int) -> None:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _need(protect(address, size, rights) == 0)

"""Instructions of AVX-512 as bytes.

An instruction has an EVEX prefix of four bytes, its opcode, and what it works on: a register it
writes, up to two it reads, the last of which may be memory instead: a vector, or one number for all
lanes.  Intel's manual, volume 2, §2.7: bits of register numbers are inverted and spread over the
prefix, and an offset that is a whole number of vectors (of numbers, for one number) takes one byte.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, final

__all__ = ["MORE", "PASSED", "Code", "Instruction", "Memory", "instructions"]

# the registers that System V's convention passes pointers in, and further ones that are free to use
PASSED, MORE = (7, 6, 2, 1, 8, 9), (0, 10, 11)

_OFFSET = struct.Struct("<i")
_SMALL = range(-128, 128)


class Memory(NamedTuple):
    """A place: so many bytes from a pointer; base −1: the constant of that number.

    all_lanes: one number, for all lanes.
    """

    base: int
    offset: int
    all_lanes: bool = False


class Instruction(NamedTuple):
    """The bytes that all uses have in common.

    step, word: the bytes of a vector in memory, and of a number.
    one: what says that memory is one number for all lanes, 0 where nothing has to.
    """

    first: int
    second: int
    third: int
    opcode: int
    step: int
    word: int
    one: int = 0x10


def _instruction(
    opcode: int, table: int, prefix: int, wide: int, length: int, step: int, word: int
) -> Instruction:
    """table: of opcodes, 0F or 0F 38; prefix: none, 66, F3 or F2; length: of vectors, 0 to 2."""
    return Instruction(
        0xF0 | table, wide << 7 | 0x7C | prefix, length << 5 | 0x08, opcode, step, word
    )


def instructions(lanes: int, word: int) -> dict[str, Instruction]:
    """Those for vectors of so many numbers of 4 or 8 bytes; one number is the first of a vector.

    A number alone is always read into all lanes of a short vector: what the other lanes compute is
    then as harmless as the first.
    """
    bits = max(128, 8 * word * lanes)
    length, wide, packed = {128: 0, 256: 1, 512: 2}[bits], int(word == 8), int(word == 8)
    step = word * lanes

    def make(opcode: int, table: int, prefix: int) -> Instruction:
        return _instruction(opcode, table, prefix, wide, length, step, word)

    made = {name: make(opcode, 1, packed) for name, opcode in _ARITHMETIC.items()}
    made |= {name: make(opcode, 1, 1) for name, opcode in _BITS.items()}
    made |= {name: make(opcode, 2, 1) for name, opcode in _FUSED.items()}
    made["choose"] = make(0x65, 2, 1)
    # vmovddup for two numbers of 8 bytes, else vbroadcastss or vbroadcastsd
    spread = make(0x12, 1, 3) if bits == 128 and word == 8 else make(0x18 + wide, 2, 1)
    made["spread"] = spread._replace(one=0)
    made["load"] = made["spread"] if lanes == 1 else make(0x10, 1, packed)
    alone = 2 + wide
    made["store"] = make(0x11, 1, alone if lanes == 1 else packed)._replace(one=0)
    return made


_ARITHMETIC = {
    "sqrt": 0x51,
    "add": 0x58,
    "mul": 0x59,
    "sub": 0x5C,
    "min": 0x5D,
    "div": 0x5E,
    "max": 0x5F,
    "copy": 0x28,
    "compare": 0xC2,
}
_BITS = {"and": 0xDB, "xor": 0xEF}
# a·b + c, a·b − c, c − a·b; the digits say which operand is which: the first is also the result
_FUSED = {
    f"{name}{form}": base + more
    for name, base in (("plus", 0x98), ("minus", 0x9A), ("from", 0x9C))
    for form, more in (("132", 0), ("213", 0x10), ("231", 0x20))
}

# what a register's number does to the prefix: as the first operand, as the last, as a pointer
_AS_FIRST = [(r & 8) << 4 | r & 16 for r in range(32)]
_AS_LAST = [(r & 8) << 2 | (r & 16) << 2 for r in range(32)]
_AS_SECOND = [(r & 15) << 3 for r in range(32)]
_AS_SECOND_HIGH = [(r & 16) >> 1 for r in range(32)]


@final
class Code:
    """Bytes of one function, and its constants behind them."""

    def __init__(self, word: int) -> None:
        self.bytes = bytearray()
        self._numbers: dict[bytes, int] = {}
        self._word = word
        # where an offset to a constant belongs, from where it counts, and which it is
        self._open: list[tuple[int, int, int]] = []

    def constant(self, bits: bytes) -> Memory:
        """A number, for all lanes."""
        return Memory(-1, self._numbers.setdefault(bits, len(self._numbers)), True)

    def put(
        self,
        what: Instruction,
        to: int,
        second: int,
        last: int | Memory,
        mask: int = 0,
        more: bytes = b"",
    ) -> None:
        """An instruction; second: 0 where there is none; mask: of lanes, or of those left as 0."""
        first, opcode = what.first ^ _AS_FIRST[to], what.opcode
        middle = what.second ^ _AS_SECOND[second]
        third = what.third ^ _AS_SECOND_HIGH[second] ^ mask
        low = (to & 7) << 3
        if isinstance(last, int):
            head = (0x62, first ^ _AS_LAST[last], middle, third, opcode, 0xC0 | low | last & 7)
            self.bytes += bytes(head) + more
            return
        base, offset, all_lanes = last
        if all_lanes:
            third |= what.one
        if base < 0:
            self.bytes += bytes((0x62, first, middle, third, opcode, low | 5, 0, 0, 0, 0)) + more
            end = len(self.bytes)
            self._open.append((end - len(more) - 4, end, offset))
            return
        head = (0x62, first ^ _AS_LAST[base], middle, third, opcode)
        steps, rest = divmod(offset, what.word if all_lanes else what.step)
        if not offset:
            self.bytes += bytes((*head, low | base & 7)) + more
        elif not rest and steps in _SMALL:
            self.bytes += bytes((*head, 0x40 | low | base & 7, steps & 255)) + more
        else:
            where = bytes((*head, 0x80 | low | base & 7))
            self.bytes += where + _OFFSET.pack(offset) + more

    def fetch_pointer(self, to: int, offset: int) -> None:
        """A pointer from the stack, to one of the further registers."""
        prefix = 0x4C if to & 8 else 0x48
        self.bytes += bytes((prefix, 0x8B, 0x84 | (to & 7) << 3, 0x24)) + _OFFSET.pack(offset)

    def finished(self) -> bytes:
        """The function, with a return at its end."""
        # vzeroupper, ret
        self.bytes += b"\xc5\xf8\x77\xc3"
        self.bytes += b"\xcc" * (-len(self.bytes) % 8)
        start = len(self.bytes)
        for at, end, number in self._open:
            _OFFSET.pack_into(self.bytes, at, start + self._word * number - end)
        return bytes(self.bytes) + b"".join(self._numbers)

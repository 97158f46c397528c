"""Instructions of AVX2 and AVX-512 as bytes.

An instruction has a prefix, its opcode, and what it works on: a register it writes, up to two it
reads, the last of which may be memory instead: a vector, or one number for all lanes.

The prefix is VEX, of two or three bytes, where that says enough: the first 16 registers, vectors of
up to 256 bits, no masks, and memory that is read as it lies.  Else it is EVEX, of four bytes, which
AVX-512 has.  Intel's manual, volume 2, §2.3 and §2.7: bits of register numbers are inverted and
spread over the prefix; with EVEX, an offset that is a whole number of vectors (of numbers, for one
number) takes one byte.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, final

__all__ = ["MORE", "PASSED", "Code", "Instruction", "Memory", "instructions"]

# the registers that System V's convention passes pointers in, and further ones that are free to use
PASSED, MORE = (7, 6, 2, 1, 8, 9), (0, 10, 11)

_OFFSET = struct.Struct("<i")


class Memory(NamedTuple):
    """A place: so many bytes from a pointer; base −1: the constant of that number.

    all_lanes: one number, for all lanes.
    """

    base: int
    offset: int
    all_lanes: bool = False


class Instruction(NamedTuple):
    """The bytes that all uses have in common.

    evex: an EVEX prefix and the opcode, as a number whose first byte is the least.
    step, word: the bytes of a vector in memory, and of a number.
    one: what says that memory is one number for all lanes, 0 where nothing has to.
    table, vex: of a VEX prefix; 0 where there is none.  short: whether two bytes of it can do.
    swaps: whether what is read may change places.
    """

    evex: int
    opcode: int
    step: int
    word: int
    one: int = 0x10
    table: int = 0
    vex: int = 0
    short: bool = False
    swaps: bool = False


class _Family(NamedTuple):
    """What instructions for one kind of vector have in common; length: 0 to 2, of 128 bits on."""

    length: int
    step: int
    word: int

    def make(
        self, opcode: int, table: int, prefix: int, wide: bool | None = None, one: int = 0x10
    ) -> Instruction:
        """table: of opcodes, 0F, 0F 38 or 0F 3A; prefix: none, 66, F3 or F2.

        wide: whether VEX says that numbers have 8 bytes too; None if it need not be said.
        """
        kind = (self.word == 8) << 7 | 0x7C | prefix
        evex = bytes((0x62, 0xF0 | table, kind, self.length << 5 | 0x08, opcode))
        made = Instruction(int.from_bytes(evex, "little"), opcode, self.step, self.word, one)
        if self.length > 1:
            return made
        vex = bool(wide) << 7 | 0x78 | self.length << 2 | prefix
        return made._replace(table=0xE0 | table, vex=vex, short=table == 1 and not wide)


def instructions(lanes: int, word: int, registers: int = 32) -> dict[str, Instruction]:
    """Those for vectors of so many numbers of 4 or 8 bytes; one number is the first of a vector.

    With 16 registers all have a VEX prefix, and constants are as wide as vectors.
    """
    bits = max(128, 8 * word * lanes)
    family = _Family({128: 0, 256: 1, 512: 2}[bits], word * lanes, word)
    packed, alone, single = int(word == 8), 2 + (word == 8), lanes == 1
    # of one number the other lanes are left as they are
    kind, more = (alone, 1) if single else (packed, 0)
    one = 0x10 if registers == 32 and not single else 0
    make = family.make
    made = {name: make(opcode, 1, kind, one=one) for name, opcode in _ARITHMETIC.items()}
    made |= {n: make(opcode + more, 2, 1, word == 8, one) for n, opcode in _FUSED.items()}
    made |= {n: made[n]._replace(swaps=True) for n in ("add", "mul")}
    made["copy"] = make(0x28, 1, packed)
    made["store"] = make(0x11, 1, kind, one=0)
    made["load"] = make(0x10, 1, kind, one=0)
    if registers == 16:
        made |= {name: make(opcode, 1, packed, one=0) for name, opcode in _BITS.items()}
        made |= {name: made[name]._replace(swaps=True) for name in _BITS}
        made["compare"] = make(0xC2, 1, kind, one=0)
        made["choose"] = make(0x4A + packed, 3, 1, False, one=0)
        made["spread"] = made["load"]
        return made
    made |= {name: make(opcode, 1, 1)._replace(vex=0) for name, opcode in _INTEGER_BITS.items()}
    made["compare"] = make(0xC2, 1, packed)._replace(vex=0)
    made["choose"] = make(0x65, 2, 1)._replace(vex=0)
    # vmovddup for two numbers of 8 bytes, else vbroadcastss or vbroadcastsd
    is_double = bits == 128 and word == 8
    made["spread"] = make(0x12, 1, 3, one=0) if is_double else make(0x18 + packed, 2, 1, False, 0)
    return made


_ARITHMETIC = {
    "sqrt": 0x51,
    "add": 0x58,
    "mul": 0x59,
    "sub": 0x5C,
    "min": 0x5D,
    "div": 0x5E,
    "max": 0x5F,
}
_BITS = {"and": 0x54, "xor": 0x57}
_INTEGER_BITS = {"and": 0xDB, "xor": 0xEF}
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
# the same where it belongs in an EVEX prefix as a number
_FIRST_OF_EVEX = [x << 8 for x in _AS_FIRST]
_LAST_OF_EVEX = [x << 8 for x in _AS_LAST]
_SECOND_OF_EVEX = [x << 16 | (r & 16) << 23 for r, x in enumerate(_AS_SECOND)]


@final
class Code:
    """Bytes of one function, and its constants behind them; size: bytes of a constant."""

    def __init__(self, size: int) -> None:
        self.bytes = bytearray()
        self._numbers: dict[bytes, int] = {}
        self._size = size
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
        near = what.vex and to < 16 and second < 16 and not mask
        if isinstance(last, int):
            base, offset, near, flags = 0, 0, near and last < 16, mask
            if near and what.swaps and last > 7 > second:
                second, last = last, second
            number, tail, length = last, 0xC0 | last & 7, 1
        else:
            base, offset, all_lanes = last
            flags = mask | what.one if all_lanes else mask
            near = near and not flags
            scale = 1 if near else what.word if all_lanes else what.step
            number, (tail, length) = max(base, 0), _place(base, offset, scale)
        if near:
            head, size = _vex(what, to, second, number)
        else:
            head, size = _FIRST_OF_EVEX[to] ^ _SECOND_OF_EVEX[second] ^ _LAST_OF_EVEX[number], 5
            head ^= what.evex ^ flags << 24
        whole = head | (tail | (to & 7) << 3) << 8 * size
        self.bytes += whole.to_bytes(size + length, "little")
        if base < 0:
            end = len(self.bytes) + len(more)
            self._open.append((end - len(more) - 4, end, offset))
        if more:
            self.bytes += more

    def fetch_pointer(self, to: int, offset: int) -> None:
        """A pointer from the stack, to one of the further registers."""
        prefix = 0x4C if to & 8 else 0x48
        self.bytes += bytes((prefix, 0x8B, 0x84 | (to & 7) << 3, 0x24)) + _OFFSET.pack(offset)

    def finished(self) -> bytes:
        """The function, with a return at its end."""
        # vzeroupper, ret
        self.bytes += b"\xc5\xf8\x77\xc3"
        self.bytes += b"\xcc" * (-len(self.bytes) % max(self._size, 8))
        start = len(self.bytes)
        for at, end, number in self._open:
            _OFFSET.pack_into(self.bytes, at, start + self._size * number - end)
        numbers = (bits * (self._size // len(bits)) for bits in self._numbers)
        return bytes(self.bytes) + b"".join(numbers)


def _place(base: int, offset: int, scale: int) -> tuple[int, int]:
    """What follows the opcode but for the first operand, and of how many bytes it is.

    scale: by which an offset of one byte counts.
    """
    if base < 0:
        return 5, 5
    steps, rest = divmod(offset, scale)
    if not offset:
        return base & 7, 1
    if not rest and -128 <= steps < 128:
        return 0x40 | base & 7 | (steps & 0xFF) << 8, 2
    return 0x80 | base & 7 | (offset & 0xFFFFFFFF) << 8, 5


def _vex(what: Instruction, to: int, second: int, last: int) -> tuple[int, int]:
    """A VEX prefix and the opcode, and of how many bytes they are."""
    if what.short and last < 8:
        kind = what.vex ^ 0x80 ^ _AS_FIRST[to] ^ _AS_SECOND[second]
        return 0xC5 | kind << 8 | what.opcode << 16, 3
    table, kind = what.table ^ _AS_FIRST[to] ^ _AS_LAST[last], what.vex ^ _AS_SECOND[second]
    return 0xC4 | table << 8 | kind << 16 | what.opcode << 24, 4

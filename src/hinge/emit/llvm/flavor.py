"""What one value of compiled code is: so many lanes of double or float, and its constants."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .builder import Function, Value, truth_of

__all__ = ["Flavor", "number_text"]


@dataclass(frozen=True)
class Flavor:
    """What one value is: so many lanes of double or float.

    fused: a·b + c is one operation; registers: how many values the CPU holds.
    direct: straight-line code may be written as bytes, by `emit/x86`.
    """

    lanes: int
    scalar: str = "double"
    fused: bool = False
    registers: int = 16
    direct: bool = False

    @cached_property
    def type(self) -> str:
        """The LLVM type of a value."""
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @cached_property
    def bits(self) -> str:
        """The LLVM type of its bits."""
        word = f"i{8 * self.word}"
        return word if self.lanes == 1 else f"<{self.lanes} x {word}>"

    @cached_property
    def truth(self) -> str:
        """The LLVM type of a comparison."""
        return truth_of(self.type)

    @cached_property
    def suffix(self) -> str:
        """How intrinsics on it end."""
        word = f"f{8 * self.word}"
        return word if self.lanes == 1 else f"v{self.lanes}{word}"

    @property
    def name(self) -> str:
        """How the names of its functions end."""
        return self.suffix

    @cached_property
    def word(self) -> int:
        """The bytes of one number."""
        return 8 if self.scalar == "double" else 4

    @cached_property
    def bytes(self) -> int:
        """The size of a value in memory."""
        return self.lanes * self.word

    def const(self, x: float) -> str:
        """A number as the text of an operand."""
        number = number_text(x, self.scalar)
        return number if self.lanes == 1 else f"splat ({self.scalar} {number})"

    def value(self, x: float) -> Value:
        """A number."""
        return Value(self.type, self.const(x))

    def pattern(self, x: int) -> Value:
        """A bit pattern."""
        return Value(self.bits, str(x) if self.lanes == 1 else f"splat (i{8 * self.word} {x})")

    def spread(self, code: Function, number: Value) -> Value:
        """One number in all lanes."""
        if self.lanes == 1:
            return number
        first = code.let(self.type, f"insertelement {self.type} poison, {number}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return code.let(self.type, f"shufflevector {first}, {self.type} poison, {zeros}")


def number_text(x: float, scalar: str) -> str:
    """A number as LLVM writes it: the bits of a double, first rounded to single for a float."""
    if scalar == "float":
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

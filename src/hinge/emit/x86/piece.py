"""A piece of a program as a function of machine code: every value in the register that it stays in.

Which values are in registers, and until when, is planned (`graph/workspace.py`), so that there is
nothing to decide but their numbers.  What is fetched for one operation alone is an operand in
memory, and so are constants; a product and the only sum that uses it are one operation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from ...graph.scalar import Node
from ...graph.workspace import Step
from .instructions import MORE, PASSED, Code, Memory, instructions

__all__ = ["Places", "UnknownError", "machine_code"]

_DOUBLE = struct.Struct("<d")
# what compares are for: less, not more, equal, and not equal or not a number
_LESS, _AT_MOST, _EQUAL, _DIFFERENT = b"\x11", b"\x12", b"\x00", b"\x04"
# lanes of mask 1; the same, and 0 in the others
_CHOSEN, _CHOSEN_ALONE = 0x01, 0x81


class UnknownError(Exception):
    """Something that only LLVM knows."""


class Places(NamedTuple):
    """Where values are in memory.

    inputs: for every flat input which argument and which entry; slot: in the workspace; result: in
    the results, each by the number of a node.
    """

    arguments: int
    inputs: Sequence[tuple[int, int]]
    slot: Mapping[int, int]
    result: Mapping[int, int]


def machine_code(
    steps: Sequence[Step],
    made: Iterable[Node],
    places: Places,
    lanes: int,
    word: int,
    registers: int = 32,
) -> bytes:
    """The function; made: results that are in memory elsewhere.  It may raise `UnknownError`.

    registers: 32 with AVX-512, 16 with AVX2.
    """
    return _Piece(places, lanes, word, registers).finished(steps, made)


@final
class _Piece:
    def __init__(self, places: Places, lanes: int, word: int, registers: int) -> None:
        self.places, self.bytes = places, lanes * word
        self.alone, self.word, self.masks = lanes == 1, word, registers == 32
        # AVX2 reads whole vectors
        self.code = Code(word if self.masks else max(16, lanes * word))
        self.known = instructions(lanes, word, registers)
        self.bases = _bases(places.arguments + 2)
        # results and the workspace always have one
        self.out, self.workspace = self.bases[-2:]
        self.numbers: dict[float, Memory] = {}
        self.held: dict[int, int] = {}
        # the first ones, which take shorter instructions, are taken first
        self.free = list(reversed(range(registers)))
        self.gone: Collection[int] = ()
        self.borrowed: list[int] = []

    def finished(self, steps: Sequence[Step], made: Iterable[Node]) -> bytes:
        """The whole function."""
        for i, base in enumerate(self.bases):
            if base in MORE:
                self.code.fetch_pointer(base, _on_stack(i))
        for step in steps:
            self.step(step)
        for node in made:
            self.code.put(self.known["load"], 0, 0, self.memory(node))
            self.store(0, self.out, self.places.result[node.id])
        return self.code.finished()

    def step(self, step: Step) -> None:
        """An operation, perhaps with a product; then what is needed no more leaves."""
        node, gone, product, left = step
        held, free, self.gone = self.held, self.free, gone
        for id in left:
            if id in held:
                free.append(held.pop(id))
        if product is None:
            to = _OPERATIONS.get(node.op, _unknown)(self, *node.args)
        else:
            to = self.melted(product, node)
        for id in gone:
            register = held.pop(id, to)
            if register != to:
                free.append(register)
        if self.borrowed:
            free += [r for r in self.borrowed if r != to]
            self.borrowed.clear()
        held[node.id] = to
        self.kept(node, to)
        if node.id in gone:
            free.append(held.pop(node.id))

    def melted(self, product: Node, node: Node) -> int:
        """A product and the sum that it melts into."""
        (x, y), (first, last) = product.args, node.args
        if node.op == "add":
            return self.fused("plus", x, y, last if first is product else first)
        if first is product:
            return self.fused("minus", x, y, last)
        return self.fused("from", x, y, first)

    # registers and memory

    def take(self) -> int:
        """A register that is free."""
        if not self.free:
            raise UnknownError
        return self.free.pop()

    def is_in_memory(self, node: Node) -> bool:
        """Whether it is fetched for this operation alone."""
        return node.op == "const" or (node.id not in self.held and node.id in self.gone)

    def memory(self, node: Node) -> Memory:
        """Where it is when it is in no register."""
        if node.op == "const":
            return self.number(node.value)
        places, base = self.places, self.workspace
        index = places.slot.get(node.id)
        if index is None:
            if node.op == "input":
                array, index = places.inputs[node.value]
                base = self.pointer(array)
            else:
                base, index = self.out, places.result[node.id]
        return Memory(base, index * self.bytes, self.alone)

    def number(self, x: float) -> Memory:
        """A constant; what is out of range is infinite."""
        if x not in self.numbers:
            bits = _DOUBLE.pack(x) if self.word == 8 else _single(x)
            self.numbers[x] = self.code.constant(bits)
        return self.numbers[x]

    def fetched(self, node: Node) -> int:
        """The register it is in, fetched if it is not."""
        register = self.held.get(node.id)
        if register is None:
            register = self.take()
            if node.op == "const":
                self.borrowed.append(register)
                self.code.put(self.known["spread"], register, 0, self.memory(node))
            else:
                self.held[node.id] = register
                self.code.put(self.known["load"], register, 0, self.memory(node))
        return register

    def operand(self, node: Node) -> int | Memory:
        """A last operand."""
        return self.memory(node) if self.is_in_memory(node) else self.fetched(node)

    def target(self, *registers: int | Memory) -> int:
        """Where a result goes: to one of these if what it holds is not needed again."""
        for register in registers:
            if isinstance(register, int) and self.is_last(register):
                return register
        return self.take()

    def is_last(self, register: int) -> bool:
        """Whether what a register holds leaves after this operation."""
        held = self.held
        for id in self.gone:
            if held.get(id) == register:
                return True
        return register in self.borrowed

    def ends(self, node: Node) -> bool:
        """The same of the register of a value."""
        return node.id in self.gone or node.op == "const"

    def store(self, register: int, base: int, index: int) -> None:
        """To a place; base: the register of its pointer."""
        self.code.put(self.known["store"], register, 0, Memory(base, index * self.bytes))

    def pointer(self, i: int) -> int:
        """The register of pointer i, fetched for the very next instruction if it has none."""
        base = self.bases[i]
        if base < 0:
            base = MORE[-1]
            self.code.fetch_pointer(base, _on_stack(i))
        return base

    def kept(self, node: Node, register: int) -> None:
        """A value in its places."""
        slot, result = self.places.slot.get(node.id), self.places.result.get(node.id)
        if slot is not None:
            self.store(register, self.workspace, slot)
        if result is not None:
            self.store(register, self.out, result)

    # operations

    def binary(self, name: str, a: Node, b: Node) -> int:
        """a ∘ b."""
        first, last = self.fetched(a), self.operand(b)
        to = first if self.ends(a) else self.target(last)
        self.code.put(self.known[name], to, first, last)
        return to

    def either(self, name: str, a: Node, b: Node) -> int:
        """The same where a and b may change places."""
        return self.binary(name, b, a) if self.is_in_memory(a) else self.binary(name, a, b)

    def sign(self, name: str, a: Node) -> int:
        """a with the other sign ("xor"), or without one ("and")."""
        first, bit = self.fetched(a), 1 << 8 * self.word - 1
        mask = self.code.constant((bit - (name == "and")).to_bytes(self.word, "little"))
        to = self.target(first)
        self.code.put(self.known[name], to, first, mask)
        return to

    def root(self, a: Node) -> int:
        """√a."""
        last = self.operand(a)
        to = self.target(last)
        # where other lanes come from, of one number
        beside = 0 if not self.alone else last if isinstance(last, int) else to
        self.code.put(self.known["sqrt"], to, beside, last)
        return to

    def compared(self, how: bytes, a: Node, b: Node) -> int:
        """1 where it is so, else 0."""
        first, last = self.fetched(a), self.operand(b)
        to, one = self.target(first, last), self.number(1.0)
        if self.masks:
            self.code.put(self.known["compare"], 1, first, last, more=how)
            self.code.put(self.known["spread"], to, 0, one, _CHOSEN_ALONE)
        else:
            self.code.put(self.known["compare"], to, first, last, more=how)
            self.code.put(self.known["and"], to, to, one)
        return to

    def where(self, condition: Node, a: Node, b: Node) -> int:
        """a where the condition is not 0, else b."""
        first, zero = self.fetched(condition), self.number(0.0)
        if not self.masks:
            return self.chosen_by_signs(first, zero, a, b)
        self.code.put(self.known["compare"], 1, first, zero, more=_DIFFERENT)
        otherwise, last = self.fetched(b), self.operand(a)
        to = self.target(otherwise, last, first)
        self.code.put(self.known["choose"], to, otherwise, last, _CHOSEN)
        return to

    def chosen_by_signs(self, condition: int, zero: Memory, a: Node, b: Node) -> int:
        """The same without masks: lanes are chosen by the signs of what a comparison leaves."""
        signs = self.take()
        self.borrowed.append(signs)
        self.code.put(self.known["compare"], signs, condition, zero, more=_DIFFERENT)
        otherwise = self.fetched(b)
        # one number in memory is less than a vector, and would be read as one
        last = self.fetched(a) if self.alone else self.operand(a)
        to = self.target(otherwise, last, signs)
        self.code.put(self.known["choose"], to, otherwise, last, more=bytes((signs << 4,)))
        return to

    def fused(self, name: str, x: Node, y: Node, z: Node) -> int:
        """x · y + z or the like, at once."""
        if self.is_in_memory(x):
            x, y = y, x
        if self.is_in_memory(z):
            return self.fused_with_sum_in_memory(name, x, y, z)
        a, c = self.fetched(x), self.fetched(z)
        b = self.operand(y)
        if self.ends(z):
            self.code.put(self.known[f"{name}231"], c, a, b)
            return c
        if self.ends(x):
            self.code.put(self.known[f"{name}132"], a, c, b)
            return a
        if isinstance(b, int) and self.ends(y):
            self.code.put(self.known[f"{name}213"], b, a, c)
            return b
        to = self.take()
        if isinstance(b, int):
            self.code.put(self.known["copy"], to, 0, c)
            self.code.put(self.known[f"{name}231"], to, a, b)
        else:
            self.code.put(self.known["spread" if y.op == "const" else "load"], to, 0, b)
            self.code.put(self.known[f"{name}213"], to, a, c)
        return to

    def fused_with_sum_in_memory(self, name: str, x: Node, y: Node, z: Node) -> int:
        """The same where z is fetched for that alone."""
        a, b, c = self.fetched(x), self.fetched(y), self.memory(z)
        if self.ends(x):
            self.code.put(self.known[f"{name}213"], a, b, c)
            return a
        if self.ends(y):
            self.code.put(self.known[f"{name}213"], b, a, c)
            return b
        to = self.take()
        self.code.put(self.known["spread" if z.op == "const" else "load"], to, 0, c)
        self.code.put(self.known[f"{name}231"], to, a, b)
        return to


def _bases(pointers: int) -> list[int]:
    """The register of each pointer, −1 where there are too many: results and workspace have one."""
    free = [*PASSED, *MORE]
    if pointers <= len(free):
        return free[:pointers]
    return [*PASSED, *[-1] * (pointers - len(PASSED) - 2), *MORE[:2]]


def _single(x: float) -> bytes:
    with np.errstate(over="ignore"):
        return np.float32(x).tobytes()


def _on_stack(i: int) -> int:
    """Where pointer i is passed, past the address to return to."""
    return 8 + 8 * (i - len(PASSED))


def _unknown(piece: _Piece, *operands: Node) -> int:
    raise UnknownError


# of equal or of no numbers the least and the greatest are the last operand, in hinge the first
_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda piece, a, b: piece.either("add", a, b),
    "sub": lambda piece, a, b: piece.binary("sub", a, b),
    "mul": lambda piece, a, b: piece.either("mul", a, b),
    "div": lambda piece, a, b: piece.binary("div", a, b),
    "min": lambda piece, a, b: piece.binary("min", b, a),
    "max": lambda piece, a, b: piece.binary("max", b, a),
    "neg": lambda piece, a: piece.sign("xor", a),
    "abs": lambda piece, a: piece.sign("and", a),
    "sqrt": _Piece.root,
    "less": lambda piece, a, b: piece.compared(_LESS, a, b),
    "at_most": lambda piece, a, b: piece.compared(_AT_MOST, a, b),
    "equal": lambda piece, a, b: piece.compared(_EQUAL, a, b),
    "where": _Piece.where,
}

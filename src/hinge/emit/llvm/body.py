"""Programs as LLVM text: the straight-line bodies, on vectors of lanes or on plain scalars.

A body is one function per piece of the schedule.  It takes a pointer per argument, one per result
and one to the workspace; value i of an argument is at offset i (in lanes).  Keeping the batch loop
out of the body keeps LLVM from hoisting and spilling every constant.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.program import Program
from ...graph.registers import Step, step_plan
from ...graph.scalar import Node, reachable
from ...graph.schedule import PIECE, first_angles, ordered
from ..layout import Layout
from .math import sincos_text

__all__ = ["SPARE", "Body", "Flavor", "bodies", "constants", "number_text", "parameters"]

# registers for what a single operation needs besides
SPARE = 2

_BINARY = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"}


@dataclass(frozen=True)
class Flavor:
    """What one value is: so many lanes of double or float.

    fused: a·b + c is one operation; registers: how many values the CPU holds.
    """

    lanes: int
    scalar: str = "double"
    fused: bool = False
    registers: int = 16

    @property
    def type(self) -> str:
        """The LLVM type of a value."""
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @property
    def bits(self) -> str:
        """The LLVM type of its bits."""
        word = "i64" if self.scalar == "double" else "i32"
        return word if self.lanes == 1 else f"<{self.lanes} x {word}>"

    @property
    def truth(self) -> str:
        """The LLVM type of a comparison."""
        return "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """How intrinsics on it end."""
        word = "f64" if self.scalar == "double" else "f32"
        return word if self.lanes == 1 else f"v{self.lanes}{word}"

    @property
    def name(self) -> str:
        """How the names of its functions end."""
        return self.suffix

    @property
    def bytes(self) -> int:
        """The size of a value in memory."""
        return self.lanes * (8 if self.scalar == "double" else 4)

    def const(self, x: float) -> str:
        """A number as an operand."""
        number = number_text(x, self.scalar)
        return number if self.lanes == 1 else f"splat ({self.scalar} {number})"

    def word(self, x: int) -> str:
        """A bit pattern as an operand."""
        return str(x) if self.lanes == 1 else f"splat ({self.bits.split()[-1].rstrip('>')} {x})"


def number_text(x: float, scalar: str) -> str:
    """A number as LLVM writes it: the bits of a double, first rounded to single for a float."""
    if scalar == "float":
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def bodies(layout: Layout, flavor: Flavor, wide: Flavor) -> tuple[str, list[str], int]:
    """The text of the bodies, their names in order, and the number of workspace slots.

    Sines and cosines of angles that are known at the start come first, in a loop over vectors: one
    for each angle of many samples, or one for many angles of a single sample.
    """
    program = layout.program
    angles = first_angles(program.nodes)
    vectors = -(-len(angles) * flavor.lanes // wide.lanes)
    room = vectors * wide.lanes // flavor.lanes
    place = {angle.id: i for i, angle in enumerate(angles)}
    ready = {
        node.id: place[node.args[0].id] + (room if node.op == "cos" else 0)
        for node in program.nodes
        if node.op in ("sin", "cos") and node.args[0].id in place
    }
    order, held = ordered(program.values, ready), flavor.registers - SPARE
    plan = step_plan(order, layout.place, ready, 2 * room, held, PIECE)
    names, texts = [], []
    if angles:
        names.append(f"first_{flavor.name}")
        call = f"  call void @angles_{wide.name}(ptr %ws, i64 {vectors})"
        texts.append(PieceBody(layout, flavor, [], {}).angles_text(names[0], angles, room, call))
    for i, steps in enumerate(plan.pieces or [[]]):
        names.append(f"body{i}_{flavor.name}")
        made = [n for n in layout.values if n.op == "input" or n.id in ready] if i == 0 else []
        texts.append(PieceBody(layout, flavor, steps, plan.slot).text(names[-1], made))
    return "\n".join(texts), names, plan.slots


def parameters(program: Program) -> str:
    """The formal parameters of a body, also of everything that calls one."""
    inputs = [f"ptr noalias %in{i}" for i in range(len(program.inputs))]
    return ", ".join([*inputs, "ptr noalias %out", "ptr noalias %ws"])


def constants(layout: Layout, f: Flavor, name: str, plus: str | None = None) -> list[str]:
    """Lines that store the values which are constants, with something added if it is asked for."""
    lines = []
    for i in range(layout.varying, layout.size):
        value = f.const(layout.values[i].value)
        if plus is not None:
            lines.append(f"  %{name}{i}_sum = fadd {f.type} {value}, {plus}")
            value = f"%{name}{i}_sum"
        lines.append(f"  %{name}{i} = getelementptr {f.type}, ptr %out, i64 {i}")
        lines.append(f"  store {f.type} {value}, ptr %{name}{i}")
    return lines


class Body(ABC):
    """The text of straight-line code, line by line."""

    flavor: Flavor
    lines: list[str]
    names: dict[int, str]
    angles: dict[int, list[Node]]
    fresh: int

    @abstractmethod
    def fetch(self, node: Node) -> str:
        """Load an input; its name."""

    @staticmethod
    def angles_of(nodes: Iterable[Node]) -> dict[int, list[Node]]:
        """The sines and cosines, by angle."""
        angles: dict[int, list[Node]] = {}
        for node in nodes:
            if node.op in ("sin", "cos"):
                angles.setdefault(node.args[0].id, []).append(node)
        return angles

    def new(self) -> str:
        """A fresh name."""
        self.fresh += 1
        return f"%v{self.fresh}"

    def line(self, text: str) -> str:
        """Add a line; the name of its value."""
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        return name

    def address(self, base: str, index: int) -> str:
        """Where value `index` from a base is."""
        return self.line(f"getelementptr i8, ptr {base}, i64 {index * self.flavor.bytes}")

    def load(self, base: str, index: int) -> str:
        """Load value `index` from a base."""
        f = self.flavor
        return self.line(f"load {f.type}, ptr {self.address(base, index)}, align {f.bytes}")

    def store(self, node: Node, base: str, index: int) -> None:
        """Store a node as value `index` from a base."""
        f, value = self.flavor, self.operand(node)
        where = self.address(base, index)
        self.lines.append(f"  store {f.type} {value}, ptr {where}, align {f.bytes}")

    def operand(self, node: Node) -> str:
        """A node as an operand, loaded if it is not there yet."""
        if node.op == "const":
            return self.flavor.const(node.value)
        if node.id not in self.names:
            self.names[node.id] = self.fetch(node)
        return self.names[node.id]

    def operation(self, node: Node) -> None:
        """The line of an operation."""
        if node.op in ("sin", "cos"):
            self.sincos(node)
            return
        f = self.flavor
        args = [self.operand(a) for a in node.args]
        if node.op in _BINARY:
            text = f"{_BINARY[node.op]} {f.type} {args[0]}, {args[1]}"
        elif node.op == "neg":
            text = f"fneg {f.type} {args[0]}"
        elif node.op in ("sqrt", "abs"):
            intrinsic = "sqrt" if node.op == "sqrt" else "fabs"
            text = f"call {f.type} @llvm.{intrinsic}.{f.suffix}({f.type} {args[0]})"
        elif node.op == "atan2":
            text = f"call {f.type} @atan2_{f.name}({f.type} {args[0]}, {f.type} {args[1]})"
        else:
            text = self.choice(node.op, args)
        self.names[node.id] = self.line(text)

    def choice(self, op: str, args: list[str]) -> str:
        """min, max, less and where, by comparing and selecting; NaN in the first argument stays."""
        f = self.flavor
        if op == "where":
            truth = self.line(f"fcmp une {f.type} {args[0]}, {f.const(0.0)}")
            a, b = args[1], args[2]
        elif op == "less":
            truth = self.line(f"fcmp olt {f.type} {args[0]}, {args[1]}")
            a, b = f.const(1.0), f.const(0.0)
        else:
            sign = "olt" if op == "min" else "ogt"
            truth = self.line(f"fcmp {sign} {f.type} {args[1]}, {args[0]}")
            a, b = args[1], args[0]
        return f"select {f.truth} {truth}, {f.type} {a}, {f.type} {b}"

    def sincos(self, node: Node) -> None:
        """Both of an angle at once, when the first of them is met."""
        if node.id in self.names:
            return
        self.fresh += 1
        angle = self.operand(node.args[0])
        text, sine, cosine = sincos_text(self.flavor, angle, f"t{self.fresh}")
        self.lines.append(text)
        for partner in self.angles[node.args[0].id]:
            self.names[partner.id] = sine if partner.op == "sin" else cosine


class PieceBody(Body):
    """The text of one piece, line by line; slot: where values wait in the workspace."""

    def __init__(
        self, layout: Layout, flavor: Flavor, steps: Sequence[Step], slot: Mapping[int, int]
    ) -> None:
        self.layout, self.flavor, self.steps, self.slot = layout, flavor, steps, slot
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.fresh = 0
        self.where = _addresses(layout.program.input_sizes)
        self.angles = self.angles_of(step.node for step in steps)

    def text(self, name: str, made: Iterable[Node]) -> str:
        """The function of that name; made: results that are there already."""
        for node, gone in self.steps:
            self.operation(node)
            if node.id in self.slot:
                self.store(node, "%ws", self.slot[node.id])
            if node.id in self.layout.place:
                self.store(node, "%out", self.layout.place[node.id])
            for id in gone:
                self.names.pop(id, None)
        for node in made:
            self.store(node, "%out", self.layout.place[node.id])
        return self.function(name)

    def angles_text(self, name: str, angles: list[Node], room: int, call: str) -> str:
        """The function that puts angles, and zeros for the rest of the room, where `call` wants."""
        for node in reachable(angles):
            if node.op not in ("const", "input"):
                self.operation(node)
        zero = angles[0].graph.const(0.0)
        for i, angle in enumerate(angles + [zero] * (room - len(angles))):
            self.store(angle, "%ws", i)
        self.lines.append(call)
        return self.function(name)

    def function(self, name: str) -> str:
        """The lines as a function."""
        body, signature = "\n".join(self.lines), parameters(self.layout.program)
        return f"define internal void @{name}({signature}) #0 {{\nentry:\n{body}\n  ret void\n}}\n"

    def fetch(self, node: Node) -> str:
        """Load an input from its argument, what was made before from where it was stored."""
        if node.id in self.slot:
            return self.load("%ws", self.slot[node.id])
        if node.op != "input":
            return self.load("%out", self.layout.place[node.id])
        array, index = self.where[node.value]
        return self.load(f"%in{array}", index)


def _addresses(sizes: list[int]) -> list[tuple[int, int]]:
    """Where each flat input is: which argument, which entry."""
    return [(array, i) for array, size in enumerate(sizes) for i in range(size)]

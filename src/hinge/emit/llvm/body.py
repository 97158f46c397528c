"""Programs as LLVM: the straight-line bodies, on vectors of lanes or on plain scalars.

A body is one function per piece of the schedule.  It takes a pointer per argument, one per result
and one to the workspace; value i of an argument is at offset i (in lanes).  Keeping the batch loop
out of the body keeps LLVM from hoisting and spilling every constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...graph.loop import LoopProgram
from ...graph.operations import OPERATIONS, SINCOS
from ...graph.program import Program
from ...graph.relay import Relay
from ...graph.scalar import Node, reachable
from ...graph.schedule import first_angles, ordered
from ...graph.workspace import PIECE, TRAFFIC, Step, StepPlan, step_plan
from ..layout import Layout
from ..x86.object import Assembled
from ..x86.piece import Places, UnknownError, machine_code
from .builder import Function, Value, i64
from .flavor import Flavor
from .math import sincos

__all__ = ["SPARE", "Bodies", "Body", "Plan", "all_bodies", "bodies", "parameters", "put_constants"]

# registers for what a single operation needs besides
SPARE = 2


class Plan(NamedTuple):
    """What bodies of all flavors share: the angles that are known at the start, and the steps.

    Slots of the workspace are counted from behind the sines and cosines of those angles.
    """

    angles: list[Node]
    steps: StepPlan


class Bodies(NamedTuple):
    """Functions that evaluate a program one after the other: their names, in order.

    first: the text of those that need others; pieces: of the rest, which may be compiled apart, or
    machine code already, written as they are asked for; slots: how many places of the workspace
    they want.
    plan: for bodies of another flavor; declared: what modules say that call pieces of another one.
    """

    names: list[str]
    first: str
    pieces: Iterator[str | Assembled]
    slots: int
    plan: Plan | None = None
    declared: str = ""


def bodies(
    layout: Layout, flavor: Flavor, wide: Flavor, tag: str = "", plan: Plan | None = None
) -> Bodies:
    """The bodies of a program.

    Sines and cosines of angles that are known at the start come first, in a loop over vectors: one
    for each angle of many samples, or one for many angles of a single sample.  tag: in all names.
    """
    plan = plan or _planned(layout, flavor.registers - SPARE)
    angles, steps = plan
    vectors = -(-len(angles) * flavor.lanes // wide.lanes)
    room = vectors * wide.lanes // flavor.lanes
    place = {angle.id: i for i, angle in enumerate(angles)}
    ready = {
        node.id: place[node.args[0].id] + (room if node.op == "cos" else 0)
        for node in _sines(layout, angles)
    }
    slot = {id: 2 * room + at for id, at in steps.slot.items()} | ready
    pieces = steps.pieces or [[]]
    names, first = [f"body{i}{tag}_{flavor.name}" for i in range(len(pieces))], ""
    types = ", ".join(p.split()[0] for p in parameters(layout.program))
    declared = "\n".join(f"declare void @{name}({types})" for name in names)
    made = [n for n in layout.values if n.op == "input" or n.id in ready]
    texts = (
        _piece(PieceBody(layout, flavor, name, piece, slot), [] if i else made)
        for i, (name, piece) in enumerate(zip(names, pieces, strict=True))
    )
    if angles:
        body = PieceBody(layout, flavor, f"first{tag}_{flavor.name}", [], {})
        first = body.angles_text(angles, room, f"angles_{wide.name}", vectors)
        names = [f"first{tag}_{flavor.name}", *names]
    return Bodies(names, first, texts, 2 * room + steps.slots, plan, declared)


def _piece(body: PieceBody, made: list[Node]) -> str | Assembled:
    """The function as machine code if that can be, else as text."""
    layout, f = body.layout, body.flavor
    if f.direct:
        places = Places(len(layout.program.inputs), body.where, body.slot, layout.place)
        try:
            code = machine_code(body.steps, made, places, f.lanes, f.word, f.registers)
            return Assembled(body.code.name, code)
        except UnknownError:
            pass
    return body.text(made)


def _planned(layout: Layout, registers: int) -> Plan:
    angles = first_angles(layout.program.nodes)
    ready = {node.id: 0 for node in _sines(layout, angles)}
    order = ordered(layout.program.values, ready)
    return Plan(angles, step_plan(order, PIECE, registers, layout.place, ready, 0, TRAFFIC))


def _sines(layout: Layout, angles: Sequence[Node]) -> list[Node]:
    """The sines and cosines of the angles."""
    known = {angle.id for angle in angles}
    return [n for n in layout.program.nodes if n.op in SINCOS and n.args[0].id in known]


def all_bodies(
    program: Program | LoopProgram | Relay, f: Flavor, names: Sequence[str], tag: str = ""
) -> str:
    """One function that calls the bodies in turn."""
    code = Function(f"all{tag}_{f.name}", "void", *parameters(program))
    for name in names:
        code.call(name, *code.parameters)
    return code.ret().text()


def parameters(program: Program | LoopProgram | Relay) -> list[str]:
    """The parameters of a body, also of everything that calls one."""
    inputs = (f"ptr noalias in{i}" for i in range(len(program.inputs)))
    return [*inputs, "ptr noalias out", "ptr noalias ws"]


def put_constants(
    code: Function, layout: Layout, f: Flavor, out: Value, minus: Value | None = None
) -> None:
    """Store the values which are constants, with something taken from them if it is asked for."""
    for i, x in enumerate(layout.constants, layout.varying):
        value = f.value(x)
        code.put(value if minus is None else code.op("fsub", value, minus), out, i)


class Body(ABC):
    """Straight-line code of thousands of operations, hence as lines of text."""

    flavor: Flavor
    code: Function
    names: dict[int, str]
    angles: dict[int, list[Node]]
    written: dict[str, list[str]]

    @abstractmethod
    def fetch(self, node: Node) -> str:
        """Load an input; its name."""

    @staticmethod
    def angles_of(nodes: Iterable[Node]) -> dict[int, list[Node]]:
        """The sines and cosines, by angle."""
        angles: dict[int, list[Node]] = {}
        for node in nodes:
            if node.op in SINCOS:
                angles.setdefault(node.args[0].id, []).append(node)
        return angles

    def line(self, text: str) -> str:
        """Add a line; the name of its value."""
        name = f"%{self.code.fresh()}"
        self.code.lines.append(f"  {name} = {text}")
        return name

    def address(self, base: str, index: int) -> str:
        """Where value `index` from a base is."""
        return self.line(f"getelementptr i8, ptr {base}, i64 {index * self.flavor.bytes}")

    def load(self, where: str) -> str:
        """The value at an address."""
        f = self.flavor
        return self.line(f"load {f.type}, ptr {where}, align {f.bytes}")

    def store(self, node: Node, where: str) -> None:
        """Store a node at an address."""
        f = self.flavor
        self.code.lines.append(
            f"  store {f.type} {self.operand(node)}, ptr {where}, align {f.bytes}"
        )

    def operand(self, node: Node) -> str:
        """A node as an operand, loaded if it is not there yet."""
        if node.op == "const":
            return self.flavor.const(node.value)
        name = self.names.get(node.id)
        if name is None:
            name = self.names[node.id] = self.fetch(node)
        return name

    def operation(self, node: Node) -> None:
        """The lines of an operation."""
        if node.op in SINCOS:
            self.sincos(node)
            return
        args = [self.operand(a) for a in node.args]
        last = ""
        for line in self.lines_of(node.op):
            last = self.line(line.format(*args, last=last))
        self.names[node.id] = last

    def lines_of(self, op: str) -> list[str]:
        """The lines of a row of the table, with all but the arguments filled in."""
        if op not in self.written:
            f = self.flavor
            known = {"t": f.type, "x": f.suffix, "truth": f.truth, "last": "{last}"}
            known |= {"zero": f.const(0.0), "one": f.const(1.0)}
            row, given = OPERATIONS[op], [f"{{{i}}}" for i in range(OPERATIONS[op].arity)]
            self.written[op] = [line.format(*given, **known) for line in row.llvm]
        return self.written[op]

    def sincos(self, node: Node) -> None:
        """Both of an angle at once, when the first of them is met."""
        if node.id in self.names:
            return
        angle = Value(self.flavor.type, self.operand(node.args[0]))
        sine, cosine = sincos(self.code, self.flavor, angle)
        for partner in self.angles[node.args[0].id]:
            self.names[partner.id] = (sine if partner.op == "sin" else cosine).name


class PieceBody(Body):
    """The code of one piece; slot: where values wait in the workspace."""

    def __init__(
        self,
        layout: Layout,
        flavor: Flavor,
        name: str,
        steps: Sequence[Step],
        slot: Mapping[int, int],
    ) -> None:
        self.layout, self.flavor, self.steps, self.slot = layout, flavor, steps, slot
        given = parameters(layout.program)
        self.code = Function(name, "void", *given, attributes="#0", linkage="")
        self.names, self.written, self.angles = {}, {}, {}
        self.where = _addresses(layout.program.input_sizes)

    def text(self, made: Iterable[Node]) -> str:
        """The function; made: results that are there already."""
        self.angles = self.angles_of(node for step in self.steps for node in step.nodes)
        for step in self.steps:
            for node in step.nodes:
                self.operation(node)
            if step.node.id in self.slot:
                self.put(step.node, "%ws", self.slot[step.node.id])
            if step.node.id in self.layout.place:
                self.put(step.node, "%out", self.layout.place[step.node.id])
            for id in step.gone:
                self.names.pop(id, None)
        for node in made:
            self.put(node, "%out", self.layout.place[node.id])
        return self.code.ret().text()

    def angles_text(self, angles: list[Node], room: int, function: str, vectors: int) -> str:
        """Puts angles, and zeros for the rest of the room, where a function takes so many."""
        for node in reachable(angles):
            if node.op not in ("const", "input"):
                self.operation(node)
        zero = angles[0].graph.const(0.0)
        for i, angle in enumerate(angles + [zero] * (room - len(angles))):
            self.put(angle, "%ws", i)
        self.code.call(function, self.code.parameters[-1], i64(vectors))
        return self.code.ret().text()

    def put(self, node: Node, base: str, index: int) -> None:
        """Store a node as value `index` from a base."""
        self.operand(node)
        self.store(node, self.address(base, index))

    def fetch(self, node: Node) -> str:
        """Load an input from its argument, what was made before from where it was stored."""
        if node.id in self.slot:
            return self.load(self.address("%ws", self.slot[node.id]))
        if node.op != "input":
            return self.load(self.address("%out", self.layout.place[node.id]))
        array, index = self.where[node.value]
        return self.load(self.address(f"%in{array}", index))


def _addresses(sizes: list[int]) -> list[tuple[int, int]]:
    """Where each flat input is: which argument, which entry."""
    return [(array, i) for array, size in enumerate(sizes) for i in range(size)]

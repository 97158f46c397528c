"""Programs as LLVM: the straight-line bodies, on vectors of lanes or on plain scalars.

A body is one function per piece of the schedule.  It takes a pointer per argument, one per result
and one to the workspace; value i of an argument is at offset i (in lanes).  Keeping the batch loop
out of the body keeps LLVM from hoisting and spilling every constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, final

from ...graph.loop import LoopProgram
from ...graph.operations import OPERATIONS, SINCOS
from ...graph.program import Program
from ...graph.relay import Relay
from ...graph.scalar import Node, reachable
from ...graph.schedule import first_angles, ordered, turned_together
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
    for each angle of many samples, or one for many angles of a single sample.  So do later ones,
    between pieces that are written as bytes.  tag: in all names.
    """
    plan = plan or _planned(layout, flavor)
    angles, pieces = plan.angles, plan.steps.pieces
    if all(_is_turned(piece, flavor) for piece in pieces):
        pieces = [*pieces, []]
    most = max((len(piece) for piece in pieces if _is_turned(piece, flavor)), default=0)
    first = _Turns(0, len(angles), flavor, wide)
    later = _Turns(first.end, most, flavor, wide)
    number = {angle.id: i for i, angle in enumerate(angles)}
    ready = {n.id: first.place(n, number[n.args[0].id]) for n in _sines(layout, angles)}
    slot = {id: later.end + at for id, at in plan.steps.slot.items()} | ready
    names = [f"body{i}{tag}_{flavor.name}" for i in range(len(pieces))]
    written = [PieceBody(layout, flavor, *x, slot) for x in zip(names, pieces, strict=True)]
    turned = [body.turned_text(later) for body in written if _is_turned(body.steps, flavor)]
    written = [body for body in written if not _is_turned(body.steps, flavor)]
    if angles:
        body = PieceBody(layout, flavor, f"first{tag}_{flavor.name}", [], {})
        turned.append(body.angles_text(angles, first))
        names = [f"first{tag}_{flavor.name}", *names]
    made = [n for n in layout.values if n.op == "input" or n.id in ready]
    texts = (_piece(body, [] if i else made) for i, body in enumerate(written))
    types = ", ".join(p.split()[0] for p in parameters(layout.program))
    declared = "\n".join(f"declare void @{body.code.name}({types})" for body in written)
    slots = later.end + plan.steps.slots
    return Bodies(names, "\n".join(turned), texts, slots, plan, declared)


def _is_turned(steps: Sequence[Step], flavor: Flavor) -> bool:
    """Whether a piece is nothing but sines and cosines, to be made in a loop."""
    return flavor.direct and bool(steps) and all(step.node.op in SINCOS for step in steps)


@final
class _Turns:
    """Where angles are turned in a loop over vectors: sines in their places, cosines behind.

    start: the first place; room: for how many angles there are places.
    """

    def __init__(self, start: int, count: int, flavor: Flavor, wide: Flavor) -> None:
        self.start, self.function = start, f"angles_{wide.name}"
        self.vectors = -(-count * flavor.lanes // wide.lanes)
        self.room = self.vectors * wide.lanes // flavor.lanes

    @property
    def end(self) -> int:
        """The place behind all of them."""
        return self.start + 2 * self.room

    def place(self, node: Node, number: int) -> int:
        """Where the sine or cosine of an angle is."""
        return self.start + number + (self.room if node.op == "cos" else 0)


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


def _planned(layout: Layout, flavor: Flavor) -> Plan:
    angles, registers = first_angles(layout.program.nodes), flavor.registers - SPARE
    ready = {node.id: 0 for node in _sines(layout, angles)}
    order, apart = ordered(layout.program.values, ready), SINCOS if flavor.direct else ()
    order = turned_together(order) if apart else order
    steps = step_plan(order, PIECE, registers, layout.place, ready, 0, TRAFFIC, apart)
    return Plan(angles, steps)


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
            self.keep(step.node)
            for id in step.gone:
                self.names.pop(id, None)
        for node in made:
            self.put(node, "%out", self.layout.place[node.id])
        return self.code.ret().text()

    def angles_text(self, angles: list[Node], turns: _Turns) -> str:
        """Makes the first angles, and turns them."""
        for node in reachable(angles):
            if node.op not in ("const", "input"):
                self.operation(node)
        self.turn(angles, turns)
        return self.code.ret().text()

    def turned_text(self, turns: _Turns) -> str:
        """Turns angles that were made before, and puts their sines and cosines where they wait."""
        nodes = [step.node for step in self.steps]
        angles = list({node.args[0].id: node.args[0] for node in nodes}.values())
        number = {angle.id: i for i, angle in enumerate(angles)}
        self.turn(angles, turns)
        for node in nodes:
            at = turns.place(node, number[node.args[0].id])
            self.names[node.id] = self.load(self.address("%ws", at))
            self.keep(node)
        return self.code.ret().text()

    def turn(self, angles: list[Node], turns: _Turns) -> None:
        """Puts angles, and zeros for the rest of the room, in their places, and turns them."""
        zero = angles[0].graph.const(0.0)
        for i, angle in enumerate(angles + [zero] * (turns.room - len(angles))):
            self.put(angle, "%ws", turns.start + i)
        start = Value("ptr", self.address("%ws", turns.start))
        self.code.call(turns.function, start, i64(turns.vectors))

    def keep(self, node: Node) -> None:
        """A value in its places."""
        if node.id in self.slot:
            self.put(node, "%ws", self.slot[node.id])
        if node.id in self.layout.place:
            self.put(node, "%out", self.layout.place[node.id])

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

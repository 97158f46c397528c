"""Steps of loop programs as C99: a function each, and how it is called."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from ...graph.loop import GROUND, PAIR, Load, LoopProgram, Step
from ...graph.schedule import ordered
from .body import Body, Entry, Scalar
from .file import Front, block, wrapped

__all__ = ["BeforeFunction", "LoopFile", "StepFunction"]


class LoopFile(Protocol):
    """What every part of a file with loops refers to.

    row: the type of a row; columns: of each kind the numbers that are asked for; places: by name of
    an argument, the member of a visit that says where a body has its own, and its values.
    """

    front: Front
    program: LoopProgram
    scalar: Scalar
    row: str
    columns: list[list[int]]
    places: dict[str, tuple[str, tuple[int, ...]]]

    def place(self, row: str, slot: int, entry: int) -> Entry:
        """An entry of a slot."""
        ...


class StepFunction:
    """The function of one step, and the call of it in the loop."""

    def __init__(self, file: LoopFile, name: str, kind: int, step: Step) -> None:
        """Stores that write over what the step loads come last, from values with names."""
        self.file, self.kind, used = file, kind, set(step.used)
        inputs = {i: self.source(load) for i, load in enumerate(step.loads) if load in used}
        loaded, stores = set(inputs.values()), step.stores
        block = Counter(s.slot for s in stores if s.row == PAIR)
        stored = [
            (s.value, Entry("pair", s.slot * block[s.slot] + s.entry))
            if s.row == PAIR
            else (s.value, file.place(s.row, s.slot, s.entry))
            for s in stores
        ]
        over = [(node, entry) for node, entry in stored if entry in loaded]
        free = [(node, entry) for node, entry in stored if entry not in loaded]
        results: dict[int, list[Entry]] = {}
        for node, entry in free:
            results.setdefault(node.id, []).append(entry)
        nodes = ordered(node for node, _ in stored).nodes
        kept = [node for node, _ in over if node.op != "const"]
        body = Body(file.scalar, nodes, {}, inputs, results, kept)
        for node, entry in [x for x in free if x[0].op in ("const", "input")] + over:
            body.copy(node, entry)
        self.touched = {array.split("->")[0] for array in body.arrays}
        self.written = {store.row for store in stores}
        self.text = self.function(name, body.lines)
        self.call = self.called(name)

    def source(self, load: Load) -> Entry:
        """Where a load finds its value."""
        if load.kind == "slot":
            return self.file.place(load.row, load.which, load.entry)
        if load.kind == "argument":
            return Entry(self.file.front.arguments[load.which].name, load.entry)
        return Entry("numbers", self.file.columns[self.kind].index(load.entry))

    def function(self, name: str, lines: list[str]) -> str:
        """The text of the function."""
        file = self.file
        arrays = [a for a in file.front.arguments if a.name in self.touched]
        more = [f"const {file.scalar.name} *numbers"] if "numbers" in self.touched else []
        for row in ("parent", "own"):
            if row in self.touched:
                more.append(f"{'' if row in self.written else 'const '}{file.row} *{row}")
        if "shared" in self.touched:
            more.append(f"{'' if GROUND in self.written else 'const '}{file.scalar.name} *shared")
        more += [f"{file.scalar.name} *pair"] if "pair" in self.touched else []
        return block(file.front.head(file.front.dialect.part, name, arrays, more), lines)

    def called(self, name: str) -> str:
        """The statement that calls it."""
        given = [self.given(a.name) for a in self.file.front.arguments if a.name in self.touched]
        if "numbers" in self.touched:
            given.append(f"{self.file.front.name}_numbers + visit->numbers")
        given += [f"&w[visit->{row}]" for row in ("parent", "own") if row in self.touched]
        given += [x for x in ("shared", "pair") if x in self.touched]
        return wrapped(f"{name}(", given, ");", depth=3)

    def given(self, argument: str) -> str:
        """The part of an argument that a visit is about."""
        member, _ = self.file.places[argument]
        return f"{argument} + visit->{member}"


class BeforeFunction(StepFunction):
    """The function of what is done once, before a loop: it has arguments as they are."""

    def given(self, argument: str) -> str:
        """All of it."""
        return argument

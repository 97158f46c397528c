"""The statements of C for one piece of a program.

A value that is used once stands inside the expression that uses it, as long as the line stays
short; any other has a name: s3 and c3 for the sine and cosine of the third angle, t7 for the rest.
Parentheses keep the order of the graph, so a compiler that keeps to the standard computes the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...graph.operations import ATOM, CHOICE, OPERATIONS, PRODUCT, SIGN, SINCOS, SUM, TRUTH
from ...graph.scalar import Node

__all__ = ["Body", "Entry", "Scalar"]

# an expression longer than this is cut at its longest part
_WIDTH = 72

# in math.h these are floats
_SPECIAL = {"nan": "({})NAN", "inf": "({})INFINITY", "-inf": "-({})INFINITY"}
_OPPOSITE = {"add": "sub", "sub": "add"}


class Entry(NamedTuple):
    """One number of an array that is an argument or a result."""

    array: str
    offset: int


class Expression(NamedTuple):
    """Text of C, and how tightly it holds together."""

    text: str
    level: int = ATOM

    def within(self, level: int) -> str:
        """The text where an expression of that level is expected."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Scalar:
    """The type of every number: double or float."""

    name: str

    @property
    def suffix(self) -> str:
        """What its constants and functions end in."""
        return "f" if self.name == "float" else ""

    @property
    def bytes(self) -> int:
        """The size of a number in memory."""
        return 8 if self.name == "double" else 4

    def number(self, x: float) -> Expression:
        """A constant, in as few digits as give it back exactly."""
        with np.errstate(all="ignore"):
            text = repr(x) if self.name == "double" else str(np.float32(x))
        text = _SPECIAL[text].format(self.name) if text in _SPECIAL else text + self.suffix
        return Expression(text, SIGN if text[0] == "-" else ATOM)

    def operation(self, op: str, args: Sequence[Expression]) -> Expression:
        """An operation on expressions; less gives a truth, which only where can take as it is."""
        if op == "where":
            args = [self._truth(args[0]), *map(self.plain, args[1:])]
        else:
            args = [self.plain(a) for a in args]
        if op in _OPPOSITE and SUM < args[1].level < ATOM and args[1].text[0] == "-":
            # x + -y is x - y to the bit
            op, args = _OPPOSITE[op], (args[0], Expression(args[1].text[1:], PRODUCT))
        text, levels, level = OPERATIONS[op].c
        inner = (a.within(least) for a, least in zip(args, levels, strict=True))
        return Expression(text.format(*inner, f=self.suffix), level)

    def plain(self, e: Expression) -> Expression:
        """A truth as a number, 1 or 0; a number as it is."""
        f = self.suffix
        return Expression(f"{e.text} ? 1.0{f} : 0.0{f}", CHOICE) if e.level == TRUTH else e

    def _truth(self, e: Expression) -> Expression:
        if e.level == TRUTH:
            return e
        return Expression(f"{e.within(SUM)} != 0.0{self.suffix}", TRUTH)


class Body:
    """The statements of a piece: `lines`, the `arrays` and whether the `workspace` they touch."""

    def __init__(
        self,
        scalar: Scalar,
        nodes: Iterable[Node],
        slot: Mapping[int, int],
        inputs: Sequence[Entry] | Mapping[int, Entry],
        results: Mapping[int, Sequence[Entry]],
        kept: Sequence[Node] = (),
    ) -> None:
        """nodes: in order; slot: where in the workspace values wait, for this piece and others.

        inputs: where each argument is found; results: where the values of nodes go.
        kept: what is copied after arguments were written over, and has a name therefore.
        """
        self.lines: list[str] = []
        self.arrays: set[str] = set()
        self.workspace = False
        self._scalar, self._slot, self._inputs, self._results = scalar, slot, inputs, results
        self._uses: Counter[int] = Counter()
        nodes = list(nodes)
        for node in nodes:
            for i, a in enumerate(node.args):
                self._uses[a.id] += OPERATIONS[node.op].c.said(i)
        self._uses.update([node.id for node in kept] * 2)
        # slots that are used again here: what was there before needs a name
        self._written = {slot[node.id] for node in nodes if node.id in slot}
        self._known: dict[int, Expression] = {}
        # expressions that have no name yet
        self._loose: set[int] = set()
        self._angles: dict[int, int] = {}
        self._names = 0
        for node in kept:
            if node.op == "input":
                self._known[node.id] = self._operand(node)
                self._name(node)
        for node in nodes:
            self._statement(node)

    def _statement(self, node: Node) -> None:
        """Compute a node: inside its one use, into its one place, or into a name of its own."""
        expression, uses = self._expression(node), self._uses[node.id]
        places = [self._waiting(node)] if node.id in self._slot else []
        places += [self._place(entry) for entry in self._results.get(node.id, ())]
        self._known[node.id] = expression
        if uses == 1 and not places and node.op not in SINCOS:
            self._loose.add(node.id)
            return
        if uses or len(places) > 1:
            self._name(node)
        text = self._scalar.plain(self._known[node.id]).text
        self.lines += [f"{place} = {text};" for place in places]

    def _expression(self, node: Node) -> Expression:
        """The node in terms of what is known; too long a line gives names to its parts."""
        while True:
            args = list(node.args)
            if node.op == "mul" and args[1].op == "const":
                args.reverse()
            expression = self._scalar.operation(node.op, [self._operand(a) for a in args])
            loose = [a for a in args if a.id in self._loose]
            if len(expression.text) <= _WIDTH or not loose:
                return expression
            self._name(max(loose, key=lambda a: len(self._known[a.id].text)))

    def _name(self, node: Node) -> None:
        """From here on the value has a name."""
        if node.op in SINCOS:
            number = self._angles.setdefault(node.args[0].id, len(self._angles) + 1)
            name = f"{node.op[0]}{number}"
        else:
            self._names += 1
            name = f"t{self._names}"
        text = self._scalar.plain(self._known[node.id]).text
        self.lines.append(f"const {self._scalar.name} {name} = {text};")
        self._known[node.id] = Expression(name)
        self._loose.discard(node.id)

    def copy(self, node: Node, entry: Entry) -> None:
        """A number or an argument, as it is, becomes a result."""
        self.lines.append(f"{self._place(entry)} = {self._operand(node).text};")

    def _operand(self, node: Node) -> Expression:
        """A value that is there: a number, an argument, or what a node became."""
        if node.op == "const":
            return self._scalar.number(node.value)
        if node.op == "input" and node.id not in self._known:
            return Expression(self._place(self._inputs[node.value]))
        if node.id not in self._known:
            self._known[node.id] = Expression(self._waiting(node))
            if self._slot[node.id] in self._written:
                self._name(node)
        return self._known[node.id]

    def _waiting(self, node: Node) -> str:
        self.workspace = True
        return f"w->v[{self._slot[node.id]}]"

    def _place(self, entry: Entry) -> str:
        self.arrays.add(entry.array)
        return f"{entry.array}[{entry.offset}]"

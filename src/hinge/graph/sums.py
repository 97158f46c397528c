"""Sums of products, added up in an order in which most sums melt into a product.

Where a·b + c is one instruction, (a·b + c·d) + (e·f + g·h) takes five: the sum of two sums melts
into nothing.  Term after term, ((a·b + c·d) + e·f) + g·h, it takes four.  The terms are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, final

from .program import Program
from .scalar import Graph, Node

__all__ = ["term_by_term"]

_SUMS = ("add", "sub")
# how many nodes before its sum a part of it may have been made: what is summed up long before, as
# the forces of a limb are, must not wait in its parts
_NEAR = 64


class _Term(NamedTuple):
    """What is added to a sum, or subtracted."""

    node: Node
    added: bool


def term_by_term(program: Program) -> Program:
    """The same program with sums of sums in another order where that saves instructions."""
    uses = Counter(a.id for node in program.nodes for a in node.args)
    uses.update(value.id for value in program.values)
    return _Sums(program, uses).rewritten()


@final
class _Sums:
    """A program while it is rewritten.

    parts: sums that are taken by one other sum alone, made soon after; new: of each other node.
    """

    def __init__(self, program: Program, uses: Mapping[int, int]) -> None:
        self.program, self.uses, self.graph = program, uses, Graph()
        self.new: dict[int, Node] = {}
        self.parts = {
            a.id
            for node in program.nodes
            if node.op in _SUMS
            for a in node.args
            if a.op in _SUMS and uses[a.id] == 1 and node.id - a.id <= _NEAR
        }

    def rewritten(self) -> Program:
        """The program."""
        for _ in range(sum(self.program.input_sizes)):
            self.graph.input()
        for node in self.program.nodes:
            if node.id not in self.parts:
                self.new[node.id] = self.of(node)
        return replace(self.program, values=tuple(self.new[v.id] for v in self.program.values))

    def of(self, node: Node) -> Node:
        """What takes the place of a node."""
        if node.op == "input":
            return self.graph.intern("input", (), node.value)
        if node.op == "const":
            return self.graph.const(node.value)
        if node.op not in _SUMS:
            return self.copied(node)
        sums, terms = self.unfolded(node)
        as_made = sum(map(self.as_made, sums))
        if any(t.added for t in terms) and self.in_turn(terms) < as_made:
            return self.summed(terms)
        for part in sums:
            self.new[part.id] = self.copied(part)
        return self.new[node.id]

    def unfolded(self, node: Node) -> tuple[list[Node], list[_Term]]:
        """A sum and its parts, what is made first before the others; and the terms of all."""
        sums, terms, stack = [], [], [_Term(node, True)]
        while stack:
            term = stack.pop()
            if term.node is node or term.node.id in self.parts:
                sums.append(term.node)
                first, second = term.node.args
                same = term.added == (term.node.op == "add")
                stack += [_Term(first, term.added), _Term(second, same)]
            else:
                terms.append(term)
        return sums[::-1], sorted(terms[::-1], key=lambda term: term.node.id)

    def is_product(self, node: Node) -> bool:
        """Whether it can melt into a sum."""
        return node.op == "mul" and self.uses[node.id] == 1

    def in_turn(self, terms: list[_Term]) -> int:
        """The instructions of a sum term by term."""
        return len(terms) - any(not self.is_product(t.node) for t in terms)

    def as_made(self, node: Node) -> int:
        """Those of a sum as it is, without its parts."""
        return max(1, sum(map(self.is_product, node.args)))

    def summed(self, terms: list[_Term]) -> Node:
        """The sum term by term, what is no product first."""
        first = min(terms, key=lambda t: (not t.added, self.is_product(t.node)))
        whole = self.new[first.node.id]
        for term in sorted(terms, key=lambda t: self.is_product(t.node)):
            # the same node may be there twice
            if term is not first:
                op = "add" if term.added else "sub"
                whole = self.graph.make(op, whole, self.new[term.node.id])
        return whole

    def copied(self, node: Node) -> Node:
        """The same operation."""
        return self.graph.make(node.op, *(self.new[a.id] for a in node.args))

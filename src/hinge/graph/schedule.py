"""The order of a program's operations, cut into pieces that compile quickly.

Either in the order of making, which keeps a sweep over bodies together, or depth first from the
outputs: whichever keeps fewer values waiting for long, since a value that waits leaves the
registers for memory.  A piece has about a thousand operations; what a later piece needs goes
through a slot of a workspace, and a slot is free again after its last use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .operations import SINCOS
from .scalar import Node

__all__ = ["PIECE", "Piece", "depth_first", "first_angles", "ordered", "pieces"]

PIECE = 1000
# a value that is used again after so many operations has long left the registers
_LONG = 128


@dataclass(frozen=True)
class Piece:
    """Operations in order; `loads` come from slots of the workspace, `stores` go there."""

    nodes: tuple[Node, ...]
    loads: dict[int, int]
    stores: dict[int, int]


def first_angles(nodes: Iterable[Node]) -> list[Node]:
    """Arguments of sines and cosines that need no other sine or cosine; nodes: arguments first."""
    later: set[int] = set()
    found: dict[int, Node] = {}
    for node in nodes:
        if any(a.id in later for a in node.args):
            later.add(node.id)
        elif node.op in SINCOS:
            later.add(node.id)
            found[node.args[0].id] = node.args[0]
    return list(found.values())


def ordered(values: Iterable[Node], ready: Iterable[int] = ()) -> list[Node]:
    """Every operation that the values need, arguments first; ready: what is there already."""
    deep = depth_first(values, ready)
    return min(sorted(deep, key=lambda node: node.id), deep, key=_waiting)


def _waiting(order: list[Node]) -> int:
    """How many values are still needed long after they are made."""
    last = {a.id: i for i, node in enumerate(order) for a in node.args}
    return sum(last.get(node.id, i) - i > _LONG for i, node in enumerate(order))


def depth_first(values: Iterable[Node], ready: Iterable[int] = ()) -> list[Node]:
    """Every operation that the values need, each as late as its first use allows."""
    done = set(ready)
    order: list[Node] = []
    for value in values:
        stack = [(value, False)]
        while stack:
            node, after_arguments = stack.pop()
            if after_arguments:
                order.append(node)
            elif node.id not in done:
                done.add(node.id)
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args) if a.id not in done)
    return [node for node in order if node.op not in ("const", "input")]


def pieces(values: tuple[Node, ...], size: int = PIECE) -> tuple[list[Piece], int]:
    """The operations in pieces, and how many slots the workspace has."""
    order = ordered(values)
    # as many pieces as need be, all of one size
    step = max(1, -(-len(order) // -(-len(order) // size or 1)))
    cuts = [order[i : i + step] for i in range(0, len(order), step)]
    home = {node.id: i for i, cut in enumerate(cuts) for node in cut}
    last = dict(home)
    for i, cut in enumerate(cuts):
        for node in cut:
            for a in node.args:
                if a.id in home:
                    last[a.id] = i
    # outputs are written by the piece that makes them
    out, free, slot_of, slots = [], [], {}, 0
    for i, cut in enumerate(cuts):
        used = {a.id for node in cut for a in node.args if home.get(a.id, i) < i}
        loads = {id: slot_of[id] for id in used}
        stores = {}
        for node in cut:
            if last[node.id] > i:
                if free:
                    slot_of[node.id] = free.pop()
                else:
                    slot_of[node.id] = slots
                    slots += 1
                stores[node.id] = slot_of[node.id]
        out.append(Piece(tuple(cut), loads, stores))
        free.extend(slot_of[id] for id in slot_of if last[id] == i and home[id] < i)
    return out, slots

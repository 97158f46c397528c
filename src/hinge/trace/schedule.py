"""The order of a program's operations, cut into pieces that compile quickly.

Depth first from the outputs, so that values are used soon after they are made.  A piece has about a
thousand operations; what a later piece needs goes through a slot of a workspace, and a slot is free
again after its last use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .scalar import Node

__all__ = ["Piece", "depth_first", "pieces"]

PIECE = 1000


@dataclass(frozen=True)
class Piece:
    """Operations in order; `loads` come from slots of the workspace, `stores` go there."""

    nodes: tuple[Node, ...]
    loads: dict[int, int]
    stores: dict[int, int]


def depth_first(values: Iterable[Node]) -> list[Node]:
    """Every operation that the values need, each as late as its first use allows."""
    done: set[int] = set()
    order: list[Node] = []
    for value in values:
        stack = [(value, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif node.id not in done:
                done.add(node.id)
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args) if a.id not in done)
    return [node for node in order if node.op not in ("const", "input")]


def pieces(values: tuple[Node, ...], size: int = PIECE) -> tuple[list[Piece], int]:
    """The operations in pieces, and how many slots the workspace has."""
    order = depth_first(values)
    cuts = [order[i : i + size] for i in range(0, len(order), size)]
    home = {node.id: i for i, cut in enumerate(cuts) for node in cut}
    last = dict(home)
    for i, cut in enumerate(cuts):
        for node in cut:
            for a in node.args:
                if a.id in home:
                    last[a.id] = i
    # outputs are written by the piece that makes them
    out, slots, free, slot_of = [], 0, [], {}
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

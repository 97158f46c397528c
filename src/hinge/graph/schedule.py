"""The order of a program's operations.

Either in the order of making, which keeps a sweep over bodies together, or depth first from the
outputs: whichever keeps fewer values waiting for long, since a value that waits leaves the
registers for memory.  What it gives: Panda's inverse dynamics spills 65 values to the stack instead
of 122, Talos' 96 instead of 158, its mass matrix 95 instead of 185.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from .operations import SINCOS
from .reads import Order
from .scalar import Node

__all__ = ["depth_first", "first_angles", "most_live", "on_demand", "ordered"]
__all__ += ["turned_together"]

# a value that is used again after so many operations has long left the registers
_LONG = 128


def first_angles(nodes: Iterable[Node]) -> list[Node]:
    """Arguments of sines and cosines that need no other sine or cosine; nodes: arguments first."""
    later: set[int] = set()
    found: dict[int, Node] = {}
    for node in nodes:
        for a in node.args:
            if a.id in later:
                later.add(node.id)
                break
        else:
            if node.op in SINCOS:
                later.add(node.id)
                found[node.args[0].id] = node.args[0]
    return list(found.values())


def ordered(values: Iterable[Node], ready: Iterable[int] = ()) -> Order:
    """Every operation that the values need, arguments first; ready: what is there already."""
    deep = Order(depth_first(values, ready))
    by_id = np.argsort(deep.made)
    place = np.empty_like(by_id)
    place[by_id] = np.arange(len(deep))
    user, used = deep.read_here
    if _waiting(place[user], place[used]) <= _waiting(user, used):
        return deep.in_turn(by_id)
    return deep


def turned_together(order: Order) -> Order:
    """The order with sines and cosines side by side of which none needs another.

    What all of them need is made before the first of them, so that one loop can make them.
    """
    if not any(node.op in SINCOS for node in order.nodes):
        return order
    place = {node.id: i for i, node in enumerate(order.nodes)}
    depth: dict[int, int] = {}
    groups: dict[int, list[Node]] = defaultdict(list)
    for node in order.nodes:
        deep = max((depth.get(a.id, 0) for a in node.args), default=0)
        if node.op in SINCOS:
            groups[deep].append(node)
        depth[node.id] = deep + (node.op in SINCOS)
    # what is not in the order is there already
    done = {a.id for a in order.arguments if a.id not in place}
    new: list[int] = []
    for node in order.nodes:
        if node.id not in done:
            group = groups[depth[node.id] - 1] if node.op in SINCOS else [node]
            ids = {x.id for x in group}
            done |= ids
            needed = [x for root in group for x in _needed(root, done) if x.id not in ids]
            new += sorted(place[x.id] for x in needed) + [place[x.id] for x in group]
    return order.in_turn(np.array(new))


def _waiting(user: np.ndarray, used: np.ndarray) -> int:
    """How many values are still needed long after they are made, by their numbers in an order."""
    last = np.zeros(1 + used.max(initial=-1), np.int64)
    np.maximum.at(last, used, user)
    return int((last - np.arange(len(last)) > _LONG).sum())


def depth_first(values: Iterable[Node], ready: Iterable[int] = ()) -> list[Node]:
    """Every operation that the values need, each as late as its first use allows."""
    done = set(ready)
    order: list[Node] = []
    for value in values:
        # below None is an operation whose arguments are done
        stack: list[Node | None] = [value]
        while stack:
            node = stack.pop()
            if node is None:
                order.append(cast(Node, stack.pop()))
            elif node.args and node.id not in done:
                done.add(node.id)
                stack += (node, None)
                for a in reversed(node.args):
                    if a.id not in done:
                        stack.append(a)
    return order


def on_demand(order: Sequence[Node], start: int) -> list[Node]:
    """The operations from `start` on in their order, each of those before when it is first needed.

    With `start` where the last sweep begins, the sweeps before it go limb after limb.  What it
    gives: Talos' inverse dynamics holds 193 values at most instead of 278, its derivatives 473
    instead of 1005.
    """
    done: set[int] = set()
    new: list[Node] = []
    for root in order[start:]:
        if root.id not in done:
            needed = _needed(root, done)
            new += sorted(needed, key=lambda node: node.id)
    # what nothing of that needs, a result, as soon as it can be made
    at = {node.id: i for i, node in enumerate(new)}
    keyed = [((i, 0, 0), node) for i, node in enumerate(new)]
    for node in order[:start]:
        if node.id not in done:
            at[node.id] = max((at[a.id] for a in node.args if a.id in at), default=-1)
            keyed.append(((at[node.id], 1, node.id), node))
    return [node for _, node in sorted(keyed, key=lambda pair: pair[0])]


def _needed(root: Node, done: set[int]) -> list[Node]:
    """The operations that one needs, itself among them, which are not done; they are then."""
    done.add(root.id)
    needed, stack = [], [root]
    while stack:
        node = stack.pop()
        needed.append(node)
        for a in node.args:
            if a.op not in ("const", "input") and a.id not in done:
                done.add(a.id)
                stack.append(a)
    return needed


def most_live(order: Sequence[Node]) -> int:
    """How many values there are at most that are still needed."""
    last = {a.id: i for i, node in enumerate(order) for a in node.args}
    ends = [0] * len(order)
    live = most = 0
    for i, node in enumerate(order):
        if node.id in last:
            live += 1
            ends[last[node.id]] += 1
        most = max(most, live)
        live -= ends[i]
    return most

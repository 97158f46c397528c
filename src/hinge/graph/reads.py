"""What the operations of an order read, as arrays: large programs are looked at all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from .scalar import Node

__all__ = ["NEVER", "Order", "Reads"]

# past all reads
NEVER = 1 << 60
# what operations are, as far as it matters here
_KINDS = {"const": 1, "mul": 2, "add": 3, "sub": 3}
_CONST, _PRODUCT, _SUM = 1, 2, 3


class Reads(NamedTuple):
    """What operations read but for constants, once each, one after the other.

    made: the values that they make; value: what is read; later: which read of the same value comes
    next, NEVER where none does; first: the same of the values that are made.
    begin: where the reads of each operation begin, and where all of them end.
    """

    made: np.ndarray
    value: np.ndarray
    later: np.ndarray
    first: np.ndarray
    begin: np.ndarray


@final
class Order:
    """Operations in an order, and their arguments, one after the other.

    arguments: these; user: whose they are, by place in the order.  made, ids: the numbers of
    operations and of arguments, counted from the least; size: how many there may be.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        self.arguments = [a for node in self.nodes for a in node.args]
        made = np.array([node.id for node in self.nodes], np.int64)
        ids = np.array([a.id for a in self.arguments], np.int64)
        self.least = min(made.min(initial=0), ids.min(initial=0))
        self.made, self.ids = made - self.least, ids - self.least
        self.size = 1 + int(max(self.made.max(initial=0), self.ids.max(initial=0)))
        counts = np.array([len(node.args) for node in self.nodes], np.int64)
        self.user = np.repeat(np.arange(len(self.nodes)), counts)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def read_here(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every argument that is made here too, who reads it and who makes it."""
        maker = np.full(self.size, -1)
        maker[self.made] = np.arange(len(self.nodes))
        found = maker[self.ids]
        return self.user[found >= 0], found[found >= 0]

    def in_turn(self, places: np.ndarray) -> Order:
        """The same operations in another order."""
        count = np.bincount(self.user, minlength=len(self.nodes))
        start, many = (np.cumsum(count) - count)[places], count[places]
        shift = start - (np.cumsum(many) - many)
        at = np.repeat(shift, many) + np.arange(len(self.ids))
        other = object.__new__(Order)
        other.nodes = [self.nodes[i] for i in places.tolist()]
        other.arguments = [self.arguments[i] for i in at.tolist()]
        other.least, other.size = self.least, self.size
        other.made, other.ids = self.made[places], self.ids[at]
        other.user = np.repeat(np.arange(len(places)), many)
        return other

    @cached_property
    def kinds(self) -> np.ndarray:
        """What each value is, by its number."""
        kinds = np.full(self.size, -1, np.int8)
        kinds[self.made] = [_KINDS.get(node.op, 0) for node in self.nodes]
        others = np.flatnonzero(kinds[self.ids] < 0)
        own = [self.arguments[i].op == "const" for i in others.tolist()]
        kinds[self.ids[others]] = own
        return kinds

    def melted(self, results: Collection[int]) -> np.ndarray:
        """Which of them are products that become one operation with the sum that reads them.

        They are read by nothing else, and one for each sum; results: values that stay.
        """
        stays = np.zeros(self.size, bool)
        kept = np.fromiter(results, np.int64, len(results)) - self.least
        stays[kept[(kept >= 0) & (kept < self.size)]] = True
        uses = np.bincount(self.ids, minlength=self.size)
        melts = (self.kinds == _PRODUCT) & (uses == 1) & ~stays
        found = melts[self.ids] & (self.kinds[self.made] == _SUM)[self.user]
        # of two the first
        found[1:] &= ~(found[:-1] & (self.user[1:] == self.user[:-1]))
        return found

    def stays(self, melted: np.ndarray) -> np.ndarray:
        """Which of the operations are not melted."""
        stays = np.ones(self.size, bool)
        stays[self.ids[melted]] = False
        return stays[self.made]

    def reads(self, melted: np.ndarray) -> Reads:
        """What operations read, those that are not melted, with what melted products read."""
        factors = [x.id for i in np.flatnonzero(melted).tolist() for x in self.arguments[i].args]
        copies = 1 + melted
        value, user = np.repeat(self.ids, copies), np.repeat(self.user, copies)
        value[np.repeat(melted, copies)] = np.array(factors, np.int64) - self.least
        stays = self.stays(melted)
        new = (self.kinds[value] != _CONST) & stays[user]
        for back in range(1, np.bincount(user, minlength=1).max()):
            again = (value[back:] == value[:-back]) & (user[back:] == user[:-back])
            new[back:] &= ~again
        value, user = value[new], (np.cumsum(stays) - 1)[user[new]]
        return self._reads(self.made[stays], value, user)

    def _reads(self, made: np.ndarray, value: np.ndarray, user: np.ndarray) -> Reads:
        count = len(value)
        # sorted by value, and then by place
        which, place = np.divmod(np.sort(value * count + np.arange(count)), max(count, 1))
        later, first = np.full(count, NEVER), np.full(self.size, NEVER)
        same = which[1:] == which[:-1]
        later[place[:-1][same]] = place[1:][same]
        first[value[::-1]] = np.arange(count)[::-1]
        begin = np.searchsorted(user, np.arange(len(made) + 1))
        low = self.least
        return Reads(made + low, value + low, later, first[made], begin)

"""Scans on a card: a launch for each operation of a plan, one after the other.

Arrays are turned: an entry after the other, and in each all places, so that lanes that lie side by
side read what lies side by side.  Everything that is looked up is a table, made once.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ..emit.ptx.path_scan import LANES
from ..runtime.array_kinds import card_kind
from ..runtime.cache import digest
from ..runtime.device_arrays import DeviceArray
from ..runtime.device_calls import among
from ..runtime.driver import PER_THREAD, Card, driver
from ..runtime.gather import packed_copy
from ..runtime.path_scans import CardScan
from ..specialize.arrays import array_shape
from .scan_plan import Along, Each, Operation, Place, Places, Plan
from .scan_programs import Programs

if TYPE_CHECKING:
    from .front import Front

__all__ = ["OnCard", "places_on"]


def places_on(robot: Front) -> Places:
    """Where bodies are: as many lanes as all multiprocessors have, a block each."""
    backend: Any = robot._backend
    return Places(robot.mechanism, LANES * backend.card.multiprocessors, LANES)


# before the names of arrays as they come with a call
_GIVEN = "given "


def _brought(*x: Any) -> tuple[Any, ...]:
    """As they are."""
    return x


def _forgotten(card: Card, graph: int) -> None:
    driver().forget(card, graph)


class _Launch(NamedTuple):
    """A launch whose arguments are numbers, or the names of arrays that come with a call."""

    scan: CardScan
    values: list[int | str]
    lanes: int

    def start(self, addresses: Mapping[str, int], stream: int) -> None:
        """Launch; addresses: of the arrays that came."""
        values = [addresses[x] if isinstance(x, str) else x for x in self.values]
        self.scan.start(values, self.lanes, stream)

    @property
    def is_of_a_call(self) -> bool:
        """Whether there are such arrays."""
        return any(isinstance(x, str) for x in self.values)


@final
class OnCard:
    """A plan, carried out state by state."""

    def __init__(self, robot: Front, plan: Plan) -> None:
        self._robot, self._plan = robot, plan
        self._backend: Any = robot._backend
        self._made: dict[int, _Prepared] = {}
        self._own = _OfThread()
        self._known: set[Any] = set()
        self._lock = threading.Lock()

    def __call__(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """As in `Way`."""
        device, card, stream = self._backend.device, self._backend.card, PER_THREAD
        there = {n: DeviceArray.of(x, device, stream) for n, x in given.items()}
        shape = (self._robot.nv,)
        results = [
            DeviceArray.empty(shape, self._robot.dtype, card, stream) for _ in self._plan.results
        ]
        addresses = {n: x.address for n, x in there.items()}
        self._start(addresses, [x.address for x in results], stream)
        return [x.numpy() for x in results]

    def there(
        self, given: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> list[Any] | None:
        """As in `Way`, of arrays on the card; results are of the kind of the first."""
        device, dtype, values = self._backend.device, self._robot.dtype, list(given.values())
        kinds = {card_kind(x) for x in values}
        if None in kinds:
            return None
        kind, stream = among(values, device)
        # arrays like some before need not be looked at again
        signs = (kind, *map(kind.signature, values)) if kind.quick and len(kinds) == 1 else None
        if signs in self._known:
            addresses, used = [kind.address(x) for x in values], values
        else:
            used = [self._used(x, shapes[n], stream) for n, x in given.items()]
            if any(x is None for x in used):
                return None
            addresses = [x.address for x in used]
            if signs is not None and addresses == [kind.address(x) for x in values]:
                self._known.add(signs)
        shape = (self._robot.nv,)
        results = [kind.empty(shape, dtype, device, stream) for _ in self._plan.results]
        self._start(dict(zip(given, addresses, strict=True)), map(kind.address, results), stream)
        return [kind.given_back(x) for x in results]

    def _used(self, x: Any, shape: tuple[int, ...], stream: int) -> Any:
        """An array on the card as kernels take it, copied if need be; None if it does not fit."""
        kind: Any = card_kind(x)
        seen = kind.seen(x, stream)
        if seen is None or seen.shape != shape or seen.device != self._backend.device:
            return None
        fits = seen.dtype == self._robot.dtype and seen.is_packed
        return seen if fits else packed_copy(seen, self._robot.dtype, stream)

    def _start(self, given: Mapping[str, int], results: Iterable[int], stream: int) -> None:
        """All launches; what they work on belongs to the stream."""
        if not self._plan.operations:
            return
        made = self._own.made if stream == PER_THREAD else self._made
        with self._lock:
            if stream not in made:
                made[stream] = _Prepared(self._robot, self._plan, stream)
            addresses = {_GIVEN + n: x for n, x in given.items()}
            addresses |= dict(zip(self._plan.results, results, strict=True))
            made[stream].start(addresses)


class _OfThread(threading.local):
    """What a thread has prepared for its own default stream: its number is that of all threads'."""

    def __init__(self) -> None:
        self.made: dict[int, _Prepared] = {}


@final
class _Prepared:
    """The launches of a plan, and all arrays that they work on, for one stream.

    Those that are the same in every call are recorded as a graph of CUDA's and started as one.
    """

    def __init__(self, robot: Front, plan: Plan, stream: int) -> None:
        self._robot, self._plan, self._stream = robot, plan, stream
        self._backend: Any = robot._backend
        self._programs = Programs(float(np.finfo(robot.dtype).eps))
        arrays = {n: x for n, x in (plan.constant | plan.begun).items() if n not in plan.results}
        self._shapes = {n: x.shape for n, x in arrays.items()}
        self._arrays = {n: self._put(_turned(x), robot.dtype) for n, x in arrays.items()}
        for name in plan.external:
            size = prod(array_shape(plan.mech, name, {}))
            self._arrays[name] = self._room((size,), robot.dtype)
        self._tables: list[DeviceArray] = []
        scans = [x for x in plan.operations if isinstance(x, Along)]
        most = max((_totals(plan.places.levels[x.level].lanes) for x in scans), default=0)
        size = max((sum(x.size for x in scan.way.none) for scan in scans), default=0)
        self._totals = self._room((most, size), robot.dtype)
        self._flags = self._room((len(scans), most), np.dtype(np.int32))
        self._scans = 0
        self._brought = self._launch(self._bring())
        launches = [self._launch(x) for x in plan.operations]
        here = next((i for i, x in enumerate(launches) if x.is_of_a_call), len(launches))
        self._first, self._rest = launches[:here], launches[here:]
        self._graph: int | None = None

    def start(self, addresses: Mapping[str, int]) -> None:
        """What is given to where all find it, what was recorded, and the rest."""
        self._brought.start(addresses, self._stream)
        if self._graph is None:
            # from the second time on: by then all is compiled, and knows its launches
            self._all_first(self._stream)
            self._graph = driver().recorded(self._backend.card, self._all_first)
            weakref.finalize(self, _forgotten, self._backend.card, self._graph).atexit = False
        else:
            driver().replay(self._backend.card, self._graph, self._stream)
        for launch in self._rest:
            launch.start(addresses, self._stream)

    def _all_first(self, stream: int) -> None:
        """The launches that are the same in every call."""
        size = prod(self._flags.shape) * self._flags.dtype.itemsize
        driver().clear(self._backend.card, self._flags.address, size, stream)
        for launch in self._first:
            launch.start({}, stream)

    def _bring(self) -> Each:
        """Arrays that come with a call, to arrays that stay."""
        names = self._plan.external
        sizes = [self._arrays[n].shape[0] for n in names]
        number = np.arange(max(sizes))
        rows = [np.where(number < size, number, -1) for size in sizes]
        reads, writes = (
            [Place(kind + n, x) for n, x in zip(names, rows, strict=True)] for kind in (_GIVEN, "")
        )
        key = f"brought {len(names)}"
        return Each(_brought, dict.fromkeys(names, ()), reads, writes, key)

    def _put(self, x: np.ndarray, dtype: Any) -> DeviceArray:
        return DeviceArray.of(x.astype(dtype), self._backend.device, self._stream)

    def _room(self, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
        return DeviceArray.empty(shape, dtype, self._backend.card, self._stream)

    # launches

    def _launch(self, op: Operation) -> _Launch:
        reads = list(op.reads)
        writes = list(op.writes.values() if isinstance(op, Along) else op.writes)
        scan, values = self._code(op), list[int | str]()
        shapes = (*self._programs.shapes(op), *self._programs.ends(op))
        for x, shape in zip((*reads, *writes), shapes, strict=True):
            values += self._placed(x, shape)
        if isinstance(op, Each):
            count = len(op.writes[0].rows)  # pyright: ignore[reportArgumentType]
            return _Launch(scan, [*values, 0, count, count, 0, 0, 0, 0], count)
        level = self._plan.places.levels[op.level]
        longest = np.max(np.reshape(level.lengths, (-1, LANES)), axis=1)
        lengths = self._table_of(longest[::-1] if op.inward else longest)
        flags = self._flags.address + self._scans * self._flags.strides[0]
        self._scans += 1
        numbers = level.first, level.lanes, level.size, int(op.inward)
        rest = lengths, self._totals.address, flags
        return _Launch(scan, [*values, *numbers, *rest], level.lanes)

    def _code(self, op: Operation) -> CardScan:
        robot, programs = self._robot, self._programs
        key, make = programs.key(op), partial(programs.scan, op)
        name = (op.fn if isinstance(op, Each) else op.way.walk).__name__
        made = partial(CardScan, make, name, robot.dtype, self._backend)
        if key is None:
            return made(None)
        return robot._keep(("card scan", *key), lambda: made(digest("card scan", *key)))

    def _placed(self, x: Place, shape: tuple[int, ...]) -> list[int | str]:
        """Where an array is, and the distance of its entries or its table."""
        own = self._arrays.get(x.array)
        address = x.array if own is None else own.address
        if x.rows is None:
            return [address, self._plan.places.count]
        return [address, self._table_of(_table(x, shape, self._shapes.get(x.array)))]

    def _table_of(self, numbers: np.ndarray) -> int:
        """Where a table is put."""
        self._tables.append(self._put(numbers, np.int32))
        return self._tables[-1].address


def _turned(x: np.ndarray) -> np.ndarray:
    """Entry after entry, all rows in each."""
    return np.ascontiguousarray(x.reshape(len(x), -1).T)


def _table(x: Place, shape: tuple[int, ...], own: tuple[int, ...] | None) -> np.ndarray:
    """Of each entry of each sample its number in an array: (entries, samples).

    own: the shape of an array that is turned; None for one that comes as it is.
    """
    given: Any = x.rows
    count, each = len(given), prod(given.shape[1:])
    rows = given.reshape(count, each).T[:, None]
    # a joint may have no degree of freedom, and then it has no row
    width = prod(shape) // max(each, 1)
    entries = np.arange(width)[:, None]
    found = rows * width + entries if own is None else rows + own[0] * entries
    return np.where(rows < 0, -1, found).reshape(prod(shape), count)


def _totals(lanes: int) -> int:
    """How many elements the blocks of so many lanes hand on at most."""
    blocks = lanes // LANES
    return blocks * (blocks.bit_length() + 1)

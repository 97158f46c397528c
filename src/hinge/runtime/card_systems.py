"""Linear systems on a card (`graph/systems.py`): several kernels, some samples at a time.

Between them numbers lie in scratch: as many samples are taken at a time as keep the card busy, so
that scratch is no more for a larger batch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ..emit.ptx.launch import Launch
from .driver import Card, Function, driver
from .launcher import Launcher

if TYPE_CHECKING:
    from ..graph.systems import Systems

__all__ = ["SystemsLauncher", "is_systems", "packed_systems"]

_MARK = b"systems "
# samples taken at a time for each multiprocessor.  On an H200, Talos' ∂q̈ in float32, ns a state: 30
# with 256, 27 with 512 and with 1024
_AT_A_TIME = 512
# samples that warps take, and write to scratch whether they are there or not
_WHOLE = 32
# the scratch of a launch takes this part of a card's memory at most
_SHARE = 16
# what is in scratch: what comes before all, numbers of the factor, of the right-hand sides
_BEFORE, _FACTOR, _SIDES = range(3)


class _Piece(NamedTuple):
    """A kernel that comes before the systems are solved.

    area: which of those in scratch it writes, from number `first` of every sample on.
    takes: which arguments, the last of them what came before; code: how many bytes it has.
    """

    area: int
    first: int
    takes: tuple[int, ...]
    code: int


class _Head(NamedTuple):
    """What a launch has to know.

    columns: whether that is the layout; word: bytes of a number; inputs: how many arguments.
    rows: of each system; solutions: how many results; areas: numbers that a sample has in each.
    """

    columns: bool
    word: int
    inputs: int
    rows: int
    solutions: int
    areas: tuple[int, int, int]


def packed_systems(
    systems: Systems, columns: bool, word: int, compiled: Callable[[Any, int], bytes]
) -> bytes:
    """The code of all kernels.

    compiled: makes that of a program, with the numbers of a sample in the tiles of its result or 0;
    and that of the systems.
    """
    stages = [(_BEFORE, systems.before), (_FACTOR, systems.factor)]
    stages += [(_SIDES, stage) for stage in systems.sides]
    known = [(area, stage) for area, stage in stages if stage is not None]
    areas, pieces, codes = [0, 0, 0], [], []
    for area, stage in known:
        areas[area] += stage.program.output_sizes[0]
    done = [0, 0, 0]
    for area, stage in known:
        codes.append(compiled(stage.program, 0 if area == _BEFORE else areas[area]))
        pieces.append((area, done[area], stage.takes, len(codes[-1])))
        done[area] += stage.program.output_sizes[0]
    codes.append(compiled(systems, 0))
    inputs, outputs = len(systems.inputs), len(systems.outputs)
    head = columns, word, inputs, systems.rows, outputs, tuple(areas)
    return _MARK + repr((head, pieces)).encode() + b"\n" + b"".join(codes)


def is_systems(code: bytes) -> bool:
    """Whether that is what `packed_systems` gave."""
    return code.startswith(_MARK)


def at_a_time(card: Card, size: int) -> int:
    """How many samples of so many bytes of scratch are taken at a time."""
    fit = card.memory // _SHARE // max(size, 1) // _WHOLE * _WHOLE
    return max(_WHOLE, min(_AT_A_TIME * card.multiprocessors, fit))


@final
class SystemsLauncher:
    """The kernels, loaded, to be launched as one `Launcher` is."""

    def __init__(self, card: Card, code: bytes) -> None:
        self.card, self._driver = card, driver()
        text, _, rest = code.removeprefix(_MARK).partition(b"\n")
        head, pieces = ast.literal_eval(text.decode())
        self._head = head = _Head(*head)
        self._pieces: list[tuple[_Piece, Launcher]] = []
        for piece in (_Piece(*x) for x in pieces):
            own, rest = rest[: piece.code], rest[piece.code :]
            ends = 2 if head.columns and piece.area == _BEFORE else 1
            count = 2 * len(piece.takes) + ends + 2
            self._pieces.append((piece, Launcher(card, own, count)))
        count = (2 if head.columns else 1) * head.solutions + 2 + (head.areas[_SIDES] > 0)
        self._solver = Launcher(card, rest, count, scratch=False)
        self._size = head.word * sum(head.areas)
        self.samples, self.most = at_a_time(card, self._size), 1

    @property
    def launch(self) -> Launch:
        """Of the kernel that solves, with the scratch of all."""
        return self._solver.launch._replace(scratch=self.samples * self._size)

    @property
    def function(self) -> Function:
        """The kernel that solves, with the most registers and local bytes of any."""
        own = self._solver.function
        every = [own, *(kernel.function for _, kernel in self._pieces)]
        registers, local = max(f.registers for f in every), max(f.local_bytes for f in every)
        return Function(own.handle, own.blocks, registers, local)

    @property
    def address(self) -> int:
        """As in `Launcher`."""
        return self._driver.launch_address

    def told(self) -> str:
        """How launches are made, in words."""
        some = f"{self.samples} samples at a time by {len(self._pieces) + 1} kernels"
        words = [kernel.told() for _, kernel in self._pieces]
        return "; ".join([some, *words, f"the systems: {self._solver.told()}"])

    def blocks(self, samples: int) -> int:
        """Each kernel has its own."""
        return 1

    def start(self, values: Sequence[int], blocks: int, stream: int) -> None:
        """Launch all kernels for some samples after the others.  Nothing waits for the end."""
        samples = values[-1]
        some = min(-(-samples // _WHOLE) * _WHOLE, self.samples)
        # in the order of the stream: what comes after may have it
        room = self._driver.allocate(self.card, self._size * some, stream)
        try:
            areas = self._areas(room, some)
            for first in range(0, samples, some):
                self._some(values, first, min(some, samples - first), areas, stream)
        finally:
            self._driver.free(self.card, room, stream)

    def _areas(self, room: int, some: int) -> list[int]:
        """Where what is in scratch begins."""
        found = [room]
        for count in self._head.areas[:-1]:
            found.append(found[-1] + count * self._head.word * some)
        return found

    def _some(
        self, values: Sequence[int], first: int, count: int, areas: Sequence[int], stream: int
    ) -> None:
        """Launch all kernels for so many samples from the first on."""
        from ..emit.ptx.plan import TILE

        head, word, given = self._head, self._head.word, []
        for i in range(head.inputs):
            place, stride = values[2 * i : 2 * i + 2]
            given.append((place + first * (word if head.columns else stride), stride))
        apart = (count if head.columns else head.areas[_BEFORE]) * word
        given.append((areas[_BEFORE], apart))
        for piece, kernel in self._pieces:
            taken = [x for i in piece.takes for x in given[i]]
            taken.append(areas[piece.area] + piece.first * TILE * word)
            if head.columns and piece.area == _BEFORE:
                taken.append(apart)
            kernel.start((*taken, count), kernel.blocks(count), stream)
        numbers = areas[_FACTOR : _FACTOR + 1 + (head.areas[_SIDES] > 0)]
        ends = self._ends(values[2 * head.inputs : -1], first)
        self._solver.start((*numbers, *ends, count), self._solver.blocks(count), stream)

    def _ends(self, values: Sequence[int], first: int) -> list[int]:
        """Where results go, from a sample on."""
        word, n = self._head.word, self._head.rows
        if not self._head.columns:
            return [place + first * n * n * word for place in values]
        return [x + first * word * (1 - i % 2) for i, x in enumerate(values)]

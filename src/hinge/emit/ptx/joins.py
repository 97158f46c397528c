"""Two elements of a scan along paths to one: functions of a kernel, shared by the warps of a block.

Elements lie in shared memory, entry by entry, a column for each lane.  A join of one program has
its values dealt out to the warps; one in stages has slices that are alike, such as the columns of
matrices, one for each warp, by the same code: code for each takes longer to fetch than to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from ...graph.path_scan import Elements, Joined, Slices, dealt
from ...graph.program import Program
from ...graph.scalar import Node
from ...graph.schedule import ordered
from ..llvm.builder import Function, Value
from ..llvm.flavor import Flavor
from .staging import SHARED, moved
from .thread import ThreadBody

__all__ = ["CAME", "FEW", "LANES", "PITCH", "WARPS", "WHOLE", "Room", "by_warps", "entry_of"]
__all__ += ["stage_of", "whole_join", "written"]

# stretches of a block, warps that work at them, and how many of these share what is done once:
# more would be more code to fetch, which takes longer than to run it
LANES, WARPS, FEW = 32, 8, 4
# columns of a buffer: none, those of lanes, what came in, and all of the block
CAME, WHOLE, PITCH = LANES + 1, LANES + 2, LANES + 3
# and of what stages make
BETWEEN = LANES + 1
_CONSTANT = "ptr addrspace(4)"

Read = Callable[[int], Value]
Write = Callable[[int, Value], None]


class Room:
    """Shared memory, in bytes: two buffers, what stages make, constants."""

    def __init__(self, e: Elements, f: Flavor) -> None:
        self.element, joined = sum(e.sizes), isinstance(e.join, Joined)
        self.made = e.join.made + 1 if isinstance(e.join, Joined) else 0
        self.constants = len(e.join.constants) if isinstance(e.join, Joined) else 0
        # with a place for what is written for nothing
        self.buffer = PITCH * (self.element + joined) * f.word
        self.between = 2 * self.buffer
        self.constant = self.between + BETWEEN * self.made * f.word
        self.size = self.constant + self.constants * f.word


class _Part(ThreadBody):
    """Some values of a program, in the midst of a function."""

    def __init__(self, code: Function, f: Flavor, values: Sequence[Node], read: Read) -> None:
        self.flavor, self.code, self.read = f, code, read
        order = ordered(values).nodes
        self.names, self.written, self.angles = {}, {}, self.angles_of(order)
        for node in order:
            self.operation(node)

    def fetch(self, node: Node) -> str:
        """An input."""
        return self.read(node.value).name


def by_warps(
    code: Function,
    f: Flavor,
    warp: Value,
    program: Program,
    read: Read,
    write: Write,
    warps: int,
) -> None:
    """The values of a program, each by one of the first warps."""
    shares = dealt(program, warps)
    for k in code.cases(warp, [k for k, share in enumerate(shares) if share]):
        written(code, f, program, shares[k], read, write)


def written(
    code: Function, f: Flavor, program: Program, numbers: Sequence[int], read: Read, write: Write
) -> None:
    """Values of a program, written when all are there."""
    values = [program.values[i] for i in numbers]
    part = _Part(code, f, values, read)
    made = [Value(f.type, part.operand(node)) for node in values]
    for i, value in zip(numbers, made, strict=True):
        write(i, value)


def entry_of(code: Function, f: Flavor, column: Value, entry: int) -> Value:
    """Where an entry of a column of a buffer is."""
    return moved(code, column, entry * PITCH * f.word)


_COLUMNS = ("i", "j", "between", "constants", "out")


def _function(name: str) -> Function:
    """void name(i, j, between, constants, out, warp): from columns of buffers to one."""
    columns = (f"{SHARED} {x}" for x in _COLUMNS)
    return Function(name, "void", *columns, "i32 warp", attributes="#3")


def whole_join(program: Program, f: Flavor) -> str:
    """A join of one program, dealt out to the warps."""
    code = _function("join0")
    i, j, _, _, out, warp = code.parameters
    size = sum(program.output_sizes)

    def read(k: int) -> Value:
        which, entry = divmod(k, size)
        return code.load(f.type, entry_of(code, f, (i, j)[which], entry), f"align {f.word}")

    def write(k: int, value: Value) -> None:
        code.store(value, entry_of(code, f, out, k), f"align {f.word}")

    by_warps(code, f, warp, program, read, write, WARPS)
    return code.ret().text()


def stage_of(
    stage: Sequence[Slices], number: int, join: Joined, room: Room, f: Flavor
) -> Iterator[str]:
    """A stage of a join: slices after slices, a warp each; first the tables of where they are."""
    code, before = _function(f"join{number}"), 0
    pitch = PITCH if number == len(join.stages) - 1 else BETWEEN
    for k, slices in enumerate(stage):
        written = _Sliced(code, f, slices, room, f"slices{number}_{k}")
        yield written.table()
        # the first slice is for the warp after the one that had the last
        own = code.op("sub", code.parameters[-1], before % WARPS)
        own = code.op("and", own, WARPS - 1)
        with code.count(code.cast("zext", own, "i64"), len(slices.reads), WARPS) as loop:
            written.slice(loop.i, pitch)
        before += len(slices.reads)
    yield code.ret().text()


class _Sliced:
    """A program for several slices, each argument of which lies in even steps.

    A row of the table has for each argument the column that it is in, its first entry and its
    steps, in bytes, then the places of the values.
    """

    def __init__(self, code: Function, f: Flavor, slices: Slices, room: Room, name: str) -> None:
        self.code, self.f, self.slices, self.name = code, f, slices, name
        starts = np.cumsum([0, room.element, room.element, room.made - 1, room.constants])
        which = np.searchsorted(starts, slices.reads, "right") - 1
        pitches = np.array([PITCH, PITCH, BETWEEN, 1])[which] * f.word
        places, numbers = (slices.reads - starts[which]) * pitches, []
        self.arguments, at = [], 0
        for shape in slices.program.inputs:
            own = slice(at, at + prod(shape))
            place = places[:, own].reshape(-1, *shape)
            steps = [_step(place, axis) for axis in range(len(shape))]
            self.arguments.append((shape, len(numbers)))
            numbers += [which[:, at], place.reshape(len(place), -1)[:, 0], *steps]
            at = own.stop
        self.head, values = len(numbers), slices.writes.reshape(len(slices.writes), -1)
        self.rows = np.concatenate([np.array(numbers).T, values], axis=1)

    def table(self) -> str:
        """The numbers of all slices, in the memory of constants."""
        listed = ", ".join(f"i32 {x}" for x in self.rows.ravel())
        kind = f"[{self.rows.size} x i32]"
        return f"@{self.name} = internal addrspace(4) constant {kind} [{listed}]\n"

    def number(self, row: Value, k: int) -> Value:
        """A number of a row; where it is the same in all, that."""
        if len(set(self.rows[:, k])) == 1:
            return Value("i32", str(self.rows[0, k]))
        at = self.code.let(_CONSTANT, f"getelementptr i32, {row}, i64 {k}")
        return self.code.load("i32", at)

    def slice(self, number: Value, pitch: int) -> None:
        """One of them; pitch: of the columns that values go to."""
        code, f, program = self.code, self.f, self.slices.program
        *columns, out, _ = code.parameters
        at = code.op("mul", number, self.rows.shape[1])
        row = code.let(_CONSTANT, f"getelementptr i32, {_CONSTANT} @{self.name}, {at}")
        entries: list[Value] = []
        for shape, k in self.arguments:
            begin = moved(code, self.column(columns, self.number(row, k)), self.number(row, k + 1))
            steps = [self.number(row, k + 2 + axis) for axis in range(len(shape))]
            for index in np.ndindex(*shape):
                place = begin
                for step, i in zip(steps, index, strict=True):
                    place = moved(code, place, code.op("mul", step, int(i))) if i else place
                entries.append(place)

        def read(i: int) -> Value:
            return code.load(f.type, entries[i], f"align {f.word}")

        def write(i: int, value: Value) -> None:
            for copy in range(2):
                place = self.number(row, self.head + 2 * i + copy)
                where = moved(code, out, code.op("mul", place, pitch * f.word))
                code.store(value, where, f"align {f.word}")

        written(code, f, program, range(len(program.values)), read, write)

    def column(self, columns: Sequence[Value], which: Value) -> Value:
        """One of the columns, by its number."""
        code, found = self.code, columns[0]
        for k, column in enumerate(columns[1:], 1):
            found = code.select(code.compare("icmp eq", which, k), column, found)
        return found


def _step(places: np.ndarray, axis: int) -> np.ndarray:
    """From an entry to the next along an axis, of each slice; 0 if there is only one."""
    if places.shape[axis + 1] < 2:
        return np.zeros(len(places), int)
    others = [0] * (places.ndim - 1)
    first, second = (places[(slice(None), *others[:axis], i, *others[axis + 1 :])] for i in (0, 1))
    return second - first

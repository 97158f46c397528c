"""Scans along paths as one kernel: a lane a stretch, 32 to a block, and all blocks of it at once.

The warps of a block work at the same 32 stretches: values of a program are dealt out to them, and
each computes what its own need (where nothing is joined, a thread does a sample by itself).
Elements lie in shared memory, entry by entry, a column for each lane; before them the element of no
bodies, behind them one that came from another block and that of the whole block so far.  There are
two such buffers, since all lanes read before one writes.

Blocks hand elements on through global memory.  With `block` the number of one and len its bits,

    T(0, block) = that of its own;   T(s + 1, block) = join(T(s, block − 2ˢ), T(s, block))       (1)

as long as 2ˢ ≤ block, and T(len(block), block) is that of all up to it.  A flag for each says that
it is there; so all blocks must run at once, which a cooperative launch sees to.

`run` takes, in order,

    for everything given, then for each result:   pointer, i64 apart, or a pointer to its table
    i64 first, i64 lanes, i64 count, i64 inward
    pointers to lengths, to totals, to flags

Sample i = t · lanes + l, from 0 to count − 1, is number t of lane l.  Its entry e is at
first + i + e · apart of its array; or, by a table of i32, at table[e · count + i], and is 0 where
that is negative, or is not written.  Inward (1) the last lane comes first, and in each lane the
last.  Lengths, of i32, are of the longest stretch of each block.  Totals are rows of one element,
T(0, 0), T(0, 1), …; flags, as many i32, are 0 before the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod

from ...graph.path_scan import Elements, Joined, PathScan
from ...graph.program import Program
from ..llvm.builder import Function, Value, i64
from ..llvm.flavor import Flavor, number_text
from . import joins
from .joins import (
    CAME,
    LANES,
    PITCH,
    WHOLE,
    Room,
    by_warps,
    entry_of,
    stage_of,
    whole_join,
    written,
)
from .launch import HEAD, Launch
from .math import device_functions
from .staging import GLOBAL, SHARED, moved
from .thread import reciprocals, special, special_registers

__all__ = ["LANES", "path_scan_module"]

_CONSTANT = "ptr addrspace(4)"

_DECLARED = """@shared = external addrspace(3) global [0 x i8], align 16
declare void @llvm.nvvm.barrier0() #2
declare i64 @llvm.smin.i64(i64, i64)
attributes #2 = { convergent nounwind }
attributes #3 = { noinline nounwind }
"""
_ACQUIRE = 'call i32 asm sideeffect "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}"'
_RELEASE = 'call void asm sideeffect "st.release.gpu.global.u32 [$0], $1;", "l,r,~{memory}"'


def path_scan_module(scan: PathScan, scalar: str) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched."""
    f = Flavor(1, scalar, fused=True)
    e = scan.elements
    if e is None:
        return _module(f, [_Walk(scan, f, LANES).text()]), Launch(LANES, LANES)
    parts = [_numbers("none", [x for array in e.none for x in array.ravel()], scalar)]
    constants = e.join.constants if isinstance(e.join, Joined) else []
    parts.append(_numbers("constants", constants, scalar))
    room = Room(e, f)
    if isinstance(e.join, Joined):
        stages = enumerate(e.join.stages)
        parts += [x for k, stage in stages for x in stage_of(stage, k, e.join, room, f)]
    else:
        parts.append(whole_join(e.join, f))
    launch = Launch(LANES * joins.WARPS, LANES, room.size, cooperative=True)
    return _module(f, [*parts, _Scan(scan, e, room, f).text()]), launch


def _module(f: Flavor, parts: Sequence[str]) -> str:
    """The whole of it, with what its functions call."""
    functions = device_functions(f, "\n".join(parts))
    head = [HEAD, _DECLARED, special_registers(), reciprocals()]
    return "\n".join([*head, functions, *parts])


def _numbers(name: str, values: Iterable[float], scalar: str) -> str:
    """A table in the memory of constants."""
    listed = [f"{scalar} {number_text(float(x), scalar)}" for x in values]
    kind = f"[{len(listed)} x {scalar}]"
    return f"@{name} = internal addrspace(4) constant {kind} [{', '.join(listed)}]\n"


class _Walk:
    """The kernel of samples that have nothing to do with each other."""

    def __init__(self, scan: PathScan, f: Flavor, threads: int) -> None:
        self.scan, self.f = scan, f
        given = []
        for i, by_table in enumerate(scan.found):
            given += [f"{GLOBAL} array{i}", f"{GLOBAL} table{i}" if by_table else f"i64 apart{i}"]
        given += [f"i64 {x}" for x in ("first", "lanes", "count", "inward")]
        given += [f"{GLOBAL} {x}" for x in ("lengths", "totals", "flags")]
        bound = f'nounwind "nvvm.maxntid"="{threads}"'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {value.name[1:]: value for value in self.code.parameters}
        sizes = [prod(shape) for shape in scan.walk.inputs[scan.carried :]]
        # where each flat input is: which array, which entry
        self.where = [(a, e) for a, size in enumerate(sizes) for e in range(size)]
        ends = [prod(shape) for shape in scan.outputs]
        self.looked_up: dict[int, tuple[Value, Value]] = {}
        self.ends = [(len(sizes) + a, e) for a, size in enumerate(ends) for e in range(size)]

    def begun(self) -> None:
        """This thread's lane, warp and block."""
        code = self.code
        self.tid, self.block = special(code, "tid.x"), special(code, "ctaid.x")
        self.lane = code.op("and", self.tid, LANES - 1)
        self.warp = code.cast("trunc", code.op("lshr", self.tid, 5), "i32")
        position = code.op("add", code.op("mul", self.block, LANES), self.lane)
        self.inward = code.compare("icmp ne", self.given["inward"], 0)
        backward = code.op("sub", code.op("sub", self.given["lanes"], 1), position)
        self.position = code.select(self.inward, backward, position)

    def text(self) -> str:
        """The function."""
        self.begun()
        self.at_number(i64(0))
        with self.code.when(self.code.compare("icmp slt", self.sample, self.given["count"])):
            numbers = range(len(self.scan.walk.values))
            # all at once, since no load goes before a store
            tables = {i: x for i, x in enumerate(self.ends) if self.scan.found[x[0]]}
            self.looked_up = {i: self.index(*x) for i, x in tables.items()}
            written(self.code, self.f, self.scan.walk, numbers, self.read, self.write)
        return self.code.ret().text()

    # arrays

    def at_number(self, t: Value) -> None:
        """From now on it is about number t of the stretch."""
        code, given = self.code, self.given
        self.sample = code.op("add", code.op("mul", t, given["lanes"]), self.position)
        self.place = code.op("add", given["first"], self.sample)

    def address(self, array: int, entry: int) -> Value:
        """Where an entry is that is in its place."""
        code, apart = self.code, self.given[f"apart{array}"]
        at = code.op("add", self.place, code.op("mul", apart, entry))
        return self.number(self.given[f"array{array}"], at)

    def number(self, array: Value, at: Value) -> Value:
        """The address of a number of an array."""
        return moved(self.code, array, self.code.op("mul", at, self.f.word))

    def index(self, array: int, entry: int) -> tuple[Value, Value]:
        """What a table says of an entry, and whether it is none."""
        code = self.code
        at = code.op("add", code.op("mul", self.given["count"], entry), self.sample)
        where = moved(code, self.given[f"table{array}"], code.op("mul", at, 4))
        index = code.cast("sext", code.load("i32", where), "i64")
        return index, code.compare("icmp slt", index, 0)

    def read(self, i: int) -> Value:
        """Flat input i of what is given."""
        code, f, (array, entry) = self.code, self.f, self.where[i]
        if not self.scan.found[array]:
            return code.load(f.type, self.address(array, entry))
        index, none = self.index(array, entry)
        index = code.select(none, i64(0), index)
        value = code.load(f.type, self.number(self.given[f"array{array}"], index))
        return code.select(none, f.value(0.0), value)

    def write(self, i: int, value: Value) -> None:
        """Entry i of the results."""
        code, (array, entry) = self.code, self.ends[i]
        if not self.scan.found[array]:
            code.store(value, self.address(array, entry))
            return
        index, none = self.looked_up.pop(i, None) or self.index(array, entry)
        with code.when(code.op("xor", none, 1)):
            code.store(value, self.number(self.given[f"array{array}"], index))


class _Scan(_Walk):
    """The kernel of stretches that are joined; size: of an element."""

    def __init__(self, scan: PathScan, elements: Elements, room: Room, f: Flavor) -> None:
        _Walk.__init__(self, scan, f, LANES * joins.WARPS)
        self.elements, self.size = elements, sum(elements.sizes)
        starts = list(accumulate(elements.sizes, initial=0))
        # where the numbers that a walk carries are in an element
        self.reach = [e for a in elements.enters for e in range(starts[a], starts[a + 1])]
        self.room = room

    def text(self) -> str:
        """The function."""
        code = self.code
        self.begun()
        self.base = code.let(SHARED, f"getelementptr i8, {SHARED} @shared, i32 0")
        self.own = code.op("add", self.lane, 1)
        where = moved(code, self.given["lengths"], code.op("mul", self.block, 4))
        length = code.cast("zext", code.load("i32", where), "i64")
        # blocks of no stretches take a step along nothing
        least = code.compare("icmp eq", length, 0)
        self.length = code.select(least, i64(1), length)
        with code.count(self.tid, self.size, LANES * joins.WARPS) as loop:
            for now in (0, 1):
                code.store(self.none(loop.i), self.at(i64(now), loop.i, i64(0)))
        with code.count(self.tid, self.room.constants, LANES * joins.WARPS) as loop:
            inner = code.cast("trunc", self.bytes(loop.i), "i32")
            where = moved(code, moved(code, self.base, self.room.constant), inner)
            code.store(self.constant("constants", loop.i), where)
        now = self.swept()
        now = self.joined_lanes(now)
        self.joined_blocks(now)
        self.entered(now)
        self.walked(code.op("xor", now, 1))
        return code.ret().text()

    # shared memory

    def barrier(self) -> None:
        """All threads of the block come here before one goes on."""
        self.code.do("call void @llvm.nvvm.barrier0() #2")

    def column(self, now: Value, number: Value) -> Value:
        """A column of one of the buffers."""
        at = self.code.op("add", self.code.op("mul", now, self.room.buffer), self.bytes(number))
        return moved(self.code, self.base, self.code.cast("trunc", at, "i32"))

    def bytes(self, numbers: Value) -> Value:
        """So many numbers, in bytes."""
        return self.code.op("mul", numbers, self.f.word)

    def at(self, now: Value, entry: Value, column: Value) -> Value:
        """An entry of a column, by a number that is known when it runs."""
        inner = self.bytes(self.code.op("mul", entry, PITCH))
        return moved(self.code, self.column(now, column), self.code.cast("trunc", inner, "i32"))

    def none(self, entry: Value) -> Value:
        """An entry of the element of no bodies."""
        return self.constant("none", entry)

    def constant(self, name: str, entry: Value) -> Value:
        """An entry of a table of numbers."""
        kind = self.f.type
        where = self.code.let(_CONSTANT, f"getelementptr {kind}, {_CONSTANT} @{name}, {entry}")
        return self.code.load(kind, where)

    # the parts of a scan; now: the number of the buffer that holds elements

    def body(self, program: Program, now: Value, states: Sequence[int], into: Value) -> None:
        """A program on a body: states, by their entries, from a buffer to the other."""
        code, f, given = self.code, self.f, len(states)
        source, goal = self.column(now, self.own), self.column(into, self.own)

        def read(i: int) -> Value:
            if i >= given:
                return self.read(i - given)
            return code.load(f.type, entry_of(code, f, source, states[i]))

        def write(i: int, value: Value) -> None:
            if i >= len(states or range(self.size)):
                self.write(i - given, value)
            else:
                code.store(value, entry_of(code, f, goal, states[i] if states else i))

        by_warps(code, f, self.warp, program, read, write, joins.FEW)
        self.barrier()

    def at_step(self, t: Value) -> None:
        """Number t on the way."""
        code = self.code
        backward = code.op("sub", code.op("sub", self.length, 1), t)
        self.at_number(code.select(self.inward, backward, t))

    def swept(self) -> Value:
        """Each stretch to an element."""
        code, all_of_them = self.code, range(self.size)
        self.at_step(i64(0))
        self.body(self.elements.begin, i64(0), (), i64(0))
        with code.count(1, self.length, carried=[i64(0)]) as loop:
            now, into = loop.carried[0], code.op("xor", loop.carried[0], 1)
            self.at_step(loop.i)
            self.body(self.elements.extend, now, all_of_them, into)
            loop.next = [into]
        return loop.carried[0]

    def joined(self, i: Value, j: Value, out: Value) -> None:
        """Two columns to one."""
        code, join = self.code, self.elements.join
        between = moved(code, self.base, self.room.between)
        between = moved(code, between, code.cast("trunc", self.bytes(self.lane), "i32"))
        constants = moved(code, self.base, self.room.constant)
        last = len(join.stages) - 1 if isinstance(join, Joined) else 0
        for k in range(last + 1):
            goal = out if k == last else between
            code.call(f"join{k}", i, j, between, constants, goal, self.warp)
            self.barrier()

    def joined_lanes(self, now: Value) -> Value:
        """Each element with all before it in the block."""
        code = self.code
        with code.loop(i64(1), now) as loop:
            reach, now = loop.carried
            code.leave(loop, code.compare("icmp sge", reach, LANES))
            into, before = code.op("xor", now, 1), code.op("sub", self.own, reach)
            before = code.select(code.compare("icmp slt", before, 0), i64(0), before)
            columns = (now, before), (now, self.own), (into, self.own)
            self.joined(*(self.column(*x) for x in columns))
            loop.next = [code.op("add", reach, reach), into]
        return loop.carried[1]

    def joined_blocks(self, now: Value) -> None:
        """That of the block with all before it (1)."""
        code, one = self.code, i64(1)
        with code.count(self.tid, self.size, LANES * joins.WARPS) as loop:
            value = code.load(self.f.type, self.at(now, loop.i, i64(LANES)))
            code.store(value, self.at(i64(0), loop.i, i64(WHOLE)))
        self.handed_on(i64(0), i64(0))
        with code.loop(i64(0), i64(0)) as loop:
            s, now = loop.carried
            reach = code.op("shl", one, s)
            code.leave(loop, code.compare("icmp sgt", reach, self.block))
            before = code.op("sub", self.block, reach)
            self.awaited(before, code.least(s, self.bits(before)))
            s, into = code.op("add", s, 1), code.op("xor", now, 1)
            columns = (i64(0), i64(CAME)), (now, i64(WHOLE)), (into, i64(WHOLE))
            self.joined(*(self.column(*x) for x in columns))
            self.handed_on(s, into)
            loop.next = [s, into]

    def entered(self, now: Value) -> None:
        """What all before a stretch do, into the other buffer."""
        code = self.code
        first = code.compare("icmp eq", self.block, 0)
        with code.when(first), code.count(self.tid, self.size, LANES * joins.WARPS) as loop:
            code.store(self.none(loop.i), self.at(i64(0), loop.i, i64(CAME)))
        with code.when(code.op("xor", first, 1)):
            before = code.op("sub", self.block, 1)
            self.awaited(before, self.bits(before))
        self.barrier()
        columns = (i64(0), i64(CAME)), (now, self.lane), (code.op("xor", now, 1), self.own)
        self.joined(*(self.column(*x) for x in columns))

    def walked(self, now: Value) -> None:
        """Along the stretch once more."""
        code = self.code
        with code.count(0, self.length, carried=[now]) as loop:
            now, into = loop.carried[0], code.op("xor", loop.carried[0], 1)
            self.at_step(loop.i)
            self.body(self.scan.walk, now, self.reach, into)
            loop.next = [into]

    # from block to block

    def bits(self, number: Value) -> Value:
        """How many bits a number has."""
        zeros = self.code.call("llvm.ctlz.i64", number, Value("i1", "false"), result="i64")
        return self.code.op("sub", i64(64), zeros)

    def total(self, s: Value, block: Value) -> Value:
        """The number of T(s, block)."""
        blocks = self.code.op("lshr", self.given["lanes"], 5)
        return self.code.op("add", self.code.op("mul", s, blocks), block)

    def handed_on(self, s: Value, now: Value) -> None:
        """T(s, block), from a buffer."""
        code, number = self.code, self.total(s, self.block)
        with code.count(self.tid, self.size, LANES * joins.WARPS) as loop:
            value = code.load(self.f.type, self.at(now, loop.i, i64(WHOLE)))
            code.store(value, self.total_entry(number, loop.i))
        self.barrier()
        with code.when(code.compare("icmp eq", self.tid, 0)):
            code.do(f"{_RELEASE}({self.flag(number)}, i32 1)")

    def awaited(self, block: Value, s: Value) -> None:
        """T(s, block), into the first buffer."""
        code, number = self.code, self.total(s, block)
        with code.when(code.compare("icmp eq", self.tid, 0)), code.loop() as loop:
            there = code.let("i32", f"{_ACQUIRE}({self.flag(number)})")
            code.leave(loop, code.compare("icmp ne", there, 0))
        self.barrier()
        with code.count(self.tid, self.size, LANES * joins.WARPS) as loop:
            value = code.load(self.f.type, self.total_entry(number, loop.i))
            code.store(value, self.at(i64(0), loop.i, i64(CAME)))
        self.barrier()

    def total_entry(self, number: Value, entry: Value) -> Value:
        """Where an entry of a total is."""
        at = self.code.op("add", self.code.op("mul", number, self.size), entry)
        return self.number(self.given["totals"], at)

    def flag(self, number: Value) -> Value:
        """Where the flag of a total is."""
        return moved(self.code, self.given["flags"], self.code.op("mul", number, 4))

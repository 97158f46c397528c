"""Tiles: rows [sample][entry] to vectors over the samples and back, 8 × 8 (16 × 16) at a time.

Samples past the end of a batch are clamped to its last one, which is then computed, and written,
several times: nothing is read or written out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache

from .builder import Function, Loop, Value, i64
from .flavor import Flavor

__all__ = ["pack", "row_sums", "sums", "tiles", "unpack"]

# the parameters of what moves a tile: rows, the samples of the tile, its vectors, how many of them
_TILE = ("ptr base", "i64 stride", "i64 b", "i64 end", "ptr noalias tile", "i64 n")


@lru_cache(maxsize=8)
def tiles(f: Flavor) -> str:
    """`pack` and `unpack`.

    Both also add up all that passes, in any order: if the sum is finite, so is everything.
    """
    masked = f"""declare {f.type} @llvm.masked.load.{f.suffix}.p0(ptr, i32, {f.truth}, {f.type})
declare void @llvm.masked.store.{f.suffix}.p0({f.type}, ptr, i32, {f.truth})
"""
    return "\n".join([masked, pack(f), unpack(f)])


def pack(f: Flavor) -> str:
    """Rows of n entries into n vectors over the samples: full blocks, then a masked one."""
    code = Function(f"pack_{f.name}", f.type, *_TILE, f"{f.type} start", attributes="noinline #1")
    *_, tile, n, start = code.parameters
    rows = _rows(code, f)
    with _blocks(code, f, n, start) as loop:
        places = [code.at(row, loop.i, f.scalar) for row in rows]
        columns = _transposed(code, f, [_halves_at(code, f, p, f.word) for p in places])
        loop.next = [_added(code, loop.carried[0], columns)]
        first = code.at(tile, loop.i, f.type)
        for k, column in enumerate(columns):
            code.store(column, code.at(first, k, f.type), f"align {f.bytes}")
    rest = code.op("sub", n, loop.i)
    with code.when(code.compare("icmp sgt", rest, 0)):
        mask = _mask(code, f, rest)
        places = [code.at(row, loop.i, f.scalar) for row in rows]
        columns = [_masked_load(code, f, place, mask) for place in places]
        columns = _transposed(code, f, [_halves_of(code, f, x) for x in columns])
        first = code.at(tile, loop.i, f.type)
        with ExitStack() as left:
            for k, column in enumerate(columns):
                left.enter_context(code.when(code.compare("icmp sgt", rest, k)))
                code.store(column, code.at(first, k, f.type), f"align {f.bytes}")
        code.ret(_added(code, loop.carried[0], columns))
    return code.ret(loop.carried[0]).text()


def unpack(f: Flavor, name: str = "unpack", stored: str = "") -> str:
    """Vectors over the samples into rows of n entries; the index says which vector is which.

    stored: how whole vectors are, if not like numbers.
    """
    given = *_TILE, "ptr index", f"{f.type} start"
    code = Function(f"{name}_{f.name}", f.type, *given, attributes="noinline #1")
    *_, n, _, start = code.parameters
    rows = _rows(code, f)
    with _blocks(code, f, n, start) as loop:
        places = [code.op("add", loop.i, k) for k in range(f.lanes)]
        columns = _transposed(code, f, [_indexed(code, f, place) for place in places])
        loop.next = [_added(code, loop.carried[0], columns)]
        for row, column in zip(rows, columns, strict=True):
            where = code.at(row, loop.i, f.scalar)
            code.store(column, where, stored or f"align {f.word}")
    rest = code.op("sub", n, loop.i)
    with code.when(code.compare("icmp sgt", rest, 0)):
        mask = _mask(code, f, rest)
        halves = []
        for k in range(f.lanes):
            # past the last entry the first is read again: the mask keeps it from being written
            there = code.compare("icmp sgt", rest, k)
            chosen = code.let("i64", f"select {there}, i64 {k}, i64 0")
            halves.append(_indexed(code, f, code.op("add", loop.i, chosen)))
        columns = _transposed(code, f, halves)
        for row, column in zip(rows, columns, strict=True):
            where, word = code.at(row, loop.i, f.scalar), Value("i32", str(f.word))
            code.call(f"llvm.masked.store.{f.suffix}.p0", column, where, word, mask)
        code.ret(_added(code, loop.carried[0], columns))
    return code.ret(loop.carried[0]).text()


def _blocks(code: Function, f: Flavor, n: Value, start: Value) -> AbstractContextManager[Loop]:
    """The loop over whole blocks of n entries, with the sum so far."""
    return code.count(0, code.op("sub", n, f.lanes - 1), f.lanes, [start])


def _rows(code: Function, f: Flavor) -> list[Value]:
    """The address of every sample of a tile, those past the end clamped to the last."""
    base, stride, b, end, *_ = code.parameters
    last, rows = code.op("sub", end, 1), []
    for lane in range(f.lanes):
        sample = code.least(code.op("add", b, lane), last)
        rows.append(code.at(base, code.op("mul", sample, stride)))
    return rows


def _indexed(code: Function, f: Flavor, entry: Value) -> tuple[Value, Value]:
    """The halves of the vector that the index names for an entry."""
    tile, index = code.parameters[4], code.parameters[6]
    number = code.cast("zext", code.entry("i32", index, entry), "i64")
    return _halves_at(code, f, code.at(tile, number, f.type), f.bytes // 2)


def _added(code: Function, total: Value, vectors: Sequence[Value]) -> Value:
    """The vectors of a block added to the sum so far, in pairs."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [code.op("fadd", a, b) for a, b in pairs]
    return code.op("fadd", total, vectors[0])


def _mask(code: Function, f: Flavor, rest: Value) -> Value:
    """Which lanes are among the first `rest`."""
    whole = f"<{f.lanes} x i64>"
    first = code.let(whole, f"insertelement {whole} poison, {rest}, i32 0")
    zeros = f"<{f.lanes} x i32> zeroinitializer"
    all_rest = code.let(whole, f"shufflevector {first}, {whole} poison, {zeros}")
    lanes = ", ".join(f"i64 {k}" for k in range(f.lanes))
    return code.compare("icmp slt", Value(whole, f"<{lanes}>"), all_rest)


def _masked_load(code: Function, f: Flavor, where: Value, mask: Value) -> Value:
    """Numbers where the mask has them, zeros elsewhere."""
    word, zeros = Value("i32", str(f.word)), Value(f.type, "zeroinitializer")
    return code.call(f"llvm.masked.load.{f.suffix}.p0", where, word, mask, zeros, result=f.type)


def _halves_at(code: Function, f: Flavor, where: Value, align: int) -> tuple[Value, Value]:
    """The halves of a vector in memory."""
    half = f"<{f.lanes // 2} x {f.scalar}>"
    low = code.load(half, where, f"align {align}")
    return low, code.load(half, code.at(where, f.bytes // 2), f"align {align}")


def _halves_of(code: Function, f: Flavor, x: Value) -> tuple[Value, Value]:
    """The halves of a vector."""
    half, nothing = f.lanes // 2, Value(f.type, "poison")
    low = _shuffled(code, f, x, nothing, range(half))
    return low, _shuffled(code, f, x, nothing, range(half, f.lanes))


def _transposed(code: Function, f: Flavor, rows: Sequence[tuple[Value, Value]]) -> list[Value]:
    """The columns of a block, whose rows come in halves.

    Butterflies: at each level, halves of pairs of rows are exchanged.  First come the largest
    halves, which are loaded to where they belong: no exchange is needed, and of 24 shuffles of
    eight lanes, which wait for one another, 16 are left.
    """
    n, half = f.lanes, f.lanes // 2
    vectors = []
    for i in range(n):
        part, low = divmod(i, half)
        pair = rows[low][part], rows[low + half][part]
        vectors.append(_shuffled(code, f, *pair, range(n)))
    while half > 1:
        half //= 2
        low = [c if not c & half else n + (c & ~half) for c in range(n)]
        high = [(c | half) if not c & half else n + c for c in range(n)]
        for i in (i for i in range(n) if not i & half):
            pair = vectors[i], vectors[i | half]
            vectors[i] = _shuffled(code, f, *pair, low)
            vectors[i | half] = _shuffled(code, f, *pair, high)
    return vectors


def _shuffled(code: Function, f: Flavor, a: Value, b: Value, picks: Sequence[int]) -> Value:
    """The lanes of two vectors that are picked."""
    kind, mask = f"<{len(picks)} x {f.scalar}>", ", ".join(f"i32 {p}" for p in picks)
    return code.let(kind, f"shufflevector {a}, {b}, <{len(picks)} x i32> <{mask}>")


# whether numbers are finite: the bits of x − x are all 0, and only then


@lru_cache(maxsize=8)
def sums(f: Flavor) -> str:
    """Two loops over n values: the bits of all x − x gathered, and a number taken from each.

    That is NaN, or 0, which leaves each as it is: added to −0 it would give +0.
    """
    gather = Function(f"gather_{f.name}", f.bits, "ptr x", "i64 n", f"{f.bits} start")
    x, n, start = gather.parameters
    with gather.count(0, n, carried=[start]) as loop:
        value = gather.entry(f.type, x, loop.i)
        loop.next = [_gathered(gather, f, value, loop.carried[0])]
    gather.ret(loop.carried[0])
    take = Function(f"take_away_{f.name}", "void", "ptr x", "i64 n", f"{f.type} a")
    x, n, a = take.parameters
    with take.count(0, n) as loop:
        where = take.at(x, loop.i, f.type)
        take.store(take.op("fsub", take.load(f.type, where), a), where)
    return gather.text() + take.ret().text()


@lru_cache(maxsize=8)
def row_sums(f: Flavor) -> str:
    """Whether any bits are set, and the bits of x − x of n numbers gathered, many at a time."""
    attributes = "alwaysinline #1"
    spoilt = Function(f"spoilt_{f.name}", "i1", f"{f.bits} b", attributes=attributes)
    some = spoilt.compare("icmp ne", spoilt.parameters[0], f.pattern(0))
    spoilt.ret(spoilt.call(f"llvm.vector.reduce.or.v{f.lanes}i1", some, result="i1"))
    row = Function(f"gather_row_{f.name}", f.bits, "ptr x", "i64 n", f"{f.bits} start")
    x, n, start = row.parameters
    with row.loop(i64(0), start) as loop:
        j, bits = loop.carried
        rest = row.op("sub", n, j)
        row.leave(loop, row.compare("icmp sle", rest, 0))
        value = _masked_load(row, f, row.at(x, j, f.scalar), _mask(row, f, rest))
        loop.next = [row.op("add", j, f.lanes), _gathered(row, f, value, bits)]
    return spoilt.text() + row.ret(bits).text()


def _gathered(code: Function, f: Flavor, x: Value, bits: Value) -> Value:
    """The bits of x − x with those gathered before."""
    return code.op("or", bits, code.cast("bitcast", code.op("fsub", x, x), f.bits))

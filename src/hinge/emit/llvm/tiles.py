"""Tiles: rows [sample][entry] to vectors over the samples and back, 8 × 8 (16 × 16) at a time.

Samples past the end of a batch are clamped to its last one, which is then computed, and written,
several times: nothing is read or written out of bounds.
"""

from __future__ import annotations

from ..layout import Layout
from .body import Flavor

__all__ = ["finite", "finite_sum", "row_sums", "sums", "tiles", "unpack"]


def tiles(f: Flavor) -> str:
    """`pack`, `unpack` and the transposition they share.

    Both also add up all that passes, in any order: if the sum is finite, so is everything.
    """
    return "\n".join([_pack(f), unpack(f), _transpose(f)])


def finite(layout: Layout, f: Flavor) -> tuple[list[str], str]:
    """Lines that tell of one sample, its numbers next to each other, whether all are finite.

    They gather the bits of x − x over all arguments and values, so many lanes at a time.
    """
    arrays = [(f"in{i}", size) for i, size in enumerate(layout.program.input_sizes)]
    lines, total = [], f.word(0)
    for name, size in [*arrays, ("out", layout.varying)]:
        call = f"call {f.bits} @gather_row_{f.name}(ptr %{name}, i64 {size}, {f.bits} {total})"
        lines.append(f"  %total_{name} = {call}")
        total = f"%total_{name}"
    lines.append(f"  %total = call i1 @spoilt_{f.name}({f.bits} {total})")
    lines.append("  %finite = xor i1 %total, true")
    return lines, "%finite"


def finite_sum(layout: Layout, f: Flavor) -> tuple[list[str], str]:
    """Lines that gather the bits of x − x over all arguments and values: 0 only if all are finite.

    The name they leave is a number, 0 or NaN.
    """
    arrays = [(f"in{i}", size) for i, size in enumerate(layout.program.input_sizes)]
    lines, total = [], f.word(0)
    for name, size in [*arrays, ("out", layout.varying)]:
        call = f"call {f.bits} @gather_{f.name}(ptr %{name}, i64 {size}, {f.bits} {total})"
        lines.append(f"  %total_{name} = {call}")
        total = f"%total_{name}"
    lines.append(f"  %total = bitcast {f.bits} {total} to {f.type}")
    return lines, "%total"


def sums(f: Flavor) -> str:
    """Two loops over n values: the bits of all x − x gathered, and a number added to each."""
    t, bits = f.type, f.bits
    return f"""define internal {bits} @gather_{f.name}(ptr %x, i64 %n, {bits} %start) #1 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %s = phi {bits} [ %start, %entry ], [ %sn, %more ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
  %p = getelementptr {t}, ptr %x, i64 %j
  %v = load {t}, ptr %p
  %z = fsub {t} %v, %v
  %b = bitcast {t} %z to {bits}
  %sn = or {bits} %s, %b
  %jn = add i64 %j, 1
  br label %head
done:
  ret {bits} %s
}}
define internal void @add_{f.name}(ptr %x, i64 %n, {t} %a) #1 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
  %p = getelementptr {t}, ptr %x, i64 %j
  %v = load {t}, ptr %p
  %s = fadd {t} %v, %a
  store {t} %s, ptr %p
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
"""


def row_sums(f: Flavor) -> str:
    """Whether any bits are set, and the bits of x − x of n numbers gathered, many at a time."""
    t, bits, word, n = f.type, f.bits, f.bytes // f.lanes, f.lanes
    load = f"call {t} @llvm.masked.load.{f.suffix}.p0(ptr %p, i32 {word}, {f.truth} %mask, {t}"
    return f"""define internal i1 @spoilt_{f.name}({bits} %b) alwaysinline #1 {{
  %some = icmp ne {bits} %b, {f.word(0)}
  %any = call i1 @llvm.vector.reduce.or.v{n}i1({f.truth} %some)
  ret i1 %any
}}
define internal {bits} @gather_row_{f.name}(ptr %x, i64 %n, {bits} %start) #1 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %s = phi {bits} [ %start, %entry ], [ %sn, %more ]
  %rest = sub i64 %n, %j
  %some = icmp sgt i64 %rest, 0
  br i1 %some, label %more, label %done
more:
{_mask(f)}
  %p = getelementptr {f.scalar}, ptr %x, i64 %j
  %v = {load} zeroinitializer)
  %z = fsub {t} %v, %v
  %b = bitcast {t} %z to {bits}
  %sn = or {bits} %s, %b
  %jn = add i64 %j, {n}
  br label %head
done:
  ret {bits} %s
}}
"""


def _mask(f: Flavor) -> str:
    """Lines that name the mask of the first `rest` lanes."""
    n = f.lanes
    steps = ", ".join(f"i64 {k}" for k in range(n))
    return f"""  %r0_ = insertelement <{n} x i64> poison, i64 %rest, i32 0
  %rs = shufflevector <{n} x i64> %r0_, <{n} x i64> poison, <{n} x i32> zeroinitializer
  %mask = icmp slt <{n} x i64> <{steps}>, %rs"""


def _rows(f: Flavor) -> str:
    """The address of every sample of a tile, those past the end clamped to the last."""
    lines = ["  %last = sub i64 %end, 1"]
    for l in range(f.lanes):
        lines.append(f"  %i{l} = add i64 %b, {l}")
        lines.append(f"  %c{l} = call i64 @llvm.smin.i64(i64 %i{l}, i64 %last)")
        lines.append(f"  %o{l} = mul i64 %c{l}, %stride")
        lines.append(f"  %row{l} = getelementptr i8, ptr %base, i64 %o{l}")
    return "\n".join(lines)


def _pack(f: Flavor) -> str:
    """Rows of n entries into n vectors over the samples: full blocks, then a masked one."""
    n, t, word = f.lanes, f.type, f.bytes // f.lanes
    full = [f"  %p{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    full += [line for l in range(n) for line in _halves_at(f, f"%p{l}", f"r{l}", word)]
    full += _call_transpose(f, "r", "t") + _added(f, "t", "sn")
    for k in range(n):
        full.append(f"  %q{k} = getelementptr {t}, ptr %tile0, i64 {k}")
        full.append(f"  store {t} %t{k}, ptr %q{k}, align {f.bytes}")
    masked = [f"  %mp{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    call = f"call {t} @llvm.masked.load.{f.suffix}.p0(ptr"
    masked += [
        f"  %mr{l} = {call} %mp{l}, i32 {word}, {f.truth} %mask, {t} zeroinitializer)"
        for l in range(n)
    ]
    masked += [line for l in range(n) for line in _halves_of(f, f"mr{l}")]
    masked += _call_transpose(f, "mr", "mt") + _added(f, "mt", "sm")
    for k in range(n):
        masked.append(f"  %left{k} = icmp slt i64 {k}, %rest")
        masked.append(f"  br i1 %left{k}, label %put{k}, label %leave\nput{k}:")
        masked.append(f"  %mq{k} = getelementptr {t}, ptr %tile0, i64 {k}")
        masked.append(f"  store {t} %mt{k}, ptr %mq{k}, align {f.bytes}")
    return _loop(f, "pack", full, masked)


def unpack(f: Flavor, name: str = "unpack", past: str = "") -> str:
    """Vectors over the samples into rows of n entries; the index says which vector is which.

    past: how whole vectors are stored, besides.
    """
    n, t, word = f.lanes, f.type, f.bytes // f.lanes
    full = []
    for k in range(n):
        full += _indexed(f, k, f"%jk{k}", "", [f"  %jk{k} = add i64 %j, {k}"])
    full += _call_transpose(f, "t", "r") + _added(f, "r", "sn")
    full += [f"  %p{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    full += [f"  store {t} %r{l}, ptr %p{l}, {past or f'align {word}'}" for l in range(n)]
    masked = []
    for k in range(n):
        # past the last entry the first is read again: the mask keeps it from being written
        choose = [f"  %left{k} = icmp slt i64 {k}, %rest"]
        choose.append(f"  %k{k} = select i1 %left{k}, i64 {k}, i64 0")
        choose.append(f"  %mjk{k} = add i64 %j, %k{k}")
        masked += _indexed(f, k, f"%mjk{k}", "m", choose)
    masked += _call_transpose(f, "mt", "mr") + _added(f, "mr", "sm")
    masked += [f"  %mp{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    call = f"call void @llvm.masked.store.{f.suffix}.p0({t}"
    masked += [f"  {call} %mr{l}, ptr %mp{l}, i32 {word}, {f.truth} %mask)" for l in range(n)]
    return _loop(f, name, full, masked, ", ptr %index")


def _indexed(f: Flavor, k: int, entry: str, prefix: str, before: list[str]) -> list[str]:
    """Load the vector that the index names for an entry."""
    return [
        *before,
        f"  %{prefix}n{k} = getelementptr i32, ptr %index, i64 {entry}",
        f"  %{prefix}i{k}_ = load i32, ptr %{prefix}n{k}",
        f"  %{prefix}w{k} = zext i32 %{prefix}i{k}_ to i64",
        f"  %{prefix}q{k} = getelementptr {f.type}, ptr %tile, i64 %{prefix}w{k}",
        *_halves_at(f, f"%{prefix}q{k}", f"{prefix}t{k}", f.bytes // 2),
    ]


def _loop(f: Flavor, name: str, full: list[str], masked: list[str], extra: str = "") -> str:
    """A function over blocks of entries: whole ones in a loop, then the rest under a mask."""
    n, newline, t = f.lanes, "\n", f.type
    signature = "ptr %base, i64 %stride, i64 %b, i64 %end, ptr noalias %tile, i64 %n" + extra
    return f"""define internal {t} @{name}_{f.name}({signature}, {t} %start) noinline #1 {{
entry:
{_rows(f)}
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %full ]
  %s = phi {t} [ %start, %entry ], [ %sn, %full ]
  %tile0 = getelementptr {t}, ptr %tile, i64 %j
  %jn = add i64 %j, {n}
  %whole = icmp sle i64 %jn, %n
  br i1 %whole, label %full, label %part
full:
{newline.join(full)}
  br label %head
part:
  %rest = sub i64 %n, %j
  %any = icmp sgt i64 %rest, 0
  br i1 %any, label %mask_it, label %done
mask_it:
{_mask(f)}
{newline.join(masked)}
  br label %leave
leave:
  ret {t} %sm
done:
  ret {t} %s
}}
"""


def _added(f: Flavor, source: str, target: str) -> list[str]:
    """Lines that add the vectors of a block to the sum so far, in pairs."""
    names, lines = [f"%{source}{k}" for k in range(f.lanes)], []
    while len(names) > 1:
        pairs = list(zip(names[::2], names[1::2], strict=True))
        names = [f"%{target}_{len(pairs)}_{i}" for i in range(len(pairs))]
        lines += [f"  {x} = fadd {f.type} {a}, {b}" for x, (a, b) in zip(names, pairs, strict=True)]
    return [*lines, f"  %{target} = fadd {f.type} %s, {names[0]}"]


def _half(f: Flavor) -> str:
    return f"<{f.lanes // 2} x {f.scalar}>"


def _halves_at(f: Flavor, where: str, name: str, align: int) -> list[str]:
    """Lines that load the halves of a vector."""
    load = f"load {_half(f)}, ptr"
    return [
        f"  %{name}_low = {load} {where}, align {align}",
        f"  %{name}_at = getelementptr i8, ptr {where}, i64 {f.bytes // 2}",
        f"  %{name}_high = {load} %{name}_at, align {align}",
    ]


def _halves_of(f: Flavor, name: str) -> list[str]:
    """Lines that take the halves of a vector."""
    h, lines = f.lanes // 2, []
    for part, first in (("low", 0), ("high", h)):
        mask = ", ".join(f"i32 {c}" for c in range(first, first + h))
        pick = f"shufflevector {f.type} %{name}, {f.type} poison, <{h} x i32> <{mask}>"
        lines.append(f"  %{name}_{part} = {pick}")
    return lines


def _call_transpose(f: Flavor, source: str, target: str) -> list[str]:
    """Lines that name the columns of a block, the halves of whose rows have names."""
    struct = f"{{ {', '.join([f.type] * f.lanes)} }}"
    halves = (f"%{source}{i}_{part}" for i in range(f.lanes) for part in ("low", "high"))
    rows = ", ".join(f"{_half(f)} {half}" for half in halves)
    lines = [f"  %{target}_all = call {struct} @transpose_{f.name}({rows})"]
    return lines + [
        f"  %{target}{k} = extractvalue {struct} %{target}_all, {k}" for k in range(f.lanes)
    ]


def _transpose(f: Flavor) -> str:
    """Butterflies: at each level, halves of pairs of rows are exchanged.

    First come the largest halves, which are loaded to where they belong: no exchange is needed.
    """
    n, t, half = f.lanes, f.type, f.lanes // 2
    struct = f"{{ {', '.join([t] * n)} }}"
    lines, names = [], [""] * n
    for i in range(n):
        part, low = ("low", i) if i < half else ("high", i - half)
        pair = f"{_half(f)} %x{low}_{part}, {_half(f)} %x{low + half}_{part}"
        mask = ", ".join(f"i32 {c}" for c in range(n))
        lines.append(f"  %s{half}_{i} = shufflevector {pair}, <{n} x i32> <{mask}>")
        names[i] = f"%s{half}_{i}"
    while half > 1:
        half //= 2
        new = list(names)
        for i in range(n):
            if i & half:
                continue
            j = i | half
            low = [c if not c & half else n + (c & ~half) for c in range(n)]
            high = [(c | half) if not c & half else n + c for c in range(n)]
            for row, picks in ((i, low), (j, high)):
                name = f"%s{half}_{row}"
                mask = ", ".join(f"i32 {p}" for p in picks)
                pair = f"{t} {names[i]}, {t} {names[j]}"
                lines.append(f"  {name} = shufflevector {pair}, <{n} x i32> <{mask}>")
                new[row] = name
        names = new
    value = "poison"
    for k, name in enumerate(names):
        lines.append(f"  %z{k} = insertvalue {struct} {value}, {t} {name}, {k}")
        value = f"%z{k}"
    rows = ", ".join(f"{_half(f)} %x{i}_{part}" for i in range(n) for part in ("low", "high"))
    body = "\n".join(lines)
    masked = f"""declare {t} @llvm.masked.load.{f.suffix}.p0(ptr, i32, {f.truth}, {t})
declare void @llvm.masked.store.{f.suffix}.p0({t}, ptr, i32, {f.truth})
"""
    head = f"define internal {struct} @transpose_{f.name}({rows}) alwaysinline #1"
    return f"{masked}{head} {{\n{body}\n  ret {struct} {value}\n}}\n"

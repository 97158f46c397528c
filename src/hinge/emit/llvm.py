"""A whole LLVM module for one program: the batch driver, the single call, the bodies of both.

Batch: tiles of as many samples as there are lanes.  `pack` turns rows [sample][entry] into vectors
over the samples, 8 × 8 (or 16 × 16) numbers at a time; rows past the end are clamped to the last
one, which is then computed, and written, several times: nothing is read or written out of bounds.
"""

from __future__ import annotations

from ..trace.program import Program
from .llvm_body import Flavor, bodies, parameters
from .llvm_fast import fast_call
from .llvm_math import declarations

__all__ = ["module_text"]

_HEADER = """
declare i64 @llvm.smin.i64(i64, i64)
declare double @hinge_sin(double)
declare double @hinge_cos(double)
declare double @hinge_atan2(double, double)
attributes #0 = { nounwind alignstack=64 }
attributes #1 = { nounwind }
!0 = !{!"branch_weights", i32 1, i32 100000}
"""


def module_text(program: Program, lanes: int, scalar: str = "double") -> str:
    """The module: `run` for batches, `single` for one sample, `fast` for a call from Python."""
    wide, one = Flavor(lanes, scalar), Flavor(1, scalar)
    parts = [_HEADER]
    slots = 0
    for flavor in (wide, one) if lanes > 1 else (one,):
        text, names, slots = bodies(program, flavor)
        parts += [declarations(flavor), text, _all_bodies(program, flavor, names)]
    if lanes > 1:
        parts += [_pack(wide), _unpack(wide), _transpose(wide)]
    parts += [_run(program, wide), _workspace(program, wide, slots)]
    parts.append(fast_call(program, one, slots))
    return "\n".join(parts)


def _all_bodies(program: Program, flavor: Flavor, names: list[str]) -> str:
    """One function that calls the bodies in turn."""
    arguments = parameters(program).replace(" noalias", "")
    calls = "\n".join(f"  call void @{name}({arguments})" for name in names)
    signature = parameters(program)
    return f"define internal void @all_{flavor.name}({signature}) #1 {{\n{calls}\n  ret void\n}}\n"


def _workspace(program: Program, wide: Flavor, slots: int) -> str:
    """How many bytes of scratch `run` wants."""
    values = sum(program.input_sizes) + sum(program.output_sizes) + slots
    size = values * wide.bytes
    return f"define i64 @workspace() #1 {{\n  ret i64 {size}\n}}\n"


def _run(program: Program, f: Flavor) -> str:
    """void run(ptr arrays, ptr strides, i64 begin, i64 end, ptr scratch).

    arrays: the addresses of all arguments, then of all results; strides: bytes from a sample to the
    next; entries of a sample are contiguous.  scratch: aligned to 64 bytes.
    """
    sizes = program.input_sizes + program.output_sizes
    names = [f"in{i}" for i in range(len(program.inputs))]
    names += [f"out{i}" for i in range(len(program.outputs))]
    head, packs, unpacks = [], [], []
    offset = 0
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        head.append(f"  %pa{i} = getelementptr ptr, ptr %arrays, i64 {i}")
        head.append(f"  %a{i} = load ptr, ptr %pa{i}")
        head.append(f"  %ps{i} = getelementptr i64, ptr %strides, i64 {i}")
        head.append(f"  %s{i} = load i64, ptr %ps{i}")
        head.append(f"  %{name} = getelementptr i8, ptr %scratch, i64 {offset * f.bytes}")
        step = f"(ptr %a{i}, i64 %s{i}, i64 %b, i64 %end, ptr %{name}, i64 {size})"
        kind = "pack" if name.startswith("in") else "unpack"
        target = packs if kind == "pack" else unpacks
        target.append(f"  call void @{kind}_{f.name}{step}")
        offset += size
    head.append(f"  %ws = getelementptr i8, ptr %scratch, i64 {offset * f.bytes}")
    arguments = ", ".join(f"ptr %{name}" for name in [*names, "ws"])
    newline = "\n"
    return f"""define void @run(ptr %arrays, ptr %strides, i64 %begin, i64 %end, ptr %scratch) #1 {{
entry:
{newline.join(head)}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %tile, label %done
tile:
  %b = phi i64 [ %begin, %entry ], [ %next, %tile ]
{newline.join(packs)}
  call void @all_{f.name}({arguments})
{newline.join(unpacks)}
  %next = add i64 %b, {f.lanes}
  %more = icmp slt i64 %next, %end
  br i1 %more, label %tile, label %done
done:
  ret void
}}
"""


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
    full += [f"  %r{l} = load {t}, ptr %p{l}, align {word}" for l in range(n)]
    full += _call_transpose(f, "r", "t")
    for k in range(n):
        full.append(f"  %q{k} = getelementptr {t}, ptr %tile0, i64 {k}")
        full.append(f"  store {t} %t{k}, ptr %q{k}, align {f.bytes}")
    masked = [f"  %mp{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    call = f"call {t} @llvm.masked.load.{f.suffix}.p0(ptr"
    masked += [
        f"  %mr{l} = {call} %mp{l}, i32 {word}, {f.truth} %mask, {t} zeroinitializer)"
        for l in range(n)
    ]
    masked += _call_transpose(f, "mr", "mt")
    blocks = []
    for k in range(n):
        blocks.append(f"  %left{k} = icmp slt i64 {k}, %rest")
        blocks.append(f"  br i1 %left{k}, label %put{k}, label %done\nput{k}:")
        blocks.append(f"  %mq{k} = getelementptr {t}, ptr %tile0, i64 {k}")
        blocks.append(f"  store {t} %mt{k}, ptr %mq{k}, align {f.bytes}")
    return _loop(f, "pack", full, [*masked, *blocks])


def _unpack(f: Flavor) -> str:
    """n vectors over the samples into rows of n entries."""
    n, t, word = f.lanes, f.type, f.bytes // f.lanes
    full = []
    for k in range(n):
        full.append(f"  %q{k} = getelementptr {t}, ptr %tile0, i64 {k}")
        full.append(f"  %t{k} = load {t}, ptr %q{k}, align {f.bytes}")
    full += _call_transpose(f, "t", "r")
    full += [f"  %p{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    full += [f"  store {t} %r{l}, ptr %p{l}, align {word}" for l in range(n)]
    masked = []
    for k in range(n):
        # past the last vector the first is read again: the mask keeps it from being written
        masked.append(f"  %left{k} = icmp slt i64 {k}, %rest")
        masked.append(f"  %k{k} = select i1 %left{k}, i64 {k}, i64 0")
        masked.append(f"  %mq{k} = getelementptr {t}, ptr %tile0, i64 %k{k}")
        masked.append(f"  %mt{k} = load {t}, ptr %mq{k}, align {f.bytes}")
    masked += _call_transpose(f, "mt", "mr")
    masked += [f"  %mp{l} = getelementptr {f.scalar}, ptr %row{l}, i64 %j" for l in range(n)]
    call = f"call void @llvm.masked.store.{f.suffix}.p0({t}"
    masked += [f"  {call} %mr{l}, ptr %mp{l}, i32 {word}, {f.truth} %mask)" for l in range(n)]
    return _loop(f, "unpack", full, masked)


def _loop(f: Flavor, name: str, full: list[str], masked: list[str]) -> str:
    """A function over blocks of entries: whole ones in a loop, then the rest under a mask."""
    n, newline = f.lanes, "\n"
    signature = "ptr %base, i64 %stride, i64 %b, i64 %end, ptr noalias %tile, i64 %n"
    steps = ", ".join(f"i64 {k}" for k in range(n))
    return f"""define internal void @{name}_{f.name}({signature}) noinline #1 {{
entry:
{_rows(f)}
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %full ]
  %tile0 = getelementptr {f.type}, ptr %tile, i64 %j
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
  %r0_ = insertelement <{n} x i64> poison, i64 %rest, i32 0
  %rs = shufflevector <{n} x i64> %r0_, <{n} x i64> poison, <{n} x i32> zeroinitializer
  %mask = icmp slt <{n} x i64> <{steps}>, %rs
{newline.join(masked)}
  br label %done
done:
  ret void
}}
"""


def _call_transpose(f: Flavor, source: str, target: str) -> list[str]:
    """Lines that name the columns of a block whose rows have names."""
    struct = f"{{ {', '.join([f.type] * f.lanes)} }}"
    rows = ", ".join(f"{f.type} %{source}{i}" for i in range(f.lanes))
    lines = [f"  %{target}_all = call {struct} @transpose_{f.name}({rows})"]
    return lines + [
        f"  %{target}{k} = extractvalue {struct} %{target}_all, {k}" for k in range(f.lanes)
    ]


def _transpose(f: Flavor) -> str:
    """Butterflies: at each level, halves of pairs of rows are exchanged."""
    n, t = f.lanes, f.type
    struct = f"{{ {', '.join([t] * n)} }}"
    lines, names = [], [f"%x{i}" for i in range(n)]
    half = 1
    while half < n:
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
        half *= 2
    value = "poison"
    for k, name in enumerate(names):
        lines.append(f"  %z{k} = insertvalue {struct} {value}, {t} {name}, {k}")
        value = f"%z{k}"
    rows = ", ".join(f"{t} %x{i}" for i in range(n))
    body = "\n".join(lines)
    masked = f"""declare {t} @llvm.masked.load.{f.suffix}.p0(ptr, i32, {f.truth}, {t})
declare void @llvm.masked.store.{f.suffix}.p0({t}, ptr, i32, {f.truth})
"""
    head = f"define internal {struct} @transpose_{f.name}({rows}) alwaysinline #1"
    return f"{masked}{head} {{\n{body}\n  ret {struct} {value}\n}}\n"

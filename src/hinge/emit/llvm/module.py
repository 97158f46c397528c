"""A whole LLVM module for one program: the batch driver, the single call, the bodies of both.

Bodies write each distinct result once; an index says which entry of which result is which, so that
zeros, other constants and repeated values cost nothing to compute or to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...graph.loop import LoopProgram
from ...graph.program import Program
from ...graph.scan import Scan
from ..layout import Layout
from .body import Flavor, bodies, constants, parameters
from .fast import batch_call, single_call
from .loop import LoopLayout, loop_bodies
from .math import angles_loop, declarations
from .scan import scan_parts
from .stream import streamed, streams
from .tiles import row_sums, sums, tiles

__all__ = ["MOST_FOR_SINGLE", "module_text"]

# larger programs get no code for single calls: it would take as long to compile as the rest, or,
# where loops keep it short, too much of the stack
MOST_FOR_SINGLE = 30_000
MOST_STACK = 1 << 18

_HEADER = """
declare i64 @llvm.smin.i64(i64, i64)
declare double @hinge_sin(double)
declare double @hinge_cos(double)
declare double @hinge_atan2(double, double)
attributes #0 = { nounwind alignstack=64 }
attributes #1 = { nounwind }
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{i32 1}
"""


def module_text(
    program: Program | LoopProgram | Scan, wide: Flavor, strict: bool = False, python: bool = True
) -> str:
    """The module: `run` for batches, `one` and `many` for calls from Python; a scan has only `run`.

    strict: a sample with an argument or a result that is not finite gets NaN in all of its results,
    and a single call with one is handed on.  wide: what one value of many samples is.
    python: whether calls from Python get code; else the module needs nothing of Python.
    """
    one = replace(wide, lanes=1)
    if isinstance(program, Scan):
        layout, names, parts = scan_parts(program, wide, strict)
        return "\n".join([_HEADER, _index(layout), _all_bodies(layout, wide, names), *parts])
    layout: Any = LoopLayout(program) if isinstance(program, LoopProgram) else Layout(program)
    text, slots = _evaluation(layout, wide, wide)
    parts = [_HEADER, _index(layout), tiles(wide), angles_loop(wide), text]
    if strict:
        parts += [sums(wide), row_sums(wide)]
    parts += [*_runs(layout, wide, strict), _workspace(layout, wide, slots)]
    if python:
        parts.append(batch_call(layout, one, wide))
    if python and _fits_single_calls(program, slots, one):
        text, slots = _evaluation(layout, one, wide)
        parts += [text, single_call(layout, one, wide, slots, strict)]
    return "\n".join(parts)


def _evaluation(layout: Any, flavor: Flavor, wide: Flavor) -> tuple[str, int]:
    """What evaluates values of one flavor, and how many workspace slots it wants."""
    looped = isinstance(layout.program, LoopProgram)
    made = loop_bodies(layout, flavor) if looped else bodies(layout, flavor, wide)
    text, names, slots = made
    return "\n".join([declarations(flavor), text, _all_bodies(layout, flavor, names)]), slots


def _fits_single_calls(program: Program | LoopProgram, slots: int, f: Flavor) -> bool:
    if isinstance(program, LoopProgram):
        return slots * f.bytes <= MOST_STACK
    return sum(program.ops) <= MOST_FOR_SINGLE


def _index(layout: Layout) -> str:
    """For every entry of every result, the number of its value."""
    n = len(layout.index)
    entries = ", ".join(f"i32 {i}" for i in layout.index)
    return f"@index = internal constant [{n} x i32] [{entries}]"


def _all_bodies(layout: Layout, flavor: Flavor, names: list[str]) -> str:
    """One function that calls the bodies in turn."""
    signature = parameters(layout.program)
    arguments = signature.replace(" noalias", "")
    calls = "\n".join(f"  call void @{name}({arguments})" for name in names)
    return f"define internal void @all_{flavor.name}({signature}) #1 {{\n{calls}\n  ret void\n}}\n"


def _workspace(layout: Layout, wide: Flavor, slots: int) -> str:
    """How many bytes of scratch `run` wants, in whole lines."""
    values = sum(layout.program.input_sizes) + layout.size + slots
    size = -(-values * wide.bytes // 64) * 64
    return f"define i64 @workspace() #1 {{\n  ret i64 {size}\n}}\n"


def _runs(layout: Layout, f: Flavor, strict: bool) -> list[str]:
    """`run`, with two ways to write results where they can be large."""
    long = streamed(layout, f)
    if not long:
        return [_run(layout, f, strict, "run")]
    lines = _run(layout, f, strict, "run_lines", long)
    return [_run(layout, f, strict, "run_plain"), lines, streams(layout, f, long)]


def _run(layout: Layout, f: Flavor, strict: bool, name: str, by_lines: Sequence[int] = ()) -> str:
    """void run(ptr arrays, ptr strides, i64 begin, i64 end, ptr scratch).

    arrays: the addresses of all arguments, then of all results; strides: bytes from a sample to the
    next, then how many samples the whole call has; entries of a sample are contiguous.  scratch:
    aligned to 64 bytes.
    by_lines: the results that are written past the caches.
    """
    head, packs, unpacks = _tile_steps(layout, f)
    for i in by_lines:
        unpacks[i] = unpacks[i].replace("@unpack_", "@stream_")
    names = [*(f"ptr %in{i}" for i in range(len(layout.program.inputs))), "ptr %out", "ptr %ws"]
    newline = "\n"
    spoil = newline.join(_spoiling(layout, f, unpacks)) if strict else "  br label %on"
    given = "ptr %arrays, ptr %strides, i64 %begin, i64 %end, ptr %scratch"
    return f"""define void @{name}({given}) #1 {{
entry:
{newline.join(head)}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %tile, label %done
tile:
  %b = phi i64 [ %begin, %entry ], [ %next, %on ]
{newline.join(packs)}
  call void @all_{f.name}({", ".join(names)})
{newline.join(unpacks)}
{spoil}
on:
  %next = add i64 %b, {f.lanes}
  %more = icmp slt i64 %next, %end
  br i1 %more, label %tile, label %done
done:
  ret void
}}
"""


def _tile_steps(layout: Layout, f: Flavor) -> tuple[list[str], list[str], list[str]]:
    """Lines before the loop, and in it before and after the bodies."""
    program = layout.program
    head, packs, unpacks, offset, entry, added = [], [], [], 0, 0, f.const(0.0)
    for i, size in enumerate(program.input_sizes + program.output_sizes):
        head.append(f"  %pa{i} = getelementptr ptr, ptr %arrays, i64 {i}")
        head.append(f"  %a{i} = load ptr, ptr %pa{i}")
        head.append(f"  %ps{i} = getelementptr i64, ptr %strides, i64 {i}")
        head.append(f"  %s{i} = load i64, ptr %ps{i}")
        rows = f"(ptr %a{i}, i64 %s{i}, i64 %b, i64 %end"
        if i < len(program.inputs):
            head.append(f"  %in{i} = getelementptr i8, ptr %scratch, i64 {offset * f.bytes}")
            call = f"@pack_{f.name}{rows}, ptr %in{i}, i64 {size}, {f.type} {added})"
            packs.append(f"  %sum{i} = call {f.type} {call}")
            offset += size
        else:
            index = f"ptr getelementptr (i32, ptr @index, i64 {entry})"
            call = f"@unpack_{f.name}{rows}, ptr %out, i64 {size}, {index}, {f.type} {added})"
            unpacks.append(f"  %sum{i} = call {f.type} {call}")
            entry += size
        added = f"%sum{i}"
    head.append(f"  %out = getelementptr i8, ptr %scratch, i64 {offset * f.bytes}")
    head.append(f"  %ws = getelementptr i8, ptr %scratch, i64 {(offset + layout.size) * f.bytes}")
    return head + constants(layout, f, "const"), packs, unpacks


def _spoiling(layout: Layout, f: Flavor, unpacks: list[str]) -> list[str]:
    """Should a sample have a number that is not finite: all its results NaN, written again.

    A sum that is not finite only makes suspicious: it may have overflowed.
    """
    arrays = len(layout.program.inputs) + len(layout.program.outputs)
    total = f"%sum{arrays - 1}" if arrays else f.const(0.0)
    given, gather = sum(layout.program.input_sizes), f"call {f.bits} @gather_{f.name}"
    return [
        f"  %zero = fsub {f.type} {total}, {total}",
        f"  %bits = bitcast {f.type} %zero to {f.bits}",
        f"  %doubt = call i1 @spoilt_{f.name}({f.bits} %bits)",
        "  br i1 %doubt, label %look, label %on, !prof !0",
        "look:",
        f"  %told = {gather}(ptr %scratch, i64 {given}, {f.bits} {f.word(0)})",
        f"  %all = {gather}(ptr %out, i64 {layout.varying}, {f.bits} %told)",
        f"  %bad = call i1 @spoilt_{f.name}({f.bits} %all)",
        "  br i1 %bad, label %spoil, label %on",
        "spoil:",
        f"  %nan = bitcast {f.bits} %all to {f.type}",
        f"  call void @add_{f.name}(ptr %out, i64 {layout.varying}, {f.type} %nan)",
        *constants(layout, f, "spoilt", "%nan"),
        *(line.replace("%sum", "%anew", 1) for line in unpacks),
        *constants(layout, f, "again"),
        "  br label %on",
    ]

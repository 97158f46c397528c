"""A whole LLVM module for one program: the batch driver, the single call, the bodies of both.

Bodies write each distinct result once; an index says which entry of which result is which, so that
zeros, other constants and repeated values cost nothing to compute or to compile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...graph.loop import LoopProgram
from ...graph.program import Program
from ...graph.scan import Scan
from ..layout import Layout, LoopLayout
from .batch import run
from .body import all_bodies, bodies
from .builder import HEAD, Function, i64
from .fast import batch_call, single_call
from .flavor import Flavor
from .loop import loop_bodies
from .math import angles_loop, declarations, library
from .scan import scan_parts
from .stream import streamed, streams
from .tiles import row_sums, sums, tiles

__all__ = ["MOST_FOR_SINGLE", "module_text"]

# larger programs get no code for single calls: it would take as long to compile as the rest, or,
# where loops keep it short, too much of the stack.  What it gives: derivatives of an impact of
# Talos, 72 600 operations, 88 → 12 µs a call, the first 5.4 → 8.7 s
MOST_FOR_SINGLE = 80_000
MOST_STACK = 1 << 18


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
        whole = all_bodies(layout.program, wide, names)
        return "\n".join([HEAD, library(), _index(layout), whole, *parts])
    layout: Any = LoopLayout(program) if isinstance(program, LoopProgram) else Layout(program)
    text, slots = _evaluation(layout, wide, wide)
    parts = [HEAD, library(), _index(layout), tiles(wide), angles_loop(wide), text]
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
    return "\n".join([declarations(flavor), text, all_bodies(layout.program, flavor, names)]), slots


def _fits_single_calls(program: Program | LoopProgram, slots: int, f: Flavor) -> bool:
    if isinstance(program, LoopProgram):
        return slots * f.bytes <= MOST_STACK
    return sum(program.ops) <= MOST_FOR_SINGLE


def _index(layout: Layout) -> str:
    """For every entry of every result, the number of its value."""
    n = len(layout.index)
    entries = ", ".join(f"i32 {i}" for i in layout.index)
    return f"@index = internal constant [{n} x i32] [{entries}]"


def _workspace(layout: Layout, wide: Flavor, slots: int) -> str:
    """How many bytes of scratch `run` wants, in whole lines."""
    values = sum(layout.program.input_sizes) + layout.size + slots
    size = -(-values * wide.bytes // 64) * 64
    return Function("workspace", "i64", linkage="").ret(i64(size)).text()


def _runs(layout: Layout, f: Flavor, strict: bool) -> list[str]:
    """`run`, with two ways to write results where they can be large."""
    long = streamed(layout, f)
    if not long:
        return [run(layout, f, strict)]
    ways = [run(layout, f, strict, "run_plain"), run(layout, f, strict, "run_lines", long)]
    return [*ways, streams(layout, f, long)]

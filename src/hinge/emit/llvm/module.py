"""A whole LLVM module for one program: the batch driver, the single call, the bodies of both.

Bodies write each distinct result once; an index says which entry of which result is which, so that
zeros, other constants and repeated values cost nothing to compute or to compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...graph.loop import LoopProgram
from ...graph.program import Program
from ...graph.relay import Relay
from ...graph.scan import Scan
from ..layout import Layout, LoopLayout
from ..x86.object import Assembled, object_file
from .batch import run
from .body import Bodies, Plan, all_bodies, bodies
from .builder import HEAD, Function, i64
from .fast import batch_call, sample_run, single_call
from .flavor import Flavor
from .library import declarations, definitions, library
from .loop import Tables, escaped, loop_bodies
from .math import angles_loop
from .scan import scan_parts
from .stream import streamed, streams
from .tiles import row_sums, sums, tiles

__all__ = ["MOST_FOR_SINGLE", "module_text", "module_texts"]

# larger straight-line programs get no code for single calls: it would take as long to compile as
# the rest.  What it gives: derivatives of an impact of Talos, 72 600 operations, 88 → 12 µs a call,
# the first 5.4 → 8.7 s
MOST_FOR_SINGLE = 80_000


# operations past which bodies are compiled apart, and how many of them together: enough for a
# thread to have some work, few enough for all of them to have some
MOST_TOGETHER, TOGETHER = 2000, 3
# the same where most bodies need no compiler
MOST_WITH_MAIN = 300

# operations from which on single calls are written as bytes too: LLVM's code for single calls of
# small programs is up to a twentieth quicker (AVX2: Panda's ∂q̈, 5200 operations, 1.52 and 1.56 µs,
# Talos' q̈, 8300, 1.93 and 2.03; ∂q̈ of ANYmal, 23 200, 6.5 and 6.6); of large ones it would take
# seconds to compile
LEAST_SINGLE_DIRECT = 10_000

# bytes that a tile of samples may take: where it is more than caches hold, fewer samples at once
# are no slower, but below that lanes are lost for nothing.  Snakes of 16 384 bodies, one thread, on
# a busy machine with 32 MB of third-level cache, ns a body and state in 8, 4 and 2 lanes: forward
# dynamics, 13 MB in 8 lanes, 21, 21 and 39; hybrid dynamics, 19 MB, 31, 27 and 42; ν̇, 40 MB, 83, 87
# and 75
MOST_AT_ONCE, LEAST_LANES = 10 << 20, 2

# text, or bodies with what they are called by and called with
_Part = str | tuple[Bodies, Program | LoopProgram | Relay, Flavor]


def module_text(
    program: Program | LoopProgram | Scan, wide: Flavor, strict: bool = False, python: bool = True
) -> str:
    """The module: `run` for batches, `one` and `many` for calls from Python; a scan has only `run`.

    `single` does what `run` does for one sample, where there is `one`.

    strict: a sample with an argument or a result that is not finite gets NaN in all of its results,
    and a single call with one is handed on.  wide: what one value of many samples is.
    python: whether calls from Python get code; else the module needs nothing of Python.
    """
    texts: list[Any] = []
    for part in _parts(program, replace(wide, direct=False), strict, python):
        texts += [part] if isinstance(part, str) else [*part[0].pieces, _all(*part)]
    return _complete(texts, wide)


def module_texts(
    program: Program | LoopProgram | Scan, wide: Flavor, strict: bool = False, python: bool = True
) -> Iterator[str | bytes]:
    """The same as several modules, written one after the other, to be compiled apart.

    The first one calls functions of the others, of which some may be an object file already; these
    are not written before they are asked for, so that it may be compiled meanwhile.
    """
    if sum(program.ops) <= (MOST_WITH_MAIN if wide.direct else MOST_TOGETHER):
        yield module_text(program, wide, strict, python)
        return
    parts = [*_parts(program, wide, strict, python)]
    called = [part for part in parts if not isinstance(part, str)]
    main = [x if isinstance(x, str) else f"{x[0].declared}\n{_all(*x)}" for x in parts]
    yield _complete(main, wide)
    assembled: list[Assembled] = []
    for made, _, flavor in called:
        yield from _pieces(made, flavor, assembled)
    if assembled:
        yield object_file(assembled)


def _pieces(made: Bodies, flavor: Flavor, assembled: list[Assembled]) -> Iterator[str]:
    """Modules of those bodies that are text; the others are put to what is assembled."""
    needed, group = [HEAD, library(), declarations(flavor)], []
    for piece in made.pieces:
        if not isinstance(piece, str):
            assembled.append(piece)
            continue
        group.append(piece)
        if len(group) == TOGETHER:
            yield _complete([*needed, *group], flavor)
            group = []
    if group:
        yield _complete([*needed, *group], flavor)


def _complete(texts: Sequence[str], f: Flavor) -> str:
    """A module, with the functions that it calls."""
    text = "\n".join(texts)
    return f"{text}\n{definitions(text, f)}"


def _parts(
    program: Program | LoopProgram | Scan, wide: Flavor, strict: bool, python: bool
) -> Iterator[_Part]:
    yield from (HEAD, library())
    if isinstance(program, Scan):
        layout, made, parts = scan_parts(program, wide, strict)
        yield from (_index(layout), made.first, (made, program.step, wide), *parts)
        return
    layout: Any = LoopLayout(program) if isinstance(program, LoopProgram) else Layout(program)
    wide = _in_caches(layout, wide)
    direct = wide.direct and sum(program.ops) > LEAST_SINGLE_DIRECT
    one, made = replace(wide, lanes=1, direct=direct), _bodies(layout, wide, wide)
    yield from (_index(layout), tiles(wide), angles_loop(wide), declarations(wide), made.first)
    yield made, program, wide
    if strict:
        yield from (sums(wide), row_sums(wide))
    yield from (*_runs(layout, wide, strict), _workspace(layout, wide, made.slots))
    if python:
        yield batch_call(layout, one, wide)
    if python and (isinstance(program, LoopProgram) or sum(program.ops) <= MOST_FOR_SINGLE):
        made = _bodies(layout, one, wide, made.plan)
        yield from (declarations(one), made.first, (made, program, one))
        own = (layout, one, wide, made.slots, strict)
        yield from (single_call(*own), sample_run(*own))


def _in_caches(layout: Any, wide: Flavor) -> Flavor:
    """As many lanes as a long mechanism leaves room for."""
    slots = Tables(layout).size if isinstance(layout.program, LoopProgram) else 0
    while _room(layout, wide, slots) > MOST_AT_ONCE and wide.lanes > LEAST_LANES:
        wide = replace(wide, lanes=wide.lanes // 2)
    return wide


def _bodies(layout: Any, flavor: Flavor, wide: Flavor, plan: Plan | None = None) -> Bodies:
    looped = isinstance(layout.program, LoopProgram)
    if looped:
        # the wide bodies come first, and the others share their tables
        return loop_bodies(layout, flavor, tables=flavor is wide)
    return bodies(layout, flavor, wide, plan=plan)


def _all(made: Bodies, program: Program | LoopProgram | Relay, flavor: Flavor) -> str:
    return all_bodies(program, flavor, made.names)


def _index(layout: Layout) -> str:
    """For every entry of every result, the number of its value."""
    x = layout.index.astype("<i4")
    return f'@index = internal constant [{x.nbytes} x i8] c"{escaped(x)}", align 64'


def _workspace(layout: Layout, wide: Flavor, slots: int) -> str:
    """How many bytes of scratch `run` wants."""
    return Function("workspace", "i64", linkage="").ret(i64(_room(layout, wide, slots))).text()


def _room(layout: Layout, f: Flavor, slots: int) -> int:
    """How many bytes a tile of samples takes, in whole lines."""
    values = sum(layout.program.input_sizes) + layout.size + slots
    return -(-values * f.bytes // 64) * 64


def _runs(layout: Layout, f: Flavor, strict: bool) -> list[str]:
    """`run`, with two ways to write results where they can be large."""
    long = streamed(layout, f)
    if not long:
        return [run(layout, f, strict)]
    ways = [run(layout, f, strict, "run_plain"), run(layout, f, strict, "run_lines", long)]
    return [*ways, streams(layout, f, long)]

"""Results that are larger than the caches, written past them.

A plain store of a line reads it first; a streamed one does not, but has to be a whole line at its
place.  Samples that are so far apart that all their rows begin at the same place in a line are
taken together: a few entries by plain stores up to the next line, then line by line.
"""

from __future__ import annotations

from math import gcd

from ..layout import Layout
from .body import Flavor
from .tiles import unpack

__all__ = ["streamed", "streams"]

_LINE = 64
# results of a call that have more bytes than this go past the caches
_LARGE = 1 << 24
# rows with fewer bytes than this are mostly ends of lines
_LONG = 1 << 11


def streamed(layout: Layout, f: Flavor) -> list[int]:
    """Which results are worth it, if vectors are lines: those with the longest rows."""
    sizes, word = layout.program.output_sizes, f.bytes // f.lanes
    if f.bytes != _LINE or not sizes or max(sizes) * word < _LONG:
        return []
    return [i for i, size in enumerate(sizes) if size == max(sizes)]


def streams(layout: Layout, f: Flavor, results: list[int]) -> str:
    """`stream`, an `unpack` for rows that all begin alike, and `run`, which chooses."""
    return "\n".join(
        [unpack(f, "lines", "align 64, !nontemporal !1"), _stream(f), _run(layout, f, results)]
    )


def _stream(f: Flavor) -> str:
    """Up to the next line by plain stores, then lines."""
    word, t = f.bytes // f.lanes, f.type
    rows = "ptr %base, i64 %stride, i64 %b, i64 %end, ptr %tile, i64 %n, ptr %index"
    rest = "ptr %base_, i64 %stride, i64 %b, i64 %end, ptr %tile, i64 %n_, ptr %index_"
    return f"""define internal {t} @stream_{f.name}({rows}, {t} %sum) #1 {{
  %o = mul i64 %b, %stride
  %row = getelementptr i8, ptr %base, i64 %o
  %place = ptrtoint ptr %row to i64
  %away = sub i64 0, %place
  %bytes = and i64 %away, {_LINE - 1}
  %h = udiv i64 %bytes, {word}
  %head = call {t} @unpack_{f.name}({rows.replace("i64 %n", "i64 %h")}, {t} %sum)
  %base_ = getelementptr i8, ptr %base, i64 %bytes
  %n_ = sub i64 %n, %h
  %index_ = getelementptr i32, ptr %index, i64 %h
  %all = call {t} @lines_{f.name}({rest}, {t} %head)
  ret {t} %all
}}"""


def _run(layout: Layout, f: Flavor, results: list[int]) -> str:
    """All samples as they come, or every so manieth of them in turn, by lines."""
    program, word = layout.program, f.bytes // f.lanes
    sizes = program.input_sizes + program.output_sizes
    size = program.output_sizes[results[0]]
    step = f.lanes // gcd(size, f.lanes)
    given = "ptr %arrays, ptr %strides, i64 %begin, i64 %end, ptr %scratch"
    newline = "\n"
    return f"""define void @run({given}) #1 {{
entry:
  %own = alloca [{len(sizes)} x ptr]
  %apart = alloca [{len(sizes)} x i64]
{newline.join(_together([len(program.inputs) + i for i in results], size * word))}
  %all_p = getelementptr i64, ptr %strides, i64 {len(sizes)}
  %all = load i64, ptr %all_p
  %bytes = mul i64 %all, {len(results) * size * word}
  %large = icmp sgt i64 %bytes, {_LARGE}
  %by_lines = and i1 %close, %large
  br i1 %by_lines, label %head, label %plain
plain:
  call void @run_plain({given})
  ret void
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %head ]
  %first = add i64 %begin, %k
{newline.join(_every(len(sizes), step))}
  %left = sub i64 %end, %first
  %up = add i64 %left, {step - 1}
  %n = sdiv i64 %up, {step}
  call void @run_lines(ptr %own, ptr %apart, i64 0, i64 %n, ptr %scratch)
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, {step}
  br i1 %more, label %head, label %done
done:
  ; whoever is told that the results are there finds them
  fence seq_cst
  ret void
}}
"""


def _together(arrays: list[int], row: int) -> list[str]:
    """Whether the samples of arrays follow one another without a gap."""
    lines, so_far = [], "true"
    for i in arrays:
        lines += [
            f"  %p{i} = getelementptr i64, ptr %strides, i64 {i}",
            f"  %stride{i} = load i64, ptr %p{i}",
            f"  %full{i} = icmp eq i64 %stride{i}, {row}",
            f"  %{'close' if i == arrays[-1] else f'close{i}'} = and i1 {so_far}, %full{i}",
        ]
        so_far = f"%close{i}"
    return lines


def _every(arrays: int, step: int) -> list[str]:
    """Addresses from sample `first` on, and strides over so many samples."""
    lines = []
    for i in range(arrays):
        lines += [
            f"  %pa{i} = getelementptr ptr, ptr %arrays, i64 {i}",
            f"  %ps{i} = getelementptr i64, ptr %strides, i64 {i}",
            f"  %a{i} = load ptr, ptr %pa{i}",
            f"  %s{i} = load i64, ptr %ps{i}",
            f"  %o{i} = mul i64 %s{i}, %first",
            f"  %b{i} = getelementptr i8, ptr %a{i}, i64 %o{i}",
            f"  %t{i} = mul i64 %s{i}, {step}",
            f"  %qa{i} = getelementptr ptr, ptr %own, i64 {i}",
            f"  %qs{i} = getelementptr i64, ptr %apart, i64 {i}",
            f"  store ptr %b{i}, ptr %qa{i}",
            f"  store i64 %t{i}, ptr %qs{i}",
        ]
    return lines

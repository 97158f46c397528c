"""The single call from Python as machine code: arrays checked and read where they lie.

`fast` is a METH_FASTCALL | METH_KEYWORDS function.  It looks into the ndarray structs; when every
argument is exactly what the program expects (an ndarray of the right dtype and shape, C-contiguous
and aligned), it makes the result arrays, runs the scalar body and returns them.  In any other case,
and if the kernel is strict when a result is not finite, it hands the same arguments to the Python
callable in `self`, which knows what to do or what to say.
"""

from __future__ import annotations

from ..trace.program import Program
from .layout import Layout
from .llvm_body import Flavor, constants
from .llvm_tiles import finite_sum

__all__ = ["fast_call"]

# offsets in PyArrayObject on 64-bit builds with a global lock: after the 16 bytes of the object
_TYPE, _DATA, _ND, _DIMENSIONS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_CONTIGUOUS_AND_ALIGNED = 0x101


def fast_call(layout: Layout, f: Flavor, slots: int, strict: bool) -> str:
    """The text of `fast`; strict: numbers that are not finite are the slow way's business."""
    program = layout.program
    kind = "f64" if f.scalar == "double" else "f32"
    lines = [
        f"  %count = icmp eq i64 %nargs, {len(program.inputs)}",
        "  %plain = icmp eq ptr %names, null",
        "  %simple = and i1 %count, %plain",
        "  br i1 %simple, label %check0, label %slow",
    ]
    for i, shape in enumerate(program.inputs):
        lines += _check(i, shape, kind)
    lines.append(f"check{len(program.inputs)}:")
    lines += constants(layout, f)
    arguments = [*(f"ptr %in{i}" for i in range(len(program.inputs))), "ptr %out", "ptr %ws"]
    lines.append(f"  call void @all_{f.name}({', '.join(arguments)})")
    if strict:
        more, total = finite_sum(layout, f)
        lines += [*more, f"  %finite = fcmp ord {f.type} {total}, {f.const(0.0)}"]
        lines.append("  br i1 %finite, label %good, label %slow\ngood:")
    lines += _results(program, kind) + _filled(program, f)
    return _DECLARATIONS + _function(lines, layout, f, slots)


_DECLARATIONS = """
@hinge_ndarray = external global i8
@hinge_descr_f64 = external global i8
@hinge_descr_f32 = external global i8
declare ptr @hinge_new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
declare ptr @hinge_new_tuple(i64)
declare i32 @hinge_set_item(ptr, i64, ptr)
declare void @hinge_release(ptr)
"""


def _field(name: str, base: str, offset: int, kind: str) -> list[str]:
    return [
        f"  {name}_p = getelementptr i8, ptr {base}, i64 {offset}",
        f"  {name} = load {kind}, ptr {name}_p",
    ]


def _check(i: int, shape: tuple[int, ...], kind: str) -> list[str]:
    """Is argument i the array that is expected?  If not, go the slow way."""
    lines = [f"check{i}:", f"  %arg{i}_p = getelementptr ptr, ptr %args, i64 {i}"]
    lines.append(f"  %arg{i} = load ptr, ptr %arg{i}_p")
    lines += _field(f"%type{i}", f"%arg{i}", _TYPE, "ptr")
    lines.append(f"  %ok{i}_type = icmp eq ptr %type{i}, @hinge_ndarray")
    lines.append(f"  br i1 %ok{i}_type, label %array{i}, label %slow")
    lines.append(f"array{i}:")
    lines += _field(f"%descr{i}", f"%arg{i}", _DESCR, "ptr")
    lines += _field(f"%nd{i}", f"%arg{i}", _ND, "i32")
    lines += _field(f"%flags{i}", f"%arg{i}", _FLAGS, "i32")
    lines.append(f"  %ok{i}_descr = icmp eq ptr %descr{i}, @hinge_descr_{kind}")
    lines.append(f"  %ok{i}_nd = icmp eq i32 %nd{i}, {len(shape)}")
    lines.append(f"  %masked{i} = and i32 %flags{i}, {_CONTIGUOUS_AND_ALIGNED}")
    lines.append(f"  %ok{i}_flags = icmp eq i32 %masked{i}, {_CONTIGUOUS_AND_ALIGNED}")
    lines.append(f"  %ok{i}_a = and i1 %ok{i}_descr, %ok{i}_nd")
    lines.append(f"  %ok{i}_b = and i1 %ok{i}_a, %ok{i}_flags")
    lines.append(f"  br i1 %ok{i}_b, label %dims{i}, label %slow")
    lines.append(f"dims{i}:")
    lines += _field(f"%dim{i}", f"%arg{i}", _DIMENSIONS, "ptr")
    truth = "true"
    for k, size in enumerate(shape):
        lines += _field(f"%dim{i}_{k}", f"%dim{i}", 8 * k, "i64")
        lines.append(f"  %ok{i}_dim{k} = icmp eq i64 %dim{i}_{k}, {size}")
        lines.append(f"  %all{i}_{k} = and i1 {truth}, %ok{i}_dim{k}")
        truth = f"%all{i}_{k}"
    lines += _field(f"%in{i}", f"%arg{i}", _DATA, "ptr")
    lines.append(f"  br i1 {truth}, label %check{i + 1}, label %slow")
    return lines


def _results(program: Program, kind: str) -> list[str]:
    """New arrays for the results; on failure the exception is already set."""
    number = 12 if kind == "f64" else 11
    lines = []
    for i, shape in enumerate(program.outputs):
        for k, size in enumerate(shape):
            lines.append(f"  %shape{i}_{k} = getelementptr i64, ptr %shape, i64 {k}")
            lines.append(f"  store i64 {size}, ptr %shape{i}_{k}")
        call = f"ptr @hinge_ndarray, i32 {len(shape)}, ptr %shape, i32 {number}"
        rest = "ptr null, ptr null, i32 0, i32 0, ptr null"
        lines.append(f"  %new{i} = call ptr @hinge_new_array({call}, {rest})")
        lines.append(f"  %null{i} = icmp eq ptr %new{i}, null")
        lines.append(f"  br i1 %null{i}, label %fail{i}, label %made{i}")
        lines.append(f"fail{i}:")
        lines += [f"  call void @hinge_release(ptr %new{j})" for j in range(i)]
        lines += ["  ret ptr null", f"made{i}:"]
        lines += _field(f"%data{i}", f"%new{i}", _DATA, "ptr")
    return lines


def _filled(program: Program, f: Flavor) -> list[str]:
    """Loops that copy the values to the entries of the results."""
    lines, entry = [], 0
    for i, size in enumerate(program.output_sizes):
        index = f"ptr getelementptr (i32, ptr @index, i64 {entry})"
        lines.append(f"  call void @spread_{f.name}(ptr %out, {index}, ptr %data{i}, i64 {size})")
        entry += size
    return lines


def _function(lines: list[str], layout: Layout, f: Flavor, slots: int) -> str:
    program, newline = layout.program, "\n"
    dimensions = max([len(shape) for shape in program.outputs] + [1])
    return f"""
define internal void @spread_{f.name}(ptr %out, ptr %index, ptr %data, i64 %n) #1 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
  %ip = getelementptr i32, ptr %index, i64 %j
  %i = load i32, ptr %ip
  %w = zext i32 %i to i64
  %p = getelementptr {f.type}, ptr %out, i64 %w
  %v = load {f.type}, ptr %p
  %q = getelementptr {f.type}, ptr %data, i64 %j
  store {f.type} %v, ptr %q
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
define ptr @fast(ptr %self, ptr %args, i64 %nargs, ptr %names) #1 {{
entry:
  %ws = alloca [{max(slots, 1)} x {f.type}], align 64
  %out = alloca [{max(layout.size, 1)} x {f.type}], align 64
  %shape = alloca [{dimensions} x i64]
{newline.join(lines)}
{newline.join(_package(program))}
slow:
  %other = call ptr @hinge_vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)
  ret ptr %other
}}
"""


def _package(program: Program) -> list[str]:
    """One array as it is, several as a tuple."""
    if program.form is None:
        return ["  ret ptr %new0"]
    n = len(program.outputs)
    lines = [f"  %tuple = call ptr @hinge_new_tuple(i64 {n})", "  %none = icmp eq ptr %tuple, null"]
    lines.append("  br i1 %none, label %lost, label %fill\nlost:")
    lines += [f"  call void @hinge_release(ptr %new{i})" for i in range(n)]
    lines.append("  ret ptr null\nfill:")
    call = "call i32 @hinge_set_item(ptr %tuple, i64"
    lines += [f"  %item{i} = {call} {i}, ptr %new{i})" for i in range(n)]
    return [*lines, "  ret ptr %tuple"]

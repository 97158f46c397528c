"""Calls from Python as machine code: arrays checked and read where they lie.

When every argument is exactly what the program expects (an ndarray of the right dtype, C-contiguous
and aligned, for `one` of the shape of a sample, for `many` all with the same one leading dimension)
they make the result arrays, or take those of `out=`, and run the scalar body or the batch.  In any
other case, and for one sample of a strict kernel when a result is not finite, `one` hands the same
arguments to `many`, and that to the Python callable that is the first item of `self`, which knows
what to do or what to say.  The other items: the type of several results; how many samples are worth
a helper; how many helpers there may be; an array with the address of the team that they belong to;
with how many samples `many` begins; what makes large results for so many, and from how many bytes.
"""

from __future__ import annotations

from ..layout import Layout
from .body import Flavor, constants
from .call import Call
from .python import helpers
from .tiles import finite

__all__ = ["batch_call", "single_call"]


def single_call(layout: Layout, f: Flavor, wide: Flavor, slots: int, strict: bool) -> str:
    """The text of `one`; strict: numbers that are not finite are the slow way's business."""
    call = Call(layout.program, f.scalar)
    call.given()
    arguments = [f"ptr {call.argument(i)}" for i in range(len(layout.program.inputs))]
    call.lines += constants(layout, f, "const")
    call.put(f"call void @all_{f.name}({', '.join([*arguments, 'ptr %out', 'ptr %ws'])})")
    if strict:
        more, truth = finite(layout, wide)
        call.lines += more
        call.need(truth)
    # only now, so that a failure leaves them alone
    made, entry = call.results(), 0
    for array, size in zip(made, layout.program.output_sizes, strict=True):
        values = f"ptr %out, ptr getelementptr (i32, ptr @index, i64 {entry})"
        call.put(f"call void @spread_{f.name}({values}, ptr {call.data(array)}, i64 {size})")
        entry += size
    call.package(made)
    room = [
        f"  %ws = alloca [{max(slots, 1)} x {f.type}], align 64",
        f"  %out = alloca [{max(layout.size, 1)} x {f.type}], align 64",
    ]
    on = "  %other = tail call ptr @many(ptr %self, ptr %args, i64 %nargs, ptr %names)"
    return call.function("one", room, on)


def batch_call(layout: Layout, f: Flavor, wide: Flavor) -> str:
    """The text of `many`, and of what both need besides."""
    program = layout.program
    call = Call(program, f.scalar, lead=["%n"])
    if program.inputs:
        call.given()
        for i in range(len(program.inputs)):
            call.set("ptr", call.argument(i), "%arrays", i)
        _helpers(call)
        made = call.results()
        for i, size in enumerate(program.input_sizes + program.output_sizes):
            call.set("i64", call.word * size, "%strides", i)
        call.set("i64", "%n", "%strides", len(program.inputs) + len(made))
        for i, array in enumerate(made, len(program.inputs)):
            call.set("ptr", call.data(array), "%arrays", i)
        _run(call, made, wide.lanes)
        call.package(made)
    else:
        call.put("br label %otherwise")
    arrays = len(program.inputs) + len(program.outputs)
    room = [f"  %arrays = alloca [{arrays} x ptr]", f"  %strides = alloca [{arrays + 1} x i64]"]
    on = """  %python = call ptr @hinge_item(ptr %self, i64 0)
  %other = call ptr @hinge_vectorcall(ptr %python, ptr %args, i64 %nargs, ptr %names)"""
    return helpers(f) + call.function("many", room, on)


def _helpers(call: Call) -> None:
    """How many helpers to ask for; if any, there has to be a team."""
    worth, most = (call.let(f"call i64 @hinge_number(ptr {call.own(i)})") for i in (2, 3))
    wanted = call.let(f"sdiv i64 %n, {worth}")
    call.put(f"%helpers = call i64 @llvm.smin.i64(i64 {wanted}, i64 {most})")
    least = call.let(f"call i64 @hinge_number(ptr {call.own(5)})")
    call.need(call.let(f"icmp sge i64 %n, {least}"))
    call.put(f"%team = load ptr, ptr {call.data(call.own(4))}")
    call.put("%alone = icmp eq i64 %helpers, 0")
    there = call.let("icmp ne ptr %team, null")
    call.need(call.let(f"or i1 %alone, {there}"))


def _run(call: Call, made: list[str], lanes: int) -> None:
    """`run` on all samples, the interpreter's lock let go, with room to work in for everybody."""
    call.put("%bytes = call i64 @workspace()")
    areas = call.let(f"mul i64 %bytes, {call.let('add i64 %helpers, 1')}")
    call.put(f"%room = add i64 {areas}, 64")
    call.put("%scratch = call ptr @hinge_allocate(i64 %room)")
    call.branch(call.let("icmp eq ptr %scratch, null"), "no_room", "run")
    call.label("no_room")
    call.let_go(made)
    call.put("%raised = call ptr @hinge_no_memory()")
    call.put("ret ptr null")
    call.label("run")
    number = call.let("ptrtoint ptr %scratch to i64")
    up = call.let(f"and i64 {call.let(f'sub i64 0, {number}')}, 63")
    aligned = call.let(f"getelementptr i8, ptr %scratch, i64 {up}")
    call.put("%thread = call ptr @hinge_unlock()")
    call.branch("%alone", "run_alone", "run_shared")
    call.label("run_alone")
    call.put(f"call void @run(ptr %arrays, ptr %strides, i64 0, i64 %n, ptr {aligned})")
    call.put("br label %ran")
    call.label("run_shared")
    batch = "ptr %team, ptr @run, ptr %arrays, ptr %strides, i64 %n"
    rest = f"ptr {aligned}, i64 %bytes, i64 %helpers, i64 {lanes}"
    call.put(f"call void {call.let('load ptr, ptr %team')}({batch}, {rest})")
    call.put("br label %ran")
    call.label("ran")
    call.put("call void @hinge_lock(ptr %thread)")
    call.put("call void @hinge_free(ptr %scratch)")

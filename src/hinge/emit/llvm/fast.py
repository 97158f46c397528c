"""Calls from Python as machine code: arrays checked and read where they lie.

When every argument is exactly what the program expects (an ndarray of the right dtype, C-contiguous
and aligned, for `one` of the shape of a sample, for `many` all with the same one leading dimension)
they make the result arrays, or take those of `out=`, and run the scalar body or the batch.  In any
other case, and for one sample of a strict kernel when a result is not finite, `one` hands the same
arguments to `many`, and that to the callable that is the first item of `self`: `copies.py`, and
behind it one of Python, which knows what to do or what to say.  The other items: the type of
several results; how many samples are worth a helper; how many helpers there may be; an array with
the address of the team that they belong to; with how many samples `many` begins; what makes large
results for so many, and from how many bytes; an array for `one` to work in, where that takes more
than the stack should hold (only one call at a time has the interpreter's lock); an array with the
address of memory that batches work in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from ..layout import Layout
from .batch import RUN, indexed
from .body import put_constants
from .builder import NULL, UNLIKELY, Function, Value, i64
from .call import Call
from .flavor import Flavor
from .python import CALL, data, helpers, item

__all__ = ["batch_call", "sample_run", "single_call"]

# bytes of the stack that a single call may take
MOST_STACK = 1 << 18
_LINE = 64


def single_call(layout: Layout, f: Flavor, wide: Flavor, slots: int, strict: bool) -> str:
    """The text of `one`; strict: numbers that are not finite are the slow way's business."""
    program, code, entry = layout.program, Function("one", "ptr", *CALL, linkage=""), 0
    sizes = [-(-max(n, 1) * f.bytes // _LINE) * _LINE for n in (slots, layout.size)]
    room = sum(sizes) if sum(sizes) > MOST_STACK else 0
    with code.once() as other:
        call = Call(code, other, program, f.scalar, batched=False)
        ws, out = _held(call, sizes) if room else (_on_stack(code, size) for size in sizes)
        inputs = call.arguments()
        put_constants(code, layout, f, out)
        code.call(f"all_{f.name}", *inputs, out, ws)
        if strict:
            code.leave(other, _spoilt(code, layout, wide, [*inputs, out]))
        # only now, so that a failure leaves them alone
        arrays = call.results()
        for array, size in zip(arrays, program.output_sizes, strict=True):
            code.call(f"spread_{f.name}", out, indexed(entry), data(code, array), i64(size))
            entry += size
        call.package(arrays)
    text = code.hand_on("many", *code.parameters, result="ptr").text()
    return f"{text}\n{Function('room', 'i64', linkage='').ret(i64(room)).text()}"


def _on_stack(code: Function, size: int) -> Value:
    return code.room(f"[{size} x i8]", f"align {_LINE}")


def _held(call: Call, sizes: Sequence[int]) -> tuple[Value, Value]:
    """Two parts of the array that `self` has for that."""
    first = _aligned(call.code, data(call.code, call.own(8)))
    return first, call.code.at(first, sizes[0])


def _aligned(code: Function, where: Value) -> Value:
    """The next line from an address on."""
    number = code.cast("ptrtoint", where, "i64")
    return code.at(where, code.op("and", code.op("sub", i64(0), number), _LINE - 1))


def sample_run(layout: Layout, f: Flavor, wide: Flavor, slots: int, strict: bool) -> str:
    """The text of `single`: what `run` does, for the first sample alone; scratch is not used."""
    code, entry = Function("single", "void", *RUN, linkage=""), 0
    ws, out = (code.room(f"[{max(n, 1)} x {f.type}]", "align 64") for n in (slots, layout.size))
    inputs, sizes = len(layout.program.inputs), layout.program.output_sizes
    arrays = [code.entry("ptr", code.parameters[0], i) for i in range(inputs + len(sizes))]
    put_constants(code, layout, f, out)
    code.call(f"all_{f.name}", *arrays[:inputs], out, ws)
    for array, size in zip(arrays[inputs:], sizes, strict=True):
        code.call(f"spread_{f.name}", out, indexed(entry), array, i64(size))
        entry += size
    if strict:
        with code.when(_spoilt(code, layout, wide, [*arrays[:inputs], out]), UNLIKELY):
            for array, size in zip(arrays[inputs:], sizes, strict=True):
                with code.count(0, size) as loop:
                    code.put(f.value(nan), array, loop.i)
    return code.ret().text()


def _spoilt(code: Function, layout: Layout, f: Flavor, arrays: Sequence[Value]) -> Value:
    """Whether any number x of one sample's arguments and values is not finite.

    The bits of all x − x are gathered, so many lanes at a time: they are 0 if x is finite.
    """
    bits = f.pattern(0)
    for x, size in zip(arrays, [*layout.program.input_sizes, layout.varying], strict=True):
        bits = code.call(f"gather_row_{f.name}", x, i64(size), bits, result=f.bits)
    return code.call(f"spoilt_{f.name}", bits, result="i1")


def batch_call(layout: Layout, f: Flavor, wide: Flavor) -> str:
    """The text of `many`, and of what both need besides."""
    code = Function("many", "ptr", *CALL, linkage="")
    own, *given = code.parameters
    if layout.program.inputs:
        with code.once() as other:
            _batch(Call(code, other, layout.program, f.scalar, batched=True), wide.lanes)
    code.hand_on("hinge_vectorcall", item(code, own, 0), *given, result="ptr")
    return helpers(f) + code.text()


def _batch(call: Call, lanes: int) -> None:
    """Arrays in, `run` with helpers if they are worth it, arrays out."""
    code, program = call.code, call.program
    sizes = program.input_sizes + program.output_sizes
    arrays, strides = code.room(f"[{len(sizes)} x ptr]"), code.room(f"[{len(sizes) + 1} x i64]")
    inputs = call.arguments()
    wanted, team = _helpers(call)
    made = call.results(inputs)
    for i, x in enumerate([*inputs, *(data(code, array) for array in made)]):
        code.put(x, arrays, i)
    for i, stride in enumerate([*(i64(call.word * size) for size in sizes), call.samples]):
        code.put(stride, strides, i)
    _run(call, made, (arrays, strides), (wanted, team), lanes)
    call.package(made)


def _helpers(call: Call) -> tuple[Value, Value]:
    """How many helpers to ask for, and the team they belong to: if any, there has to be one."""
    code = call.code
    worth, most = call.own_number(2), call.own_number(3)
    wanted = code.least(code.op("sdiv", call.samples, worth), most)
    call.need(code.compare("icmp sge", call.samples, call.own_number(5)))
    team = code.load("ptr", data(code, call.own(4)))
    alone, there = code.compare("icmp eq", wanted, 0), code.compare("icmp ne", team, NULL)
    call.need(code.op("or", alone, there))
    return wanted, team


def _run(
    call: Call,
    made: Sequence[Value],
    batch: tuple[Value, Value],
    helpers: tuple[Value, Value],
    lanes: int,
) -> None:
    """`run` on all samples, the interpreter's lock let go, with room to work in for everybody."""
    code, n, (wanted, team) = call.code, call.samples, helpers
    size = code.call("workspace", result="i64")
    areas = code.op("mul", size, code.op("add", wanted, 1))
    kept = data(code, call.own(9))
    room = code.call("borrowed", kept, code.op("add", areas, 2 * _LINE), result="ptr")
    call.fail_without(room, made, "hinge_no_memory")
    scratch = _aligned(code, code.at(room, 16))
    thread = code.call("hinge_unlock", result="ptr")
    with code.once() as ran:
        with code.when(code.compare("icmp eq", wanted, 0)):
            code.call("run", *batch, i64(0), n, scratch)
            code.jump(ran.done)
        share, run = code.load("ptr", team), Value("ptr", "@run")
        code.call(share, team, run, *batch, n, scratch, size, wanted, i64(lanes))
    code.call("hinge_lock", thread)
    code.call("returned", kept, room)

"""Handlers of XLA's foreign function interface: from a call frame of XLA's to a kernel's `run`.

A handler is given one pointer, to a struct of C (`xla/ffi/api/c_api.h`), and returns null, or an
error that XLA makes for it.  At registration it is asked which version of the interface it speaks;
later it is called with buffers, whose dtype and shape it compares with what the kernel takes.  What
it knows of its kernel is in a table of words behind `hinge_own`, an address that is given when the
code is loaded: one text serves all kernels.

Buffers are (…, *shape), results all with the same leading shape; an argument has it as well, or
none, then it is the same for all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from .builder import HEAD, NULL, Function, Loop, Value, i64

__all__ = ["Word", "handler_text"]


@final
class Word(NamedTuple):
    """What a handler knows, as words one after the other; then of every array the dimensions of
    a sample, its bytes, and where its sizes are.

    major, minor: the version of the interface; dtype: XLA's number of it.
    run, single: the code for batches, and for one sample, 0 if there is none.
    room: bytes of scratch memory for each thread; kept: such a piece of memory, or 0.
    allocate, free: how to get more.
    team, helpers, worth, grain: who else works, how many at most, for how many samples each, in
    parts of multiples of what.  Of a time loop a sample counts once for every step.
    inputs, outputs, buffers: how many arrays, and how many results XLA has room for: one more if
    the kernel wants scratch memory of a card.
    states, timed: how many of the inputs, of a time loop; its outputs are what it records, and then
    the states, which are at the start what was given for them.
    function, launch: a kernel of a card and the driver's function that starts it; threads, shared,
    share: how many threads, bytes and samples a block has; blocks: how many at most, 0 for all.
    context, enter, leave: where the kernel is, and the driver's functions to go there and back.
    """

    major: int
    minor: int
    dtype: int
    inputs: int
    outputs: int
    buffers: int
    states: int = 0
    timed: int = 0
    run: int = 0
    single: int = 0
    room: int = 0
    kept: int = 0
    allocate: int = 0
    free: int = 0
    team: int = 0
    helpers: int = 0
    worth: int = 1
    grain: int = 1
    function: int = 0
    launch: int = 0
    threads: int = 0
    shared: int = 0
    share: int = 1
    blocks: int = 0
    context: int = 0
    enter: int = 0
    leave: int = 0


_FIRST_ARRAY = 8 * len(Word._fields)
# of an array: the dimensions of a sample, its bytes, and where its sizes are
_OWN_RANK, _BYTES, _SIZES, _ARRAY = 0, 8, 16, 24

# offsets in the structs: XLA_FFI_CallFrame, and in it XLA_FFI_Args, Rets and Attrs
_EXTENSION, _API, _CONTEXT, _STAGE = 8, 16, 24, 32
_N_ARGS, _ARGS, _N_RETS, _RETS, _ATTRS = 56, 72, 96, 112, 160
# XLA_FFI_Extension_Base, XLA_FFI_Metadata_Extension, XLA_FFI_Metadata
_KIND, _METADATA, _MAJOR, _MINOR = 8, 24, 24, 28
# XLA_FFI_Buffer, XLA_FFI_Scalar
_DTYPE, _DATA, _RANK, _DIMS, _VALUE = 16, 24, 32, 40, 8
# XLA_FFI_Api, and XLA_FFI_Error_Create_Args
_ERROR_CREATE, _ERROR_SIZE, _MESSAGE, _CODE = 48, 28, 16, 24
_STREAM_GET, _STREAM_SIZE, _STREAM_CONTEXT, _STREAM = 80, 32, 16, 24
_EXECUTE, _ASKED_FOR_METADATA, _INVALID, _EXHAUSTED, _INTERNAL = 3, 1, 3, 8, 13
# launches may be recorded and repeated
_TRAITS, _REPEATABLE = 32, 1

_OWN = Value("ptr", "@hinge_own")
_LINE = 64
_MESSAGES = {
    "unfit": "hinge: a buffer has another dtype or shape than what was traced",
    "no_memory": "hinge: no memory to work in",
    "refused": "hinge: the card refused to start a kernel; it is loaded on the first card only",
}


def handler_text(loop: bool, card: bool) -> str:
    """The module: `handler`, for kernels of samples or for time loops, here or on a card.

    One for time loops has the attributes every and steps.
    """
    texts = [
        f'@{name} = internal constant [{len(text) + 1} x i8] c"{text}\\00"'
        for name, text in _MESSAGES.items()
    ]
    own = "@hinge_own = external global i8"
    handler = (_Scan if loop else _Batch)(card).text()
    parts = [_version(), _failed(), _leading(), _run_all(), _launched()]
    return "\n".join([HEAD, own, *texts, *parts, handler])


def _word(code: Function, name: str, kind: str = "i64") -> Value:
    """What the handler knows by that name."""
    return code.field(kind, _OWN, 8 * Word._fields.index(name))


def _version() -> str:
    """Whether XLA asked for no more than the version, which is then told."""
    code = Function("version", "i1", "ptr frame")
    extension = code.field("ptr", code.parameters[0], _EXTENSION)
    with code.when(code.compare("icmp eq", extension, NULL)):
        code.ret(Value("i1", "false"))
    kind = code.field("i32", extension, _KIND)
    asked = code.compare("icmp eq", kind, _ASKED_FOR_METADATA)
    with code.when(asked):
        metadata = code.field("ptr", extension, _METADATA)
        for name, at in (("major", _MAJOR), ("minor", _MINOR)):
            code.store(_word(code, name, "i32"), code.at(metadata, at))
        code.store(Value("i32", str(_REPEATABLE)), code.at(metadata, _TRAITS))
    return code.ret(asked).text()


def _failed() -> str:
    """An error, made by XLA."""
    code = Function("failed", "ptr", "ptr frame", "ptr message", "i32 code")
    frame, message, number = code.parameters
    given = code.room("[4 x i64]")
    code.store(i64(_ERROR_SIZE), given)
    code.store(NULL, code.at(given, 8))
    code.store(message, code.at(given, _MESSAGE))
    code.store(number, code.at(given, _CODE))
    create = code.field("ptr", code.field("ptr", frame, _API), _ERROR_CREATE)
    return code.ret(code.call(create, given, result="ptr")).text()


def _leading() -> str:
    """How many samples a buffer has, −1 if it does not fit; times: what comes before them."""
    code = Function("leading", "i64", "ptr buffer", "ptr array", "i64 times")
    buffer, array, times = code.parameters
    own = code.field("i64", array, _OWN_RANK)
    lead = code.op("sub", code.field("i64", buffer, _RANK), own)
    dtype = code.field("i32", buffer, _DTYPE)
    sizes = code.field("ptr", array, _SIZES)
    right = code.compare("icmp eq", dtype, _word(code, "dtype", "i32"))
    right = code.op("and", right, code.compare("icmp sge", lead, times))
    with code.when(code.compare("icmp eq", right, 0)):
        code.ret(i64(-1))
    dims = code.field("ptr", buffer, _DIMS)
    with code.count(times, lead, carried=[i64(1)]) as loop:
        loop.next = [code.op("mul", loop.carried[0], code.entry("i64", dims, loop.i))]
    (samples,) = loop.carried
    with code.count(0, own, carried=[samples]) as loop:
        there = code.entry("i64", dims, code.op("add", lead, loop.i))
        same = code.compare("icmp eq", there, code.entry("i64", sizes, loop.i))
        loop.next = [code.select(same, loop.carried[0], i64(-1))]
    return code.ret(loop.carried[0]).text()


class _Handler:
    """A handler while it is written, as far as batches and time loops have it in common."""

    def __init__(self, card: bool) -> None:
        self.card = card
        self.code = code = Function("handler", "ptr", "ptr frame", attributes="#0", linkage="")
        (self.frame,) = code.parameters
        with code.when(code.call("version", self.frame, result="i1")):
            code.ret(NULL)
        stage = code.field("i32", self.frame, _STAGE)
        with code.when(code.compare("icmp ne", stage, _EXECUTE)):
            code.ret(NULL)
        self.inputs, self.outputs = _word(code, "inputs"), _word(code, "outputs")
        self.args = code.field("ptr", self.frame, _ARGS)
        self.rets = code.field("ptr", self.frame, _RETS)
        count = code.op("add", self.inputs, self.outputs)
        self.arrays, self.strides, self.jumps = (
            code.let("ptr", f"alloca i64, i64 {code.op('add', count, 1).name}") for _ in range(3)
        )
        self.count = count

    def array(self, i: Value) -> Value:
        """What is known of array i."""
        at = self.code.op("mul", i, _ARRAY)
        return self.code.at(_OWN, self.code.op("add", at, _FIRST_ARRAY))

    def buffer(self, buffers: Value, i: Value, array: Value, times: Value) -> tuple[Value, Value]:
        """Note where a buffer is; how many samples it has, and the bytes of each."""
        code = self.code
        buffer, known = code.entry("ptr", buffers, i), self.array(array)
        code.put(code.field("ptr", buffer, _DATA), self.arrays, array)
        own = code.call("leading", buffer, known, times, result="i64")
        return own, code.field("i64", known, _BYTES)

    def placed(self, unfit: Loop, i: Value, own: Value, size: Value, samples: Value) -> None:
        """An argument has a row for every sample, or one for all."""
        code = self.code
        shared = code.compare("icmp eq", own, 1)
        self.fit(unfit, code.op("or", shared, code.compare("icmp eq", own, samples)))
        code.put(code.select(shared, i64(0), size), self.strides, i)

    def fit(self, unfit: Loop, truth: Value) -> None:
        """Go on if it is true, else say that something does not fit."""
        self.code.stay(unfit, truth)

    def counted(self, unfit: Loop) -> None:
        """As many buffers as there are arrays."""
        code = self.code
        for known, at in ((self.inputs, _N_ARGS), (_word(code, "buffers"), _N_RETS)):
            self.fit(unfit, code.compare("icmp eq", code.field("i64", self.frame, at), known))

    def scratch(self, helpers: Value) -> Value:
        """Memory for everybody, 0 if there is none: what was kept, or new."""
        code, room = self.code, _word(self.code, "room")
        kept = code.at(_OWN, 8 * Word._fields.index("kept"))
        taken = code.let("i64", f"atomicrmw xchg {kept}, i64 0 acquire")
        alone = code.compare("icmp eq", helpers, 0)
        usable = code.op("and", alone, code.compare("icmp ne", taken, 0))
        with code.when(code.compare("icmp eq", usable, 0)) as new:
            size = code.op("mul", room, code.op("add", helpers, 1))
            asked = code.op("add", size, _LINE)
            more = code.call(_word(code, "allocate", "ptr"), asked, result="ptr")
            number = code.cast("ptrtoint", more, "i64")
            self.keep(taken)
        return code.merged(new, number, taken)

    def keep(self, memory: Value) -> None:
        """Memory for one thread back; what lay there is freed."""
        code = self.code
        kept = code.at(_OWN, 8 * Word._fields.index("kept"))
        before = code.let("i64", f"atomicrmw xchg {kept}, {memory} acq_rel")
        with code.when(code.compare("icmp ne", before, 0)):
            self.freed(before)

    def freed(self, memory: Value) -> None:
        """Memory back to where it came from."""
        code = self.code
        code.call(_word(code, "free", "ptr"), code.cast("inttoptr", memory, "ptr"))

    def helpers(self, work: Value) -> tuple[Value, Value]:
        """How many help with so much, and the team, if there is one in this process."""
        code = self.code
        team = code.load("ptr", _word(code, "team", "ptr"))
        wanted = code.least(code.op("sdiv", work, _word(code, "worth")), _word(code, "helpers"))
        there = code.compare("icmp ne", team, NULL)
        return code.select(there, wanted, i64(0)), team

    def launched(self, entries: int, samples: Value, numbers: Sequence[Value] = ()) -> None:
        """Start a kernel, whose arguments are words: so many of each input, as of each output but
        for the stride of those of a batch, then some numbers, the samples, and scratch memory.
        """
        code, tables = self.code, (self.arrays, self.strides, self.jumps)
        room = code.op("add", code.op("mul", self.count, 3), 8)
        values = code.let("ptr", f"alloca i64, i64 {room.name}")
        with code.count(0, self.arrays_count, carried=[i64(0)]) as loop:
            (at,) = loop.carried
            for k in range(entries):
                word = code.entry("i64", tables[k], loop.i)
                code.put(word, values, code.op("add", at, k))
            short = code.compare("icmp sge", loop.i, self.inputs)
            step = code.select(short, i64(1 if entries == 2 else entries), i64(entries))
            loop.next = [code.op("add", at, step)]
        (at,) = loop.carried
        for k, number in enumerate((*numbers, samples, self.room())):
            code.put(number, values, code.op("add", at, k))
        count = code.op("add", at, len(numbers) + 2)
        result = code.call("launched", self.frame, values, count, samples, result="i32")
        with code.when(code.compare("icmp ne", result, 0)):
            self.fail("refused", _INTERNAL)

    @property
    def arrays_count(self) -> Value:
        """How many arrays the kernel takes."""
        return self.count

    def room(self) -> Value:
        """Where the scratch memory of a card is, the last result; 0 if it wants none."""
        code = self.code
        more = code.compare("icmp sgt", _word(code, "buffers"), self.outputs)
        with code.when(more) as case:
            buffer = code.entry("ptr", self.rets, self.outputs)
            found = code.field("i64", buffer, _DATA)
        return code.merged(case, found, i64(0))

    def worked(self, run: Value, tables: tuple[Value, Value], samples: Value, work: Value) -> None:
        """All samples, with helpers if they are worth it."""
        code = self.code
        wanted, team = self.helpers(work)
        memory = self.scratch(wanted)
        with code.when(code.compare("icmp eq", memory, 0)):
            self.fail("no_memory", _EXHAUSTED)
        whole = code.op("and", code.op("add", memory, _LINE - 1), -_LINE)
        place = code.cast("inttoptr", whole, "ptr")
        with code.once() as done:
            with code.when(code.compare("icmp eq", wanted, 0)):
                code.call(run, *tables, i64(0), samples, place)
                self.keep(memory)
                code.jump(done.done)
            given = team, run, *tables, samples, place, _word(code, "room"), wanted
            code.call(code.load("ptr", team), *given, _word(code, "grain"))
            self.freed(memory)

    def fail(self, message: str, number: int) -> None:
        """Return an error."""
        given = self.frame, Value("ptr", f"@{message}"), Value("i32", str(number))
        self.code.ret(self.code.call("failed", *given, result="ptr"))


class _Batch(_Handler):
    """Samples that have nothing to do with each other."""

    def text(self) -> str:
        """The whole function."""
        code = self.code
        with code.once() as unfit:
            self.counted(unfit)
            samples = self.taken(unfit)
            with code.when(code.compare("icmp eq", samples, 0)):
                code.ret(NULL)
            if self.card:
                self.launched(2, samples)
                code.ret(NULL)
            tables = self.arrays, self.strides
            single = _word(code, "single", "ptr")
            one = code.compare("icmp eq", samples, 1)
            with code.when(code.op("and", one, code.compare("icmp ne", single, NULL))):
                code.call(single, *tables, i64(0), i64(1), NULL)
                code.ret(NULL)
            self.worked(_word(code, "run", "ptr"), tables, samples, samples)
            code.ret(NULL)
        self.fail("unfit", _INVALID)
        return code.text()

    def taken(self, unfit: Loop) -> Value:
        """Addresses and strides of all arrays; the number of samples, which results have."""
        code = self.code
        first = code.entry("ptr", self.rets, 0)
        samples = code.call("leading", first, self.array(self.inputs), i64(0), result="i64")
        with code.count(0, self.inputs) as loop:
            own, size = self.buffer(self.args, loop.i, loop.i, i64(0))
            self.placed(unfit, loop.i, own, size, samples)
        with code.count(0, self.outputs) as loop:
            i = code.op("add", self.inputs, loop.i)
            own, size = self.buffer(self.rets, loop.i, i, i64(0))
            self.fit(unfit, code.compare("icmp eq", own, samples))
            code.put(size, self.strides, i)
        code.put(samples, self.strides, self.count)
        return samples


class _Scan(_Handler):
    """Steps of samples: what is recorded, and the states, which are worked on where they are."""

    @property
    def arrays_count(self) -> Value:
        """How many arrays the kernel takes: states are among the arguments."""
        return self.code.op("sub", self.count, self.states)

    def text(self) -> str:
        """The whole function."""
        code = self.code
        attributes = code.field("ptr", self.frame, _ATTRS)
        self.every, self.steps = (self.attribute(attributes, i) for i in range(2))
        self.states = _word(code, "states")
        self.records = code.op("sub", self.outputs, self.states)
        with code.once() as unfit:
            self.counted(unfit)
            samples = self.given(unfit)
            self.recorded(unfit, samples)
            self.begun(unfit, samples)
            work = code.op("mul", samples, self.steps)
            with code.when(code.compare("icmp eq", work, 0)):
                code.ret(NULL)
            if self.card:
                self.launched(3, samples, (self.steps, self.every, self.every))
            else:
                self.worked(Value("ptr", "@run_all"), (self.tables(), NULL), samples, work)
            code.ret(NULL)
        self.fail("unfit", _INVALID)
        return code.text()

    def attribute(self, attributes: Value, i: int) -> Value:
        """A whole number that was given when the call was traced."""
        scalar = self.code.entry("ptr", attributes, i)
        return self.code.load("i64", self.code.field("ptr", scalar, _VALUE))

    def given(self, unfit: Loop) -> Value:
        """Addresses, strides and jumps of the arguments; the number of samples."""
        code, last = self.code, self.code.op("add", self.states, _word(self.code, "timed"))
        final = code.entry("ptr", self.rets, self.records)
        samples = code.call("leading", final, self.array(i64(0)), i64(0), result="i64")
        with code.count(0, self.inputs) as loop:
            later = code.compare("icmp sge", loop.i, self.states)
            goes_on = code.op("and", later, code.compare("icmp slt", loop.i, last))
            times = code.cast("zext", goes_on, "i64")
            own, size = self.buffer(self.args, loop.i, loop.i, times)
            self.placed(unfit, loop.i, own, size, samples)
            with code.when(goes_on):
                self.as_long(unfit, code.entry("ptr", self.args, loop.i), self.steps)
            code.put(code.op("mul", code.op("mul", own, size), times), self.jumps, loop.i)
        return samples

    def recorded(self, unfit: Loop, samples: Value) -> None:
        """The same of what is recorded."""
        code, rows = self.code, self.code.op("sdiv", self.steps, self.every)
        with code.count(0, self.records) as loop:
            i = code.op("add", self.inputs, loop.i)
            own, size = self.buffer(self.rets, loop.i, i, i64(1))
            self.fit(unfit, code.compare("icmp eq", own, samples))
            self.as_long(unfit, code.entry("ptr", self.rets, loop.i), rows)
            code.put(size, self.strides, i)
            code.put(code.op("mul", own, size), self.jumps, i)

    def as_long(self, unfit: Loop, buffer: Value, times: Value) -> None:
        """Its first dimension is time."""
        there = self.code.load("i64", self.code.field("ptr", buffer, _DIMS))
        self.fit(unfit, self.code.compare("icmp eq", there, times))

    def begun(self, unfit: Loop, samples: Value) -> None:
        """States where they are to be at the end: XLA has put them there."""
        code = self.code
        with code.count(0, self.states) as loop:
            known = self.array(loop.i)
            buffer = code.entry("ptr", self.rets, code.op("add", self.records, loop.i))
            own = code.call("leading", buffer, known, i64(0), result="i64")
            self.fit(unfit, code.compare("icmp eq", own, samples))
            code.put(code.field("ptr", buffer, _DATA), self.arrays, loop.i)
            code.put(code.field("i64", known, _BYTES), self.strides, loop.i)

    def tables(self) -> Value:
        """All that `run_all` hands to the time loop."""
        code = self.code
        plan, tables = code.room("[3 x i64]"), code.room("[5 x ptr]")
        for i, number in enumerate((self.steps, self.every, self.every)):
            code.put(number, plan, i)
        run = _word(code, "run", "ptr")
        for i, table in enumerate((self.arrays, self.strides, self.jumps, plan, run)):
            code.put(table, tables, i)
        return tables


def _run_all() -> str:
    """A time loop as if it were a batch, for those who share one."""
    given = "ptr tables", "ptr nothing", "i64 begin", "i64 end", "ptr scratch"
    code = Function("run_all", "void", *given)
    tables, _, begin, end, scratch = code.parameters
    *four, run = (code.entry("ptr", tables, i) for i in range(5))
    code.call(run, *four, begin, end, scratch)
    return code.ret().text()


def _launched() -> str:
    """A kernel of a card started on XLA's stream: 0, or what the driver says."""
    given = "ptr frame", "ptr values", "i64 n", "i64 samples"
    code = Function("launched", "i32", *given)
    frame, values, n, samples = code.parameters
    asked, nothing = code.room("[4 x i64]"), code.room("ptr")
    code.store(i64(_STREAM_SIZE), asked)
    code.store(NULL, code.at(asked, 8))
    code.store(code.field("ptr", frame, _CONTEXT), code.at(asked, _STREAM_CONTEXT))
    get = code.field("ptr", code.field("ptr", frame, _API), _STREAM_GET)
    error = code.call(get, asked, result="ptr")
    with code.when(code.compare("icmp ne", error, NULL)):
        code.ret(Value("i32", "-1"))
    pointers = code.let("ptr", f"alloca ptr, {n}")
    with code.count(0, n) as loop:
        code.put(code.at(values, loop.i, "i64"), pointers, loop.i)
    share, most = _word(code, "share"), _word(code, "blocks")
    up = code.op("sub", code.op("add", samples, share), 1)
    every = code.op("sdiv", up, share)
    few = code.select(code.compare("icmp sgt", most, 0), code.least(every, most), every)
    one = Value("i32", "1")
    grid = code.cast("trunc", few, "i32"), one, one
    block = _word(code, "threads", "i32"), one, one, _word(code, "shared", "i32")
    stream = code.field("ptr", asked, _STREAM)
    code.call(_word(code, "enter", "ptr"), _word(code, "context", "ptr"), result="i32")
    given = _word(code, "function", "ptr"), *grid, *block, stream, pointers, NULL
    result = code.call(_word(code, "launch", "ptr"), *given, result="i32")
    code.call(_word(code, "leave", "ptr"), nothing, result="i32")
    return code.ret(result).text()

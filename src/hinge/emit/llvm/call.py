"""A function that Python can call, step by step: what it is given, and what it returns.

It is a METH_FASTCALL | METH_KEYWORDS function that looks into the ndarray structs.  `need` leaves
it for whoever knows more; nothing has been changed by then, and no reference taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ...graph.program import Program
from .builder import NULL, Function, Loop, Operand, Value, i64
from .python import LIST, TUPLE, data, item, kind_of

__all__ = ["Call"]

# offsets in PyArrayObject on 64-bit builds with a global lock: after the 16 bytes of the object
_ND, _DIMENSIONS, _DESCR, _FLAGS = 24, 32, 56, 64
_READABLE, _WRITEABLE = 0x101, 0x501
# bytes, number among the types of NumPy, descriptor
_KINDS = {"double": (8, 12, "@hinge_descr_f64"), "float": (4, 11, "@hinge_descr_f32")}
_NDARRAY, _OUT = Value("ptr", "@hinge_ndarray"), Value("ptr", "@hinge_out")


@final
class Call:
    """The function as far as it is the same for one sample and for many.

    other: what is left for whoever knows more; batched: arrays have a leading dimension, `samples`;
    made: room for the addresses of the results.
    """

    def __init__(
        self, code: Function, other: Loop, program: Program, scalar: str, batched: bool
    ) -> None:
        self.code, self.other, self.program, self.batched = code, other, program, batched
        self.word, self.number, descr = _KINDS[scalar]
        self.descr, self.samples = Value("ptr", descr), i64(1)
        dimensions = max([len(shape) for shape in program.outputs] + [0])
        self.shape = code.room(f"[{dimensions + 1} x i64]")
        self.made = code.room(f"[{max(len(program.outputs), 1)} x ptr]")

    def need(self, truth: Value) -> None:
        """Go on if it is true, else leave."""
        self.code.stay(self.other, truth)

    def need_equal(self, a: Value, b: Operand) -> None:
        """Go on if they are the same, else leave."""
        self.need(self.code.compare("icmp eq", a, b))

    def own(self, i: int) -> Value:
        """An item of self."""
        return item(self.code, self.code.parameters[0], i)

    def own_number(self, i: int) -> Value:
        """An item of self that is a whole number."""
        return self.code.call("hinge_number", self.own(i), result="i64")

    # what is given

    def arguments(self) -> list[Value]:
        """Where the numbers of the arguments are, if they are what is expected.

        That is the right number of arrays, all with as many samples as the first, and nothing by
        name but out.
        """
        code = self.code
        _, args, nargs, names = code.parameters
        self.need_equal(nargs, len(self.program.inputs))
        with code.when(code.compare("icmp ne", names, NULL)):
            self.need_equal(code.call("hinge_size", names, result="i64"), 1)
            self.need_equal(item(code, names, 0), _OUT)
        return [self.argument(args, i) for i in range(len(self.program.inputs))]

    def argument(self, args: Value, i: int) -> Value:
        """Where the numbers of argument i are, if it is what is expected."""
        array, shape = self.code.entry("ptr", args, i), self.program.inputs[i]
        self.array(array, _READABLE, len(shape))
        if self.batched and i == 0:
            self.samples = self.code.field("i64", self.code.field("ptr", array, _DIMENSIONS), 0)
        self.dimensions(array, shape)
        return data(self.code, array)

    def array(self, array: Value, flags: int, dimensions: int) -> None:
        """An ndarray of the right kind."""
        self.need_equal(kind_of(self.code, array), _NDARRAY)
        self.need_equal(self.code.field("ptr", array, _DESCR), self.descr)
        have = self.code.op("and", self.code.field("i32", array, _FLAGS), flags)
        self.need_equal(have, flags)
        self.need_equal(self.code.field("i32", array, _ND), self.batched + dimensions)

    def whole(self, shape: Sequence[int]) -> list[Value]:
        """The shape of all samples from that of one."""
        return [self.samples] * self.batched + [i64(size) for size in shape]

    def dimensions(self, array: Value, shape: Sequence[int]) -> None:
        """It has the shape of a sample, or of all."""
        own = self.code.field("ptr", array, _DIMENSIONS)
        for k, size in enumerate(self.whole(shape)):
            self.need_equal(self.code.entry("i64", own, k), size)

    # results

    def results(self, unread: Sequence[Value] = ()) -> list[Value]:
        """The arrays of the results: those of out, or new ones.

        unread: where the arguments are if they are still to be read.
        """
        code = self.code
        with code.once() as ready:
            with code.when(code.compare("icmp ne", code.parameters[3], NULL)):
                self.taken(unread)
                code.jump(ready.done)
            if self.batched:
                self.remembered(ready)
            self.new()
        return [code.entry("ptr", self.made, i) for i in range(len(self.program.outputs))]

    def taken(self, unread: Sequence[Value]) -> None:
        """Those of out, if they are what is expected."""
        arrays = self.out()
        for array, shape in zip(arrays, self.program.outputs, strict=True):
            self.array(array, _WRITEABLE, len(shape))
            self.dimensions(array, shape)
        self.apart(arrays, unread)
        self.retained(arrays)

    def out(self) -> list[Value]:
        """What `out` names: one array, or as many in a tuple or list as there are results."""
        code, count = self.code, len(self.program.outputs)
        given = code.entry("ptr", code.parameters[1], len(self.program.inputs))
        if self.program.form is None:
            return [given]
        kind, known = kind_of(code, given), (LIST, TUPLE, self.own(1))
        listed, plain, named = (code.compare("icmp eq", kind, t) for t in known)
        self.need(code.op("or", listed, code.op("or", plain, named)))
        size, get = (
            code.let("ptr", f"select {listed}, ptr @hinge_list_{name}, ptr @hinge_{name}")
            for name in ("size", "item")
        )
        self.need_equal(code.call(size, given, result="i64"), count)
        return [code.call(get, given, i64(i), result="ptr") for i in range(count)]

    def apart(self, arrays: Sequence[Value], unread: Sequence[Value]) -> None:
        """No result shares memory with another one, nor with an argument that is still to be read:

        of a batch, a later sample could be overwritten; one sample is read before any is written.
        """
        code, sizes = self.code, self.program.input_sizes
        taken = [(x, self.end(x, size)) for x, size in zip(unread, sizes, strict=False)]
        for array, size in zip(arrays, self.program.output_sizes, strict=True):
            begin = data(code, array)
            end = self.end(begin, size)
            for other_begin, other_end in taken:
                before = code.compare("icmp ule", other_end, begin)
                after = code.compare("icmp ule", end, other_begin)
                self.need(code.op("or", before, after))
            taken.append((begin, end))

    def end(self, begin: Value, size: int) -> Value:
        """Where an array with so many numbers per sample ends."""
        return self.code.at(begin, self.bytes(size))

    def bytes(self, size: int) -> Value:
        """How many bytes so many numbers per sample are."""
        return self.code.op("mul", self.samples, self.word * size)

    def retained(self, arrays: Sequence[Value]) -> None:
        """Arrays of others become results."""
        for i, array in enumerate(arrays):
            self.code.call("hinge_retain", array)
            self.code.put(array, self.made, i)

    def remembered(self, ready: Loop) -> None:
        """Results of more bytes than item 7 of `self` says: from item 6, which knows of some."""
        code, size = self.code, self.bytes(sum(self.program.output_sizes))
        with code.when(code.compare("icmp sgt", size, self.own_number(7))):
            number = code.call("hinge_from_number", self.samples, result="ptr")
            code.store(number, self.made)
            asked = self.own(6), self.made, i64(1), NULL
            arrays = code.call("hinge_vectorcall", *asked, result="ptr")
            code.call("hinge_release", number)
            self.fail_without(arrays)
            self.retained([item(code, arrays, i) for i in range(len(self.program.outputs))])
            code.call("hinge_release", arrays)
            code.jump(ready.done)

    def new(self) -> None:
        """New arrays; if one cannot be made, those before it are let go, and its error is told."""
        code, arrays = self.code, []
        if self.batched and len(self.program.outputs) > 1:
            self.keep_pages()
        for i, sizes in enumerate(self.program.outputs):
            shape = self.whole(sizes)
            for k, size in enumerate(shape):
                code.put(size, self.shape, k)
            dimensions, number, none = (Value("i32", str(k)) for k in (len(shape), self.number, 0))
            given = _NDARRAY, dimensions, self.shape, number, NULL, NULL, none, none, NULL
            array = code.call("hinge_new_array", *given, result="ptr")
            self.fail_without(array, arrays)
            code.put(array, self.made, i)
            arrays.append(array)

    def keep_pages(self) -> None:
        """Take and free one block as large as all results together.

        The C library of Linux returns freed memory to the system, which hands it out again page by
        page and zeroed, once more lies free than twice the largest block freed before: several
        large results, freed together, would pay for their pages at every call.
        """
        size = self.bytes(sum(self.program.output_sizes))
        self.code.call("hinge_free", self.code.call("hinge_allocate", size, result="ptr"))

    def fail_without(self, x: Value, arrays: Sequence[Value] = (), error: str = "") -> None:
        """If there is no x, let arrays go and return an error; error: who sets it, if it is not."""
        with self.code.when(self.code.compare("icmp eq", x, NULL)):
            for array in arrays:
                self.code.call("hinge_release", array)
            if error:
                self.code.call(error, result="ptr")
            self.code.ret(NULL)

    def package(self, arrays: Sequence[Value]) -> None:
        """Return one array as it is, several as a tuple of the type that `self` names."""
        if self.program.form is None:
            self.code.ret(arrays[0])
            return
        given = self.made, i64(len(arrays)), self.own(1)
        self.code.ret(self.code.call("together", *given, result="ptr"))

"""Calls of kernels on a card as machine code: tensors looked into, results made, the launch.

When every argument is exactly what the kernel expects (a tensor of the one type that is known, on
its card, of its dtype, with one leading dimension, the entries of a sample contiguous) the results
are made, or that of `out=` is taken, and the kernel is launched on the stream that is current.  In
any other case, and if the launch fails, all goes to the Python callable that is the first item of
`self`.  The second item is the type of several results, the third an array with a table of words.

Tensors are looked into by functions of their package, those of DLPack's exchange API (dlpack.h,
version 1.3): `__dlpack_c_exchange_api__` of their type.

    word  0    1     2       3        4       5     6        7       8       9
          api  type  inputs  outputs  device  item  several  launch  kernel  threads
    word  10      11       12
          shared  samples  most    then the arrays, inputs first

samples: that a block works at; most: how many blocks there may be, 0 for any number.  An array is:
its number of entries, ndim and dtype as DLTensor has them, how many dimensions a sample has, their
sizes (DIMENSIONS), their strides.
"""

from __future__ import annotations

from .builder import HEAD, NULL, Function, Loop, Value, i64
from .python import CALL, data, item, kind_of, together

__all__ = ["ARRAY", "ARRAYS", "CUDA", "DIMENSIONS", "FIRST", "card_text"]

# dimensions of a sample, words of an array, where arrays begin, how many of them there may be
DIMENSIONS, FIRST, ARRAYS = 4, 13, 24
ARRAY = 3 + 2 * DIMENSIONS
CUDA = 2
# of DLPackExchangeAPI: functions; of DLTensor: fields; of DLManagedTensorVersioned: the tensor
_NEW, _TO_PYTHON, _LOOK, _STREAM = 16, 32, 40, 48
_DEVICE, _KIND, _SHAPE, _STRIDES, _OFFSET = 8, 16, 24, 32, 40
_TENSOR = 32
_FALSE, _GRAD = Value("ptr", "@hinge_false"), Value("ptr", "@hinge_requires_grad")

_DECLARATIONS = """
@hinge_tuple = external global i8
@hinge_out = external global i8
@hinge_false = external global i8
@hinge_requires_grad = external global i8
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
declare ptr @hinge_new_tuple(i64)
declare ptr @hinge_tuple_subtype(ptr, ptr, ptr)
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare i32 @hinge_set_item(ptr, i64, ptr)
declare void @hinge_retain(ptr)
declare void @hinge_release(ptr)
declare ptr @hinge_attribute(ptr, ptr)
declare void @hinge_forget()
"""


def card_text() -> str:
    """The module, which is `card`."""
    code = Function("card", "ptr", *CALL, linkage="")
    own, *given = code.parameters
    with code.once() as other:
        _Launch(code, other).text()
    code.hand_on("hinge_vectorcall", item(code, own, 0), *given, result="ptr")
    parts = [HEAD, _DECLARATIONS, together(), _silent(), _looked(), _made(), _meets()]
    return "\n".join([*parts, code.text()])


def _silent() -> str:
    """What a package calls when it has no memory: that is said when the call is made again."""
    return Function("silent", "void", "ptr context", "ptr kind", "ptr message").ret().text()


def _looked() -> str:
    """i64 looked(x, table, array, found): 1 if x is a tensor such as the array is, else 0.

    found: its address, the bytes from sample to sample, the number of samples.
    """
    code = Function("looked", "i64", "ptr x", "ptr table", "ptr array", "ptr found")
    x, table, array, found = code.parameters
    tensor = code.room("[6 x i64]")
    with code.once() as other:
        known = code.entry("ptr", table, 1)
        code.stay(other, code.compare("icmp eq", kind_of(code, x), known))
        look = code.field("ptr", code.entry("ptr", table, 0), _LOOK)
        with code.when(code.compare("icmp ne", code.call(look, x, tensor, result="i32"), 0)):
            code.call("hinge_forget")
            code.ret(i64(0))
        place, kind = (code.field("i64", tensor, k) for k in (_DEVICE, _KIND))
        code.stay(other, code.compare("icmp eq", place, code.entry("i64", table, 4)))
        code.stay(other, code.compare("icmp eq", kind, code.entry("i64", array, 1)))
        shape, strides = (code.field("ptr", tensor, k) for k in (_SHAPE, _STRIDES))
        code.stay(other, code.compare("icmp ne", strides, NULL))
        _compare_dimensions(code, array, shape, strides, other)
        _refuse_gradients(code, x, other)
        begin = code.op("add", code.field("i64", tensor, 0), code.field("i64", tensor, _OFFSET))
        apart = code.op("mul", code.entry("i64", strides, 0), code.entry("i64", table, 5))
        for k, value in enumerate((begin, apart, code.entry("i64", shape, 0))):
            code.put(value, found, k)
        code.ret(i64(1))
    return code.ret(i64(0)).text()


def _compare_dimensions(
    code: Function, array: Value, shape: Value, strides: Value, other: Loop
) -> None:
    """Those of a sample, and that its entries are contiguous."""
    sizes, steps = code.at(array, 3, "i64"), code.at(array, 3 + DIMENSIONS, "i64")
    with code.count(0, code.entry("i64", array, 2)) as d:
        after = code.op("add", d.i, 1)
        for wanted, has in ((sizes, shape), (steps, strides)):
            same = code.entry("i64", wanted, d.i), code.entry("i64", has, after)
            code.stay(other, code.compare("icmp eq", *same))


def _refuse_gradients(code: Function, x: Value, other: Loop) -> None:
    """Through these calls none would come."""
    wanted = code.call("hinge_attribute", x, _GRAD, result="ptr")
    with code.when(code.compare("icmp eq", wanted, NULL)):
        code.call("hinge_forget")
        code.ret(i64(0))
    code.call("hinge_release", wanted)
    code.stay(other, code.compare("icmp eq", wanted, _FALSE))


def _made() -> str:
    """ptr made(table, array, samples, found): a new tensor, null without; found: its address."""
    code = Function("made", "ptr", "ptr table", "ptr array", "i64 samples", "ptr found")
    table, array, samples, found = code.parameters
    tensor, sizes = code.room("[6 x i64]"), code.room(f"[{DIMENSIONS + 1} x i64]")
    managed, result = code.room("ptr"), code.room("ptr")
    code.put(samples, sizes, 0)
    with code.count(0, code.entry("i64", array, 2)) as d:
        size = code.entry("i64", code.at(array, 3, "i64"), d.i)
        code.put(size, sizes, code.op("add", d.i, 1))
    fields = i64(0), code.entry("i64", table, 4), code.entry("i64", array, 1), sizes, NULL, i64(0)
    for k, value in enumerate(fields):
        code.store(value, code.at(tensor, 8 * k))
    api = code.entry("ptr", table, 0)
    with code.once() as failed:
        silent = Value("ptr", "@silent")
        new, to_python = (code.field("ptr", api, k) for k in (_NEW, _TO_PYTHON))
        code.stay(failed, _is_zero(code, new, tensor, managed, NULL, silent))
        whole = code.load("ptr", managed)
        begin, offset = (code.field("i64", whole, _TENSOR + k) for k in (0, _OFFSET))
        code.store(code.op("add", begin, offset), found)
        code.stay(failed, _is_zero(code, to_python, whole, result))
        code.ret(code.load("ptr", result))
    code.call("hinge_forget")
    return code.ret(NULL).text()


def _is_zero(code: Function, function: Value, *given: Value) -> Value:
    """Whether a function comes back with 0, as those of C do that went well."""
    return code.compare("icmp eq", code.call(function, *given, result="i32"), 0)


def _meets() -> str:
    """i64 meets(begin, end, values, table, samples): 1 if an argument has some of that memory."""
    given = "i64 begin", "i64 end", "ptr values", "ptr table", "i64 samples"
    code = Function("meets", "i64", *given)
    begin, end, values, table, samples = code.parameters
    item_ = code.entry("i64", table, 5)
    with code.count(0, code.entry("i64", table, 2)) as k:
        pair = code.at(values, code.op("mul", k.i, 16))
        start, apart = (code.entry("i64", pair, j) for j in range(2))
        array = code.at(table, code.op("add", code.op("mul", k.i, ARRAY), FIRST), "i64")
        row = code.op("mul", code.entry("i64", array, 0), item_)
        rest = code.op("mul", code.op("sub", samples, 1), apart)
        stop = code.op("add", code.op("add", start, rest), row)
        inside = code.compare("icmp slt", start, end), code.compare("icmp slt", begin, stop)
        with code.when(code.op("and", *inside)):
            code.ret(i64(1))
    return code.ret(i64(0)).text()


class _Launch:
    """The call itself; other: what is left for whoever knows more."""

    def __init__(self, code: Function, other: Loop) -> None:
        self.code, self.other = code, other
        self.own, self.args, self.nargs, self.names = code.parameters
        self.found, self.stream = code.room("[3 x i64]"), code.room("ptr")
        self.values = code.room(f"[{2 * ARRAYS + 2} x i64]")
        self.pointers = code.room(f"[{2 * ARRAYS + 2} x ptr]")
        self.results = code.room(f"[{ARRAYS} x ptr]")
        self.table = data(code, item(code, self.own, 2))
        words = (0, 2, 3, 5, 6)
        self.api, self.inputs, self.outputs, self.item, self.several = map(self.word, words)

    def word(self, i: int) -> Value:
        """A word of the table."""
        return self.code.entry("i64", self.table, i)

    def array(self, i: Value) -> Value:
        """What the table says of an array."""
        place = self.code.op("add", self.code.op("mul", i, ARRAY), FIRST)
        return self.code.at(self.table, place, "i64")

    def need_equal(self, a: Value, b: Value | int) -> None:
        """Go on if they are the same, else leave."""
        self.code.stay(self.other, self.code.compare("icmp eq", a, b))

    def text(self) -> None:
        """All of it."""
        code = self.code
        code.stay(self.other, code.compare("icmp ne", self.api, 0))
        self.need_equal(self.nargs, self.inputs)
        samples = self.arguments()
        self.current_stream()
        with code.when(code.compare("icmp eq", self.names, NULL)):
            self.make(samples)
            self.launch(samples, own=True)
            self.give_back()
        self.take(samples)
        self.launch(samples, own=False)
        result = code.entry("ptr", self.results, 0)
        code.call("hinge_retain", result)
        code.ret(result)

    def arguments(self) -> Value:
        """Addresses and strides of all arguments; how many samples they have."""
        code, first = self.code, self.code.room("i64")
        with code.count(0, self.inputs) as k:
            self.look(code.entry("ptr", self.args, k.i), k.i)
            samples = code.entry("i64", self.found, 2)
            with code.when(code.compare("icmp eq", k.i, 0)):
                code.store(samples, first)
            self.need_equal(samples, code.load("i64", first))
            apart = code.entry("i64", self.found, 1)
            code.stay(self.other, code.compare("icmp sge", apart, 0))
            at = code.at(self.values, code.op("mul", k.i, 16))
            code.put(code.entry("i64", self.found, 0), at, 0)
            code.put(apart, at, 1)
        samples = code.load("i64", first)
        code.stay(self.other, code.compare("icmp sgt", samples, 0))
        return samples

    def look(self, x: Value, i: Value) -> None:
        """Look into a tensor, which has to be as array i is."""
        given = x, self.table, self.array(i), self.found
        self.need_equal(self.code.call("looked", *given, result="i64"), 1)

    def current_stream(self) -> None:
        """That of the package, on the device of its arrays."""
        code = self.code
        get = code.field("ptr", code.cast("inttoptr", self.api, "ptr"), _STREAM)
        place = self.word(4)
        number = code.cast("trunc", code.op("lshr", place, 32), "i32")
        given = Value("i32", str(CUDA)), number, self.stream
        self.need_equal(code.call(get, *given, result="i32"), 0)

    def put_result(self, k: Value) -> None:
        """The address of result k among the arguments of the kernel."""
        place = self.code.op("add", self.code.op("mul", self.inputs, 2), k)
        self.code.put(self.code.entry("i64", self.found, 0), self.values, place)

    def make(self, samples: Value) -> None:
        """New results."""
        code = self.code
        with code.count(0, self.outputs) as k:
            array = self.array(code.op("add", self.inputs, k.i))
            given = self.table, array, samples, self.found
            x = code.call("made", *given, result="ptr")
            with code.when(code.compare("icmp eq", x, NULL)):
                self.drop(k.i)
                code.jump(self.other.done)
            code.put(x, self.results, k.i)
            self.put_result(k.i)

    def drop(self, n: Value) -> None:
        """Let go of the first n results."""
        with self.code.count(0, n) as k:
            self.code.call("hinge_release", self.code.entry("ptr", self.results, k.i))

    def take(self, samples: Value) -> None:
        """A result that is given by name, as out, and shares no memory with arguments."""
        code, out = self.code, Value("ptr", "@hinge_out")
        self.need_equal(code.call("hinge_size", self.names, result="i64"), 1)
        self.need_equal(item(code, self.names, 0), out)
        given = code.entry("ptr", self.args, self.nargs)
        # whether several share memory is looked at by who knows more
        self.need_equal(self.several, 0)
        code.put(given, self.results, 0)
        self.look(given, self.inputs)
        begin, apart, found = (code.entry("i64", self.found, j) for j in range(3))
        row = code.op("mul", code.entry("i64", self.array(self.inputs), 0), self.item)
        self.need_equal(found, samples)
        self.need_equal(apart, row)
        end = code.op("add", begin, code.op("mul", row, samples))
        meets = begin, end, self.values, self.table, samples
        self.need_equal(code.call("meets", *meets, result="i64"), 0)
        self.put_result(i64(0))

    def launch(self, samples: Value, own: bool) -> None:
        """The kernel; if that fails, results of its own are let go, and another tries."""
        code = self.code
        count = code.op("add", code.op("mul", self.inputs, 2), self.outputs)
        code.put(samples, self.values, count)
        code.put(i64(0), self.values, code.op("add", count, 1))
        with code.count(0, code.op("add", count, 2)) as k:
            code.put(code.at(self.values, k.i, "i64"), self.pointers, k.i)
        one, words = Value("i32", "1"), [self.short(k) for k in (9, 10)]
        blocks = self.blocks(samples)
        kernel, function = (code.entry("ptr", self.table, k) for k in (8, 7))
        given = kernel, blocks, one, one, words[0], one, one, words[1]
        stream = code.load("ptr", self.stream)
        good = _is_zero(code, function, *given, stream, self.pointers, NULL)
        if own:
            with code.when(code.compare("icmp eq", good, 0)):
                self.drop(self.outputs)
                code.jump(self.other.done)
        else:
            code.stay(self.other, good)

    def short(self, i: int) -> Value:
        """A word of the table as a number of 32 bits."""
        return self.code.cast("trunc", self.word(i), "i32")

    def blocks(self, samples: Value) -> Value:
        """How many blocks there are."""
        code, each, most = self.code, self.word(11), self.word(12)
        wanted = code.op("udiv", code.op("add", samples, code.op("sub", each, 1)), each)
        some = code.least(wanted, most)
        bounded = code.select(code.compare("icmp sgt", most, 0), some, wanted)
        return code.cast("trunc", bounded, "i32")

    def give_back(self) -> None:
        """The result, or several together."""
        code = self.code
        with code.when(code.compare("icmp eq", self.several, 0)):
            code.ret(code.entry("ptr", self.results, 0))
        form = item(code, self.own, 1)
        code.ret(code.call("together", self.results, self.outputs, form, result="ptr"))

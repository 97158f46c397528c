"""What calls from Python need besides the arithmetic: functions of Python and NumPy, and loops."""

from __future__ import annotations

from .builder import NULL, Function, Operand, Value, i64
from .flavor import Flavor

__all__ = ["CALL", "LIST", "TUPLE", "data", "helpers", "item", "kind_of", "together"]

# what Python gives: its own object, arguments by place and then by name, how many by place, names
CALL = ("ptr self", "ptr args", "i64 nargs", "ptr names")
TUPLE, LIST = Value("ptr", "@hinge_tuple"), Value("ptr", "@hinge_list")
# where an object has its type, and an ndarray the address of its numbers
_TYPE, _DATA = 8, 16


def item(code: Function, whole: Value, i: Operand) -> Value:
    """An item of a tuple."""
    index = i if isinstance(i, Value) else i64(i)
    return code.call("hinge_item", whole, index, result="ptr")


def kind_of(code: Function, x: Value) -> Value:
    """The type of an object."""
    return code.field("ptr", x, _TYPE)


def data(code: Function, array: Value) -> Value:
    """Where the numbers of an array are."""
    return code.field("ptr", array, _DATA)


def helpers(f: Flavor) -> str:
    """The declarations, `spread` from values to entries, `together` from arrays to a tuple.

    And memory to work in, `borrowed` and `returned`.
    """
    return "\n".join([_DECLARATIONS, together(), _spread(f), _borrowed(), _returned()])


_DECLARATIONS = """
@hinge_ndarray = external global i8
@hinge_tuple = external global i8
@hinge_list = external global i8
@hinge_out = external global i8
@hinge_descr_f64 = external global i8
@hinge_descr_f32 = external global i8
declare ptr @hinge_new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
declare ptr @hinge_new_tuple(i64)
declare ptr @hinge_tuple_subtype(ptr, ptr, ptr)
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare i64 @hinge_list_size(ptr)
declare ptr @hinge_list_item(ptr, i64)
declare i32 @hinge_set_item(ptr, i64, ptr)
declare i64 @hinge_number(ptr)
declare ptr @hinge_from_number(i64)
declare void @hinge_retain(ptr)
declare void @hinge_release(ptr)
declare ptr @hinge_allocate(i64)
declare void @hinge_free(ptr)
declare ptr @hinge_no_memory()
declare ptr @hinge_unlock()
declare void @hinge_lock(ptr)
"""


def together() -> str:
    """A plain tuple, or that as the one argument of tuple.__new__ for a type derived from it."""
    code = Function("together", "ptr", "ptr arrays", "i64 n", "ptr form")
    arrays, n, form = code.parameters
    plain = code.call("hinge_new_tuple", n, result="ptr")
    with code.when(code.compare("icmp eq", plain, NULL)):
        with code.count(0, n) as loop:
            code.call("hinge_release", code.entry("ptr", arrays, loop.i))
        code.ret(NULL)
    with code.count(0, n) as loop:
        array = code.entry("ptr", arrays, loop.i)
        code.call("hinge_set_item", plain, loop.i, array, result="i32")
    with code.when(code.compare("icmp eq", form, TUPLE)):
        code.ret(plain)
    args = code.call("hinge_new_tuple", i64(1), result="ptr")
    with code.when(code.compare("icmp eq", args, NULL)):
        code.call("hinge_release", plain)
        code.ret(NULL)
    code.call("hinge_set_item", args, i64(0), plain, result="i32")
    whole = code.call("hinge_tuple_subtype", form, args, NULL, result="ptr")
    code.call("hinge_release", args)
    return code.ret(whole).text()


def _spread(f: Flavor) -> str:
    """A loop that copies values to the entries that the index names.

    It is short, and must not lie across two lines of the instruction cache: derivatives of ANYmal
    in one call take 1.6 or 1.8 µs.
    """
    given = "ptr out", "ptr index", "ptr data", "i64 n"
    code = Function(f"spread_{f.name}", "void", *given, attributes="#1 align 64")
    out, index, numbers, n = code.parameters
    with code.count(0, n) as loop:
        value = code.cast("zext", code.entry("i32", index, loop.i), "i64")
        code.put(code.entry(f.type, out, value), numbers, loop.i)
    return code.ret().text()


# memory to work in: what one batch returns the next may borrow, so that it need not come from the
# system page by page; kept: where the address of one block is, or 0; a block begins with its size

# a block of more bytes is not kept
_MOST_KEPT = 1 << 26


def _borrowed() -> str:
    """A block of so many bytes, null if there is none."""
    code = Function("borrowed", "ptr", "ptr kept", "i64 size")
    kept, size = code.parameters
    old = code.let("ptr", f"atomicrmw xchg {kept}, {NULL} acq_rel")
    with code.when(code.compare("icmp ne", old, NULL)):
        with code.when(code.compare("icmp sge", code.load("i64", old), size)):
            code.ret(old)
        code.call("hinge_free", old)
    block = code.call("hinge_allocate", size, result="ptr")
    with code.when(code.compare("icmp ne", block, NULL)):
        code.store(size, block)
    return code.ret(block).text()


def _returned() -> str:
    """A block that is not needed any more."""
    code = Function("returned", "void", "ptr kept", "ptr block")
    kept, block = code.parameters
    with code.when(code.compare("icmp sgt", code.load("i64", block), i64(_MOST_KEPT))):
        code.call("hinge_free", block)
        code.ret()
    old = code.let("ptr", f"atomicrmw xchg {kept}, {block} acq_rel")
    with code.when(code.compare("icmp ne", old, NULL)):
        code.call("hinge_free", old)
    return code.ret().text()

"""Arguments that kernels do not take as they lie: copied, and the kernel is called with the copies.

Views with strides, whole numbers, and for float64 plain numbers and lists of them become arrays as
kernels take them, if they are small; NumPy makes the copies.  Anything else, and arguments that are
such arrays already, go to the Python callable that is the first item of `self`: it knows what to do
or what to say.  The second item is the kernel's function for the copies, which asks the same
callable and not this one; the third the dtype.
"""

from __future__ import annotations

from .builder import HEAD, NULL, Function, Loop, Value, i64
from .python import CALL, LIST, item, kind_of

__all__ = ["copies_text"]

# arguments of a call; numbers of a copy, since long batches are read where they lie; lists in lists
_ROOM, _MOST, _DEPTH = 32, 4096, 3
# in PyArrayObject: dimensions, sizes, dtype, flags; C-contiguous and aligned
_ND, _DIMENSIONS, _DESCR, _FLAGS = 24, 32, 56, 64
_READY = 0x101
_NDARRAY, _WHOLE = Value("ptr", "@hinge_ndarray"), Value("ptr", "@hinge_descr_i64")
_FLOAT64 = Value("ptr", "@hinge_descr_f64")
_NUMBERS = [Value("ptr", f"@hinge_{name}") for name in ("float", "float64", "int")]

_DECLARATIONS = """
@hinge_ndarray = external global i8
@hinge_list = external global i8
@hinge_float = external global i8
@hinge_float64 = external global i8
@hinge_int = external global i8
@hinge_descr_f64 = external global i8
@hinge_descr_i64 = external global i8
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare i64 @hinge_list_size(ptr)
declare ptr @hinge_list_item(ptr, i64)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
declare ptr @hinge_from_any(ptr, ptr, i32, i32, i32, ptr)
declare void @hinge_retain(ptr)
declare void @hinge_release(ptr)
declare void @hinge_forget()
"""


def copies_text() -> str:
    """The module, which is `copies`."""
    lists = [_are_numbers(depth) for depth in range(1, _DEPTH + 1)]
    return "\n".join([HEAD, _DECLARATIONS, *lists, _copied(), _copies()])


def _copies() -> str:
    code = Function("copies", "ptr", *CALL, linkage="")
    own, args, nargs, names = code.parameters
    given, made = code.room(f"[{_ROOM} x ptr]"), code.room(f"[{_ROOM} x ptr]")
    with code.once() as otherwise:
        with code.when(code.compare("icmp ne", names, NULL)) as named:
            more = code.call("hinge_size", names, result="i64")
        total = code.op("add", nargs, code.merged(named, more, i64(0)))
        code.leave(otherwise, code.compare("icmp sgt", total, _ROOM))
        with code.count(0, total) as loop:
            code.put(code.entry("ptr", args, loop.i), given, loop.i)
        dtype = item(code, own, 2)
        with code.count(0, nargs, carried=[i64(0)]) as loop:
            (count,) = loop.carried
            copy = code.call("copied", code.entry("ptr", given, loop.i), dtype, result="ptr")
            some = code.compare("icmp ne", copy, NULL)
            with code.when(some):
                code.put(copy, given, loop.i)
                code.put(copy, made, count)
            loop.next = [code.op("add", count, code.cast("zext", some, "i64"))]
        copied = loop.carried[0]
        code.leave(otherwise, code.compare("icmp eq", copied, 0))
        again = item(code, own, 1), given, nargs, names
        result = code.call("hinge_vectorcall", *again, result="ptr")
        with code.count(0, copied) as loop:
            code.call("hinge_release", code.entry("ptr", made, loop.i))
        code.ret(result)
    code.hand_on("hinge_vectorcall", item(code, own, 0), *code.parameters[1:], result="ptr")
    return code.text()


def _copied() -> str:
    """A new array of an argument, null where it is to stay as it is."""
    code = Function("copied", "ptr", "ptr x", "ptr dtype")
    x, dtype = code.parameters
    kind = kind_of(code, x)
    with code.once() as wanted:
        with code.when(code.compare("icmp eq", kind, _NDARRAY)):
            _leave_small_array(code, x, dtype, wanted)
            code.ret(NULL)
        # in single precision a number may be too large, which is for others to say
        with code.when(code.compare("icmp eq", dtype, _FLOAT64)):
            for number in _NUMBERS:
                code.leave(wanted, code.compare("icmp eq", kind, number))
            with code.when(code.compare("icmp eq", kind, LIST)):
                flat = code.call(f"numbers_{_DEPTH}", x, result="i64")
                code.leave(wanted, code.compare("icmp ne", flat, 0))
        code.ret(NULL)
    code.call("hinge_retain", dtype)
    flags, none = Value("i32", str(_READY)), Value("i32", "0")
    copy = code.call("hinge_from_any", x, dtype, none, none, flags, NULL, result="ptr")
    with code.when(code.compare("icmp eq", copy, NULL)):
        code.call("hinge_forget")
    return code.ret(copy).text()


def _leave_small_array(code: Function, x: Value, dtype: Value, wanted: Loop) -> None:
    """On, if an array has few numbers, and they lie apart or are whole ones."""
    sizes = code.field("ptr", x, _DIMENSIONS)
    dimensions = code.cast("sext", code.field("i32", x, _ND), "i64")
    with code.count(0, dimensions, carried=[i64(1)]) as loop:
        loop.next = [code.op("mul", loop.carried[0], code.entry("i64", sizes, loop.i))]
    with code.when(code.compare("icmp sle", loop.carried[0], i64(_MOST))):
        own = code.field("ptr", x, _DESCR)
        ready = code.op("and", code.field("i32", x, _FLAGS), _READY)
        apart = code.compare("icmp ne", ready, _READY)
        same = code.compare("icmp eq", own, dtype)
        code.leave(wanted, code.op("and", same, apart))
        exact = code.compare("icmp eq", dtype, _FLOAT64)
        whole = code.compare("icmp eq", own, _WHOLE)
        code.leave(wanted, code.op("and", exact, whole))


def _are_numbers(depth: int) -> str:
    """Whether a list has nothing but numbers, or lists of such; not too many."""
    code = Function(f"numbers_{depth}", "i64", "ptr x")
    (x,) = code.parameters
    count = code.call("hinge_list_size", x, result="i64")
    with code.once() as other:
        code.leave(other, code.compare("icmp sgt", count, _MOST))
        code.leave(other, code.compare("icmp eq", count, 0))
        with code.count(0, count) as loop:
            each = code.call("hinge_list_item", x, loop.i, result="ptr")
            kind = kind_of(code, each)
            with code.once() as good:
                for number in _NUMBERS:
                    code.leave(good, code.compare("icmp eq", kind, number))
                if depth > 1:
                    with code.when(code.compare("icmp eq", kind, LIST)):
                        inner = code.call(f"numbers_{depth - 1}", each, result="i64")
                        code.leave(good, code.compare("icmp ne", inner, 0))
                code.jump(other.done)
                code.label(code.fresh())
        code.ret(i64(1))
    return code.ret(i64(0)).text()

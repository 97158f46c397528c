"""The door of a method as machine code: every spelling of a call, sorted out and handed on.

A method has parameters p₀ … p₍ₙ₋₁₎: arrays, and other arguments such as names of frames.  Which
kernel answers a call depends on which arrays are given and on what the others are.  The answers
known so far stand in a table: for each, what every parameter has to be (an array, or one certain
object), which of them are the arguments of the kernel, and the kernel's function with its own
`self`.  The door puts what it is given, by place or by name, in the order of the parameters, fills
in defaults, looks for an answer and calls its function as Python would.  What it does not know goes
to the Python callable that is the first item of `self`; the second is an array with the table.

    word   0        1     2        3        4             5 …
           count    out   answers  direct   first answer  names (count), defaults (count), answers

An answer is: function, self, number of arrays, their parameters (ROOM), what is wanted of each
parameter (ROOM; 0: anything but None; odd: a tuple or a list, with as many items as the number at
the address before says, which are those that follow it).  direct: so many arguments, none by name,
are the arrays of the first answer.  out: the parameter of that name, or −1.
"""

from __future__ import annotations

from .builder import HEAD, NULL, Function, Loop, Value, i64
from .python import CALL, LIST, TUPLE, data, item, kind_of

__all__ = ["ANSWER", "MOST_ANSWERS", "NAMES", "ROOM", "door_text"]

# parameters of a method, answers of a door, where the names begin, words of an answer
ROOM, MOST_ANSWERS, NAMES = 24, 8, 5
ANSWER = 3 + 2 * ROOM
_NONE, _OUT_NAMES = Value("ptr", "@hinge_none"), Value("ptr", "@hinge_out_names")

_DECLARATIONS = """
@hinge_none = external global i8
@hinge_out_names = external global i8
@hinge_tuple = external global i8
@hinge_list = external global i8
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare i64 @hinge_list_size(ptr)
declare ptr @hinge_list_item(ptr, i64)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
"""


def door_text() -> str:
    """The module, which is `door`."""
    code = Function("door", "ptr", *CALL, linkage="")
    own, *given = code.parameters
    slots, handed = code.room(f"[{ROOM} x ptr]"), code.room(f"[{ROOM + 1} x ptr]")
    with code.once() as unknown:
        table = data(code, item(code, own, 1))
        first = code.at(table, code.entry("i64", table, 4), "i64")
        _direct(code, table, first)
        _sort(code, table, slots, unknown)
        answer = _answer(code, table, first, slots, unknown)
        _hand_on(code, table, answer, slots, handed)
    code.hand_on("hinge_vectorcall", item(code, own, 0), *given, result="ptr")
    return "\n".join([HEAD, _DECLARATIONS, _has_items(), code.text()])


def _has_items() -> str:
    """1 if an object is a tuple or a list of certain items, else 0."""
    code = Function("has_items", "i64", "ptr x", "ptr wanted")
    x, wanted = code.parameters
    count, items = code.entry("i64", wanted, 0), code.at(wanted, 1, "i64")
    for kind, size, get in (
        (TUPLE, "hinge_size", "hinge_item"),
        (LIST, "hinge_list_size", "hinge_list_item"),
    ):
        with code.when(code.compare("icmp eq", kind_of(code, x), kind)):
            with code.once() as other:
                found = code.call(size, x, result="i64")
                code.leave(other, code.compare("icmp ne", found, count))
                with code.count(0, count) as place:
                    each = code.call(get, x, place.i, result="ptr")
                    same = code.entry("ptr", items, place.i)
                    code.leave(other, code.compare("icmp ne", each, same))
                code.ret(i64(1))
            code.ret(i64(0))
    return code.ret(i64(0)).text()


def _direct(code: Function, table: Value, first: Value) -> None:
    """If the arguments are those of the first answer, there is no need to look at them."""
    _, args, nargs, names = code.parameters
    plain = code.compare("icmp eq", code.entry("i64", table, 3), nargs)
    straight = code.op("and", plain, code.compare("icmp eq", names, NULL))
    with code.when(straight):
        function, own = (code.entry("ptr", first, k) for k in range(2))
        code.hand_on(function, own, args, nargs, NULL, result="ptr")


def _sort(code: Function, table: Value, slots: Value, unknown: Loop) -> None:
    """Into the order of the parameters: by place, then by name, then defaults."""
    _, args, nargs, names = code.parameters
    count = code.entry("i64", table, 0)
    code.leave(unknown, code.compare("icmp sgt", nargs, count))
    with code.count(0, nargs) as place:
        code.put(code.entry("ptr", args, place.i), slots, place.i)
    with code.count(nargs, count) as place:
        code.put(NULL, slots, place.i)
    with code.when(code.compare("icmp ne", names, NULL)):
        named = code.at(args, nargs, "ptr")
        with code.count(0, code.call("hinge_size", names, result="i64")) as key:
            slot = _slot(code, table, item(code, names, key.i), slots, unknown)
            code.store(code.entry("ptr", named, key.i), slot)
    defaults = code.at(code.at(table, NAMES, "i64"), count, "i64")
    with code.count(0, count) as place:
        slot = code.at(slots, place.i, "ptr")
        with code.when(code.compare("icmp eq", code.load("ptr", slot), NULL)):
            default = code.entry("ptr", defaults, place.i)
            code.leave(unknown, code.compare("icmp eq", default, NULL))
            code.store(default, slot)


def _slot(code: Function, table: Value, name: Value, slots: Value, unknown: Loop) -> Value:
    """The slot of the parameter of a name: there has to be one, not taken yet."""
    names, count = code.at(table, NAMES, "i64"), code.entry("i64", table, 0)
    with code.loop(i64(0)) as look:
        (i,) = look.carried
        code.leave(unknown, code.compare("icmp eq", i, count))
        code.leave(look, code.compare("icmp eq", code.entry("ptr", names, i), name))
        look.next = [code.op("add", i, 1)]
    slot = code.at(slots, i, "ptr")
    code.leave(unknown, code.compare("icmp ne", code.load("ptr", slot), NULL))
    return slot


def _answer(code: Function, table: Value, first: Value, slots: Value, unknown: Loop) -> Value:
    """The first answer that fits."""
    count, out, answers = (code.entry("i64", table, k) for k in range(3))
    with code.loop(i64(0), first) as look:
        k, answer = look.carried
        code.leave(unknown, code.compare("icmp eq", k, answers))
        all_wanted = code.at(answer, 3 + ROOM, "i64")
        with code.once() as misfit:
            with code.count(0, count) as place:
                wanted = code.entry("ptr", all_wanted, place.i)
                x = code.entry("ptr", slots, place.i)
                other = code.compare("icmp ne", x, wanted)
                certain = code.compare("icmp ne", wanted, NULL)
                none = code.compare("icmp eq", x, _NONE)
                bad = code.op("and", other, code.op("or", certain, none))
                counts = code.compare("icmp ne", place.i, out)
                with code.when(code.op("and", bad, counts)):
                    number = code.cast("ptrtoint", wanted, "i64")
                    odd = code.op("and", number, 1)
                    code.leave(misfit, code.compare("icmp eq", odd, 0))
                    items = code.at(wanted, -1)
                    fits = code.call("has_items", x, items, result="i64")
                    code.leave(misfit, code.compare("icmp eq", fits, 0))
            code.jump(look.done)
        look.next = [code.op("add", k, 1), code.at(answer, ANSWER, "i64")]
    return answer


def _hand_on(code: Function, table: Value, answer: Value, slots: Value, handed: Value) -> None:
    """Call its function with its arrays in their order, and out by name if it is given."""
    function, own = (code.entry("ptr", answer, k) for k in range(2))
    n, places = code.entry("i64", answer, 2), code.at(answer, 3, "i64")
    with code.count(0, n) as array:
        slot = code.entry("i64", places, array.i)
        code.put(code.entry("ptr", slots, slot), handed, array.i)
    out = code.entry("i64", table, 1)
    with code.when(code.compare("icmp sge", out, 0)) as takes_out:
        given = code.entry("ptr", slots, out)
        code.put(given, handed, n)
        no_out = code.compare("icmp eq", given, _NONE)
        chosen = code.select(no_out, NULL, _OUT_NAMES)
    names = code.merged(takes_out, chosen, NULL)
    code.ret(code.call(function, own, handed, n, names, result="ptr"))

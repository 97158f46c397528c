"""The call of a batch by CasADi's interface for C: tables of pointers, some of which are null.

    int call(const double **arg, double **res, casadi_int *iw, double *w, int mem, own)

The sixth argument is what a jump of `runtime/shared.py` adds: where a table of words is,

    0 run   1 strides   2 samples   3 arguments   4 results   5 zeros   6 where pointers go in arg

then for each argument of `run` which of arg it is, for each result which of res, and for each
result where it goes in the scratch if nobody wants it.  A null argument stands for zeros.
"""

from __future__ import annotations

from .builder import HEAD, Function, Value, i64

__all__ = ["WORDS", "external_text"]

# how many words there are before those of the arguments
WORDS = 7


def external_text() -> str:
    """The module, which is `call`."""
    given = ("ptr arg", "ptr res", "ptr iw", "ptr w", "i32 mem", "ptr own")
    code = Function("call", "i32", *given, linkage="")
    arg, res, _, w, _, place = code.parameters
    own = code.entry("ptr", place, 0)
    run, strides = code.entry("ptr", own, 0), code.entry("ptr", own, 1)
    samples, arguments, results, zeros = (
        code.entry(kind, own, i) for i, kind in enumerate(("i64", "i64", "i64", "ptr"), 2)
    )
    scratch = _aligned(code, w)
    table = code.at(arg, code.entry("i64", own, 6), "ptr")
    which = code.at(own, WORDS, "i64")
    with code.count(0, arguments) as loop:
        given_ = code.entry("ptr", arg, code.entry("i64", which, loop.i))
        code.put(_or(code, given_, zeros), table, loop.i)
    table_out = code.at(table, arguments, "ptr")
    wanted = code.at(which, arguments, "i64")
    spare = code.at(wanted, results, "i64")
    with code.count(0, results) as loop:
        asked = code.entry("ptr", res, code.entry("i64", wanted, loop.i))
        aside = code.at(scratch, code.entry("i64", spare, loop.i))
        code.put(_or(code, asked, aside), table_out, loop.i)
    with code.when(code.compare("icmp ne", results, 0)):
        code.call(run, table, strides, i64(0), samples, scratch)
    return "\n".join([HEAD, code.ret(Value("i32", "0")).text()])


def _aligned(code: Function, w: Value) -> Value:
    """Where a line begins."""
    up = code.op("add", code.cast("ptrtoint", w, "i64"), 63)
    return code.cast("inttoptr", code.op("and", up, -64), "ptr")


def _or(code: Function, x: Value, otherwise: Value) -> Value:
    return code.select(code.compare("icmp eq", x, Value("ptr", "null")), otherwise, x)

"""The builder of LLVM functions: what it writes does what a reader of the Python would expect."""

import ctypes

import numpy as np
import pytest

from hinge.emit.llvm.builder import HEAD, UNLIKELY, Function, Value, i64, truth_of
from hinge.runtime.engine import Library, compile_text
from hinge.runtime.target import host

WORD, POINTER = ctypes.c_int64, ctypes.c_void_p
KEPT = []


def compiled(*functions, types):
    """The last of the functions, callable."""
    text = "\n".join([HEAD, *(f.text() for f in functions)])
    library = Library(compile_text(text, host()), host())
    call = ctypes.CFUNCTYPE(*types)(library.address("f"))
    KEPT.append(library)
    return call


def public(result, *parameters):
    return Function("f", result, *parameters, linkage="")


def test_the_sum_of_the_docstring():
    f = public("double", "ptr x", "i64 n")
    x, n = f.parameters
    with f.count(0, n, carried=[Value("double", "0.0")]) as loop:
        loop.next = [f.op("fadd", loop.carried[0], f.entry("double", x, loop.i))]
    total = compiled(f.ret(loop.carried[0]), types=(ctypes.c_double, POINTER, WORD))
    x = np.arange(1.0, 6.0)
    assert [total(x.ctypes.data, n) for n in (0, 1, 5)] == [0, 1, 15]


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (3, 3, 1), (4, -1, -1), (0, 10, 4), (7, 3, 2)]
)
def test_counting_is_that_of_range(start, stop, step):
    """Order, number of rounds, and the index after the loop."""
    f = public("i64", "ptr seen")
    (seen,) = f.parameters
    with f.count(start, stop, step, carried=[i64(0)]) as loop:
        f.put(loop.i, seen, loop.carried[0])
        loop.next = [f.op("add", loop.carried[0], 1)]
    f.put(loop.i, seen, 15)
    count = compiled(f.ret(loop.carried[0]), types=(WORD, POINTER))
    room = np.zeros(16, np.int64)
    rounds = list(range(start, stop, step))
    assert count(room.ctypes.data) == len(rounds)
    assert room[: len(rounds)].tolist() == rounds
    assert room[15] == (rounds[-1] + step if rounds else start)


def test_loops_within_loops_carry_their_own():
    """Values that change places, as in a step of several stages."""
    f = public("i64", "i64 n")
    (n,) = f.parameters
    with f.count(0, n, carried=[i64(1), i64(0)]) as outer:
        with f.count(0, outer.i, carried=outer.carried) as inner:
            a, b = inner.carried
            inner.next = [f.op("add", a, b), a]
        outer.next = inner.carried
    fibonacci = compiled(f.ret(outer.carried[1]), types=(WORD, WORD))
    assert [fibonacci(n) for n in range(6)] == [0, 0, 1, 2, 8, 55]


def test_a_loop_is_left_from_its_middle():
    f = public("i64", "i64 n")
    (n,) = f.parameters
    with f.loop(n, i64(0)) as loop:
        x, steps = loop.carried
        f.leave(loop, f.compare("icmp eq", x, 1))
        odd = f.compare("icmp ne", f.op("and", x, 1), 0)
        more = f.op("add", f.op("mul", x, 3), 1)
        loop.next = [f.select(odd, more, f.op("lshr", x, 1)), f.op("add", steps, 1)]
    collatz = compiled(f.ret(steps), types=(WORD, WORD))
    assert [collatz(n) for n in (1, 2, 6, 27)] == [0, 1, 8, 111]


def test_conditions_merge_and_return():
    f = public("i64", "i64 x")
    (x,) = f.parameters
    with f.when(f.compare("icmp slt", x, 0)):
        f.ret(i64(-1))
    with f.when(f.compare("icmp sgt", x, 9), UNLIKELY) as case:
        half = f.op("lshr", x, 1)
    y = f.merged(case, half, x)
    clipped = compiled(f.ret(f.least(y, i64(7))), types=(WORD, WORD))
    assert [clipped(x) for x in (-5, 0, 6, 9, 10, 100)] == [-1, 0, 6, 7, 5, 7]


def test_cases_calls_and_room_on_the_stack():
    square = Function("square", "i64", "i64 x")
    square.ret(square.op("mul", *square.parameters * 2))
    f = public("i64", "i64 kind", "i64 x")
    kind, x = f.parameters
    room = f.room("i64")
    f.store(i64(-1), room)
    for k in f.cases(kind, range(2)):
        f.store(f.call("square", x, result="i64") if k else f.op("add", x, 10), room, "align 8")
    call = compiled(square, f.ret(f.load("i64", room)), types=(WORD, WORD, WORD))
    assert [call(k, 5) for k in (0, 1, 2)] == [15, 25, -1]


def test_types_of_comparisons():
    assert truth_of("double") == truth_of("ptr") == "i1" and truth_of("<8 x float>") == "<8 x i1>"


def test_parameters_are_declared_with_what_else_they_are():
    f = Function("g", "void", "ptr noalias a", "<2 x double> b", attributes="noinline #1")
    assert f.parameters == (Value("ptr", "%a"), Value("<2 x double>", "%b"))
    head = "define internal void @g(ptr noalias %a, <2 x double> %b) noinline #1 {"
    assert f.ret().text().splitlines()[0] == head

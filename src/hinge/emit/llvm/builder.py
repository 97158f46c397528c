"""Functions of LLVM, written instruction by instruction: typed values, fresh names, loops.

    f = Function("total", "double", "ptr x", "i64 n")
    x, n = f.parameters
    with f.count(0, n, carried=[Value("double", "0.0")]) as loop:
        loop.next = [f.op("fadd", loop.carried[0], f.entry("double", x, loop.i))]
    text = f.ret(loop.carried[0]).text()

A loop is a head that holds what is carried from round to round, and what it is next is known only
at the end of the body: so loops and conditions are blocks of `with`.  After a loop `i` and
`carried` are what they were when it was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import NamedTuple, TypeVar, final

__all__ = ["HEAD", "NULL", "STREAMED", "UNLIKELY", "Case", "Function", "Loop", "Value"]
__all__ += ["Operand", "i64", "truth_of"]

# what every module begins with: attributes of functions, and what is said of instructions
HEAD = """declare i64 @llvm.smin.i64(i64, i64)
attributes #0 = { nounwind alignstack=64 }
attributes #1 = { nounwind }
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{i32 1}
"""
T = TypeVar("T")
UNLIKELY, STREAMED = "!prof !0", "!nontemporal !1"


class Value(NamedTuple):
    """An operand with its type; as text both, as calls and most instructions want it."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


NULL = Value("ptr", "null")
# a whole number has the type of what it meets
Operand = Value | int


def i64(x: int) -> Value:
    """A whole number."""
    return Value("i64", str(x))


def truth_of(kind: str) -> str:
    """The type of a comparison of two values of a type."""
    return f"{kind.split(' x ')[0]} x i1>" if kind[0] == "<" else "i1"


def _name(x: Operand) -> str:
    return x.name if isinstance(x, Value) else str(x)


def _call(function: str | Value, given: Sequence[Value], result: str) -> str:
    what = function.name if isinstance(function, Value) else f"@{function}"
    return f"call {result} {what}({', '.join(map(str, given))})"


@final
class Loop:
    """A loop while it is written; next: what is carried into the next round."""

    def __init__(self, carried: Sequence[Value], done: str, i: Value) -> None:
        self.carried, self.done, self.i = tuple(carried), done, i
        self.next: Sequence[Value] = ()


@final
class Case:
    """What is done only if something is true: the blocks before it and at its end."""

    def __init__(self, before: str) -> None:
        self.before = self.end = before


@final
class Function:
    """One function, block after block; parameters: "type name", after the type what else it is.

    attributes: what LLVM is told of it; linkage: "internal", or nothing if others call it.
    """

    def __init__(
        self,
        name: str,
        result: str,
        *parameters: str,
        attributes: str = "#1",
        linkage: str = "internal ",
    ) -> None:
        self.name, parts = name, [p.rpartition(" ") for p in parameters]
        given = ", ".join(f"{kind} %{name}" for kind, _, name in parts)
        self._head = f"define {linkage}{result} @{name}({given}) {attributes}"
        self.parameters = tuple(Value(k.split(" noalias")[0], f"%{name}") for k, _, name in parts)
        self.lines: list[str] = []
        self._fresh, self._block, self._open = 0, "entry", True

    def text(self) -> str:
        """The whole function."""
        return "\n".join([f"{self._head} {{\nentry:", *self.lines, "}\n"])

    # lines and names

    def fresh(self) -> str:
        """A name that nothing else has."""
        self._fresh += 1
        return f"v{self._fresh}"

    def do(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def let(self, kind: str, text: str) -> Value:
        """An instruction, and its value of a type."""
        value = Value(kind, f"%{self.fresh()}")
        self.lines.append(f"  {value.name} = {text}")
        return value

    # instructions

    def op(self, name: str, a: Value, b: Operand) -> Value:
        """Arithmetic on two values of one type."""
        return self.let(a.type, f"{name} {a}, {_name(b)}")

    def compare(self, how: str, a: Value, b: Operand) -> Value:
        """Whether it is so; how: "icmp slt", "fcmp ogt" and the like."""
        return self.let(truth_of(a.type), f"{how} {a}, {_name(b)}")

    def select(self, truth: Value, a: Value, b: Value) -> Value:
        """One or the other."""
        return self.let(a.type, f"select {truth}, {a}, {b}")

    def cast(self, how: str, a: Value, kind: str) -> Value:
        """The value as one of another type."""
        return self.let(kind, f"{how} {a} to {kind}")

    def at(self, base: Value, index: Operand, kind: str = "i8") -> Value:
        """The address of an entry of a table, or so many bytes from a base."""
        return self.let("ptr", f"getelementptr {kind}, {base}, i64 {_name(index)}")

    def room(self, kind: str, more: str = "") -> Value:
        """Memory on the stack, for as long as the function runs."""
        return self.let("ptr", f"alloca {kind}{more and ', ' + more}")

    def load(self, kind: str, where: Value, more: str = "") -> Value:
        """What lies at an address; more: how it is aligned and the like."""
        return self.let(kind, f"load {kind}, {where}{more and ', ' + more}")

    def store(self, value: Value, where: Value, more: str = "") -> None:
        """Put it at an address."""
        self.do(f"store {value}, {where}{more and ', ' + more}")

    def field(self, kind: str, base: Value, offset: int) -> Value:
        """What lies so many bytes from a base."""
        return self.load(kind, self.at(base, offset))

    def entry(self, kind: str, table: Value, index: Operand) -> Value:
        """An entry of a table."""
        return self.load(kind, self.at(table, index, kind))

    def put(self, value: Value, table: Value, index: Operand) -> None:
        """Make it an entry of a table."""
        self.store(value, self.at(table, index, value.type))

    def call(self, function: str | Value, *given: Value, result: str = "void") -> Value:
        """Call a function by its name, or at an address."""
        text = _call(function, given, result)
        if result != "void":
            return self.let(result, text)
        self.do(text)
        return Value("void", "")

    def hand_on(self, function: str | Value, *given: Value, result: str) -> Function:
        """Return what a function returns, which may need nothing of this one's stack."""
        return self.ret(self.let(result, f"tail {_call(function, given, result)}"))

    def least(self, a: Value, b: Value) -> Value:
        """The smaller of two whole numbers."""
        return self.call("llvm.smin.i64", a, b, result="i64")

    def ret(self, value: Value | None = None) -> Function:
        """Return; what follows in this block is never reached."""
        self.do(f"ret {value or 'void'}")
        self._open = False
        return self

    # blocks

    def label(self, name: str) -> None:
        """A new block."""
        self.lines.append(f"{name}:")
        self._block, self._open = name, True

    def jump(self, label: str) -> None:
        """Go on in another block, unless this one ended before."""
        if self._open:
            self.do(f"br label %{label}")
        self._open = False

    def branch(self, truth: Value, yes: str, no: str, more: str = "") -> None:
        """Go on in one block or another."""
        self.do(f"br {truth}, label %{yes}, label %{no}{more and ', ' + more}")

    @contextmanager
    def loop(self, *start: Value) -> Iterator[Loop]:
        """Round after round until it is left; start: what is carried, before the first."""
        head, done, before = self.fresh(), self.fresh(), self._block
        self.jump(head)
        self.label(head)
        carried = [Value(x.type, f"%{self.fresh()}") for x in start]
        first = len(self.lines)
        self.lines += [""] * len(start)
        yield (loop := Loop(carried, done, i64(0)))
        last = self._block
        for k, (x, a, b) in enumerate(zip(carried, start, loop.next, strict=True)):
            ways = f"[ {a.name}, %{before} ], [ {b.name}, %{last} ]"
            self.lines[first + k] = f"  {x.name} = phi {x.type} {ways}"
        self.jump(head)
        self.label(done)

    @contextmanager
    def count(
        self, start: Operand, stop: Operand, step: int = 1, carried: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """For i from start to before stop; by ones, up or down, start must not be past it."""
        with self.loop(Value("i64", _name(start)), *carried) as loop:
            i, *more = loop.carried
            # LLVM counts down to zero what ends at one number
            self.leave(loop, self.compare("icmp sge" if step > 1 else "icmp eq", i, stop))
            yield (counted := Loop(more, loop.done, i))
            loop.next = [self.op("add", i, step), *counted.next]

    @contextmanager
    def once(self) -> Iterator[Loop]:
        """A loop of a single round, from which one can come early to what follows."""
        yield (loop := Loop((), self.fresh(), i64(0)))
        self.jump(loop.done)
        self.label(loop.done)

    def leave(self, loop: Loop, truth: Value) -> None:
        """Leave a loop if it is true."""
        on = self.fresh()
        self.branch(truth, loop.done, on)
        self.label(on)

    def stay(self, loop: Loop, truth: Value) -> None:
        """Leave a loop if it is not true."""
        on = self.fresh()
        self.branch(truth, on, loop.done)
        self.label(on)

    @contextmanager
    def when(self, truth: Value, more: str = "") -> Iterator[Case]:
        """Only if it is true; more: how likely that is."""
        then, after, case = self.fresh(), self.fresh(), Case(self._block)
        self.branch(truth, then, after, more)
        self.label(then)
        yield case
        case.end = self._block
        self.jump(after)
        self.label(after)

    def merged(self, case: Case, inside: Value, before: Value) -> Value:
        """Right after a case: one value if it was so, the other if not."""
        ways = f"[ {inside.name}, %{case.end} ], [ {before.name}, %{case.before} ]"
        return self.let(inside.type, f"phi {inside.type} {ways}")

    def in_turns(self, parts: Sequence[Callable[[], T]]) -> list[T]:
        """What several pieces of code without branches give, a line of each in turns.

        None waits for the result of the line before, where nothing else changes their order.
        """
        made, lines = [], []
        for part in parts:
            start = len(self.lines)
            made.append(part())
            lines.append(self.lines[start:])
            del self.lines[start:]
        turns = zip_longest(*lines)
        self.lines += [line for turn in turns for line in turn if line is not None]
        return made

    @property
    def block(self) -> str:
        """The block that is written."""
        return self._block

    def either(self, ends: Sequence[tuple[str, Sequence[Value]]]) -> list[Value]:
        """After cases: the values of the block that one came from."""
        columns = zip(*(values for _, values in ends), strict=True)
        made = []
        for values in columns:
            ways = (f"[ {x.name}, %{block} ]" for x, (block, _) in zip(values, ends, strict=True))
            made.append(self.let(values[0].type, f"phi {values[0].type} {', '.join(ways)}"))
        return made

    def cases(self, value: Value, numbers: Iterable[int]) -> Iterator[int]:
        """For each number what is done if the value is that; nothing for any other."""
        labels, after = {k: self.fresh() for k in numbers}, self.fresh()
        ways = " ".join(f"{value.type} {k}, label %{label}" for k, label in labels.items())
        self.do(f"switch {value}, label %{after} [ {ways} ]")
        for k, label in labels.items():
            self.label(label)
            yield k
            self.jump(after)
        self.label(after)

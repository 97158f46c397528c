"""Programs as C99: one file that needs nothing but math.h, for microcontrollers.

Nothing is allocated and nothing is global.  A program of up to a thousand operations is one
function; a longer one is cut into static functions that hand values on in a workspace on the stack,
since compilers take more than linear time over long functions.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import ArgumentError
from ..trace.arrays import Shape
from ..trace.program import Program
from ..trace.scalar import Node
from ..trace.schedule import PIECE, Piece, pieces
from .c_body import Body, Entry, Scalar
from .c_names import function_name, parameter_names

__all__ = ["c_source"]

_LINE = 100
_NEEDS_MATH = re.compile(r"\b((sin|cos|sqrt|fabs|atan2)f?\(|INFINITY\b|NAN\b)")
_PART = """/* kept apart: joined again, the parts would take long to compile */
#if defined(__GNUC__)
#define PART static __attribute__((noinline)) void
#else
#define PART static void
#endif"""


class _Array(NamedTuple):
    """A parameter: an array, and whether it is written."""

    name: str
    shape: Shape
    result: bool

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def entries(self) -> list[Entry]:
        return [Entry(self.name, i) for i in range(self.size)]

    def declared(self, scalar: str) -> str:
        return f"{scalar} *{self.name}" if self.result else f"const {scalar} *{self.name}"

    def described(self) -> str:
        kind = "result" if self.result else "argument"
        if len(self.shape) > 1:
            return f"{kind}, {' x '.join(map(str, self.shape))} numbers, row after row"
        return f"{kind}, {self.size} number{'' if self.size == 1 else 's'}"


def c_source(
    program: Program,
    scalar: str = "double",
    names: Sequence[str] | None = None,
    results: Sequence[str] | None = None,
    about: str = "",
) -> str:
    """A C99 file with one public function, `void NAME(const double *q, …, double *tau, …)`.

    scalar: "double" or "float"; names, results: of the arguments and results, made valid in C.
    about: what is computed, in words, for the comment at the top.
    """
    if scalar not in ("double", "float"):
        raise ArgumentError(f"{program.name}: scalar is {scalar!r}; C has 'double' and 'float'")
    if results is None:
        results = getattr(program.form, "_fields", None)
    return _File(program, Scalar(scalar), names, results).text(about)


class _File:
    """What every part of the file refers to."""

    def __init__(
        self,
        program: Program,
        scalar: Scalar,
        names: Sequence[str] | None,
        results: Sequence[str] | None,
    ) -> None:
        self.program, self.scalar, self.name = program, scalar, function_name(program.name)
        self.cuts, self.slots = pieces(program.values)
        # at least as many as there will be parts
        most = len(self.cuts) + len(program.values) // PIECE + 1
        self.parts = [f"{self.name}_part{i + 1}" for i in range(most)]
        texts = _one_each(program, "argument", "in", names, program.inputs)
        texts += _one_each(program, "result", "out", results, program.outputs)
        valid = iter(parameter_names(texts, [self.name, *self.parts]))
        self.arrays = [_Array(next(valid), shape, result=False) for shape in program.inputs]
        self.arrays += [_Array(next(valid), shape, result=True) for shape in program.outputs]

    def text(self, about: str) -> str:
        """The whole file."""
        head = self.head("void", self.name, self.arrays)
        bodies = self.bodies()
        code = self.several(bodies) if len(bodies) > 1 else self.function(bodies[0].lines, bodies)
        include = ["#include <math.h>"] if _NEEDS_MATH.search(code) else []
        return "\n\n".join([_comment(self.notes(about)), *include, f"{head};", code]) + "\n"

    def bodies(self) -> list[Body]:
        """The statements, in lots that compile quickly."""
        inputs = [entry for a in self.arrays if not a.result for entry in a.entries]
        outputs = [entry for a in self.arrays if a.result for entry in a.entries]
        places: dict[int, list[Entry]] = {}
        for node, entry in zip(self.program.values, outputs, strict=True):
            places.setdefault(node.id, []).append(entry)
        cuts = self.cuts or [Piece((), {}, {})]
        bodies = [Body(self.scalar, cut, inputs, places) for cut in cuts]
        # results that need no operation come last, and may be many
        rest = [(n, e) for n, e in zip(self.program.values, outputs, strict=True) if _is_leaf(n)]
        for i, (node, entry) in enumerate(rest):
            if i and not i % PIECE:
                bodies.append(Body(self.scalar, Piece((), {}, {}), inputs, {}))
            bodies[-1].copy(node, entry)
        return bodies

    def several(self, bodies: list[Body]) -> str:
        """A function for each body, and one that calls them in turn."""
        texts, calls, kind = [_PART], [], f"struct {self.name}_work"
        if self.slots:
            texts.append(f"{kind} {{\n    {self.scalar.name} v[{self.slots}];\n}};")
            calls.append(f"{kind} w;")
        for name, body in zip(self.parts, bodies, strict=False):
            arrays = [a for a in self.arrays if a.name in body.arrays]
            head = self.head("PART", name, arrays, [f"{kind} *w"] * body.workspace)
            texts.append(_block(head, body.lines))
            given = [a.name for a in arrays] + ["&w"] * body.workspace
            calls.append(_wrapped(f"{name}(", given, ");"))
        return "\n\n".join([*texts, self.function(calls, bodies)])

    def function(self, lines: list[str], bodies: list[Body]) -> str:
        """The public function."""
        used = {name for body in bodies for name in body.arrays}
        unused = [f"(void){a.name};" for a in self.arrays if a.name not in used]
        return _block(self.head("void", self.name, self.arrays), [*unused, *lines])

    def head(self, kind: str, name: str, arrays: list[_Array], more: Sequence[str] = ()) -> str:
        """The declaration of a function."""
        declared = [*(a.declared(self.scalar.name) for a in arrays), *more]
        return _wrapped(f"{kind} {name}(", declared or ["void"], ")")

    def notes(self, about: str) -> list[str]:
        """What the comment at the top says, line by line."""
        ops, number = self.program.ops, self.scalar.name
        width = max((len(a.name) for a in self.arrays), default=0)
        made = [f"{a.name}[{a.size}]" for a in self.arrays if a.size]
        call = [a.name if a.size else "0" for a in self.arrays]
        lines = [f"{self.name}: straight-line C99, made by hinge.", ""]
        lines += [*textwrap.wrap(about, _LINE - 4), ""] if about else []
        lines += [f"  {a.name:<{width}}  {a.described()}" for a in self.arrays]
        lines += ["", "How to call it:", ""] if self.arrays else ["How to call it:", ""]
        lines += _wrapped(f"    {number} ", made, ";", 8).split("\n") if made else []
        lines += [*_wrapped(f"    {self.name}(", call, ");", 8).split("\n"), ""]
        lines += ["Nothing is allocated or kept.  A result must not overlap another array."]
        cost = (
            f"Operations: {ops.multiplications} multiplications, {ops.additions} additions, "
            f"{ops.divisions} divisions, sin and cos of {ops.sincos} angles, {ops.others} others."
        )
        lines += textwrap.wrap(cost, _LINE - 4)
        if self.slots:
            size = self.slots * (8 if number == "double" else 4)
            lines.append(f"Workspace on the stack: {size} bytes.")
        return lines


def _one_each(
    program: Program, what: str, short: str, names: Sequence[str] | None, shapes: Sequence[Shape]
) -> list[str]:
    """A name for each shape: those given, or in0, in1 …"""
    if names is None:
        return [f"{short}{i}" for i in range(len(shapes))]
    if len(names) != len(shapes):
        raise ArgumentError(
            f"{program.name}: {len(names)} names of {what}s ({', '.join(names)}); expected "
            f"{len(shapes)}"
        )
    return list(names)


def _is_leaf(node: Node) -> bool:
    return node.op in ("const", "input")


def _comment(lines: Iterable[str]) -> str:
    # a comment inside the comment would end it
    safe = (line.replace("*/", "* /").replace("/*", "/ *") for line in lines)
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in safe), " */"])


def _wrapped(start: str, items: Sequence[str], end: str, indent: int = 4) -> str:
    """A list in parentheses, on as many lines as it needs, cut between items."""
    solid = ", ".join(item.replace(" ", "\0") for item in items)
    text = textwrap.fill(
        start.replace(" ", "\0") + solid + end,
        _LINE - 4,
        subsequent_indent="\0" * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace("\0", " ")


def _block(head: str, lines: Sequence[str]) -> str:
    body = "\n".join(textwrap.indent(line, "    ") for line in lines)
    return f"{head}\n{{\n{body}\n}}" if body else f"{head}\n{{\n}}"

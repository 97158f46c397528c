"""What comments on pages say of results, and whether it is so.

A number in a comment behind a print is printed, rounded to the digits that are written; of one
below 1e-9, which is rounding, only the magnitude counts.  Numbers come in the order in which they
are printed.  A shape at the beginning of a comment is that of the value of its line.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# not what belongs to a name or an address: float32, 3-D, localhost:8080
_NUMBER = re.compile(
    r"(?<![\w.:/^])(?P<sign>[-−+]?)(?P<digits>\d+(?:\.\d*)?)(?:e(?P<power>[-−+]?\d+))?"
    r"(?!\w|-[A-Za-z]|\.\d)(?:\s*(?P<unit>mm|cm|ms|µs)\b)?"
)
_UNITS = {None: 1.0, "mm": 1e-3, "cm": 1e-2, "ms": 1e-3, "µs": 1e-6}
_SHAPE = re.compile(r"# (\((?:\d+, ?)*\d*\))")
_ROUNDING = 1e-9


class Number(NamedTuple):
    """A number that is written, and one unit of its last digit."""

    value: float
    last: float

    def agrees(self, printed: Number) -> bool:
        """Whether it is the printed one, rounded."""
        if 0 < abs(self.value) < _ROUNDING:
            return abs(printed.value) < 10 * abs(self.value)
        return abs(printed.value - self.value) <= (0.5 + 1e-6) * self.last


def numbers(text: str) -> Iterator[Number]:
    """Those of a text."""
    for found in _NUMBER.finditer(text.replace("−", "-")):
        scale = _UNITS[found["unit"]] * 10.0 ** int(found["power"] or 0)
        decimals = len(found["digits"].partition(".")[2])
        value = float(found["sign"] + found["digits"]) * scale
        yield Number(value, scale * 10.0**-decimals)


def agree(comment: str, printed: str) -> bool:
    """Whether the numbers of a comment are among those that are printed, in their order."""
    left = iter(list(numbers(printed)))
    return all(any(said.agrees(number) for number in left) for said in numbers(comment))


class Remarks:
    """A block of a page, and what its prints gave when it ran with `shown` as its print."""

    def __init__(self, code: str) -> None:
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        self.comments = {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}
        self.statements = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
        self.printed: dict[int, str] = {}

    def shown(self, print_: Callable[..., None]) -> Callable[..., None]:
        """A print that notes what is printed by which line."""

        def noting(*values: Any, **settings: Any) -> None:
            text, line = io.StringIO(), sys._getframe(1).f_lineno
            print_(*values, **{**settings, "file": text})
            self.printed[line] = self.printed.get(line, "") + text.getvalue()
            print_(*values, **settings)

        return noting

    def wrong(self, scope: dict[str, Any]) -> Iterator[str]:
        """Comments that say another number, or another shape, than there is."""
        for statement in self.statements:
            comment = self.comments.get(statement.end_lineno or 0, "")
            printed = self.printed.get(statement.lineno)
            if printed is not None and isinstance(statement, ast.Expr):
                if not agree(comment, printed):
                    yield f"{comment}: printed {printed.strip()[:200]}"
            elif found := _SHAPE.match(comment):
                expression = _value(statement)
                values = eval(expression, scope) if expression else ()
                for x in values if isinstance(values, tuple) else (values,):
                    if tuple(x.shape) != ast.literal_eval(found[1]):
                        yield f"{comment}: {expression} has shape {tuple(x.shape)}"


def _value(statement: ast.stmt) -> str:
    """What stands for the value of a line afterwards; nothing, where that is not known."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    return ast.unparse(statement.value) if isinstance(statement, ast.Expr) else ""

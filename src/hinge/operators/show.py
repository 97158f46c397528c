"""Expressions and plans as text: Python, LaTeX, and what a plan does sweep by sweep."""

from __future__ import annotations

from typing import Any

from ..graph.program import trace
from .expr import Adjoint, Identity, Operator, Product, Sum, Zero, same_number
from .leaves import Leaf, Local
from .plan import plan
from .steps import Given, signed_sum

__all__ = ["describe", "latex", "text"]


def text(A: Any) -> str:
    """The expression as Python that makes it again."""
    match A:
        case Identity():
            return "I"
        case Zero():
            return "0"
        case Local(inverted=True):
            return f"{A.name}.inv" + (".T" if A.adjoint else "")
        case Leaf():
            return A.name + (".T" if A.adjoint else "")
        case Adjoint():
            return f"({text(A.of)}).T"
        case Product():
            return " @ ".join(f"({text(f)})" if isinstance(f, Sum) else text(f) for f in A.factors)
        case Sum():
            return signed_sum([(c, _wrapped(c, t)) for c, t in A.terms], " * ")
        case _:
            rows = ("[" + ", ".join(text(e) for e in row) + "]" for row in A.rows)
            return f"block([{', '.join(rows)}])"


def latex(A: Any) -> str:
    """The expression as LaTeX."""
    match A:
        case Identity():
            return "I"
        case Zero():
            return "0"
        case Local(inverted=True):
            return f"{A.tex}^{{-*}}" if A.adjoint else f"{A.tex}^{{-1}}"
        case Leaf():
            return f"{A.tex}^*" if A.adjoint else A.tex
        case Adjoint():
            return f"\\left({latex(A.of)}\\right)^*"
        case Product():
            parts = (latex(f) for f in A.factors)
            pairs = zip(parts, A.factors, strict=True)
            return r"\,".join(rf"\left({s}\right)" if isinstance(f, Sum) else s for s, f in pairs)
        case Sum():
            return signed_sum([(c, latex(t)) for c, t in A.terms], r"\,")
        case _:
            rows = r" \\ ".join(" & ".join(latex(e) for e in row) for row in A.rows)
            return rf"\begin{{bmatrix}} {rows} \end{{bmatrix}}"


def _wrapped(c: Any, term: Operator) -> str:
    plain = same_number(c, 1) or same_number(c, -1) or not isinstance(term, Product)
    return text(term) if plain else f"({text(term)})"


def describe(A: Operator) -> str:
    """The expression, the spaces it joins, the sweeps that apply it to a vector, and their cost.

    The cost counts the multiplications and additions of one application, that of finding the
    blocks (the Riccati sweep, say) apart.
    """
    todo = plan(A)
    names = {i: f"x{s.which}" for i, s in enumerate(todo.steps) if isinstance(s, Given)}
    if len(names) == 1:
        names = dict.fromkeys(names, "x")
    made = [i for i, s in enumerate(todo.steps) if not isinstance(s, Given)]
    names |= {step: f"v{n}" for n, step in enumerate(made, 1)}
    lines = [f"{A}", f"{A.into} → {A.out}, {A.shape[0]} × {A.shape[1]}"]
    for number, direction in enumerate(todo.directions):
        steps = []
        for i in todo.riding(number):
            if i in made:
                read = ["" if a is None else names[a] for a in todo.steps[i].args]
                steps.append(f"{names[i]} = {todo.steps[i].show(read)}")
        if steps:
            lines.append(f"{direction or 'local':<9} {'; '.join(steps)}")
    ops = trace(lambda x: A @ x, [(A.into.dim,)]).ops
    lines.append(f"cost      {ops.multiplications} multiplications, {ops.additions} additions")
    return "\n".join(lines)

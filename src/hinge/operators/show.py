"""Expressions and plans as text: Python, LaTeX, and what a plan does sweep by sweep."""

from __future__ import annotations

from ..graph.program import trace
from .operator import Operator
from .plan import evaluate, plan
from .steps import Given

__all__ = ["describe", "latex"]


def latex(A: Operator) -> str:
    """The expression as LaTeX."""
    return A._repr_latex_()[1:-1]


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
    symbol, at = (A, None) if A.at is None else A.at.first(A)
    ops = trace(lambda x: evaluate(symbol, at, x), [(A.into.dim,)]).ops
    lines.append(f"cost      {ops.multiplications} multiplications, {ops.additions} additions")
    return "\n".join(lines)

"""Expressions made shorter by the laws, and the derivation of the result.

An expression is multiplied out into words.  A law applies where all words of its left side stand
between the same letters, with the same ratios of coefficients; it is used only if what comes out
is shorter.  The adjoint of a law is a law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .articulation import Articulation
from .block import Block, block
from .laws import laws_of
from .leaves import Leaf
from .numbers import same_number
from .operator import Operator
from .words import Polynomial, Word, added, contains_block, expression, polynomial, spread

__all__ = ["explain", "simplify"]

_WEIGHTS = {"P": 1.5, "P_p": 1.5, "D": 0.5, "D_p": 0.5}


@dataclass(frozen=True)
class Reduction:
    """A law as words: find the left ones, put the right ones."""

    title: str
    left: Polynomial
    right: Polynomial

    def apply(self, p: Polynomial) -> Polynomial | None:
        """The polynomial with the law used once, or None where it fits nowhere."""
        lead = max(self.left, key=len)
        for word in p:
            for before, after in _cuts(word, lead):
                c = p[word] / self.left[lead] if self.left[lead] != 1 else p[word]
                found = (
                    same_number(p.get(before + w + after), c * d) for w, d in self.left.items()
                )
                if all(found):
                    swap = [(-c, _between(before, self.left, after))]
                    return added([(1, p), *swap, (c, _between(before, self.right, after))])
        return None


def simplify(A: Operator) -> Operator:
    """A in a shorter form that is equal by the laws; A itself if none shortens it.

    Blocks are multiplied out, and each entry is made shorter by itself.
    """
    if "simplified" not in A.memo:
        entries = [[_derived(entry)[0] for entry in row] for row in _rows(A.symbol)]
        A.memo["simplified"] = block(entries)
    found = A.memo["simplified"]
    return A if found is A.symbol else found.bind(A.at)


def explain(A: Operator) -> str:
    """The steps of `simplify`, a law each, as text."""
    A = A.symbol
    if contains_block(A):
        return "\n\n".join(explain(entry) for row in _rows(A) for entry in row)
    result, steps = _derived(A)
    if not steps:
        return f"{A}\nno law makes this shorter"
    lines = [str(A)]
    lines += [f"= {after}\n    by {title}" for title, after in steps]
    if str(result) != str(steps[-1][1]):
        lines.append(f"= {result}")
    return "\n".join(lines)


def _rows(A: Operator) -> tuple[tuple[Operator, ...], ...]:
    """The entries of an expression, multiplied out if there are blocks in it."""
    whole = spread(A) if contains_block(A) else A
    return whole.rows if isinstance(whole, Block) else ((whole,),)


def _derived(A: Operator) -> tuple[Operator, list[tuple[str, Operator]]]:
    if A.home is None:
        return A, []
    known = [r for s in A.home.sets for r in _known(s)]
    p, steps = polynomial(A), []
    while found := _shortened(p, known):
        title, p = found
        steps.append((title, _folded(p, A)))
    return (steps[-1][1] if steps else A), steps


def _shortened(p: Polynomial, known: list[Reduction]) -> tuple[str, Polynomial] | None:
    """The polynomial after the first law that shortens it, used wherever it does."""
    for reduction in known:
        before = p
        while (shorter := reduction.apply(p)) is not None and _length(shorter) < _length(p):
            p = shorter
        if p is not before:
            return reduction.title, p
    return None


def _known(s: Articulation) -> list[Reduction]:
    return s.home.once(("reductions", s), lambda: _reductions(s))


def _reductions(s: Articulation) -> list[Reduction]:
    """The laws that hold for a set of joints, and their adjoints."""
    found = []
    for law in laws_of(s):
        title = f"{law.equation}  [{law.name}]"
        left, right = (polynomial(side) for side in law.sides(s))
        found.append(Reduction(title, left, right))
        turned = _adjoint(left)
        if turned != left:
            found.append(Reduction(f"adjoint of {title}", turned, _adjoint(right)))
    return found


def _adjoint(p: Polynomial) -> Polynomial:
    return {tuple(x.T for x in reversed(word)): c for word, c in p.items()}


def _folded(p: Polynomial, A: Operator) -> Operator:
    """The polynomial as an expression in which names stand for what they name."""
    for s in A.home.sets:
        sums = (s.innovations, s.innovations.T, s.factor, s.factor.T)
        for named in (*sums, s.Omega, s.K, s.K.T, s.E_psi, s.E_psi.T):
            fold = Reduction(str(named), polynomial(named), {(named,): 1})
            while (shorter := fold.apply(p)) is not None:
                p = shorter
    return expression(p, A)


def _length(p: Polynomial) -> float:
    letters = (_WEIGHTS.get(x.name, 1.0) for w in p for x in w if isinstance(x, Leaf))
    return sum(letters) + 0.01 * len(p)


def _cuts(word: Word, part: Word) -> Iterator[tuple[Word, Word]]:
    """The ways to write word = before + part + after."""
    for i in range(len(word) - len(part) + 1):
        if word[i : i + len(part)] == part:
            yield word[:i], word[i + len(part) :]


def _between(before: Word, p: Polynomial, after: Word) -> Polynomial:
    return {before + w + after: c for w, c in p.items()}

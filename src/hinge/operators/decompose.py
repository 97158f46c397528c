"""Products of two chains around a block-diagonal X, split into one-sided parts.  Paper L, App. A.

    φXφ* = φ̃S + S + Sφ̃*       S(p) = X(p) + Σ φ(p,k) S(k) φ*(p,k)                     (A.1)
    ψXφ* = ψ̃S + S + Sφ̃*       S(p) = X(p) + Σ φ(p,k) τ̄(k) S(k) φ*(p,k)                (A.2)
    ψXψ* = ψ̃S + S + Sψ̃*       S(p) = X(p) + Σ φ(p,k) τ̄(k) S(k) τ̄*(k) φ*(p,k)
    ψ*Xψ = ψ̃*S + S + Sψ̃ + ψ*Cψ   S(k) = X(k) + τ̄*(k) φ*(p,k) S(p) φ(p,k) τ̄(k)         (A.3)

    ψ*Xφ* = ψ*(X − S) + Sφ*       S(k) = X(k) + τ̄*(k) φ*(p,k) S(p) φ*(p,k)⁻¹               (A.5)

with φ̃ = φ − I.  In the fourth, and in φ*Xφ, C = ℰ*Sℰ − S + X couples bodies on different
branches; it vanishes on a serial chain, where (A.3) is printed without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from .expr import Identity, Product, product
from .leaves import Chain, Local
from .operator import Operator
from .plan import evaluate

__all__ = ["decompose", "local_blocks"]


def decompose(A: Operator) -> Operator:
    """A = chain @ X @ chain* as one-sided parts; X is block diagonal.

    Also chain* @ X @ chain, and chain* @ X @ φ* (A.4, A.5).
    """
    return _decomposed(A.symbol).bind(A.at)


def _decomposed(A: Operator) -> Operator:
    factors = A.factors if isinstance(A, Product) else (A,)
    left, right, inner = factors[0], factors[-1], factors[1:-1]
    if (
        not isinstance(left, Chain)
        or not isinstance(right, Chain)
        or (left.adjoint, right.adjoint) == (False, False)
        or (left.adjoint and right.adjoint and right.gain is not None)
        or not all(isinstance(f, Local) for f in inner)
    ):
        raise ArgumentError(
            f"cannot decompose {A}: expected a chain, block-diagonal operators, and the adjoint of "
            f"a chain, as in phi @ M @ phi.T"
        )
    X = product(inner)
    S = _local(A, X, left, right)
    if right.adjoint and left.adjoint:
        return left @ (X - S) + S @ right
    parts = (left - Identity()) @ S + S + S @ (right - Identity())
    serial = all(b.parent == k - 1 for k, b in enumerate(A.home.mechanism.bodies))
    if not left.adjoint or serial:
        return parts
    across = left.once.T @ S @ right.once - S + X
    return parts + left @ across @ right


def _local(A: Operator, X: Operator, left: Chain, right: Chain) -> Local:
    sweep = _inward if not left.adjoint else _along if right.adjoint else _outward
    return Local(
        A.out,
        A.into,
        A.home,
        name=f"{'R' if left.gain is right.gain is None else 'S'}[{X}]",
        tex=rf"S_{{{left.tex}{right.tex}}}",
        make=sweep,
        needs=(X, left, right),
        symmetric=right == left.T and X.T == X,
    )


def local_blocks(at: Any, X: Operator) -> list[Any]:
    """The blocks of an operator made of block-diagonal ones, from one application."""
    sizes = X.into.sizes
    widest = max(sizes)
    y = evaluate(X, at, np.concatenate([np.eye(n, widest) for n in sizes]))
    return [block[:, :n] for block, n in zip(X.out.split(y), sizes, strict=True)]


def _passing(at: Any, chain: Chain, k: int) -> np.ndarray:
    """φ(p,k), or φ(p,k) τ̄(k), as a matrix."""
    phi = at.phi_blocks[k]
    if chain.gain is None:
        return phi @ np.eye(6)
    G, H = (at.blocks(leaf)[k] for leaf in chain.gain)
    return phi @ (np.eye(6) - G @ H)


def _inward(at: Any, X: Operator, left: Chain, right: Chain) -> list[Any]:
    S = local_blocks(at, X)
    for p, k in at.mechanism.inward():
        if p:
            S[p] = S[p] + _passing(at, left, k) @ S[k] @ _passing(at, right, k).T
    return S


def _outward(at: Any, X: Operator, left: Chain, right: Chain) -> list[Any]:
    S = local_blocks(at, X)
    for p, k in at.mechanism.outward():
        if p:
            S[k] = S[k] + _passing(at, left, k).T @ S[p] @ _passing(at, right, k)
    return S


def _along(at: Any, X: Operator, left: Chain, right: Chain) -> list[Any]:
    S = local_blocks(at, X)
    for p, k in at.mechanism.outward():
        if p:
            back = at.phi_blocks[k].pose.inv.transfer @ np.eye(6)
            S[k] = S[k] + _passing(at, left, k).T @ S[p] @ back.T
    return S

"""Derivatives of functions of arrays, as functions of arrays.

    gradient    g = ∂f/∂x                jacobian    J = ∂f/∂x
    hessian     H = ∂²f/∂x²              jvp         J v          vjp    Jᵀ w

`fn` is numpy-style code that traces, such as `robot.alg.inverse_dynamics`.  Its derivative is
called like it: with arrays of traced scalars it returns arrays of traced scalars of the same graph,
so that derivatives nest and compile into larger kernels; with numbers it is traced at the shapes of
the arguments, compiled, and run.  Arguments that are not arrays are bound by `functools.partial`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, final

import numpy as np

from ..errors import ArgumentError
from ..graph.arrays import cut, entries, inputs
from ..graph.autodiff import OnNewLeaves, adjoints, jacobian_nodes, on_new_leaves, tangents
from ..graph.program import Program
from ..graph.scalar import Graph, Node
from ..runtime.kernel import Kernel

__all__ = ["Derivative", "grad", "hessian", "jacobian", "jvp", "vjp"]

Function = Callable[..., Any]
# an array, or a tuple of trees
Tree = Any


def grad(fn: Function, argnums: int | tuple[int, ...] = 0) -> Derivative:
    """g = ∂f/∂x of a function with one number as its result: (*x.shape,), by one backward sweep.

    argnums: which argument x is, from 0; with a tuple of them, a tuple of gradients is returned.
    """
    title = f"grad of {_name(fn)}"
    chosen = _argnums(title, argnums)

    def rule(graph: Graph, layout: Any, arrays: list[np.ndarray]) -> Tree:
        inside = _on_new_leaves(title, graph, fn, arrays, chosen)
        if inside.form is not None or inside.results[0].shape != ():
            raise ArgumentError(
                f"{title}: the function returns {inside.described}; grad needs a single number: "
                f"use jacobian, or vjp for a weighted sum"
            )
        bars = adjoints(inside.values, [1.0], inside.leaves)
        parts = inside.like_arguments(bars.values())
        return tuple(parts) if isinstance(argnums, tuple) else parts[0]

    return Derivative(title, rule, _arrays, fn)


def jacobian(fn: Function, argnums: int | tuple[int, ...] = 0) -> Derivative:
    """J = ∂f/∂x: (*result.shape, *x.shape), forward or backward, whichever costs less.

    argnums: which argument x is, from 0; with a tuple of them, each result has a tuple of J.
    A function that returns a tuple has a tuple of the same kind as its Jacobian.
    """
    title = f"jacobian of {_name(fn)}"
    chosen = _argnums(title, argnums)

    def rule(graph: Graph, layout: Any, arrays: list[np.ndarray]) -> Tree:
        inside = _on_new_leaves(title, graph, fn, arrays, chosen)
        J = jacobian_nodes(inside.values, inside.leaves)
        rows = cut(inside.on_arguments(J.ravel()), [a.shape + J.shape[1:] for a in inside.results])
        parts = []
        for row in rows:
            blocks = inside.blocks(row)
            parts.append(tuple(blocks) if isinstance(argnums, tuple) else blocks[0])
        return _built(inside.form, parts)

    return Derivative(title, rule, _arrays, fn)


def hessian(fn: Function, argnums: int | tuple[int, ...] = 0) -> Derivative:
    """H = ∂²f/∂x² of a function with one number as its result: (*x.shape, *x.shape).

    The Jacobian of the gradient; with a tuple of arguments, a tuple of tuples.
    """
    return jacobian(grad(fn, argnums), argnums)


def jvp(fn: Function) -> Derivative:
    """δf = J v, as a function of (primals, tangents): the arguments and their changes v, as tuples.

    One forward sweep.  The result has the form of the function's; None among the tangents is zero.
    """
    title = f"jvp of {_name(fn)}"

    def rule(graph: Graph, layout: Any, arrays: list[np.ndarray]) -> Tree:
        primals, dots = _unpacked(layout, arrays)
        moving = [i for i, dot in enumerate(dots) if dot is not None]
        for i in moving:
            _require_shape(f"{title}: tangent {i}", dots[i], primals[i], "argument")
        inside = _on_new_leaves(title, graph, fn, primals, moving)
        seeds = dict(zip(inside.leaves, entries(dots[i] for i in moving), strict=True))
        nodes = inside.on_arguments(tangents(inside.values, seeds))
        return _built(inside.form, cut(nodes, [a.shape for a in inside.results]))

    def spread(*arguments: Any) -> tuple[Any, list[np.ndarray]]:
        primals, dots = _pair(title, arguments, "tangents")
        _require_tuple(title, "tangents", dots)
        if len(dots) != len(primals):
            raise ArgumentError(
                f"{title}: {len(primals)} primals but {len(dots)} tangents; give one for each, "
                f"None for zero"
            )
        return _packed(primals, dots)

    return Derivative(title, rule, spread)


def vjp(fn: Function) -> Derivative:
    """Jᵀ w, as a function of (primals, cotangents): a tuple with one array for each primal.

    One backward sweep.  cotangents: w of the form of the result; None in a tuple of them is zero.
    """
    title = f"vjp of {_name(fn)}"

    def rule(graph: Graph, layout: Any, arrays: list[np.ndarray]) -> Tree:
        primals, bars = _unpacked(layout, arrays)
        inside = _on_new_leaves(title, graph, fn, primals, range(len(primals)))
        _require_form(title, inside, layout, bars)
        given = [i for i, bar in enumerate(bars) if bar is not None]
        for i in given:
            _require_shape(f"{title}: cotangent {i}", bars[i], inside.results[i], "result")
        values = entries(inside.results[i] for i in given)
        weights = entries(bars[i] for i in given)
        return tuple(inside.like_arguments(adjoints(values, weights, inside.leaves).values()))

    def spread(*arguments: Any) -> tuple[Any, list[np.ndarray]]:
        primals, bars = _pair(title, arguments, "cotangents")
        single = not isinstance(bars, tuple)
        layout, arrays = _packed(primals, (bars,) if single else bars)
        return (*layout, single), arrays

    return Derivative(title, rule, spread)


@final
class Derivative:
    """A derivative as a function: of traced scalars, or of numbers by way of a kernel.

    `kernels` has those compiled so far, by the shapes of the arguments: make the derivative once
    and keep it.  What the differentiated function closes over is a constant of the kernel.
    """

    def __init__(
        self,
        title: str,
        rule: Callable[[Graph, Any, list[np.ndarray]], Tree],
        spread: Callable[..., tuple[Any, list[np.ndarray]]],
        fn: Function | None = None,
    ) -> None:
        """rule: from arrays in a graph to the derivative; spread: from the arguments to arrays.

        fn: the function whose arguments are the derivative's as well.
        """
        self.__name__ = title
        self.__signature__ = None if fn is None else _signature(fn)
        self.kernels: dict[Any, Kernel] = {}
        self._forms: dict[Any, Tree] = {}
        self._rule, self._spread = rule, spread

    def __call__(self, *arguments: Any) -> Tree:
        layout, arrays = self._spread(*arguments)
        graph = _graph(arrays)
        if graph is not None:
            return self._rule(graph, layout, arrays)
        key = (layout, tuple(a.shape for a in arrays))
        if key not in self.kernels:
            self._compile(key, layout, arrays)
        return _filled(self._forms[key], iter(self.kernels[key](*arrays)))

    def _compile(self, key: Any, layout: Any, arrays: list[np.ndarray]) -> None:
        for i, a in enumerate(arrays):
            if a.dtype.kind not in "fiub":
                raise ArgumentError(
                    f"{self.__name__}: array {i} holds {a.dtype}; expected real numbers or traced "
                    f"scalars: bind other arguments with functools.partial"
                )
        graph = Graph()
        tree = self._rule(graph, layout, [inputs(graph, a.shape) for a in arrays])
        parts = _flat(tree)
        shapes = tuple(a.shape for a in arrays), tuple(a.shape for a in parts)
        program = Program(self.__name__, *shapes, tuple(entries(parts)), tuple)
        self._forms[key] = _filled(tree, repeat(None))
        self.kernels[key] = Kernel(program, self.__name__)

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


def _on_new_leaves(
    title: str, graph: Graph, fn: Function, arrays: list[np.ndarray], chosen: Sequence[int]
) -> OnNewLeaves:
    """The function evaluated on new leaves for the chosen arguments, all of them checked."""
    _require_arguments(title, fn, len(arrays))
    if any(i >= len(arrays) for i in chosen):
        raise ArgumentError(
            f"{title}: argnums is {', '.join(map(str, chosen))}, but it was called with "
            f"{len(arrays)} arguments, counted from 0"
        )
    return on_new_leaves(fn, graph, arrays, chosen, title)


def _graph(arrays: list[np.ndarray]) -> Graph | None:
    """The graph that the arrays belong to, if they hold traced scalars."""
    objects = (x for a in arrays if a.dtype == object for x in a.ravel())
    return next((x.graph for x in objects if isinstance(x, Node)), None)


# trees of arrays


def _flat(tree: Tree) -> list[np.ndarray]:
    return [x for part in tree for x in _flat(part)] if isinstance(tree, tuple) else [tree]


def _filled(tree: Tree, arrays: Iterator[Any]) -> Tree:
    """The tree with other arrays for leaves."""
    if not isinstance(tree, tuple):
        return next(arrays)
    return _built(type(tree), [_filled(part, arrays) for part in tree])


def _built(form: type | None, parts: list[Any]) -> Tree:
    if form is None:
        return parts[0]
    return tuple(parts) if form is tuple else form(*parts)


# arguments


def _arrays(*arguments: Any) -> tuple[None, list[np.ndarray]]:
    return None, [_as_array(x) for x in arguments]


def _as_array(x: Any) -> np.ndarray:
    a = np.asarray(x)
    # an empty array of nothing holds no traced scalars: numbers will do
    return a if a.size else a.astype(float)


def _packed(primals: Sequence[Any], others: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
    """Both in one list of arrays, and how to unpack them."""
    layout = len(primals), tuple(x is not None for x in others)
    return layout, [_as_array(x) for x in (*primals, *(x for x in others if x is not None))]


def _unpacked(layout: Any, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[Any]]:
    n, given = layout[:2]
    rest = iter(arrays[n:])
    return arrays[:n], [next(rest) if x else None for x in given]


def _pair(title: str, arguments: tuple[Any, ...], second: str) -> tuple[Any, Any]:
    if len(arguments) != 2:
        raise ArgumentError(
            f"{title}: got {len(arguments)} arguments; expected two: (primals, {second})"
        )
    _require_tuple(title, "primals", arguments[0])
    return arguments[0], arguments[1]


def _require_tuple(title: str, name: str, x: Any) -> None:
    if not isinstance(x, (tuple, list)):
        raise ArgumentError(
            f"{title}: {name} is a {type(x).__name__}; expected a tuple with one entry for each "
            f"argument of the function"
        )


def _require_shape(what: str, given: np.ndarray, like: np.ndarray, kind: str) -> None:
    if given.shape != like.shape:
        raise ArgumentError(
            f"{what} has shape {given.shape}; expected {like.shape}, the shape of its {kind}"
        )


def _require_form(title: str, inside: OnNewLeaves, layout: Any, bars: list[Any]) -> None:
    single = layout[-1]
    if single != (inside.form is None) or len(bars) != len(inside.results):
        got = "an array" if single else f"a tuple of {len(bars)}"
        raise ArgumentError(
            f"{title}: cotangents is {got}; the function returns {inside.described}, and the "
            f"cotangents have its form"
        )


def _require_arguments(title: str, fn: Function, count: int) -> None:
    signature = _signature(fn)
    if signature is None:
        return
    try:
        signature.bind(*range(count))
    except TypeError:
        raise ArgumentError(
            f"{title}: called with {count} arguments; the function takes {signature}"
        ) from None


def _argnums(title: str, argnums: Any) -> tuple[int, ...]:
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    sound = all(type(i) is int and i >= 0 for i in chosen)
    if not chosen or not sound or len(set(chosen)) < len(chosen):
        raise ArgumentError(
            f"{title}: argnums is {argnums!r}; expected the number of an argument, from 0, or a "
            f"tuple of different ones"
        )
    return chosen


def _signature(fn: Function) -> inspect.Signature | None:
    try:
        return inspect.signature(fn)
    except ValueError:
        return None


def _name(fn: Function) -> str:
    while isinstance(fn, partial):
        fn = fn.func
    return getattr(fn, "__name__", type(fn).__name__)

"""What is worked out at a configuration, or at a batch of them: blocks, results, matrices.

An expression that meets a vector runs as a kernel (q, its numbers, x) ↦ A x, made once for its
symbol where there is a compiler; else its plan runs as plain Python, one sample after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..algorithms.constrained.rows import held, in_given_axes
from ..algorithms.mass_matrix import mass_matrix, mass_matrix_inverse
from ..algorithms.operational_space import reach
from ..algorithms.singular import loose_joint, why_singular
from ..errors import ArgumentError, SingularError
from ..model.mechanism import Mechanism
from .leaves import Data, Dense, Hold, Leaf, Local, Pick
from .opening import Opening
from .operator import Operator
from .plan import evaluate, plan
from .spaces import common_lead
from .symbols import Symbols
from .words import equal, polynomial

__all__ = ["Place"]

# beyond so many steps at bodies an expression is not unrolled into a kernel
_LARGEST = 2000
# a configuration forgets the blocks of leaves after so many others
_REMEMBERED = 256


class Place:
    """Configurations q (…, nq) of a mechanism, where its symbols get values."""

    home: Symbols
    q: np.ndarray
    is_batch: bool

    @classmethod
    def of(cls, home: Symbols, q: np.ndarray) -> Any:
        """The place with these symbols."""
        place = object.__new__(cls)
        place._settle(home, q)
        return place

    def _settle(self, home: Symbols, q: np.ndarray) -> None:
        self.home, self.q, self.is_batch, self._known = home, q, q.ndim > 1, {}
        # on a card, whose kernels take any dtype
        self._away = not isinstance(q, np.ndarray)
        self._compiles = home.compile is not None and (self._away or q.dtype == home.dtype)

    @property
    def mechanism(self) -> Mechanism:
        """What it is a configuration of."""
        return self.home.mechanism

    # blocks of one configuration

    @cached_property
    def phi_blocks(self) -> list[Any]:
        """φ(p, k) of every body."""
        return self.mechanism.phi(self._one)

    @cached_property
    def H_blocks(self) -> list[np.ndarray]:
        """H(k) of every body."""
        return self.mechanism.H(self._one)

    @property
    def _one(self) -> np.ndarray:
        if self.is_batch:
            raise ArgumentError(
                f"operators of {self.mechanism.name!r}: blocks are those of one configuration; q "
                f"has shape {self.q.shape}; take robot.operators(q[i])"
            )
        return self.q

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was worked out here for the key before, or is now."""
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = make()
        return self._known[key]

    def blocks(self, leaf: Leaf) -> Sequence[Any]:
        """The blocks of a local operator, φ(body, frame) of the ends of a pick, or a matrix."""
        if isinstance(leaf, Pick):
            given = self.mechanism, self.phi_blocks
            key = leaf.frames, leaf.reference
            return self.once(key, lambda: [reach(*given, f, key[1])[1] for f in key[0]])
        if isinstance(leaf, Hold):
            where = self.mechanism, self.phi_blocks, leaf.constraints
            return self.once(("C", leaf.constraints), lambda: _pushes(*where))
        if isinstance(leaf, Dense):
            return self.once((leaf.name, leaf.out), lambda: [leaf.make(self)])
        if isinstance(leaf, Local):
            make = leaf.invert if leaf.inverse and leaf.invert else leaf.make
            key = leaf.name, leaf.inverse, leaf.needs
            return self.once(key, lambda: make(self, *leaf.needs))
        return []

    # applying expressions

    def on(self, A: Operator, x: Any) -> np.ndarray:
        """A x: at one configuration a vector (n,) or columns (…, n, k), in a batch (…, n)."""
        run = A.memo.get("run") if self._compiles else None
        if self._away:
            return self._on_card(A, x)
        if run is not None and type(x) is np.ndarray and x.dtype == self.home.dtype:
            kernel, shape = run
            if x.shape == shape or (self.is_batch and x.shape[-1:] == shape):
                return kernel(self.q, x)
        if self.is_batch:
            return self.apply(A, x)
        x = A.into.check(str(A), x)
        if x.ndim == 1 or self._kernel_of(A, x):
            return self._finite(A, _turned(self.apply(A, _turned(x))))
        columns = np.moveaxis(x, -2, 0)
        y = evaluate(A, self, columns.reshape(len(columns), math.prod(columns.shape[1:])))
        return self._finite(A, np.moveaxis(y.reshape(A.out.dim, *columns.shape[1:]), 0, -2))

    def _on_card(self, A: Operator, x: Any) -> Any:
        """A x for vectors (…, n), by its kernel."""
        kernel = self._kernel_of(A, x)
        if kernel is None:
            raise ArgumentError(
                f"{A} of {self.mechanism.name!r} is too large for one kernel, which is how "
                f"expressions meet vectors on a card; bring q to the host"
            )
        return kernel(self.q, x)

    def _finite(self, A: Operator, y: np.ndarray) -> np.ndarray:
        """Results at one configuration; raise if a joint that moves no inertia spoils them."""
        if y.dtype.kind in "fc" and not np.isfinite(y).all():
            mech = self.mechanism
            if joint := loose_joint(mech, mass_matrix(mech, self.q)):
                raise SingularError(why_singular(f"{A} of {mech.name!r}", joint))
        return y

    def apply(self, A: Operator, x: Any) -> np.ndarray:
        """A x for vectors (…, n), whose leading shape broadcasts with that of q."""
        if self._away:
            return self._on_card(A, x)
        x = A.into.rows(str(A), x)
        if kernel := self._kernel_of(A, x):
            return kernel(self.q, x)
        if x.ndim == 1 and not self.is_batch:
            return evaluate(A, self, x)
        opening = Opening(A)
        shapes = [*opening.shapes, (A.into.dim,)]
        return self._each(_applied(opening), [*opening.values, x], shapes, (A.out.dim,))

    def dense(self, A: Operator) -> np.ndarray:
        """The matrix of A by the cheapest route, (…, m, n).

        The mass operator and its inverse have algorithms of their own, which use the sparsity of
        branches; anything else is applied to unit vectors, from the side that has fewer.
        """
        if "route" not in A.memo:
            A.memo["route"] = self._route(A)
        if A.memo["route"]:
            (name, algorithm), nv = A.memo["route"], self.mechanism.nv
            return self.worked_out(name, algorithm, [], (nv, nv), nv)
        if A.into.dim > A.out.dim:
            return np.swapaxes(self._matrix(A.T), -1, -2)
        return self._matrix(A)

    def _matrix(self, A: Operator) -> np.ndarray:
        units = np.eye(A.into.dim)
        if not self.is_batch:
            return self.on(A, units)
        spread = self.of(self.home, self.q[..., None, :])
        opening = Opening(A)
        pairs = zip(opening.values, opening.shapes, strict=True)
        wide = [v[()] if v.ndim == len(s) else np.expand_dims(v, -1 - len(s)) for v, s in pairs]
        return np.swapaxes(spread.apply(opening.closed(wide), units), -1, -2)

    def _route(self, A: Operator) -> tuple[str, Callable[..., np.ndarray]] | None:
        """The name of the algorithm that gives the matrix of A, and the algorithm."""
        if not A.out == A.into == self.home.joint:
            return None
        words, s = polynomial(A), self.home.free
        inverse = s.innovations.T @ s.D.inv @ s.innovations
        known = {
            ("mass_matrix", _mass_matrix): s.mass,
            ("mass_matrix_inverse", _mass_matrix_inverse): inverse,
        }
        return next((found for found, B in known.items() if equal(words, polynomial(B))), None)

    def first(self, A: Operator) -> tuple[Operator, Any]:
        """The expression and the configuration of the first of a batch."""
        if not self.is_batch:
            return A.symbol, self
        if 0 in self.q.shape[:-1]:
            raise ArgumentError(
                f"{A}: the batch of configurations is empty, q has shape {self.q.shape}; nothing "
                f"can be shown of it: take one configuration"
            )
        opening = Opening(A)
        pairs = zip(opening.values, opening.shapes, strict=True)
        one = [v[(0,) * (v.ndim - len(shape))] for v, shape in pairs]
        return opening.closed(one), self.of(self.home, self.q[(0,) * (self.q.ndim - 1)])

    # kernels

    def _kernel_of(self, A: Operator, x: np.ndarray) -> Callable[..., np.ndarray] | None:
        """(q, x) ↦ A x compiled, if it is for such numbers."""
        if not self._compiles or not (self._away or x.dtype.kind in "fiu"):
            return None
        if "run" not in A.memo:
            opening, x_shape = Opening(A), (A.into.dim,)
            work, shapes = _applied(opening), [*opening.shapes, x_shape]
            given = opening.text, str(A), work, shapes, len(plan(A).steps), opening.values
            kernel = self._kernel(*given)
            if kernel is None:
                return None
            A.memo["run"] = _with_numbers(kernel, opening.values, self.home.dtype), x_shape
        return A.memo["run"][0]

    def _kernel(
        self,
        key: str,
        title: str,
        work: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]],
        steps: int,
        values: Sequence[np.ndarray],
    ) -> Any:
        """work(configuration, *arrays) compiled, once for a key; None for what is not compiled."""
        home = self.home
        plain = all(v.dtype.kind in "fiu" for v in values)
        small = steps * home.mechanism.n_bodies <= _LARGEST
        if home.compile is None or not (self._compiles and plain and small):
            return None
        arguments = [f"number {i}" for i in range(len(shapes) - 1)] + ["x"] * bool(shapes)
        named = {"q": (home.mechanism.nq,), **dict(zip(arguments, shapes, strict=True))}

        def traced(q: np.ndarray, *arrays: np.ndarray) -> Any:
            return work(self.of(home, q), *arrays)

        return home.once(("kernel", key), partial(home.compile, key, title, traced, named))

    def worked_out(
        self,
        name: str,
        work: Callable[..., Any],
        data: Sequence[Data],
        out: tuple[int, ...],
        steps: int,
    ) -> np.ndarray:
        """work(configuration, *arrays) for all configurations."""
        values, shapes = [d.value for d in data], [d.shape for d in data]
        kernel = self._kernel(f"{name} {shapes}", name, work, shapes, steps, values)
        if kernel is not None:
            return kernel(self.q, *values)
        return self._each(work, values, shapes, out) if self.is_batch else work(self, *values)

    def _each(
        self,
        work: Callable[..., Any],
        values: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
        out: tuple[int, ...],
    ) -> np.ndarray:
        """work(configuration, *arrays) for one sample after the other."""
        pairs = list(zip([self.q, *values], [self.q.shape[-1:], *shapes], strict=True))
        lead = common_lead("operators", [x.shape[: x.ndim - len(s)] for x, s in pairs])
        q, *rest = (np.broadcast_to(x, lead + s) for x, s in pairs)
        samples = [work(self.of(self.home, q[i]), *(x[i] for x in rest)) for i in np.ndindex(lead)]
        return np.array(samples).reshape(lead + out)


def _applied(opening: Opening) -> Callable[..., np.ndarray]:
    """(configuration, *numbers of an expression, x) ↦ the expression on x."""
    return lambda at, *arrays: evaluate(opening.closed(arrays[:-1]), at, arrays[-1])


def _with_numbers(
    kernel: Callable[..., Any], values: Sequence[np.ndarray], dtype: np.dtype
) -> Callable[..., Any]:
    """(q, x) ↦ the kernel with the numbers of an expression in their place."""
    numbers = [v.astype(dtype) for v in values]
    return (lambda q, x: kernel(q, *numbers, x)) if numbers else kernel


def _turned(x: np.ndarray) -> np.ndarray:
    """Columns as rows, and back."""
    return x if x.ndim == 1 else np.ascontiguousarray(np.swapaxes(x, -1, -2))


def _pushes(mech: Mechanism, phi: Any, constraints: Sequence[Any]) -> list[np.ndarray]:
    """Unit forces along the rows of each constraint, (6, rows) on each body that it pushes."""
    places = held(mech, phi, constraints)
    return [in_given_axes([h], z.T).T for h in places for _, z in h.unit_forces()]


def _mass_matrix(at: Place) -> np.ndarray:
    return mass_matrix(at.mechanism, at.q)


def _mass_matrix_inverse(at: Place) -> np.ndarray:
    return mass_matrix_inverse(at.mechanism, at.q)

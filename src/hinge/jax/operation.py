"""Operations: compiled kernels that know how they change, and of what they are the transpose.

An operation takes and gives arrays (…, *shape).  Its change along a direction is an operation too,
linear in the direction (`pushed`), and so is the transpose of a linear one (`pulled`): kernels made
by sweeping through the program of the first, when somebody asks for them.  The recursions of the
library give whole matrices of derivatives: they are used where many directions are asked for at one
point, as `jax.jacobian` does, and where they are all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..functions.directional import pulled, pushed
from ..graph.program import Program
from ..runtime.cache import digest
from ..runtime.forks import made_once
from ..runtime.kernel import Kernel
from .binding import call
from .code import Code, kernel_code

__all__ = ["Matrices", "Operation", "Signature", "leading"]

jnp: Any = import_module("jax.numpy")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """The shapes of one sample of arguments and results; several: whether they make a tuple."""

    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    several: bool = True


@dataclass(frozen=True, eq=False)
class Matrices:
    """Derivatives as matrices (…, result, argument), all arguments and results being vectors.

    of: from the arguments to {(result, argument): matrix}.
    tangents: for an argument that is along tangents there, the linear operation (q, dq) ↦ δ.
    alone: they are all there is, also for one direction.
    """

    of: Callable[..., Mapping[tuple[int, int], Any]]
    arguments: tuple[int, ...]
    tangents: Mapping[int, Operation] = field(default_factory=dict)
    alone: bool = False


@dataclass(frozen=True, eq=False)
class Origin:
    """Of what a linear operation is the change, along which arguments, or the transpose of that."""

    base: Operation
    moving: tuple[int, ...]
    transposed: bool

    @property
    def matrices(self) -> Matrices | None:
        """The matrices that it is a product with, if they are known."""
        known = self.base.matrices
        return known if known and set(self.moving) <= set(known.arguments) else None


class Operation:
    """A kernel, as JAX knows it.

    linear: the arguments that it is linear in, all together.
    matrices: its derivatives, if there are any.
    unrolled: what makes its program without loops over bodies, if it may have some.
    parts: how one sample is computed from others, if that is quicker.
    times: for every argument and every result, how many dimensions come before the samples'.
    states: how many arguments, the first ones, have the whole leading shape in any case, and are
    written to where the last results are.
    """

    times: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    states = 0

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature | None = None,
        linear: Sequence[int] = (),
        matrices: Matrices | None = None,
        origin: Origin | None = None,
        unrolled: Callable[[], Any] | None = None,
        parts: Callable[..., Any] | None = None,
        looped: Callable[[Any, tuple[int, ...]], Callable[..., Any] | None] | None = None,
    ) -> None:
        """signature: if it is known before the kernel is made.

        looped: of the kind of a derivative and its arguments, what makes its program by loops over
        bodies, of arrays by name and a title.
        """
        self.kernel, self._signature, self.linear = kernel, signature, tuple(linear)
        self.matrices, self.origin = matrices, origin
        self._unrolled, self.parts, self._looped = unrolled, parts, looped
        self._pushed: dict[tuple[int, ...], Operation] = {}
        self._pulled: dict[tuple[int, ...], Operation] = {}

    @property
    def dtype(self) -> np.dtype:
        """Of all its arrays."""
        return self.kernel.dtype

    @made_once
    def signature(self) -> Signature:
        """The shapes of its arrays."""
        if self._signature is not None:
            return self._signature
        made = self.kernel.artifact
        return Signature(made.inputs, made.outputs, made.several)

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """The shapes of one sample of the arguments."""
        return self.signature.inputs

    def shapes(self, lead: Shape) -> list[Shape]:
        """The shapes of the results."""
        return [lead + shape for shape in self.signature.outputs]

    def code(self, lead: Shape, platform: str) -> Code:
        """What runs so many samples."""
        return kernel_code(self.kernel, prod(lead), platform)

    @property
    def program(self) -> Program:
        """Its arithmetic, without loops."""
        program = self.kernel.program
        if isinstance(program, Program) or self._unrolled is None:
            return program
        return self._unrolled()

    # derivatives

    def change(self, point: Sequence[Any], dots: Mapping[int, Any]) -> list[Any]:
        """Changes of the results, from those of some arguments."""
        if set(dots) <= set(self.linear):
            still = [jnp.zeros_like(x) if i in self.linear else x for i, x in enumerate(point)]
            return call(self, *(dots.get(i, x) for i, x in enumerate(still)))
        return call(self.pushed(tuple(dots)), *point, *dots.values())

    def transpose(
        self, linear: tuple[int, ...], known: Sequence[Any], bars: Sequence[Any]
    ) -> list[Any]:
        """Cotangents of the arguments that it is linear in, from the others and the results'."""
        return call(self.pulled(linear), *known, *bars)

    def pushed(self, moving: tuple[int, ...]) -> Operation:
        """Its change: of the arguments, then of the changes of those that move."""
        if moving not in self._pushed:
            inputs, outputs = self.inputs, self.signature.outputs
            whole = partial(_pushed, self, moving)
            moved = {f"d({self.kernel.names[i]})": inputs[i] for i in moving}
            kernel = self._derived("change", moving, self._by_loops("jvp", moving, moved) or whole)
            signature = Signature(inputs + tuple(inputs[i] for i in moving), outputs)
            linear = range(len(inputs), len(inputs) + len(moving))
            origin = Origin(self, moving, transposed=False)
            self._pushed[moving] = Operation(
                kernel, signature, linear, origin=origin, unrolled=whole
            )
        return self._pushed[moving]

    def pulled(self, linear: tuple[int, ...]) -> Operation:
        """Its transpose: of the arguments that are not in `linear`, then of the results."""
        if linear not in self._pulled:
            inputs, outputs = self.inputs, self.signature.outputs
            others = tuple(shape for i, shape in enumerate(inputs) if i not in linear)
            signature = Signature(others + outputs, tuple(inputs[i] for i in linear))
            bars, origin = range(len(others), len(others) + len(outputs)), self._back(linear)
            whole, loops = partial(_pulled, self, linear), None
            if origin is not None:
                given = {f"bar({i})": shape for i, shape in enumerate(outputs)}
                loops = origin.base._by_loops("vjp", origin.moving, given)
            kernel = self._derived("transpose", linear, loops or whole)
            self._pulled[linear] = Operation(kernel, signature, bars, origin=origin, unrolled=whole)
        return self._pulled[linear]

    def _back(self, linear: tuple[int, ...]) -> Origin | None:
        """Of what its transpose is one, if that is of all that a change is linear in."""
        if self.origin is None or self.origin.transposed:
            return None
        base = self.origin.base
        first = len(base.inputs)
        if len(self.inputs) - len(linear) != first:
            return None
        return Origin(base, tuple(self.origin.moving[i - first] for i in linear), transposed=True)

    def _by_loops(
        self, kind: str, which: tuple[int, ...], more: Mapping[str, Shape]
    ) -> Callable[[], Any] | None:
        """What makes the program of a derivative by loops over bodies, if there is such a one."""
        make = None if self._looped is None else self._looped(kind, which)
        if make is None:
            return None
        given = dict(zip(self.kernel.names, self.inputs, strict=True)) | dict(more)
        return partial(make, given, f"{kind} of {self.kernel.name}")

    def _derived(self, how: str, which: tuple[int, ...], make: Callable[[], Any]) -> Kernel:
        kernel = self.kernel
        source = kernel._source
        key = digest(source.own_key, how, repr(which))
        title, strict = f"{how} of {kernel.name}", source.settings.strict
        return Kernel(make, title, (), kernel.dtype, kernel.backend, key, strict)


def _pushed(operation: Operation, moving: tuple[int, ...]) -> Program:
    return pushed(operation.program, moving)


def _pulled(operation: Operation, linear: tuple[int, ...]) -> Program:
    return pulled(operation.program, linear)


def leading(operation: Any, shapes: Sequence[Shape]) -> Shape:
    """The leading shape of a call."""
    times = operation.times[0] if operation.times else (0,) * len(shapes)
    own = zip(shapes, operation.inputs, times, strict=True)
    return max((s[t : len(s) - len(o)] for s, o, t in own), key=len)

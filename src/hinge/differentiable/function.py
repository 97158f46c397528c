"""A kernel with its derivatives, which are kernels that have derivatives too.

    y = f(x)        jvp   ẏ = Σ ∂f/∂xᵢ ẋᵢ        vjp   x̄ᵢ = (∂f/∂xᵢ)ᵀ ȳ

Both are the program differentiated on its graph, forward or backward, and compiled: one sweep more,
no matrix and no tape.  What a function is defined by implicitly is differentiated so
(`implicit.py`): it takes the results that are there already.

Derivatives are with respect to the entries of the arrays.  A quaternion in q is one as it is given:
algorithms normalise it, and so do their derivatives, which are therefore 0 along it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..errors import ArgumentError
from ..robot.answers import known_key
from ..runtime.kernel import Kernel
from ..specialize.by_coordinates import looped_product
from ..specialize.routing import is_long
from .implicit import forward_dynamics_rule
from .rules import Arrays, Rule, Shape, program_rule

if TYPE_CHECKING:
    from ..graph.program import Program
    from ..model.mechanism import Mechanism
    from ..robot import Robot

__all__ = ["Differentiable", "of_kernel", "of_robot"]


@final
class Differentiable:
    """A kernel that knows its derivatives.

    `kernel`, `inputs`, `outputs`, `several`: the function itself, with the shapes of a sample.
    `jvp(wrt)`: of arguments (*x, *ẋ), ẋ of those numbered in wrt alone, to the tuple ẏ.
    `vjp(wrt)`: of arguments (*x, *ȳ) to the tuple x̄ of those numbered in wrt.
    Where `uses_results`, both take (*x, *y, …) with the results y of the function.
    """

    def __init__(
        self,
        kernel: Kernel,
        rule: Callable[[], Rule],
        key: str | None = None,
        uses_results: bool = False,
        looped: Callable[[Any, tuple[int, ...]], Callable[..., Any] | None] | None = None,
    ) -> None:
        """rule: made when a derivative is first compiled; key: of its code, known before that.

        looped: of the kind of a derivative and its arguments, what makes its program by loops.
        """
        self.kernel, self._rule, self._key = kernel, rule, key
        self.uses_results, self._looped = uses_results, looped
        self._made: dict[Any, Differentiable] = {}

    def __repr__(self) -> str:
        return f"<differentiable {self.name}>"

    @property
    def name(self) -> str:
        """What is computed of what."""
        return self.kernel.name

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments."""
        return self.kernel.names

    @property
    def dtype(self) -> np.dtype:
        """The kind of all numbers."""
        return self.kernel.dtype

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """The shapes of a sample of the arguments."""
        return self.kernel.artifact.inputs

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """The shapes of a sample of the results."""
        return self.kernel.artifact.outputs

    @property
    def several(self) -> bool:
        """Whether the results come as a tuple."""
        return self.kernel.artifact.several

    def jvp(self, wrt: Sequence[int]) -> Differentiable:
        """ẏ, as such a function of x and of the changes of those arguments."""
        moving = [(f"d({self.names[i]})", self.inputs[i]) for i in wrt]
        return self._derived("jvp", tuple(wrt), moving, self._push)

    def vjp(self, wrt: Sequence[int]) -> Differentiable:
        """x̄ of those arguments, as such a function of x and ȳ."""
        bars = [(f"bar({i})", shape) for i, shape in enumerate(self.outputs)]
        return self._derived("vjp", tuple(wrt), bars, self._pull)

    def _derived(
        self,
        kind: str,
        wrt: tuple[int, ...],
        extra: list[tuple[str, Shape]],
        apply: Callable[..., tuple[Any, ...]],
    ) -> Differentiable:
        if (kind, wrt) not in self._made:
            given = dict(zip(self.names, self.inputs, strict=True))
            if self.uses_results:
                extra = [(f"result({i})", x) for i, x in enumerate(self.outputs)] + extra
            for name, shape in extra:
                # of a second derivative, one more than the first has
                given[name if name not in given else f"{name}_{len(given)}"] = shape
            title = f"{kind} of {self.name}"
            key = None if self._key is None else f"{self._key} {kind} {wrt}"
            whole = partial(_traced, partial(apply, wrt), list(given.values()), title)
            loops = None if self._looped is None else self._looped(kind, wrt)
            make = whole if loops is None else partial(loops, given, title)
            own = self.kernel
            kernel = Kernel(make, title, tuple(given), own.dtype, own.backend, key, own.strict)
            # loops have no graph to be differentiated once more
            again = (lambda: kernel.program) if loops is None else whole
            self._made[kind, wrt] = Differentiable(kernel, partial(program_rule, again), key)
        return self._made[kind, wrt]

    @cached_property
    def _how(self) -> Rule:
        return self._rule()

    def _split(self, arrays: tuple[Any, ...]) -> tuple[Arrays, Arrays, Arrays]:
        """Arguments, results and the rest."""
        n = len(self.inputs)
        m = n + (len(self.outputs) if self.uses_results else 0)
        return arrays[:n], arrays[n:m], arrays[m:]

    def _push(self, wrt: tuple[int, ...], *arrays: Any) -> tuple[Any, ...]:
        x, y, given = self._split(arrays)
        moved = dict(zip(wrt, given, strict=True))
        dots = [moved.get(i, np.zeros(shape)) for i, shape in enumerate(self.inputs)]
        return tuple(self._how.push(x, y, dots))

    def _pull(self, wrt: tuple[int, ...], *arrays: Any) -> tuple[Any, ...]:
        back = self._how.pull(*self._split(arrays))
        return tuple(back[i] for i in wrt)

    def lead(
        self,
        where: str,
        shapes: Sequence[Any],
        broadcast: Callable[..., Any] = np.broadcast_shapes,
    ) -> Any:
        """The common leading shape of arguments of these shapes; raises if there is none.

        broadcast: how leading shapes are, where sizes are symbols.
        """
        if len(shapes) != len(self.inputs):
            raise ArgumentError(
                f"{where} takes {len(self.inputs)} arrays ({', '.join(self.names)}), got "
                f"{len(shapes)}"
            )
        leads = []
        for name, given, shape in zip(self.names, shapes, self.inputs, strict=True):
            before = len(given) - len(shape)
            if before < 0 or tuple(given[before:]) != shape:
                sizes = ", ".join(["…", *map(str, shape)])
                raise ArgumentError(
                    f"{where}: {name} has shape {tuple(given)}; expected shape ({sizes})"
                )
            leads.append(tuple(given[:before]))
        try:
            return broadcast(*leads)
        except (ValueError, RuntimeError):
            told = ", ".join(f"{n} {lead}" for n, lead in zip(self.names, leads, strict=True))
            raise ArgumentError(
                f"{where}: leading shapes do not broadcast: {told}; give all the same, or none"
            ) from None


def _traced(fn: Callable[..., Any], shapes: list[Shape], title: str) -> Program:
    from ..graph.program import trace

    return trace(fn, shapes, title)


def of_kernel(kernel: Kernel, key: str | None = None) -> Differentiable:
    """A kernel of `robot.compile`, `hinge.compile` or `robot.kernel`, with its derivatives.

    key: of its code, where that is known without tracing.
    """
    return Differentiable(kernel, partial(program_rule, lambda: kernel.program), key)


def of_robot(
    robot: Robot, name: str, arrays: tuple[str, ...], static: Mapping[str, Any] | None = None
) -> Differentiable:
    """An algorithm of a robot, of arrays by name; static: its other arguments, as the robot has
    settled them.
    """
    from ..algorithms.declare import ALGORITHMS

    settings = dict(static or {})
    mech, own = robot.mechanism, ALGORITHMS[name].name
    if settings.get("order", 1) == 2:
        kernel = robot._answer(name, arrays, settings, tuple).kernel  # pyright: ignore
        return of_kernel(kernel)
    kernel = robot.kernel(name, *arrays, **settings)
    maker = ALGORITHMS[name].function.__module__
    key = known_key(mech, own, arrays, tuple(sorted(settings.items())), maker=maker)
    program = partial(_unrolled, mech, own, arrays, settings)
    looped = None if settings else partial(looped_product, mech, own, arrays)
    if own == "forward_dynamics":
        inverse = ("inverse_dynamics", tuple("qdd" if a == "tau" else a for a in arrays), settings)
        residual = partial(_unrolled, mech, *inverse)
        rule = partial(forward_dynamics_rule, arrays.index("tau"), program, residual)
        return Differentiable(kernel, rule, key, uses_results=True, looped=looped)
    return Differentiable(kernel, partial(program_rule, program), key, looped=looped)


def _unrolled(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Program:
    from ..specialize.programs import robot_program, unrolled_program

    make = unrolled_program if is_long(mech) else robot_program
    return make(mech, name, arrays, static)  # pyright: ignore

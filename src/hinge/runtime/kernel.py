"""Kernels: a program compiled for this machine, called on arrays with any leading shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from ..errors import ArgumentError
from ..graph.operations import Operations
from .arguments import (
    Argument,
    checked,
    checked_out,
    in_range,
    named,
    out_of_the_way,
    plain,
    refuse_infinite,
)
from .artifact import Artifact, Source
from .backend import Backend, Caller, Loaded
from .check import check_dtype
from .cpu import Cpu
from .entry import Entry
from .forks import made_once
from .guests import guest_among
from .streams import chosen_stream, using

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.systems import Systems

__all__ = ["Kernel"]


P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A compiled program.

    `kernel(*arrays, out=None)`: arguments of shape (…, *shape), leading shapes broadcast, results
    likewise; a NaN or a singular sample spoils only itself.  `kernel.call` is the same as a plain
    function of positional arguments, and the quickest for one sample.
    """

    def __init__(
        self,
        program: Program | LoopProgram | Callable[[], Program | LoopProgram],
        name: str = "kernel",
        names: Sequence[str] = (),
        dtype: Any = np.float64,
        backend: Backend | None = None,
        key: str | None = None,
        strict: bool = False,
        jacobian: Callable[[], Program] | None = None,
        hessian: Callable[[], Program] | None = None,
        systems: Callable[[], Systems] | None = None,
        results: Sequence[str] = (),
    ) -> None:
        """program: or what makes it, called when no compiled code is found under the key.

        name, names: of the function and its arguments, for messages and sources.
        results: names of the results in sources, where they are no fields of a tuple.
        backend: what it runs on, None for this machine's CPU.
        strict: a sample with a result that is not finite has NaN in all its results.
        jacobian: of a kernel whose arrays are vectors, makes the program of ∂y/∂x for each result y
        and each argument x where that takes fewer operations than differentiating its own.
        hessian: the same of ∂(w · y)/∂x, with respect to the arguments and the weights w.
        systems: makes what backends that solve linear systems compile in place of the program.
        """
        self.name, self.dtype = name, check_dtype(name, dtype)
        self.backend = backend or Cpu()
        self.jacobian, self.hessian = jacobian, hessian
        self._source = Source(program, name, self.dtype, strict, key, systems)
        self._names, self._results = names, results
        self._ready: dict[Backend, Loaded] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What was made of it with its code; loaded is that where it comes to."""
        own = ("name", "dtype", "backend", "jacobian", "hessian", "_source", "_names", "_results")
        return {name: self.__dict__[name] for name in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _ready={})

    def on(self, backend: Backend) -> Kernel[P, R]:
        """The same on another backend."""
        other = object.__new__(type(self))
        other.__setstate__({**self.__getstate__(), "backend": backend})
        return other

    @property
    def program(self) -> Any:
        """What is computed, traced if it was not yet."""
        return self._source.program

    @property
    def artifact(self) -> Artifact:
        """The compiled code, from the cache or made now."""
        return self._source.artifact(self.backend)

    @property
    def is_compiled(self) -> bool:
        """Whether there is code of it for its backend yet."""
        return self._source.has_made(self.backend)

    @property
    def strict(self) -> bool:
        """Whether a sample with a result that is not finite has NaN in all its results."""
        return self._source.settings.strict

    @property
    def ops(self) -> Operations:
        """What one sample costs."""
        return self.artifact.ops

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments."""
        count = len(self.artifact.inputs)
        return tuple(self._names) or tuple(f"argument {i + 1}" for i in range(count))

    def source(
        self,
        kind: str | None = None,
        *,
        prefix: str = "",
        results: Sequence[str] | None = None,
        about: str = "",
    ) -> str:
        """The code as text: in the language of the backend ("llvm" on a CPU), in "c", or in "cuda".

        "cuda" is a header with a function for CUDA kernels and C++; "header" is the one that
        declares the function of "c".
        prefix: put before the name of the function in C and CUDA, so that programs of several
        robots can be linked; results: names of the results there; about: lines for the comment.
        """
        own = self.backend.language
        if kind in (own, None):
            return self.backend.text(self._source.program_for(self.backend), self._source.settings)
        if kind in ("c", "cuda", "header"):
            from ..emit.c.dialect import DIALECTS
            from ..emit.c.source import c_source

            if results is None and len(self.program.outputs) == len(self._results):
                results = self._results
            return c_source(
                self.program,
                self._source.settings.scalar,
                self._names or None,
                results,
                about,
                DIALECTS[kind],
                prefix,
            )
        raise ArgumentError(
            f"{self.name}: source is {kind!r}; expected {own!r}, 'c', 'header' or 'cuda'"
        )

    @made_once
    def _loaded(self) -> Loaded:
        return self.loaded(self.backend)

    def loaded(self, backend: Backend) -> Any:
        """The code by a backend of its kind, ready to run."""
        found = self._ready.get(backend)
        if found is None:
            made = backend.load(self._source.artifact(backend), self._source.settings)
            found = self._ready.setdefault(backend, made)
        return found

    @made_once
    def caller(self) -> Caller | None:
        """What takes arrays that live where the kernel runs, None if that is the host."""
        return self.backend.caller(self)

    @made_once
    def call(self) -> Callable[..., Any]:
        """The kernel as a plain function of positional arguments."""
        return self.fast(self._slow)

    def fast(self, otherwise: Callable[..., Any], form: type = tuple) -> Callable[..., Any]:
        """Calls that take the short way with arrays of exactly the expected kind.

        otherwise: what to call with any other arguments, with the first batch that is worth
        several threads, with one sample of a large program, and, if the kernel is strict, with one
        sample whose result is not finite.
        form: of several results, tuple or a type derived from it.
        """
        entry = self.entry(otherwise, form)
        return otherwise if entry is None else entry.function(self.name)

    def entry(
        self, otherwise: Callable[..., Any], form: type = tuple, least: int = 0
    ) -> Entry | None:
        """The same for a door, if there is such code; least: how many samples it is for."""
        return self._loaded.entry(otherwise, form, least)

    @overload
    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """New results."""
        ...

    @overload
    def __call__(self, *arguments: Any, out: Any, **named: Any) -> R:
        """Results in arrays that are there."""
        ...

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        if named:
            if self.caller is not None and "stream" in named:
                with using(named.pop("stream")):
                    given = self._in_order(arguments, named) if named else arguments
                    return self._slow(*given, out=out)
            arguments = self._in_order(arguments, named)
        return self.call(*arguments) if out is None else self.call(*arguments, out=out)

    def _in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by place and by name, in their order."""
        rest = self.names[len(arguments) :]
        if set(rest) != set(named):
            strange = ", ".join(sorted(set(named) ^ set(rest)))
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.names)}; {strange} is missing, not among them, "
                f"or given twice"
            )
        return (*arguments, *(named[n] for n in rest))

    def _slow(self, *arguments: Any, out: Any = None) -> Any:
        """Any arguments that make sense: other dtypes, strides, leading shapes, packages."""
        caller = self.caller
        if caller is not None and caller.takes(arguments, out):
            return self._away(caller, arguments, out)
        guest = guest_among(arguments, out)
        if guest is not None:
            given = {} if out is None else {"out": out}
            return guest.answered(self.name, self.call, arguments, given)
        arrays = [plain(x, self.dtype) for x in arguments]
        if any(x is not y for x, y in zip(arrays, arguments, strict=True)):
            return self(*arrays, out=out)
        expected = dict(zip(self.names, self.artifact.inputs, strict=True))
        arrays, lead = checked(self.name, named(self.name, arguments, expected), self.dtype)
        results = self._filled(self.name, arrays, lead, out)
        return self._form(results)

    def _away(self, caller: Caller, arguments: Sequence[Any], out: Any) -> Any:
        """With arrays that are not on the host."""
        found = caller.again(arguments, out, chosen_stream())
        if found is None:
            expected = dict(zip(self.names, self.artifact.inputs, strict=True))
            found = caller(self.name, named(self.name, arguments, expected), out)
        return self._form(found)

    def _form(self, results: Sequence[Any]) -> Any:
        """One result, or a tuple of several."""
        return tuple(results) if self.artifact.several else results[0]

    def evaluate(self, where: str, arguments: Sequence[Argument], out: Any = None) -> Any:
        """The same with arguments that say what they are: without a leading shape, what is not
        finite is refused, and so is a result that is not.

        where: what is being called on what, for messages, such as "inverse_dynamics of 'panda'".
        """
        if self.caller is not None and self.caller.takes([a.value for a in arguments], out):
            return self._form(self.caller(where, arguments, out))
        arrays, lead = checked(where, arguments, self.dtype, strict=True)
        results = self._filled(where, arrays, lead, out)
        if lead == () and not all(np.isfinite(x).all() for x in results):
            results = self._filled(where, in_range(arguments, self.dtype), lead, out)
        refuse_infinite(where, lead, results)
        return self._form(results)

    def _filled(
        self, where: str, arrays: Sequence[np.ndarray], lead: tuple[int, ...], out: Any
    ) -> list[np.ndarray]:
        """The results for sound arrays."""
        shapes = [lead + shape for shape in self.artifact.outputs]
        if out is None:
            results = self.backend.empty(shapes, self.dtype)
        else:
            results = checked_out(where, shapes, self.dtype, out)
            arrays = [out_of_the_way(x, results) for x in arrays]
        self._loaded.run(arrays, results, lead)
        return results

"""What kernels run on.

A kernel or a rollout checks its arguments, finds or makes its code, and has it run; how code is
made, loaded and run is the business of a backend.  `cpu.py` is the one for CPUs; docs/extend.md
says what it takes to add another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.scan import Scan
    from .arguments import Argument
    from .artifact import Artifact
    from .entry import Entry
    from .kernel import Kernel
    from .rollout import Rollout

__all__ = ["Backend", "Caller", "Loaded", "LoadedScan", "LoopCaller", "Settings"]


class Settings(NamedTuple):
    """How a program is to be compiled, whatever runs it.

    name: what is compiled, for messages; scalar: what C and LLVM call one of its numbers.
    strict: a sample with a result that is not finite has NaN in all its results.
    """

    name: str
    dtype: np.dtype
    scalar: str
    strict: bool


class Backend(Protocol):
    """A kind of device, and how it is to be used; it can be hashed, and does not change.

    language: that of its code as text, for `kernel.source`; climbs: whether loop programs may.
    """

    language: ClassVar[str]
    climbs: ClassVar[bool]

    @property
    def solves(self) -> bool:
        """Whether it takes linear systems (`graph/systems.py`) in place of programs."""
        ...

    def text(self, program: Program | LoopProgram | Scan, settings: Settings) -> str:
        """The code of a program, to be read."""
        ...

    def compile(self, program: Program | LoopProgram | Scan, settings: Settings) -> bytes:
        """The code of a program, to be kept in the cache and loaded."""
        ...

    def marks(self) -> tuple[str, ...]:
        """All that compiled code depends on, but for hinge, the program and its settings."""
        ...

    def needs(self) -> tuple[str, ...]:
        """All that compiled code asks of the machine that it comes to, whichever compiled it."""
        ...

    def suited(self, settings: Settings, samples: int) -> Backend:
        """The backend whose code is quickest for a time loop of so many samples: mostly itself."""
        ...

    def load(self, artifact: Artifact, settings: Settings) -> Loaded:
        """The code of a program, ready to run."""
        ...

    def load_scan(
        self, artifact: Artifact, settings: Settings, states: int, inputs: int
    ) -> LoadedScan:
        """The code of a time loop, ready to run; its first arguments are so many states, inputs."""
        ...

    def caller(self, kernel: Kernel) -> Caller | None:
        """What calls a kernel with arrays that live where it runs; None if that is the host."""
        ...

    def loop_caller(self, rollout: Rollout) -> LoopCaller | None:
        """The same for a time loop."""
        ...

    def empty(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> list[Any]:
        """New arrays for results, with anything in them."""
        ...


class Caller(Protocol):
    """Calls of a kernel with arrays that are not on the host, whose values are not looked at."""

    def takes(self, values: Sequence[Any], out: Any) -> bool:
        """Whether some of the arrays are such."""
        ...

    def again(self, arrays: Sequence[Any], out: Any, stream: int | None) -> list[Any] | None:
        """The results of a call like one before; None if there was none."""
        ...

    def told(self) -> str:
        """How the kernel runs there, in words."""
        ...

    def __call__(self, where: str, arguments: Sequence[Argument], out: Any) -> list[Any]:
        """The results, checked but for values, of the kind of the arguments."""
        ...


class LoopCaller(Protocol):
    """Calls of a time loop with such arrays."""

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether some of the arrays are such."""
        ...

    def arrays(
        self, where: str, arguments: Sequence[Argument]
    ) -> tuple[list[Any], tuple[int, ...], Any]:
        """The arguments, checked but for values, their leading shape, and where they came from."""
        ...

    def run(
        self,
        loop: Any,
        arrays: Sequence[Any],
        shapes: Sequence[tuple[int, ...]],
        lead: tuple[int, ...],
        steps: int,
        every: int,
        origin: Any,
    ) -> list[Any]:
        """Results of the shapes, of the kind of the arguments."""
        ...


class Loaded(Protocol):
    """A program, ready to run."""

    def run(self, arrays: Sequence[Any], results: Sequence[Any], lead: tuple[int, ...]) -> None:
        """Fill the results, contiguous and (*lead, *shape), from arguments that broadcast to that.

        An argument may be one of the results; otherwise no argument shares memory with one.
        """
        ...

    def entry(self, otherwise: Callable[..., Any], form: type, least: int) -> Entry | None:
        """Code that Python may call in place of the kernel, None if there is none.

        otherwise, form: as in `Kernel.fast`; least: how many samples it is for.
        """
        ...


class LoadedScan(Protocol):
    """A time loop, ready to run."""

    def run(
        self,
        arrays: Sequence[Any],
        results: Sequence[Any],
        lead: tuple[int, ...],
        steps: int,
        every: int,
    ) -> list[Any]:
        """Fill the results, contiguous and (steps // every, *lead, *shape); the states at the end.

        arrays: states, which are left alone, inputs (steps, …, *shape), parameters.
        """
        ...

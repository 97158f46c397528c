"""The backend for NVIDIA's cards: LLVM makes PTX, the driver compiles and runs it.

PTX is kept like a CPU's code, per kind of card, driver and LLVM, and what the driver makes of it is
kept by the driver.  Nothing here waits for the card, but for copies to arrays of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from ..errors import DeviceError
from .artifact import Artifact, source_digest
from .backend import Settings
from .card_systems import SystemsLauncher, is_systems, packed_systems
from .device_arrays import DeviceArray
from .driver import PER_THREAD, Card, driver
from .launcher import Launcher, packed
from .ptx import ptx_of
from .target import llvm_version

if TYPE_CHECKING:
    from ..emit.ptx.launch import Launch
    from ..graph.loop import LoopProgram
    from ..graph.path_scan import PathScan
    from ..graph.program import Program
    from ..graph.scan import Scan
    from ..graph.systems import Systems
    from .device_calls import DeviceCall
    from .device_loops import DeviceLoop, DeviceRollout
    from .entry import Entry
    from .kernel import Kernel
    from .rollout import Rollout

__all__ = ["Cuda", "DeviceProgram"]

# kernels copy their arguments to shared memory by instructions that earlier cards do not have
_OLDEST = 80


@final
@dataclass(frozen=True)
class Cuda:
    """A card, by its number.

    layout: of arrays, "rows" (B, n) or "columns", which are (n, B) seen through a transpose.
    solves: whether there may be several kernels, the last of which solves linear systems.
    """

    device: int = 0
    layout: Literal["rows", "columns"] = "rows"
    solves: bool = True
    language: ClassVar[str] = "ptx"
    climbs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.card.capability < _OLDEST:
            raise DeviceError(
                f"cuda:{self.device} ({self.card.name}) has compute capability "
                f"{self.card.capability / 10}; expected {_OLDEST / 10} (Ampere) or later"
            )

    @property
    def card(self) -> Card:
        """What the driver knows of it."""
        return driver().card(self.device)

    def text(
        self, program: Program | LoopProgram | Scan | PathScan | Systems, settings: Settings
    ) -> str:
        """As in `Backend`: PTX; of systems that of all kernels, one after the other."""
        from ..graph.systems import Systems

        if isinstance(program, Systems):
            parts: list[str] = []

            def written(part: Any, tiled: int) -> bytes:
                parts.append(self._module(part, settings, tiled)[0])
                return b""

            self._packed(program, settings, written)
            return "\n".join(parts)
        return self._module(program, settings)[0]

    def _packed(
        self, systems: Systems, settings: Settings, compiled: Callable[[Any, int], bytes]
    ) -> bytes:
        columns, word = self.layout == "columns", settings.dtype.itemsize
        return packed_systems(systems, columns, word, compiled)

    def _module(self, program: Any, settings: Settings, tiled: int = 0) -> tuple[str, Launch]:
        from ..emit.ptx.kernel import kernel_module
        from ..graph.path_scan import PathScan
        from ..graph.scan import Scan
        from ..graph.systems import Systems

        own = settings.scalar, settings.strict
        if isinstance(program, Scan):
            from ..emit.ptx.scan import scan_module

            text, launch = scan_module(program, *own)
        elif isinstance(program, PathScan):
            from ..emit.ptx.path_scan import path_scan_module

            text, launch = path_scan_module(program, settings.scalar)
        elif isinstance(program, Systems):
            from ..emit.ptx.systems import solver_module

            text, launch = solver_module(program, *own, self.layout)
        else:
            text, launch = kernel_module(program, *own, self.layout, tiled)
        return ptx_of(text, self.card.capability), launch

    def compile(
        self, program: Program | LoopProgram | Scan | PathScan | Systems, settings: Settings
    ) -> bytes:
        """As in `Backend`: how it is launched, and the PTX, which the driver compiles here too."""
        from ..graph.systems import Systems

        if isinstance(program, Systems):
            return self._packed(program, settings, partial(self._compiled, settings))
        return self._compiled(settings, program)

    def _compiled(self, settings: Settings, program: Any, tiled: int = 0) -> bytes:
        """The code of one kernel."""
        text, launch = self._module(program, settings, tiled)
        code = packed(launch, text)
        # now, while people are told that it takes time
        Launcher.function_of(self.card, code)
        return code

    def marks(self) -> tuple[str, ...]:
        """As in `Backend`."""
        return f"{self._kind} {driver().version}", llvm_version()

    def needs(self) -> tuple[str, ...]:
        """As in `Backend`: what the driver there makes of PTX is its own business."""
        return self._kind, source_digest()

    @property
    def _kind(self) -> str:
        alone = "" if self.solves else " alone"
        return f"cuda {self.layout}{alone} {self.card.capability}"

    def suited(self, settings: Settings, samples: int) -> Cuda:
        """As in `Backend`."""
        return self

    def load(self, artifact: Artifact, settings: Settings) -> DeviceProgram:
        """As in `Backend`."""
        return DeviceProgram(self, artifact, settings.dtype)

    def load_scan(
        self, artifact: Artifact, settings: Settings, states: int, inputs: int
    ) -> DeviceLoop:
        """As in `Backend`."""
        from .device_loops import DeviceLoop

        return DeviceLoop(self.card, artifact, settings, states, inputs)

    def empty(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Backend`: for arrays of the host, which are copied to the card and back."""
        return [np.empty(shape, dtype) for shape in shapes]

    def caller(self, kernel: Kernel) -> DeviceCall:
        """As in `Backend`."""
        from .device_calls import DeviceCall

        return DeviceCall(kernel, self)

    def loop_caller(self, rollout: Rollout) -> DeviceRollout:
        """As in `Backend`."""
        from .device_loops import DeviceRollout

        return DeviceRollout(rollout, self)


@final
class DeviceProgram:
    """A program on a card; launcher: its kernel, for who launches it himself."""

    def __init__(self, backend: Cuda, artifact: Artifact, dtype: np.dtype) -> None:
        self._artifact, self._dtype, self._device = artifact, dtype, backend.device
        inputs, outputs = len(artifact.inputs), len(artifact.outputs)
        own = 2 if backend.layout == "columns" else 1
        self.launcher: Launcher | SystemsLauncher
        if is_systems(artifact.code):
            self.launcher = SystemsLauncher(backend.card, artifact.code)
        else:
            self.launcher = Launcher(backend.card, artifact.code, 2 * inputs + own * outputs + 2)

    def entry(self, otherwise: Callable[..., Any], form: type, least: int) -> Entry | None:
        """As in `Loaded`: for tensors of packages that can be looked into by machine code."""
        from .card_entry import card_entry

        return card_entry(self.launcher, self._artifact, self._dtype, otherwise, form)

    def run(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: tuple[int, ...]
    ) -> None:
        """As in `Loaded`, of arrays of the host: there, and back."""
        samples, stream, card = prod(lead), PER_THREAD, self.launcher.card
        if not samples:
            return
        given = [
            _uploaded(x, lead, shape, self._device)
            for x, shape in zip(arrays, self._artifact.inputs, strict=True)
        ]
        made = [DeviceArray.empty(x.shape, x.dtype, card, stream) for x in results]
        values = [n for x, stride in given for n in (x.address, stride)]
        values += [x.address for x in made]
        self.launcher.start((*values, samples), self.launcher.blocks(samples), stream)
        for x, result in zip(made, results, strict=True):
            driver().to_host(card, result.ctypes.data, x.address, result.nbytes, stream)


def _uploaded(
    x: np.ndarray, lead: tuple[int, ...], shape: tuple[int, ...], device: int
) -> tuple[DeviceArray, int]:
    """An argument on the card, and the bytes from sample to sample: one for all goes there once."""
    own = x.shape[: x.ndim - len(shape)]
    if prod(own) == 1:
        return DeviceArray.of(x, device), 0
    wide = x if own == lead else np.broadcast_to(x, lead + shape)
    return DeviceArray.of(wide, device), prod(shape) * x.itemsize

"""The backend for NVIDIA's cards: LLVM makes PTX, the driver compiles and runs it.

PTX is kept like a CPU's code, per kind of card, driver and LLVM, and what the driver makes of it is
kept by the driver.  Nothing here waits for the card, but for copies to arrays of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from ..errors import DeviceError
from .artifact import Artifact, source_digest
from .backend import Settings
from .device_arrays import DeviceArray
from .driver import PER_THREAD, Card, driver
from .launcher import Launcher, packed
from .ptx import ptx_of
from .target import llvm_version

if TYPE_CHECKING:
    from ..emit.ptx.launch import Launch
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.scan import Scan
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
    """

    device: int = 0
    layout: Literal["rows", "columns"] = "rows"
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

    def text(self, program: Program | LoopProgram | Scan, settings: Settings) -> str:
        """As in `Backend`: PTX."""
        return self._module(program, settings)[0]

    def _module(
        self, program: Program | LoopProgram | Scan, settings: Settings
    ) -> tuple[str, Launch]:
        from ..emit.ptx.kernel import kernel_module
        from ..graph.scan import Scan

        own = settings.scalar, settings.strict
        if isinstance(program, Scan):
            from ..emit.ptx.scan import scan_module

            text, launch = scan_module(program, *own)
        else:
            text, launch = kernel_module(program, *own, self.layout)
        return ptx_of(text, self.card.capability), launch

    def compile(self, program: Program | LoopProgram | Scan, settings: Settings) -> bytes:
        """As in `Backend`: how it is launched, and the PTX, which the driver compiles here too."""
        text, launch = self._module(program, settings)
        code = packed(launch, text)
        # now, while people are told that it takes time
        Launcher.function_of(self.card, code)
        return code

    def marks(self) -> tuple[str, ...]:
        """As in `Backend`."""
        kind = f"cuda {self.layout} {self.card.capability} {driver().version}"
        return kind, llvm_version()

    def needs(self) -> tuple[str, ...]:
        """As in `Backend`: what the driver there makes of PTX is its own business."""
        return f"cuda {self.layout} {self.card.capability}", source_digest()

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

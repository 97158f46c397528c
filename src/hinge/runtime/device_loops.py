"""Time loops on a card: a launch takes all samples through all steps.

The arguments of a kernel with a time loop are said in `emit/ptx/scan.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from .arguments import Argument, leading_shape
from .array_kinds import on_card
from .artifact import Artifact
from .backend import Settings
from .device_arrays import DeviceArray, is_packed, packed_strides
from .device_calls import among, as_device, sample_stride
from .driver import PER_THREAD, Card, driver
from .gather import packed_copy
from .launcher import Launcher

if TYPE_CHECKING:
    from .cuda import Cuda
    from .rollout import Rollout

__all__ = ["DeviceLoop", "DeviceRollout"]

Shape = tuple[int, ...]


class _Placed(NamedTuple):
    """An array of a launch; stride: bytes from sample to sample; jump: from step to step."""

    array: DeviceArray
    stride: int
    jump: int


@final
class DeviceLoop:
    """A scan on a card; launcher: its kernel, for who launches it himself."""

    def __init__(
        self, card: Card, artifact: Artifact, settings: Settings, states: int, inputs: int
    ) -> None:
        self._artifact, self._dtype = artifact, settings.dtype
        self._states, self._inputs = states, inputs
        arrays = len(artifact.inputs) + len(artifact.outputs)
        self.launcher = Launcher(card, artifact.code, 3 * arrays + 5)

    def run(
        self,
        arrays: Sequence[np.ndarray],
        results: Sequence[np.ndarray],
        lead: Shape,
        steps: int,
        every: int,
    ) -> list[np.ndarray]:
        """As in `LoadedScan`, of arrays of the host: there, and back."""
        stream, card = PER_THREAD, self.launcher.card
        given = [DeviceArray.of(x, card.number, stream) for x in arrays]
        made = [DeviceArray.empty(x.shape, x.dtype, card, stream) for x in results]
        ends = self.start(given, made, lead, steps, every, stream)
        for x, result in zip(made, results, strict=True):
            driver().to_host(card, result.ctypes.data, x.address, result.nbytes, stream)
        return [x.numpy() for x in ends]

    def start(
        self,
        arrays: Sequence[DeviceArray],
        results: Sequence[DeviceArray],
        lead: Shape,
        steps: int,
        every: int,
        stream: int,
    ) -> list[DeviceArray]:
        """Launch, from arrays on the card into packed results; the states at the end."""
        pairs = enumerate(zip(arrays, self._artifact.inputs, strict=True))
        placed = [self._placed(i, x, lead, shape, stream) for i, (x, shape) in pairs]
        states = [p.array for p in placed[: self._states]]
        for x, shape in zip(results, self._artifact.outputs, strict=True):
            row = self._dtype.itemsize * prod(shape)
            placed.append(_Placed(x, row, row * prod(lead)))
        values = [n for p in placed for n in (p.array.address, p.stride, p.jump)]
        if prod(lead):
            samples = prod(lead)
            numbers = *values, steps, every, every, samples
            self.launcher.start(numbers, self.launcher.blocks(samples), stream)
        return states

    def _placed(self, i: int, x: DeviceArray, lead: Shape, shape: Shape, stream: int) -> _Placed:
        """Where argument i is; states are copied, since they are written."""
        dtype, row = self._dtype, self._dtype.itemsize * prod(shape)
        if i < self._states:
            return _Placed(packed_copy(x, dtype, stream, lead + shape), row, 0)
        time = x.shape[: int(i < self._states + self._inputs)]
        k, m = len(time), x.ndim - len(shape)
        stride = sample_stride(x.shape[k:m], x.strides[k:m], lead)
        rows = x.dtype == dtype and is_packed(shape, x.strides[m:], dtype.itemsize)
        if stride is None or not rows:
            ones = (1,) * (len(lead) - (m - k))
            whole = x.seen(
                time + ones + x.shape[k:], x.strides[:k] + (0,) * len(ones) + x.strides[k:]
            )
            x = packed_copy(whole, dtype, stream, time + lead + shape)
            stride = row
            return _Placed(x, stride, packed_strides(x.shape, dtype.itemsize)[0] if time else 0)
        return _Placed(x, stride, x.strides[0] if time else 0)


@final
class DeviceRollout:
    """The calls of a rollout with arrays that live on a card."""

    def __init__(self, rollout: Rollout, backend: Cuda) -> None:
        self._rollout, self._device = rollout, backend.device

    def takes(self, values: Sequence[Any]) -> bool:
        """Whether some of the arrays live on a card."""
        return any(map(on_card, values))

    def arrays(
        self, where: str, arguments: Sequence[Argument]
    ) -> tuple[list[DeviceArray], Shape, Any]:
        """The arguments, checked but for their values, their leading shape, and who made them."""
        origin = among([a.value for a in arguments], self._device)
        dtype = self._rollout.dtype
        found = [as_device(where, a, self._device, origin[1], dtype) for a in arguments]
        pairs = zip(arguments, found, strict=True)
        leads = [x.shape[int(a.timed) : x.ndim - len(a.shape)] for a, x in pairs]
        return found, leading_shape(where, arguments, leads), origin

    def run(
        self,
        loop: DeviceLoop,
        arrays: Sequence[DeviceArray],
        shapes: Sequence[Shape],
        lead: Shape,
        steps: int,
        every: int,
        origin: Any,
    ) -> list[Any]:
        """New results of the shapes, of the kind of the arguments."""
        kind, stream = origin
        dtype, device = self._rollout.dtype, self._device
        results = [kind.empty(shape, dtype, device, stream) for shape in shapes]
        self.into(loop, arrays, results, lead, steps, every, origin)
        return [kind.given_back(x) for x in results]

    def into(
        self,
        loop: DeviceLoop,
        arrays: Sequence[DeviceArray],
        results: Sequence[Any],
        lead: Shape,
        steps: int,
        every: int,
        origin: Any,
    ) -> list[DeviceArray]:
        """Packed results of the kind of the arguments, filled; the states at the end."""
        kind, stream = origin
        seen = [kind.seen(x, stream) for x in results]
        return loop.start(arrays, seen, lead, steps, every, stream)

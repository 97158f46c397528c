"""Calls of kernels with arrays that live on a card.

Shapes and dtypes are checked; values are not looked at, since that would wait for the card.
Samples may be any distance apart, also none; what is in another order, or of other numbers, is
copied on the card first.  A call like one before takes a short way: addresses, and the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np

from ..errors import ArgumentError
from .arguments import Argument, check_kind, checked, leading_shape
from .array_kinds import Kind, card_kind, kind_of, on_card
from .device_arrays import DeviceArray, is_packed
from .driver import driver
from .gather import packed_copy
from .streams import chosen_stream

if TYPE_CHECKING:
    from .card_systems import SystemsLauncher
    from .cuda import Cuda
    from .kernel import Kernel
    from .launcher import Launcher

__all__ = ["DeviceCall", "among", "as_device", "brought_back", "brought_here", "device_out"]
__all__ += ["sample_stride"]

# launches that a kernel remembers
_REMEMBERED = 64

Shape = tuple[int, ...]
Layout = Literal["rows", "columns"]


class _Plan(NamedTuple):
    """A launch that may be repeated.

    strides: of arguments, ends: of results (none where these are rows); sizes: bytes of both from
    the first to the last.
    """

    launcher: Launcher | SystemsLauncher
    layout: Layout
    lead: Shape
    strides: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    blocks: int


@final
class DeviceCall:
    """The calls of a kernel on a card."""

    def __init__(self, kernel: Kernel, backend: Cuda) -> None:
        self._kernel, self._backend, self._device = kernel, backend, backend.device
        self._plans: dict[Any, _Plan] = {}

    def takes(self, values: Sequence[Any], out: Any) -> bool:
        """Whether some of the arrays live on a card."""
        return any(map(on_card, values)) or any(map(on_card, _listed(out)))

    def launcher(self, layout: Layout = "rows") -> Launcher | SystemsLauncher:
        """The code for arrays of a layout, compiled if need be."""
        return self._kernel.loaded(replace(self._backend, layout=layout)).launcher

    def told(self) -> str:
        """How a launch is made, in words."""
        return self.launcher().told()

    # the short way

    def again(self, arrays: Sequence[Any], out: Any, stream: int | None) -> list[Any] | None:
        """The results of a call like one before; None if there was none."""
        kind = kind_of(type(arrays[0]))
        if kind is None or not kind.quick:
            return None
        results = _listed(out)
        try:
            plan = self._plans.get(_key(kind, arrays, results))
        except AttributeError:
            return None
        if plan is None:
            return None
        if stream is None:
            stream = kind.stream(arrays[0], self._device)
        if out is None:
            shapes = self._kernel.artifact.outputs
            results = [self._new(kind, plan.layout, plan.lead, s, stream) for s in shapes]
        places = [kind.address(x) for x in arrays]
        ends = [kind.address(x) for x in results]
        if out is not None and _overlap(places, ends, plan.sizes):
            return None
        self._start(plan, places, ends, stream)
        return results

    def _start(self, plan: _Plan, places: list[int], ends: list[int], stream: int) -> None:
        values: list[int] = []
        for pair in zip(places, plan.strides, strict=True):
            values += pair
        if plan.ends:
            for pair in zip(ends, plan.ends, strict=True):
                values += pair
        else:
            values += ends
        plan.launcher.start((*values, prod(plan.lead)), plan.blocks, stream)

    def _new(self, kind: Kind, layout: Layout, lead: Shape, shape: Shape, stream: int) -> Any:
        dtype, device = self._kernel.dtype, self._device
        if layout == "rows":
            return kind.empty(lead + shape, dtype, device, stream)
        made = kind.empty(shape + lead, dtype, device, stream)
        n, k = len(shape), len(shape) + len(lead)
        return kind.moved(made, [*range(n, k), *range(n)])

    # the checked way

    def __call__(self, where: str, arguments: Sequence[Argument], out: Any) -> list[Any]:
        """The results, in arrays of the kind of the first that lives on a card, or in out."""
        kernel, device, values = self._kernel, self._device, [a.value for a in arguments]
        kind, stream = among([*values, *_listed(out)], device)
        arrays = [as_device(where, a, device, stream, kernel.dtype) for a in arguments]
        leads = [x.shape[: x.ndim - len(a.shape)] for a, x in zip(arguments, arrays, strict=True)]
        lead = leading_shape(where, arguments, leads)
        shapes = [lead + s for s in kernel.artifact.outputs]
        results = _listed(out)
        ends = device_out(where, shapes, kernel.dtype, device, results, stream) if results else []
        layout = self._layout(where, arrays, lead, ends)
        if out is None:
            outputs = kernel.artifact.outputs
            results = [self._new(kind, layout, lead, s, stream) for s in outputs]
            ends = [x for r in results if (x := kind.seen(r, stream)) is not None]
        if prod(lead):
            used = self._used(layout, arrays, lead, ends, stream)
            plan = self._plan(layout, used, lead, ends)
            self._start(plan, [x.address for x in used], [x.address for x in ends], stream)
            as_given = all(x is y for x, y in zip(used, arrays, strict=True))
            if as_given and kind.quick and all(kind_of(type(x)) is kind for x in values):
                if len(self._plans) >= _REMEMBERED:
                    self._plans.clear()
                self._plans[_key(kind, values, _listed(out))] = plan
        return [kind.given_back(x) for x in results] if out is None else results

    def _layout(
        self, where: str, arrays: Sequence[DeviceArray], lead: Shape, ends: Sequence[DeviceArray]
    ) -> Layout:
        """How samples lie: in columns if all arrays do, and not all in rows."""
        artifact, dtype = self._kernel.artifact, self._kernel.dtype
        given = list(zip(arrays, artifact.inputs, strict=True))
        results = list(zip(ends, artifact.outputs, strict=False))
        rows = all(x.is_packed for x in ends)
        if rows and all(row_stride(x, lead, s, dtype) is not None for x, s in given):
            return "rows"
        if all(column_stride(x, lead, s, dtype) is not None for x, s in given + results):
            return "columns"
        if not rows:
            raise ArgumentError(
                f"{where}: out is not C-contiguous, as results are; nor are all arrays columns, "
                f"(n, B) seen through a transpose, as results may be then"
            )
        return "rows"

    def _used(
        self,
        layout: Layout,
        arrays: Sequence[DeviceArray],
        lead: Shape,
        ends: Sequence[DeviceArray],
        stream: int,
    ) -> list[DeviceArray]:
        """The arguments, copied where the kernel could not read them, or would write first."""
        dtype, used = self._kernel.dtype, []
        for x, shape in zip(arrays, self._kernel.artifact.inputs, strict=True):
            if any(_meet(x.extent, end.extent) for end in ends):
                x = _copied(x, layout, lead, shape, dtype, stream)
            elif layout == "rows" and row_stride(x, lead, shape, dtype) is None:
                x = packed_copy(x, dtype, stream, lead + shape)
            used.append(x)
        return used

    def _plan(
        self, layout: Layout, used: Sequence[DeviceArray], lead: Shape, ends: Sequence[DeviceArray]
    ) -> _Plan:
        artifact, dtype = self._kernel.artifact, self._kernel.dtype
        stride = row_stride if layout == "rows" else column_stride
        strides = [stride(x, lead, s, dtype) for x, s in zip(used, artifact.inputs, strict=True)]
        apart: list[int | None] = []
        if layout == "columns":
            pairs = zip(ends, artifact.outputs, strict=True)
            apart = [column_stride(x, lead, s, dtype) for x, s in pairs]
        sizes = [x.extent[1] - x.extent[0] for x in (*used, *ends)]
        launcher = self.launcher(layout)
        numbers = tuple(s or 0 for s in strides), tuple(s or 0 for s in apart), tuple(sizes)
        return _Plan(launcher, layout, lead, *numbers, launcher.blocks(prod(lead)))


def _key(kind: Kind, arrays: Sequence[Any], out: Sequence[Any]) -> Any:
    own = [(type(x), kind.signature(x)) for x in arrays]
    return tuple(own + [(type(x), kind.signature(x)) for x in out])


def _listed(out: Any) -> list[Any]:
    return [] if out is None else list(out) if isinstance(out, (tuple, list)) else [out]


def _overlap(places: list[int], ends: list[int], sizes: tuple[int, ...]) -> bool:
    """Whether an argument shares memory with a result."""
    n = len(places)
    return any(
        _meet((a, a + sizes[i]), (b, b + sizes[n + k]))
        for i, a in enumerate(places)
        for k, b in enumerate(ends)
    )


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _copied(
    x: DeviceArray, layout: Layout, lead: Shape, shape: Shape, dtype: np.dtype, stream: int
) -> DeviceArray:
    """A copy of an argument in a layout."""
    if layout == "rows":
        return packed_copy(x, dtype, stream, lead + shape)
    k, n = len(lead), len(shape)
    turned = [*range(k, k + n), *range(k)]
    made = packed_copy(_turned(x, turned), dtype, stream)
    return _turned(made, [*range(n, k + n), *range(n)])


def _turned(x: DeviceArray, axes: Sequence[int]) -> DeviceArray:
    return x.seen([x.shape[a] for a in axes], [x.strides[a] for a in axes])


# what is given


def among(values: Sequence[Any], device: int) -> tuple[Kind, int]:
    """The kind of the first array that lives on a card, and the stream to be used."""
    first, kind = next((x, kind) for x in values if (kind := card_kind(x)) is not None)
    stream = chosen_stream()
    return kind, kind.stream(first, device) if stream is None else stream


def as_device(where: str, a: Argument, device: int, stream: int, dtype: np.dtype) -> DeviceArray:
    """An argument on the card, checked but for its values; one of the host is copied there."""
    x = a.value
    kind = card_kind(x)
    if kind is None:
        (array,), _ = checked(where, [a], dtype)
        return DeviceArray.of(array, device, stream)
    found = kind.seen(x, stream)
    if found is None:
        raise ArgumentError(
            f"{where}: {a.name} has dtype {getattr(x, 'dtype', 'unknown')}; expected real numbers "
            f"of {a.expected}"
        )
    check_kind(where, a, found.dtype, found.shape)
    _check_device(where, a.name, found, device)
    return found


def device_out(
    where: str,
    shapes: Sequence[Shape],
    dtype: np.dtype,
    device: int,
    out: Sequence[Any],
    stream: int,
) -> list[DeviceArray]:
    """The arrays that results of these shapes go into."""
    if len(out) != len(shapes):
        raise ArgumentError(f"{where}: out has {len(out)} arrays; expected {len(shapes)}")
    found = []
    for x, shape in zip(out, shapes, strict=True):
        kind = card_kind(x)
        seen = None if kind is None else kind.seen(x, stream)
        if seen is None or seen.dtype != dtype or seen.shape != shape or seen.read_only:
            raise ArgumentError(
                f"{where}: out is not a writeable {dtype} array of shape {shape} on cuda:{device}"
            )
        _check_device(where, "out", seen, device)
        found.append(seen)
    for i, x in enumerate(found):
        if any(_meet(x.extent, y.extent) for y in found[:i]):
            raise ArgumentError(f"{where}: arrays of out share memory; give every result its own")
    return found


def _check_device(where: str, name: str, x: DeviceArray, device: int) -> None:
    if x.device != device:
        raise ArgumentError(
            f"{where}: {name} lives on cuda:{x.device}, and this on cuda:{device}; use "
            f"robot.to('cuda:{x.device}'), or move the array"
        )


# by way of the host


def brought_here(values: Sequence[Any], device: int) -> tuple[list[Any], Any]:
    """Values with copies on the host of the arrays that live on a card; and who made the first."""
    if not any(map(on_card, values)):
        return list(values), None
    kind, stream = among(values, device)
    found = []
    for x in values:
        own = card_kind(x)
        seen = None if own is None else own.seen(x, stream)
        found.append(x if seen is None else seen.numpy())
    return found, (kind, device, stream)


def brought_back(x: np.ndarray, origin: Any) -> Any:
    """An array of the host on the card, of the kind of those that were there."""
    if origin is None:
        return x
    kind, device, stream = origin
    made = kind.empty(x.shape, x.dtype, device, stream)
    there, packed = kind.seen(made, stream), np.ascontiguousarray(x)
    driver().to_card(
        driver().card(device), there.address, packed.ctypes.data, packed.nbytes, stream
    )
    return kind.given_back(made)


# how samples lie


def row_stride(x: DeviceArray, lead: Shape, shape: Shape, dtype: np.dtype) -> int | None:
    """The bytes from one sample to the next, 0 if one is for all; None if they are not rows."""
    k = x.ndim - len(shape)
    if x.dtype != dtype or not is_packed(shape, x.strides[k:], dtype.itemsize):
        return None
    return sample_stride(x.shape[:k], x.strides[:k], lead)


def sample_stride(own: Shape, strides: Sequence[int], lead: Shape) -> int | None:
    """The bytes from one sample to the next through all of a leading shape; None if uneven."""
    before = len(lead) - len(own)
    pairs = zip((1,) * before + own, (0,) * before + tuple(strides), lead, strict=True)
    spread = [(n, 0 if m == 1 else s) for m, s, n in pairs if n != 1]
    step = spread[-1][1] if spread else 0
    wanted = step
    for n, s in reversed(spread):
        if s != wanted or s < 0:
            return None
        wanted = n * s
    return step


def column_stride(x: DeviceArray, lead: Shape, shape: Shape, dtype: np.dtype) -> int | None:
    """The bytes from one entry to the next where samples are contiguous; None if they are not."""
    k, item = x.ndim - len(shape), dtype.itemsize
    samples = sample_stride(x.shape[:k], x.strides[:k], lead)
    if x.dtype != dtype or samples != item:
        return None
    if prod(shape) == 1:
        return item * prod(lead)
    return sample_stride(shape, x.strides[k:], shape)

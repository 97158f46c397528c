"""NVIDIA's driver, by the library that comes with it (`libcuda`): no toolkit, no other package.

Names and numbers are those of NVIDIA's "CUDA Driver API" reference, which are part of its ABI.
Every call that fails raises a `DeviceError` that says what to do.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, NamedTuple, final

from ..errors import DeviceError, DeviceMemoryError
from .forks import MAKING

__all__ = ["PER_THREAD", "Card", "Driver", "Function", "driver"]

_P, _I, _U, _N = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
# what is called, and the types of what it takes
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_P,),
    "cuGetErrorName": (_I, _P),
    "cuGetErrorString": (_I, _P),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDeviceTotalMem_v2": (_P, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuPointerGetAttribute": (_P, _I, _N),
    "cuModuleLoadDataEx": (_P, _P, _U, _P, _P),
    "cuModuleGetFunction": (_P, _P, _P),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuFuncGetAttribute": (_P, _I, _P),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_P, _P, _I, _N),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "cuLaunchCooperativeKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P),
    "cuMemPoolCreate": (_P, _P),
    "cuMemPoolSetAttribute": (_P, _I, _P),
    "cuMemAllocFromPoolAsync": (_P, _N, _P, _P),
    "cuMemFreeAsync": (_N, _P),
    "cuMemsetD8Async": (_N, ctypes.c_ubyte, _N, _P),
    "cuMemcpyHtoDAsync_v2": (_N, _P, _N, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _N, _N, _P),
    "cuStreamSynchronize": (_P,),
    "cuStreamCreate": (_P, _U),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamBeginCapture_v2": (_P, _I),
    "cuStreamEndCapture": (_P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, ctypes.c_ulonglong),
    "cuGraphDestroy": (_P,),
    "cuGraphExecDestroy": (_P,),
    "cuGraphLaunch": (_P, _P),
    "cuEventCreate": (_P, _U),
    "cuEventRecord": (_P, _P),
    "cuEventDestroy_v2": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U),
}
# memory pools in the order of streams are that old
_OLDEST = 11020
# attributes of devices, functions, pointers, pools
_MULTIPROCESSORS, _MAJOR, _MINOR, _MOST_SHARED = 16, 75, 76, 97
_LOCAL_BYTES, _REGISTERS, _DYNAMIC_SHARED = 3, 4, 8
_ORDINAL, _KEPT_FREE = 9, 4
# an option of the compiler, and its values: how much it does, least of which is in what order
_EFFORT, _IN_ORDER, _ALL = 7, 1, 4
_NO_TIMING = 2
# a stream that does not wait for the default one; others may do as they like meanwhile
_NON_BLOCKING, _RELAXED = 1, 2
# the default stream of each thread, as a handle
PER_THREAD = 2

_NO_DEVICE, _NO_MEMORY, _NOT_INITIALIZED = 100, 2, 3
# a call came without the context it belongs to
_NO_CONTEXT = (201, 400)
_ADVICE = {
    _NO_MEMORY: "the memory of the card is full: take a smaller batch, or free what is not needed",
    _NOT_INITIALIZED: "the driver cannot be used here any more; start Python anew",
    _NO_DEVICE: "there is no NVIDIA card, or CUDA_VISIBLE_DEVICES hides it; use device='cpu'",
    101: "there is no card of that number; hinge.Robot(…, device='cuda') takes the first",
    218: "the driver cannot compile this code: it may be older than the compiler; update it",
    222: "the driver is older than the code: update NVIDIA's driver, 11.2 or later",
    209: "the code is not for this card; clear the cache with `hinge cache clear`",
    700: "a kernel read or wrote memory that is not there: an array was freed while in use; the "
    "card takes no more calls of this process",
    701: "a launch asked for more than the card has; please report it",
    702: "a kernel ran longer than the display allows",
    719: "a kernel failed; the card takes no more calls of this process",
    803: "driver and its library are of different versions: reboot, or reinstall the driver",
    804: "this card's driver does not take code of this version: update it",
    900: "the stream is being captured, and this call cannot be: call once before capturing, and "
    "give out=",
}
_FORKED = (
    "this process was forked from one that had used a card, and the driver does not survive that: "
    "start processes by multiprocessing.get_context('spawn'), or use the card in the child alone"
)


@final
class Function:
    """A kernel of a module that is loaded; handle: CUfunction; blocks: how many fit on the card."""

    def __init__(self, handle: int, blocks: int, registers: int, local_bytes: int) -> None:
        self.handle, self.blocks = handle, blocks
        self.registers, self.local_bytes = registers, local_bytes


class Card(NamedTuple):
    """A card; capability: 90 for 9.0; most_shared: bytes that a block can share; memory: all bytes.

    context, pool: handles of its primary context, and of memory.
    """

    number: int
    name: str
    capability: int
    multiprocessors: int
    most_shared: int
    memory: int
    context: int
    pool: int


@final
class Driver:
    """The driver, initialised; library: `libcuda` as ctypes has it."""

    def __init__(self, library: Any) -> None:
        self._library, self._forked = library, False
        self._cards: dict[int, Card] = {}
        self._modules: dict[tuple[int, bytes], int] = {}
        for name, types in _FUNCTIONS.items():
            if (function := getattr(library, name, None)) is not None:
                function.argtypes = types
        self.call("cuInit", 0)
        self.version = self._number("cuDriverGetVersion")
        if self.version < _OLDEST:
            found, least = (f"{v // 1000}.{v % 1000 // 10}" for v in (self.version, _OLDEST))
            raise DeviceError(
                f"the driver of the card is for CUDA {found}; expected {least} or later: update it"
            )
        self.launch = library.cuLaunchKernel
        self.launch_together = getattr(library, "cuLaunchCooperativeKernel", self._refuse)
        self.launch_address = ctypes.cast(self.launch, _P).value or 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._lose)

    def _lose(self) -> None:
        self._forked = True
        self.launch = self.launch_together = self._refuse

    def _refuse(self, *arguments: Any) -> int:
        return _NOT_INITIALIZED

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the driver."""
        code = _NOT_INITIALIZED if self._forked else getattr(self._library, name)(*arguments)
        if code:
            self.fail(name, code)

    def fail(self, name: str, code: int) -> None:
        """Raise what a code of the driver means."""
        if self._forked:
            raise DeviceError(_FORKED)
        words = ctypes.c_char_p()
        self._library.cuGetErrorString(code, ctypes.byref(words))
        said = (words.value or b"unknown").decode()
        advice = _ADVICE.get(code, "see the CUDA Driver API for what that is")
        kind = DeviceMemoryError if code == _NO_MEMORY else DeviceError
        raise kind(f"{name} failed with {code} ({said}): {advice}")

    def _number(self, name: str, *arguments: Any, kind: Any = ctypes.c_int) -> int:
        """What a function writes where its first argument points."""
        found = kind()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value or 0

    # cards

    @property
    def count(self) -> int:
        """How many cards there are."""
        return self._number("cuDeviceGetCount")

    def card(self, number: int) -> Card:
        """The card of that number, ready for use."""
        if number not in self._cards:
            with MAKING:
                self._cards[number] = self._cards.get(number) or self._opened(number)
        return self._cards[number]

    def _opened(self, number: int) -> Card:
        device = self._number("cuDeviceGet", number)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), device)
        major, minor, units, shared = (
            self._number("cuDeviceGetAttribute", which, device)
            for which in (_MAJOR, _MINOR, _MULTIPROCESSORS, _MOST_SHARED)
        )
        context = self._number("cuDevicePrimaryCtxRetain", device, kind=_P)
        memory = self._number("cuDeviceTotalMem_v2", device, kind=_N)
        whole = name.value.decode(), 10 * major + minor, units, shared, memory
        return Card(number, *whole, context, self._pool(device))

    def _pool(self, device: int) -> int:
        """Memory in the order of streams, of which nothing goes back to the system meanwhile."""
        # CUmemPoolProps: pinned, without handles to export, on a device
        props = (ctypes.c_int * 22)(1, 0, 1, device)
        pool = self._number("cuMemPoolCreate", ctypes.byref(props), kind=_P)
        most = ctypes.c_uint64(2**64 - 1)
        self.call("cuMemPoolSetAttribute", pool, _KEPT_FREE, ctypes.byref(most))
        return pool

    @contextmanager
    def on(self, card: Card) -> Iterator[None]:
        """The card's context is current meanwhile; afterwards what was."""
        self.call("cuCtxPushCurrent_v2", card.context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(_P()))

    def card_of(self, address: int) -> int:
        """The number of the card that has this memory."""
        return self._number("cuPointerGetAttribute", _ORDINAL, address)

    # code

    def function(
        self,
        card: Card,
        code: bytes,
        name: str,
        threads: int,
        shared: int,
        as_written: bool = False,
    ) -> Function:
        """A kernel of some PTX, for blocks of so many threads that share so many bytes.

        as_written: instructions stay in their order.
        """
        if shared > card.most_shared:
            raise DeviceError(
                f"this kernel wants {shared} bytes of shared memory for a block, and {card.name} "
                f"has {card.most_shared}; use dtype='float32', or device='cpu'"
            )
        with self.on(card):
            module = self._module(card, code, _IN_ORDER if as_written else _ALL)
            handle = self._number("cuModuleGetFunction", module, name.encode(), kind=_P)
            if shared:
                self.call("cuFuncSetAttribute", handle, _DYNAMIC_SHARED, shared)
            fits = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            blocks = self._number(fits, handle, threads, shared) * card.multiprocessors
            registers, local = (
                self._number("cuFuncGetAttribute", which, handle)
                for which in (_REGISTERS, _LOCAL_BYTES)
            )
        return Function(handle, blocks, registers, local)

    def _module(self, card: Card, code: bytes, effort: int) -> int:
        """PTX as the card runs it; compiled once in a process, and kept on disk by the driver.

        What the driver links (`cuLink…`) could be kept here, but is up to a quarter slower than
        what it loads.
        """
        known = card.number, code
        if known not in self._modules:
            with MAKING:
                if known not in self._modules:
                    given = code, 1, (_I * 1)(_EFFORT), (_P * 1)(effort)
                    self._modules[known] = self._number("cuModuleLoadDataEx", *given, kind=_P)
        return self._modules[known]

    def run(
        self,
        card: Card,
        function: Function,
        blocks: int,
        threads: int,
        shared: int,
        stream: int,
        arguments: Any,
        cooperative: bool = False,
    ) -> None:
        """Launch; arguments: an array of pointers to them.  Nothing waits for it to end.

        cooperative: all blocks run at once, or it fails.
        """
        given = function.handle, blocks, 1, 1, threads, 1, 1, shared, stream, arguments
        launch = partial(self.launch_together, *given)
        if not cooperative:
            launch = partial(self.launch, *given, None)
        code = launch()
        if code in _NO_CONTEXT:
            with self.on(card):
                code = launch()
        if code:
            self.fail("a launch", code)

    # launches that are recorded

    def recorded(self, card: Card, launches: Callable[[int], None]) -> int:
        """What a function launches on the stream it is given, to be run again as one."""
        with self.on(card):
            stream, graph = self._number("cuStreamCreate", _NON_BLOCKING, kind=_P), _P()
            try:
                self.call("cuStreamBeginCapture_v2", stream, _RELAXED)
                try:
                    launches(stream)
                finally:
                    self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
                return self._number("cuGraphInstantiateWithFlags", graph.value, 0, kind=_P)
            finally:
                if graph.value:
                    self.call("cuGraphDestroy", graph.value)
                self.call("cuStreamDestroy_v2", stream)

    def replay(self, card: Card, graph: int, stream: int) -> None:
        """Run what was recorded."""
        with self.on(card):
            self.call("cuGraphLaunch", graph, stream)

    def forget(self, card: Card, graph: int) -> None:
        """Let go what was recorded."""
        with self.on(card):
            self.call("cuGraphExecDestroy", graph)

    # memory

    def allocate(self, card: Card, size: int, stream: int) -> int:
        """Memory that is there for what comes later on the stream."""
        with self.on(card):
            given = max(size, 1), card.pool, stream
            return self._number("cuMemAllocFromPoolAsync", *given, kind=_P)

    def free(self, card: Card, address: int, stream: int) -> None:
        """Memory that what came before on the stream still has."""
        with self.on(card):
            self.call("cuMemFreeAsync", address, stream)

    def clear(self, card: Card, address: int, size: int, stream: int) -> None:
        """Make bytes zero, in the order of the stream."""
        with self.on(card):
            self.call("cuMemsetD8Async", address, 0, size, stream)

    def to_card(self, card: Card, address: int, host: int, size: int, stream: int) -> None:
        """Copy from the host, whose memory may be written again at once."""
        with self.on(card):
            self.call("cuMemcpyHtoDAsync_v2", address, host, size, stream)

    def to_host(self, card: Card, host: int, address: int, size: int, stream: int) -> None:
        """Copy to the host, when all before on the stream is done, and wait for that."""
        with self.on(card):
            self.call("cuMemcpyDtoHAsync_v2", host, address, size, stream)
            self.call("cuStreamSynchronize", stream)

    def after(self, card: Card, first: int, then: int) -> None:
        """What comes on a stream from now on waits for what is on another by now."""
        with self.on(card):
            event = self._number("cuEventCreate", _NO_TIMING, kind=_P)
            try:
                self.call("cuEventRecord", event, first)
                self.call("cuStreamWaitEvent", then, event, 0)
            finally:
                self.call("cuEventDestroy_v2", event)


@lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver of this machine."""
    with MAKING:
        return Driver(_library())


def _library() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise DeviceError(
            f"there is no NVIDIA card here, or no driver: {name} was not found; use device='cpu', "
            f"or install NVIDIA's driver (nothing else is needed)"
        ) from None

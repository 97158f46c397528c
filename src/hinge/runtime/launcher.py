"""A kernel in the memory of a card, and its launches."""

from __future__ import annotations

import ast
import ctypes
import threading
from collections.abc import Sequence
from struct import Struct
from typing import final

from ..emit.ptx.launch import Launch
from .driver import Card, Function, driver

__all__ = ["Launcher", "packed", "unpacked"]

# the scratch of a launch takes this part of a card's memory at most
_SHARE = 4


def packed(launch: Launch, text: str) -> bytes:
    """PTX as the driver takes it, and before it how it is launched."""
    return repr(tuple(launch)).encode() + b"\n" + text.encode() + b"\0"


def unpacked(data: bytes) -> tuple[Launch, bytes]:
    """The same taken apart."""
    head, _, code = data.partition(b"\n")
    return Launch(*ast.literal_eval(head.decode())), code


@final
class Launcher:
    """A kernel, loaded: who launches it himself needs `function.handle`, its CUfunction, `launch`
    and `blocks`.

    most: how many blocks there may be, 0 for any number.
    count: of its arguments, all of 64 bits; scratch: the last is a pointer to scratch.
    """

    def __init__(
        self, card: Card, code: bytes, count: int, name: str = "run", scratch: bool = True
    ) -> None:
        self.card, self._driver, self._scratch = card, driver(), scratch
        self.launch, self.function = self.function_of(card, code, name)
        self.most = self._most() if self.launch.persistent else 0
        self._pack = Struct(f"{count}q").pack_into
        self._values = (ctypes.c_int64 * count)()
        first = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * count)(*(first + 8 * i for i in range(count)))
        self._lock = threading.Lock()

    @staticmethod
    def function_of(card: Card, code: bytes, name: str = "run") -> tuple[Launch, Function]:
        """How a kernel is launched, and the kernel, compiled by the driver."""
        launch, text = unpacked(code)
        given = launch.threads, launch.shared, launch.as_written
        return launch, driver().function(card, text, name, *given)

    @property
    def address(self) -> int:
        """Where the driver's function is that launches."""
        return self._driver.launch_address

    def told(self) -> str:
        """How a launch is made, in words."""
        launch, function = self.launch, self.function
        words = [f"{launch.threads} threads work at {launch.samples} samples"]
        words.append(f"{function.registers} registers and {function.local_bytes} local bytes each")
        if launch.shared:
            words.append(f"{launch.shared} bytes of shared memory together")
        if launch.scratch:
            words.append(f"{launch.scratch} of global memory")
        blocks = f"{function.blocks} such blocks fit {self.card.name}"
        return ", ".join(
            [*words, f"{blocks} and go on from batch to batch" if launch.persistent else blocks]
        )

    def blocks(self, samples: int) -> int:
        """How many blocks a batch takes."""
        all_of_them = -(-samples // self.launch.samples)
        return min(all_of_them, self.most) if self.most else all_of_them

    def _most(self) -> int:
        """How many blocks fit the card, and their scratch a part of its memory."""
        fit, scratch = self.function.blocks, self.launch.scratch
        return max(1, min(fit, self.card.memory // _SHARE // scratch) if scratch else fit)

    def start(self, values: Sequence[int], blocks: int, stream: int) -> None:
        """Launch; values: of the arguments, but for the scratch.  Nothing waits for the end."""
        if not self._scratch:
            self._start(values, blocks, stream)
        elif not self.launch.scratch:
            self._start((*values, 0), blocks, stream)
        else:
            # in the order of the stream: what comes after may have it
            room = self._driver.allocate(self.card, self.launch.scratch * blocks, stream)
            try:
                self._start((*values, room), blocks, stream)
            finally:
                self._driver.free(self.card, room, stream)

    def _start(self, values: Sequence[int], blocks: int, stream: int) -> None:
        launch, own = self.launch, (self.card, self.function)
        # the driver has copied the arguments when it comes back
        with self._lock:
            self._pack(self._values, 0, *values)
            given = blocks, launch.threads, launch.shared, stream, self._pointers
            self._driver.run(*own, *given, launch.cooperative)

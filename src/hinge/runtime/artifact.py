"""What compiling leaves: code, and the signature that is needed to call it."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from ..graph.operations import Operations
from . import cache
from .backend import Backend, Settings
from .check import scalar_of
from .forks import MAKING
from .progress import during

__all__ = ["Artifact", "Source", "full_key", "source_stamp"]


class Artifact(NamedTuple):
    """Code of one program for one kind of device."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    several: bool
    ops: Operations
    code: bytes

    def packed(self) -> bytes:
        """As bytes for the cache."""
        head = repr((self.inputs, self.outputs, self.several, tuple(self.ops))).encode()
        return len(head).to_bytes(8, "little") + head + self.code

    @classmethod
    def unpacked(cls, data: bytes) -> Artifact:
        """From bytes of the cache, whose digest fits: they are ours."""
        size = int.from_bytes(data[:8], "little")
        inputs, outputs, several, ops = ast.literal_eval(data[8 : 8 + size].decode())
        return cls(inputs, outputs, several, Operations(*ops), data[8 + size :])


@final
class Source:
    """A program and how it is to be compiled."""

    def __init__(
        self,
        program: Any | Callable[[], Any],
        name: str,
        dtype: np.dtype,
        strict: bool,
        key: str | None,
    ) -> None:
        """program: or what makes it, called when no compiled code is found under the key."""
        self._make, self._key, self._program = program, key, None
        self.settings = Settings(name, dtype, scalar_of(name, dtype), strict)
        self._made: dict[Backend, Artifact] = {}

    @property
    def program(self) -> Any:
        """What is computed, traced if it was not yet."""
        with MAKING:
            if self._program is None:
                with during(f"tracing {self.settings.name}"):
                    self._program = self._make() if callable(self._make) else self._make
            return self._program

    def key(self, backend: Backend) -> str:
        """What tells its code by a backend from all other code."""
        own = self.program.digest if self._key is None else self._key
        kind = f"{self.settings.scalar} {self.settings.strict}"
        return full_key(own, kind, *backend.marks())

    def artifact(self, backend: Backend) -> Artifact:
        """The code by a backend, from the cache or made now."""
        if backend not in self._made:
            with MAKING:
                if backend not in self._made:
                    self._made[backend] = self._found(backend) or self._compiled(backend)
        return self._made[backend]

    def _found(self, backend: Backend) -> Artifact | None:
        data = cache.load(self.key(backend))
        return None if data is None else Artifact.unpacked(data)

    def _compiled(self, backend: Backend) -> Artifact:
        program = self.program
        with during(f"compiling {self.settings.name} ({sum(program.ops)} operations)"):
            code = backend.compile(program, self.settings)
        several = program.form is not None
        made = Artifact(program.inputs, program.outputs, several, program.ops, code)
        cache.store(self.key(backend), made.packed())
        return made


def full_key(*parts: str) -> str:
    """The key of code that depends on these and on hinge itself."""
    return cache.digest(*parts, source_stamp())


@lru_cache(maxsize=1)
def source_stamp() -> str:
    """Changes whenever a file of this package does."""
    return "\n".join(sorted(_marks(os.path.dirname(os.path.dirname(__file__)))))


def _marks(folder: str) -> Iterator[str]:
    """Path, size and time of every source file; paths and entries are costly, names are not."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _marks(entry.path)

"""What compiling leaves: code, and the signature that is needed to call it."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, final

import numpy as np

from ..graph.operations import Operations
from . import cache
from .backend import Backend, Settings
from .check import scalar_of
from .forks import MAKING
from .progress import during

__all__ = ["Artifact", "Source", "full_key", "source_digest", "source_stamp"]


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
        systems: Callable[[], Any] | None = None,
    ) -> None:
        """program: or what makes it, called when no compiled code is found under the key.

        systems: makes the same as linear systems, for backends that solve these.
        """
        self._make, self._key, self._program, self._systems = program, key, None, systems
        self.settings = Settings(name, dtype, scalar_of(name, dtype), strict)
        self._made: dict[Backend, Artifact] = {}
        # free in every fork, since it is held only while something is made
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """With the code that was made, by what it needs.

        Of a robot's kernel travels what makes the program, of any other the program.
        """
        known = isinstance(self._make, partial) and self._key is not None
        made = [(backend, backend.needs(), code) for backend, code in self._made.items()]
        return {
            "_make": self._make if known else self.program,
            "_key": self.own_key,
            "_systems": self._systems,
            "settings": self.settings,
            "made": made,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        made = state.pop("made")
        self.__dict__.update(state, _program=None, _lock=threading.RLock())
        self._made = {backend: code for backend, needs, code in made if backend.needs() == needs}

    @property
    def program(self) -> Any:
        """What is computed, traced if it was not yet."""
        with MAKING, self._lock:
            if self._program is None:
                with during(f"tracing {self.settings.name}"):
                    self._program = self._make() if callable(self._make) else self._make
            return self._program

    @property
    def has_systems(self) -> bool:
        """Whether there are linear systems for backends that solve these."""
        return self._systems is not None

    def program_for(self, backend: Backend) -> Any:
        """What a backend compiles: the program, or systems if there are such."""
        if self._systems is None or not backend.solves:
            return self.program
        with MAKING, self._lock, during(f"tracing {self.settings.name}"):
            return self._systems()

    @property
    def own_key(self) -> str:
        """What tells the program from all others."""
        return self.program.digest if self._key is None else self._key

    def key(self, backend: Backend) -> str:
        """What tells its code by a backend from all other code."""
        kind = f"{self.settings.scalar} {self.settings.strict}"
        return full_key(self.own_key, kind, *backend.marks())

    def artifact(self, backend: Backend) -> Artifact:
        """The code by a backend, from the cache or made now."""
        if backend not in self._made:
            with MAKING, self._lock:
                if backend not in self._made:
                    self._made[backend] = self._found(backend) or self._compiled(backend)
        return self._made[backend]

    def has_made(self, backend: Backend) -> bool:
        """Whether the code by a backend is at hand."""
        return backend in self._made

    def _found(self, backend: Backend) -> Artifact | None:
        data = cache.load(self.key(backend))
        return None if data is None else Artifact.unpacked(data)

    def _compiled(self, backend: Backend) -> Artifact:
        from ..graph.program import without_collection

        program = self.program_for(backend)
        said = f"compiling {self.settings.name} ({sum(program.ops)} operations)"
        with during(said), without_collection():
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


@lru_cache(maxsize=1)
def source_digest() -> str:
    """The same wherever the files of this package are the same."""
    home = os.path.dirname(os.path.dirname(__file__))
    parts = []
    for path in sorted(line.rsplit(" ", 2)[0] for line in _marks(home)):
        with open(path, "rb") as file:
            parts += [os.path.relpath(path, home).replace(os.sep, "/"), file.read()]
    return cache.digest(*parts)


def _marks(folder: str) -> Iterator[str]:
    """Path, size and time of every source file; paths and entries are costly, names are not."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _marks(entry.path)

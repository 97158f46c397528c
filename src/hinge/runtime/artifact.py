"""What compiling leaves: object code, and the signature that is needed to call it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..graph.operations import Operations
from . import cache
from .engine import compile_text, fast_calls_work
from .target import Target, llvm_version

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.scan import Scan

__all__ = ["Artifact", "build", "find", "object_code", "source_stamp"]


class Artifact(NamedTuple):
    """Object code of one program for one CPU."""

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


def full_key(key: str, target: Target, scalar: str, strict: bool) -> str:
    """The key of a program with all else that its code depends on."""
    kind = f"{scalar} {strict} {target.vector_bits} {fast_calls_work()}"
    return cache.digest(key, kind, target.cpu, target.features, llvm_version(), source_stamp())


def find(key: str, target: Target, scalar: str, strict: bool) -> Artifact | None:
    """The code in the cache, if it is there."""
    data = cache.load(full_key(key, target, scalar, strict))
    return None if data is None else Artifact.unpacked(data)


def build(
    program: Program | LoopProgram | Scan, key: str, target: Target, scalar: str, strict: bool
) -> Artifact:
    """Compile, and keep the result."""
    from ..emit.llvm.module import module_text

    text = module_text(program, target.flavor(scalar), strict, fast_calls_work())
    several = program.form is not None
    code = compile_text(text, target)
    artifact = Artifact(program.inputs, program.outputs, several, program.ops, code)
    cache.store(full_key(key, target, scalar, strict), artifact.packed())
    return artifact


def object_code(text: str, target: Target) -> bytes:
    """A module that is no program, compiled and kept likewise."""
    key = full_key(text, target, "", False)
    code = cache.load(key)
    if code is None:
        code = compile_text(text, target)
        cache.store(key, code)
    return code


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

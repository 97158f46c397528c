"""Code made known to XLA: a handler of our own for each, registered under a name that lasts.

The name is the key that the code has in the cache, so that what XLA keeps on disk finds it in
another process.  Handlers and their code are never freed: XLA may call them as long as it lives.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..emit.llvm.xla import Word, handler_text
from ..errors import HingeError
from ..runtime.engine import helper_library
from .code import Code
from .operation import Signature

__all__ = ["register"]

jax: Any = import_module("jax")

# XLA's numbers of dtypes, and the version of its interface that the handlers are written for
_DTYPES = {np.dtype(np.float32): 11, np.dtype(np.float64): 12}
_MAJOR = 0

_KNOWN: dict[str, tuple[Any, ...]] = {}


def register(code: Code, dtype: np.dtype, signature: Signature) -> None:
    """Make code known to XLA under its name, if it is not yet."""
    if code.name in _KNOWN:
        return
    counts = len(signature.inputs), len(signature.outputs)
    buffers = counts[1] + bool(code.scratch)
    words = Word(*_version(), _DTYPES[dtype], *counts, buffers)._replace(**code.words)
    table, sizes = list(words), []
    for shape in (*signature.inputs, *signature.outputs):
        sizes.append(np.array([*shape, 0], dtype=np.int64))
        table += [len(shape), prod(shape) * dtype.itemsize, sizes[-1].ctypes.data]
    own = np.array(table, dtype=np.int64)
    text = handler_text("states" in code.words, code.card)
    library = helper_library(text, {"hinge_own": own.ctypes.data})
    place = jax.ffi.pycapsule(ctypes.c_void_p(library.address("handler")))
    platform = "CUDA" if code.card else "cpu"
    jax.ffi.register_ffi_target(code.name, place, platform=platform, api_version=1)
    _KNOWN[code.name] = code, library, own, sizes


@lru_cache(maxsize=1)
def _version() -> tuple[int, int]:
    """The version of the interface that this JAX has, if it is one that the handlers know."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    found = [re.search(rf"#define XLA_FFI_API_{word} (\d+)", header) for word in ("MAJOR", "MINOR")]
    major, minor = (int(x[1]) if x else -1 for x in found)
    if major != _MAJOR:
        raise HingeError(
            f"hinge.jax: JAX {jax.__version__} has version {major}.{minor} of XLA's foreign "
            f"function interface; hinge's handlers are written for {_MAJOR}: use a version of JAX "
            f"that the extra 'jax' of hinge names"
        )
    return major, minor

"""The machine code behind an operation, for the platform that XLA compiles for."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..runtime.backend import Backend
from ..runtime.cpu import Cpu
from ..runtime.cuda import Cuda
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from ..runtime.team import HERE, gather

__all__ = ["Code", "kernel_code", "loop_code"]


@dataclass(frozen=True)
class Code:
    """What a handler runs: a name that lasts, what keeps it alive, and what is known of it.

    words: some of `emit.llvm.xla.Word`; card: whether it is a card's.
    scratch: bytes of memory that XLA is to find; attributes: what the handler is told every time.
    """

    name: str
    alive: Any
    words: Mapping[str, int]
    card: bool
    scratch: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


def kernel_code(kernel: Kernel, samples: int, platform: str) -> Code:
    """That of a kernel."""
    backend, source = _backend(kernel.backend, platform), kernel._source
    if source.has_systems and isinstance(backend, Cuda):
        # XLA's handler launches one kernel
        backend = replace(backend, solves=False)
    return _code(source.key(backend), kernel.loaded(backend), samples)


def loop_code(rollout: Rollout, steps: int, every: int, samples: int, platform: str) -> Code:
    """That of a time loop."""
    source = rollout._source
    backend = _backend(rollout.backend, platform).suited(source.settings, samples)
    counts = rollout.states, rollout.inputs
    loaded: Any = backend.load_scan(source.artifact(backend), source.settings, *counts)
    words = {"states": counts[0], "timed": counts[1]}
    return _code(source.key(backend), loaded, samples, words, {"every": every, "steps": steps})


def _backend(own: Backend, platform: str) -> Backend:
    """The backend of a platform: the kernel's own, if it is for that."""
    if platform == "cpu":
        return own if isinstance(own, Cpu) else Cpu()
    return own if isinstance(own, Cuda) and own.layout == "rows" else Cuda()


def _code(
    key: str,
    loaded: Any,
    samples: int,
    words: Mapping[str, int] | None = None,
    attributes: Mapping[str, int] | None = None,
) -> Code:
    name, words, attributes = f"hinge_{key}", words or {}, attributes or {}
    if hasattr(loaded, "machine"):
        return Code(name, loaded, {**words, **_here(loaded.machine)}, False, 0, attributes)
    launcher = loaded.launcher
    scratch = launcher.launch.scratch * launcher.blocks(samples)
    return Code(name, loaded, {**words, **_there(launcher)}, True, scratch, attributes)


def _here(machine: Any) -> dict[str, int]:
    """Of code for the CPU."""
    if machine.helpers:
        gather()
    python = ctypes.pythonapi
    known = machine._asdict() | {"team": HERE.ctypes.data}
    ways = {"allocate": python.PyMem_RawMalloc, "free": python.PyMem_RawFree}
    return known | {name: _address(function) for name, function in ways.items()}


def _there(launcher: Any) -> dict[str, int]:
    """Of a kernel of a card."""
    from ..runtime.driver import driver

    launch, library = launcher.launch, driver()._library
    ways = {
        "launch": library.cuLaunchKernel,
        "enter": library.cuCtxPushCurrent_v2,
        "leave": library.cuCtxPopCurrent_v2,
    }
    return {
        "function": launcher.function.handle,
        "threads": launch.threads,
        "shared": launch.shared,
        "share": launch.samples,
        "blocks": launcher.function.blocks if launch.persistent else 0,
        "context": launcher.card.context,
        **{name: _address(function) for name, function in ways.items()},
    }


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0

"""LLVM's text to PTX, the language that drivers of NVIDIA's cards compile."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .forks import MAKING

__all__ = ["ptx_of"]

_TRIPLE = "nvptx64-nvidia-cuda"
# the newest kind of card that LLVM may be asked for, and the version of PTX that knows each: later
# cards run the code of earlier ones
_VERSIONS = {120: 87, 100: 86, 90: 80, 89: 78, 87: 74, 86: 71, 80: 70, 75: 63, 72: 61, 70: 60}


def ptx_of(text: str, capability: int) -> str:
    """The PTX of a module, for cards of a compute capability (90 for 9.0) and later ones."""
    kind = max((k for k in _VERSIONS if k <= capability), default=min(_VERSIONS))
    with MAKING:
        llvm = _llvm()
        module = llvm.parse_assembly(text)
        module.verify()
        machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(
            cpu=f"sm_{kind}", features=f"+ptx{_VERSIONS[kind]}", opt=3
        )
        return machine.emit_assembly(module)


@lru_cache(maxsize=1)
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm

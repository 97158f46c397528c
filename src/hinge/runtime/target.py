"""What code is compiled for and with: known, where the system tells, without loading LLVM."""

from __future__ import annotations

import os
import platform
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..emit.llvm.flavor import Flavor

__all__ = ["Target", "host", "llvm_version"]


class Target(NamedTuple):
    """A CPU to compile for: its name, its features, and how many bits a vector has.

    native: name and features are the system's own words for this machine, not those of LLVM.
    """

    cpu: str
    features: str
    vector_bits: int
    native: bool = False

    def lanes(self, scalar: str) -> int:
        """How many numbers are worked on at once."""
        return self.vector_bits // (64 if scalar == "double" else 32)

    def flavor(self, scalar: str) -> Flavor:
        """What one value of compiled code is on it."""
        from ..emit.llvm.flavor import Flavor

        can = self.features.split(",")
        many = "+avx512vl" in can or _is_arm()
        fused = "+fma" in can or _is_arm()
        needed = {"+avx2", "+fma"}
        if self.vector_bits > 256 or many:
            needed |= {"+avx512f", "+avx512vl", "+avx512dq"}
        direct = needed <= {*can} and _is_elf_of_x86()
        return Flavor(self.lanes(scalar), scalar, fused, 32 if many else 16, direct)


def _is_elf_of_x86() -> bool:
    """Whether functions are called as System V says, and object files are ELF."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _is_arm() -> bool:
    return platform.machine() in ("aarch64", "arm64")


@lru_cache(maxsize=1)
def host() -> Target:
    """The CPU of this machine."""
    told = _told_by_linux()
    if told is not None:
        name, flags = told
        return Target(name, ",".join(f"+{flag}" for flag in flags), _bits(flags), native=True)
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    bits = _bits({name for name, has in features.items() if has})
    return Target(llvm.get_host_cpu_name(), features.flatten(), bits)


def _bits(features: set[str] | list[str]) -> int:
    return 512 if "avx512f" in features else 256 if "avx2" in features else 128


def _told_by_linux(path: str = "/proc/cpuinfo") -> tuple[str, list[str]] | None:
    """Which x86 this is, and what it can do; None if it is none or the system does not tell.

    An emulated ARM is shown the file of the machine that emulates it.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    lines = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if not key.strip():
                    break
                lines[key.strip()] = value.strip()
    except OSError:
        return None
    if "flags" not in lines:
        return None
    kind = ("vendor_id", "cpu family", "model", "stepping")
    return " ".join(lines.get(key, "?") for key in kind), lines["flags"].split()


@lru_cache(maxsize=1)
def llvm_version() -> str:
    """What tells one LLVM from another: where its wrapper is, its version, its library."""
    spec = find_spec("llvmlite")
    folder = os.path.dirname(spec.origin or "") if spec else ""
    try:
        with open(os.path.join(folder, "_version.py"), encoding="utf-8") as file:
            text = file.read()
        with os.scandir(os.path.join(folder, "binding")) as entries:
            libraries = [e for e in entries if e.name.endswith((".so", ".dylib", ".dll"))]
            marks = [(e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in libraries]
        return f"{folder} {text} {sorted(marks)}"
    except OSError:
        import llvmlite
        import llvmlite.binding as llvm

        return f"{llvmlite.__version__} {llvm.llvm_version_info}"

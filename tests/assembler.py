"""NVIDIA's assembler, from its package on PyPI or from the path: what it makes of a module."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
import pytest

TRIPLE, CARD, PTX = "nvptx64-nvidia-cuda", "sm_90", "+ptx80"


@cache
def ptxas() -> str | None:
    """The path of the program: of nvidia-cuda-nvcc-cu12 (nvidia/cuda_nvcc), or an installed one."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found else []
    places = [
        Path(f) / inner for f in folders for inner in ("cuda_nvcc/bin/ptxas", "cu13/bin/ptxas")
    ]
    there = (str(p) for p in places if os.access(p, os.X_OK))
    return next(there, None) or shutil.which("ptxas")


assembles = pytest.mark.skipif(
    ptxas() is None, reason="no ptxas: pip install nvidia-cuda-nvcc-cu12, or a CUDA toolkit"
)


class Figures(NamedTuple):
    """What a kernel takes of a thread: registers, bytes of its stack, and bytes spilled to it."""

    registers: int
    stack: int
    spilled: int


def ptx_of(text: str) -> str:
    """The module as PTX; LLVM verifies it first."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=CARD, features=PTX, opt=3)
    return machine.emit_assembly(module)


def assembled(text: str) -> Figures:
    """Of the entry `run`; whatever the assembler objects to fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx_of(text))
        command = [ptxas(), f"-arch={CARD}", "-v", str(path), "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # the entry comes first, then the functions that it calls
    told = done.stderr.split("entry function 'run'")[1]
    stack, stores, loads = map(
        int, re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", told)[:3]
    )
    return Figures(int(re.search(r"Used (\d+) registers", told)[1]), stack, stores + loads)

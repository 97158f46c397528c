"""Kernels for cards whose threads work alone, on the CPU: the same text, thread after thread."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np

# the most that a block of a card has
SHARED = 227 * 1024
# what a thread asks the card for, it asks variables here
REGISTERS = ("tid.x", "ctaid.x", "nctaid.x")


def text_for_cpu(text: str) -> str:
    """The module for this machine, with a function that runs one thread."""
    lines = [x for x in text.splitlines() if not x.startswith(("target ", "module asm"))]
    out = "\n".join(lines).replace("define ptx_kernel void @run", "define void @run")
    room = f"addrspace(3) global [{SHARED} x i8] zeroinitializer"
    out = out.replace("external addrspace(3) global [0 x i8]", room)
    # what hides a number from the compiler hides nothing here
    out = re.sub(r'call i64 asm sideeffect "mov[^(]*\((i64 \S+)\)', r"add \1, 0", out)
    for name in REGISTERS:
        whole = f"@llvm.nvvm.read.ptx.sreg.{name}"
        mine = f"@special_{name.replace('.', '_')}"
        if f"declare i32 {whole}()" in out:
            read = f"  %x = load i32, ptr {mine}_value\n  ret i32 %x\n"
            made = f"{mine}_value = global i32 0\ndefine i32 {mine}() {{\n{read}}}"
            out = out.replace(f"declare i32 {whole}()", made).replace(whole, mine)
    return out


def _machine() -> llvm.TargetMachine:
    """A new one, since an engine makes it its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=1)


class OnCpu:
    """A module, ready to run here."""

    def __init__(self, text: str) -> None:
        module = llvm.parse_assembly(text_for_cpu(text))
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, _machine())
        self.engine.finalize_object()

    def function(self, name: str, result: type | None, *kinds: type):
        """One of its functions."""
        return ctypes.CFUNCTYPE(result, *kinds)(self.engine.get_function_address(name))

    def launch(self, arguments: list[int], blocks: int, threads: int) -> None:
        """Every thread of every block, from addresses and whole numbers."""
        run = self.function("run", None, *[ctypes.c_int64] * len(arguments))
        values = {name: self._register(name) for name in REGISTERS}
        for block in range(blocks):
            for thread in range(threads):
                for name, x in zip(REGISTERS, (thread, block, blocks), strict=True):
                    if values[name]:
                        values[name][0] = x
                run(*arguments)

    def _register(self, name: str):
        address = self.engine.get_global_value_address(f"special_{name.replace('.', '_')}_value")
        return ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)) if address else None


def address(x: np.ndarray) -> int:
    """Where its numbers are."""
    return x.ctypes.data

"""Kernels for cards whose threads work in warps, run on the CPU: 32 that wait for each other, and
blocks of these.
"""

from __future__ import annotations

import ctypes
import re
import threading
from functools import partial

import llvmlite.binding as llvm

from emit.on_cpu import SHARED, OnCpu

LANES = 32
# what a card does by instructions of its own
INSTRUCTIONS = """
declare void @wait_for_warp()
declare void @wait_for_block()
declare i32 @thread_of_block()
declare void @llvm.memcpy.p3.p1.i64(ptr addrspace(3), ptr addrspace(1), i64, i1)
define internal void @copy(i64 %to, ptr addrspace(1) %from, i1 %if, i64 %n) {
  %p = inttoptr i64 %to to ptr addrspace(3)
  br i1 %if, label %yes, label %no
yes:
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) %p, ptr addrspace(1) %from, i64 %n, i1 false)
  br label %no
no:
  ret void
}
define internal float @llvm_rcp_f(float %x) {
  %r = fdiv float 1.0, %x
  ret float %r
}
define internal double @llvm_rcp_d(double %x) {
  %r = fdiv double 1.0, %x
  ret double %r
}
"""
STORE = """
define internal void @store_{t}(i1 %if, ptr addrspace(1) %to, i64 %by, i64 %n, {t} %x) {{
  br i1 %if, label %yes, label %no
yes:
  %far = mul i64 %by, %n
  %at = getelementptr i8, ptr addrspace(1) %to, i64 %far
  store {t} %x, ptr addrspace(1) %at
  br label %no
no:
  ret void
}}
define internal void @store_shared_{t}(i1 %if, i64 %to, i64 %n, {t} %x) {{
  %far = add i64 %to, %n
  %at = inttoptr i64 %far to ptr addrspace(3)
  br i1 %if, label %yes, label %no
yes:
  store {t} %x, ptr addrspace(3) %at
  br label %no
no:
  ret void
}}
define internal {t} @load_if_{t}(ptr addrspace(1) %from, i32 %if) {{
  %yes = icmp sge i32 %if, 0
  br i1 %yes, label %there, label %done
there:
  %x = load {t}, ptr addrspace(1) %from
  br label %done
done:
  %found = phi {t} [ 0.0, %0 ], [ %x, %there ]
  ret {t} %found
}}
define internal {t} @load_{t}(ptr addrspace(1) %from, i64 %n) {{
  %at = getelementptr i8, ptr addrspace(1) %from, i64 %n
  %x = load {t}, ptr addrspace(1) %at
  ret {t} %x
}}
"""
ASM = 'call void asm sideeffect "'
# an instruction of the card, and what does the same here
SPELLINGS = [
    (r" = ptrtoint ptr addrspace\(3\) (\S+) to i32", r" = ptrtoint ptr addrspace(3) \1 to i64"),
    (
        ASM + r'@\$2 cp\.async\.\w+\.shared\.global[^"]*, (\d+);", "[^"]*"\(i32 (\S+), (.*)\)',
        r"call void @copy(i64 \2, \3, i64 \1)",
    ),
    (
        ASM + r'cp\.async\.\w+\.shared\.global[^"]*, (\d+);", "[^"]*"\(i32 (\S+), (.*)\)',
        r"call void @copy(i64 \2, \3, i1 true, i64 \1)",
    ),
    (
        ASM + r'@\$2 st\.shared\.\w+ \[\$0\+(\d+)\], \$1;"[^(]*\(i32 (\S+), (\w+) (\S+), (.*)\)',
        r"call void @store_shared_\3(\5, i64 \2, i64 \1, \3 \4)",
    ),
    (ASM + r'cp\.async\.wait_all;"[^\n]*', ""),
    (ASM + r"\.pragma[^\n]*", ""),
    (
        ASM
        + r'\{ \.reg[^"]*, \$2, (\d+), \$1;[^"]*"[^(]*\((i1 \S+), (.*), (i64 \S+), (\w+) (\S+)\)',
        r"call void @store_\5(\2, \3, \4, i64 \1, \5 \6)",
    ),
    (
        ASM + r'\{ \.reg[^"]*, \$1, (\d+), \$0;[^"]*"[^(]*\((ptr.*), (i64 \S+), (\w+) (\S+)\)',
        r"call void @store_\4(i1 true, \2, \3, i64 \1, \4 \5)",
    ),
    (
        r'call (\w+) asm "\{ \.reg \.pred p; setp\.ge[^"]*"[^(]*\((.*)\)',
        r"call \1 @load_if_\1(\2)",
    ),
    (
        ASM + r'st\.global\.\w+ \[\$0\+(\d+)\], \$1;"[^(]*\((.*), (\w+) (\S+)\)',
        r"call void @store_\3(i1 true, \2, i64 1, i64 \1, \3 \4)",
    ),
    (
        r'call (\w+) asm sideeffect "ld\.global\.\w+ \$0, \[\$1\+(\d+)\];"[^(]*\((.*)\)',
        r"call \1 @load_\1(\3, i64 \2)",
    ),
    (
        r'call double asm sideeffect "ld\.const\.f64 \$0, \[numbers\+(\d+)\];", "=d"\(\)',
        r"load double, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @numbers, i64 \1)",
    ),
    (r"declare void @llvm\.nvvm\.bar\.warp\.sync\(i32\)", ""),
    (r"call void @llvm\.nvvm\.bar\.warp\.sync\(i32 -1\)", "call void @wait_for_warp()"),
    (r"declare void @llvm\.nvvm\.barrier0\(\)", ""),
    (r"call void @llvm\.nvvm\.barrier0\(\)", "call void @wait_for_block()"),
    (r"declare (float|double) @llvm\.nvvm\.rcp[^\n]*", ""),
    (r"@llvm\.nvvm\.rcp\.approx\.ftz\.", "@llvm_rcp_"),
    (r"declare i32 @llvm\.nvvm\.read\.ptx\.sreg\.tid\.x\(\)", ""),
    (r"@llvm\.nvvm\.read\.ptx\.sreg\.tid\.x", "@thread_of_block"),
]

_lane = threading.local()


def spelled_here(text: str) -> str:
    """The module without instructions of cards."""
    for card, here in SPELLINGS:
        text = re.sub(card, here, text)
    stores = "".join(STORE.format(t=t) for t in ("float", "double"))
    return re.sub(r'"nvvm\.\w+"="\d+"', "", text) + INSTRUCTIONS + stores


class Warps(OnCpu):
    """A module, ready to run here."""

    def __init__(self, text: str) -> None:
        self.warps: list[threading.Barrier] = []
        self.callbacks = [
            ctypes.CFUNCTYPE(None)(lambda: self.warps[_lane.tid // LANES].wait()),
            ctypes.CFUNCTYPE(None)(lambda: self.block.wait()),
            ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: _lane.tid),
        ]
        names = ("wait_for_warp", "wait_for_block", "thread_of_block")
        for name, callback in zip(names, self.callbacks, strict=True):
            llvm.add_symbol(name, ctypes.cast(callback, ctypes.c_void_p).value)
        OnCpu.__init__(self, spelled_here(text))

    def launch(self, arguments: list[int], blocks: int, threads: int, shared: int = SHARED) -> None:
        """Every block, all its threads at once; shared: all the memory they may write together."""
        self.warps = [threading.Barrier(LANES) for _ in range(0, threads, LANES)]
        self.block = threading.Barrier(threads)
        run = self.function("run", None, *[ctypes.c_int64] * len(arguments))
        for block in range(blocks):
            for name, x in (("ctaid.x", block), ("nctaid.x", blocks)):
                self._register(name)[0] = x
            everyone = range(threads)
            work = [threading.Thread(target=partial(_run, run, arguments, t)) for t in everyone]
            for thread in work:
                thread.start()
            for thread in work:
                thread.join()
        if shared < SHARED:
            memory = self.engine.get_global_value_address("shared")
            assert not any(ctypes.string_at(memory, SHARED)[shared:])


def _run(run, arguments: list[int], tid: int) -> None:
    _lane.tid = tid
    run(*arguments)

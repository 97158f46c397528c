"""Machine code as it is on Windows, run on Linux: calls go over bridges between the conventions.

All that hinge compiles is compiled for Windows and linked by LLVM in memory, as it is there.  Where
compiled code is called, a bridge takes the arguments as Linux passes them and passes them as
Windows does; where it calls functions of Python or C, a bridge takes them back.  What remains
untried is Windows itself.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import numpy as np

import hinge
from hinge.emit.llvm.card import card_text
from hinge.emit.llvm.copies import copies_text
from hinge.emit.llvm.door import door_text
from hinge.emit.llvm.held import held_text
from hinge.emit.llvm.module import module_text
from hinge.graph.program import trace
from hinge.runtime import cpu, engine, entry, loader, target
from hinge.runtime.symbols import symbols
from hinge.runtime.target import host

TRIPLE = "x86_64-pc-windows-msvc-elf"
# more arguments than any function of ours has that Python calls
_MOST = 10
# the stack of Linux grows by itself; this leaves every register alone
_NO_PROBE = """
define void @to_chkstk() nounwind {
  ret void
}
"""


def declarations() -> list[str]:
    """What a module says of every name that it does not define: functions, and objects."""
    program = trace(lambda x: (np.sin(x), hinge.atan2(x[0], x[1])), [(2,)])
    flavor = host().flavor("double")
    own = module_text(program, flavor), held_text(flavor, python=True)
    text = "\n".join([*own, door_text(), copies_text(), card_text()])
    found = re.findall(r"^(?:declare .* @hinge_.*|@hinge_.* = external .*)$", text, re.MULTILINE)
    return list(dict.fromkeys(found))


def run_code_for_windows() -> None:
    """From now on everything compiled is code for Windows; there is no team, as there."""
    del os.sched_yield
    llvm = engine._llvm()
    for name, address in _outward().items():
        llvm.add_symbol(name, address)
    engine.load = lambda code, given: None
    engine._triple = lambda: TRIPLE
    target._is_elf_of_x86 = lambda: False
    # Python's ways in; what takes nothing can be called as it is
    define, load = entry._definition, cpu._Code.__init__
    entry._definition = lambda title, address, doc: define(title, _inward(address), doc)

    def loaded(self: cpu._Code, *given: Any, **named: Any) -> None:
        load(self, *given, **named)
        self._run = type(self._run)(_inward(self.library.address("run")))

    cpu._Code.__init__ = loaded


def _outward() -> dict[str, int]:
    """For every name that code for Windows calls, where it has to go."""
    known = dict(symbols())
    lines = declarations()
    declared = re.findall(r"declare (\w+) @hinge_(\w+)\((.*)\)", "\n".join(lines))
    text = "\n".join([_NO_PROBE, *lines])
    for kind, name, types in declared:
        given = ", ".join(f"{t} %a{i}" for i, t in enumerate(filter(None, types.split(", "))))
        call, back = f"call {kind} @hinge_{name}({given})", "ret void"
        if kind != "void":
            call, back = f"%r = {call}", f"ret {kind} %r"
        text += f"\ndefine win64cc {kind} @to_{name}({given}) nounwind {{\n  {call}\n  {back}\n}}"
    bridges = _linked_here(text, known)
    known |= {f"hinge_{name}": bridges.address(f"to_{name}") for _, name, _ in declared}
    return known | {"__chkstk": bridges.address("to_chkstk")}


@cache
def _inward(address: int) -> int:
    """Where to call code for Windows from here: whole numbers and pointers in, one out."""
    given = ", ".join(f"i64 %a{i}" for i in range(_MOST))
    code = f"inttoptr (i64 {address} to ptr)"
    text = f"""define i64 @go({given}) nounwind {{
  %r = call win64cc i64 {code}({given})
  ret i64 %r
}}"""
    return _linked_here(text, {}).address("go")


@cache
def _kept() -> list[loader.Image]:
    return []


def _linked_here(text: str, known: dict[str, int]) -> loader.Image:
    """Code for this system, for good."""
    triple, engine._triple = engine._triple, engine._llvm().get_process_triple
    code = engine.compile_text(text, host())
    engine._triple = triple
    _kept().append(loader.image_of([loader._Loading(code)], known))
    return _kept()[-1]

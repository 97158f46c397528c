"""Relays as LLVM: each part as it is alone, and a function that hands arrays from one to the next.

Results of a straight-line part are put one after the other, as those of a loop are anyway, so that
every part finds its arguments as if they had come from outside.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

from ...graph.loop import LoopProgram
from ...graph.relay import Part, Relay
from ..layout import Layout, LoopLayout
from .body import Bodies, all_bodies, bodies, parameters, put_constants
from .builder import Function, Value, i64
from .flavor import Flavor
from .loop import loop_bodies

__all__ = ["relay_bodies"]


def relay_bodies(relay: Relay, f: Flavor) -> tuple[Layout, Bodies]:
    """Where results go, and all that a sample takes.

    The text calls `take`, from values to the entries that an index names.
    """
    written = [_Written(i, part, f) for i, part in enumerate(relay.parts)]
    last = written[-1].layout
    code = Function(f"relay_{f.name}", "void", *parameters(relay))
    *arrays, out, ws = code.parameters
    sizes = [size for part in written[:-1] for size in part.sizes]
    starts = [code.at(ws, at, f.type) for at in accumulate(sizes, initial=0)]
    rest, places = starts[-1], iter(starts)
    for part in written[:-1]:
        arrays += part.called(code, f, arrays, next(places), next(places), rest)
    code.call(written[-1].function, *written[-1].given(arrays), out, rest)
    text = "\n".join([*(part.text for part in written), code.ret().text()])
    slots = sum(sizes) + max(part.made.slots for part in written)
    pieces = chain.from_iterable(part.made.pieces for part in written)
    declared = "\n".join(part.made.declared for part in written)
    return last, Bodies([f"relay_{f.name}"], text, pieces, slots, declared=declared)


class _Written:
    """A part, its bodies and the rest of its text.

    sizes: of the values it makes, and of the entries of its results.
    """

    def __init__(self, i: int, part: Part, f: Flavor) -> None:
        self.part, self.index, tag = part, f"@index_{i}", f"_part{i}"
        program = part.program
        self.loops = isinstance(program, LoopProgram)
        layout: Any = LoopLayout(program) if isinstance(program, LoopProgram) else Layout(program)
        self.layout = layout
        if self.loops:
            self.made = loop_bodies(layout, f, tag, tables=True)
        else:
            self.made = bodies(layout, f, f, tag)
        self.function = f"all{tag}_{f.name}"
        numbers = ", ".join(f"i32 {x}" for x in layout.index)
        index = f"{self.index} = internal constant [{len(layout.index)} x i32] [{numbers}]"
        whole = all_bodies(program, f, self.made.names, tag)
        self.text = "\n".join([self.made.first, whole, index])
        self.sizes = layout.size, sum(program.output_sizes)

    def given(self, arrays: list[Value]) -> list[Value]:
        """Its arguments among all arrays."""
        return [arrays[k] for k in self.part.takes]

    def called(
        self, code: Function, f: Flavor, arrays: list[Value], made: Value, out: Value, ws: Value
    ) -> list[Value]:
        """The arrays that it gives."""
        program = self.part.program
        code.call(self.function, *self.given(arrays), out if self.loops else made, ws)
        if not self.loops:
            put_constants(code, self.layout, f, made)
            index, n = Value("ptr", self.index), i64(len(self.layout.index))
            code.call(f"take_{f.name}", made, index, out, n)
        starts = accumulate(program.output_sizes[:-1], initial=0)
        return [code.at(out, at, f.type) for at in starts]

"""Programs as C99: one file that needs nothing but math.h, for microcontrollers.

Nothing is allocated and nothing is global.  A program of up to a thousand operations is one
function; a longer one is cut into static functions that hand values on in a workspace on the stack,
since compilers take more than linear time over long functions.  Programs with loops: `loop.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError
from ...graph.loop import LoopProgram
from ...graph.program import Program
from ...graph.scalar import Node
from ...graph.schedule import ordered
from ...graph.workspace import PIECE, step_plan
from .body import Body, Entry, Scalar
from .dialect import C99, DECLARATION, Dialect
from .file import Front, block, wrapped
from .loop import loops_text

__all__ = ["c_source"]


def c_source(
    program: Program | LoopProgram,
    scalar: str = "double",
    names: Sequence[str] | None = None,
    results: Sequence[str] | None = None,
    about: str = "",
    dialect: Dialect = C99,
    prefix: str = "",
) -> str:
    """A file with one public function, `void NAME(const double *q, …, double *tau, …)`.

    scalar: "double" or "float"; names, results: of the arguments and results, made valid in C.
    about: what is computed, in lines, for the comment at the top.
    dialect: C99; DECLARATION, its header; or CUDA: a header with the code for CUDA (nvcc and NVRTC)
    and C++.
    prefix: put before the name of the program, so that like functions of two robots can be linked.
    """
    if scalar not in ("double", "float"):
        raise ArgumentError(f"{program.name}: scalar is {scalar!r}; C has 'double' and 'float'")
    if results is None:
        results = getattr(program.form, "_fields", None)
    front = Front(program, Scalar(scalar), names, results, about, dialect, prefix)
    if dialect is DECLARATION:
        return front.declaration()
    if isinstance(program, LoopProgram):
        return loops_text(front, program)
    return _Straight(front, program).text()


class _Straight:
    """What every part of a straight-line file refers to."""

    def __init__(self, front: Front, program: Program) -> None:
        self.front, self.program = front, program
        self.plan = step_plan(ordered(program.values))
        # at least as many as there will be parts
        most = len(self.plan.pieces) + len(program.values) // PIECE + 1
        self.parts = [f"{front.name}_part{i + 1}" for i in range(most)]
        front.settle(self.parts)

    def text(self) -> str:
        """The whole file."""
        bodies = self.bodies()
        texts, lines = self.several(bodies) if len(bodies) > 1 else ([], bodies[0].lines)
        used = {name for body in bodies for name in body.arrays}
        code = "\n\n".join([*texts, self.front.function(lines, used)])
        size = self.plan.slots * self.front.scalar.bytes
        workspace = [f"Workspace on the stack: {size} bytes."] if size else []
        return self.front.file(f"straight-line {self.front.dialect.name}", code, workspace)

    def bodies(self) -> list[Body]:
        """The statements, in lots that compile quickly."""
        scalar = self.front.scalar
        inputs = [entry for a in self.front.arguments for entry in a.entries]
        outputs = [entry for a in self.front.results for entry in a.entries]
        places: dict[int, list[Entry]] = {}
        for node, entry in zip(self.program.values, outputs, strict=True):
            places.setdefault(node.id, []).append(entry)
        pieces = [[step.node for step in piece] for piece in self.plan.pieces] or [[]]
        bodies = [Body(scalar, nodes, self.plan.slot, inputs, places) for nodes in pieces]
        # results that need no operation come last, and may be many
        rest = [(n, e) for n, e in zip(self.program.values, outputs, strict=True) if _is_leaf(n)]
        for i, (node, entry) in enumerate(rest):
            if i and not i % PIECE:
                bodies.append(Body(scalar, [], {}, inputs, {}))
            bodies[-1].copy(node, entry)
        return bodies

    def several(self, bodies: list[Body]) -> tuple[list[str], list[str]]:
        """A function for each body, and the lines that call them in turn."""
        front, kind = self.front, f"struct {self.front.name}_work"
        texts, calls = [x for x in [front.dialect.parts] if x], []
        if self.plan.slots:
            texts.append(f"{kind} {{\n    {front.scalar.name} v[{self.plan.slots}];\n}};")
            calls.append(f"{kind} w;")
        for name, body in zip(self.parts, bodies, strict=False):
            arrays = [a for a in front.arrays if a.name in body.arrays]
            head = front.head(front.dialect.part, name, arrays, [f"{kind} *w"] * body.workspace)
            texts.append(block(head, body.lines))
            given = [a.name for a in arrays] + ["&w"] * body.workspace
            calls.append(wrapped(f"{name}(", given, ");"))
        return texts, calls


def _is_leaf(node: Node) -> bool:
    return node.op in ("const", "input")

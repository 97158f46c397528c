"""Linear systems of one matrix on a card: kernels whose threads have columns of their solutions.

What they have in common is in `solver.py`.
"""

from __future__ import annotations

from ...graph.systems import Systems
from ..llvm.flavor import Flavor
from .launch import HEAD, Launch
from .solver import DECLARED
from .systems_columns import ColumnsSolver
from .systems_rows import RowsSolver
from .thread import special_registers

__all__ = ["solver_module"]


def solver_module(
    systems: Systems, scalar: str, strict: bool, layout: str = "rows"
) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched.

    `run` takes pointers to the numbers of m and, if there are R, to theirs, in tiles; for each
    result a pointer, and with layout="columns" the bytes from one entry to the next; then the
    number of samples.  strict: as in `kernel.py`.
    """
    kind = ColumnsSolver if layout == "columns" else RowsSolver
    solver = kind(systems, Flavor(1, scalar, fused=True), strict)
    parts = [HEAD, DECLARED, special_registers(), *solver.tables(), solver.text()]
    return "\n".join(parts), solver.launch

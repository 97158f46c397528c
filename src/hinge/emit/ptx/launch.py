"""How a kernel is launched: what its text expects of the blocks that run it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DATA_LAYOUT", "HEAD", "Launch"]

DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
# what every module for a card begins with
HEAD = f"""target datalayout = "{DATA_LAYOUT}"
target triple = "nvptx64-nvidia-cuda"
attributes #0 = {{ nounwind }}
attributes #1 = {{ nounwind }}
!0 = !{{!"branch_weights", i32 1, i32 100000}}
"""


class Launch(NamedTuple):
    """The blocks of a kernel.

    threads: of a block; samples: that a block works at in one go.
    shared: bytes of dynamic shared memory of a block.
    scratch: bytes of global memory of a block that is resident, 0 if it needs none.
    persistent: blocks go on from samples to samples, so that the grid is what fits the card; else
    there is a block for each `samples`.
    as_written: its instructions are best left in their order.
    cooperative: its blocks wait for each other, and must run all at once.
    """

    threads: int
    samples: int
    shared: int = 0
    scratch: int = 0
    persistent: bool = False
    as_written: bool = False
    cooperative: bool = False

"""Scans along paths on a card: their code, and their launches.

The arguments of such a kernel are said in `emit/ptx/path_scan.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import numpy as np

from .artifact import Source
from .launcher import Launcher

if TYPE_CHECKING:
    from ..graph.path_scan import PathScan
    from .cuda import Cuda

__all__ = ["CardScan"]


@final
class CardScan:
    """The kernel of a scan, compiled if it is not in the cache."""

    def __init__(
        self,
        make: Callable[[], PathScan],
        name: str,
        dtype: np.dtype,
        backend: Cuda,
        key: str | None,
    ) -> None:
        """key: what tells the scan from others; without one it is made in any case."""
        artifact = Source(make, name, dtype, strict=False, key=key).artifact(backend)
        arrays = len(artifact.inputs) + len(artifact.outputs)
        self.launcher = Launcher(backend.card, artifact.code, 2 * arrays + 7, scratch=False)

    def start(self, values: list[int], lanes: int, stream: int) -> None:
        """Launch, with the arguments as numbers."""
        self.launcher.start(values, self.launcher.blocks(lanes), stream)

"""A robot to be looked at: pictures in files, and the studio in the browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .kinematics import Kinematics

__all__ = ["Sight"]


class Sight(Kinematics):
    """How a robot is shown."""

    def draw(
        self,
        q: ArrayLike | None = None,
        path: str | Path | None = None,
        size: tuple[int, int] = (800, 600),
    ) -> np.ndarray:
        """A picture of the robot at q, neutral by default: (height, width, 3) of 0 … 255.

        Of a batch (…, nq) the first is drawn as it is, the others as ghosts.  path: a file to write
        it to, PNG, SVG or PDF by the ending.  No display is needed.
        """
        from ..viewer.output import PICTURES, check_ending, picture, write_picture

        if path is not None:
            check_ending(f"draw of {self.name!r}", path, PICTURES)
        pixels = picture(self, self.neutral() if q is None else q, size)
        if path is not None:
            write_picture(path, pixels)
        return pixels

"""A robot to be looked at: pictures in files, and the studio in the browser."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..runtime.arguments import single
from .kinematics import Kinematics

if TYPE_CHECKING:
    from ..viewer.scene import Scene

__all__ = ["Sight"]


class Sight(Kinematics):
    """How a robot is shown."""

    def view(
        self,
        q: ArrayLike | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
        browser: bool = True,
    ) -> Scene:
        """Open a page that shows the robot at q (nq,); needs `hinge[view]`.

        Without q it is neutral, but within its limits, and on the floor of its file if it has one.
        The scene that comes back moves it with `show(q)`; `wait()` keeps a program alive meanwhile.
        host: "0.0.0.0" lets other machines look; if the port is taken, the next one is used;
        browser: open it, or only say the address.
        """
        from ..viewer.scene import Scene
        from ..viewer.stance import standing

        where = f"view of {self.name!r}"
        start = self._argument("q", standing(self) if q is None else q)
        return Scene(self, single(where, [start])["q"], host, port, browser)

    def draw(
        self,
        q: ArrayLike | None = None,
        path: str | Path | None = None,
        size: tuple[int, int] = (800, 600),
    ) -> np.ndarray:
        """A picture of the robot at q, or as `view` shows it: (height, width, 3) of 0 … 255.

        Of a batch (…, nq) the first is drawn as it is, the next seven as ghosts.  path: a file to
        write it to: PNG, SVG or PDF by the ending, or HTML, a page to turn it round; for that one
        `hinge[view]` is needed, for the others no display and nothing else.
        """
        from ..viewer.output import PAGES, PICTURES, check_ending, picture, write_picture
        from ..viewer.stance import standing

        where = f"draw of {self.name!r}"
        if isinstance(q, (str, PathLike)):
            raise ArgumentError(
                f"{where}: q is {q!r}; expected a configuration; give the file as path={q!r}"
            )
        ending = None if path is None else check_ending(where, path, (*PICTURES, *PAGES))
        q = standing(self) if q is None else q
        pixels = picture(self, q, size)
        if path is not None and ending in PAGES:
            from ..viewer.page import write_page

            write_page(where, path, self, np.zeros(1), np.asarray(q, dtype=float)[None])
        elif path is not None:
            write_picture(where, path, pixels)
        return pixels

"""Pictures and films of a robot in files: PNG, SVG and PDF; GIF and MP4; HTML is `page`'s."""

from __future__ import annotations

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, HingeError
from ..runtime.progress import progress
from ..write.whole import check_place, written_whole
from .actor import MOST_DRAWN, Actor, Place, all_poses, place_of
from .arrows import Arrows, check_arrows, lengths, solid_arrows
from .camera import Camera
from .gif import write_gif
from .look import Look, look_of
from .mesh import Mesh
from .picture import NOTHING, Floor, Solid, draw, gathered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FILMS",
    "PAGES",
    "PICTURES",
    "check_ending",
    "check_size",
    "film",
    "picture",
    "write_figure",
    "write_film",
    "write_picture",
]

PICTURES, FILMS, PAGES = (".png", ".svg", ".pdf"), (".gif", ".mp4"), (".html",)
_SIZE = (800, 600)
_FRAMES = 25  # of a film in a second
_GHOST = 0.3  # how much of its colours a ghost keeps
_AZIMUTH = -0.9


def picture(
    actor: Actor,
    q: Any,
    size: tuple[int, int] = _SIZE,
    azimuth: float = _AZIMUTH,
    forces: Any = None,
) -> np.ndarray:
    """A robot at q (nq,), (height, width, 3) of 0 … 255; of a batch the first, and some ghosts.

    forces: points and vectors in world axes, each (n, 3).
    """
    check_size(f"draw of {actor.name!r}", size)
    poses = all_poses(actor, q)
    poses = poses.reshape(-1, *poses.shape[-3:])[:MOST_DRAWN]
    look = look_of(actor.mechanism)
    arrows = check_arrows(f"draw of {actor.name!r}", forces)
    place = place_of(actor.mechanism, look, poses)
    return _Stage(actor, look, place, size, azimuth).frame(poses, Arrows.together([arrows]))


def film(
    actor: Actor,
    t: np.ndarray,
    q: np.ndarray,
    size: tuple[int, int] = _SIZE,
    forces: Any = None,
) -> Iterator[np.ndarray]:
    """The pictures of a motion, t (T,) and q (T, …, nq), as many a second as a film has, each made
    when it is asked for.

    forces: points and vectors in world axes, each (T, n, 3).
    """
    check_size(f"draw of a motion of {actor.name!r}", size)
    look = look_of(actor.mechanism)
    count = max(int(round((t[-1] - t[0]) * _FRAMES)), 1)
    index = np.searchsorted(t, t[0] + np.arange(count + 1) / _FRAMES).clip(0, len(t) - 1)
    poses = all_poses(actor, q[index].reshape(len(index), -1, q.shape[-1])[:, :MOST_DRAWN])
    arrows = check_arrows(f"draw of a motion of {actor.name!r}", forces, (len(t),))
    stage = _Stage(actor, look, place_of(actor.mechanism, look, poses), size, _AZIMUTH)
    for i, X in zip(index, progress(poses, "drawing"), strict=True):
        yield stage.frame(X, arrows.at(i))


class _Stage:
    """Where a robot is drawn: its look and its ghosts', a camera, the floor."""

    def __init__(
        self, actor: Actor, look: Look, place: Place, size: tuple[int, int], azimuth: float
    ) -> None:
        self.look, self.size = look, size
        self.extent, self.newton = place.size, lengths(actor.mechanism, place.size)
        self.camera = Camera.around(place.points, azimuth, aspect=size[0] / size[1])
        reach = place.size / 2 + 1e-9
        self.floor = Floor(self.camera, size, place.ground, place.middle, reach)
        self.ghosts = [[_ghost(mesh) for mesh in meshes] for meshes in look.visuals]

    def frame(self, poses: np.ndarray, arrows: Arrows) -> np.ndarray:
        """A picture of robots (n, 1 + n_bodies, 4, 4), all but the first as ghosts, and forces."""
        # a sample that is not finite is nowhere
        parts = [
            gathered(self.look.visuals if i == 0 else self.ghosts, X)
            for i, X in enumerate(poses)
            if np.isfinite(X).all()
        ]
        parts.append(gathered([solid_arrows(arrows, self.extent, self.newton)], np.eye(4)[None]))
        return draw(Solid.together([NOTHING, *parts]), self.camera, *self.size, self.floor)


def _ghost(mesh: Mesh) -> Mesh:
    return replace(mesh, rgba=None, colors=_GHOST * mesh.paint + (1 - _GHOST) * 0.93)


def write_picture(where: str, path: str | Path, pixels: np.ndarray) -> None:
    """As PNG, SVG or PDF, by the ending."""
    from PIL import Image

    image, height, width = Image.fromarray(pixels), *pixels.shape[:2]
    with written_whole(where, path) as beside:
        if Path(path).suffix.lower() != ".svg":
            image.save(beside)
            return
        data = BytesIO()
        image.save(data, format="PNG")
        link = f"data:image/png;base64,{b64encode(data.getvalue()).decode()}"
        size = f'width="{width}" height="{height}"'
        start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">'
        beside.write_text(f'{start}<image {size} href="{link}"/></svg>\n', encoding="utf-8")


def write_figure(where: str, path: str | Path, figure: Figure) -> None:
    """A figure of matplotlib, in any format that it knows, by the ending."""
    endings = tuple(f".{name}" for name in figure.canvas.get_supported_filetypes())
    ending, room = check_ending(where, path, endings), BytesIO()
    # in memory first: what matplotlib raises where a file cannot grow is not always that error
    figure.savefig(room, format=ending[1:])
    with written_whole(where, path) as beside:
        beside.write_bytes(room.getvalue())


def write_film(where: str, path: str | Path, frames: Iterator[np.ndarray]) -> None:
    """As GIF or MP4, by the ending, frame by frame."""
    with written_whole(where, path) as beside:
        if Path(path).suffix.lower() == ".mp4":
            _write_mp4(where, path, beside, frames)
        else:
            write_gif(beside, frames, _FRAMES)


def _write_mp4(where: str, path: str | Path, beside: Path, frames: Iterator[np.ndarray]) -> None:
    program = _ffmpeg(where, path)
    first = next(frames)
    height, width = first.shape[:2]
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(_FRAMES)]
    # of the format that every player knows, which has even sizes
    made = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", "-vcodec", "libx264"]
    command = [program, "-y", "-loglevel", "error", *given, "-i", "-", *made]
    command += ["-movflags", "+faststart", str(beside)]
    with (
        TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) as run,
    ):
        pipe: Any = run.stdin
        # it may have gone already: what it said is told below
        with suppress(BrokenPipeError):
            for frame in chain([first], frames):
                pipe.write(frame.tobytes())
            pipe.close()
        run.wait()
        said.seek(0)
        words = said.read().decode(errors="replace").strip().partition("\n")[0]
    if run.returncode:
        raise HingeError(f"{where}: cannot write {str(path)!r}: ffmpeg says: {words}")


def _ffmpeg(where: str, path: str | Path) -> str:
    found = shutil.which("ffmpeg")
    if found is None and find_spec("imageio_ffmpeg"):
        found = import_module("imageio_ffmpeg").get_ffmpeg_exe()
    if found is None:
        raise HingeError(
            f"{where}: cannot write {str(path)!r}: MP4 needs the program ffmpeg; install it, or "
            f"`pip install imageio-ffmpeg`, or write a .gif"
        )
    return found


def check_size(where: str, size: tuple[int, int]) -> None:
    """Refuse what is not the width and height of a picture, in pixels."""
    whole = np.shape(size) == (2,) and all(isinstance(x, (int, np.integer)) for x in size)
    if not whole or min(size) < 1:
        raise ArgumentError(f"{where}: size is {size!r}; expected (width, height) in pixels")


def check_ending(where: str, path: Any, known: tuple[str, ...]) -> str:
    """The ending of the path of a file, if one with it can be written here."""
    check_place(where, path)
    ending = Path(path).suffix.lower()
    if ending not in known:
        raise ArgumentError(f"{where}: cannot write {str(path)!r}; expected {', '.join(known)}")
    if ending == ".mp4":
        _ffmpeg(where, path)
    return ending

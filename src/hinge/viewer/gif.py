"""Films as GIF, frame by frame: one is written before the next is made, and of each what changed.

A file is a header, and for each frame its delay, its place, its colours and its pixels; Pillow
makes the latter, as a picture of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["write_gif"]

_COLORS = 128
_LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_HEAD, _PLACE = 13, 10  # bytes before the colours of a file, and before those of a picture


def write_gif(path: Path, frames: Iterator[np.ndarray], rate: int) -> None:
    """Write frames (height, width, 3), as many a second, with the colours of the first for all."""
    from PIL import Image

    palette: Any = None
    before = np.zeros((0, 0))
    with open(path, "wb") as file:
        for pixels in frames:
            picture = Image.fromarray(pixels)
            if palette is None:
                # the same colours for all, so that nothing flickers
                picture = palette = picture.quantize(_COLORS)
                height, width = pixels.shape[:2]
                file.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0x70, 0, 0) + _LOOP)
            else:
                picture = picture.quantize(palette=palette, dither=Image.Dither.NONE)
            now = np.asarray(picture)
            file.write(_frame(picture, _changed(before, now), 100 // rate))
            before = now
        file.write(b"\x3b")


def _changed(before: np.ndarray, now: np.ndarray) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of where two frames differ, a pixel if they are the same."""
    if before.shape != now.shape:
        return 0, 0, now.shape[1], now.shape[0]
    off = before != now
    rows, columns = (np.flatnonzero(off.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return 0, 0, 1, 1
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _frame(picture: Any, box: tuple[int, int, int, int], delay: int) -> bytes:
    """A frame as a file has it: shown for a delay in 1/100 s, then left where it is."""
    room = BytesIO()
    picture.crop(box).save(room, format="GIF", interlace=False)
    data = room.getvalue()
    size = data[10] & 7  # of the table of colours: 2^(size + 1)
    table = data[_HEAD : _HEAD + 3 * 2 ** (size + 1)]
    at = _HEAD + len(table)
    while data[at] == 0x21:  # extensions, in blocks that begin with their length
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    _, _, _, width, height, _ = struct.unpack("<BHHHHB", data[at : at + _PLACE])
    control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 4, delay, 0, 0)
    place = struct.pack("<BHHHHB", 0x2C, box[0], box[1], width, height, 0x80 | size)
    return control + place + table + data[at + _PLACE : -1]

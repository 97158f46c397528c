"""Files that are there whole or not at all: written beside their place, and moved there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from ..errors import ArgumentError

__all__ = ["check_place", "written_whole"]


def check_place(where: str, path: Any) -> Path:
    """Where a file of this path is or will be, behind links; refuse what no file can be put at."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise ArgumentError(f"{where}: the path is {path!r}; expected the name of a file")
    try:
        place = Path(os.path.realpath(path))
        found = _status(place)
    except (OSError, ValueError) as problem:
        raise _refusal(where, path, problem) from None
    why = ""
    if found is not None and not stat.S_ISREG(found.st_mode):
        why = "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is no regular file"
    elif found is not None and not os.access(place, os.W_OK):
        why = "it is protected against writing"
    elif not place.parent.is_dir():
        why = f"there is no folder {str(Path(path).parent)!r}"
    if why:
        raise ArgumentError(f"{where}: cannot write {_shortened(path)}: {why}")
    return place


def _status(place: Path) -> os.stat_result | None:
    """Of a file, if there is one."""
    try:
        return place.stat()
    except FileNotFoundError:
        return None


@contextmanager
def written_whole(where: str, path: Any, overwrite: bool = True) -> Iterator[Path]:
    """A file to write to, of the same ending, in the same folder; it takes the place of the path
    when that is done, with the mode of a file that was there, and is gone if it fails.
    """
    place = check_place(where, path)
    beside = place.with_name(f".{token_hex(8)}{Path(path).suffix}")
    try:
        old = _status(place) if overwrite else None
        # nobody else reads what takes the place of a file that only its owner may read
        mode = 0o666 if old is None else 0o600
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield beside
        if old is not None:
            os.chmod(beside, stat.S_IMODE(old.st_mode))
        if not overwrite:
            # who comes first has the name
            open(place, "x").close()
        _moved(beside, place, overwrite)
    except OSError as problem:
        raise _refusal(where, path, problem) from None
    finally:
        with suppress(OSError):
            os.unlink(beside)


def _moved(beside: Path, place: Path, overwrite: bool) -> None:
    """Move a file to its place; what only kept the name free goes if that fails."""
    try:
        os.replace(beside, place)
    except OSError:
        if not overwrite:
            os.unlink(place)
        raise


def _refusal(where: str, path: Any, problem: Exception) -> ArgumentError:
    if isinstance(problem, FileExistsError):
        why = "it is there already"
    else:
        why = getattr(problem, "strerror", None) or str(problem)
    return ArgumentError(f"{where}: cannot write {_shortened(path)}: {why}")


def _shortened(path: Any) -> str:
    """A path as it was given, a long one from its end."""
    text = os.fspath(path)
    return repr(text if len(text) <= 200 else f"…{text[-100:]}")

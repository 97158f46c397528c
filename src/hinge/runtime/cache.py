"""Compiled code kept on disk: in the user's cache folder, for this user's eyes only.

A file is used only if it is a plain one, it and the folder belong to this user, nobody else can
write them or put others in their place, and the digest in its head fits its name and what follows;
anything else is ignored, as if it were not there.  Files are written aside and renamed, so readers
and writers never meet.  Without a usable folder (no home, read-only) nothing is kept, and
everything still works.  Past a limit, what was not used for longest is dropped; a process that is
about to read it compiles anew.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

try:
    # hashlib has the same, but loads OpenSSL first, which takes longer than finding a kernel
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["LIMIT", "clear", "digest", "folder", "info", "load", "store"]

_MAGIC = b"hinge-kernel-2\n"
# in bytes; when there is more, the oldest go until so much of it is left
LIMIT, _LEFT = 500_000_000, 0.8
# seconds: when a use is noted again, and when a file that is still being written is a lost one
_USE_NOTED, _LOST = 3600.0, 86400.0
_hash = partial(blake2b, digest_size=32)


def digest(*parts: str | bytes) -> str:
    """A key made of everything that the code depends on."""
    h = _hash()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def folder() -> Path | None:
    """The cache folder, made if need be; None if there is none that can be trusted."""
    try:
        path = _place()
        if not path.is_absolute():
            return None
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if _is_ours(os.stat(path)) and path.is_dir() and _is_safe(path) else None
    except (OSError, RuntimeError):
        return None


def _place() -> Path:
    if sys.platform == "win32":
        return _named("LOCALAPPDATA", "AppData/Local") / "hinge/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/hinge"
    return _named("XDG_CACHE_HOME", ".cache") / "hinge"


def _named(variable: str, otherwise: str) -> Path:
    """The folder that a variable names, or one at home.

    A name that is relative counts for nothing (XDG Base Directory Specification 0.8): what lies in
    the folder that a program happens to be run in may have come with somebody's archive.
    """
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / otherwise


def _is_ours(status: os.stat_result) -> bool:
    """Whether the owner is this user and nobody else may write."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_safe(path: Path) -> bool:
    """Whether no stranger can put another folder in the place of this one, or of one above it.

    Links on the way and folders above belong to this user or to whoever the whole system does, and
    where everybody may write, only owners may rename (as in /tmp).
    """
    if not hasattr(os, "geteuid"):
        return True
    trusted, resolved = {os.geteuid(), 0, os.lstat("/").st_uid}, os.path.realpath(path)
    for part in {*_with_above(str(path)), *_with_above(resolved)}:
        status = os.lstat(part)
        open_to_all = not stat.S_ISLNK(status.st_mode) and status.st_mode & stat.S_IWOTH
        if status.st_uid not in trusted or (open_to_all and not status.st_mode & stat.S_ISVTX):
            return False
    return True


def _with_above(path: str) -> Iterator[str]:
    """A path and the folders above it."""
    while path != (above := os.path.dirname(path)):
        yield path
        path = above


# what is opened is looked at before it is read: no link is followed, no pipe waited for
_READ = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


def load(key: str) -> bytes | None:
    """What was stored under the key, if it is there and sound."""
    place = folder()
    if place is None:
        return None
    try:
        with open(place / key, "rb", opener=lambda path, _: os.open(path, _READ)) as file:
            status = os.fstat(file.fileno())
            plain = stat.S_ISREG(status.st_mode) and status.st_size <= LIMIT
            data = file.read() if plain and _is_ours(status) else b""
    except OSError:
        return None
    head = len(_MAGIC)
    expected, payload = data[head : head + 32], data[head + 32 :]
    if not data.startswith(_MAGIC) or _seal(key, payload) != expected:
        return None
    if time.time() - status.st_mtime > _USE_NOTED:
        _touch(place / key)
    return payload


def _seal(key: str, payload: bytes) -> bytes:
    """What ties a payload to its key: the file of another key is not sound under this one."""
    return bytes.fromhex(digest(key, payload))


def _touch(path: Path) -> None:
    """Note that a file was used, if that is possible."""
    with suppress(OSError):
        os.utime(path)


def store(key: str, payload: bytes) -> None:
    """Keep the payload under the key, if that is possible."""
    import tempfile

    place = folder()
    if place is None:
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _seal(key, payload) + payload)
        os.replace(temporary, place / key)
    except OSError:
        pass
    finally:
        # where it was not renamed: no room, a folder in the way, an interrupt
        with suppress(OSError):
            os.unlink(temporary)
    _tidy(place)


def _tidy(place: Path) -> None:
    """Drop what was not used for longest, if there is too much, and files never finished."""
    known = []
    for file in _files(place):
        with suppress(OSError):
            status = file.lstat()
            known.append((status.st_mtime, status.st_size, file))
    total, now = sum(size for _, size, _ in known), time.time()
    least = LIMIT * _LEFT if total > LIMIT else LIMIT
    for used, size, file in sorted(known):
        if total > least or (file.name.startswith(".new-") and now - used > _LOST):
            # another process may be faster, or still read it where that is in the way
            with suppress(OSError):
                file.unlink()
            total -= size


def info() -> tuple[Path | None, int, int]:
    """Where the cache is, how many kernels it has, and how many bytes."""
    place = folder()
    sizes = []
    for file in _files(place):
        # one may be gone by now
        with suppress(OSError):
            sizes.append(file.lstat().st_size)
    return place, len(sizes), sum(sizes)


def clear() -> int:
    """Throw everything away; how many files that were."""
    files = _files(folder())
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def _files(place: Path | None) -> list[Path]:
    """Whatever is in the folder, but for folders."""
    if place is None:
        return []
    with suppress(OSError):
        return [f for f in place.iterdir() if f.is_symlink() or not f.is_dir()]
    return []

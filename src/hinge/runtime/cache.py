"""Compiled code kept on disk: in the user's cache folder, for this user's eyes only.

A file is used only if the folder and the file belong to this user, nobody else can write them, and
the digest in its head fits what follows; anything else is ignored, as if it were not there.  Files
are written aside and renamed, so readers and writers never meet.  Without a usable folder (no home,
read-only) nothing is kept, and everything still works.  Past a limit, what was not used for longest
is dropped; a process that is about to read it compiles anew.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

try:
    # hashlib has the same, but loads OpenSSL first, which takes longer than finding a kernel
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["LIMIT", "clear", "digest", "folder", "info", "load", "store"]

_MAGIC = b"hinge-kernel-1\n"
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
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if _is_ours(os.stat(path)) and path.is_dir() else None
    except (OSError, RuntimeError):
        return None


def _place() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "hinge/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/hinge"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hinge"


def _is_ours(status: os.stat_result) -> bool:
    """Whether the owner is this user and nobody else may write."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def load(key: str) -> bytes | None:
    """What was stored under the key, if it is there and sound."""
    place = folder()
    if place is None:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(place / key, "rb", opener=lambda path, _: os.open(path, flags)) as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status):
                return None
            data = file.read()
    except OSError:
        return None
    head = len(_MAGIC)
    expected, payload = data[head : head + 32], data[head + 32 :]
    if not data.startswith(_MAGIC) or _hash(payload).digest() != expected:
        return None
    if time.time() - status.st_mtime > _USE_NOTED:
        _touch(place / key)
    return payload


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
            file.write(_MAGIC + _hash(payload).digest() + payload)
        os.replace(temporary, place / key)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
    _tidy(place)


def _tidy(place: Path) -> None:
    """Drop what was not used for longest, if there is too much, and files never finished."""
    known = []
    for file in _files(place):
        with suppress(OSError):
            status = file.stat()
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
            sizes.append(file.stat().st_size)
    return place, len(sizes), sum(sizes)


def clear() -> int:
    """Throw everything away; how many files that were."""
    files = _files(folder())
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def _files(place: Path | None) -> list[Path]:
    return [f for f in place.iterdir() if f.is_file()] if place else []

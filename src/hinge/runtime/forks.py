"""Locks that a fork waits for, and properties that need none.

A fork has all the memory of its parent, but of its threads only the one that forked: what another
was in the middle of stays so for ever, and a lock that it held is never let go.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["MAKING", "fork_safe_lock", "made_once"]

T = TypeVar("T")


def fork_safe_lock() -> threading.RLock:
    """A lock that is free in every fork, since no fork happens while it is held elsewhere.

    For a lock that lives as long as the process.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


# held by who traces or compiles, LLVM does one thing at a time anyway, and by who imports what that
# needs: a fork would have a module that nobody finishes
MAKING = fork_safe_lock()


class made_once(Generic[T]):  # noqa: N801
    """A `functools.cached_property` without the lock that it has in Python 3.11, held meanwhile.

    Threads that make the same at once all get what the first of them made.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        if owner is None:
            return self  # pyright: ignore[reportReturnType]
        return owner.__dict__.setdefault(self._name, self._make(owner))

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


class _Making:
    """Held by whoever traces or compiles, and by who imports what that needs, any number of threads
    at once; a fork waits until none of the others does, or it would have a module, a graph or an
    LLVM that nobody finishes.
    """

    def __init__(self) -> None:
        self._changed, self._depth = threading.Condition(), dict[int, int]()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._wait, after_in_parent=self._go_on, after_in_child=self._alone
            )

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._depth[me] = self._depth.get(me, 0) + 1

    def __exit__(self, *error: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._depth[me] -= 1
            if not self._depth[me]:
                del self._depth[me]
                self._changed.notify_all()

    def _wait(self) -> None:
        self._changed.acquire()
        while self._depth.keys() - {threading.get_ident()}:
            self._changed.wait()

    def _go_on(self) -> None:
        self._changed.release()

    def _alone(self) -> None:
        # others may have been waiting to fork
        self._changed = threading.Condition()


MAKING = _Making()


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

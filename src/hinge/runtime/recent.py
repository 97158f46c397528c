"""What was made lately, and may be forgotten: bounded caches, which are emptied together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final
from weakref import WeakSet

from .forks import fork_safe_lock

__all__ = ["MOST", "Recent", "clear_caches"]

# how many are kept, some 0.2 MiB each: more laws than a program goes round in
MOST = 64

_NOTHING = object()
_LOCK = fork_safe_lock()
_ALL: WeakSet[Recent] = WeakSet()


@final
class Recent:
    """The last that were made or asked for; what is dropped lives on where it is in use."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        with _LOCK:
            _ALL.add(self)

    def __len__(self) -> int:
        return len(self._made)

    def get(self, asked: Any, make: Callable[[], Any]) -> Any:
        """What was made when the same was asked before, or is made now."""
        found = self._made.get(asked, _NOTHING)
        if found is _NOTHING:
            # without the lock: it may take long, and ask for others
            found = make()
        with _LOCK:
            # the newest is the last
            self._made[asked] = found = self._made.pop(asked, found)
            while len(self._made) > MOST:
                del self._made[next(iter(self._made))]
            return found

    def clear(self) -> None:
        """Drop all of them."""
        with _LOCK:
            self._made.clear()


def clear_caches() -> None:
    """Drop the kernels of laws, grounds, constraints of motions and tasks of inverse kinematics.

    Of each robot the last 64 stay in memory, so that the next call is quick; they are found on disk
    or compiled again when they are needed.  Kernels of a robot's methods stay as long as it.
    """
    with _LOCK:
        caches = list(_ALL)
    for cache in caches:
        cache.clear()

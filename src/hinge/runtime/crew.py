"""Threads that share work which is still being made, for as long as it lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, final

__all__ = ["Crew"]


@final
class Crew:
    """Threads that do one thing to item after item while these are made.

    The caller makes them and waits: an interrupt comes to him, and what it might leave half done,
    such as a lock that LLVM's package has taken, would keep the others waiting for ever.  Where no
    more threads are started, because the interpreter is about to end, he does all of it.
    """

    def __init__(self, work: Callable[[Any], bytes], most: int) -> None:
        self._work, self._most = work, most
        self._waiting: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._made: dict[int, bytes] = {}
        self._failed: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def results(self, items: Iterable[Any]) -> list[bytes]:
        """What the work gives, in the order of the items."""
        try:
            for pair in enumerate(items):
                self._waiting.put(pair)
                if len(self._threads) < self._most:
                    self._begin()
            if not self._threads:
                self._run(self._waiting.get_nowait)
        except BaseException as error:
            # an interrupt, or what the items had to say: nobody begins anything more
            self._failed.append(error)
        self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        for error in self._failed:
            raise error
        return [self._made[i] for i in range(len(self._made))]

    def _begin(self) -> None:
        thread = threading.Thread(target=self._run, args=(self._waiting.get,), daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self._threads.append(thread)

    def _run(self, take: Callable[[], tuple[int, Any] | None]) -> None:
        with suppress(Empty):
            while (pair := take()) is not None:
                self._do(*pair)
            # for the others: also one that an interrupt kept from being counted
            self._waiting.put(None)

    def _do(self, i: int, item: Any) -> None:
        try:
            if not self._failed:
                self._made[i] = self._work(item)
        except BaseException as error:
            self._failed.append(error)

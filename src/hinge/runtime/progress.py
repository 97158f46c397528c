"""What a program does when it takes long, on a terminal: a line that counts, or a bar."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["during", "progress"]

T = TypeVar("T")
_PATIENCE = 1.0
_TICK = 0.2  # s between two states of a line
_SCREEN = threading.Lock()  # held by whoever has something on the terminal


def progress(
    items: Iterable[T], label: str, share: Callable[[], float] | None = None
) -> Iterator[T]:
    """Yield the items; once this has taken a second on a terminal, show how far it is.

    share: how much is done, from 0 to 1, where the number of items does not say it.
    """
    total = 1 if share else len(items) if isinstance(items, Sized) else None
    if (total == 1 and not share) or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    start, shown = time.monotonic(), False
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(label, total=total, visible=False)
        try:
            for item in items:
                yield item
                late = time.monotonic() - start > _PATIENCE
                shown = shown or (late and _SCREEN.acquire(blocking=False))
                bar.update(task, completed=share() if share else None, visible=shown)
                bar.advance(task, 0 if share else 1)
                if shown:
                    bar.refresh()
        finally:
            if shown:
                _SCREEN.release()


@contextmanager
def during(what: str) -> Iterator[None]:
    """While this is done say so on a terminal, from the first second on, and for how long."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(what: str, over: threading.Event) -> None:
    began, shown = time.monotonic(), False
    while not over.wait(_TICK if shown else _PATIENCE):
        shown = shown or _SCREEN.acquire(blocking=False)
        if shown:
            seconds = time.monotonic() - began
            print(f"\r{what} … {seconds:.0f} s", end="", file=sys.stderr, flush=True)
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        _SCREEN.release()

"""A progress bar for work that turns out to be long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

__all__ = ["progress", "tell_if_long"]

T = TypeVar("T")
_PATIENCE = 1.0
_HALF_A_SECOND = 5000


def progress(items: Iterable[T], label: str) -> Iterator[T]:
    """Yield the items; once this has taken a second on a terminal, show how far it is."""
    total = len(items) if isinstance(items, Sized) else None
    if total == 1 or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(label, total=total, visible=False)
        for item in items:
            yield item
            late = time.monotonic() - start > _PATIENCE
            bar.update(task, advance=1, visible=late, refresh=False)
            if late:
                bar.refresh()


def tell_if_long(what: str, operations: int) -> None:
    """Say on a terminal what is being done, if so many operations take more than half a second."""
    if operations > _HALF_A_SECOND and sys.stderr.isatty():
        print(f"{what} ({operations} operations) …", file=sys.stderr)

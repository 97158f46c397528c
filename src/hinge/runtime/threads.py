"""A batch shared out over threads; compiled code runs without the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from .forks import MAKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["in_parallel", "limited", "one_blas_thread", "thread_count"]

_HERE = threading.local()


def in_parallel(
    work: Callable[[int, int], None], size: int, grain: int, threads: int | None, most: int
) -> None:
    """work(begin, end) over 0 … size, in parts that begin at multiples of the grain.

    threads: None for as many as there are cores; most: no more than are worth it.
    """
    wanted = max(1, min(thread_count(threads), most, -(-size // grain)))
    if wanted == 1:
        work(0, size)
        return
    step = -(-size // (wanted * grain)) * grain
    parts = [(i, min(i + step, size)) for i in range(0, size, step)]
    futures: list[Future[None]] = []
    try:
        futures.extend(_pool(os.getpid()).submit(work, *part) for part in parts[1:])
        work(*parts[0])
        for future in futures:
            future.result()
    except BaseException:
        # they write into arrays of the caller's, who is about to let go of them
        while not all(future.done() for future in futures):
            with suppress(BaseException):
                futures[-1].result(timeout=0.1)
        raise


def thread_count(threads: int | None) -> int:
    """So many threads; for None all cores, or as many as this thread is limited to."""
    return max(1, getattr(_HERE, "most", None) or _cores() if threads is None else threads)


@contextmanager
def limited(most: int) -> Iterator[None]:
    """What this thread loads and calls takes so many threads, where nobody said how many."""
    before = getattr(_HERE, "most", None)
    _HERE.most = most
    try:
        yield
    finally:
        _HERE.most = before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """NumPy's linear algebra on one thread meanwhile: thousands of small factorisations spend more
    on waking several threads than on arithmetic, and keep cores from everything else.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process: a fork has none of its parent's."""
    with MAKING:
        from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=max(2, _cores()), thread_name_prefix="hinge")

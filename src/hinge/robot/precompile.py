"""Methods compiled before they are called, several at once, and kept on disk.

A method is compiled by calling it, for one sample and for a batch, with numbers that do not matter.
Where there is a cache, other processes do it, each with a method of its own at a time: tracing is
Python, which one process does on one core.  They are told what to do line by line, and this process
finds the code on disk.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, HingeError, SingularError
from ..model.mechanism import did_you_mean
from ..runtime import cache
from ..runtime.check import check_whole
from ..runtime.progress import progress
from ..runtime.threads import thread_count
from ..specialize.arrays import array_shape
from .method import Method
from .settings import settled

if TYPE_CHECKING:
    from .front import Front

__all__ = ["precompile", "serve"]


def precompile(
    robot: Front,
    names: tuple[str, ...],
    leads: tuple[tuple[int, ...], ...],
    processes: int | None,
    settings: Mapping[str, Any],
) -> dict[str, float]:
    """Compile methods, all that need nothing but arrays and these settings if none is named.

    leads: the leading shapes to call them with.  How many seconds each took.
    """
    where = f"precompile of {robot.name!r}"
    known = {m.name: m for m in _methods(type(robot))}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ArgumentError(f"{where}: no compiled method is called {name!r}; {hint}")
    if not leads:
        raise ArgumentError(f"{where}: neither single nor batch is asked for; leave one of them on")
    chosen = names or [n for n, m in known.items() if not _missing(m, robot, settings)]
    strange = [n for n in settings if not any(n in _settings(known[c]) for c in chosen)]
    if strange:
        raise ArgumentError(
            f"{where}: {' and '.join(strange)} is no setting of {', '.join(chosen[:5])}; leave it "
            f"out, or name methods that take it"
        )
    most = thread_count(None) if processes is None else check_whole(where, "processes", processes)
    makers = min(most, len(chosen)) if cache.folder() else 1
    title, took = f"compiling methods of {robot.name}", {}
    if makers > 1:
        done = _by_others(robot, chosen, (leads, settings), makers)
        took = dict(progress(_Counted(done, len(chosen)), title))
    for name in progress([n for n in chosen if n not in took], title):
        try:
            took[name] = _compile(robot, known[name], leads, settings)
        except HingeError:
            # of all methods, those that this mechanism has no answer to are left out
            if names:
                raise
    return {name: took[name] for name in chosen if name in took}


class _Counted:
    """Items of which it is known how many there are at most."""

    def __init__(self, items: Iterable[Any], count: int) -> None:
        self._items, self._count = items, count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._count


def _methods(kind: type) -> list[Method]:
    """The compiled methods of a class, once each."""
    found = (x for base in reversed(kind.__mro__) for x in vars(base).values())
    return list(dict.fromkeys(x for x in found if isinstance(x, Method)))


def _settings(method: Method) -> list[str]:
    return [p.name for p in method.parameters if not p.is_array and p.name != "out"]


def _missing(method: Method, robot: Front, settings: Mapping[str, Any]) -> bool:
    """Whether it needs a setting that is not given."""
    needed = [p.name for p in method.of(robot) if p.required and not p.is_array]
    return any(n not in settings for n in needed)


def _compile(
    robot: Front, method: Method, leads: Iterable[tuple[int, ...]], settings: Mapping[str, Any]
) -> float:
    """Call a method; how long that took, in seconds."""
    start, where = time.perf_counter(), f"{method.name} of {robot.name!r}"
    own = {n: x for n, x in settings.items() if n in _settings(method)}
    split = method.split_per_sample
    fixed = {n: settled(robot.mechanism, where, n, x, split) for n, x in own.items()}
    arrays = [p.name for p in method.parameters if p.is_array and p.required]
    arrays += robot.parameters
    for lead in leads:
        given = {n: _numbers(robot, n, lead, fixed) for n in arrays}
        try:
            method.call(robot, (), {**given, **own})
        except SingularError:
            # what matters is the code
            continue
    return time.perf_counter() - start


def _numbers(
    robot: Front, name: str, lead: tuple[int, ...], static: Mapping[str, Any]
) -> np.ndarray:
    """Any sound numbers of an array."""
    rng = np.random.default_rng(0)
    if name in ("q", "q0", "q1"):
        return robot.random_configuration(rng, lead)
    if name in robot.parameters:
        from ..model.parameters import parameters

        return np.broadcast_to(x := parameters(robot.mechanism)[name], lead + x.shape)
    return rng.uniform(0.1, 1.0, lead + array_shape(robot.mechanism, name, static))


# other processes

_SERVE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hinge.robot.precompile import serve; serve()"
)


def _by_others(
    robot: Front, names: Iterable[str], how: tuple[Any, ...], count: int
) -> Iterator[tuple[str, float]]:
    """Names and seconds as other processes finish them; what they cannot do is left out."""
    waiting, done = SimpleQueue[str](), SimpleQueue[Any]()
    for name in names:
        waiting.put(name)
    task = pickle.dumps((robot, *how))
    makers = [_Maker(task, waiting, done) for _ in range(count)]
    try:
        running = count
        while running:
            found = done.get()
            if found is None:
                running -= 1
            else:
                yield found
    finally:
        for maker in makers:
            maker.stop()


class _Maker:
    """Another process, and the thread that tells it what is next."""

    def __init__(self, task: bytes, waiting: SimpleQueue[str], done: SimpleQueue[Any]) -> None:
        self._task, self._waiting, self._done = task, waiting, done
        command = [sys.executable, "-c", _SERVE, json.dumps(sys.path)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        tell: Any = self._process.stdin
        hear: Any = self._process.stdout
        try:
            tell.write(len(self._task).to_bytes(8, "little") + self._task)
            while not self._waiting.empty():
                name = self._waiting.get_nowait()
                tell.write(f"{name}\n".encode())
                tell.flush()
                seconds = json.loads(hear.readline())
                if seconds is not None:
                    self._done.put((name, seconds))
        except (OSError, ValueError, Empty):
            # it is gone, or another took the last name: what is not done is done here
            pass
        finally:
            self._done.put(None)

    def stop(self) -> None:
        """Let it go, whatever it does."""
        self._process.kill()
        self._thread.join()
        self._process.communicate()


def serve() -> None:
    """Compile, in a process for that, the methods that are named line by line."""
    given, said = sys.stdin.buffer, sys.stdout
    # nobody else is to write there
    sys.stdout = sys.stderr
    size = int.from_bytes(given.read(8), "little")
    robot, leads, settings = pickle.loads(given.read(size))
    known = {m.name: m for m in _methods(type(robot))}
    for line in given:
        name = line.decode().strip()
        try:
            seconds = _compile(robot, known[name], leads, settings)
        except Exception:
            # said again, with its words, where it was asked for
            seconds = None
        print(json.dumps(seconds), file=said, flush=True)

"""One line in a process of its own: a round that crashes or hangs is a finding, not the end.

The worker writes a row of JSON when a round is over; what it writes nothing about was its last.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from .lines import Line, all_lines

__all__ = ["MOST_FAILURES", "rounds", "work"]

ROOT = Path(__file__).parents[2]
# a line that fails so often is left alone
MOST_FAILURES = 10


def work(name: str, seed: int, seconds: float) -> None:
    """Rounds of a line until the time is over, each reported."""
    line, end, failures = all_lines()[name], time.monotonic() + seconds, 0
    channel, sys.stdout = sys.stdout, sys.stderr
    for number in itertools.count():
        try:
            count, worst, compared = line.round(line.rng(seed, number))
            row = {"round": number, "count": int(count), "worst": float(worst)}
            row["compared"] = int(count if compared is None else compared)
        except Exception as error:
            failures += 1
            row = {"round": number, "failed": told(error), "trace": traceback.format_exc()[-2000:]}
        print(json.dumps(row), file=channel, flush=True)
        over = time.monotonic() > end or number + 1 == line.rounds
        if over or failures == MOST_FAILURES:
            return


def told(error: BaseException) -> str:
    """An error in a line of text."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def rounds(line: Line, seed: int, seconds: float) -> Iterator[dict[str, Any]]:
    """What a worker reports, round by round; a crash and a hang as failures of the next one."""
    command = [sys.executable, "-m", "tests.campaign", "--work", line.name]
    command += ["--seed", str(seed), "--seconds", str(seconds)]
    with tempfile.TemporaryFile("w+") as said:
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True)
        reported: SimpleQueue[str] = SimpleQueue()
        listener = Thread(target=_listen, args=(worker.stdout, reported), daemon=True)
        listener.start()
        number, how = 0, ""
        try:
            while row := reported.get(timeout=line.limit):
                yield json.loads(row)
                number += 1
            if worker.wait():
                how = f"ended with {worker.returncode}"
        except Empty:
            how = f"hung for {line.limit:g} s"
        finally:
            worker.kill()
            worker.wait()
            listener.join()
        if how:
            said.seek(0)
            trace = said.read()[-2000:]
            yield {"round": number, "failed": f"the process {how}", "trace": trace}


def _listen(pipe: Any, reported: SimpleQueue[str]) -> None:
    """Hand on every row, and "" at the end."""
    with pipe:
        for row in pipe:
            reported.put(row)
    reported.put("")

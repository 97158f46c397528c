"""`python -m bench.scan`: forward dynamics of one long mechanism, by a sweep and by scans.

One state of `zoo.snake(N)`, taking turns: the sweep and the scan on the CPU, and the scan on a card
where there is one, in tensors of PyTorch that stay there.  Writes the table of its page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hinge

PAGE = Path(__file__).parent.parent / "docs" / "theory" / "log_depth.md"
BEGIN, END = "<!-- bench.scan -->", "<!-- end -->"
LINKS = (1024, 4096, 16384)
ROUNDS = 7


def cards() -> list[str]:
    """The card that can be used, if there is one."""
    try:
        import torch
    except ImportError:
        return []
    return ["cuda"] if torch.cuda.is_available() else []


def ways(links: int, dtype: str) -> dict[str, Callable[[], np.ndarray]]:
    """What is timed, each with its result on the host."""
    robot = hinge.Robot(hinge.zoo.snake(links).mechanism, dtype)
    rng = np.random.default_rng(links)
    q = robot.random_configuration(rng).astype(dtype)
    qd, tau = rng.normal(size=(2, robot.nv)).astype(dtype)
    found: dict[str, Callable[[], np.ndarray]] = {
        "sweep, CPU": lambda: robot.forward_dynamics(q, qd, tau),
        "scan, CPU": lambda: robot.forward_dynamics(q, qd, tau, method="scan"),
    }
    for device in cards():
        found["scan, card"] = _on_card(robot.to(device), device, (q, qd, tau))
    return found


def _on_card(robot: Any, device: str, arrays: Sequence[np.ndarray]) -> Callable[[], np.ndarray]:
    import torch

    there = [torch.as_tensor(x, device=device) for x in arrays]

    def run() -> Any:
        qdd = robot.forward_dynamics(*there, method="scan")
        torch.cuda.synchronize()
        return qdd

    return run


def timed(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of each, the least of rounds in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def rows(dtype: str) -> Iterator[str]:
    """A line for each length, and before them the head of the table."""
    head = False
    for links in LINKS:
        runs = ways(links, dtype)
        results = {name: run() for name, run in runs.items()}
        for _ in range(2):
            seconds = timed(runs)
        if not head:
            head = True
            yield f"| links, {dtype} | {' | '.join(runs)} | apart |"
            yield f"|---:{'|---:' * (len(runs) + 1)}|"
        there = results.get("scan, card")
        scan = results["scan, CPU"] if there is None else there.cpu().numpy()
        sweep = results["sweep, CPU"]
        apart = np.abs(scan - sweep).max() / np.abs(sweep).max()
        cells = [f"{1e6 * seconds[name]:.0f} µs" for name in runs]
        line = f"| {links} | {' | '.join(cells)} | {apart:.0e} |"
        print(line, flush=True)
        yield line


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.scan", description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to be written")
    options = parser.parse_args()
    found = "\n\n".join("\n".join(rows(dtype)) for dtype in ("float64", "float32"))
    print(found)
    text = options.page.read_text() if options.page.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    options.page.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()

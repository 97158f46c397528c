"""Robots, kernels and rollouts on a cluster, through Dask: many states, many parameters.

tau = hinge.cluster.map(robot.inverse_dynamics, q, qd, qdd)              # arrays of Dask, in blocks
found = hinge.cluster.study(rollout, points, {"worst": hinge.cluster.most(0)}, steps=1000)

Dask is imported when one of them is called: the extra `cluster` installs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .points import grid, samples
from .reductions import (
    Reduction,
    collected,
    highest,
    histogram,
    least,
    lowest,
    mean,
    most,
    total,
)
from .trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..runtime.kernel import Kernel
    from ..runtime.rollout import Rollout
    from .points import Points

__all__ = [
    "Reduction",
    "Trouble",
    "collected",
    "grid",
    "highest",
    "histogram",
    "least",
    "lowest",
    "map",
    "mean",
    "most",
    "samples",
    "study",
    "total",
]


def __dir__() -> list[str]:
    return __all__


def map(
    what: Kernel | Rollout | Callable[..., Any],
    *arrays: Any,
    report: bool = False,
    device: str | None = None,
    threads: int = 1,
    **settings: Any,
) -> Any:
    """A compiled method of a robot, a kernel or a rollout on arrays of Dask, chunked over samples.

    tau = hinge.cluster.map(robot.inverse_dynamics, q, qd, qdd)

    Called as it is itself, and gives what it gives, as arrays of Dask.
    report: give also an array with an entry per block, None or a `Trouble`; a block that fails is
    then NaN, and the others are delivered.  Otherwise it raises, and NaN is passed on.
    device: where blocks are worked on, "cpu", "cuda", or "auto": the card of a worker that has one;
    None for where it lives.  threads: how many work on a block.
    """
    where = "hinge.cluster.map"
    _require_dask(where)
    from .blocks import mapped
    from .work import check_place, work_of

    work, takes, lives = work_of(where, what, arrays, settings)
    return mapped(work, takes, check_place(where, device, threads, lives), report)


def study(
    what: Kernel | Rollout | Callable[..., Any],
    points: Points,
    reduce: Mapping[str, Reduction],
    size: int = 4096,
    device: str | None = None,
    threads: int = 1,
    **settings: Any,
) -> Any:
    """Something at all points, reduced on the workers: what Dask computes to findings by name.

    what: a compiled method, a kernel, a rollout, or any function; it is called with blocks of the
    points, arrays (n, …) by their names, and with the settings.
    reduce: names and reductions: `{"worst": hinge.cluster.most(lambda q, qd: q[-1, :, 0])}`.
    size: how many points are in a block.  device, threads: as of `map`.

    found = hinge.cluster.study(swing, points, {"mean": hinge.cluster.mean()}).compute()

    Samples that are not finite, and blocks that fail, are left out and named: `found.troubles`.
    """
    where = "hinge.cluster.study"
    _require_dask(where)
    from .findings import studied

    return studied(where, what, points, reduce, size, settings, (device, threads))


def _require_dask(where: str) -> None:
    # a folder of that name, where Python looks for modules, is no package
    found = [find_spec("dask"), find_spec("distributed")]
    if any(spec is None or spec.origin is None for spec in found):
        raise ArgumentError(
            f"{where} needs Dask, which is not installed: pip install 'hinge-dynamics[cluster]'"
        )

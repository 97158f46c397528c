"""Forward and hybrid dynamics of one state by many lanes: the sweeps of `log_depth.py` as scans.

Bodies, path after path, are cut into stretches, one for each lane.  Every scan goes the same way:
each lane sweeps its stretch to what it does as a whole, those are joined in log₂(lanes) steps, and
each lane sweeps its stretch again from what then reaches it.  What is done is a plan
(`scan_plan.py`), carried out by a CPU (`scan_host.py`) or on a card (`scan_card.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics
from ..errors import ArgumentError
from ..model.parameters import PARAMETERS
from ..runtime.arguments import Argument, broadcast
from ..runtime.entry import Entry
from ..specialize.arrays import array_shape
from .results import as_results
from .scan_host import OnHost
from .scan_plan import Places, Plan

if TYPE_CHECKING:
    from .front import Front

__all__ = ["ByScan", "Way"]

# into how many stretches the bodies of a level are cut: what vectors on a few threads hold
_LANES = 32


class Way(Protocol):
    """What carries out a plan."""

    def __call__(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The results of one state, of arrays of the host."""
        ...

    def there(
        self, given: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> list[Any] | None:
        """The same of arrays that live where it is carried out; None if some do not."""
        ...


@final
class ByScan:
    """The answer of `method="scan"`, state by state."""

    def __init__(
        self, robot: Front, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]
    ) -> None:
        self.robot, self.arrays, self.static = robot, arrays, static
        _refuse_what_scans_do_not_know(robot, name, arrays)
        self._shapes = {n: array_shape(robot.mechanism, n, static) for n in arrays}
        given = arrays, static.get("active")
        self.way: Way
        if robot.device == "cpu":
            self.way = OnHost(robot, Plan(Places(robot.mechanism, _LANES, 1), *given))
        else:
            from .scan_card import OnCard, places_on

            self.way = OnCard(robot, Plan(places_on(robot), *given))

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        values = broadcast(where, given)
        dtype = self.robot.dtype
        lead, count = values["q"].shape[:-1], 2 if "qdd_active" in values else 1
        whole = np.empty((count, *lead, self.robot.nv), dtype)
        for at in np.ndindex(*lead):
            state = {n: x[at].astype(dtype) for n, x in values.items()}
            for part, x in zip(whole, self.way(state), strict=True):
                part[at] = x
        results = as_results(self.robot, where, list(whole), out, entries=1)
        return HybridDynamics(*results) if count == 2 else results[0]

    def on_card(self, given: Mapping[str, Any]) -> Any:
        """The same of one state in arrays on the card, which it does not leave; else None."""
        results = self.way.there(given, self._shapes)
        if results is None:
            return None
        return HybridDynamics(*results) if len(results) == 2 else results[0]

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Scans are put together in Python; on a card they come there by the short way."""
        if self.robot.device == "cpu":
            return None
        from ..runtime.card_entry import handing_entry

        return handing_entry(otherwise)


def _refuse_what_scans_do_not_know(robot: Front, name: str, arrays: tuple[str, ...]) -> None:
    known = next((a for a in arrays if a in PARAMETERS), "")
    why = f"{known} comes with each sample" if known else "joints mimic others"
    if known or robot.mechanism.has_followers:
        raise ArgumentError(
            f"{name} of {robot.name!r}: {why}, which a scan does not know; leave out method='scan'"
        )

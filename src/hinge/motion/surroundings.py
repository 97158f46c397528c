"""What acts on a robot besides its motors: stops at the limits of its joints, and the ground."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.mechanism import Mechanism
from ..robot import Robot
from ..specialize.canonical import Reframed
from .compliant import pressed
from .ground import Ground
from .stops import Stops
from .touching import Spot

__all__ = ["NOTHING", "Surroundings", "moved_spots"]


@dataclass(frozen=True)
class Surroundings:
    """Stops and ground, each if there is one; part of the key of a kernel."""

    stops: Stops | None = None
    ground: Ground | None = None

    @property
    def rigid(self) -> bool:
        """Whether the ground is one that steps are solved for."""
        return self.ground is not None and self.ground.rigid

    def stopped(self, mech: Mechanism, q: Any, qd: Any, pace: Any) -> Any:
        """The joint forces of stops."""
        return 0.0 if self.stops is None else self.stops.forces(mech, q, qd, pace)

    def f_ext(self, mech: Mechanism, form: Reframed, f_ext: Any, q: Any, qd: Any) -> Any:
        """Forces on the bodies of a form of the mechanism, those of compliant ground added."""
        if self.ground is None or self.rigid:
            return f_ext
        law = self.ground.compliance(mech)
        there = moved_spots(self.ground.spots(mech), form)
        push = pressed(form.mechanism, there, self.ground.surface, law, q, qd).f_ext
        return push if f_ext is None else push + f_ext

    # by kernels of a robot, for arrays

    def stops_called(self, robot: Robot, q: Any, qd: Any, pace: float) -> Any:
        """The joint forces of stops: (…, nv)."""
        stops, mech = self.stops, robot.mechanism
        if stops is None:
            return 0.0

        def stop_forces(q: Any, qd: Any, pace: Any) -> Any:
            return stops.forces(mech, q, qd, pace)

        return robot._keep(("stops", stops), lambda: robot.compile(stop_forces))(q, qd, pace)

    def f_ext_called(self, robot: Robot, f_ext: Any, q: Any, qd: Any) -> Any:
        """The forces on the bodies: (…, n_bodies, 6)."""
        if self.ground is None or self.rigid:
            return f_ext
        push = self.ground.called(robot, q, qd).f_ext
        return push if f_ext is None else push + f_ext


NOTHING = Surroundings()


def moved_spots(spots: list[Spot], form: Reframed) -> list[Spot]:
    """The spots in the frames of a form."""
    return [s._replace(at=_at(form.frames[s.body].inv @ np.array(s.at))) for s in spots]


def _at(x: Any) -> tuple[float, float, float]:
    a, b, c = (float(e) for e in x)
    return a, b, c

"""What acts on a robot besides its motors, stops at the limits of its joints and the ground, and
the effort limits of the motors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.small import clip
from ..errors import ArgumentError, warn_of_model
from ..model.mechanism import Mechanism
from ..robot import Robot
from ..runtime.check import check_choice
from ..specialize.canonical import Reframed
from .compliant import pressed
from .ground import Ground
from .stops import Stops, stops_of
from .touching import Spot

__all__ = [
    "NOTHING",
    "Surroundings",
    "moved_spots",
    "refuse_points_that_nothing_presses",
    "surroundings_of",
    "warn_of_cut_off_forces",
]

_TOUCHES = 1e-9  # m
_NAMED = 4  # joints, of those whose forces are cut off
_SAME = 1e-6  # of a limit, beyond which more is asked for
# of a force, added to what is left of it: nothing, but of one that is not finite
_TRACE = 1e-200


@dataclass(frozen=True)
class Surroundings:
    """Stops and ground, each if there is one, and the effort limits of all DoF if any has one; part
    of the key of a kernel.
    """

    stops: Stops | None = None
    ground: Ground | None = None
    efforts: tuple[float, ...] | None = None

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

    def driven(self, tau: Any) -> Any:
        """Joint forces of motors (nv,), each cut off at its effort limit; ±∞ and NaN stay so."""
        if self.efforts is None:
            return tau
        return np.array([_cut_off(x, most) for x, most in zip(tau, self.efforts, strict=True)])

    # by kernels of a robot, for arrays

    def driven_called(self, tau: np.ndarray) -> np.ndarray:
        """The same of numbers (…, nv)."""
        if self.efforts is None:
            return tau
        most = np.array(self.efforts, tau.dtype)
        return np.where(np.isinf(tau) & (most > 0), tau, np.clip(tau, -most, most))

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


def surroundings_of(where: str, robot: Robot, ground: Any, limits: Any) -> Surroundings:
    """Stops, ground and effort limits of a robot, checked."""
    if ground is not None and not isinstance(ground, Ground):
        raise ArgumentError(f"{where}: ground is {ground!r}; expected a hinge.Ground")
    if ground is not None:
        ground.spots(robot.mechanism)
    if not check_choice(where, "limits", limits, (True, False)):
        return Surroundings(None, ground)
    stops = robot._keep("stops", lambda: stops_of(robot.mechanism))
    efforts = robot.effort_limit
    bounded = np.isfinite(efforts).any()
    return Surroundings(stops, ground, tuple(efforts.tolist()) if bounded else None)


def refuse_points_that_nothing_presses(
    where: str, robot: Robot, ground: Ground | None, q: np.ndarray
) -> None:
    """On rigid ground, where such points touch it at the start (…, nq); elsewhere they never do."""
    if ground is None or not ground.rigid:
        return
    mech = robot.mechanism
    if not (points := robot._keep(("unpressed", ground), lambda: ground.unpressed(mech))):
        return
    there = ground.positions(robot, q).reshape(-1, len(ground.points), 3)
    for i in points:
        if min(ground.surface.nearest(p)[0] for p in there[:, i]) < _TOUCHES:
            raise ArgumentError(
                f"{where}: no joint moves point {ground.points[i].frame!r} along the normal of the "
                f"ground that it touches: nothing says how hard it presses, so that rigid ground "
                f"has no normal force and no friction for it; let the robot move there too, by a "
                f"slide or a free base, or take law='compliant', which presses by its depth"
            )


def moved_spots(spots: list[Spot], form: Reframed) -> list[Spot]:
    """The spots in the frames of a form."""
    return [s._replace(at=_at(form.frames[s.body].inv @ np.array(s.at))) for s in spots]


def _cut_off(x: Any, most: float) -> Any:
    if most == np.inf:
        return x
    return clip(x, -most, most) + (_TRACE * x if most else 0.0)


def _at(x: Any) -> tuple[float, float, float]:
    a, b, c = (float(e) for e in x)
    return a, b, c


def warn_of_cut_off_forces(where: str, robot: Robot, tau: np.ndarray) -> None:
    """Say, once for a robot, which joints are asked for more than their effort limits."""
    limit = robot.effort_limit
    beyond = np.any((np.abs(tau) > limit * (1 + _SAME)).reshape(-1, robot.nv), axis=0)
    if beyond.any():
        robot._keep("cut off forces", lambda: _warn(where, robot, beyond, limit))


def _warn(where: str, robot: Robot, beyond: np.ndarray, limit: np.ndarray) -> None:
    joints = [b.joint_name for b in robot.mechanism.bodies[1:] if b.joint.mimic is None]
    own = [(n, robot.v_slice(n)) for n in joints]
    names = [
        f"{n} ({', '.join(f'{x:g}' for x in np.unique(limit[at][beyond[at]]))})"
        for n, at in own
        if beyond[at].any()
    ]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    warn_of_model(
        f"{where}: joint forces are cut off at the effort limits, of {', '.join(names[:_NAMED])}"
        f"{more}; limits=False leaves out stops and effort limits, and hinge.edit.with_joint gives "
        f"a joint another effort_limit"
    )

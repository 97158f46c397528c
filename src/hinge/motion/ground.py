"""The ground: which points of a robot may touch it, where it is, and how it pushes back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import algorithms
from ..errors import ArgumentError, ModelWarning
from ..model.mechanism import Mechanism, did_you_mean
from ..model.parameters import with_parameters
from ..model.shapes import Shape
from ..robot import Robot
from ..runtime.check import check_choice, check_number, check_whole
from .compliant import Compliance, Pressed, pressed
from .rigid import RigidGround, Stepped
from .terrain import HeightField, Plane, Terrain
from .touching import Spot, moves_along_normal, touches

__all__ = ["Ground", "GroundPoint"]

_YIELDS = 1e-3  # m, which the ground gives way where a quarter of the weight stands on a point
_DISSIPATION, _SLIP_SPEED = 2.0, 0.1  # s/m; m/s
_SWEEPS = 10
_NAMED = 4  # frames, in words
_LOOKS = 3  # configurations
# which law a setting is for
_FOR = {
    "stiffness": "compliant",
    "dissipation": "compliant",
    "slip_speed": "compliant",
    "restitution": "rigid",
    "sweeps": "rigid",
}


class GroundPoint(NamedTuple):
    """A sphere on a frame, or a point, if its radius is 0; at: its centre, in the frame's axes."""

    frame: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0


@dataclass(frozen=True, repr=False)
class Ground:
    """Points and spheres of a robot against a plane or a field of heights.

    points: names of frames, (frame, position in it) or (frame, position, radius).
    friction: Coulomb's coefficient, one or one for each point.
    law: "compliant", springs and dampers for any integrator: Hunt and Crossley's normal force
    k d (1 + c ḋ) at depth d, and Coulomb friction that fades below a slip speed; or "rigid", solved
    for the velocities after each step of semi-implicit Euler.
    height, normal: of a plane through (0, 0, height); terrain: a `HeightField` in its place.
    stiffness k (N/m; None: a quarter of the weight makes 1 mm), dissipation c (s/m), slip_speed
    (m/s): of the compliant law.  restitution, sweeps over all points in a step: of the rigid one.

    Bodies do not collide with each other, and meshes not with anything: MuJoCo does that.
    """

    points: Sequence[Any]
    friction: float | Sequence[float] = 0.8
    law: Literal["compliant", "rigid"] = "compliant"
    height: float = 0.0
    normal: Sequence[float] = (0.0, 0.0, 1.0)
    terrain: HeightField | None = None
    stiffness: float | None = None
    dissipation: float | None = None
    slip_speed: float | None = None
    restitution: float | None = None
    sweeps: int | None = None

    def __post_init__(self) -> None:
        given = (self.points,) if isinstance(self.points, str) else self.points
        self._set("points", tuple(map(_point, given)))
        if not self.points:
            raise ArgumentError("Ground: points is empty; name frames of the robot")
        check_choice("Ground", "law", self.law, ("compliant", "rigid"))
        self._check_friction()
        self._check_place()
        for name, law in _FOR.items():
            if getattr(self, name) is not None and law != self.law:
                raise ArgumentError(
                    f"Ground: {name} is {getattr(self, name)!r}, which belongs to the {law} law; "
                    f"leave it out, or take law={law!r}"
                )
        for name in ("stiffness", "slip_speed"):
            if getattr(self, name) is not None:
                check_number("Ground", name, getattr(self, name), 0)
        for name, most in (("dissipation", np.inf), ("restitution", 1.0)):
            _check_part(name, getattr(self, name), most)
        if self.sweeps is not None:
            check_whole("Ground", "sweeps", self.sweeps)

    def __repr__(self) -> str:
        frames = list(dict.fromkeys(point.frame for point in self.points))
        names = ", ".join(frames[:_NAMED]) + (", …" if len(frames) > _NAMED else "")
        low, high = min(self.frictions), max(self.frictions)
        friction = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        count = f"{len(self.points)} point{'s' * (len(self.points) > 1)}"
        return f"<Ground: {count} on {names}; {self.surface}; friction {friction}, {self.law}>"

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_friction(self) -> None:
        values = np.asarray(self.friction)
        if values.dtype.kind not in "fi" or values.shape not in ((), (len(self.points),)):
            raise ArgumentError(
                f"Ground: friction is {self.friction!r}; expected a number from 0 on, or one for "
                f"each of the {len(self.points)} points"
            )
        for x in values.ravel().tolist():
            _check_part("friction", x, np.inf)
        self._set("friction", float(values) if values.shape == () else tuple(values.tolist()))

    def _check_place(self) -> None:
        n = np.asarray(self.normal, dtype=float)
        if n.shape != (3,) or not np.isfinite(n).all() or not n.any():
            raise ArgumentError(f"Ground: normal is {self.normal!r}; expected three numbers, not 0")
        check_number("Ground", "height", self.height, -np.inf)
        self._set("height", float(self.height))
        self._set("normal", tuple((n / np.linalg.norm(n)).tolist()))
        if self.terrain is None:
            return
        if not isinstance(self.terrain, HeightField):
            raise ArgumentError(
                f"Ground: terrain is {self.terrain!r}; expected a hinge.HeightField; a plane is "
                f"given by height and normal"
            )
        if self.height or self.normal != (0.0, 0.0, 1.0):
            raise ArgumentError(
                "Ground: height and normal are those of a plane, and terrain is given besides"
            )

    @classmethod
    def from_collisions(
        cls, robot: Robot, bodies: Sequence[str] | None = None, **settings: Any
    ) -> Ground:
        """Points taken from what bodies collide as: spheres, ends of capsules, corners of boxes.

        bodies: names, None for all; a long cylinder counts as a capsule of its length, a flat one
        as four points on each rim.  Meshes and ellipsoids are left out, with a warning.
        """
        mech = robot.mechanism
        names = mech.body_names if bodies is None else bodies
        names = (names,) if isinstance(names, str) else names
        points, left = [], []
        for name in names:
            for shape in mech.bodies[mech.body_index(name)].collisions:
                found = list(_ends(shape))
                left += [] if found or shape.kind == "plane" else [f"{shape.kind} of {name}"]
                points += [GroundPoint(name, _three(shape.placement @ at), r) for at, r in found]
        where = f"Ground.from_collisions of {robot.name!r}"
        if not points:
            raise ArgumentError(
                f"{where}: no sphere, capsule, cylinder or box among the collision shapes of "
                f"{', '.join(names)}; give points by frame, position and radius"
            )
        if left:
            warnings.warn(
                f"{where}: left out: {', '.join(left)}; give points for them, by frame, position "
                f"and radius",
                ModelWarning,
                stacklevel=2,
            )
        return cls(tuple(points), **settings)

    # what it is for a mechanism

    @property
    def rigid(self) -> bool:
        """Whether steps are solved for, and no forces known before them."""
        return self.law == "rigid"

    @property
    def frictions(self) -> tuple[float, ...]:
        """The coefficient of each point."""
        return tuple(np.broadcast_to(self.friction, len(self.points)).tolist())

    @property
    def surface(self) -> Terrain:
        """The plane or the field of heights."""
        return self.terrain or Plane(self.height, _three(self.normal))

    def spots(self, mech: Mechanism) -> list[Spot]:
        """The points on their bodies."""
        found = []
        for point in self.points:
            if point.frame not in mech.frame_names:
                hint = did_you_mean(point.frame, mech.frame_names)
                raise ArgumentError(f"Ground: {mech.name!r} has no frame {point.frame!r}; {hint}")
            frame = mech.frame(point.frame)
            if not frame.body:
                raise ArgumentError(
                    f"Ground: frame {point.frame!r} of {mech.name!r} does not move; name one of a "
                    f"body that can touch the ground"
                )
            at = frame.placement @ np.array(point.at)
            found.append(Spot(frame.body, _three(at), point.radius))
        return found

    def compliance(self, mech: Mechanism) -> Compliance:
        """The numbers of the compliant law, those that were not given too."""
        k, c, slip = self.stiffness, self.dissipation, self.slip_speed
        if k is None:
            pull = float(np.linalg.norm(np.array(mech.gravity, dtype=float))) or 9.81
            k = 0.25 * float(algorithms.total_mass(mech)) * pull / _YIELDS
        c, slip = _DISSIPATION if c is None else c, _SLIP_SPEED if slip is None else slip
        return Compliance(k, c, slip, self.frictions)

    def rigid_law(self, spots: Sequence[Spot]) -> RigidGround:
        """The rigid law for points on bodies."""
        sweeps = _SWEEPS if self.sweeps is None else self.sweeps
        return RigidGround(spots, self.surface, self.frictions, self.restitution or 0.0, sweeps)

    def act(self, robot: Robot | Mechanism, q: Any, qd: Any) -> Pressed:
        """What the compliant ground does to one sample, of any scalar: f_ext and the forces.

        f_ext (n_bodies, 6) as the dynamics take it; forces (points, 3) in world axes.
        """
        mech = robot.mechanism if isinstance(robot, Robot) else robot
        if self.rigid:
            raise ArgumentError(
                "Ground.act: rigid ground has no forces at a state, only over a step; see "
                "Ground.step, or take law='compliant'"
            )
        spots, law = self.spots(mech), self.compliance(mech)
        return pressed(mech, spots, self.surface, law, np.asarray(q), np.asarray(qd))

    def step(
        self,
        robot: Robot | Mechanism,
        q: Any,
        qd: Any,
        tau: Any,
        dt: Any,
        forces: Any = None,
        f_ext: Any = None,
    ) -> Stepped:
        """One step on the rigid ground, of one sample of numbers or traced, for steps of one's own.

        forces: (points, 3), those of the step before, from which the solution starts.
        """
        mech = robot.mechanism if isinstance(robot, Robot) else robot
        if not self.rigid:
            raise ArgumentError(
                "Ground.step: compliant ground pushes with the forces of Ground.act, in a step of "
                "any kind; take law='rigid' to have it solved"
            )
        start = np.zeros((len(self.points), 3)) if forces is None else np.asarray(forces)
        state = np.asarray(q), np.asarray(qd), np.asarray(tau)
        return self.rigid_law(self.spots(mech)).step(mech, *state, f_ext, dt, start)

    def unpressed(self, mech: Mechanism) -> list[int]:
        """The points that no joint moves along the normal, as far as a few configurations tell:
        nothing says how hard these press, and the rigid law has no friction for them.
        """
        rng, left = np.random.default_rng(0), list(range(len(self.points)))
        spots = self.spots(mech)
        for _ in range(_LOOKS):
            q = algorithms.random_configuration(mech, rng)
            found = touches(mech, [spots[i] for i in left], self.surface, q)
            pairs = zip(left, found, strict=True)
            left = [i for i, touch in pairs if not moves_along_normal(mech, touch, q)]
            if not left:
                break
        return left

    def called(self, robot: Robot, q: Any, qd: Any) -> Pressed:
        """The same for arrays (…, nq), (…, nv) of numbers, by a kernel."""
        law = self.compliance(robot.mechanism)

        def ground_forces(mech: Mechanism, q: Any, qd: Any) -> Any:
            return pressed(mech, self.spots(mech), self.surface, law, q, qd)

        return Pressed(*self._by_kernel(robot, ground_forces, q, qd))

    def positions(self, robot: Robot, q: Any) -> np.ndarray:
        """Where points are nearest to the ground: (…, points, 3), world."""

        def ground_positions(mech: Mechanism, q: Any, qd: Any) -> Any:
            return np.array([x.p for x in touches(mech, self.spots(mech), self.surface, q)])

        return self._by_kernel(robot, ground_positions, q, np.zeros(robot.nv))

    def _by_kernel(self, robot: Robot, fn: Any, q: Any, qd: Any) -> Any:
        """A function of the mechanism and a state, the robot's joints placed as its numbers say."""
        moved = robot._numbers.get("placement")

        def plain(q: Any, qd: Any) -> Any:
            return fn(robot.mechanism, q, qd)

        def placed(q: Any, qd: Any, placement: Any) -> Any:
            return fn(with_parameters(robot.mechanism, placement=placement), q, qd)

        asked = ("ground", self, fn.__name__, moved is None)
        kernel = robot._keep_recent(
            asked, lambda: robot.compile(plain if moved is None else placed)
        )
        return kernel(q, qd, *([] if moved is None else [moved]))


def _point(given: Any) -> GroundPoint:
    """A point as it may be given, checked."""
    parts: Any = (given,) if isinstance(given, str) else given
    try:
        frame, at, radius = GroundPoint(*parts)
        place = np.asarray(at, dtype=float)
        sound = isinstance(frame, str) and place.shape == (3,) and 0 <= radius < np.inf
    except (TypeError, ValueError):
        sound, frame, place, radius = False, "", np.zeros(3), 0.0
    if not sound or not np.isfinite(place).all():
        raise ArgumentError(
            f"Ground: a point is {given!r}; expected the name of a frame, (frame, position) or "
            f"(frame, position, radius)"
        )
    return GroundPoint(frame, _three(place), float(radius))


def _check_part(name: str, value: Any, most: float) -> None:
    if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= most):
        top = "on" if most == np.inf else f"to {most:g}"
        raise ArgumentError(f"Ground: {name} is {value!r}; expected a number from 0 {top}")


def _three(x: Any) -> tuple[float, float, float]:
    a, b, c = (float(e) for e in x)
    return a, b, c


def _ends(shape: Shape) -> Iterator[tuple[np.ndarray, float]]:
    """Centres and radii of the spheres that stand for a shape, in its own axes."""
    size = shape.size
    if shape.kind == "sphere":
        yield np.zeros(3), size[0]
    elif shape.kind == "box":
        for corner in product(*((-0.5 * s, 0.5 * s) for s in size)):
            yield np.array(corner), 0.0
    elif shape.kind == "capsule" or (shape.kind == "cylinder" and size[1] >= 2 * size[0]):
        half = 0.5 * size[1] - (size[0] if shape.kind == "cylinder" else 0.0)
        for z in (-half, half):
            yield np.array([0.0, 0.0, z]), size[0]
    elif shape.kind == "cylinder":
        for z, i in product((-0.5, 0.5), range(4)):
            turn = 0.5 * np.pi * i
            yield np.array([size[0] * np.cos(turn), size[0] * np.sin(turn), z * size[1]]), 0.0

"""Slider-crank and four-bar linkages against closed forms in one coordinate.

With T = ½ J(θ) θ̇² and V(θ), a mechanism of one degree of freedom moves by

    J θ̈ + ½ J′ θ̇² + V′ = 0

(L. Eksergian, Dynamical analysis of machines, J. Franklin Inst. 209, 1930; B. Paul, Kinematics and
Dynamics of Planar Machinery, Prentice-Hall 1979, chapter 12).  Positions are closed forms of θ, the
four-bar's by Freudenstein's equation (Trans. ASME 77, 1955); their slopes are taken in 40 digits.
"""

import mpmath as mp
import numpy as np
import pytest

import hinge
from hinge import Inertia, LoopConstraint, MechanismBuilder, Prismatic, Revolute, Transform

# loops turn about y, gravity is along −z; a positive angle lowers what points along x
AXIS, GRAVITY = Revolute((0, 1, 0)), 9.81
CRANK, ROD = 0.3, 0.8
GROUND, DRIVER, COUPLER, FOLLOWER = 1.0, 0.4, 0.9, 0.7
MASSES = (2.0, 1.5, 4.0)
PLANE, REDUNDANT = (3, 5), (0, 2, 3, 4, 5)


def bar(mass, length):
    """A slender one along x, from its joint."""
    spread = mass * length**2 / 12
    return Inertia(mass, (length / 2, 0, 0), np.diag([0.0, spread, spread]))


def along(length):
    return Transform(translation=(length, 0, 0))


def crank_angles(t):
    """Of the crank, and of the rod: sin ψ = −(r/l) sin θ."""
    return t, -mp.asin(mp.mpf(CRANK) / mp.mpf(ROD) * mp.sin(t))


def bar_angles(t):
    """Of the driver, the coupler and the follower."""
    a, b, c, d = map(mp.mpf, (DRIVER, COUPLER, FOLLOWER, GROUND))
    # a cos θ + b cos φ = d + c cos ψ, and the same for the sines; φ eliminated
    x, z = d - a * mp.cos(t), -a * mp.sin(t)
    r = mp.hypot(x, z)
    follower = mp.atan2(z, x) + mp.acos((b * b - c * c - r * r) / (2 * c * r))
    coupler = mp.atan2(z + c * mp.sin(follower), x + c * mp.cos(follower))
    return t, coupler, follower


def slender(mass, length):
    return mp.mpf(mass) * mp.mpf(length) ** 2 / 12


class SliderCrank:
    """Crank, rod, and a piston along x."""

    @staticmethod
    def robot(axes):
        b = MechanismBuilder("slider crank")
        b.add("crank", "world", AXIS, "crank", inertia=bar(MASSES[0], CRANK))
        rod = bar(MASSES[1], ROD)
        b.add("rod", "crank", AXIS, "rod", placement=along(CRANK), inertia=rod)
        b.add("piston", "world", Prismatic((1, 0, 0)), "piston", inertia=Inertia(MASSES[2]))
        b.add_frame("pin", "rod", along(ROD))
        return hinge.Robot(b.build()), [LoopConstraint("pin", "piston", axes)]

    @staticmethod
    def coordinates(t):
        t, rod = crank_angles(t)
        return [t, rod - t, CRANK * mp.cos(t) + ROD * mp.cos(rod)]

    @staticmethod
    def bodies(t):
        """(mass, spread, x, z, angle) of each."""
        t, rod = crank_angles(t)
        x, z = CRANK * mp.cos(t), -CRANK * mp.sin(t)
        return [
            (MASSES[0], slender(MASSES[0], CRANK), x / 2, z / 2, t),
            (MASSES[1], slender(MASSES[1], ROD), x + ROD / 2 * mp.cos(rod), z / 2, rod),
            (MASSES[2], 0, x + ROD * mp.cos(rod), mp.mpf(0), mp.mpf(0)),
        ]


class FourBar:
    """Driver and coupler, and a follower on the ground."""

    @staticmethod
    def robot(axes):
        b = MechanismBuilder("four bar")
        b.add("driver", "world", AXIS, "driver", inertia=bar(MASSES[0], DRIVER))
        coupler, follower = bar(MASSES[1], COUPLER), bar(MASSES[2], FOLLOWER)
        b.add("coupler", "driver", AXIS, "coupler", placement=along(DRIVER), inertia=coupler)
        b.add("follower", "world", AXIS, "follower", placement=along(GROUND), inertia=follower)
        b.add_frame("left", "coupler", along(COUPLER))
        b.add_frame("right", "follower", along(FOLLOWER))
        return hinge.Robot(b.build()), [LoopConstraint("left", "right", axes)]

    @staticmethod
    def coordinates(t):
        t, coupler, follower = bar_angles(t)
        return [t, coupler - t, follower]

    @staticmethod
    def bodies(t):
        """(mass, spread, x, z, angle) of each."""
        parts = [(0, 0, DRIVER), (DRIVER, 0, COUPLER), (0, GROUND, FOLLOWER)]
        found = []
        for mass, angle, (driven, far, length) in zip(MASSES, bar_angles(t), parts, strict=True):
            x = driven * mp.cos(t) + far + length / 2 * mp.cos(angle)
            z = -driven * mp.sin(t) - length / 2 * mp.sin(angle)
            found.append((mass, slender(mass, length), x, z, angle))
        return found


def eksergian(linkage, theta, rate):
    """θ̈ of a free motion."""

    def inertia(t):
        total = 0
        for i, (mass, spread, *_) in enumerate(linkage.bodies(t)):
            x, z, angle = (
                mp.diff(lambda s, i=i, j=j: linkage.bodies(s)[i][j], t) for j in (2, 3, 4)
            )
            total += mass * (x * x + z * z) + spread * angle * angle
        return total

    def height(t):
        return sum(mass * z for mass, _, _, z, _ in linkage.bodies(t))

    bent = mp.diff(inertia, theta) * rate**2 / 2
    return float(-(bent + mp.mpf(GRAVITY) * mp.diff(height, theta)) / inertia(theta))


def state(linkage, theta, rate):
    q = [float(x) for x in linkage.coordinates(mp.mpf(theta))]
    slopes = [mp.diff(lambda t, i=i: linkage.coordinates(t)[i], theta) for i in range(3)]
    return np.array(q), np.array([float(x * rate) for x in slopes])


@pytest.mark.parametrize("axes", [PLANE, REDUNDANT], ids=["plane", "redundant"])
@pytest.mark.parametrize("linkage", [SliderCrank, FourBar])
@pytest.mark.parametrize("theta", [0.3, 1.7, 3.0, 5.5])
def test_accelerations_are_the_closed_form(linkage, theta, axes):
    with mp.workdps(40):
        q, qd = state(linkage, theta, 4.0)
        expected = eksergian(linkage, mp.mpf(theta), 4.0)
    robot, loop = linkage.robot(axes if linkage is FourBar else [a for a in axes if a > 2])
    assert np.abs(robot.alg.constraint_error(q, loop)).max() < 1e-15
    found = robot.constrained_forward_dynamics(q, qd, np.zeros(3), loop).qdd[0]
    assert found == pytest.approx(expected, rel=2e-13)


@pytest.mark.parametrize("linkage", [SliderCrank, FourBar])
def test_long_runs_keep_loops_closed_and_energy(linkage):
    """A minute of turning over, 60 000 steps: a hundred turns."""
    q, qd = state(linkage, 0.3, 12.0)
    robot, loop = linkage.robot(PLANE if linkage is FourBar else (3, 5))
    motion = hinge.simulate(robot, q, qd, duration=60.0, dt=1e-3, constraints=loop, every=100)
    turns = np.abs(motion.q[-1, 0] - q[0]) / (2 * np.pi)
    errors = [np.abs(robot.alg.constraint_error(x, loop)).max() for x in motion.q[::20]]
    assert turns > 50
    assert max(errors) < 1e-7
    assert np.ptp(motion.energy) < 1e-5 * motion.kinetic_energy.max()

"""Units are the user's: in others a robot has the same digits, to the bit for powers of 2."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import hinge
from hinge import Inertia, MechanismBuilder, Robot, Transform, algorithms, zoo
from hinge.operators import Operators
from hinge.robot.report import concerns
from hinge.specialize.canonical import canonical
from mechanisms import EPS, ROBOTS, Generic, assert_close, everything, random_state

EVERYTHING = {n: r for n, r in ROBOTS.items() if r.nv} | {"everything": everything()}


@dataclass(frozen=True)
class Units:
    """What is 1 m, 1 kg and 1 s elsewhere."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    @property
    def work(self) -> float:
        return self.mass * self.length**2 / self.time**2

    def dof(self, mech):
        """Of each degree of freedom: turns have none, slides a length."""
        units = [np.ones(0), *(self.joint_dof(b.joint) for b in leaders(mech))]
        return np.concatenate(units)

    def joint_dof(self, joint):
        turns = np.any(joint.H(np.array(joint.neutral()))[:, :3] != 0, axis=1)
        return np.where(turns, 1.0, self.length)

    def coordinates(self, mech):
        """Of each entry of q."""
        units = [np.ones(0)]
        for b in leaders(mech):
            free = isinstance(b.joint, hinge.Free)
            quaternion = [self.length] * (3 * free) + [1.0] * 4
            units.append(self.joint_dof(b.joint) if b.joint.nq == b.joint.nv else quaternion)
        return np.concatenate(units)

    def state(self, robot, seed):
        """A random state, here and elsewhere."""
        s, u = random_state(robot, seed), self.dof(robot.mechanism)
        wrench = np.repeat([self.work, self.work / self.length], 3)
        q, tau = s.q * self.coordinates(robot.mechanism), s.qdd * self.work / u
        moved = u * s.qd / self.time, u * s.qdd / self.time**2
        return (s.q, s.qd, s.qdd, s.qdd, s.f_ext), (q, *moved, tau, s.f_ext * wrench)

    def mechanism(self, mech):
        """The mechanism with its numbers in these units."""
        joints = {b.joint_name: b.joint for b in mech.bodies[1:]}
        gravity = tuple(np.array(mech.gravity) * self.length / self.time**2)
        bodies = [mech.bodies[0]]
        for b in mech.bodies[1:]:
            I = b.inertia
            inertia = Inertia(
                I.mass * self.mass,
                I.com * self.length,
                I.about_com * self.mass * self.length**2,
            )
            placement, offset = self.pose(b.placement), self.pose(b.offset)
            joint = self.joint(b.joint, joints)
            bodies.append(
                replace(b, joint=joint, placement=placement, offset=offset, inertia=inertia)
            )
        frames = tuple(replace(f, placement=self.pose(f.placement)) for f in mech.frames)
        return replace(mech, bodies=tuple(bodies), frames=frames, gravity=gravity)

    def pose(self, X):
        return Transform(X.rotation, X.translation * self.length)

    def joint(self, joint, joints):
        u = self.joint_dof(joint)
        armature = np.array(joint.armature) * self.work * self.time**2 / u**2
        changed = {"armature": armature, "lower": joint.lower * u, "upper": joint.upper * u}
        if "pitch" in {f.name for f in fields(joint)}:
            changed["pitch"] = joint.pitch * self.length
        if joint.mimic is not None:
            m, (leading,) = joint.mimic, self.joint_dof(joints[joint.mimic.joint])
            changed["mimic"] = replace(m, ratio=m.ratio * u[0] / leading, offset=m.offset * u[0])
        return replace(joint, **changed)


def leaders(mech):
    return [b for b in mech.bodies[1:] if b.joint.mimic is None]


# lengths of picometres to those of moons; total rates have √mass in them: powers of 4
BINARY = [
    Units(2.0**-40, 4.0**-20, 2.0**-20),
    Units(2.0**40, 4.0**20, 2.0**10),
    Units(2.0**10, 4.0**5, 1.0),
    Units(1.0, 4.0**-30, 2.0**13),
]
each_robot = pytest.mark.parametrize("name", EVERYTHING)
each_units = pytest.mark.parametrize("units", BINARY, ids=str)


def digits(*arrays):
    """All numbers without their power of 2."""
    return np.concatenate([np.frexp(np.ravel(np.asarray(a, dtype=float)))[0] for a in arrays])


def numbers_of(mech):
    for b in mech.bodies[1:]:
        M = b.inertia.spatial
        yield from (b.placement.rotation, b.placement.translation, M.mass, M.h, M.J)
        yield from (b.joint.armature, getattr(b.joint, "zero", 0.0), getattr(b.joint, "pitch", 0.0))


@each_units
@each_robot
def test_canonical_frames_have_the_same_digits(name, units):
    mech = EVERYTHING[name].mechanism
    here, there = canonical(mech), canonical(units.mechanism(mech))
    moved = [[X.rotation for X in form.frames] for form in (here, there)]
    assert np.array_equal(*moved)
    got, expected = (digits(*numbers_of(f.mechanism), 1.0) for f in (there, here))
    assert np.array_equal(got, expected)


def calls(robot, q, qd, qdd, tau, f_ext):
    """Results of most algorithms."""
    frame = robot.frame_names[-1]
    yield robot.inverse_dynamics(q, qd, qdd, f_ext)
    yield robot.mass_matrix(q)
    yield robot.bias_forces(q, qd)
    yield robot.gravity_forces(q)
    yield from robot.inverse_dynamics_derivatives(q, qd, qdd)
    yield robot.poses(q)
    yield robot.center_of_mass(q)
    yield robot.momentum(q, qd)
    yield from (robot.kinetic_energy(q, qd), robot.potential_energy(q))
    yield robot.jacobian(q, frame)
    yield robot.frame_acceleration(q, qd, qdd, frame)
    yield robot.forward_dynamics(q, qd, tau, f_ext)
    yield robot.mass_matrix_inverse(q)
    yield from robot.forward_dynamics_derivatives(q, qd, tau)
    yield from robot.hybrid_dynamics(q, qd, qdd, tau, active=np.arange(robot.nv) % 2 == 0)
    if not robot.mechanism.has_followers:
        o = Operators(robot.mechanism, q)
        yield from (o.mass @ qd, o.mass.inv @ tau)
        yield robot.total_rates(q, qd)
        yield robot.diagonal_coriolis(q, robot.total_rates(q, qd))


def both(kind, mech, units):
    """Results of a kind of robot, elsewhere and here."""
    robot, other = Robot(mech), Robot(units.mechanism(mech))
    here, there = units.state(robot, 1)
    return zip(calls(kind(other), *there), calls(kind(robot), *here), strict=True)


@each_units
@each_robot
def test_plain_algorithms_have_the_same_digits(name, units):
    for got, expected in both(Generic, EVERYTHING[name].mechanism, units):
        assert np.array_equal(digits(got), digits(expected))


@pytest.mark.parametrize(
    "name", ["pendulum", *(pytest.param(n, marks=pytest.mark.long) for n in ("gripper", "tree0"))]
)
def test_kernels_have_the_same_digits(name):
    """But for rounding: which constants are alike, and so what is computed once, is chance."""
    for got, expected in both(lambda robot: robot, EVERYTHING[name].mechanism, BINARY[0]):
        got, expected = np.asarray(got), np.asarray(expected)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.nan_to_num(np.round(np.log2(np.abs(expected / got))), posinf=0)
        assert_close(got * 2.0**power, expected, 200 * EPS)


@each_robot
def test_millimetres_and_grams(name):
    """Powers of 10 round: forces, accelerations and the mass matrix of the canonical form."""
    robot, units = EVERYTHING[name], Units(1e3, 1e3)
    (q, qd, qdd, tau, _), there = units.state(robot, 2)
    here, other = (
        canonical(m).mechanism for m in (robot.mechanism, units.mechanism(robot.mechanism))
    )
    u = units.dof(here)
    expected = algorithms.inverse_dynamics(here, q, qd, qdd)
    got = algorithms.inverse_dynamics(other, *there[:3])
    bound = 100 * EPS * max(1, here.n_bodies / 4)
    assert_close(got * u / units.work, expected, bound)
    M = algorithms.mass_matrix(here, q)
    assert_close(algorithms.mass_matrix(other, there[0]) * np.outer(u, u) / units.work, M, bound)
    expected = algorithms.forward_dynamics(here, q, qd, tau)
    got = algorithms.forward_dynamics(other, *there[:2], there[3])
    assert_close(got / u, expected, bound * np.linalg.cond(M))


@each_units
def test_inverse_kinematics_takes_the_same_steps(units):
    mech, q0 = zoo.arm(7).mechanism, np.full(7, 0.3)
    target = algorithms.frame_pose(mech, q0 + 0.4, mech.frame_names[-1])
    there = target.copy()
    there[:3, 3] *= units.length
    # until no step is an improvement
    ends = [
        algorithms.inverse_kinematics(m, q0, (hinge.Task(m.frame_names[-1]),), [X], tolerance=0.0)
        for m, X in ((mech, target), (units.mechanism(mech), there))
    ]
    assert np.array_equal(ends[0].best, ends[1].best)
    assert ends[0].iterations == ends[1].iterations
    assert np.abs(ends[0].error).max() < 100 * EPS


@pytest.mark.long
@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint", "variational"])
@each_units
def test_simulations_go_the_same_way(units, method):
    robot = zoo.acrobot()
    other = Robot(units.mechanism(robot.mechanism))
    here, there = (
        hinge.simulate(r, [0.4, 0.3], duration=0.5 * t, dt=2.0**-8 * t, method=method)
        for r, t in ((robot, 1.0), (other, units.time))
    )
    assert_close(there.q, here.q, 1000 * EPS)
    assert_close(there.qd * units.time, here.qd, 1000 * EPS)


@pytest.mark.parametrize("scale", [1e-30, 1e-21, 1e-12, 1.0, 1e12])
def test_an_inertia_that_no_body_has_is_one_in_all_units(scale):
    def build(moments):
        inertia = Inertia(scale, (0, 0, 0), scale * np.diag(moments))
        return MechanismBuilder("body").add("body", "world", hinge.Free(), inertia=inertia)

    build((1.0, 1.0, 2.0))
    for moments in ((1.0, 1.0, 2.1), (-0.1, 1.0, 1.0)):
        with pytest.raises(hinge.ModelError, match="principal moments"):
            build(moments)


@each_units
def test_what_moves_no_inertia_is_the_same_in_all_units(units):
    b = MechanismBuilder("rod")
    b.add("arm", "world", hinge.Revolute((0, 1, 0)), inertia=Inertia(1.0, (0, 0, 1), np.eye(3)))
    rod = Inertia(1e-3, (0, 0, 0.1), np.diag([1e-5, 1e-5, 0.0]))
    b.add("rod", "arm", hinge.Revolute((0, 0, 1)), inertia=rod)
    b.add("tip", "arm", hinge.Revolute((1, 0, 0)), inertia=rod)
    (concern,) = concerns(units.mechanism(b.build()))
    assert concern.startswith("joint 'rod_joint'")

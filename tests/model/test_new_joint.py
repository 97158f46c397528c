"""A joint that this package does not know is one class: every algorithm takes it, every way.

What `docs/extend.md` says of a new joint is done here, in a file that nothing else knows.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge.algebra.rotation import about_axis, from_rpy
from hinge.algorithms.declare import ALGORITHMS
from hinge.graph.interpret import interpret
from hinge.graph.loop import LoopProgram
from hinge.model.joints import Axial
from loop_cases import ARRAYS, looped
from mechanisms import BODY, EPS, along, assert_close, complex_step, random_state
from same_kernels import signature, states


@dataclass(frozen=True)
class Spiral(Axial):
    """A screw whose pitch grows: turns by q about an axis, slides a q + b q² along it."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    entries: ClassVar[tuple[str, str]] = ("angle", "its rate")
    a: float = 0.2
    b: float = 0.3

    def pose(self, q):
        along_axis = np.array(self.axis)[:, None] @ (self.a * q + self.b * q * q)
        return about_axis(np.array(self.axis), q), along_axis

    def H(self, q):
        return np.array([[*self.axis, *((self.a + 2 * self.b * q[0]) * np.array(self.axis))]])

    def H_rate(self, q, qd):
        return np.array([[0.0, 0.0, 0.0, *(2 * self.b * qd[0] * np.array(self.axis))]])

    def H_slope(self, q):
        return np.array([[[0.0, 0.0, 0.0, *(2 * self.b * np.array(self.axis))]]])


class Polar(hinge.Joint):
    """An arm that turns about z and grows along x: q = (angle, length)."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2

    def pose(self, q):
        R = about_axis(np.array([0.0, 0.0, 1.0]), q[:1])
        return R, R @ np.array([q[1], 0, 0])

    def H(self, q):
        return np.array([[0, 0, 1, 0, q[1], 0], [0, 0, 0, 1, 0, 0]])

    def H_rate(self, q, qd):
        return np.array([[0, 0, 0, 0, qd[1], 0], np.zeros(6)])

    def H_slope(self, q):
        return np.array([np.zeros((2, 6)), [[0, 0, 0, 0, 1, 0], np.zeros(6)]])


OF_HINGE = {
    joint.__name__: joint()
    for joint in (
        hinge.Cylindrical, hinge.Fixed, hinge.Free, hinge.Planar, hinge.Prismatic, hinge.Revolute,
        hinge.Spherical, hinge.Translation, hinge.Universal,
    )
}  # fmt: skip
JOINTS = {"spiral": Spiral((1.0, 2.0, -0.5)), "polar": Polar()}


NEIGHBOURS = (*JOINTS.values(), hinge.Revolute((0.0, 1.0, 1.0)))


def chain(times, joints=NEIGHBOURS):
    """The joints one after the other, so many times, with offsets and armature."""
    rng, b, parent = np.random.default_rng(7), hinge.MechanismBuilder("new joints"), "world"
    for i in range(times * len(joints)):
        place, offset = (
            hinge.Transform(from_rpy(*rng.normal(size=3)), rng.normal(size=3) * 0.2)
            for _ in range(2)
        )
        joint = joints[i % len(joints)]
        joint = replace(joint, armature=rng.uniform(0, 0.3, size=joint.nv))
        b.add(f"body{i}", parent, joint, f"joint{i}", place, BODY, offset)
        parent = f"body{i}"
    return hinge.Robot(b.build())


ROBOT = chain(1)


@pytest.mark.parametrize("kind", JOINTS)
def test_derivatives_that_the_class_gives_are_those_of_its_pose(kind):
    joint, rng = JOINTS[kind], np.random.default_rng(0)
    q, qd = joint.random(rng), rng.normal(size=joint.nv)
    R, _ = joint.pose(q)
    turning = R.T @ complex_step(lambda s: joint.pose(q + s * qd)[0])
    moving = R.T @ complex_step(lambda s: joint.pose(q + s * qd)[1])
    spatial = [turning[2, 1], turning[0, 2], turning[1, 0], *moving]
    assert_close(joint.H(q).T @ qd, np.array(spatial), 10 * EPS)
    assert_close(joint.H_rate(q, qd), complex_step(lambda s: joint.H(q + s * qd)), 10 * EPS)
    slopes = [complex_step(lambda s, e=e: joint.H(q + s * e)) for e in np.eye(joint.nv)]
    assert_close(joint.H_slope(q), np.array(slopes), 10 * EPS)


# once each; is_flat draws configurations and says yes or no
NAMES = {declared.name for declared in ALGORITHMS.values()} - {"is_flat"}
KERNELS = sorted(name for name in NAMES if (signature(ROBOT, name) or [[]])[0])


def given_to(robot, name):
    """The arrays and the other arguments of an algorithm."""
    found = signature(robot, name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_every_algorithm_compiled_is_the_generic_one(name):
    # a frame moves in every direction from six DoF on
    robot = chain(2) if "operational" in name else ROBOT
    arrays, static = given_to(robot, name)
    kernel = robot.kernel(name, *arrays, **static)
    given = states(robot, arrays, kernel.program.inputs)
    found = kernel(*given)
    found = found if isinstance(found, tuple) else (found,)
    for i in range(3):
        one = dict(zip(arrays, (x[i] for x in given), strict=True))
        expected = getattr(robot.alg, name)(**one, **static)
        parts = expected if isinstance(expected, tuple) else (expected,)
        for got, right in zip(found, parts, strict=True):
            assert_close(got[i], np.asarray(right, dtype=float), 3e5 * EPS, what=name)


def test_derivatives_of_the_dynamics_are_those_of_the_dynamics():
    s = random_state(ROBOT, 3)
    for name in ("inverse_dynamics", "forward_dynamics"):
        slope = getattr(ROBOT, f"{name}_derivatives")(s.q, s.qd, s.qdd)
        for i, e in enumerate(np.eye(ROBOT.nv)):
            q = along(ROBOT, s.q, e)
            value = getattr(ROBOT.alg, name)
            right = complex_step(lambda t, q=q, value=value: value(q(t), s.qd, s.qdd))
            assert_close(slope.dq[:, i], right, 1e5 * EPS)


@pytest.mark.parametrize("name", ARRAYS)
def test_sweeps_are_loops_over_it(name):
    robot = chain(3)
    program = looped(robot.mechanism, name)
    state = random_state(robot, 1)
    given = [getattr(state, "qdd" if a == "tau" else a) for a in ARRAYS[name]]
    (got,) = interpret(program, given)
    assert_close(got, getattr(robot.alg, name)(*given), 1e5 * EPS)


def test_a_long_robot_of_it_is_compiled_as_loops():
    robot = chain(14)
    state = random_state(robot, 1)
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    assert isinstance(kernel.program, LoopProgram)
    expected = robot.alg.inverse_dynamics(state.q, state.qd, state.qdd)
    assert_close(robot.inverse_dynamics(state.q, state.qd, state.qdd), expected, 1e6 * EPS)


def test_motions_and_operators_of_it():
    state = random_state(ROBOT, 2)
    q, qd = state.q, np.zeros(ROBOT.nv)
    fall = [hinge.simulate(ROBOT, q, qd, duration=0.01, compiled=c).q[-1] for c in (True, False)]
    assert_close(fall[0], fall[1], 1e4 * EPS)
    mass = ROBOT.operators(q).mass
    assert_close(mass @ (mass.inv @ state.qdd), state.qdd, 1e5 * EPS)


def test_conventions_have_its_words(capsys):
    ROBOT.conventions()
    said = capsys.readouterr().out
    assert "joint0 (Spiral): q[0:1] angle → qd[0:1] its rate" in said
    assert "joint1 (Polar): q[1:3] coordinates → qd[1:3] their rates" in said


def geared(ratio):
    """A hinge that turns so many times as far."""

    class Geared(hinge.Revolute):
        def pose(self, q):
            return hinge.Revolute.pose(self, ratio * q)

        def H(self, q):
            return ratio * hinge.Revolute.H(self, q)

    return Geared((0.3, 1.0, 0.2))


@pytest.mark.parametrize("times", [1, 21])
def test_kinds_are_told_apart_by_their_class(times):
    """One that is derived from a finished kind is not taken for it, nor for one of its name."""
    robot = chain(times, (geared(3), geared(2)))
    s = random_state(robot, 5)
    expected = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd), expected, 1e6 * EPS)


EDITED = """
from typing import ClassVar
import numpy as np
import hinge

class Slide(hinge.Joint):
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    def pose(self, q):
        return np.eye(3), np.array([0.0, 0.0, 1.0])[:, None] @ (RATIO * q)
    def H(self, q):
        return RATIO * np.eye(6)[5:]

builder = hinge.MechanismBuilder("slide")
builder.add("body", "world", Slide(), inertia=hinge.Inertia(1.0, (0, 0, 0), np.eye(3)))
robot = hinge.Robot(builder.build())
q = np.zeros(1)
assert robot.mass_matrix(q) == RATIO**2, "from a kernel of the class as it was"
assert robot.operators(q).mass @ np.ones(1) == RATIO**2
fallen = hinge.simulate(robot, q, duration=0.1, dt=0.1).q[-1]
assert abs(fallen + 0.5 * 9.81 * 0.1**2 / RATIO) < 1e-12
"""


def test_code_kept_for_a_class_is_not_used_once_the_class_has_changed():
    for ratio in (1, 2):
        run_python(f"RATIO = {ratio}{EDITED}")


class WithoutRate(Polar):
    """H depends on q, and its rate is that of a constant one."""

    H_rate = hinge.Joint.H_rate


class WithoutSlope(Polar):
    H_slope = hinge.Joint.H_slope


class WithoutRateSlope(hinge.Universal):
    H_rate_slope = hinge.Joint.H_rate_slope


class OtherWay(Polar):
    """Its hinge map is in the axes of the parent."""

    def H(self, q):
        R, _ = self.pose(q)
        return np.array([[0, 0, 1, *(q[1] * R[:, 1])], [0, 0, 0, *R[:, 0]]])


class Elsewhere(Polar):
    def pose(self, q):
        R, p = super().pose(q)
        return R, p + np.array([0.0, 0.0, 0.5])


class TwiceAsFar(Polar):
    def integrate(self, q, dv):
        return q + 2 * dv


class Short(Polar):
    def H(self, q):
        return np.eye(6)[:1]


class Writing(Polar):
    def H(self, q):
        q *= 0.5
        return np.array([[0, 0, 1, 0, 2 * q[1], 0], [0, 0, 0, 1, 0, 0]])


MISTAKES = {
    Writing: "H writes into its arguments; let it work on a copy",
    WithoutRate: "H_rate: H_rate.q, qd.*H changes by",
    WithoutSlope: "H_slope: .*H changes by",
    WithoutRateSlope: "H_rate_slope: .*H_rate changes by",
    OtherWay: "H: H.q..T @ qd.*pose moves with",
    Elsewhere: "is not the identity",
    TwiceAsFar: "difference.*\n.*coordinate_rates",
    Short: r"H.q. has shape .1, 6.; expected .2, 6.",
}


@pytest.mark.parametrize("kind", MISTAKES, ids=lambda kind: kind.__name__)
def test_a_joint_that_does_not_fit_together_is_refused(kind):
    with pytest.raises(
        hinge.ModelError, match=f"{kind.__name__} does not fit(?s:.*{MISTAKES[kind]})"
    ):
        hinge.check_joint(kind())
    with pytest.raises(hinge.ModelError, match=f"m: body 'b': joint class {kind.__name__}"):
        hinge.MechanismBuilder("m").add("b", joint=kind())


@pytest.mark.parametrize("name", ["polar", "spiral", *OF_HINGE])
def test_joints_that_fit_together_are_not(name):
    assert hinge.check_joint({**JOINTS, **OF_HINGE}[name]) is None

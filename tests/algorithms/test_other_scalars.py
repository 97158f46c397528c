"""The same source on other scalars: complex numbers, casadi, SymPy, fractions, mpmath."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

import hinge
from hinge import zoo
from hinge.algebra.small import is_zero, vanishes
from hinge.graph.scalar import Graph
from hinge.model.parameters import parameters
from mechanisms import EPS, ROBOTS, along, assert_close, complex_step, random_state

GENERIC = {
    "inverse_dynamics": lambda r, s: (s.q, s.qd, s.qdd, s.f_ext),
    "forward_dynamics": lambda r, s: (s.q, s.qd, s.qdd, s.f_ext),
    "mass_matrix": lambda r, s: (s.q,),
    "mass_matrix_inverse": lambda r, s: (s.q,),
    "bias_forces": lambda r, s: (s.q, s.qd, s.f_ext),
    "gravity_forces": lambda r, s: (s.q,),
    "poses": lambda r, s: (s.q,),
    "center_of_mass": lambda r, s: (s.q,),
    "momentum": lambda r, s: (s.q, s.qd),
    "kinetic_energy": lambda r, s: (s.q, s.qd),
    "potential_energy": lambda r, s: (s.q,),
    "generalized_momentum": lambda r, s: (s.q, s.qd),
    "hybrid_dynamics": lambda r, s: (s.q, s.qd, s.qdd, s.qd),
    "disturbance_jacobian": lambda r, s: (s.q,),
    "total_rates": lambda r, s: (s.q, s.qd),
    "diagonal_dynamics": lambda r, s: (s.q, s.qd, s.qdd, s.f_ext),
    "integrate": lambda r, s: (s.q, s.qd),
    "tangent_rate": lambda r, s: (s.qd, s.qdd),
    "lagrangian_derivatives": lambda r, s: (s.q, s.qd, s.f_ext),
}
FRAMES = {
    "frame_pose": lambda r, s: (s.q,),
    "jacobian": lambda r, s: (s.q,),
    "frame_velocity": lambda r, s: (s.q, s.qd),
    "frame_acceleration": lambda r, s: (s.q, s.qd, s.qdd),
    "velocity_product_acceleration": lambda r, s: (s.q, s.qd),
}


def call(robot, name, arguments):
    """The algorithm on whatever scalars the arguments hold; on the last frame where it has one."""
    static = {"frame": robot.frame_names[-1]} if name in FRAMES else {}
    if name in ("hybrid_dynamics", "disturbance_jacobian"):
        static = {"active": np.arange(robot.nv) % 2 == 0}
    return getattr(robot.alg, name)(*arguments, **static)


def arguments_of(robot, name, state):
    return {**GENERIC, **FRAMES}[name](robot, state)


@pytest.mark.parametrize("name", [*GENERIC, *FRAMES])
@pytest.mark.parametrize(
    "robot_name", ["tree0", pytest.param("humanoid", marks=pytest.mark.long), "gripper"]
)
def test_casadi(robot_name, name):
    casadi = pytest.importorskip("casadi")
    robot = ROBOTS[robot_name]
    numbers = [np.asarray(a) for a in arguments_of(robot, name, random_state(robot, 0))]
    symbols = [casadi.SX.sym(f"a{i}", a.size) for i, a in enumerate(numbers)]
    arrays = [
        np.array(casadi.vertsplit(x), dtype=object).reshape(a.shape)
        for x, a in zip(symbols, numbers, strict=True)
    ]
    result = np.asarray(call(robot, name, arrays))
    fn = casadi.Function("f", symbols, [casadi.vertcat(*result.ravel())])
    got = np.array(fn(*(a.ravel() for a in numbers))).reshape(result.shape)
    expected = np.asarray(call(robot, name, numbers))
    assert_close(got, expected, 1e4 * EPS)


@pytest.mark.parametrize("name", [*GENERIC, *FRAMES])
def test_complex_step_agrees_with_differences(name):
    """Complex numbers pass through every algorithm, and their step is the derivative."""
    robot = zoo.tree(2, 10)
    state = random_state(robot, 2)
    if name == "tangent_rate":
        pytest.skip("takes no configuration")
    q, *rest = arguments_of(robot, name, state)
    direction = np.random.default_rng(9).normal(size=robot.nv)
    path = along(robot, q, direction)
    exact = complex_step(lambda h: np.asarray(call(robot, name, (path(h), *rest))))
    h = 1e-6
    ahead, behind = (np.asarray(call(robot, name, (path(x), *rest))) for x in (h, -h))
    assert_close((ahead - behind) / (2 * h), exact, 50 * EPS / h)


def test_sympy_gives_the_textbook_double_pendulum():
    robot = zoo.pendulum(2)
    q1, q2, w1, w2 = sympy.symbols("q1 q2 w1 w2", real=True)
    M = robot.alg.mass_matrix(np.array([q1, q2]))
    m, l, g = 1.0, 1.0, 9.81
    I = float(robot.mechanism.bodies[1].inertia.about_com[1, 1])
    c2, s2 = sympy.cos(q2), sympy.sin(q2)
    textbook = sympy.Matrix(
        [
            [2 * I + m * l**2 * (0.25 + 1.25 + c2), I + m * l**2 * (0.25 + 0.5 * c2)],
            [I + m * l**2 * (0.25 + 0.5 * c2), I + m * l**2 * 0.25],
        ]
    )
    assert _vanishes(sympy.Matrix(M) - textbook, (q1, q2))
    bias = robot.alg.bias_forces(np.array([q1, q2]), np.array([w1, w2]))
    h = 0.5 * m * l**2 * s2
    coriolis = sympy.Matrix([-h * (2 * w1 * w2 + w2**2), h * w1**2])
    # the bob hangs down along −z and q turns it about +y, so that x = −l sin q
    weight = (
        m
        * g
        * l
        * sympy.Matrix([1.5 * sympy.sin(q1) + 0.5 * sympy.sin(q1 + q2), 0.5 * sympy.sin(q1 + q2)])
    )
    assert _vanishes(sympy.Matrix(bias) - coriolis - weight, (q1, q2, w1, w2))


def _vanishes(expression, symbols):
    rng = np.random.default_rng(0)
    values = [dict(zip(symbols, rng.normal(size=len(symbols)), strict=True)) for _ in range(5)]
    return all(max(abs(x) for x in expression.subs(v)) < 100 * EPS for v in values)


def test_sympy_keeps_a_symbolic_mass():
    m, l, q = sympy.symbols("m l q", positive=True)
    body = hinge.Inertia(m, np.array([0, 0, -l]), np.zeros((3, 3), dtype=int))
    mech = zoo.pendulum(1).mechanism
    mech = _replaced(mech, body)
    (M,) = hinge.algorithms.mass_matrix(mech, np.array([q]))[0]
    assert sympy.simplify(M - m * l**2) == 0


def _replaced(mech, inertia):
    from dataclasses import replace

    ground, bob = mech.bodies
    return replace(mech, bodies=(ground, replace(bob, inertia=inertia)))


def test_fractions_stay_exact():
    """A gantry of sliders with rational masses: no rounding anywhere."""
    b = hinge.MechanismBuilder("gantry", gravity=(0, 0, -10))
    parent = "world"
    for i, axis in enumerate(np.eye(3)):
        b.add(f"b{i}", parent, hinge.Prismatic(axis), inertia=hinge.Inertia(2.0))
        parent = f"b{i}"
    mech = b.build()
    half = np.array([Fraction(1, 2)] * 3)
    tau = hinge.algorithms.inverse_dynamics(mech, half, half, half)
    assert [Fraction(t) for t in tau] == [3, 2, 21]


def test_mpmath_measures_the_rounding_of_floats():
    """Fifty digits through the same source: floats are right to a few eps."""
    robot = zoo.tree(5, 6)
    s = random_state(robot, 5)
    with mpmath.workdps(50):
        q, qd, qdd = (np.array([mpmath.mpf(float(x)) for x in a]) for a in (s.q, s.qd, s.qdd))
        exact = robot.alg.inverse_dynamics(q, qd, qdd)
        expected = np.array([float(x) for x in exact])
    assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd), expected, 30 * EPS)


def test_what_is_known_to_be_zero():
    assert all(is_zero(x) for x in (0, 0.0, 0j, np.float64(0), Fraction(0), -0.0))
    assert not any(is_zero(x) for x in (1e-300, np.nan, sympy.Symbol("m"), Graph().input()))
    # a traced scalar that is no more than that number
    zero, one = 0 * Graph().input(), Graph().const(1)
    assert vanishes(zero) and vanishes(0.0) and not is_zero(zero)
    assert not any(vanishes(x) for x in (one, 1.0, sympy.Symbol("m"), Graph().input()))


def test_traced_masses_add_up():
    """Whether a traced mass is 0 is not asked."""
    a, b = hinge.Inertia(1.0, (0.1, 0, 0), np.eye(3)), hinge.Inertia(0.5, (0, 0.2, 0), np.eye(3))

    def together(m):
        both = hinge.Inertia(m, a.com, a.about_com) + b
        return both.mass, both.com, both.about_com

    got = hinge.compile(together, m=())(1.0)
    expected = a + b
    assert_close(got[0], expected.mass, EPS)
    assert_close(got[1], expected.com, 4 * EPS)
    assert_close(got[2], expected.about_com, 4 * EPS)
    mass = hinge.Robot(zoo.arm(3).mechanism).kernel("center_of_mass", "q", "inertia")
    q, numbers = np.ones(3), parameters(zoo.arm(3).mechanism)["inertia"]
    assert_close(mass(q, numbers), zoo.arm(3).center_of_mass(q), 10 * EPS)

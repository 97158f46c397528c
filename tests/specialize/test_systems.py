"""Results that solve linear systems of the mass matrix: their numbers give what methods give."""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.graph.interpret import interpret
from hinge.specialize.routing import SYSTEMS, route
from hinge.specialize.systems import robot_systems
from mechanisms import EPS, gripper, random_state

ROBOTS = {
    "arm": zoo.arm(5),
    "humanoid": zoo.humanoid(),
    "tree": zoo.tree(4, 9),
    "followers": gripper(),
}


def solved(systems, arrays):
    """The results by dense algebra, from the numbers of the programs."""
    given = list(arrays)
    if systems.before is not None:
        program, takes = systems.before
        given += [interpret(program, [given[i] for i in takes])[0]]
    numbers, *sides = (
        interpret(program, [given[i] for i in takes])[0]
        for program, takes in (systems.factor, *systems.sides)
    )
    n, place, m = systems.rows, 0, np.zeros((systems.rows,) * 2)
    for i, rows in enumerate(systems.above):
        m[list(rows), n - 1 - i] = numbers[place : place + len(rows)]
        place += len(rows)
    m[range(n), range(n)] = 1 / numbers[place:][::-1]
    inverse = np.linalg.inv(m @ m.T)
    right = np.append(np.concatenate(sides), 0.0) if sides else None
    return [*(-inverse @ right[table] for table in systems.right), inverse]


def close(found, exact):
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e5 * EPS * (1 + np.abs(b).max()))


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_of_forward_dynamics(name):
    robot = ROBOTS[name]
    s = random_state(robot, 3)
    arrays = s.q, s.qd, s.qdd
    systems = robot_systems(robot.mechanism, "forward_dynamics_derivatives", ("q", "qd", "tau"), {})
    close(solved(systems, arrays), robot.forward_dynamics_derivatives(*arrays))


def test_with_loads_and_numbers_of_the_mechanism():
    robot = hinge.Robot(zoo.quadruped().mechanism, parameters=("gravity",))
    s, rng = random_state(robot, 4), np.random.default_rng(0)
    f_ext, g = rng.normal(size=(robot.mechanism.n_bodies, 6)), np.array([1.0, -2.0, 3.0])
    names = ("q", "qd", "tau", "f_ext", "gravity")
    systems = robot_systems(
        robot.mechanism, "forward_dynamics_derivatives", names, {"load": "world"}
    )
    exact = robot.forward_dynamics_derivatives(s.q, s.qd, s.qdd, f_ext, load="world", gravity=g)
    close(solved(systems, (s.q, s.qd, s.qdd, f_ext, g)), exact)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_inverse_of_the_mass_matrix(name):
    robot = ROBOTS[name]
    q = random_state(robot, 5).q
    systems = robot_systems(robot.mechanism, "mass_matrix_inverse", ("q",), {})
    assert systems.before is None and not systems.sides and not systems.right
    close(solved(systems, (q,)), [robot.mass_matrix_inverse(q)])


def test_zeros_of_branches_are_not_among_the_numbers():
    """Those of bodies on different branches, and what no angle of a joint changes."""
    mech = zoo.quadruped().mechanism
    systems = robot_systems(mech, "forward_dynamics_derivatives", ("q", "qd", "tau"), {})
    assert sum(map(len, systems.above)) == 15 + 4 * (6 + 7 + 8)
    legs = [slice(6 + 3 * i, 9 + 3 * i) for i in range(4)]
    for table in systems.right:
        assert all((table[a, b] == -1).all() for a in legs for b in legs if a != b)
    used = np.unique(np.concatenate(systems.right))[1:]
    count = sum(stage.program.output_sizes[0] for stage in systems.sides)
    np.testing.assert_array_equal(used, np.arange(count))
    assert sum(systems.ops) > sum(sum(stage.program.ops) for stage in systems.sides)


@pytest.mark.parametrize("name", SYSTEMS)
def test_cards_solve_systems_of_large_robots(name):
    large, small = zoo.snake(38).mechanism, zoo.arm(7).mechanism
    assert route(large, name).plan == "unrolled"
    way = route(large, name, climbs=False, solves=True)
    assert way.plan == "systems" and way.pieces[-1].algorithm in way.text()
    assert f"a whole sample of {large.nv} DoF" in way.why["plan"]
    assert route(small, name, climbs=False, solves=True).plan == "unrolled"
    assert route(zoo.snake(100).mechanism, name, climbs=False, solves=True).plan == "columns"


def test_a_method_that_is_asked_for_is_one_program():
    mech, given = zoo.snake(38).mechanism, {"method": "conventional"}
    way = route(mech, "forward_dynamics_derivatives", (), given, climbs=False, solves=True)
    assert way.plan == "unrolled"

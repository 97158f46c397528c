"""Which way a result is computed is decided in one place, which says why."""

import math

import pytest

from hinge import zoo
from hinge.specialize import routing
from hinge.specialize.programs import explain, robot_program
from hinge.specialize.routing import (
    DEEP,
    MANY_DOF,
    MOST_BLOCKS,
    MOST_STEPS,
    MOST_UNROLLED,
    ONE_SAMPLE_BY_PARTS,
    route,
    whole,
)
from mechanisms import ROBOTS, gripper

ARM, HUMANOID, GRIPPER = zoo.arm(7).mechanism, zoo.humanoid().mechanism, gripper().mechanism
LONG = zoo.snake(MOST_UNROLLED + 1).mechanism
LINEARIZED = ("q", "qd", "tau")


def test_short_mechanisms_are_unrolled_in_canonical_frames():
    way = route(ARM, "inverse_dynamics", ("q", "qd", "qdd"))
    assert (way.plan, way.frames, way.method, way.axes) == ("unrolled", "canonical", None, ())
    assert way.ways == [{}]


def test_frames_stay_where_results_depend_on_them_or_numbers_are_open():
    assert route(ARM, "poses", ("q",)).frames == "given"
    way = route(ARM, "mass_matrix", ("q", "inertia"))
    assert way.frames == "given" and "inertia" in way.why["frames"]


def test_long_mechanisms_are_loops_where_sweeps_can_be():
    assert route(zoo.snake(MOST_UNROLLED).mechanism, "inverse_dynamics").plan == "unrolled"
    assert route(LONG, "inverse_dynamics").plan == "loops"
    assert route(LONG, "poses").plan == "unrolled"
    assert route(LONG, "inverse_dynamics", ("q", "qd", "qdd", "gravity")).plan == "unrolled"
    assert route(LONG, "forward_dynamics_jvp").plan == "loops"
    assert route(LONG, "forward_dynamics_vjp").plan == "loops"
    assert route(LONG, "inverse_dynamics_vjp").plan == "loops"
    conventional = {"method": "conventional"}
    assert route(LONG, "forward_dynamics_jvp", (), conventional).plan == "unrolled"


def test_aliases_go_the_same_way():
    for alias, name in {"rnea": "inverse_dynamics", "aba": "forward_dynamics"}.items():
        assert route(LONG, alias).plan == route(LONG, name).plan == "loops"
        assert route(ARM, alias).frames == "canonical"
    assert route(zoo.snake(100).mechanism, "crba").plan == "loops"


@pytest.mark.parametrize(
    "name, pieces",
    [
        ("mass_matrix", ["generalized_momentum"]),
        ("mass_matrix_inverse", ["working_forces", "joint_rates"]),
        ("inverse_dynamics_derivatives", ["inverse_dynamics_jvp"]),
        ("forward_dynamics_derivatives", ["forward_dynamics_jvp"]),
    ],
)
def test_large_matrices_are_loops_or_come_by_columns(name, pieces):
    """By columns on cards, and where bodies on different branches have something in common."""
    snake = zoo.snake(100).mechanism
    way = route(snake, name)
    assert way.plan == "loops" and way.axes in (("body",), ("ground",))
    way = route(snake, name, climbs=False)
    assert way.plan == "columns" and [p.algorithm for p in way.pieces] == pieces
    assert str(MOST_BLOCKS) in way.why["plan"] and "cards" in way.why["plan"]
    assert whole(snake, name, (), {}, climbs=False).plan == "unrolled"


def test_matrices_are_counted_by_their_blocks():
    """Few of them are unrolled, however many bodies there are; many kinds of joints too."""
    assert route(LONG, "mass_matrix").plan == "loops"
    bush = zoo.tree(3, 50).mechanism
    assert route(bush, "inverse_dynamics_derivatives").plan == "unrolled"
    larger = whole(zoo.tree(3, 120).mechanism, "inverse_dynamics_derivatives", (), {})
    assert larger.plan == "unrolled" and f"more than {MOST_STEPS}" in larger.why["plan"]
    assert route(bush, "forward_dynamics_derivatives").plan == "columns"
    conventional = {"method": "conventional"}
    assert route(bush, "forward_dynamics_derivatives", (), conventional).plan == "unrolled"


def test_bodies_of_which_few_are_alike_are_unrolled():
    """A loop would have nearly as many steps; a card has no room for as much code at once."""
    bush = zoo.tree(11, 55).mechanism
    way = route(bush, "hybrid_dynamics_jvp")
    assert way.plan == "unrolled" and "27 kinds of them are as much code" in way.why["plan"]
    assert route(bush, "hybrid_dynamics_jvp", climbs=False).plan == "loops"
    assert route(zoo.tree(11, 120).mechanism, "hybrid_dynamics_jvp").plan == "loops"
    assert route(zoo.snake(44).mechanism, "hybrid_dynamics_jvp").plan == "loops"


@pytest.mark.parametrize("lead", [(), (1,), (1, 1)])
def test_one_sample_and_a_batch_of_one_go_the_same_way(lead):
    way = route(HUMANOID, "forward_dynamics_derivatives", LINEARIZED, {}, math.prod(lead))
    assert (
        HUMANOID.nv in ONE_SAMPLE_BY_PARTS["forward_dynamics_derivatives"] and way.plan == "parts"
    )
    assert [p.algorithm for p in way.pieces] == [
        "forward_dynamics",
        "inverse_dynamics_derivatives",
        "mass_matrix_inverse",
    ]


def test_many_samples_and_methods_asked_for_are_whole():
    name = "forward_dynamics_derivatives"
    assert route(HUMANOID, name, LINEARIZED, {}, 4096).plan == "unrolled"
    assert route(HUMANOID, name, LINEARIZED).plan == "unrolled"
    assert route(HUMANOID, name, LINEARIZED, {"method": "articulated"}, 1).plan == "unrolled"
    assert route(ARM, name, LINEARIZED, {}, 1).plan == "unrolled"


def test_the_method_goes_by_degrees_of_freedom():
    for n, method in ((MANY_DOF - 1, "conventional"), (MANY_DOF, "articulated")):
        assert route(zoo.arm(n).mechanism, "forward_dynamics_jvp").method == method
    assert route(HUMANOID, "forward_dynamics_jvp", (), {"method": "conventional"}).method is None
    assert route(GRIPPER, "forward_dynamics_jvp").method == "conventional"


def test_right_angles_decide_the_axes_of_many_bodies():
    """Where both are worth tracing, and where one would be traced in vain."""
    name = "forward_dynamics_derivatives"
    for robot, both in (
        (zoo.snake(18), False),
        (zoo.snake(12), True),
        (zoo.pendulum(18), True),
        (zoo.tree(0, 30), True),
    ):
        deep = route(robot.mechanism, name)
        assert deep.axes == (("body", "ground") if both else ("body",)), robot.name
    snake = zoo.snake(18).mechanism
    counts = [
        sum(robot_program(snake, name, ("q", "qd", "tau"), {"axes": a}).ops)
        for a in ("body", "ground")
    ]
    assert counts[0] < counts[1]


def test_the_axes_go_by_depth_and_the_cheaper_ones_are_taken():
    name, arrays = "inverse_dynamics_derivatives", ("q", "qd", "qdd")
    assert route(zoo.arm(DEEP - 1).mechanism, name).axes == ("body",)
    assert route(ROBOTS["empty"].mechanism, name).axes == ("body",)
    assert route(ARM, name).axes == ("body", "ground")
    assert route(ARM, name, (), {"axes": "ground"}).axes == ()
    counts = [sum(robot_program(ARM, name, arrays, {"axes": a}).ops) for a in ("body", "ground")]
    assert sum(robot_program(ARM, name, arrays, {}).ops) == min(counts) < max(counts)


def test_inertias_of_very_many_bodies_are_made_again_in_batches(monkeypatch):
    for name in ("diagonal_dynamics", "diagonal_coriolis"):
        monkeypatch.setattr(routing, "MANY_INERTIAS", LONG.n_bodies)
        assert route(LONG, name).ways == [{"inertias": "kept"}]
        monkeypatch.setattr(routing, "MANY_INERTIAS", LONG.n_bodies - 1)
        way = route(LONG, name)
        assert way.ways == [{"inertias": "made again"}] and "inertias    made again" in way.text()
        assert route(LONG, name, samples=1).inertias == "kept"
        assert route(LONG, name, static={"inertias": "kept"}).ways == [{}]
        assert route(ARM, name).ways == [{}]


def test_mimic_joints_are_unrolled_by_dense_algebra():
    assert "dense algebra" in route(GRIPPER, "forward_dynamics").why["plan"]
    assert "loops do not know" in route(GRIPPER, "inverse_dynamics").why["plan"]


def test_a_route_can_be_asked():
    said = explain(ARM, "forward_dynamics_derivatives")
    for words in ("unrolled", "canonical", "conventional", "body or ground", "in body axes, taken"):
        assert words in said
    count = sum(robot_program(ARM, "inverse_dynamics", ("q", "qd", "qdd"), {}).ops)
    assert explain(ARM, "inverse_dynamics").endswith(f"operations  {count}")


def test_what_is_made_of_pieces_explains_them():
    given = "q", "qd", "qdd", "f_ext"
    said = explain(LONG, "inverse_dynamics_derivatives", given, climbs=False)
    assert "column by column, from inverse_dynamics_jvp" in said
    assert "a loop over bodies for each sweep" in said and "operations" in said
    said = explain(HUMANOID, "forward_dynamics_derivatives", samples=1)
    assert "by parts, from forward_dynamics, inverse_dynamics_derivatives, mass_matrix_in" in said
    assert said.count("operations") == 3

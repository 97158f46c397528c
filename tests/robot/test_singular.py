"""Where a joint moves no inertia there is no answer: every method says so, and names the joint."""

import inspect

import numpy as np
import pytest

import hinge
from hinge import (
    Inertia,
    LoopConstraint,
    MechanismBuilder,
    Revolute,
    Robot,
    SingularError,
    Spherical,
    Transform,
)
from hinge.algorithms.declare import ALGORITHMS
from hinge.algorithms.singular import loose_joint
from hinge.operators import Operators
from hinge.specialize.arrays import array_shape

pytestmark = pytest.mark.filterwarnings("ignore::hinge.ModelWarning")

AXES = ((0, 1, 0), (1, 0, 0), (0, 0, 1))
# methods in which nothing is divided by an inertia
WITHOUT_INVERSE = {
    "anchors", "bias_forces", "center_of_mass", "center_of_mass_jacobian", "christoffel",
    "coriolis_matrix", "crba", "differential_inverse_kinematics",
    "difference", "frame_acceleration", "frame_pose", "frame_velocity", "generalized_momentum",
    "energy_regressor", "momentum_regressor", "torque_regressor", "gravity_forces", "integrate",
    "inverse_dynamics", "inverse_dynamics_derivatives", "inverse_dynamics_jvp",
    "inverse_dynamics_vjp",
    "inverse_kinematics", "jacobian", "kinetic_energy", "interpolate",
    "constrained_inverse_dynamics", "friction_residuals",
    "lagrangian_derivatives", "mass_matrix", "mass_matrix_rate",
    "mass_matrix_second_sensitivity", "mass_matrix_sensitivity", "momentum", "neutral", "normalize",
    "passive_forces", "poses", "potential_energy", "random_configuration", "random_velocity",
    "rnea", "spring_energy", "tangent_rate", "total_mass", "velocity_product_acceleration",
}  # fmt: skip
DIVIDE = sorted(n for n in ALGORITHMS if hasattr(Robot, n) and n not in WITHOUT_INVERSE)
OF_A_CHART = {"curvature", "is_flat", "mass_factor_curl"}


def solid(mass):
    return Inertia(mass, (0.1, 0.05, -0.3), 0.05 * mass * np.eye(3))


def chain(*masses, armature=0.0, **options):
    """Hinges about changing axes; a body without mass has a joint with the armature."""
    b, parent = MechanismBuilder("chain"), "world"
    for i, mass in enumerate(masses):
        joint = Revolute(AXES[i % 3], armature=0.0 if mass else armature)
        place = Transform(translation=(0.1, 0.0, -0.5))
        b.add(f"b{i}", parent, joint, f"j{i}", placement=place, inertia=solid(mass))
        parent = f"b{i}"
    b.add_frame("tip", parent, Transform(translation=(0.0, 0.1, -0.5)))
    return Robot(b.build(), **options)


def ball(com):
    """A point mass on a spherical joint: it can spin without moving anything."""
    b = MechanismBuilder("ball")
    b.add("a", "world", Revolute(AXES[0]), "ja", inertia=solid(1.0))
    place = Transform(translation=(0.0, 0.0, -0.5))
    b.add("b", "a", Spherical(), "jb", placement=place, inertia=Inertia(1.0, com, np.zeros((3, 3))))
    b.add_frame("tip", "b", Transform(translation=(0.1, 0.1, 0.1)))
    return Robot(b.build())


def mimicking():
    """A massless tip beyond a joint that follows another."""
    b = MechanismBuilder("mimic")
    b.add("a", "world", Revolute(AXES[0]), "ja", inertia=solid(1.0))
    follower = Revolute(AXES[1], mimic=hinge.Mimic("ja", 2.0))
    b.add("b", "a", follower, "jb", inertia=solid(1.0))
    b.add("c", "b", Revolute(AXES[2]), "jc", inertia=solid(0.0))
    b.add_frame("tip", "c")
    return Robot(b.build())


SINGULAR = {
    "massless tip": (lambda: chain(1, 1, 0), "j2"),
    "massless end": (lambda: chain(1, 1, 0, 0, 0), "j4"),
    "spinning point": (lambda: ball((0.0, 0.0, -0.4)), "jb"),
    "oblique point": (lambda: ball((0.1, 0.2, -0.4)), "jb"),
    "mimic": (mimicking, "jc"),
    "float32": (lambda: chain(1, 1, 0, dtype=np.float32), "j2"),
}
# more than forty kernels are compiled for each
QUICK = {"massless tip", "spinning point", "mimic"}


def arguments(robot, name, q):
    """What a method needs, at configurations q; the first DoF is driven."""
    found, rng = {}, np.random.default_rng(3)
    others = {
        "active": tuple(i == 0 for i in range(robot.nv)),
        "frame": "tip",
        "frames": "tip",
        "constraints": (LoopConstraint("tip", "world", axes=(3,)),),
    }
    for p in list(inspect.signature(getattr(Robot, name)).parameters.values())[1:]:
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            shape = array_shape(robot.mechanism, p.name)
            known = q if p.name == "q" else others.get(p.name)
            found[p.name] = rng.normal(size=shape) if known is None else known
    return found


def fits(robot, name):
    """Whether the method is for such a robot."""
    is_chart = all(b.joint.commuting for b in robot.mechanism.bodies[1:])
    followers = robot.mechanism.has_followers
    return (is_chart or name not in OF_A_CHART) and not (followers and name == "articulated_rates")


@pytest.mark.parametrize(
    "which", [pytest.param(n, marks=[pytest.mark.long] * (n not in QUICK)) for n in SINGULAR]
)
def test_every_method_names_the_joint_that_moves_no_inertia(which):
    make, joint = SINGULAR[which]
    robot = make()
    q = robot.random_configuration(1)
    for name in (n for n in [*DIVIDE, "linearize"] if fits(robot, n)):
        given = arguments(robot, name, q)
        for _ in range(4):  # the checked way, and the door
            with pytest.raises(hinge.SingularError, match=f"joint '{joint}' moves no inertia here"):
                getattr(robot, name)(**given)


@pytest.mark.parametrize("which", ["massless tip", "spinning point"])
def test_plain_algorithms_say_the_same(which):
    make, joint = SINGULAR[which]
    robot = make()
    q = robot.random_configuration(1)
    for name in (n for n in DIVIDE if fits(robot, n) and n != "is_flat"):
        with pytest.raises(hinge.SingularError, match=f"joint '{joint}' moves no inertia here"):
            getattr(robot.alg, name)(**arguments(robot, name, q))


def test_no_other_method_minds():
    robot = chain(1, 1, 0)
    others = {"constrained_inverse_dynamics", "friction_residuals", "inverse_kinematics"}
    for name in WITHOUT_INVERSE - others - {"random_configuration", "total_mass"}:
        given = arguments(robot, name, robot.random_configuration(1))
        assert all(np.isfinite(x).all() for x in np.atleast_1d(getattr(robot, name)(**given)))


def test_forces_that_hold_need_no_inertia_but_somebody_to_give_them():
    robot = chain(1, 1, 0)
    given = arguments(robot, "constrained_inverse_dynamics", robot.random_configuration(1))
    everything = robot.constrained_inverse_dynamics(**{**given, "active": np.ones(3)})
    assert all(np.isfinite(x).all() for x in everything)
    with pytest.raises(hinge.SingularError, match="can give the passive joint 'j"):
        robot.constrained_inverse_dynamics(**given)


def test_armature_is_inertia_enough():
    robot = chain(1, 1, 0, 0, armature=0.1)
    q = robot.random_configuration(1)
    for name in [n for n in DIVIDE if n != "operational_space_inertia"]:
        result = getattr(robot, name)(**arguments(robot, name, q))
        parts = result if isinstance(result, tuple) else (result,)
        assert all(np.isfinite(np.asarray(x, float)).all() for x in parts if type(x) is not str)


def test_second_derivatives_and_other_settings():
    robot = chain(1, 1, 0)
    state = robot.random_configuration(1), np.ones(3), np.ones(3)
    for given in ({"order": 2}, {"method": "articulated"}, {"method": "conventional"}):
        with pytest.raises(hinge.SingularError, match="joint 'j2' moves no inertia here"):
            robot.forward_dynamics_derivatives(*state, **given)
    with pytest.raises(hinge.SingularError, match="joint 'j2' moves no inertia here"):
        robot.christoffel(state[0], kind=2)


def test_a_joint_whose_motion_is_given_needs_no_inertia():
    robot = chain(1, 1, 0)
    q, x = robot.random_configuration(1), np.ones(3)
    found = robot.hybrid_dynamics(q, x, x, x, active=("j2",))
    back = robot.inverse_dynamics(q, x, found.qdd)
    np.testing.assert_allclose(back, found.tau, atol=1e-12)


def test_in_a_batch_one_sample_alone_is_nan():
    """The mass of the tip comes with each sample."""
    robot = chain(1, 1, 1, parameters=("inertia",))
    own = hinge.model.parameters.parameters(robot.mechanism)["inertia"]
    inertia = np.array([own, own, own])
    inertia[1, 2] = 0.0
    q = robot.random_configuration(1)
    for name in (n for n in DIVIDE if n not in {*OF_A_CHART, "operational_space_inertia"}):
        given = arguments(robot, name, q)
        result = getattr(robot, name)(**given, inertia=inertia)
        for part in result if isinstance(result, tuple) else (result,):
            assert np.isnan(part[1]).all(), name
            assert np.isfinite(part[[0, 2]]).all(), name
        with pytest.raises(hinge.SingularError, match="joint 'j2' moves no inertia here"):
            getattr(robot, name)(**given, inertia=inertia[1])


def test_operators_say_the_same():
    robot = chain(1, 1, 0)
    q, x = robot.random_configuration(1), np.ones(3)
    for o in (robot.operators(q), Operators(robot.mechanism, q)):
        np.testing.assert_allclose(o.mass @ x, robot.mass_matrix(q) @ x, atol=1e-14)
        for there_is_none in (
            lambda o=o: o.mass.inv @ x,
            lambda o=o: o.mass.inv @ np.eye(3),
            lambda o=o: o.mass.inv.dense(),
            lambda o=o: o.Omega @ np.ones(18),
        ):
            with pytest.raises(hinge.SingularError, match="joint 'j2' moves no inertia here"):
                there_is_none()
    split = robot.operators(q, active=(False, True, True))
    assert np.isfinite(split.D_p.inv @ np.ones(1)).all()
    assert np.isnan(robot.operators(np.array([q, q])).mass.inv @ x).all()


def test_long_mechanisms_say_the_same():
    """Loops over bodies, columns and a batch with them."""
    robot = chain(*[1] * 70, 0)
    q, x = robot.random_configuration(1), np.ones(71)
    for call in (
        lambda q: robot.forward_dynamics(q, x, x),
        lambda q: robot.mass_matrix_inverse(q),
        lambda q: robot.total_rates(q, x),
    ):
        with pytest.raises(hinge.SingularError, match="joint 'j70' moves no inertia here"):
            call(q)
        assert np.isnan(call(np.array([q, q]))).all()


def test_motions_say_the_same():
    robot = chain(1, 1, 0)
    for given in ({}, {"method": "implicit_midpoint"}, {"compiled": False}):
        with pytest.raises(hinge.SingularError, match="joint 'j2' moves no inertia here"):
            hinge.simulate(robot, np.ones(3), duration=0.01, **given)


def test_functions_of_ones_own_give_nan():
    robot = chain(1, 1, 0)
    own = robot.compile(
        lambda q, qd, tau: tuple(robot.alg.forward_dynamics_jvp(q, qd, tau, q, q, q))
    )
    assert np.isnan(own(*np.ones((3, 3)))).any()


def test_rank_lost_at_one_configuration():
    """Two massless links to a point: stretched out, they can bend without moving it."""
    b = MechanismBuilder("stretched")
    none = Inertia(0.0, (0, 0, 0), np.zeros((3, 3)))
    b.add("a", "world", Revolute(AXES[0]), "ja", inertia=none)
    point = Inertia(1.0, (0.0, 0.0, -0.7), np.zeros((3, 3)))
    place = Transform(translation=(0.0, 0.0, -0.5))
    b.add("b", "a", Revolute(AXES[0]), "jb", placement=place, inertia=point)
    b.add_frame("tip", "b")
    robot = Robot(b.build())
    inverse = robot.mass_matrix_inverse([0.3, 1e-3])
    assert np.abs(robot.mass_matrix([0.3, 1e-3]) @ inverse - np.eye(2)).max() < 1e-8
    assert np.isfinite(robot.forward_dynamics([0.3, 0.5], [0, 0], [0, 0])).all()
    with pytest.raises(hinge.SingularError, match="joint 'ja' moves no inertia here"):
        robot.forward_dynamics([0.3, 0.0], [0, 0], [1, 1])
    for bend in (0.0, 1e-9, -1e-8):
        for name in (n for n in DIVIDE if n not in OF_A_CHART):
            given = arguments(robot, name, np.array([0.3, bend]))
            if "active" not in given:
                with pytest.raises(hinge.SingularError, match="joint 'ja' moves no inertia here"):
                    getattr(robot, name)(**given)
    batch = robot.forward_dynamics([[0.3, 0.5], [0.3, 1e-9], [0.3, 1.0]], [0, 0], [1, 1])
    assert np.isnan(batch[1]).all() and np.isfinite(batch[[0, 2]]).all()


def test_what_overflows_is_not_put_down_to_a_joint():
    robot = chain(1e-300, 1e-300)
    with pytest.raises(hinge.SingularError, match="a number overflows"):
        robot.forward_dynamics(np.ones(2), np.zeros(2), np.full(2, 1e300))
    M = robot.mass_matrix(np.ones(2))
    assert loose_joint(robot.mechanism, M) == ""


def test_what_overflows_is_not_looked_into_for_ever():
    slider = MechanismBuilder("slider").add("arm", "world", Revolute((0, 0, 1)), inertia=solid(1.0))
    robot = Robot(
        slider.add("load", "arm", hinge.Prismatic((1, 0, 0)), inertia=solid(1.0)).build(), "float32"
    )
    for _ in range(3):
        with pytest.raises(SingularError, match="mass_matrix of 'slider': .* a number overflows"):
            robot.mass_matrix([0.0, 1e30])

"""The front door: batches, checked arguments, conventions."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, LoopConstraint, Robot, SingularError, zoo
from mechanisms import EPS, ROBOTS, assert_close, random_state

ARM = zoo.arm(3)
QUADRUPED = zoo.quadruped()

METHODS = {
    "inverse_dynamics": lambda r, s: r.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext),
    "forward_dynamics": lambda r, s: r.forward_dynamics(s.q, s.qd, s.qdd, s.f_ext),
    "mass_matrix": lambda r, s: r.mass_matrix(s.q),
    "mass_matrix_inverse": lambda r, s: r.mass_matrix_inverse(s.q),
    "bias_forces": lambda r, s: r.bias_forces(s.q, s.qd),
    "gravity_forces": lambda r, s: r.gravity_forces(s.q),
    "poses": lambda r, s: r.poses(s.q),
    "frame_pose": lambda r, s: r.frame_pose(s.q, "FL_foot"),
    "jacobian": lambda r, s: r.jacobian(s.q, "FL_foot", "world"),
    "frame_velocity": lambda r, s: r.frame_velocity(s.q, s.qd, "FL_foot"),
    "frame_acceleration": lambda r, s: r.frame_acceleration(s.q, s.qd, s.qdd, "FL_foot"),
    "velocity_product": lambda r, s: r.velocity_product_acceleration(s.q, s.qd, "FL_foot"),
    "center_of_mass": lambda r, s: r.center_of_mass(s.q),
    "momentum": lambda r, s: r.momentum(s.q, s.qd),
    "kinetic_energy": lambda r, s: r.kinetic_energy(s.q, s.qd),
    "potential_energy": lambda r, s: r.potential_energy(s.q),
    "integrate": lambda r, s: r.integrate(s.q, s.qd),
    "difference": lambda r, s: r.difference(s.q, np.roll(s.q, 1, axis=0)),
    "tangent_rate": lambda r, s: r.tangent_rate(s.qd, s.qdd),
    "lagrangian": lambda r, s: r.lagrangian_derivatives(s.q, s.qd, s.f_ext).dq,
    "constrained": lambda r, s: (
        r.constrained_forward_dynamics(
            s.q, s.qd, s.qdd, [LoopConstraint("FL_foot", "FR_foot", (3, 4, 5))]
        ).qdd
    ),
}


def batch_state(robot, lead):
    from mechanisms import State

    samples = [random_state(robot, i) for i in range(int(np.prod(lead)))]
    fields = {
        name: np.array([getattr(s, name) for s in samples]).reshape(
            *lead, *getattr(random_state(robot, 0), name).shape
        )
        for name in ("q", "qd", "qdd", "f_ext")
    }
    return State(**fields), samples


@pytest.mark.parametrize("name", [n for n in METHODS if n != "difference"])
def test_batches_are_the_single_calls(name):
    state, samples = batch_state(QUADRUPED, (2, 3))
    got = METHODS[name](QUADRUPED, state)
    single = [METHODS[name](QUADRUPED, s) for s in samples]
    assert_close(got, np.array(single).reshape(2, 3, *np.shape(single[0])), 4 * EPS)


@pytest.mark.parametrize("name", METHODS)
def test_an_empty_batch_has_the_right_shape(name):
    state, _ = batch_state(QUADRUPED, (0,))
    full = METHODS[name](QUADRUPED, batch_state(QUADRUPED, (1,))[0])
    assert METHODS[name](QUADRUPED, state).shape == (0, *full.shape[1:])


def test_leading_shapes_broadcast():
    state, _ = batch_state(ARM, (4, 1))
    tau = ARM.inverse_dynamics(state.q, np.zeros((5, 3)), np.ones(3))
    assert tau.shape == (4, 5, 3)
    assert_close(tau[2, 3], ARM.inverse_dynamics(state.q[2, 0], np.zeros(3), np.ones(3)), 0.0)


def test_lists_integers_and_slices_are_fine():
    expected = ARM.gravity_forces(np.array([0.0, 1.0, 0.0]))
    assert_close(ARM.gravity_forces([0, 1, 0]), expected, 0.0)
    strided = np.zeros((3, 2))
    strided[1] = 1
    assert_close(ARM.gravity_forces(strided[:, 0]), expected, 0.0)


Z = np.zeros(3)
BAD = {
    "too short": (
        lambda: ARM.inverse_dynamics(Z, Z[:2], Z),
        r"inverse_dynamics of 'arm3': qd has shape \(2,\); expected shape \(…, 3\): nv = 3 joint",
    ),
    "too long": (lambda: ARM.mass_matrix(np.zeros(4)), "nq = 3 coordinates"),
    "scalar": (lambda: ARM.mass_matrix(1.0), r"q has shape \(\)"),
    "complex": (lambda: ARM.mass_matrix(Z + 0j), "q has dtype complex128; .* robot.alg"),
    "text": (lambda: ARM.mass_matrix("abc"), "q is .abc.; expected shape"),
    "none": (lambda: ARM.mass_matrix([None] * 3), "q has dtype object"),
    "ragged": (lambda: ARM.mass_matrix([[1.0], [1.0, 2.0]]), "q is ragged"),
    "nan": (lambda: ARM.mass_matrix([0, np.nan, 0]), r"q\[1\] is nan; expected finite"),
    "infinite": (lambda: ARM.bias_forces(Z, [0, 0, np.inf]), r"qd\[2\] is inf"),
    "leading": (
        lambda: ARM.bias_forces(np.zeros((2, 3)), np.zeros((4, 3))),
        r"leading shapes do not broadcast: q \(2,\), qd \(4,\)",
    ),
    "f_ext": (
        lambda: ARM.bias_forces(Z, Z, np.zeros((2, 6))),
        r"f_ext has shape \(2, 6\); .* force\) on 3 bodies",
    ),
    "frame": (lambda: ARM.jacobian(Z, "tol"), "no frame 'tol'; did you mean 'tool'"),
    "reference": (lambda: ARM.jacobian(Z, "tool", "local"), "reference is 'local'; choose"),
    "about": (lambda: ARM.momentum(Z, Z, "base"), "about is 'base'; choose"),
    "quaternion": (
        lambda: QUADRUPED.gravity_forces(np.zeros(19)),
        r"q\[3:7\], the quaternion of joint 'trunk_free', is zero",
    ),
    "not a mechanism": (lambda: Robot("panda.urdf"), "needs a Mechanism, got str; .* hinge.load"),
    "axes": (lambda: LoopConstraint("a", "b", (5, 3)), r"axes .* are \(5, 3\)"),
    "no axes": (lambda: LoopConstraint("a", "b", ()), "axes of the constraint"),
    "no array": (
        lambda: ARM.inverse_dynamics(Z, None, Z),
        "inverse_dynamics of 'arm3': qd is missing, or None; it takes q, qd, qdd, f_ext",
    ),
    "another's array": (
        lambda: ARM.kernel("inverse_dynamics", "q", "qd", "qdd", "tau")(Z, Z, Z, Z),
        "inverse_dynamics of 'arm3': tau is not an argument; it takes q, qd, qdd, f_ext",
    ),
    "a list for a name": (
        lambda: ARM.jacobian(Z, ["tool"]),
        r"frame is \['tool'\].*expected names",
    ),
    "an array for a choice": (
        lambda: ARM.inverse_dynamics_derivatives(Z, Z, Z, order=np.array([1, 2])),
        r"order is array\(\[1, 2\]\); expected one of 1, 2",
    ),
    "out for normalized": (lambda: ARM.total_rates(Z, Z, np.zeros(3)), "normalized is array"),
    "threads": (lambda: Robot(ARM.mechanism, threads=0), "threads is 0; expected a whole number"),
    "zoo": (lambda: zoo.arm(0), "zoo.arm: n is 0; expected a whole number above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    call, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_bad_sample_spoils_only_itself():
    q = np.zeros((4, 3))
    q[2, 1] = np.nan
    tau = ARM.gravity_forces(q)
    assert np.isnan(tau[2]).all() and np.isfinite(tau[[0, 1, 3]]).all()
    q = np.tile(QUADRUPED.neutral(), (2, 1))
    q[0, 3:7] = 0
    g = QUADRUPED.gravity_forces(q)
    assert np.isnan(g[0]).all() and np.isfinite(g[1]).all()
    # also where the result does not depend on what is wrong
    q[0, 0] = np.inf
    M = QUADRUPED.mass_matrix(q)
    assert np.isnan(M[0]).all() and np.isfinite(M[1]).all()


def massless_tip():
    b = hinge.MechanismBuilder("whip")
    b.add("a", "world", hinge.Revolute(), inertia=hinge.Inertia(1.0, (1, 0, 0)))
    b.add("b", "a", hinge.Revolute(), placement=hinge.Transform(translation=(1, 0, 0)))
    return Robot(b.build())


def test_motion_without_inertia_is_singular():
    robot = massless_tip()
    with pytest.raises(
        SingularError, match="forward_dynamics of 'whip': joint 'b_joint' moves no inertia here"
    ):
        robot.forward_dynamics(np.zeros(2), np.zeros(2), np.ones(2))
    batch = robot.forward_dynamics(np.zeros((3, 2)), np.zeros(2), np.ones(2))
    assert np.isnan(batch).all()
    assert np.isfinite(robot.inverse_dynamics(np.zeros(2), np.ones(2), np.ones(2))).all()


def test_no_mass_has_no_center():
    with pytest.raises(hinge.ModelError, match="'empty' has no mass"):
        ROBOTS["empty"].center_of_mass(np.zeros(0))


def test_algorithms_are_bound_and_listed():
    assert "inverse_dynamics" in dir(ARM.alg)
    with pytest.raises(AttributeError, match="no function 'inverse_dynamic'"):
        ARM.alg.inverse_dynamic  # noqa: B018
    q = np.array([0.1, 0.2, 0.3])
    assert_close(ARM.rnea(q, q, q), ARM.inverse_dynamics(q, q, q), 0.0)
    assert_close(ARM.crba(q), ARM.alg.crba(q), 0.0)
    assert_close(ARM.aba(q, q, q), ARM.alg.aba(q, q, q), 10 * EPS)


def test_conventions_name_every_joint(capsys):
    for name in ("humanoid", "gripper", "tree0"):
        robot = ROBOTS[name]
        robot.conventions()
        printed = capsys.readouterr().out
        assert all(f"  {joint} (" in printed for joint in robot.joint_names)
        assert f"nv = {robot.nv}" in printed


def test_repr_and_names():
    assert repr(ARM) == "<Robot 'arm3': 3 bodies, nq = 3, nv = 3>"
    assert repr(ARM.mechanism) == "<Mechanism 'arm3': 3 bodies, nq = 3, nv = 3>"
    assert QUADRUPED.q_slice("trunk_free") == slice(0, 7)
    assert QUADRUPED.v_slice("trunk_free") == slice(0, 6)
    assert ARM.frame_names == ("world", "link1", "link2", "link3", "tool")
    assert abs(ARM.total_mass - 4.0 * (1 + 0.8 + 0.64)) < 10 * EPS


def test_a_robot_says_which_way_it_goes():
    text = ARM.explain("inverse_dynamics")
    assert "unrolled" in text and "canonical" in text and "operations" in text
    assert "frames" in ARM.explain("jacobian", frame="tool")
    assert "hybrid" in ARM.explain("hybrid_dynamics", active=["joint1"])
    assert "loops over ancestors" in zoo.snake(70).explain("mass_matrix")
    forces = ARM.explain("inverse_dynamics", "q", "qd", "qdd", "f_ext")
    assert forces != text
    with pytest.raises(ArgumentError, match="no algorithm is called 'mass_matrx'; did you mean"):
        ARM.explain("mass_matrx")

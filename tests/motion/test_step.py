"""A step of one's own: ground, stops, limits, and joints that are as stiff as they like."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hinge
from hinge import simulate, zoo
from hinge.motion.stops import pace_of
from mechanisms import ROBOTS, random_state

EPS = np.finfo(float).eps
ARM = """<mujoco><option timestep="0.01" integrator="Euler"/><worldbody>
<body><joint name="a" axis="0 1 0" damping="5" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
<body pos="0.3 0 0"><joint name="b" axis="0 0 1" damping="0.7"/>
<geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.02"/>
<body pos="0.2 0 0.1"><joint name="c" axis="1 0 0" damping="0.02" type="slide"/>
<geom type="sphere" size="0.04"/></body></body></body></worldbody></mujoco>"""


def weight(joint, mass=1.0, gravity=(0, 0, 0)):
    b = hinge.MechanismBuilder("weight", gravity=gravity)
    inertia = hinge.Inertia(mass, about_com=0.1 * np.eye(3))
    b.add("body", "world", joint, "joint", inertia=inertia)
    return hinge.Robot(b.build())


def walk(robot, q, qd, dt, steps, tau=0.0, **settings):
    """Steps by a rollout: q, q̇ after each."""

    @robot.rollout(state=("q", "qd"))
    def run(q, qd, dt):
        return hinge.step(robot, q, qd, np.zeros(robot.nv) + tau, dt, **settings)[:2]

    return run(q, qd, dt, steps=steps)


def test_damping_is_that_of_mujoco():
    """Its Euler steps are implicit in the damping of joints, too."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    robot = hinge.load(ARM)
    data.qvel[:] = (2.0, -5.0, 0.3)
    q, _ = walk(robot, np.zeros(3), data.qvel.copy(), 0.01, 100)
    for i in range(100):
        mujoco.mj_step(model, data)
        assert_allclose(q[i], data.qpos, atol=1e-11)


@pytest.mark.parametrize("name", ["gripper", "quadruped", "space_arm", "tree0"])
def test_it_solves_the_equation_that_is_written_down(name):
    """With dense matrices: (M + h D) (v − q̇) = h (τ − b − D q̇), D of leaders and followers."""
    mech, h, rng = ROBOTS[name].mechanism, 0.02, np.random.default_rng(0)
    for joint in mech.joint_names:
        mech = hinge.edit.with_joint(mech, joint, damping=rng.uniform(0.1, 5.0))
    robot = hinge.Robot(mech)
    s, nv = random_state(robot, 0), robot.nv
    damping = -robot.passive_forces(np.tile(s.q, (nv, 1)), np.eye(nv)).T
    M, b = robot.mass_matrix(s.q), robot.bias_forces(s.q, s.qd)
    rate = np.linalg.solve(M + h * damping, s.qdd - b - damping @ s.qd)
    after = hinge.step(robot, s.q, s.qd, s.qdd, h, limits=False)
    size = np.abs(rate).max()
    assert_allclose(after.qd, s.qd + h * rate, rtol=1e-9, atol=1e-11 * size)
    assert_allclose(after.q, robot.integrate(s.q, h * after.qd), rtol=1e-12, atol=1e-12)


def test_as_stiff_as_they_like():
    """Springs and dampers whose explicit steps end in NaN."""
    k, d, h = 1e7, 3e4, 0.01
    robot = weight(hinge.Prismatic((1, 0, 0), stiffness=k, damping=d, rest=0.5))
    q, qd = walk(robot, [0.0], [0.0], h, 200)
    assert (
        np.isfinite(q).all() and abs(q[-1, 0] - 0.5) < 1e-9 and (np.diff(q[:, 0]) >= -1e-12).all()
    )
    # one step, by hand
    v = h * k * 0.5 / (1 + h * d + h * h * k)
    assert_allclose(qd[0], [v], rtol=10 * EPS)


def test_springs_on_balls_too():
    robot = weight(hinge.Spherical(stiffness=1e5, damping=1e3))
    q = robot.integrate(robot.neutral(), np.array([0.5, -0.4, 0.3]))
    q, qd = walk(robot, q, np.zeros(3), 0.01, 300)
    assert_allclose(np.abs(q[-1]), np.abs(robot.neutral()), atol=1e-6)
    assert np.abs(qd[-1]).max() < 1e-6


def test_dry_friction_stops_and_does_not_push_back():
    """However long the step: of s(v) f/v nothing turns the speed round."""
    f, h = 3.0, 0.05
    robot = weight(hinge.Prismatic((1, 0, 0), friction=f), mass=0.1)
    _, qd = walk(robot, [0.0], [2.0], h, 100)
    assert (qd >= 0).all() and (np.diff(qd[:, 0]) <= 0).all() and qd[-1, 0] < 1e-6
    # fast, and finely: −f/m
    _, qd = walk(robot, [0.0], [2.0], 1e-4, 100)
    assert_allclose(qd[-1, 0], 2.0 - f / 0.1 * 1e-2, rtol=2e-2)


def test_it_converges_to_what_simulate_does():
    joint = dict(stiffness=8.0, rest=0.3, damping=0.4, friction=0.1)
    robot = weight(hinge.Revolute((0, 1, 0), **joint), gravity=(1.0, 0, -9.81))
    exact = simulate(robot, [0.0], [1.0], duration=0.2, dt=1e-5, every=20000).q[-1, 0]
    off = [abs(walk(robot, [0.0], [1.0], 0.2 / n, n)[0][-1, 0] - exact) for n in (400, 800, 1600)]
    assert off[2] < 2e-3 and off[2] < 0.4 * off[0]


def test_limits_act_and_can_be_left_out():
    robot = zoo.arm(3)
    q, qd, tau = np.array([2.9, 0.0, 0.0]), np.zeros(3), np.array([1e6, 50.0, 0.0])
    one = hinge.step(robot, q, qd, tau, 1e-3)
    stops = robot._keep("stops", lambda: None)
    pushed = stops.forces(robot.mechanism, q, qd, pace_of("rk4", 1e-3))
    rate = robot.forward_dynamics(q, qd, np.clip(tau, -100, 100) + pushed)
    assert_allclose(one.qd, 1e-3 * rate, rtol=1e-11)
    free = hinge.step(robot, q, qd, tau, 1e-3, limits=False)
    assert_allclose(free.qd, 1e-3 * robot.forward_dynamics(q, qd, tau), rtol=1e-11)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_on_the_ground_it_is_the_step_of_simulate(law):
    """Of a robot with springs, damping, friction and stops in its joints."""
    mech, h = zoo.quadruped().mechanism, 2e-3 if law == "rigid" else 1e-4
    for name, more in (
        ("FL_knee", dict(damping=3.0, stiffness=20.0)),
        ("FR_knee", dict(friction=1.0, lower=-1.0, upper=1.0)),
    ):
        mech = hinge.edit.with_joint(mech, name, **more)
    robot, feet = hinge.Robot(mech), ["FL_foot", "FR_foot", "RL_foot", "RR_foot"]
    ground = hinge.Ground(feet, law=law)
    q = robot.neutral()
    q[2] = -robot.frame_pose(q, "FL_foot")[2, 3] + (0.001 if law == "rigid" else -0.002)
    forces, qd, q0 = np.zeros((4, 3)), np.zeros(robot.nv), q
    steps = []
    for _ in range(10):
        q, qd, forces, _ = hinge.step(robot, q, qd, np.zeros(robot.nv), h, ground, forces)
        steps.append(q)
    run = simulate(robot, q0, duration=10 * h, dt=h, ground=ground, method="semi_implicit_euler")
    if law == "rigid":
        assert_allclose(steps, run.q[1:], atol=1e-10)
        assert_allclose(forces, run.forces[-1], rtol=1e-6, atol=1e-6)
    else:
        # simulate is explicit in the joints' own forces there: O(h)
        assert_allclose(steps, run.q[1:], atol=5e-4)
        assert forces.shape == (4, 3) and forces[:, 2].sum() > 10


def test_rigid_ground_with_damping_is_as_exact_as_its_equation():
    """A leg that is damped, stands, and is pushed: the ground holds it, and forces balance."""
    b = hinge.MechanismBuilder("hopper")
    body = hinge.Inertia(2.0, about_com=0.01 * np.eye(3))
    b.add("body", "world", hinge.Prismatic((0, 0, 1)), inertia=body)
    slide = hinge.Prismatic((0, 0, 1), damping=1e4, stiffness=1e5)
    b.add("foot", "body", slide, inertia=hinge.Inertia(0.5, about_com=0.01 * np.eye(3)))
    robot = hinge.Robot(b.build())
    ground = hinge.Ground("foot", law="rigid")
    run = simulate(robot, [0.0, 0.0], duration=2.0, dt=0.01, ground=ground)
    assert_allclose(run.forces[-1, 0], [0, 0, 2.5 * 9.81], rtol=1e-6, atol=1e-9)
    assert_allclose(run.q[-1], [-2 * 9.81 / 1e5, 2 * 9.81 / 1e5], rtol=1e-5)


def test_what_is_refused():
    with pytest.raises(hinge.ArgumentError, match="step of .*: it knows no loop constraints"):
        robot = zoo.arm(2)
        loop = hinge.Contact("tool")
        hinge.step(hinge.Robot(robot.mechanism, constraints=[loop]), *np.zeros((3, 2)), 0.1)
    with pytest.raises(hinge.ArgumentError, match="ground is 7; expected a hinge.Ground"):
        hinge.step(zoo.arm(2), *np.zeros((3, 2)), 0.1, ground=7)


def ballbot():
    """A wheel on a slide: nothing moves it up or down."""
    b = hinge.MechanismBuilder("ballbot")
    body = hinge.Inertia(1.0, about_com=0.01 * np.eye(3))
    up = hinge.Transform(translation=(0, 0, 0.1))
    b.add("x", "world", hinge.Prismatic((1, 0, 0)), "slide", inertia=body, placement=up)
    b.add("wheel", "x", hinge.Revolute((0, 1, 0)), "roll", inertia=body)
    return hinge.Robot(b.build())


def test_a_wheel_that_nothing_presses_down_is_said():
    """No joint moves it along the normal: there is no normal force, and so no friction."""
    robot = ballbot()
    ground = hinge.Ground([("wheel", (0, 0, 0), 0.1)], law="rigid")
    with pytest.raises(hinge.ArgumentError, match="no joint moves point 'wheel' along the normal"):
        simulate(robot, [0.0, 0.0], [1.0, 0.0], duration=0.1, ground=ground)
    with pytest.raises(hinge.ArgumentError, match="nothing says how hard it presses"):
        simulate(robot, np.zeros((5, 2)), duration=0.1, ground=ground)
    with pytest.warns(hinge.ModelWarning, match="no joint moves wheel along the normal"):
        hinge.step(robot, np.zeros(2), np.zeros(2), np.zeros(2), 0.01, ground)
    # one that never comes there
    high = hinge.Ground([("wheel", (0, 0, 0), 0.05)], law="rigid")
    run = simulate(robot, [0.0, 0.0], [1.0, 0.0], duration=0.1, ground=high)
    assert_allclose(run.q[-1], [0.1, 0.0], atol=1e-12)
    # on a slope it is pressed, and rolls
    slope = hinge.Ground([("wheel", (0, 0, 0), 0.1)], law="rigid", normal=(-0.1, 0, 1))
    assert not slope.unpressed(robot.mechanism)

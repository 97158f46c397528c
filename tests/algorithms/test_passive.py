"""Springs, damping and friction of joints: potentials, oscillators, and MuJoCo."""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge import ModelError, simulate, zoo
from hinge.load.mujoco_state import MujocoState
from mechanisms import EPS, JOINTS, along, assert_close, complex_step, gripper, random_state

mujoco = pytest.importorskip("mujoco")
BODY = hinge.Inertia(1.0, (0.1, 0.2, -0.1), np.diag([0.1, 0.12, 0.09]))


def sprung(joint, seed=0):
    """The joint with springs: equal ones for turns of balls, others as they come."""
    rng = np.random.default_rng(seed)
    stiffness, rest = rng.uniform(1, 5, size=joint.nv), rng.uniform(-0.5, 0.5, size=joint.nv)
    if isinstance(joint, (hinge.Spherical, hinge.Free)):
        stiffness[:3] = 3.0
    return replace(joint, stiffness=stiffness, rest=rest)


@pytest.mark.parametrize("kind", JOINTS)
def test_springs_have_a_potential(kind):
    b = hinge.MechanismBuilder("sprung").add("body", "world", sprung(JOINTS[kind]), inertia=BODY)
    robot = hinge.Robot(b.build())
    s = random_state(robot, 1)
    force = robot.alg.passive_forces(s.q, s.qd)
    for e, f in zip(np.eye(robot.nv), force, strict=True):
        move = along(robot, s.q, e)
        slope = complex_step(lambda h, move=move: robot.alg.spring_energy(move(h)))
        assert_close(f, -slope, 100 * EPS)
    slack = robot.mechanism.bodies[1].joint
    rest = slack.integrate(slack.neutral(), np.array(slack.rest))
    if not isinstance(slack, (hinge.Planar, hinge.Free)):
        assert_close(robot.alg.passive_forces(rest, 0 * s.qd), 0 * s.qd, 10 * EPS)
    assert_close(robot.passive_forces(s.q, s.qd), force, 100 * EPS)
    assert_close(robot.spring_energy(s.q), robot.alg.spring_energy(s.q), 100 * EPS)


def test_a_mass_on_a_spring_swings_as_it_should():
    b = hinge.MechanismBuilder("spring", gravity=(0, 0, -9.81))
    joint = hinge.Prismatic((0, 0, 1), stiffness=40.0, rest=0.3)
    b.add("mass", "world", joint, inertia=hinge.Inertia(2.0))
    robot = hinge.Robot(b.build())
    dt = 1e-3
    motion = simulate(robot, [0.1], duration=2.0, dt=dt, every=100)
    middle = 0.3 - 2.0 * 9.81 / 40.0
    swing = middle + (0.1 - middle) * np.cos(np.sqrt(40.0 / 2.0) * motion.t)
    assert_close(motion.q[:, 0], swing, 100 * dt**4)
    assert_close(motion.energy, np.full_like(motion.t, motion.energy[0]), 2 * dt**4)


@pytest.mark.long
def test_a_tree_on_springs_keeps_its_energy():
    mech = zoo.tree(2, 9).mechanism
    bodies = [replace(b, joint=sprung(b.joint, k)) if k else b for k, b in enumerate(mech.bodies)]
    robot = hinge.Robot(replace(mech, bodies=tuple(bodies)))
    s, dt = random_state(robot, 3), 1e-3
    motion = simulate(robot, s.q, 0.3 * s.qd, duration=0.2, dt=dt, every=100)
    assert_close(motion.energy, np.full_like(motion.t, motion.energy[0]), 5 * dt**4)
    stepped = simulate(robot, s.q, 0.3 * s.qd, duration=0.005, dt=dt, compiled=False)
    again = simulate(robot, s.q, 0.3 * s.qd, duration=0.005, dt=dt)
    assert_close(stepped.qd, again.qd, 20 * EPS)


def test_springs_of_followers_pull_their_leader():
    mech = gripper().mechanism
    bodies = [replace(b, joint=sprung(b.joint, k)) if k else b for k, b in enumerate(mech.bodies)]
    robot = hinge.Robot(replace(mech, bodies=tuple(bodies)))
    q = np.array([0.3, -0.2, 0.5])
    slope = [
        complex_step(lambda h, e=e: robot.alg.spring_energy(q + h * e)) for e in np.eye(robot.nv)
    ]
    assert_close(robot.alg.passive_forces(q, 0 * q), -np.array(slope), 100 * EPS)


MJCF = """
<mujoco><worldbody>
  <body pos="0 0 1"><freejoint/><geom size=".1"/>
    <body pos="1 0 0"><joint name="hinge" stiffness="3" springref="20" ref="10" damping="0.4"/>
      <geom size=".1" pos=".2 0 0"/>
      <body pos="0 1 0"><joint name="slide" type="slide" axis="1 1 0" stiffness="7" springref="0.2"
          damping="2"/><geom size=".1"/>
        <body pos="0 0 1"><joint name="ball" type="ball" stiffness="2" damping="0.1"/>
          <geom size=".1" pos="0 0 .3"/></body></body></body></body>
  <body pos="0 3 1"><joint type="free" stiffness="5" damping="0.3"/><geom size=".1"/></body>
</worldbody></mujoco>"""


def test_springs_of_mjcf_are_those_of_mujoco():
    robot = hinge.load(MJCF)
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    data.qpos[:] = model.qpos0 + rng.normal(size=model.nq) * 0.3
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    there = MujocoState(model, robot.mechanism)
    q, qd = there.q(data.qpos), there.v(data.qpos, data.qvel)
    assert_close(robot.passive_forces(q, qd), there.tau(data.qpos, data.qfrc_passive), 10 * EPS)


def test_springs_of_urdf():
    text = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/>
      <dynamics damping="0.5" spring_stiffness="4" spring_reference="0.25"/></joint></robot>"""
    robot = hinge.load(text)
    assert_close(robot.passive_forces([0.75], [2.0]), np.array([-3.0]), EPS)


def test_wrong_springs_say_so():
    with pytest.raises(ModelError, match="stiffness is -1; it must not be negative"):
        hinge.Revolute(stiffness=-1.0)
    with pytest.raises(ModelError, match="give one number for all axes"):
        hinge.Spherical(stiffness=(1.0, 2.0, 1.0))
    with pytest.raises(ModelError, match="rest is .*give finite numbers"):
        hinge.Revolute(rest=np.inf)
    assert hinge.Free(stiffness=(1, 1, 1, 2, 3, 4)).stiffness == (1, 1, 1, 2, 3, 4)

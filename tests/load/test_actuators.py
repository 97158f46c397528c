"""Motors and servos of files: what they say, what they limit, and the forces they give.

MuJoCo's own forces (`qfrc_actuator`) are the reference.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, ModelWarning, control
from hinge.load.mjcf import MujocoState
from robot_files import ARM

mujoco = pytest.importorskip("mujoco")

ARMS = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/>
  <body pos="1 0 0"><joint name="k" type="slide"/><geom size=".1"/>
    <body pos="1 0 0"><joint name="b" type="ball"/><geom size=".1"/><site name="s"/></body></body>
  </body></worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-1"/></fixed></tendon>
  <actuator>{}</actuator></mujoco>"""
SERVOS = """<motor name="m" joint="j" gear="50" ctrlrange="-1 2"/>
  <motor name="m2" joint="j" gear="-3" forcerange="-2 4"/>
  <position name="p" joint="k" kp="10" dampratio="1" forcerange="-3 3" gear="2"/>
  <velocity name="v" joint="k" kv="2" ctrlrange="-1 1"/>
  <damper name="d" joint="j" kv="1" ctrlrange="0 2"/>
  <motor name="r" tendon="t" gear="3"/>
  <general name="g" joint="j" gainprm="2 1 .5" biasprm=".1 .2 .3" gaintype="affine"
    biastype="affine"/>"""


def loaded(actuators, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return hinge.load(ARMS.format(actuators), **options)


@pytest.mark.parametrize("isolate", [False, True])
def test_what_a_file_says_of_its_actuators(isolate):
    robot = loaded(SERVOS, isolate=isolate)
    assert [(a.name, a.type, a.joints, a.gears) for a in robot.actuators] == [
        ("m", "motor", ("j",), (50.0,)),
        ("m2", "motor", ("j",), (-3.0,)),
        ("p", "position", ("k",), (2.0,)),
        ("v", "velocity", ("k",), (1.0,)),
        ("d", "damper", ("j",), (1.0,)),
        ("r", "motor", ("j", "k"), (6.0, -3.0)),
        ("g", "general", ("j",), (1.0,)),
    ]
    motor, _, servo, *_ = robot.actuators
    assert (motor.control_range, servo.force_range) == ((-1.0, 2.0), (-3.0, 3.0))
    assert (servo.gain, servo.bias[:2]) == ((10.0, 0.0, 0.0), (0.0, -10.0)) and servo.bias[2] < 0
    assert robot.actuated == ("j", "k")


def test_gears_and_ranges_are_effort_limits():
    motor = '<motor joint="j" gear="50" ctrlrange="-1 .5"/>'
    assert loaded(motor).effort_limit.tolist() == [50, *4 * [np.inf]]
    both = motor + '<general joint="j" gear="-2" gainprm="3" ctrlrange="-1 1" forcerange="-9 2.5"/>'
    assert loaded(both).effort_limit[0] == 50 + 2 * 3
    assert loaded(motor + '<motor joint="j"/>').effort_limit[0] == np.inf
    servo = '<position joint="k" kp="9" ctrlrange="-1 1" gear="2" {}/>'
    assert loaded(servo.format("")).effort_limit[1] == np.inf
    assert loaded(servo.format('forcerange="-4 3"')).effort_limit[1] == 8
    slow = '<general joint="k" dyntype="{}" dynprm=".1" ctrlrange="-2 2"/>'
    assert loaded(slow.format("filter")).effort_limit[1] == 2
    assert loaded(slow.format("integrator")).effort_limit[1] == np.inf
    text = ARMS.replace('name="j"', 'name="j" actuatorfrcrange="-7 3"').format(motor)
    assert hinge.load(text).effort_limit[0] == 7
    pull = '<motor tendon="t" gear="3" ctrlrange="-1 1"/>'
    assert loaded(pull).effort_limit[:2].tolist() == [6, 3]
    text = ARMS.replace('<fixed name="t"', '<fixed name="t" actuatorfrcrange="-2 1"').format(pull)
    assert hinge.load(text).effort_limit[:2].tolist() == [4, 2]


@pytest.mark.parametrize("flag", ['actuation="disable"', 'clampctrl="disable"'])
def test_flags_that_switch_actuators_off(flag):
    motor = '<motor joint="j" gear="50" ctrlrange="-1 1"/>'
    text = ARMS.format(motor).replace("<mujoco>", f"<mujoco><option><flag {flag}/></option>")
    robot = hinge.load(text)
    assert robot.effort_limit[0] == np.inf and len(robot.actuators) == ("clamp" in flag)
    group = motor.replace("gear", 'group="2" gear')
    text = ARMS.format(group + '<motor joint="k"/>')
    off = hinge.load(text.replace("<mujoco>", '<mujoco><option actuatorgroupdisable="2"/>'))
    assert off.actuated == ("k",)


@pytest.mark.parametrize("kind", ["compiled", "plain"])
def test_the_law_of_actuators_is_that_of_mujoco(kind):
    robot, model = loaded(SERVOS), mujoco.MjModel.from_xml_string(ARMS.format(SERVOS))
    state, data = MujocoState(model, robot.mechanism), mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.qpos[:], data.qvel[:] = state.qpos(robot.random_configuration(rng)), rng.normal(size=5)
        data.ctrl[:] = rng.normal(size=7) * 3
        mujoco.mj_forward(model, data)
        law = control.ActuatorForces(robot, data.ctrl)
        q, qd = state.q(data.qpos), state.v(data.qpos, data.qvel)
        tau = law(0.0, q, qd) if kind == "compiled" else law._force(0.0, q, qd)
        expected = state.tau(data.qpos, data.qfrc_actuator)
        np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_a_motion_under_servos_is_that_of_mujoco():
    servo = '<position name="p" joint="j" kp="40" kv="5"/><motor joint="k" gear="2"/>'
    robot, text = loaded(servo), ARMS.format(servo)
    model = mujoco.MjModel.from_xml_string(
        text.replace("<mujoco>", '<mujoco><option timestep="1e-3" integrator="RK4"/>')
    )
    data, state = mujoco.MjData(model), MujocoState(model, robot.mechanism)
    law = control.ActuatorForces(robot, lambda t, q, qd: [0.3, -q[1] - 0.1 * qd[1]])
    motion = hinge.simulate(robot, robot.neutral(), tau=law, duration=0.2, dt=1e-3, method="rk4")
    with_control = 1e-3 * np.arange(200)
    for _ in with_control:
        data.ctrl[:] = 0.3, -data.qpos[1] - 0.1 * data.qvel[1]
        mujoco.mj_step(model, data)
    # MuJoCo keeps the control over a step
    np.testing.assert_allclose(motion.q[-1], state.q(data.qpos), rtol=0, atol=2e-4)


def test_actuators_without_a_law_are_named():
    for actuator, reason in {
        '<muscle name="a" joint="j" lengthrange="0 1"/>': "muscle with muscle",
        '<intvelocity name="a" joint="j" actrange="-1 1"/>': "intvelocity with integrator",
        '<position name="a" joint="j" timeconst=".1"/>': "position with filter",
        '<motor name="a" site="s"/>': "on s, no joint of one DoF",
        '<motor name="a" joint="b"/>': "on b, no joint of one DoF",
        '<orientation name="a" joint="b" kp="1"/>': "general with several controls",
    }.items():
        robot = loaded(actuator)
        with pytest.raises(ArgumentError, match=f"no law is known of 'a' .{reason}"):
            control.ActuatorForces(robot, [0.0])
    with pytest.raises(ArgumentError, match="has no actuators; give some to hinge.Robot"):
        control.ActuatorForces(hinge.zoo.arm(3), [0.0])


def test_wrong_controls_and_actuators_are_named():
    robot = loaded('<motor name="m" joint="j"/><motor name="n" joint="k"/>')
    for wrong in ([1.0], "x", [1.0, np.nan], None):
        with pytest.raises(ArgumentError, match="expected 2 numbers, one for each of m, n, or a"):
            control.ActuatorForces(robot, wrong)
    with pytest.raises(ArgumentError, match="gave controls of shape .3,.; expected .2,."):
        control.ActuatorForces(robot, lambda t, q, qd: q[:3])(0.0, robot.neutral(), np.zeros(5))
    with pytest.raises(ArgumentError, match="actuators has 'j'; give objects of hinge.Actuator"):
        hinge.Robot(robot.mechanism, actuators="j")
    with pytest.raises(ArgumentError, match="actuators has 1; give"):
        hinge.Robot(robot.mechanism, actuators=1)
    with pytest.raises(ArgumentError, match="no joint 'x'"):
        hinge.Robot(robot.mechanism, actuators=[hinge.Actuator("m", "motor", ("x",), (1.0,))])


def test_actuators_follow_edits():
    robot = loaded('<motor name="m" joint="j"/><motor name="n" joint="k"/>')
    locked = hinge.edit.lock(robot, {"j": 0.0})
    assert [a.name for a in locked.actuators] == ["n"] and locked.actuated == ("k",)
    with pytest.warns(ModelWarning, match="actuators of .* are not taken along"):
        hinge.edit.attach(hinge.zoo.arm(2), robot, "tool")


def test_a_force_on_a_follower_drives_its_leader():
    couple = '<equality><joint joint1="k" joint2="j" polycoef="0.1 2 0 0 0"/></equality></mujoco>'
    text = ARMS.format('<position name="p" joint="k" kp="3"/>').replace("</mujoco>", couple)
    with pytest.warns(ModelWarning):
        robot = hinge.load(text, constraints=True)
    assert robot.actuated == ("j",)
    q = robot.neutral()
    q[0] = 0.4
    tau = control.ActuatorForces(robot, [1.0])(0.0, q, np.zeros(robot.nv))
    assert tau[0] == pytest.approx(2 * 3 * (1 - (0.1 + 2 * 0.4)), rel=1e-14)


TRANSMISSION = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
  <joint name="shoulder"><hardwareInterface>{}</hardwareInterface></joint>
  <actuator name="m"><mechanicalReduction>{}</mechanicalReduction></actuator>
</transmission></robot>"""


def urdf(end, **options):
    return hinge.load(ARM.replace("</robot>", end), **options)


def test_transmissions_of_urdf():
    (motor,) = urdf(TRANSMISSION.format("EffortJointInterface", " 50 ")).actuators
    assert motor == hinge.Actuator("m", "effort", ("shoulder",), (50.0,))
    robot = urdf(TRANSMISSION.format("hardware_interface/PositionJointInterface", "-1"))
    assert (robot.actuated, robot.actuators[0].gears) == (("shoulder",), (-1.0,))
    with pytest.raises(ArgumentError, match="'m' .position with controller"):
        control.ActuatorForces(robot, [0.0])
    assert not urdf(TRANSMISSION.format("JointStateInterface", "1")).actuators
    with pytest.warns(ModelWarning, match="<mechanicalReduction> is 'x', no number; it is taken"):
        assert urdf(TRANSMISSION.format("EffortJointInterface", "x")).actuators[0].gears == (1.0,)
    with pytest.warns(ModelWarning, match="<joint> 'nobody' of an actuator is no joint"):
        end = TRANSMISSION.format("EffortJointInterface", "1").replace("shoulder", "nobody")
        assert not urdf(end).actuators


def test_a_transmission_of_several_joints_has_no_gears():
    both = TRANSMISSION.format("EffortJointInterface", "2")
    robot = urdf(both.replace("</joint>", '</joint><joint name="elbow"/>', 1))
    assert [(a.joints, a.gears) for a in robot.actuators] == [(("shoulder",), ()), (("elbow",), ())]
    assert robot.actuated == ("shoulder",)  # the elbow follows it


def test_joints_that_transmissions_leave_alone_are_named():
    elbow = '<joint name="elbow" type="continuous">'
    text = ARM.replace(
        '<mimic joint="shoulder" multiplier="2" offset="0.1"/>', '<limit effort="2"/>'
    )
    assert elbow in text and len(hinge.load(text).actuated) == 2
    end = TRANSMISSION.format("EffortJointInterface", "1")
    with pytest.warns(ModelWarning, match="no actuator drives 'elbow' .1., though they have eff"):
        assert hinge.load(text.replace("</robot>", end)).actuated == ("shoulder",)
    both = end.replace("<actuator", '<flexJoint name="elbow"/><passive_joint name="x"/><actuator')
    assert hinge.load(text.replace("</robot>", both)).actuated == ("shoulder", "elbow")


def test_commands_of_ros2_control():
    joint = '<joint name="shoulder">{}<state_interface name="position"/></joint>'
    control_of = '<ros2_control name="c" type="system">{}</ros2_control></robot>'
    command = '<command_interface name="position"/><command_interface name="effort"/>'
    (motor,) = urdf(control_of.format(joint.format(command))).actuators
    assert (motor.name, motor.type, motor.joints) == ("shoulder", "effort", ("shoulder",))
    assert not urdf(control_of.format(joint.format(""))).actuators
    end = TRANSMISSION.format("EffortJointInterface", "2").replace("</robot>", "")
    both = end + control_of.format(joint.format(command))
    assert [a.name for a in urdf(both).actuators] == ["m"]

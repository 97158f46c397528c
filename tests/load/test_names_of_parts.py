"""What keeps its name when a file becomes a mechanism: shapes of merged links, frames of joints."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Inertia, ModelError, ModelWarning, Revolute, Transform, edit, zoo
from mechanisms import EPS

BOX = "<geometry><box size='1 1 1'/></geometry></collision>"
HAND = f"""<robot name="r">
  <link name="base"><collision name="foot">{BOX}</link>
  <link name="hand"><collision name="palm">{BOX}<collision>{BOX}</link>
  <link name="tool"><collision name="tip">{BOX}</link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="hand"/></joint>
  <joint name="screw" type="fixed"><parent link="hand"/><child link="tool"/></joint></robot>"""


def names(mech):
    return [[(s.link, s.name) for s in b.collisions] for b in mech.bodies]


def test_shapes_of_merged_links_know_their_link():
    mech = hinge.load(HAND).mechanism
    hand = [("hand", "palm"), ("hand", ""), ("tool", "tip")]
    assert names(mech) == [[("base", "foot")], hand]
    assert names(edit.with_gravity(mech, (0, 0, 1))) == names(mech)
    locked = edit.lock(mech, {"turn": 0.5})
    assert names(locked) == [[("base", "foot"), *hand]]
    both = edit.attach(zoo.arm(2), hinge.load(HAND), "tool", prefix="left/")
    mounted = [[(f"left/{link}", name) for link, name in part] for part in names(mech)]
    assert names(both.mechanism)[-2:] == mounted


def test_geoms_of_mjcf_know_their_body():
    pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><geom name="wall" size=".1"/>
      <body name="a" pos="5 0 0"><joint/><geom name="g" size=".1"/>
        <body name="b"><geom name="h" size=".1"/></body></body></worldbody></mujoco>"""
    with pytest.warns(ModelWarning, match="contacts with the ground"):
        mech = hinge.load(text).mechanism
    assert names(mech) == [[("world", "wall")], [("a", "g"), ("b", "h")]]


@pytest.mark.parametrize("robot", [zoo.arm(3), zoo.snake(60)], ids=["arm", "long"])
def test_a_joint_is_a_frame_by_its_name(robot):
    q, qd = robot.random_configuration(0), robot.random_velocity(0)
    for joint, body in list(zip(robot.joint_names, robot.body_names, strict=True))[-2:]:
        assert joint not in robot.frame_names
        np.testing.assert_array_equal(robot.frame_pose(q, joint), robot.frame_pose(q, body))
        np.testing.assert_array_equal(robot.jacobian(q, joint), robot.jacobian(q, body))
        one, other = robot.frame_velocity(q, qd, joint), robot.frame_velocity(q, qd, body)
        np.testing.assert_array_equal(one, other)


def test_the_frame_of_a_joint_is_where_it_moves():
    b = hinge.MechanismBuilder("offset")
    X = Transform.from_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    b.add("a", joint=Revolute(), joint_name="j", placement=X, offset=X, inertia=Inertia(1.0))
    b.add("b", "a", joint=Revolute(), joint_name="a2", inertia=Inertia(1.0))
    b.add_frame("a2", "a")
    robot = hinge.Robot(b.build())
    q = np.array([0.4, 0.0])
    turn = Transform(*Revolute().pose(q[:1]))
    expected = (X @ turn).matrix
    np.testing.assert_allclose(robot.frame_pose(q, "j"), expected, rtol=0, atol=32 * EPS)
    # a frame goes before a joint of its name
    np.testing.assert_array_equal(robot.frame_pose(q, "a2"), robot.frame_pose(q, "a"))
    with pytest.raises(ArgumentError, match="no frame 'joint9'"):
        robot.frame_pose(q, "joint9")


def test_limits_that_are_none_are_explained():
    robot = zoo.quadruped()
    with pytest.raises(ArgumentError, match=r"q1\[0\] is inf; .*\(robot.lower and robot.upper are"):
        robot.difference(robot.neutral(), robot.upper)
    with pytest.raises(ArgumentError, match=r"q1\[0\] is nan; expected finite numbers$"):
        robot.difference(robot.neutral(), np.full(robot.nq, np.nan))


def test_an_inertia_that_no_body_can_have_names_the_way_out():
    solid = Inertia(1.0, about_com=np.diag([1.0, 1.0, 3.0]))
    with pytest.raises(ModelError, match=r"nonphysical=\"accept\"\) takes it as it is"):
        hinge.MechanismBuilder("m").add("a", inertia=solid)
    with pytest.raises(ModelError, match="sum of the others.$"):
        edit.with_inertia(zoo.arm(2), "link1", solid)

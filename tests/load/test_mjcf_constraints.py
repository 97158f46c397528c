"""MJCF's equality constraints as loops, mimics and held joints, against MuJoCo's own rows."""

import warnings

import mujoco
import numpy as np
import pytest

import hinge
from hinge.load.mjcf import MujocoState

LOOPS = """
<mujoco model="loops">
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="crank" pos="0 0 1"><joint name="motor" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body name="rod" pos=".3 0 0" euler="0 0 20"><joint name="knee" type="ball"/>
        <geom type="capsule" fromto="0 0 0 .8 0 0" size=".02"/>
        <site name="rod_end" pos=".8 0 0" euler="10 20 30"/></body>
    </body>
    <body name="rocker" pos="1 .1 1"><joint name="pivot" axis="0 1 0.1" ref="20"/>
      <geom type="capsule" fromto="0 0 0 0 0 .6" size=".02"/>
      <site name="rocker_end" pos="0 0 .6" euler="40 0 0"/></body>
    <body name="stone" pos="0 1 0" euler="30 0 0"><freejoint/>
      <geom type="box" size=".1 .2 .3"/><site name="face" pos="0 0 .3" euler="0 40 0"/></body>
  </worldbody>
  <equality>{}</equality>
</mujoco>"""

KINDS = {
    "connect": '<connect name="pin" body1="rod" body2="rocker" anchor=".8 0 0"/>',
    "connect to the world": '<connect name="pin" body1="stone" anchor=".1 .2 .3"/>',
    "connect sites": '<connect name="pin" site1="rod_end" site2="rocker_end"/>',
    "weld": '<weld name="pin" body1="stone" body2="rod" anchor=".1 0 .05"/>',
    "weld with relpose": '<weld body1="stone" body2="rod" anchor=".1 0 0" torquescale=".7" '
    'relpose=".2 .1 0 .5 .5 .5 .5"/>',
    "weld sites": '<weld site1="rod_end" site2="face"/>',
    "two": '<connect body1="rod" body2="rocker" anchor=".8 0 0"/>'
    '<weld body1="stone" body2="crank"/>',
}


def both(text, **options):
    """The model, and the robot with its constraints."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return mujoco.MjModel.from_xml_string(text), hinge.load(text, constraints=True, **options)


def rows(model, data):
    """MuJoCo's rows of the active equality constraints: J and the errors."""
    mujoco.mj_fwdPosition(model, data)
    chosen = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    J = data.efc_J.reshape(-1, model.nv) if not mujoco.mj_isSparse(model) else None
    return J[chosen], data.efc_pos[chosen]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_mujoco(kind):
    model, robot = both(LOOPS.format(KINDS[kind]))
    state, data = MujocoState(model, robot.mechanism), mujoco.MjData(model)
    rng = np.random.default_rng(1)
    start = robot.integrate(state.q(model.qpos0), 0.2 * rng.normal(size=robot.nv))
    found = robot.assemble(start)
    assert found.closed
    data.qpos[:] = state.qpos(found.q)
    J, error = rows(model, data)
    assert np.abs(error).max() < 1e-9
    qd = rng.normal(size=robot.nv)
    K, at = robot.alg.constraint_jacobian(found.q, robot.constraints), 0
    for i, c in enumerate(robot.constraints):
        mine = (K @ qd)[at : at + len(c.axes)]
        theirs = (J @ state.qvel(found.q, qd))[at : at + len(c.axes)]
        at += len(c.axes)
        R = robot.frame_pose(found.q, c.right)[:3, :3]
        np.testing.assert_allclose(R @ mine[-3:], theirs[:3], atol=1e-9)
        if len(c.axes) == 6:
            scale = 0.5 * model.eq_data[i, 10]
            np.testing.assert_allclose(scale * mine[:3], theirs[3:], atol=1e-9)


def test_motion_is_that_of_hard_constraints():
    """MuJoCo's are made as stiff as they go: the same accelerations to three digits."""
    text = LOOPS.format(
        '<connect name="pin" body1="rod" body2="rocker" anchor=".8 0 0" solref="-1e-9 -1e-9" '
        'solimp=".99999 .99999 .001 .5 2"/>'
    )
    model, robot = both(text)
    state, data = MujocoState(model, robot.mechanism), mujoco.MjData(model)
    found = robot.assemble(state.q(model.qpos0), qd=np.linspace(0, 1, robot.nv))
    data.qpos[:] = state.qpos(found.q)
    data.qvel[:] = state.qvel(found.q, found.qd)
    mujoco.mj_forward(model, data)
    theirs = state.a(data.qpos, data.qvel, data.qacc)
    mine = robot.constrained_forward_dynamics(
        found.q, found.qd, np.zeros(robot.nv), robot.constraints
    ).qdd
    np.testing.assert_allclose(mine, theirs, atol=2e-3 * np.abs(theirs).max())


def test_gains_follow_from_solref():
    soft = '<connect body1="rod" body2="rocker" anchor=".8 0 0" solref="{}"/>'
    for solref, gains in {
        "0.1 2": (25.0, 20.0),
        "-300 -7": (300.0, 7.0),
        "-5 0": (5.0, 0.0),
    }.items():
        (loop,) = both(LOOPS.format(soft.format(solref)))[1].constraints
        assert (loop.stiffness, loop.damping) == pytest.approx(gains)


def test_names_and_who_has_them():
    text = LOOPS.format(KINDS["connect"])
    _, robot = both(text)
    assert robot.constraints[0].left == "pin/left" and robot.constraints[0].axes == (3, 4, 5)
    with pytest.warns(hinge.ModelWarning, match="left out: equality constraints pin"):
        assert hinge.load(text).constraints == ()
    off = both(text.replace("<flag ", '<flag equality="disable" '))[1]
    assert off.constraints == ()
    apart = both(text, isolate=True)[1]
    assert apart.constraints == robot.constraints and apart.mechanism == robot.mechanism


COUPLED = """
<mujoco model="gripper">
  <worldbody><body><joint name="left" type="slide" axis="1 0 0" ref=".1"/><geom size=".1"/></body>
    <body><joint name="right" type="slide" axis="-1 0 0" ref=".3"/><geom size=".1"/></body>
    <body name="thumb_body"><joint name="thumb" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
      <body name="rim"/></body></worldbody>
  <equality>{}</equality>
</mujoco>"""


def test_coupled_joints_mimic_each_other():
    model, robot = both(
        COUPLED.format('<joint joint1="right" joint2="left" polycoef=".02 1.5 0 0 0"/>')
    )
    assert robot.joint_names == ("left", "right", "thumb") and robot.nv == 2
    data = mujoco.MjData(model)
    x = 0.37
    follower = robot.mechanism.bodies[2].joint.mimic
    data.qpos[:] = x, follower.ratio * x + follower.offset, 0.2
    J, error = rows(model, data)
    assert np.abs(error).max() < 1e-15
    np.testing.assert_allclose(J @ [1.0, follower.ratio, 0.0], 0.0, atol=1e-15)


def test_held_joints_are_welded():
    _, robot = both(COUPLED.format('<joint joint1="right" polycoef=".02 0 0 0 0"/>'))
    assert robot.joint_names == ("left", "thumb")
    still = hinge.load(COUPLED.replace("<equality>{}</equality>", ""))
    frame = still.body_names[1]
    here = robot.frame_pose(robot.neutral(), frame)
    assert here == pytest.approx(still.frame_pose([0.1, 0.32, 0.0], frame), abs=1e-15)


FOLLOW = '<joint joint1="{}" joint2="{}"/>'


@pytest.mark.parametrize(
    ("equality", "why"),
    [
        (
            '<joint name="cam" joint1="right" joint2="left" polycoef="0 1 .5 0 0"/>',
            "'cam' couples.*poly",
        ),
        (
            '<joint joint1="right" joint2="left"/><joint joint1="right"/>',
            "'equality1' is the second",
        ),
        (
            '<joint joint1="right" joint2="left"/><joint joint1="left" joint2="right"/>',
            "in a circle",
        ),
        ('<connect name="far" body1="rim" anchor="1e20 0 0"/>', "'far' has data.*at most 1e"),
        ('<tendon name="rope" tendon1="cord"/>', "'rope' is of kind tendon; connect, weld"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(equality, why):
    cord = '<tendon><fixed name="cord"><joint joint="left" coef="1"/></fixed></tendon><equality>'
    text = COUPLED.format(equality).replace("<equality>", cord)
    with pytest.raises(hinge.ModelError, match=why):
        hinge.load(text, constraints=True)


FLOOR = """
<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1" {}/>
  <body><joint/><geom name="foot" size=".1"/><geom name="shell" size=".2" {}/>
    <body><joint/><geom name="toe" size=".1"/></body></body></worldbody>{}</mujoco>"""
NONE = 'contype="0" conaffinity="0"'


def test_contacts_that_are_left_out_are_told():
    with pytest.warns(hinge.ModelWarning, match="left out: contacts with the ground of foot, toe$"):
        hinge.load(FLOOR.format("", NONE, ""))
    pair = '<contact><pair name="grip" geom1="foot" geom2="toe"/></contact>'
    with pytest.warns(hinge.ModelWarning, match=r"left out: contact pairs grip$"):
        hinge.load(FLOOR.format(NONE, "", pair))
    off = '<option><flag contact="disable"/></option>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hinge.load(FLOOR.format(NONE, "", ""))
        hinge.load(FLOOR.format("", "", pair + off))


def test_gymnasium_s_ant_says_what_it_stands_on():
    folder = pytest.importorskip("gymnasium.envs.mujoco").__path__[0]
    with pytest.warns(hinge.ModelWarning, match="contacts with the ground of torso_geom") as said:
        hinge.load(f"{folder}/assets/ant.xml")
    assert len(said) == 1


def test_what_is_one_body_anyway_is_refused_by_name():
    lid = '<body name="lid" pos="0 0 .3"><geom size=".05"/></body></body>\n  </worldbody>'
    text = LOOPS.format('<weld name="glue" body1="stone" body2="lid"/>')
    text = text.replace("</body>\n  </worldbody>", lid)
    with pytest.raises(hinge.ModelError, match="'glue' holds bodies together that cannot move"):
        hinge.load(text, constraints=True)

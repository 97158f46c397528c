"""Files written: read again they give the same robot; what they cannot hold is refused by name."""

import os

import numpy as np
import pytest

import hinge
from hinge import (
    Free,
    Inertia,
    Mimic,
    Planar,
    Prismatic,
    Revolute,
    Shape,
    Spherical,
    Transform,
    Translation,
    edit,
    zoo,
)
from mechanisms import EPS, assert_close, gripper, random_state
from robot_files import odd_models_allowed

FORMATS = ("urdf", "xml")
BODY = Inertia(2.0, (0.1, 0.0, 0.2), [[0.3, 0.01, 0.02], [0.01, 0.4, -0.03], [0.02, -0.03, 0.5]])


def there_and_back(robot, folder, ending, **options):
    """The robot that a file of the robot gives."""
    with odd_models_allowed():
        path = hinge.save(robot, folder / f"robot.{ending}", **options)
        return hinge.load(path)


def matched(robot, again, q, v):
    """The same state of a robot whose joints may come in another order."""
    leaders = [b.joint_name for b in robot.mechanism.bodies[1:] if b.joint.mimic is None]
    to_q, to_v = (
        np.concatenate([np.zeros(0, int), *(np.r_[at(name)] for name in leaders)])
        for at in (again.q_slice, again.v_slice)
    )
    other_q, other_v = np.zeros(again.nq), np.zeros((len(v), again.nv))
    other_q[to_q], other_v[:, to_v] = q, v
    return other_q, other_v, to_q, to_v


def assert_same(robot, again, tolerance=100 * EPS, but=()):
    """Poses, forces, losses and limits agree; but: limits and frames that need not."""
    assert set(again.joint_names) == set(robot.joint_names)
    assert (again.nq, again.nv) == (robot.nq, robot.nv)
    for seed in range(2):
        s = random_state(robot, seed)
        q, (qd, qdd), to_q, to_v = matched(robot, again, s.q, np.array([s.qd, s.qdd]))
        tau = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd)
        assert_close(again.alg.inverse_dynamics(q, qd, qdd)[to_v], tau, tolerance, what="tau")
        M = robot.alg.mass_matrix(s.q)
        found = again.alg.mass_matrix(q)[np.ix_(to_v, to_v)]
        assert_close(found, M, tolerance, what="mass matrix")
        passive = robot.alg.passive_forces(s.q, s.qd)
        found = again.alg.passive_forces(q, qd)[to_v]
        assert_close(found, passive, tolerance, what="passive forces")
        for frame in set(robot.frame_names) - set(but):
            pose = robot.alg.frame_pose(s.q, frame)
            assert_close(again.alg.frame_pose(q, frame), pose, tolerance, what=frame)
    for name in {"lower", "upper", "effort_limit", "velocity_limit"} - set(but):
        to = to_q if name in ("lower", "upper") else to_v
        np.testing.assert_array_equal(getattr(again, name)[to], getattr(robot, name), name)


def poses(rng):
    """Two poses anywhere."""
    return [Transform.from_quaternion(rng.normal(size=4), rng.normal(size=3)) for _ in range(2)]


def hard(ending, seed=0):
    """All joints that a format can hold, twice, with offsets, losses, frames and shapes."""
    rng = np.random.default_rng(seed)
    b = hinge.MechanismBuilder("hard robot & co", gravity=(0, 0, -9.81))
    losses = {"damping": 0.3, "friction": 0.2, "armature": 0.07, "stiffness": 3.0, "rest": 0.2}
    limits = {"lower": -0.7, "upper": 1.9, "effort_limit": 7.0}
    kinds = {
        "hinge": Revolute((1, 2, 3), **losses, **limits),
        "slide": Prismatic((0, 1, -1), **losses, **limits),
        "free turn": Revolute((0, 0, -1)),
        "free slide": Prismatic((1, 0, 0), damping=0.1),
        "one side": Revolute((0, 1, 0), lower=-0.3),
        "other side": Prismatic((0, 1, 0), upper=0.4),
    }
    ball = Spherical(damping=0.2, armature=0.1, friction=0.1, stiffness=2.0)
    kinds |= {"plane": Planar(damping=0.2)} if ending == "urdf" else {"ball": ball}
    b.add("mount", "world", placement=poses(rng)[0], inertia=BODY)
    b.add("base", "world", Free(damping=0.4), "floating", inertia=BODY)
    for side in ("left", "right"):
        parent = "base" if side == "left" else "mount"
        for i, (kind, joint) in enumerate(kinds.items()):
            name, (place, offset) = f"{side} {kind}", poses(rng)
            shapes = [Shape("box", (0.1, 0.2, 0.3), poses(rng)[0], (0.1, 0.2, 0.3, 0.5))]
            b.add(name, parent, joint, f"{name}!", place, BODY, offset, shapes, shapes)
            b.add_frame(f"{name}<frame>", name, poses(rng)[0])
            parent = name if i % 3 else parent
    if ending == "urdf":
        follower = Revolute((1, 1, 0), mimic=Mimic("left hinge!", -0.7, 0.1))
        b.add("follower", "right slide", follower, placement=poses(rng)[0], inertia=BODY)
    return hinge.Robot(b.build())


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_the_hardest_robot_comes_back(tmp_path, ending, seed):
    robot = hard(ending, seed)
    again = there_and_back(robot, tmp_path, ending)
    assert_same(robot, again, 400 * EPS)
    assert again.name == robot.name
    assert_close(again.mechanism.bodies[0].inertia.mass, BODY.mass, EPS)


ZOO = {
    "arm": zoo.arm(6),
    "quadruped": zoo.quadruped(),
    "acrobot": zoo.acrobot(),
    "cartpole": zoo.cartpole(),
    "empty": hinge.Robot(hinge.MechanismBuilder("empty").build()),
}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", ZOO)
def test_robots_of_the_zoo_come_back(tmp_path, name, ending):
    robot = ZOO[name]
    again = there_and_back(robot, tmp_path, ending)
    limits = () if ending == "urdf" else ("velocity_limit", "effort_limit")
    assert_same(robot, again, but=limits)
    for b in robot.mechanism.bodies:
        other = again.mechanism.bodies[again.mechanism.body_index(b.name)]
        for one, two in ((b.visuals, other.visuals), (b.collisions, other.collisions)):
            assert [s.kind for s in one] == [s.kind for s in two]
            for s, t in zip(one, two, strict=True):
                assert_close(t.size, s.size, 4 * EPS)
                assert_close(t.placement.matrix, s.placement.matrix, 8 * EPS)
                assert_close(t.rgba, s.rgba, 1e-7)


def test_a_mechanism_without_turns_comes_back_equal(tmp_path):
    mech = zoo.acrobot().mechanism
    assert hinge.load(hinge.save(mech, tmp_path / "a.urdf")).mechanism == mech


def test_mimics_come_back_from_urdf(tmp_path):
    robot = gripper()
    again = there_and_back(robot, tmp_path, "urdf")
    assert_same(robot, again)
    followers = {b.joint_name: b.joint.mimic for b in again.mechanism.bodies if b.joint.mimic}
    assert followers["tip_joint"].joint == "left_joint"


def test_mimics_come_back_from_mjcf_as_constraints(tmp_path):
    robot = gripper()
    with pytest.warns(hinge.ModelWarning, match="by a constraint that is soft.*: right_joint, tip"):
        path = hinge.save(robot, tmp_path / "gripper.xml")
    again = hinge.load(path, constraints=True)
    assert_same(robot, again)


def closed():
    """A robot with a loop."""
    arm = zoo.arm(3)
    loop = hinge.LoopConstraint("tool", "world")
    return hinge.Robot(arm.mechanism, constraints=[loop])


def test_constraints_are_not_lost_in_silence(tmp_path):
    robot = closed()
    with pytest.raises(hinge.ModelError, match="constraints that close loops: tool to world"):
        hinge.save(robot, tmp_path / "a.urdf")
    with pytest.warns(hinge.ModelWarning, match="constraints that close loops: tool to world"):
        hinge.save(robot, tmp_path / "a.urdf", lenient=True)
    assert edit.with_gravity(robot, (0, 0, 0)).constraints == robot.constraints
    with pytest.raises(hinge.ArgumentError, match="no frame 'tool'"):
        edit.without(robot, "link2")
    with pytest.warns(hinge.ModelWarning, match="attach: constraints .* of 'arm3' are not taken"):
        edit.attach(zoo.arm(2), robot, prefix="b/")


def test_joints_of_one_body_come_back_from_mjcf(tmp_path):
    text = """<mujoco><worldbody><body name="a" pos="1 2 3" quat="1 2 3 4">
      <joint name="x" type="slide" axis="1 2 0"/>
      <joint name="y" pos="0 .3 1" axis="0 1 1"/>
      <joint name="z" pos="0 -.3 1" axis="1 0 1"/><geom size=".1 .2 .3" type="box" pos=".1 .2 .3"/>
      <body pos="0 1 0"><joint name="b" type="ball" pos="0 0 .2"/><geom size=".1"/></body>
      </body></worldbody></mujoco>"""
    robot = hinge.load(text)
    again = there_and_back(robot, tmp_path, "xml")
    assert_same(robot, again)
    assert set(again.body_names) == set(robot.body_names)
    shifted = hinge.load(text.replace('"0 1 1"/>', '"0 1 1" ref=".2"/>'))
    with pytest.warns(hinge.ModelWarning, match="the frame of a body between joints,: a/x"):
        path = hinge.save(shifted, tmp_path / "shifted.xml")
    assert_same(shifted, hinge.load(path), but={"a/x"})


def test_a_free_joint_with_armature_comes_back_from_mjcf(tmp_path):
    text = """<mujoco><worldbody><body pos="1 2 3" quat="1 1 0 0"><geom size=".1 .2 .3" type="box"/>
      <joint name="root" type="free" armature=".3" damping=".2" frictionloss=".1" stiffness="5"/>
      </body></worldbody></mujoco>"""
    robot = hinge.load(text)
    again = there_and_back(robot, tmp_path, "xml")
    assert again.joint_names == ("root/position", "root/orientation")
    assert_same(robot, again)


def test_a_spring_of_a_free_joint_comes_back_from_mjcf(tmp_path):
    spring = Free(stiffness=3.0, rest=(0.1, -0.4, 0.3, 1.0, 2.0, 3.0))
    b = hinge.MechanismBuilder("m").add("a", joint=spring, inertia=BODY)
    robot = hinge.Robot(b.build())
    assert_same(robot, there_and_back(robot, tmp_path, "xml"))


def test_one_format_into_the_other(tmp_path):
    """A joint beside its body's origin, as MJCF has them, is a link of its own in URDF."""
    text = """<mujoco><worldbody><body name="a" pos="1 2 3">
      <joint name="x" pos="0 .3 1" axis="0 1 1"/><geom size=".1 .2 .3" type="box" pos=".1 .2 .3"/>
      <site name="s" pos="1 1 1"/></body></worldbody></mujoco>"""
    robot = hinge.load(text)
    again = there_and_back(robot, tmp_path, "urdf")
    assert_same(robot, again)
    assert again.body_names == ("a/moving",)


def test_meshes_keep_their_files(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    (tmp_path / "meshes").mkdir()
    path = tmp_path / "meshes" / "a.stl"
    trimesh.creation.box((0.1, 0.2, 0.3)).apply_translation((1, 2, 3)).export(path)
    b = hinge.MechanismBuilder("m")
    X = Transform.from_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    mesh = Shape("mesh", (1.0, 2.0, 3.0), X, mesh=str(path))
    b.add("a", joint=Revolute(), inertia=BODY, visuals=[mesh], collisions=[mesh])
    for ending in FORMATS:
        written = hinge.save(b.build(), tmp_path / f"m.{ending}")
        assert "meshes/a.stl" in written.read_text() and str(path) not in written.read_text()
        (shape,) = hinge.load(written).mechanism.bodies[1].visuals
        assert (shape.mesh, shape.size) == (str(path), (1.0, 2.0, 3.0))
        assert_close(shape.placement.matrix, X.matrix, 1e-6)
    far = hinge.save(b.build(), (tmp_path / "meshes" / "sub.urdf"))
    assert 'filename="a.stl"' in far.read_text()


@pytest.mark.parametrize(("name", "text"), [("a.stl", "solid a\nendsolid a\n"), ("a.dae", "<a/>")])
def test_meshes_that_mujoco_cannot_read_are_left_out(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    mesh = Shape("mesh", (1, 1, 1), mesh=str(tmp_path / name))
    with pytest.warns(hinge.ModelWarning, match="that MuJoCo cannot read .binary .stl.*: a"):
        path = hinge.save(one(Revolute(), visuals=[mesh]), tmp_path / "m.xml")
    assert not hinge.load(path).mechanism.bodies[1].visuals


def test_a_capsule_is_what_every_reader_of_urdf_knows(tmp_path):
    b = hinge.MechanismBuilder("m")
    b.add("a", joint=Revolute(), inertia=BODY, visuals=[Shape("capsule", (0.1, 1.0))])
    shapes = hinge.load(hinge.save(b.build(), tmp_path / "m.urdf")).mechanism.bodies[1].visuals
    assert [s.kind for s in shapes] == ["cylinder", "sphere", "sphere"]
    assert {tuple(s.placement.translation) for s in shapes} == {
        (0, 0, 0),
        (0, 0, 0.5),
        (0, 0, -0.5),
    }


# what other programs read


def test_pinocchio_reads_the_same_robot(tmp_path):
    pytest.importorskip("pinocchio")
    from mechanisms import Generic
    from oracle.agreement import agree_on_accelerations, agree_on_forces, wild_state
    from oracle.pinocchio_bridge import PinocchioRobot, followers, pin

    robot = hard("urdf")
    plain = {"armature": 0.0, "stiffness": 0.0}
    robot = edit.with_joint(robot, [n for n in robot.joint_names if n != "floating"], **plain)
    with odd_models_allowed():
        path = hinge.save(robot, tmp_path / "hard.urdf")
    read = hinge.load(path)
    model = pin.buildModelFromUrdf(str(path))
    oracle = PinocchioRobot(Generic(read), model, followers(path.read_text()))
    s = wild_state(read, 0)
    agree_on_forces(oracle, s)
    agree_on_accelerations(oracle, s)
    assert_same(robot, read, 400 * EPS)
    at = model.joints[model.getJointId("left hinge!")].idx_q
    assert model.lowerPositionLimit[at] == -0.7


@pytest.mark.parametrize("robot", [hard("xml"), zoo.quadruped(), zoo.arm(5)], ids=lambda r: r.name)
def test_mujoco_reads_the_same_robot(tmp_path, robot):
    mujoco = pytest.importorskip("mujoco")
    from hinge.load.mjcf import MujocoState

    with odd_models_allowed():
        path = hinge.save(robot, tmp_path / "hard.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    data, state = mujoco.MjData(model), MujocoState(model, robot.mechanism)
    s = random_state(robot, 3)
    data.qpos[:], data.qvel[:] = state.qpos(s.q), state.qvel(s.q, s.qd)
    mujoco.mj_forward(model, data)
    inertial = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, inertial, state.qacc(s.q, s.qd, s.qdd))
    found = state.tau(data.qpos, inertial + data.qfrc_bias)
    expected = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(found, expected, 1e-12, what="inverse dynamics")
    losses = robot.alg.passive_forces(s.q, s.qd) + robot.friction * np.sign(s.qd)
    assert_close(state.tau(data.qpos, data.qfrc_passive), losses, 1e-12, what="springs, damping")


# refusals


def one(joint, inertia=BODY, gravity=(0, 0, -9.81), **contents):
    """A robot of one body."""
    b = hinge.MechanismBuilder("m", gravity=gravity)
    return hinge.Robot(b.add("a", joint=joint, joint_name="j", inertia=inertia, **contents).build())


def two(first, second, inertia=None):
    b = hinge.MechanismBuilder("m").add("a", joint=first, joint_name="j", inertia=inertia)
    return hinge.Robot(b.add("b", "a", second, "k", inertia=BODY).build())


REFUSED = {
    "helical": ("urdf", one(hinge.Helical(pitch=0.1)), "a Helical joint: j$"),
    "ball": ("urdf", one(Spherical()), "cannot be saved as URDF: a Spherical joint: j$"),
    "universal": ("urdf", one(hinge.Universal()), r"a Universal joint \(hinge.edit.single_axis"),
    "planar": ("xml", one(Planar()), "cannot be saved as MJCF: a Planar joint: j"),
    "translation": ("xml", one(Translation()), "Translation joint .*single_axis.*: j"),
    "free elsewhere": (
        "xml",
        one(Free(), placement=Transform(translation=(0, 0, 1))),
        "a free joint that does not count from the world's origin: j",
    ),
    "no mass": (
        "xml",
        one(Revolute(), Inertia()),
        "a body that moves and has no mass or no mom.*a",
    ),
    "a point": ("xml", one(Revolute(), Inertia(1.0)), "moves and has no mass or no moment.*: a"),
    "massless between": ("xml", two(Revolute(), Revolute()), "has no mass or no moment.*: a"),
}
LOST = {
    "gravity": (
        "urdf",
        one(Revolute(), gravity=(0, 0, -1.62)),
        r"gravity, .*: \(0.0, 0.0, -1.62\)",
    ),
    "damping": ("urdf", one(Free(damping=range(6))), "damping that differs .*: j"),
    "rest": (
        "urdf",
        one(Planar(stiffness=1.0, rest=(0.1, 0.2, 0.3))),
        "rest that differs by degree of freedom, of: j",
    ),
    "armature": ("xml", one(Free(armature=1.0)), "armature and friction of a free joint"),
    "slack": ("xml", one(Spherical(stiffness=1.0, rest=0.1)), "spring of a ball joint is slack"),
    "differs": ("xml", one(Spherical(damping=(1, 2, 3))), "damping that differs .*: j"),
}
LEFT_OUT = {
    "no file": (
        "urdf",
        one(Revolute(), visuals=[Shape("mesh", (1, 1, 1))]),
        "without a file",
    ),
    "plane": ("urdf", one(Revolute(), visuals=[Shape("plane", (1, 1))]), "a plane, of: a"),
    "ellipsoid": ("urdf", one(Revolute(), visuals=[Shape("ellipsoid", (1, 1, 2))]), "an? ellips"),
    "limits": ("urdf", one(Planar(lower=-1, upper=1)), "limits of a planar joint, of: j"),
    "efforts": ("urdf", one(Free(effort_limit=range(1, 7))), "effort limits that differ, of: j"),
    "armature": ("urdf", one(Revolute(armature=1.0)), "armature, written as hinge reads it"),
    "spring": ("urdf", one(Revolute(stiffness=1.0)), "stiffness, written as hinge reads it"),
    "velocity": ("xml", one(Revolute(velocity_limit=1.0)), "velocity limits, of: j"),
    "effort": ("xml", one(Spherical(effort_limit=1.0)), "effort limits, of: j"),
    "no effort": ("xml", one(Revolute(effort_limit=0.0)), "effort limits of 0, of: j"),
    "no room": ("xml", one(Revolute(lower=1, upper=1)), "limits that leave no room, of: j"),
    "no size": ("xml", one(Revolute(), visuals=[Shape("sphere", (0.0,))]), "a sphere of no size"),
    "moving plane": (
        "xml",
        one(Revolute(), visuals=[Shape("plane", (1, 1))]),
        "plane of no size, or",
    ),
    "no mesh": (
        "xml",
        one(Revolute(), visuals=[Shape("mesh", (1, 1, 1), mesh="none.stl")]),
        "meshes that are not there",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused_by_name(tmp_path, case):
    ending, robot, message = REFUSED[case]
    for lenient in (False, True):
        with pytest.raises(hinge.ModelError, match=message):
            hinge.save(robot, tmp_path / f"a.{ending}", lenient=lenient)
    assert not list(tmp_path.iterdir())


def test_an_inertia_that_no_body_can_have_is_refused_by_mjcf(tmp_path):
    b = hinge.MechanismBuilder("m", nonphysical="accept")
    b.add("a", joint=Revolute(), inertia=Inertia(1.0, about_com=np.diag([1.0, 1.0, 3.0])))
    with pytest.raises(hinge.ModelError, match="an inertia that no body can have, of: a"):
        hinge.save(b.build(), tmp_path / "a.xml")
    again = there_and_back(hinge.Robot(b.build()), tmp_path, "urdf")
    assert_same(hinge.Robot(b.build()), again)


@pytest.mark.parametrize("case", LOST)
def test_what_may_be_lost_is_lost_if_the_user_says_so(tmp_path, case):
    ending, robot, message = LOST[case]
    with pytest.raises(hinge.ModelError, match=f"{message}.*; lenient=True leaves it out"):
        hinge.save(robot, tmp_path / f"a.{ending}")
    with pytest.warns(hinge.ModelWarning, match=message):
        path = hinge.save(robot, tmp_path / f"a.{ending}", lenient=True)
    with odd_models_allowed():
        assert hinge.load(path).n_bodies == robot.n_bodies


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_the_dynamics_does_not_need_is_left_out_with_a_warning(tmp_path, case):
    ending, robot, message = LEFT_OUT[case]
    with pytest.warns(hinge.ModelWarning, match=message):
        path = hinge.save(robot, tmp_path / f"a.{ending}")
    every = {"lower", "upper", "velocity_limit", "effort_limit"}
    assert_same(robot, hinge.load(path), but=every)


def test_a_file_is_not_written_over_by_accident(tmp_path):
    path = tmp_path / "a.urdf"
    hinge.save(one(Revolute()), path)
    before = path.read_text()
    with pytest.raises(hinge.ArgumentError, match="is there already; save with overwrite=True"):
        hinge.save(zoo.acrobot(), path)
    assert path.read_text() == before
    hinge.save(zoo.acrobot(), path, overwrite=True)
    assert 'name="acrobot"' in path.read_text() and list(tmp_path.iterdir()) == [path]


def test_a_file_that_comes_in_between_stays(tmp_path, monkeypatch):
    from hinge import write

    path = tmp_path / "a.urdf"
    text = write._text
    monkeypatch.setattr(write, "_text", lambda *given: path.write_text("theirs") and text(*given))
    with pytest.raises(hinge.ArgumentError, match="is there already"):
        hinge.save(zoo.acrobot(), path)
    assert path.read_text() == "theirs" and list(tmp_path.iterdir()) == [path]


def test_half_a_file_is_never_seen(tmp_path, monkeypatch):
    path = tmp_path / "a.urdf"
    path.write_text("before")

    def fail(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(hinge.ArgumentError, match="cannot write .*No space left"):
        hinge.save(zoo.acrobot(), path, overwrite=True)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


BAD = {
    "no format": (lambda d: hinge.save(zoo.acrobot(), d / "a.step"), "its ending says no format"),
    "no path": (lambda d: hinge.save(zoo.acrobot(), None), "save needs a path"),
    "no robot": (lambda d: hinge.save("a", d / "a.urdf"), "save needs a Robot or a Mechanism"),
    "no folder": (
        lambda d: hinge.save(zoo.acrobot(), d / "b" / "a.urdf"),
        "cannot write .*: there is no folder",
    ),
    "a name": (
        lambda d: hinge.save(
            hinge.MechanismBuilder("m").add(" a", joint=Revolute()).build(), d / "a.urdf"
        ),
        "the name ' a' does not fit into a file",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_are_refused(tmp_path, case):
    call, message = BAD[case]
    with pytest.raises(hinge.HingeError, match=message):
        call(tmp_path)

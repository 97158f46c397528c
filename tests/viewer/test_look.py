"""What is drawn of a mechanism: its shapes and files, or limbs; what cannot be read is a box."""

import struct
from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge.viewer import files
from hinge.viewer.actor import all_poses, place_of
from hinge.viewer.look import ACCENT, DARK, LIGHT, inertia_box, look_of, shape_meshes

SIZES = {
    "box": ((1.0, 2.0, 3.0), (0.5, 1.0, 1.5)),
    "sphere": ((0.5,), (0.5, 0.5, 0.5)),
    "cylinder": ((0.5, 3.0), (0.5, 0.5, 1.5)),
    "capsule": ((0.5, 3.0), (0.5, 0.5, 2.0)),
    "ellipsoid": ((0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    "plane": ((0.0, 2.0), (10.0, 2.0, 0.0)),
}
RED = (1.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("dressed", [False, True])
@pytest.mark.parametrize("kind", SIZES)
def test_primitives_fill_their_size(kind, dressed):
    size, reach = SIZES[kind]
    placed = hinge.Transform(translation=(0.0, 0.0, 7.0))
    (mesh,) = shape_meshes(hinge.Shape(kind, size, placed, RED), dressed=dressed)
    np.testing.assert_allclose(mesh.vertices.max(axis=0) - (0, 0, 7), reach, atol=1e-9)
    np.testing.assert_allclose(mesh.vertices.min(axis=0) - (0, 0, 7), -np.array(reach), atol=1e-9)
    assert mesh.rgba == RED


def test_what_has_no_color_gets_that_of_the_house():
    robot = hinge.zoo.arm(3)
    look = look_of(robot.mechanism)
    assert {m.rgba for meshes in look.visuals for m in meshes} == {LIGHT, DARK, ACCENT}
    # the last link alone stands out
    assert {m.rgba for m in look.visuals[3]} == {ACCENT, DARK}
    (own,) = shape_meshes(hinge.Shape("sphere", (1.0,), rgba=RED))
    assert own.rgba == RED


def bare(robot):
    """The robot without its shapes."""
    mech = robot.mechanism
    bodies = tuple(replace(b, visuals=(), collisions=()) for b in mech.bodies)
    return replace(mech, bodies=bodies)


ZOO = [hinge.zoo.quadruped, hinge.zoo.humanoid, hinge.zoo.cartpole, hinge.zoo.tree, hinge.zoo.slosh]


@pytest.mark.parametrize("make", ZOO, ids=lambda f: f.__name__)
def test_robots_without_shapes_have_limbs_from_joint_to_joint(make):
    mech = bare(make())
    look = look_of(mech)
    assert all(meshes for meshes in look.visuals[1:]) and look.faces > 0
    for k, body in enumerate(mech.bodies[1:], 1):
        points = np.concatenate([m.vertices for m in look.visuals[k]])
        for end in (b.placement.translation for b in mech.bodies[1:] if b.parent == k):
            assert np.linalg.norm(points - end, axis=1).min() < 0.2, body.name


MJCF = """<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 -0.5"/>
<body name="ball"><freejoint/><geom type="sphere" size="0.1" rgba="1 0 0 1"/></body>
</worldbody></mujoco>"""


def test_the_floor_of_a_file_is_the_ground_of_the_picture():
    pytest.importorskip("mujoco")
    robot = hinge.load(MJCF)
    look = look_of(robot.mechanism)
    assert look.floor == -0.5 and look.visuals[0] == []
    place = place_of(robot.mechanism, look, all_poses(robot, robot.neutral()))
    assert place.ground == -0.5 and place.size == pytest.approx(0.2 * np.sqrt(3), rel=1e-3)
    assert [m.rgba for m in look.visuals[1]] == [RED]


def test_the_box_of_an_inertia_has_that_inertia():
    size, mass = np.array([0.3, 0.2, 0.1]), 2.0
    moments = mass / 12 * (np.sum(size**2) - size**2)
    X, sides = inertia_box(hinge.Inertia(mass, (1.0, 2.0, 3.0), np.diag(moments)))
    np.testing.assert_allclose(np.sort(sides), np.sort(size), atol=1e-12)
    np.testing.assert_allclose(X.translation, (1, 2, 3))
    assert np.linalg.det(X.rotation) == pytest.approx(1)


def stl(path, triangles):
    records = b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in triangles)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(triangles)) + records)
    return str(path)


TRIANGLE = [[(0, 0, 0), (1, 0, 0), (0, 1, 0)]]
OBJ = "mtllib a.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def mesh(path, size=(1.0, 1.0, 1.0)):
    return hinge.Shape("mesh", size, mesh=str(path))


def test_files_are_read_scaled_and_keep_their_colors(tmp_path):
    pytest.importorskip("trimesh")
    (found,) = shape_meshes(mesh(stl(tmp_path / "a.STL", TRIANGLE), (2.0, 3.0, 1.0)))
    assert found.vertices.max(axis=0) == pytest.approx((2, 3, 0)) and found.rgba == LIGHT
    (tmp_path / "a.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "a.obj").write_text(OBJ)
    (found,) = shape_meshes(mesh(tmp_path / "a.obj"))
    assert found.rgba == RED
    (found,) = shape_meshes(replace(mesh(tmp_path / "a.obj"), rgba=(0.0, 1.0, 0.0, 1.0)))
    assert found.rgba == (0.0, 1.0, 0.0, 1.0)


def test_triangles_of_a_shape_need_no_file():
    solid = hinge.Triangles(TRIANGLE[0], [[0, 1, 2]])
    (found,) = shape_meshes(hinge.Shape("mesh", (2.0, 3.0, 1.0), MOVED, RED, triangles=solid))
    np.testing.assert_allclose(found.vertices.max(axis=0), (2, 3, 0.3))
    assert found.rgba == RED


def test_files_beside_a_mesh_are_read_from_its_folder_alone(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "in").mkdir()
    (tmp_path / "a.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "in" / "a.obj").write_text(OBJ.replace("a.mtl", "../a.mtl"))
    (found,) = shape_meshes(mesh(tmp_path / "in" / "a.obj"))
    assert found.rgba != RED


def hand(path, *others, inertia=None, **settings):
    """A body that looks like a mesh, which may be missing, and perhaps like others."""
    b = hinge.MechanismBuilder("claw")
    shape = hinge.Shape("mesh", (1.0, 1.0, 1.0), MOVED, mesh=str(path), **settings)
    inertia = inertia or hinge.Inertia()
    b.add("hand", joint=hinge.Revolute(), inertia=inertia, visuals=[shape, *others])
    return b.build()


MOVED = hinge.Transform(translation=(0.0, 0.0, 0.3))
PROBLEMS = {
    "a.xyz": (b"", "is of an unknown format"),
    "a.stl": (b"solid nothing", "cannot be read|has no triangles"),
    "a.obj": (b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "has no triangles, or points|cannot be"),
    "a.glb": (b"glTF and then nothing", "cannot be read"),
    "a.dae": (b"<COLLADA/>", "cannot be read"),
}


def told(mechanism, problem):
    """The only mesh of a hand, about which there is a warning."""
    with pytest.warns(hinge.ModelWarning, match=rf"claw: body 'hand': mesh .* ({problem})"):
        (found,) = look_of(mechanism).visuals[1]
    return found


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_bad_file_is_a_box_and_a_warning(tmp_path, name):
    pytest.importorskip("trimesh")
    contents, problem = PROBLEMS[name]
    (tmp_path / name).write_bytes(contents)
    found = told(hand(tmp_path / name), rf"{problem}")
    # without an inertia it is small, and where the mesh would have been
    assert len(found.faces) == 12
    np.testing.assert_allclose(found.vertices.max(axis=0), (0.025, 0.025, 0.325))


def test_the_box_is_as_large_as_the_inertia_says(tmp_path):
    size, mass = np.array([0.3, 0.2, 0.1]), 2.0
    moments = mass / 12 * (np.sum(size**2) - size**2)
    inertia = hinge.Inertia(mass, (1.0, 2.0, 3.0), np.diag(moments))
    found = told(hand(tmp_path / "no.stl", inertia=inertia), "is not there")
    np.testing.assert_allclose(np.ptp(found.vertices, axis=0), size)
    np.testing.assert_allclose(found.vertices.mean(axis=0), (1, 2, 3))
    # 2 kg with the moments of a hall are no hall
    hall = hinge.Inertia(mass, (0.0, 0.0, 0.0), 200.0 * np.eye(3))
    found = told(hand(tmp_path / "no.stl", inertia=hall), "is not there")
    np.testing.assert_allclose(np.ptp(found.vertices, axis=0), 0.02 ** (1 / 3))
    # nor does a box for a part hide the others
    ball = hinge.Shape("sphere", (0.1,))
    with pytest.warns(hinge.ModelWarning, match="drawn as a box"):
        _, found = look_of(hand(tmp_path / "no.stl", ball, inertia=inertia)).visuals[1]
    assert np.ptp(found.vertices) == pytest.approx(0.35)


def test_files_that_are_missing_or_huge_or_need_more_are_boxes(tmp_path, monkeypatch):
    path = stl(tmp_path / "b.stl", 3 * TRIANGLE)
    told(hand("package://pkg/a.stl"), "is not there; pass the folder of its package")
    told(hand(path, may_read=False), "is far from the robot's file; pass the folder of the mesh")
    told(hand(tmp_path / "none.stl", may_read=False), "is not there")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    told(hand(path), "needs trimesh, which is not installed; install")
    monkeypatch.undo()
    monkeypatch.setattr(files, "MOST_FACES", 2)
    pytest.importorskip("trimesh")
    told(hand(path), "is huge: 3 triangles")
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    told(hand(path), "cannot be read: it has more than 100 bytes")


def test_what_is_wrong_with_many_meshes_is_said_once(tmp_path):
    others = [replace(mesh(tmp_path / f"{i}.stl"), placement=MOVED) for i in range(3)]
    with pytest.warns(
        hinge.ModelWarning, match=r"no.stl' is not there \(3 more like this\)"
    ) as all_:
        look_of(hand(tmp_path / "no.stl", *others))
    assert len(all_) == 1


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>
<created>2000-01-01T00:00:00</created><modified>2000-01-01T00:00:00</modified>
<unit name="centimetre" meter="0.01"/><up_axis>Y_UP</up_axis></asset><library_geometries>
<geometry id="g"><mesh><source id="p"><float_array id="f" count="9">0 0 0 1 0 0 0 2 0</float_array>
<technique_common><accessor source="#f" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles material="paint"
count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles></mesh>
</geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node id="n">
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="paint"
target="#none"/></technique_common></bind_material></instance_geometry></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_a_dae_is_drawn_without_the_material_it_lacks_in_its_unit(tmp_path):
    pytest.importorskip("collada")
    (tmp_path / "a.dae").write_text(DAE)
    (found,) = shape_meshes(mesh(tmp_path / "a.dae"))
    np.testing.assert_allclose(found.vertices.max(axis=0), (0.01, 0.02, 0.0))
    assert found.rgba == LIGHT


def test_a_robot_that_does_not_move_or_only_collides_is_seen():
    ball = hinge.Shape("sphere", (0.1,), rgba=RED)
    b = hinge.MechanismBuilder("rock")
    b.dress_ground([ball])
    assert [m.rgba for m in look_of(b.build()).visuals[0]] == [RED]
    b.add("arm", joint=hinge.Revolute(), collisions=[hinge.Shape("sphere", (0.2,))])
    look = look_of(b.build())
    assert [m.rgba for m in look.visuals[0]] == [RED]
    assert look.visuals[1] == look.collisions[1] != []

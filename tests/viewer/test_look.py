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
    with pytest.warns(hinge.ModelWarning, match="contacts with the ground of geom1"):
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


def test_files_beside_a_mesh_are_read_from_its_folder_alone(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "in").mkdir()
    (tmp_path / "a.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "in" / "a.obj").write_text(OBJ.replace("a.mtl", "../a.mtl"))
    (found,) = shape_meshes(mesh(tmp_path / "in" / "a.obj"))
    assert found.rgba != RED


PROBLEMS = {
    "a.xyz": (b"", "is of an unknown format"),
    "a.stl": (b"solid nothing", "cannot be read|has no triangles"),
    "a.obj": (b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "has no triangles, or points|cannot be"),
    "a.glb": (b"glTF and then nothing", "cannot be read"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_bad_file_is_a_box_and_a_warning(tmp_path, name):
    pytest.importorskip("trimesh")
    contents, problem = PROBLEMS[name]
    (tmp_path / name).write_bytes(contents)
    with pytest.warns(hinge.ModelWarning, match=rf"body 'hand': mesh .*{name}' ({problem})"):
        (found,) = shape_meshes(mesh(tmp_path / name), "hand")
    assert len(found.faces) == 12 and np.ptp(found.vertices) == pytest.approx(0.05)


def test_files_that_are_missing_or_huge_or_need_more_are_boxes(tmp_path, monkeypatch):
    path = stl(tmp_path / "b.stl", 3 * TRIANGLE)
    with pytest.warns(hinge.ModelWarning, match="is not there; pass the folder of its package"):
        shape_meshes(mesh("package://pkg/a.stl"), "hand")
    with pytest.warns(hinge.ModelWarning, match="is not there"):
        shape_meshes(mesh(tmp_path / "none.stl"), "hand")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.warns(hinge.ModelWarning, match="needs trimesh, which is not installed; install"):
        shape_meshes(mesh(path), "hand")
    monkeypatch.undo()
    monkeypatch.setattr(files, "MOST_FACES", 2)
    pytest.importorskip("trimesh")
    with pytest.warns(hinge.ModelWarning, match="is huge: 3 triangles"):
        shape_meshes(mesh(path), "hand")
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    with pytest.warns(hinge.ModelWarning, match="cannot be read: it has more than 100 bytes"):
        shape_meshes(mesh(path), "hand")

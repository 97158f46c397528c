"""Meshes of saved robots: copied beside the file, never over others, or left where they are."""

import warnings

import pytest

import hinge
from hinge import Inertia, Revolute, Shape
from hinge.write import mesh_files, whole

BODY = Inertia(2.0, (0.1, 0.0, 0.2), [[0.3, 0, 0], [0, 0.4, 0], [0, 0, 0.5]])
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def mesh_in(folder, name="link.obj", text=TETRAHEDRON):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def robot_of(*meshes, **data):
    shapes = [Shape("mesh", (1.0, 2.0, 3.0), mesh=str(path), **data) for path in meshes]
    b = hinge.MechanismBuilder("m")
    b.add("a", joint=Revolute(), inertia=BODY, visuals=shapes, collisions=shapes)
    return b.build()


def files_in(folder):
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    return sorted(found)


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_meshes_from_elsewhere_are_copied_and_the_folder_can_be_moved(tmp_path, ending):
    far = [mesh_in(tmp_path / "far" / kind) for kind in ("visual", "collision")]
    (tmp_path / "out").mkdir()
    written = hinge.save(robot_of(*far), tmp_path / "out" / f"m.{ending}")
    copies = [f"meshes/{kind}/link.obj" for kind in ("collision", "visual")]
    assert files_in(tmp_path / "out") == [f"m.{ending}", *copies]
    assert str(tmp_path) not in written.read_text()
    (tmp_path / "out").rename(tmp_path / "moved")
    for path in far:
        path.unlink()
    shapes = hinge.load(tmp_path / "moved" / f"m.{ending}").mechanism.bodies[1].visuals
    assert [s.may_read for s in shapes] == [True, True]
    assert [s.mesh for s in shapes] == [
        str(tmp_path / "moved" / "meshes" / kind / "link.obj") for kind in ("visual", "collision")
    ]


def test_a_copy_is_never_written_over_another_file(tmp_path):
    out, mesh = tmp_path / "out", mesh_in(tmp_path / "far" / "visual")
    theirs = mesh_in(out / "meshes" / "visual", text="theirs")
    for name in ("one", "two"):
        text = hinge.save(robot_of(mesh), out / f"{name}.urdf").read_text()
        assert 'filename="meshes/visual_2/link.obj"' in text  # the same file serves both
    assert theirs.read_text() == "theirs"
    other = mesh_in(tmp_path / "other" / "visual", text=TETRAHEDRON + "# another\n")
    assert "meshes/visual_3/" in hinge.save(robot_of(other), out / "three.urdf").read_text()
    names = [f"meshes/visual{i}/link.obj" for i in ("", "_2", "_3")]
    assert files_in(out) == sorted(["one.urdf", "two.urdf", "three.urdf", *names])


def test_folders_of_one_name_in_one_robot_stay_apart(tmp_path):
    (tmp_path / "out").mkdir()
    meshes = [mesh_in(tmp_path / side / "meshes") for side in "ab"]
    text = hinge.save(robot_of(*meshes), tmp_path / "out" / "m.urdf").read_text()
    assert "meshes/meshes/link.obj" in text and "meshes/meshes_2/link.obj" in text


def test_what_a_mesh_names_comes_along(tmp_path):
    far = tmp_path / "far" / "visual"
    mesh = mesh_in(far, text=f"mtllib link.mtl\n{TETRAHEDRON}# ../secret.png, missing.png\n")
    mesh_in(far, "link.mtl", "newmtl skin\nmap_Kd textures/skin.png\n")
    mesh_in(far / "textures", "skin.png", "pixels")
    mesh_in(far, "other.png", "not named")
    mesh_in(tmp_path / "far", "secret.png", "out of its folder")
    (tmp_path / "out").mkdir()
    hinge.save(robot_of(mesh), tmp_path / "out" / "m.urdf")
    copies = [f"meshes/visual/{n}" for n in ("link.mtl", "link.obj", "textures/skin.png")]
    assert files_in(tmp_path / "out") == ["m.urdf", *copies]


def test_meshes_may_stay_where_they_are(tmp_path):
    mesh = mesh_in(tmp_path / "far" / "visual")
    (tmp_path / "out").mkdir()
    for ending in ("urdf", "xml"):
        with pytest.warns(hinge.ModelWarning, match=f"stay where they are.*: {mesh.parent}"):
            path = hinge.save(robot_of(mesh), tmp_path / "out" / f"m.{ending}", copy_meshes=False)
        again = hinge.load(path, package_dirs=[mesh.parent])
        assert again.mechanism.bodies[1].visuals[0].mesh == str(mesh)
    assert files_in(tmp_path / "out") == ["m.urdf", "m.xml"]


def test_a_file_that_a_robot_file_may_not_name_is_not_copied(tmp_path):
    mesh = mesh_in(tmp_path / "secret")
    (tmp_path / "out").mkdir()
    with pytest.warns(hinge.ModelWarning, match="stay where they are"):
        path = hinge.save(robot_of(mesh, may_read=False), tmp_path / "out" / "m.urdf")
    assert str(mesh) in path.read_text()
    with pytest.warns(hinge.ModelWarning, match="meshes far from the robot's own file, .*: a"):
        path = hinge.save(robot_of(mesh, may_read=False), tmp_path / "out" / "m.xml")
    assert not hinge.load(path).mechanism.bodies[1].visuals
    assert files_in(tmp_path / "out") == ["m.urdf", "m.xml"]


@pytest.mark.parametrize("broken", [(whole.os, "replace"), (mesh_files.shutil, "copyfileobj")])
def test_a_file_that_is_not_written_leaves_no_copies(broken, tmp_path, monkeypatch):
    meshes = [mesh_in(tmp_path / "far" / kind) for kind in ("visual", "collision")]
    (tmp_path / "out").mkdir()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*broken, full)
    with warnings.catch_warnings(), pytest.raises(hinge.ArgumentError, match="No space left"):
        warnings.simplefilter("error")
        hinge.save(robot_of(*meshes), tmp_path / "out" / "m.urdf")
    assert not list((tmp_path / "out").iterdir())

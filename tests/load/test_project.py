"""Which files a model may read: its own, its project's, those the user gave; nobody's secrets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import hinge
from hinge.errors import ArgumentError, ModelError
from hinge.load.project import MeshReach, Reach
from robot_files import ARM, odd_models_allowed

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def reach(folder: Path, **options) -> Reach:
    return Reach(os.path.realpath(folder), [], **options)


@pytest.fixture
def tree(tmp_path) -> Path:
    """home/code/robots/xml/arm, which lies five deep; nothing looks like a project."""
    (tmp_path / "home/code/robots/xml/arm").mkdir(parents=True)
    return tmp_path / "home/code/robots/xml/arm"


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "setup.py", "package.xml"])
def test_a_project_has_a_mark(tree, mark):
    project = tree.parents[1]
    (project / mark).mkdir()
    assert reach(tree).project == project
    assert reach(tree).holds(str(project / "meshes/a.STL"))
    assert not reach(tree).holds(str(project.parent / "a.stl"))


def test_a_python_package_is_a_project_with_all_it_is_in(tree):
    for folder in tree.parents[:2]:
        (folder / "__init__.py").touch()
    (tree.parents[2] / "pyproject.toml").touch()
    assert reach(tree).project == tree.parents[1]


def test_without_a_mark_the_folder_above_counts(tree):
    assert reach(tree).project == tree.parent
    assert reach(tree).holds(str(tree.parent / "meshes/a.stl"))


@pytest.mark.parametrize("shared", ["home", "temporary", "installed"])
def test_what_is_shared_is_no_project(tree, monkeypatch, shared):
    folder = tree.parents[2]
    if shared == "home":
        monkeypatch.setattr(os.path, "expanduser", lambda _: str(folder))
    if shared == "temporary":
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))
    if shared == "installed":
        folder = folder.rename(folder.with_name("site-packages"))
    for above in (folder, *folder.parents[:2]):
        (above / ".git").mkdir()
    assert reach(folder / "robots/xml/arm").project == folder / "robots/xml"
    assert reach(folder / "robots").project is None
    assert reach(folder).project is None
    if shared != "installed":
        assert reach(folder.parent).project is None


def test_of_a_project_only_what_models_are_made_of(tree):
    project, arm = tree.parent, reach(tree)
    for secret in (".ssh/id_rsa", ".ssh/id_rsa.xml", "id_rsa", ".env", "keys.json", "photo.png"):
        assert not arm.holds(str(project / secret)), secret
    assert arm.holds(str(tree / ".hidden/anything"))
    assert not arm.holds("/etc/passwd")
    assert not reach(tree, only_own=True).holds(str(project / "a.stl"))


@pytest.fixture
def arm(tree) -> Path:
    """A model whose mesh lies beside its folder."""
    pytest.importorskip("mujoco")
    (tree.parent / "meshes").mkdir()
    (tree.parent / "meshes" / "a.obj").write_text(TETRAHEDRON)
    (tree.parents[1] / "secret.obj").write_text(TETRAHEDRON)
    return tree / "arm.xml"


def write(path: Path, name: str) -> Path:
    path.write_text(
        f'<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    return path


def test_a_mesh_beside_the_folder_is_read(arm):
    assert hinge.load(write(arm, "../meshes/a.obj")).nv == 1


def test_the_error_says_what_to_pass(arm):
    with pytest.raises(ModelError) as caught:
        hinge.load(write(arm, "../../secret.obj"))
    said = str(caught.value)
    folder = os.path.realpath(arm.parents[2])
    assert f"'../../secret.obj', which leads to {os.path.join(folder, 'secret.obj')!r}" in said
    assert said.endswith(f"package_dirs=[{folder!r}]")
    assert hinge.load(arm, package_dirs=[folder]).nv == 1


def test_a_link_leads_where_it_leads(arm):
    os.symlink(arm.parents[2] / "secret.obj", arm.parent / "inside.obj")
    with pytest.raises(ModelError, match="leads to .*secret.obj"):
        hinge.load(write(arm, "inside.obj"))


def test_a_secret_is_not_opened(arm, monkeypatch):
    for name in ("/etc/passwd", "../../../../../../../../etc/passwd", "../.ssh/id_rsa"):
        with pytest.raises(ModelError, match="the model may read"):
            hinge.load(write(arm, name))


# what is read


def test_a_file_of_gigabytes_is_refused_unread(arm):
    with open(write(arm, "huge.stl").parent / "huge.stl", "wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(ModelError, match="cannot be read: it has more than .* bytes; pass a large"):
        hinge.load(arm)
    with open(arm, "wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(ModelError, match="it has more than 50000000 bytes"):
        hinge.load(arm)


def test_meshes_are_counted_together(arm):
    for i in range(3):
        (arm.parent / f"{i}.obj").write_text(TETRAHEDRON + "#" * 40_000 + str(i))
    meshes = "".join(f'<mesh file="{i}.obj"/>' for i in range(3))
    arm.write_text(f"<mujoco><asset>{meshes}</asset></mujoco>")
    assert hinge.load(arm, max_memory=1_500_000).nv == 0
    with pytest.raises(ModelError, match=r"arm.xml:1: .*2.obj cannot be read: .*larger max_memory"):
        hinge.load(arm, max_memory=800_000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(arm):
    os.mkfifo(arm.parent / "pipe.stl")
    with pytest.raises(ModelError, match="names 'pipe.stl'; there is no such file"):
        hinge.load(write(arm, "pipe.stl"))


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "much"])
@pytest.mark.parametrize("name", ["max_memory", "max_seconds"])
def test_limits_are_positive_numbers(name, limit):
    with pytest.raises(ArgumentError, match=f"{name} is .*; give a positive number"):
        hinge.load("<mujoco/>", **{name: limit})


# a process of its own


def test_isolated_models_are_the_same(arm):
    pytest.importorskip("mujoco")
    os.symlink("../meshes", arm.parent / "meshes")
    write(arm, "meshes/a.obj")
    with pytest.raises(ModelError, match="the model may read '[^']*': move the file"):
        hinge.load(arm, isolate=True)
    options = {"package_dirs": [arm.parents[1] / "meshes"]}
    with odd_models_allowed():
        here, apart = hinge.load(arm, **options), hinge.load(arm, **options, isolate=True)
    assert here.mechanism == apart.mechanism


def test_a_urdf_needs_no_process(monkeypatch):
    monkeypatch.setattr("subprocess.Popen", None)
    assert hinge.load('<robot name="r"><link name="a"/></robot>', isolate=True).nv == 0


# meshes of a URDF


def test_meshes_come_from_around_the_file_or_from_where_the_user_says(tree, monkeypatch):
    """tree is xml/arm: its project is `robots/xml`, packages with a manifest are beside it."""
    home = tree.parents[3]
    monkeypatch.setattr(os.path, "expanduser", lambda _: str(home))
    for name in ("hand", "private"):
        (tree.parents[1] / name).mkdir()
    (tree.parents[1] / "hand/package.xml").touch()
    near = MeshReach(tree, [])
    for inner, may in {
        "xml/meshes/a.stl": True,
        "hand/meshes/a.DAE": True,
        "hand/.hidden/a.stl": False,
        "hand/notes.txt": False,
        "private/a.stl": False,
        "a.stl": False,
    }.items():
        assert near.holds(str(tree.parents[1] / inner)) is may, inner
    for path in (home / "a.stl", "/usr/share/a.stl", "package://hand/a.stl"):
        assert not near.holds(str(path))
        assert not MeshReach(None, []).holds(str(path))
    assert MeshReach(tree, [str(home)]).holds(str(home / ".cache/a.stl"))


def test_links_lead_out_of_a_robot_but_not_of_what_the_user_gave(tree):
    outside = tree.parents[3] / "a.stl"
    outside.touch()
    (tree / "b.stl").symlink_to(outside)
    assert not MeshReach(tree, []).holds(str(tree / "b.stl"))
    assert MeshReach(tree, [str(tree)]).holds(str(tree / "b.stl"))


def test_a_far_mesh_is_named_and_may_not_be_read(tree):
    box = '<box size="0.1 0.1 1"/>'
    text = ARM.replace(box, '<mesh filename="/usr/share/secret.stl"/>')
    (tree / "arm.urdf").write_text(text)
    (far,) = hinge.load(tree / "arm.urdf").mechanism.bodies[1].visuals
    assert far.mesh == "/usr/share/secret.stl" and not far.may_read
    (far,) = hinge.load(tree / "arm.urdf", package_dirs=["/usr/share"]).mechanism.bodies[1].visuals
    assert far.may_read

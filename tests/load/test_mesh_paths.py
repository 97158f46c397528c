"""Mesh names: where they lead; and files, which are read only as far as they may."""

from __future__ import annotations

import ntpath
import os
from types import SimpleNamespace

import pytest

import hinge
from hinge.errors import ModelError
from hinge.load import paths, xml
from hinge.load.paths import read_bounded, resolve_mesh
from robot_files import ARM


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    for folder in ("src/arm/meshes", "other/arm", "prefix/share/hand"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/arm/meshes/a.stl").touch()
    return tmp_path


def resolve(name, folder=None, package_dirs=()):
    return resolve_mesh(name, folder, package_dirs)


@pytest.mark.parametrize("uri", ["package://arm/meshes/a.stl", "package:///arm//meshes/./a.stl"])
@pytest.mark.parametrize("dirs", [["src"], ["src/arm"], ["nowhere", "other", "src"]])
def test_packages_are_found_where_the_user_says(packages, uri, dirs):
    found = resolve(uri, package_dirs=[packages / d for d in dirs])
    assert found == str(packages / "src/arm/meshes/a.stl")


def test_packages_are_found_where_ros_says(packages, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{packages}/other:{packages}/src/arm::")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{packages}/prefix")
    assert resolve("package://arm/meshes/a.stl") == str(packages / "src/arm/meshes/a.stl")
    assert resolve("model://hand/b.stl") == str(packages / "prefix/share/hand/b.stl")


def test_packages_are_found_around_the_file(packages):
    urdf = packages / "src/arm/urdf"
    urdf.mkdir()
    mesh = str(packages / "src/arm/meshes/a.stl")
    assert resolve("package://arm/meshes/a.stl", urdf) == mesh
    (packages / "src/hand").mkdir()
    assert resolve("package://hand/b.stl", urdf) == str(packages / "src/hand/b.stl")
    assert resolve("package://usr/b.stl", urdf) == "package://usr/b.stl"


def test_mesh_names_that_need_no_package(packages):
    src = packages / "src"
    assert resolve("package://unknown/b.stl", src, [src]) == "package://unknown/b.stl"
    assert resolve("package://", src) == "package://"
    assert resolve("https://example.org/b.stl", src) == "https://example.org/b.stl"
    assert resolve("file:///a/x%20y/../b.stl", src) == "/a/b.stl"
    assert resolve("/a/./b.stl", src) == "/a/b.stl"
    assert resolve("arm/../arm/b.stl", src) == str(src / "arm/b.stl")
    assert resolve("arm/../b.stl") == "b.stl"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../other/b.stl", "{0}/other/b.stl"),
        ("arm/../../other/b.stl", "{0}/other/b.stl"),
        ("package://arm/../../other/b.stl", "{0}/other/b.stl"),
        ("package://../other/b.stl", "package://../other/b.stl"),
        ("package://unknown/../b.stl", "package://unknown/../b.stl"),
    ],
)
def test_mesh_outside_of_its_folder_keeps_its_name(packages, name, expected):
    src = packages / "src"
    assert resolve(name, src, [src]) == expected.format(packages)


def test_mesh_of_a_text_without_folder_keeps_its_name():
    assert resolve("a/../../b.stl") == "../b.stl"


def test_file_with_a_mesh_outside_of_its_folder(tmp_path):
    file = tmp_path / "urdf" / "arm.urdf"
    file.parent.mkdir()
    file.write_text(ARM.replace('<box size="0.1 0.1 1"/>', '<mesh filename="../meshes/a.stl"/>'))
    (shape,) = hinge.load(file).mechanism.bodies[1].visuals
    assert shape.mesh == str(tmp_path / "meshes" / "a.stl")


def test_drives_of_windows(monkeypatch):
    monkeypatch.setattr(
        paths, "os", SimpleNamespace(path=ntpath, sep="\\", pardir="..", environ={})
    )
    folder = "C:\\robots\\arm"
    assert resolve("file:///D:/meshes/a%20b.stl") == "D:\\meshes\\a b.stl"
    assert resolve("D:/meshes/a.stl", folder) == "D:\\meshes\\a.stl"
    assert resolve("meshes/a.stl", folder) == "C:\\robots\\arm\\meshes\\a.stl"
    assert resolve("../meshes/a.stl", folder) == "C:\\robots\\meshes\\a.stl"


# reading


def test_file_that_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "huge.urdf"
    with file.open("wb") as f:
        f.truncate(3_000_000_000)

    def refuse(*args, **kwargs):
        raise AssertionError(f"opened {args}")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(ModelError, match=f"huge.urdf': it has more than {xml.MAX_BYTES} bytes"):
        hinge.load(file)


def test_file_without_a_size_is_read_as_far_as_the_limit(tmp_path):
    endless = "/proc/self/environ"
    if not os.path.exists(endless) or os.path.getsize(endless):
        pytest.skip("no file here that is larger than it says")
    with pytest.raises(OSError, match="more than 1 bytes"):
        read_bounded(endless, 1)


def test_file_as_large_as_may_be(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bounded(tmp_path / "a", 5) == b"12345"
    with pytest.raises(OSError, match="it has more than 4 bytes"):
        read_bounded(tmp_path / "a", 4)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_refused_and_does_not_hang(tmp_path):
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for path in (pipe, tmp_path, "/dev/zero"):
        with pytest.raises(ModelError, match="it is not a regular file; give the path of a URDF"):
            hinge.load(path)
    assert not before or len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("path", ["no.urdf", "a\x00b", "x" * 10_000])
def test_path_that_cannot_be_is_one_short_error(path):
    with pytest.raises(ModelError, match="^cannot read '") as caught:
        hinge.load(path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("folder", "home"),
    [("src/arm/urdf", "src"), ("src/arm", "src"), ("src", "src"), ("other/arm", "other")],
)
def test_packages_are_found_beside_the_file(packages, folder, home):
    (packages / "src/arm/urdf").mkdir()
    found = resolve("package://arm/meshes/a.stl", packages / folder)
    assert found == str(packages / home / "arm/meshes/a.stl")
    assert resolve("package://nowhere/a.stl", packages / folder) == "package://nowhere/a.stl"


def test_a_package_is_called_as_its_manifest_says(packages):
    (packages / "src/arm/package.xml").write_text("<package>\n <name> limb </name>\n</package>")
    for folder, dirs in ((None, ["src/arm"]), (packages / "src/arm/meshes", [])):
        found = resolve("package://limb/meshes/a.stl", folder, [packages / d for d in dirs])
        assert found == str(packages / "src/arm/meshes/a.stl")
    assert resolve("package://leg/a.stl", packages / "src/arm") == "package://leg/a.stl"

"""Mesh names: where they lead, and where they may not."""

from __future__ import annotations

import ntpath
from types import SimpleNamespace

import pytest

from hinge.errors import ModelError
from hinge.load import paths
from hinge.load.paths import resolve_mesh


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    for folder in ("src/arm/meshes", "other/arm", "prefix/share/hand"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/arm/meshes/a.stl").touch()
    return tmp_path


def resolve(name, folder=None, package_dirs=()):
    return resolve_mesh(name, folder, package_dirs, "r.urdf:1")


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


def test_mesh_names_that_need_no_package(packages):
    src = packages / "src"
    assert resolve("package://unknown/b.stl", src, [src]) == "package://unknown/b.stl"
    assert resolve("package://", src) == "package://"
    assert resolve("https://example.org/b.stl", src) == "https://example.org/b.stl"
    assert resolve("file:///a/x%20y/../b.stl", src) == "/a/b.stl"
    assert resolve("/a/./b.stl", src) == "/a/b.stl"
    assert resolve("arm/../arm/b.stl", src) == str(src / "arm/b.stl")
    assert resolve("arm/../b.stl") == "b.stl"


def test_mesh_may_leave_its_folder_into_one_that_is_given(packages):
    src, found = packages / "src", str(packages / "other/b.stl")
    assert resolve("../other/b.stl", src, [packages]) == found
    assert resolve("package://arm/../../other/b.stl", None, [src, packages]) == found


@pytest.mark.parametrize(
    "name",
    [
        "../other/b.stl",
        "arm/../../other/b.stl",
        "package://arm/../other/b.stl",
        "package://arm/../../other/b.stl",
        "package://../other/b.stl",
        "package:///../other/b.stl",
        "package://unknown/../b.stl",
        "package://unknown/a/../../b.stl",
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_mesh_that_climbs_out_is_refused(packages, name, known):
    src, dirs = packages / "src", [packages / "src/arm"] if known else []
    with pytest.raises(ModelError) as caught:
        resolve(name, src, dirs)
    expected = f"r.urdf:1: mesh {name!r} leads out of its folder; move the mesh, or pass the folder"
    assert str(caught.value).startswith(expected) and "package_dirs" in str(caught.value)


def test_mesh_of_a_text_without_folder_may_not_climb():
    with pytest.raises(ModelError, match="leads out of its folder"):
        resolve("a/../../b.stl")


def test_drives_of_windows(monkeypatch):
    monkeypatch.setattr(
        paths, "os", SimpleNamespace(path=ntpath, sep="\\", pardir="..", environ={})
    )
    folder = "C:\\robots\\arm"
    assert resolve("file:///D:/meshes/a%20b.stl") == "D:\\meshes\\a b.stl"
    assert resolve("D:/meshes/a.stl", folder) == "D:\\meshes\\a.stl"
    assert resolve("meshes/a.stl", folder) == "C:\\robots\\arm\\meshes\\a.stl"
    assert not paths._contains("C:\\robots", "D:\\robots\\a.stl")
    assert paths._contains("c:\\robots", "C:\\robots\\a.stl")
    with pytest.raises(ModelError, match="leads out"):
        resolve("../../a.stl", folder)

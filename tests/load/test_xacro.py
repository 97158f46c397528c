"""Xacro files and descriptions by name: expanded and fetched by others, refused in words."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import hinge
from hinge.errors import ModelError
from robot_files import ARM

XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="2"/>
  <xacro:include filename="$(find parts)/link.xacro"/>
  <link name="base"/>
  <xacro:heavy name="upper" mass="$(arg mass)"/>
  <joint name="shoulder" type="continuous">
    <parent link="base"/><child link="upper"/><origin rpy="${pi/2} 0 0"/>
  </joint>
</robot>"""
LINK = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="heavy" params="name mass"><link name="${name}"><inertial>
    <mass value="${mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link></xacro:macro>
</robot>"""


@pytest.fixture
def file(tmp_path):
    """A xacro file that includes one of the package beside it."""
    for folder in ("arm/urdf", "parts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "parts" / "link.xacro").write_text(LINK)
    path = tmp_path / "arm" / "urdf" / "arm.urdf.xacro"
    path.write_text(XACRO)
    return path


def test_macros_arguments_and_includes(file):
    pytest.importorskip("xacro")
    assert hinge.load(file).total_mass == 2
    robot = hinge.load(file, xacro_args={"mass": 3.5})
    assert robot.total_mass == 3.5
    assert (
        hinge.Transform.from_rpy((1.5707963267948966, 0, 0)) == robot.mechanism.bodies[1].placement
    )


def test_a_package_that_is_nowhere_is_named_with_what_was_tried(file, tmp_path):
    pytest.importorskip("xacro")
    (tmp_path / "parts" / "link.xacro").rename(tmp_path / "link.xacro")
    (tmp_path / "parts").rmdir()
    with pytest.raises(ModelError, match="there is no package 'parts'; pass .*tried: .*elsewhere"):
        hinge.load(file, package_dirs=[tmp_path / "elsewhere"])
    (tmp_path / "elsewhere" / "other").mkdir(parents=True)
    (tmp_path / "link.xacro").rename(tmp_path / "elsewhere" / "other" / "link.xacro")
    manifest = "<package><name>parts</name></package>"
    (tmp_path / "elsewhere" / "other" / "package.xml").write_text(manifest)
    assert hinge.load(file, package_dirs=[tmp_path / "elsewhere" / "other"]).total_mass == 2


def test_an_expression_that_fails_is_one_error(file):
    pytest.importorskip("xacro")
    file.write_text(XACRO.replace("${pi/2}", "${1/0}"))
    with pytest.raises(ModelError, match="arm.urdf.xacro: xacro refuses it: ZeroDivisionError"):
        hinge.load(file)


class WrappedError(Exception):
    """As xacro wraps what was raised inside."""

    def __init__(self, exc):
        super().__init__("wrapped")
        self.exc = exc


def stub(monkeypatch, process_file):
    """A stand-in for the package."""
    words = ModuleType("xacro.substitution_args")
    words._eval_find, words._eval_dict = None, {"find": None}  # pyright: ignore
    package = ModuleType("xacro")
    package.process_file = lambda path, mappings: process_file(words, mappings)  # pyright: ignore
    monkeypatch.setitem(sys.modules, "xacro", package)
    monkeypatch.setitem(sys.modules, "xacro.substitution_args", words)
    return words


def test_what_xacro_is_asked(file, monkeypatch):
    given = []

    def expand(words, mappings):
        given.append((mappings, words._eval_find("parts"), words._eval_dict["find"]("arm")))
        return SimpleNamespace(toxml=lambda: ARM)

    words = stub(monkeypatch, expand)
    robot = hinge.load(file, xacro_args={"mass": 3.5, "name": "a"})
    assert robot.joint_names == ("shoulder", "elbow")
    ((mappings, parts, arm),) = given
    assert mappings == {"mass": "3.5", "name": "a"}
    assert parts == str(file.parents[2] / "parts") and arm == str(file.parents[1])
    assert words._eval_find is None and words._eval_dict == {"find": None}


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_package_that_is_not_there(file, monkeypatch, wrapped):
    def expand(words, mappings):
        try:
            words._eval_find("nothing")
        except ModelError as problem:
            if wrapped:
                raise WrappedError(problem) from None
            raise

    stub(monkeypatch, expand)
    message = "arm.urdf.xacro: there is no package 'nothing'; pass .*tried: .*nothing"
    with pytest.raises(ModelError, match=message):
        hinge.load(file)


def test_what_xacro_raises_is_one_error(file, monkeypatch):
    stub(monkeypatch, lambda words, mappings: 1 / 0)
    with pytest.raises(ModelError, match="xacro refuses it: ZeroDivisionError: division by zero"):
        hinge.load(file)


def test_without_xacro_it_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ModelError, match=r'missing; pip install "hinge-dynamics\[xacro\]"'):
        hinge.load(file)


def test_a_program_is_not_run_unasked(file, monkeypatch):
    with pytest.raises(ModelError, match="is a xacro file, which runs Python"):
        hinge.load(file, isolate=True)
    plain = file.with_suffix("")
    file.rename(plain)
    with pytest.raises(ModelError, match="is xacro, not URDF; expand it: name the file .xacro"):
        hinge.load(plain)
    stub(monkeypatch, lambda words, mappings: SimpleNamespace(toxml=lambda: ARM))
    assert hinge.load(plain, xacro_args={}).nv == 1


def test_sdf_is_refused_in_words(tmp_path):
    with pytest.raises(ModelError, match="the root element is <sdf>.*SDF is not read"):
        hinge.load('<sdf version="1.9"><model name="a"/></sdf>')


# robots by name


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A stand-in for the package, with a robot of each kind."""
    package = ModuleType("robot_descriptions")
    names = ("arm_description", "xarm_description", "ant_mj_description", "no_description")
    package.DESCRIPTIONS = dict.fromkeys((*names, "gone_description"))  # pyright: ignore
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "robot_descriptions", package)
    folder = tmp_path / "arm_description"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "a.stl").touch()
    mesh = '<mesh filename="package://arm_description/meshes/a.stl"/>'
    (folder / "arm.urdf").write_text(ARM.replace('<box size="0.1 0.1 1"/>', mesh))
    (folder / "ant.xml").write_text("<mujoco/>")
    (folder / "x.xacro").write_text(XACRO)
    paths = {
        "arm_description": {"URDF_PATH": str(folder / "arm.urdf")},
        "xarm_description": {"XACRO_PATH": str(folder / "x.xacro"), "XACRO_ARGS": {"mass": "4"}},
        "ant_mj_description": {"MJCF_PATH": str(folder / "ant.xml")},
        "no_description": {},
    }
    for name, path in paths.items():
        module = ModuleType(name)
        vars(module).update(path, PACKAGE_PATH=str(folder), REPOSITORY_PATH=str(tmp_path))
        monkeypatch.setitem(sys.modules, f"robot_descriptions.{name}", module)
    return folder


@pytest.mark.parametrize("name", ["arm_description", "arm"])
def test_robots_by_name(descriptions, name):
    robot = hinge.load_description(name, floating_base=True)
    assert robot.joint_names == ("root_joint", "shoulder", "elbow")
    meshes = [s.mesh for b in robot.mechanism.bodies for s in b.visuals]
    assert meshes == [str(descriptions / "meshes" / "a.stl")]


def test_robots_by_name_in_other_formats(descriptions, monkeypatch):
    given = []
    expand = lambda words, mappings: given.append(mappings) or SimpleNamespace(toxml=lambda: ARM)  # noqa: E731
    stub(monkeypatch, expand)
    assert hinge.load_description("xarm", xacro_args={"hand": "no"}).nv == 1
    assert given == [{"mass": "4", "hand": "no"}]
    pytest.importorskip("mujoco")
    assert hinge.load_description("ant_mj_description").nv == 0


BY_NAME = {
    "pandas": "robot_descriptions has no 'pandas'; known: arm_description",
    "ram_description": "did you mean 'arm_description'",
    "no_description": "no_description has no file; expected one of URDF_PATH, MJCF_PATH",
    "gone_description": "gone_description could not be fetched: ModuleNotFoundError",
}


@pytest.mark.parametrize("name", BY_NAME)
def test_names_that_lead_nowhere(descriptions, name):
    with pytest.raises(ModelError, match=BY_NAME[name]):
        hinge.load_description(name)


def test_without_robot_descriptions_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(ModelError, match=r'pip install "hinge-dynamics\[descriptions\]"'):
        hinge.load_description("panda_description")

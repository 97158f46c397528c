"""Inertias from shapes: primitives as MuJoCo has them, meshes as formulas say, and refusals."""

import numpy as np
import pytest

import hinge
from hinge import Inertia, MechanismBuilder, Revolute, Shape, Transform, edit
from mechanisms import EPS, assert_close

trimesh = pytest.importorskip("trimesh")

X = Transform.from_rpy((0.3, -0.5, 1.1), (0.1, -0.2, 0.3))


def body(*shapes, mass=2.0):
    """A robot of one body that collides as the shapes."""
    b = MechanismBuilder("m")
    b.add("a", joint=Revolute(), inertia=Inertia(mass), collisions=shapes)
    return hinge.Robot(b.build())


def found(robot, **options):
    """The inertia that its body gets."""
    return edit.with_mesh_inertia(robot, **options).mechanism.bodies[1].inertia


def saved(mesh, path):
    mesh.export(path)
    return str(path)


PRIMITIVES = {
    "box": ((0.2, 0.4, 0.6), "0.1 0.2 0.3"),
    "sphere": ((0.3,), "0.3"),
    "cylinder": ((0.1, 0.6), "0.1 0.3"),
    "capsule": ((0.1, 0.6), "0.1 0.3"),
    "ellipsoid": ((0.1, 0.2, 0.3), "0.1 0.2 0.3"),
}


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_primitives_are_those_of_mujoco(kind):
    mujoco = pytest.importorskip("mujoco")
    size, written = PRIMITIVES[kind]
    numbers = [" ".join(map(repr, x.tolist())) for x in (X.translation, X.quaternion)]
    geom = f'<geom type="{kind}" size="{written}" pos="{numbers[0]}" quat="{numbers[1]}"/>'
    text = f'<mujoco><worldbody><body><joint type="hinge"/>{geom}</body></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    inertia = found(body(Shape(kind, size, X)), density=1000.0)
    assert_close(inertia.mass, model.body_mass[1], 10 * EPS)
    assert_close(inertia.com, model.body_ipos[1], 10 * EPS)
    moments = np.linalg.eigvalsh(inertia.about_com)
    assert_close(moments, np.sort(model.body_inertia[1]), 1e-12)


@pytest.mark.parametrize("ending", ["stl", "obj", "ply"])
@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (0.5, 2.0, 3.0), (-1.0, 1.0, 1.0)])
def test_a_mesh_of_a_box_is_the_box(tmp_path, ending, scale):
    path = saved(trimesh.creation.box((0.2, 0.4, 0.6)), tmp_path / f"box.{ending}")
    size = tuple(np.abs(scale) * (0.2, 0.4, 0.6))
    of_mesh = found(body(Shape("mesh", scale, X, mesh=path)), density=700.0)
    of_box = found(body(Shape("box", size, X)), density=700.0)
    for got, expected in zip(of_mesh.__reduce__()[1], of_box.__reduce__()[1], strict=True):
        assert_close(got, expected, 1e-6)


def test_triangles_without_a_file():
    box = trimesh.creation.box((0.2, 0.4, 0.6))
    shape = Shape("mesh", (1, 1, 2), X, triangles=hinge.Triangles(box.vertices, box.faces))
    assert found(body(shape), density=1000.0).mass == pytest.approx(96.0, rel=1e-9)


def test_a_body_keeps_its_mass_unless_told_a_density():
    box = Shape("box", (0.2, 0.4, 0.6))
    inertia = found(body(box, Shape("sphere", (0.1,), X), mass=3.0))
    assert inertia.mass == pytest.approx(3.0, rel=8 * EPS)
    assert found(body(box), density=2000).mass == pytest.approx(2000 * 0.048, rel=8 * EPS)


def test_bodies_without_shapes_are_left_alone():
    b = MechanismBuilder("m")
    still = Inertia(1.0, (0, 0, 1), np.eye(3))
    b.add("a", joint=Revolute(), inertia=still, visuals=[Shape("sphere", (1.0,))])
    b.add("b", "a", Revolute(), inertia=still, collisions=[Shape("sphere", (1.0,))])
    made = edit.with_mesh_inertia(b.build())
    assert made.bodies[1].inertia == still and made.bodies[2].inertia != still


def test_an_open_mesh_has_a_hull(tmp_path):
    box = trimesh.creation.box((0.2, 0.4, 0.6))
    box.update_faces(np.arange(len(box.faces)) > 0)
    robot = body(Shape("mesh", (1, 1, 1), mesh=saved(box, tmp_path / "open.stl")))
    with pytest.raises(hinge.ModelError, match="open.stl' is not closed.*hull=True"):
        edit.with_mesh_inertia(robot)
    assert found(robot, density=1.0, hull=True).mass == pytest.approx(0.048, rel=1e-6)


def flat():
    """A closed mesh without volume: a triangle and its back."""
    return trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 1]], process=False)


def cloud():
    """Points alone."""
    return trimesh.PointCloud([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


BAD = {
    "no density": (lambda r, _: edit.with_mesh_inertia(r, density=0.0), "density is 0.0"),
    "other shapes": (lambda r, _: edit.with_mesh_inertia(r, shapes="looks"), "shapes is 'looks'"),
    "no shapes": (lambda r, _: edit.with_mesh_inertia(r, "a", shapes="visuals"), "it has 1 collis"),
    "no body": (lambda r, _: edit.with_mesh_inertia(r, "b"), "no body 'b'"),
    "no mass": (
        lambda r, _: edit.with_mesh_inertia(body(Shape("sphere", (1.0,)), mass=0.0)),
        "body 'a' has no mass to keep; give a density",
    ),
    "a plane": (lambda r, _: found(body(Shape("plane", (1, 1)))), "a plane has no volume"),
    "far away": (
        lambda r, d: found(body(Shape("mesh", (1, 1, 1), mesh="/far/a.stl", may_read=False))),
        "'/far/a.stl' lies where its file may not lead",
    ),
    "no file": (
        lambda r, d: found(body(Shape("mesh", (1, 1, 1), mesh=str(d / "none.stl")))),
        "none.stl' is not there$",
    ),
    "no package": (
        lambda r, _: found(body(Shape("mesh", (1, 1, 1), mesh="package://arm/a.stl"))),
        "is not there: its package was in none of the folders of ROS_PACKAGE_PATH=.*package_dirs",
    ),
    "nonsense": (
        lambda r, d: found(body(Shape("mesh", (1, 1, 1), mesh=written(d / "a.glb", "hello")))),
        "a.glb' cannot be read",
    ),
    "a cloud": (
        lambda r, d: found(body(Shape("mesh", (1, 1, 1), mesh=saved(cloud(), d / "a.ply")))),
        "a.ply' has no triangles",
    ),
    "flat": (
        lambda r, d: found(body(Shape("mesh", (1, 1, 1), mesh=saved(flat(), d / "a.ply")))),
        "a.ply' has volume 0",
    ),
}


def written(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("case", BAD)
def test_what_has_no_inertia_is_refused(case, tmp_path):
    make, message = BAD[case]
    with pytest.raises(hinge.HingeError, match=message):
        make(body(Shape("sphere", (0.1,))), tmp_path)


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("hinge.edit.mesh_inertia._MOST_BYTES", 10)
    path = saved(trimesh.creation.box((1, 1, 1)), tmp_path / "a.stl")
    with pytest.raises(hinge.ModelError, match="more than 10 bytes"):
        found(body(Shape("mesh", (1, 1, 1), mesh=path)))


def test_without_trimesh_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("hinge.edit.mesh_inertia.find_spec", lambda name: None)
    with pytest.raises(hinge.ModelError, match='pip install "hinge-dynamics.view."'):
        found(body(Shape("mesh", (1, 1, 1), mesh="a.stl")))

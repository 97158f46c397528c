"""Solids as triangles: closed, of the right volume, facing outwards, with the edges they have."""

import numpy as np
import pytest

from hinge import Transform
from hinge.viewer.mesh import Mesh, box, creased, lathe, sheet, tapered

BALL = 4 / 3 * np.pi


def volume(mesh):
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return np.einsum("fi,fi->", a, np.cross(b, c)) / 6


def open_edges(mesh):
    """Edges that are not run along once in each direction; vertices at one place are one."""
    _, index = np.unique(mesh.vertices.round(9), axis=0, return_inverse=True)
    faces = index.ravel()[mesh.faces]
    runs = {}
    for edge in zip(faces.ravel(), np.roll(faces, -1, axis=1).ravel(), strict=True):
        runs[edge] = runs.get(edge, 0) + 1
    return [edge for edge, n in runs.items() if n != 1 or runs.get(edge[::-1]) != 1]


SOLIDS = {
    "box": (box((1.0, 2.0, 3.0)), 6.0),
    "rounded box": (box((1.0, 2.0, 3.0), 0.1), 5.95),
    "box of one sphere": (box((1.0, 1.0, 1.0), 2.0), BALL / 8),
    "cylinder": (tapered(0.5, 0.5, 2.0, 0.0), np.pi / 2),
    "capsule": (tapered(0.5, 0.5, 2.0), np.pi / 2 + BALL / 8),
    "sphere": (tapered(0.5, 0.5, 0.0), BALL / 8),
    "cone": (lathe(np.array([[0, 0], [1, 0], [0, 3]])), np.pi),
}


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_as_large_as_they_say(name):
    mesh, expected = SOLIDS[name]
    assert not open_edges(mesh)
    assert 0.93 * expected < volume(mesh) <= 1.001 * expected


def test_sharp_edges_have_two_sides_and_round_ones_one():
    assert len(box((1, 1, 1)).vertices) == 24
    ball = tapered(1.0, 1.0, 0.0)
    assert len(ball.vertices) == len(np.unique(ball.vertices.round(9), axis=0))
    np.testing.assert_allclose(ball.normals, ball.vertices, atol=0.05)
    top = box((1, 1, 1)).normals[box((1, 1, 1)).vertices[:, 2] > 0.4]
    assert set(np.abs(top).max(axis=1)) == {1.0}


def test_a_mesh_keeps_its_colors_where_it_is_split():
    corners = box((1, 1, 1))
    _, index = np.unique(corners.vertices, axis=0, return_inverse=True)
    shared = np.unique(corners.vertices, axis=0)
    split = creased(Mesh(shared, index.ravel()[corners.faces], colors=shared + 0.5))
    np.testing.assert_array_equal(split.colors, split.vertices + 0.5)
    assert len(split.vertices) == 24 and len(split.paint) == 24
    assert len(creased(Mesh(np.zeros((0, 3)), np.zeros((0, 3), int))).faces) == 0


def test_mirrored_and_placed_meshes_face_outwards():
    assert volume(box((1, 1, 1)).scaled((-2.0, 1.0, 1.0))) == pytest.approx(2.0)
    moved = box((1, 1, 1)).placed(Transform(translation=(5.0, 0.0, 0.0)))
    assert moved.vertices.mean(axis=0) == pytest.approx((5, 0, 0))
    assert len(sheet(1.0, 2.0).faces) == 4 and volume(sheet(1.0, 2.0)) == 0
    assert sheet(1.0, 2.0).paint.max() < 1

"""Pictures without a display: what a pixel sees is what the kinematics says."""

import shutil
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest

import hinge
from hinge.viewer import gif, output, raster
from hinge.viewer.actor import all_poses, place_of
from hinge.viewer.camera import Camera
from hinge.viewer.look import look_of
from hinge.viewer.mesh import tapered
from hinge.viewer.picture import Solid, draw, gathered
from hinge.viewer.raster import Seen, rasterize


def test_a_pixel_sees_the_nearest_triangle_and_where():
    points = np.array(
        [[0, 0, 2.0], [40, 0, 2.0], [0, 40, 4.0], [0, 0, 1.0], [9, 0, 1.0], [0, 9, 1]]
    )
    faces = np.array([[0, 1, 2], [3, 5, 4]])
    owner, near = (x.reshape(20, 30) for x in rasterize(points, faces, 30, 20))
    assert owner[2, 2] == 1 and owner[12, 12] == 0 and owner[19, 29] == -1
    assert near[2, 2] == pytest.approx(1.0) and near[19, 29] == 0
    seen = Seen(points, faces, owner.ravel(), 30)
    depth = seen.blend(points[:, 2:], faces)[:, 0]
    np.testing.assert_allclose(1 / depth, near.ravel()[seen.at])
    # as many pixels as the triangle has area, near enough
    assert np.count_nonzero(owner == 1) == pytest.approx(81 / 2, abs=6)


def test_long_lists_of_pixels_are_worked_through_in_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.uniform([-5, -5, 0.5], [35, 25, 3], (300, 3))
    faces = rng.integers(0, 300, (400, 3))
    whole = rasterize(points, faces, 30, 20)
    for size in (1, 7, 100):
        monkeypatch.setattr(raster, "_ROWS", size)
        monkeypatch.setattr(raster, "_PIXELS", 3 * size)
        for one, other in zip(whole, rasterize(points, faces, 30, 20), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_polygon_of_many_corners_is_drawn_in_little_memory():
    n = 20_000
    turn = np.arange(n) * 2 * np.pi / n
    points = np.column_stack([300 + 200 * np.cos(turn), 300 + 200 * np.sin(turn), np.ones(n)])
    fan = np.column_stack([np.zeros(n - 2, int), np.arange(1, n - 1), np.arange(2, n)])
    tracemalloc.start()
    owner, _ = rasterize(points, fan, 600, 600)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.count_nonzero(owner >= 0) == pytest.approx(np.pi * 200**2, rel=1e-2)
    assert peak < 300e6


def test_what_is_behind_the_eye_or_has_no_area_is_not_seen():
    points = np.array([[0, 0, -2.0], [40, 0, 2.0], [0, 40, 4.0], [5, 5, 1], [6, 6, 1], [7, 7, 1.0]])
    owner, _ = rasterize(points, np.array([[0, 1, 2], [3, 4, 5]]), 30, 20)
    assert (owner == -1).all()


def test_a_marker_is_where_the_frame_is_projected():
    robot = hinge.zoo.arm(7)
    q = robot.random_configuration(3)
    tool = robot.frame_pose(q, "tool")[:3, 3]
    ball = tapered(0.02, 0.02, 0.0).painted((1.0, 0.0, 0.0, 1.0))
    X = np.eye(4)
    X[:3, 3] = tool
    camera = Camera.around(np.stack([*robot.poses(q)[:, :3, 3], tool]))
    pixels = draw(gathered([[ball]], X[None]), camera, 400, 300).astype(int)
    red = np.argwhere(pixels[..., 0] - pixels[..., 1] > 60)
    column, row, _ = camera.pixels(tool, 400, 300)
    assert len(red) > 20
    np.testing.assert_allclose(red.mean(axis=0) + 0.5, (row, column), atol=0.7)


def test_a_camera_sees_all_of_it():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 3)) * (3, 1, 0.1)
    for azimuth in (-2.0, 0.0, 1.0):
        at = Camera.around(points, azimuth, 1.5, aspect=2.0).pixels(points, 200, 100)
        assert (at > 0).all() and (at[:, 0] < 200).all() and (at[:, 1] < 100).all()
    straight_down = Camera(np.array([0.0, 0.0, 3.0]), np.zeros(3))
    np.testing.assert_allclose(straight_down.pixels(np.zeros(3), 20, 10), (10, 5, 3))


def test_the_robot_and_its_shadow_are_in_the_picture(tmp_path):
    robot = hinge.zoo.quadruped()
    pixels = robot.draw(size=(160, 120))
    assert pixels.shape == (120, 160, 3) and pixels.dtype == np.uint8
    # its legs are orange, and the ground is darker in its shadow than anywhere else
    orange = (pixels[..., 0] > 150) & (pixels[..., 2] < 90)
    assert np.count_nonzero(orange) > 50
    light, dark = (tmp_path / name for name in ("a.png", "b.svg"))
    batch = np.stack([robot.neutral(), robot.neutral()])
    batch[1, 0] += 0.6
    ghost = robot.draw(batch, light, size=(160, 120))
    assert (ghost != pixels).any() and light.read_bytes().startswith(b"\x89PNG")
    robot.draw(path=dark, size=(80, 60))
    assert b"<svg" in dark.read_bytes()


def test_nothing_at_all_is_a_picture_of_the_ground():
    empty = gathered([[]], np.eye(4)[None])
    low, high = empty.corners
    pixels = draw(Solid.together([empty, empty]), Camera.around(np.stack([low, high])), 40, 30)
    assert pixels.min() > 150


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(
        hinge.ArgumentError, match=r"draw of 'arm1': cannot write .*a.foo'; expected"
    ):
        hinge.zoo.arm(1).draw(path=tmp_path / "a.foo")


def test_sizes_that_are_none_are_refused():
    for wrong in ((0, 30), (3.5, 30), (10, 20, 30), 7):
        with pytest.raises(hinge.ArgumentError, match="size is .*; expected .width, height."):
            hinge.zoo.arm(1).draw(size=wrong)


def test_samples_that_are_not_finite_are_not_drawn():
    robot = hinge.zoo.arm(2)
    alone = robot.draw([[0.3, 0.2]], size=(80, 60))
    np.testing.assert_array_equal(robot.draw([[0.3, 0.2], [np.nan, 0.0]], size=(80, 60)), alone)
    assert robot.draw([[np.nan, 0.0]], size=(8, 6)).shape == (6, 8, 3)


def motion(robot, duration=0.12):
    return hinge.simulate(robot, robot.neutral(), duration=duration, dt=0.01)


def test_a_motion_is_a_film(tmp_path):
    found = motion(hinge.zoo.pendulum(1))
    frames = list(output.film(found.robot, found.t, found.q, (60, 40)))
    assert len(frames) == 4 and frames[0].shape == (40, 60, 3)
    found.draw(tmp_path / "a.gif", size=(60, 40))
    from PIL import Image

    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames > 1


def test_mp4_needs_a_program(tmp_path, monkeypatch):
    found = motion(hinge.zoo.pendulum(1))
    monkeypatch.setattr(output.shutil, "which", lambda name: None)
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    with pytest.raises(hinge.HingeError, match="MP4 needs the program ffmpeg"):
        found.draw(tmp_path / "a.mp4", size=(60, 40))
    # one that says no
    monkeypatch.setattr(output.shutil, "which", lambda name: "false")
    with pytest.raises(hinge.HingeError, match="cannot write .*: ffmpeg says"):
        found.draw(tmp_path / "a.mp4", size=(60, 40))


def test_frames_go_to_the_program_one_by_one(tmp_path, monkeypatch):
    """A program that counts the bytes it gets, and writes the number where the film should be."""
    program = tmp_path / "counter"
    program.write_text("#!/bin/sh\nfor last; do :; done\nwc -c > $last\n")
    program.chmod(0o755)
    monkeypatch.setattr(output.shutil, "which", lambda name: str(program))
    motion(hinge.zoo.pendulum(1)).draw(tmp_path / "a.mp4", size=(61, 40))
    assert int((tmp_path / "a.mp4").read_text()) == 4 * 61 * 40 * 3


def test_mp4(tmp_path):
    if shutil.which("ffmpeg") is None and find_spec("imageio_ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    motion(hinge.zoo.pendulum(1)).draw(tmp_path / "a.mp4", size=(61, 41))
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


def test_a_gif_is_written_frame_by_frame(tmp_path):
    """Nothing of a frame is kept but what the next is compared with, and all come back."""
    from PIL import Image

    path, sizes, shown = tmp_path / "a.gif", [], []

    def frames(count):
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 2, size=(120, 160, 3)).astype(np.uint8) * 255
        for i in range(count):
            sizes.append(path.stat().st_size if path.exists() else 0)
            pixels = pixels.copy()
            pixels[10 : 20 + i % 7, 30:50] = (0, 0, 255 * (i % 2))
            shown.append(pixels)
            yield pixels

    gif.write_gif(path, frames(5), 25)
    with Image.open(path) as film:
        assert film.n_frames == 5 and film.info["duration"] == 40 and film.info["loop"] == 0
        for i, pixels in enumerate(shown):
            film.seek(i)
            np.testing.assert_array_equal(np.asarray(film.convert("RGB")), pixels)
    peaks = []
    for count in (10, 100):
        shown.clear()
        sizes.clear()
        tracemalloc.start()
        gif.write_gif(path, (x for x in frames(count) if shown.clear() is None), 25)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
    # a file is written in blocks
    assert len(set(sizes)) >= 3
    # two frames that are the same, and one alone
    gif.write_gif(path, (np.zeros((4, 5, 3), np.uint8) for _ in range(2)), 25)
    with Image.open(path) as film:
        assert film.n_frames == 2 and not np.asarray(film.convert("RGB")).any()


def test_a_file_in_the_place_of_a_configuration_is_said(tmp_path):
    with pytest.raises(hinge.ArgumentError, match="q is 'a.png'; .* give the file as path='a.png'"):
        hinge.zoo.arm(1).draw("a.png")


def test_long_films_are_framed_by_their_outermost_points():
    """Of many poses not all points are kept."""
    robot = hinge.zoo.arm(2)
    look = look_of(robot.mechanism)
    q = np.random.default_rng(0).uniform(-2, 2, size=(5000, 2))
    q[3000] = np.nan
    poses = all_poses(robot, q)
    many, few = (place_of(robot.mechanism, look, x) for x in (poses, poses[:900]))
    parts = [place_of(robot.mechanism, look, x) for x in np.array_split(poses, 10)]
    assert len(many.points) < len(few.points)
    assert np.isfinite(many.points).all()
    for side in (np.min, np.max):
        ends = side([side(x.points, axis=0) for x in parts], axis=0)
        np.testing.assert_array_equal(side(many.points, axis=0), ends)


def red(pixels):
    """How many pixels are of the colour of forces."""
    r, g, b = np.moveaxis(pixels.astype(int), -1, 0)
    return int(((r > 100) & (r - g > 60) & (np.abs(g - b) < 20)).sum())


def test_forces_are_arrows_in_pictures_and_films():
    robot = hinge.zoo.arm(2)
    weight = 9.81 * robot.total_mass
    at, along = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    at[..., 0] = 0.3
    along[1, 0, 2] = weight
    along[2, 0, 2] = 1e-6 * weight
    t, q = np.array([0.0, 0.04, 0.08]), np.zeros((3, 2))
    drawn = [red(frame) for frame in output.film(robot, t, q, (120, 90), (at, along))]
    assert drawn[1] > 30 and drawn[0] == drawn[2] == 0
    for force in 0.4 * weight * np.eye(3):
        beside = np.array([[0.1, -0.2, 0.2]]), force[None]
        assert red(output.picture(robot, q[0], (240, 180), forces=beside)) > 30

"""The studio in a real browser; where there is none, each test says why it skips."""

import io
import time

import numpy as np
import pytest

import hinge
from hinge.viewer.camera import Camera
from viewer.browser import browser_page

pytest.importorskip("viser")
pytestmark = pytest.mark.long


def pixels(page):
    from PIL import Image

    with Image.open(io.BytesIO(page.screenshot())) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def until(page, condition, patience=60.0):
    """Whether it comes true while the page goes on."""
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        page.wait_for_timeout(200)
    return condition()


def test_a_slider_on_the_page_moves_the_robot():
    with (
        hinge.zoo.arm(2).view(browser=False) as scene,
        browser_page(scene.address, 700, 800) as page,
    ):
        number = page.locator("input[type=text], input[inputmode]").last
        number.fill("0.8")
        number.press("Enter")
        assert until(page, lambda: abs(scene.q[1] - 0.8) < 1e-3)
        page.get_by_role("button", name="Reset").click()
        assert until(page, lambda: not scene.q.any())
        page.get_by_label("Frames").first.click()
        assert until(page, lambda: "frames" in scene.puppet.shown)


def test_a_motion_plays_and_pauses():
    robot = hinge.zoo.pendulum(1)
    motion = hinge.simulate(robot, [1.0], duration=30.0, dt=0.01)
    with motion.view(browser=False) as scene, browser_page(scene.address, 700, 800) as page:
        page.get_by_role("button", name="Pause").click()
        assert until(page, lambda: not scene.player.playing)
        assert 0 < scene.player.now < 30
        page.get_by_role("button", name="Play").click()
        assert until(page, lambda: scene.player.playing)


def test_a_marker_is_where_the_frame_is_projected():
    """What the browser draws is where the kinematics and the camera of the page say."""
    robot = hinge.zoo.arm(3)
    with robot.view([0.4, 0.9, 0.3], browser=False) as scene:
        tool = robot.frame_pose(scene.q, "tool")[:3, 3]
        for _, handle in scene.puppet.meshes():
            handle.visible = False
        scene.server.scene.add_icosphere(
            "/marker", 0.04, color=(255, 0, 255), position=tool, cast_shadow=False
        )
        with browser_page(scene.address) as page:

            def magenta():
                seen = pixels(page)
                return np.argwhere(
                    (seen[..., 0] > seen[..., 1] + 50) & (seen[..., 2] > seen[..., 1] + 50)
                )

            # the page fades in
            page.wait_for_timeout(3000)
            assert until(page, lambda: len(magenta()) > 10)
            column, row, _ = camera_of(scene).pixels(tool, 420, 300)
            found = magenta().mean(axis=0) + 0.5
            np.testing.assert_allclose(found, (row, column), atol=3.0)


def test_a_file_plays_without_anything_else(tmp_path):
    robot = hinge.zoo.quadruped()
    path = tmp_path / "motion.html"
    hinge.simulate(robot, robot.neutral(), duration=0.5, dt=0.01).draw(path)
    assert path.stat().st_size < 1_200_000
    with browser_page(path.as_uri()) as page:
        assert until(page, lambda: np.ptp(pixels(page)[100:250]) > 100)
        assert [url for url in page.asked if not url.startswith(("file:", "blob:", "data:"))] == []


def test_a_notebook_shows_the_studio_inline(tmp_path):
    """The page that a notebook would be, with the HTML that a scene has for one."""
    with hinge.zoo.arm(3).view([0.2, 0.8, 0.4], browser=False) as scene:
        path = tmp_path / "notebook.html"
        path.write_text(
            f"<html><body><p>a cell</p>{scene._repr_html_()}<canvas></canvas></body></html>"
        )
        with browser_page(path.as_uri(), 700, 600) as page:
            inside = page.frame_locator("iframe")
            inside.get_by_label("Frames").first.click()
            assert until(page, lambda: "frames" in scene.puppet.shown)
            assert until(page, lambda: np.ptp(pixels(page)[100:500]) > 100)


def drag(page, start, end, modifier=None):
    """Press, move and hold the mouse; the page draws a few frames a second, so slowly."""
    page.mouse.move(*start)
    page.wait_for_timeout(1500)
    if modifier:
        page.keyboard.down(modifier)
    page.mouse.down()
    for part in np.linspace(0, 1, 5)[1:]:
        x, y = (1 - part) * np.array(start) + part * np.array(end)
        page.mouse.move(x, y)
        page.wait_for_timeout(700)


def release(page, modifier=None):
    page.mouse.up()
    if modifier:
        page.keyboard.up(modifier)


def camera_of(scene):
    given = scene.server.initial_camera
    return Camera(np.array(given.position), np.array(given.look_at), given.fov)


def test_the_handle_drags_the_tool_along_its_axis():
    robot = hinge.zoo.arm(7)
    with robot.view([2.4, 0.8, 0.0, 0.9, 0.1, 0.5, 0.3], browser=False) as scene:
        scene.panel.frame.value, scene.panel.holds.value = "tool", True
        scene.panel._hold()
        X = robot.frame_pose(scene.q, "tool")
        # the arrow of the axis that the page shows best
        tips = X[:3, 3] + 0.2 * scene.place.size * X[:3, :3].T
        origin, *ends = camera_of(scene).pixels(np.stack([X[:3, 3], *tips]), 800, 500)[:, :2]
        axis = int(np.argmax([np.linalg.norm(end - origin) for end in ends]))
        with browser_page(scene.address, 800, 500) as page:
            page.wait_for_timeout(5000)
            grip = origin + 0.8 * (ends[axis] - origin)
            drag(page, grip, grip + 0.5 * (ends[axis] - origin))
            release(page)
            moved = robot.frame_pose(scene.q, "tool")[:3, 3] - X[:3, 3]
            assert moved @ X[:3, axis] > 0.02
            assert moved @ X[:3, axis] > 0.7 * np.linalg.norm(moved)


def test_a_body_is_pulled_by_the_mouse():
    robot = hinge.zoo.arm(3)
    with robot.view([0.2, 0.8, 0.4], browser=False) as scene:
        middle = robot.poses(scene.q)[1] @ np.array([0.0, 0.0, 0.12, 1.0])
        column, row, _ = camera_of(scene).pixels(middle[:3], 700, 500)
        with browser_page(scene.address, 700, 500) as page:
            page.wait_for_timeout(5000)
            drag(page, (column, row), (column - 60, row), "Shift")
            assert until(page, lambda: scene.push[1].any(), 10.0)
            force = robot.poses(scene.q)[1, :3, :3] @ scene.push[1, 3:]
            # to the left of the page
            assert force @ camera_of(scene).axes[0] < -0.5 * np.linalg.norm(force)
            release(page, "Shift")
            assert until(page, lambda: not scene.push.any(), 10.0)

"""The studio in a real browser; where there is none, each test says why it skips."""

import io
import subprocess
import sys
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
        with browser_page(scene.address, 1000, 500) as page:

            def magenta():
                seen = pixels(page)
                return np.argwhere(
                    (seen[..., 0] > seen[..., 1] + 50) & (seen[..., 2] > seen[..., 1] + 50)
                )

            # the page fades in
            page.wait_for_timeout(3000)
            assert until(page, lambda: len(magenta()) > 10)
            column, row, _ = camera_of(scene).pixels(tool, 1000, 500)
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


def test_an_executed_notebook_still_shows_the_robot(tmp_path):
    """When the studio is gone, the scene is the one that was shown."""
    robot = hinge.zoo.quadruped()
    with hinge.simulate(robot, robot.neutral(), duration=0.2).view(browser=False) as scene:
        shown = scene._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<html><body><p>a cell</p>{shown}<canvas></canvas></body></html>")
    with browser_page(path.as_uri(), 700, 600) as page:
        page.frame_locator("iframe").locator("canvas").first.wait_for()
        assert until(page, lambda: len(orange(page)) > 500)
        outside = [url for url in page.asked if url.startswith("http")]
        assert outside == [scene.address + scene.served.gate.sign]


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


SCREENS = {"phone": (375, 812), "desk": (1280, 800)}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The page that `hinge demo` writes."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "hinge", "demo"]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=True, capture_output=True)
    return folder / "hinge_demo.html"


def orange(page):
    """Where the shanks are: (n, 2), row and column."""
    red, green, blue = np.moveaxis(pixels(page), -1, 0)
    return np.argwhere((red > 120) & (red > 1.3 * green) & (green > 1.3 * blue))


def is_pushed(page):
    """Whether there is a red arrow."""
    red, green, blue = np.moveaxis(pixels(page), -1, 0)
    return ((red > 120) & (np.abs(green - blue) < 25) & (red - green > 60)).sum() > 500


@pytest.mark.parametrize("screen", SCREENS)
def test_all_of_the_robot_is_on_the_page(screen, demo):
    width, height = SCREENS[screen]
    with browser_page(demo.as_uri(), width, height) as page:
        page.wait_for_timeout(3000)
        # the player below is of the same colour
        page.add_style_tag(content=".mantine-Paper-root { visibility: hidden }")
        assert until(page, lambda: len(orange(page)) > 500)
        rows, columns = orange(page).T
        assert columns.min() > 5 and columns.max() < width - 5
        assert rows.min() > 5 and rows.max() < height - 60
        assert np.ptp(columns) > 0.3 * min(width, height)
        if screen == "phone":
            page.set_viewport_size({"width": height, "height": width})
            page.wait_for_timeout(2000)
            assert orange(page)[:, 0].max() < width - 40


def test_the_controls_do_not_cover_the_robot_on_a_phone():
    with (
        hinge.zoo.quadruped().view(browser=False) as scene,
        browser_page(scene.address, *SCREENS["phone"]) as page,
    ):
        page.get_by_label("Visuals").first.wait_for()
        top = page.get_by_label("Visuals").first.bounding_box()["y"] - 80
        assert until(page, lambda: len(orange(page)) > 500)
        legs = orange(page)
        legs = legs[legs[:, 0] < top]
        assert legs[:, 1].min() > 5 and legs[:, 1].max() < 370
        assert np.ptp(legs[:, 0]) > 60 and legs[:, 0].max() < top - 10
        sizes = page.locator(".mantine-Slider-markLabel").evaluate_all(
            "found => found.map(x => parseFloat(getComputedStyle(x).fontSize))"
        )
        assert sizes and min(sizes) >= 12
        assert "-3.14" in page.locator(".mantine-Slider-markLabel").all_inner_texts()


def test_the_camera_stays_above_the_floor(demo):
    at = "() => { const c = __viserMutable.cameraControl; return [c.camera.position.y, c.distance]}"
    with browser_page(demo.as_uri(), 700, 600) as page:
        page.wait_for_timeout(2000)
        before, distance = page.evaluate(at)
        for _ in range(3):
            page.mouse.move(350, 550)
            page.mouse.down()
            page.mouse.move(350, 20, steps=6)
            page.mouse.up()
        assert until(page, lambda: page.evaluate(at)[0] < 0.2 * before)
        page.wait_for_timeout(1000)
        assert 0 < page.evaluate(at)[0] < 0.05 * distance


@pytest.mark.parametrize(("scheme", "bright"), [("light", True), ("dark", False)])
def test_pages_have_the_colours_of_the_system(scheme, bright, demo):
    with hinge.zoo.arm(2).view(browser=False) as scene:
        for url in (demo.as_uri(), scene.address):
            with browser_page(url, 400, 300, scheme) as page:
                assert until(page, lambda page=page: (pixels(page)[5, 5] > 128).all() == bright)


def test_the_push_of_the_demonstration_is_seen(demo):
    with browser_page(demo.as_uri(), 900, 700) as page:
        assert page.get_by_text("Pushed sideways by 60 N").is_visible()
        number = page.locator("input").first
        for now, pushed in (("0.8", True), ("2.5", False)):
            number.fill(now)
            number.press("Enter")
            assert until(page, lambda pushed=pushed: is_pushed(page) == pushed, 20)

"""The studio without a browser: what a program, a slider and the mouse do to the robot."""

import ast
import html
import re
import socket
import sys
import time
from types import ModuleType, SimpleNamespace
from urllib.request import urlopen

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge.algorithms.configuration import limits
from hinge.viewer import server as server_module
from hinge.viewer.dials import dials
from hinge.viewer.reach import reach

pytest.importorskip("viser")


def eventually(condition, patience=20.0):
    """Whether it comes true; the studio draws in a thread of its own."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def arm():
    with hinge.view(hinge.zoo.arm(3), browser=False) as scene:
        yield scene


def node(scene, k):
    """The pose of a body on the page."""
    return scene.puppet.nodes[k].position, scene.puppet.nodes[k].wxyz


def test_show_moves_the_robot_and_its_sliders(arm):
    q = np.array([0.5, -0.4, 0.3])
    arm.show(q)
    assert eventually(lambda: np.array_equal(arm.q, q))
    X = arm.actor.poses(q)[2]
    assert eventually(lambda: np.allclose(node(arm, 3)[0], X[:3, 3]))
    wxyz = node(arm, 3)[1]
    from hinge.algebra.rotation import quaternion_matrix

    np.testing.assert_allclose(quaternion_matrix(np.array(wxyz)), X[:3, :3], atol=1e-12)
    assert eventually(lambda: [s.value for s in arm.panel.sliders.values()] == pytest.approx(q))


def test_show_comes_back_at_once_and_the_last_one_counts(arm):
    start = time.perf_counter()
    for angle in np.linspace(0, 1, 1001):
        arm.show([angle, 0.0, 0.0])
    assert time.perf_counter() - start < 1.0
    assert eventually(lambda: arm.q[0] == 1.0)


def by_hand(value):
    """What a callback gets when somebody moved a slider on the page."""
    return SimpleNamespace(client="somebody", target=SimpleNamespace(value=value))


def test_a_slider_moves_its_joint_within_its_limits(arm):
    slider = arm.panel.sliders[1]
    assert (slider.min, slider.max) == (-2.0, 2.0)
    arm.panel._slid(1, by_hand(0.7))
    assert eventually(lambda: arm.q[1] == 0.7)
    # a slider that a program moved does nothing
    arm.panel._slid(1, SimpleNamespace(client=None, target=SimpleNamespace(value=0.1)))
    time.sleep(0.1)
    assert arm.q[1] == 0.7


def all_joints():
    """A free body that carries a ball, a plane, a screw and a pair of axes, and a follower."""
    b = hinge.MechanismBuilder("all")
    inertia = hinge.Inertia(1.0, (0.0, 0.0, 0.1), 0.1 * np.eye(3))
    joints = {
        "base": hinge.Free(),
        "ball": hinge.Spherical(),
        "plane": hinge.Planar(),
        "screw": hinge.Helical((1, 0, 0), 0.1),
        "cross": hinge.Universal((1, 0, 0), (0, 1, 0)),
        "rod": hinge.Cylindrical(lower=(-1.0, 0.0), upper=(2.0, 0.5)),
        "shadow": hinge.Revolute(mimic=hinge.Mimic("screw", 0.5)),
    }
    parent = "world"
    for name, joint in joints.items():
        b.add(f"{name} body", parent, joint, name, inertia=inertia)
        parent = f"{name} body"
    return hinge.Robot(b.build())


def test_every_degree_of_freedom_has_a_slider():
    robot = all_joints()
    rng = np.random.default_rng(3)
    q = robot.random_configuration(rng)
    found = dials(robot.mechanism, q)
    assert len(found) == robot.nv
    assert [d.label for d in found[:8]] == [
        *(f"base {x}" for x in "xyz"),
        *(f"base turn {x}" for x in "xyz"),
        "ball x",
        "ball y",
    ]
    assert (found[-2].low, found[-2].high, found[-1].high) == (-1.0, 2.0, 0.5)
    for i, dial in enumerate(found):
        values = [d.read(q) for d in found]
        values[i] = 0.3 * dial.low + 0.7 * dial.high
        moved = dial.turned(q, values[i])
        # this one moves, the others stay, and the body goes where the joint takes it
        assert [d.read(moved) for d in found] == pytest.approx(values, abs=1e-12)
        assert not np.allclose(robot.poses(moved), robot.poses(q))
        q = moved
    turn = found[3:6]
    base = dials(robot.mechanism, robot.neutral())[3]
    X = robot.poses(base.turned(robot.neutral(), 0.4))[0]
    np.testing.assert_allclose(
        X[1:3, 1:3], [[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]]
    )
    assert all(d.low == -np.pi for d in turn)


def test_sliders_of_a_free_body_move_it_and_follow():
    with hinge.zoo.quadruped().view(browser=False) as scene:
        labels = {d.label: i for i, d in enumerate(scene.panel.dials)}
        lift, turn = (
            next(i for x, i in labels.items() if x.endswith(end)) for end in (" z", "turn y")
        )
        scene.panel._slid(lift, by_hand(0.5))
        assert eventually(lambda: scene.q[2] == 0.5)
        scene.panel._slid(turn, by_hand(0.2))
        assert eventually(lambda: scene.q[5] == pytest.approx(np.sin(0.1)))
        assert eventually(lambda: scene.panel.sliders[lift].value == 0.5)


def test_joints_without_limits_have_sliders():
    with hinge.zoo.cartpole().view(browser=False) as scene:
        ranges = {i: (s.min, s.max) for i, s in scene.panel.sliders.items()}
        assert ranges == {0: (-1.0, 1.0), 1: (-np.pi, np.pi)}


SWITCHES = {
    "collisions": "collision0",
    "frames": "frame",
    "joint axes": "axis0",
    "inertias": "inertia",
}


@pytest.mark.parametrize("what", SWITCHES)
def test_switches_show_and_hide(what):
    b = hinge.MechanismBuilder("one")
    ball = hinge.Shape("sphere", (0.1,))
    inertia = hinge.Inertia(1.0, (0.0, 0.0, 0.0), np.eye(3))
    b.add("arm", "world", hinge.Revolute(), inertia=inertia, visuals=[ball], collisions=[ball])
    with hinge.Robot(b.build()).view(browser=False) as scene:
        assert what not in scene.puppet.shown
        scene.switch(what, True)
        handles = scene.puppet.shown[what]
        assert handles and all(SWITCHES[what] in h.name and h.visible for h in handles)
        scene.switch(what, False)
        assert not any(h.visible for h in handles)
        scene.switch("visuals", False)
        assert not any(h.visible for _, h in scene.puppet.meshes())


def test_marks_follow_the_robot(arm):
    def there(name):
        return arm.server.scene.get_handle_by_name(name)

    for what in ("centre of mass", "forces", "trails"):
        arm.switch(what, True)
    f_ext = np.zeros((3, 6))
    f_ext[2, 3:] = arm.weight, 0, 0
    for angle in (0.1, 0.2, 0.3):
        arm.show([angle, 0.0, 0.0], f_ext)
        assert eventually(lambda angle=angle: arm.q[0] == angle)
    center = arm.actor.center_of_mass(arm.q)
    assert eventually(lambda: np.allclose(there("/center").position, center))
    X = arm.actor.poses(arm.q)[2]
    arrow = np.stack([X[:3, 3], X[:3, 3] + 0.5 * arm.place.size * X[:3, 0]])
    assert eventually(lambda: np.allclose(there("/forces").points, arrow, atol=1e-6))
    assert eventually(lambda: there("/trail") is not None)
    for what in arm.marks:
        arm.switch(what, False)
    assert [there(name) for name in ("/center", "/forces", "/trail")] == [None] * 3


def test_arrows_start_where_forces_act(arm):
    """A force through a point has a moment about the origin; the arrow lies on its line."""
    q, at = np.array([0.3, 0.4, 0.2]), np.array([0.05, 0.02, 0.3])
    X = arm.actor.poses(q)[2]
    force = X[:3, :3].T @ [0.0, arm.weight, 0.0]
    f_ext = np.zeros((3, 6))
    f_ext[2] = [*np.cross(at, force), *force]
    points, vectors = (
        [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 1]],
        [[0, 0, 2.0], [0, 0, 0], [np.nan, 0, 0]],
    )
    arm.show(q, f_ext, (points, vectors))
    assert eventually(lambda: arm.q[0] == 0.3)

    def drawn():
        handle = arm.server.scene.get_handle_by_name("/forces")
        return np.zeros((0, 2, 3)) if handle is None else handle.points

    # the second vanishes, the third is nowhere
    assert eventually(lambda: len(drawn()) == 2)
    (start, tip), (foot, top) = drawn()
    scale = 0.5 * arm.place.size / arm.weight
    world = X[:3, :3] @ at + X[:3, 3]
    np.testing.assert_allclose(np.cross(start - world, tip - start), 0, atol=1e-6)
    np.testing.assert_allclose(tip - start, scale * np.array([0, arm.weight, 0]), atol=1e-6)
    np.testing.assert_allclose([foot, top], [[0.5, 0, 0], [0.5, 0, 2 * scale]], atol=1e-6)
    # a moment that no near force has is drawn at the body
    f_ext[2] = [0, 100 * arm.weight, 0, arm.weight, 0, 0]
    arm.show(q, f_ext)
    assert eventually(lambda: len(drawn()) == 1)
    np.testing.assert_allclose(drawn()[0, 0], X[:3, 3], atol=1e-6)
    with pytest.raises(hinge.ArgumentError, match=r"forces are of shapes .*; expected points and"):
        arm.show(q, forces=(np.zeros((2, 3)), np.zeros((1, 3))))


def test_trails_of_chosen_frames(arm):
    arm.switch("trails", True)
    arm.panel.trailing.value = "tool"
    arm.panel._trail()
    places = []
    for angle in (0.1, 0.2):
        arm.show([angle, 0.5, 0.0])
        assert eventually(lambda angle=angle: arm.q[0] == angle and len(arm._trail) == 10 * angle)
        places.append(arm.actor.frame_pose(arm.q, "tool")[:3, 3])
    np.testing.assert_allclose(np.stack(arm._trail)[:, 0], places)
    arm.trace("tool", "link1")
    assert len(arm.traced) == 2 and arm._trail == []
    arm.trace()
    assert [k for k, _ in arm.traced] == [3]
    with pytest.raises(hinge.ArgumentError, match="no frame 'tol'; did you mean 'tool'"):
        arm.trace("tol")


def test_a_pull_of_the_mouse_is_a_force_on_the_body(arm):
    """Its virtual work is that of the force at the point that was taken."""
    at, to = np.array([0.1, 0.2, 0.5]), np.array([0.1, 0.4, 0.5])
    event = SimpleNamespace(start_position=tuple(at), end_position=tuple(to), phase="update")
    arm.panel._pull(2, event)
    assert eventually(lambda: arm.push.any()) and not arm.push[[0, 2]].any()
    X = arm.actor.poses(arm.q)[1]
    force, moment = X[:3, :3] @ arm.push[1, 3:], X[:3, :3] @ arm.push[1, :3]
    np.testing.assert_allclose(force, 2 * arm.weight / arm.place.size * (to - at))
    np.testing.assert_allclose(moment, np.cross(at - X[:3, 3], force), atol=1e-9)
    event.phase = "end"
    arm.panel._pull(2, event)
    assert not arm.push.any()


def test_the_handle_drags_the_frame_along(arm):
    panel = arm.panel
    panel.frame.value, panel.holds.value = "tool", True
    panel._hold()
    assert panel._gizmo is not None
    arm.show([0.3, 0.4, 0.5])
    assert eventually(lambda: arm.q[2] == 0.5)
    goal = arm.actor.frame_pose([0.35, 0.5, 0.5], "tool")
    from hinge.algebra.rotation import quaternion_from_matrix

    target = SimpleNamespace(position=goal[:3, 3], wxyz=quaternion_from_matrix(goal[:3, :3]))
    for _ in range(5):
        panel._dragged(SimpleNamespace(target=target))
        time.sleep(0.1)
    reached = arm.actor.frame_pose(arm.q, "tool")
    np.testing.assert_allclose(reached, goal, atol=2e-3)
    panel.holds.value = False
    panel._hold()
    assert panel._gizmo is None


def test_a_frame_is_reached_within_limits_and_bases_stay():
    robot = hinge.zoo.quadruped()
    q = robot.neutral()
    q[robot.q_slice("FL_knee")] = -1.0
    goal = robot.frame_pose(q, "FL_foot")
    goal[:3, 3] += (0.02, 0.0, 0.03)
    found = reach(robot, q, "FL_foot", goal)
    near = robot.frame_pose(found, "FL_foot")[:3, 3]
    assert np.linalg.norm(near - goal[:3, 3]) < np.linalg.norm((0.02, 0.03)) / 2
    np.testing.assert_array_equal(found[:7], q[:7])
    assert (limits(robot.mechanism).kept(found) == found).all()
    # the base itself can be taken
    up = robot.frame_pose(q, "trunk")
    up[2, 3] += 0.1
    moved = reach(robot, q, "trunk", up)
    np.testing.assert_allclose(moved[2], 0.1, atol=1e-3)
    np.testing.assert_array_equal(moved[7:], limits(robot.mechanism).kept(q)[7:])


def test_reset_goes_back(arm):
    arm.show([0.5, 0.5, 0.5])
    assert eventually(lambda: arm.q[0] == 0.5)
    arm.panel.reset()
    assert eventually(lambda: not arm.q.any())


def test_a_wrong_configuration_is_refused(arm):
    for wrong in ([0.0, 0.0], np.zeros((2, 3))):
        with pytest.raises(hinge.ArgumentError, match=r"scene of 'arm3': show takes one .* \(3,\)"):
            arm.show(wrong)
    with pytest.raises(
        hinge.ArgumentError, match=r"f_ext \(3, 6\); got q \(3,\) and f_ext \(2, 6\)"
    ):
        arm.show(np.zeros(3), np.zeros((2, 6)))
    with pytest.raises(hinge.ArgumentError, match="poses of 'arm3'"):
        arm.show([0.0, np.nan, 0.0])


def motion(batch=()):
    robot = hinge.zoo.pendulum(2)
    q = np.broadcast_to([0.5, 0.2], (*batch, 2)).copy()
    q[..., 0] += 0.1 * np.arange(np.prod(batch, dtype=int)).reshape(batch)
    return hinge.simulate(robot, q, duration=0.5, dt=0.01)


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_a_motion_plays_and_can_be_scrubbed(batch):
    found = motion(batch)
    with found.view(browser=False) as scene:
        player = scene.player
        assert len(player.ghosts) == np.prod(batch, dtype=int) - 1
        assert eventually(lambda: player.now > 0.05)
        player._scrubbed(by_hand(0.25))
        assert not player.playing and player.index == 25
        first = found.q.reshape(51, -1, 2)
        assert eventually(lambda: np.array_equal(scene.q, first[25, 0]))
        if batch:
            X = found.robot.poses(first[25, 1])[1]
            np.testing.assert_allclose(player.ghosts[0].nodes[2].position, X[:3, 3])
        player.choice.value = "energy"
        player._choose()
        t, *values, now = player.plot.data
        assert len(values) == 3 and np.flatnonzero(np.isfinite(now)) == [25] and t[25] == 0.25
        player._scrubbed(by_hand(0.3))
        assert np.flatnonzero(np.isfinite(player.plot.data[-1])) == [30]
        player.choice.value = "nothing"
        player._choose()
        assert player.plot is None


def test_forces_of_a_motion_are_arrows():
    found = motion()
    f_ext = np.zeros((51, 2, 6))
    f_ext[25, 1, 3] = 1.0
    points, vectors = np.zeros((51, 1, 3)), np.zeros((51, 1, 3))
    vectors[30, 0, 2] = 1.0
    with found.view(browser=False, f_ext=f_ext, forces=(points, vectors)) as scene:
        scene.player.play(False)
        for now, count in ((0.25, 1), (0.3, 1), (0.4, 0)):
            scene.player.seek(now)
            assert eventually(lambda count=count: len(scene._arrows.points) == count)
    for wrong in ({"f_ext": f_ext[:3]}, {"forces": (points[:3], vectors[:3])}):
        with pytest.raises(
            hinge.ArgumentError, match="motion of 'pendulum2': (f_ext has|forces are)"
        ):
            found.view(browser=False, **wrong)


def test_a_motion_ends_or_goes_round():
    with motion().view(browser=False) as scene:
        player = scene.player
        player.play(False)
        player.seek(0.49)
        player._advance(0.2)
        assert player.now == 0.0
        player.loop.value = False
        player.seek(0.49)
        player._advance(0.2)
        assert player.now == 0.5 and not player.playing and player.button.label == "Play"
        player.play(True)
        assert player.now < 0.5 and player.button.label == "Pause"


def test_it_listens_here_alone_and_on_the_next_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with hinge.zoo.arm(1).view(port=port, browser=False) as scene:
            assert scene.server.get_host() == "127.0.0.1"
            assert scene.server.get_port() > port
            shown = scene._repr_html_()
            assert scene.address in shown and scene.served.gate.sign in shown
    assert not scene.running
    scene.wait()
    scene.close()


def test_where_nobody_can_listen_is_said():
    arm = hinge.zoo.arm(1)
    with pytest.raises(hinge.ArgumentError, match="view of 'arm1': port is -5"):
        arm.view(port=-5)
    with pytest.raises(hinge.HingeError, match="cannot listen on '127.0.0.1', ports 70000.*65535"):
        arm.view(port=70000)
    with pytest.raises(hinge.HingeError, match="cannot listen on 'no host at all'"):
        arm.view(host="no host at all")


def test_a_motion_that_blew_up_stays_where_it_was_last():
    robot, t = hinge.zoo.pendulum(1), np.array([0.0, 0.1])
    q, rates = np.array([[0.3], [np.nan]]), np.zeros((2, 1))
    with hinge.Trajectory(robot, t, q, rates, rates).view(browser=False) as scene:
        scene.player.seek(0.1)
        time.sleep(0.2)
        assert scene.running and scene.q == [0.3]


@pytest.mark.parametrize("opens", [True, False])
def test_the_browser_is_opened_or_the_address_said(opens, monkeypatch, capsys):
    asked = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(server_module.webbrowser, "open", lambda url: asked.append(url) or opens)
    with hinge.zoo.arm(1).view() as scene:
        assert asked == [scene.address]
    said = capsys.readouterr()
    assert ("is open in the browser" if opens else "open this in a browser") in said.err
    assert said.out == ""


def test_without_viser_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(server_module, "find_spec", lambda name: None)
    with pytest.raises(hinge.HingeError, match=r'pip install "hinge-dynamics\[view\]"'):
        hinge.zoo.arm(1).view()


def test_what_is_no_robot_or_no_configuration_is_refused():
    with pytest.raises(hinge.ArgumentError, match="view needs a Robot, got int"):
        hinge.view(7)
    with pytest.raises(hinge.ArgumentError, match="view of 'arm2': q has shape"):
        hinge.zoo.arm(2).view(np.zeros((4, 2)))


def test_importing_hinge_and_drawing_do_not_import_viser():
    code = "import hinge, sys; hinge.zoo.arm(1).draw(size=(40, 30)); print('viser' in sys.modules)"
    assert run_python(code) == "False\n"


def run_cell(code):
    """What a notebook shows under a cell: the HTML of its last expression."""
    *lines, last = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return shown, shown._repr_html_()


@pytest.mark.parametrize(
    "what", ["robot.view()", "hinge.simulate(robot, [0.3], duration=0.1).view()"]
)
def test_a_cell_of_a_notebook_shows_the_studio_inline(what, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(
        server_module.webbrowser, "open", lambda url: pytest.fail("a window opened")
    )
    scene, shown = run_cell(f"import hinge\nrobot = hinge.zoo.pendulum(1)\n{what}")
    with scene:
        # the page that the scene in the notebook gives way to, where it is
        (address,) = re.findall(r'location.replace\("([^"]+)"\)', html.unescape(shown))
        with urlopen(address, timeout=20) as page:
            assert page.status == 200 and b"<html" in page.read()
        with urlopen(address + scene.served.gate.sign, timeout=20) as sign:
            assert sign.headers["Access-Control-Allow-Origin"] == "*"
    assert capsys.readouterr().out == ""


def test_a_notebook_keeps_the_scene_itself():
    robot = hinge.zoo.arm(2)
    motion = hinge.simulate(robot, [0.3, 0.2], duration=0.1)
    f_ext = np.zeros((2, 6))
    f_ext[1, 5] = 1.0
    points = np.zeros((len(motion.t), 1, 3))
    scene = motion.view(browser=False, f_ext=f_ext, forces=(points, points + 1.0))
    # on bodies and in the world, at each time
    assert scene.player.arrows.points.shape == (len(motion.t), 3, 3)
    scene.close()
    shown = html.unescape(scene._repr_html_())
    # the recorded scene and the program that plays it, and nobody to ask for more
    assert "__VISER_EMBED_DATA__" in shown and 'src="' not in shown
    assert scene.address not in shown

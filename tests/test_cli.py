"""The command line: the demonstration, the look at a file, the cache."""

import os
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hinge
from fresh_process import run_python
from hinge.algorithms.configuration import limits
from hinge.cli import main
from hinge.command.motions import pushed, through_its_ranges
from hinge.model.joint import Mimic
from hinge.model.joints import Free, Revolute
from hinge.runtime import cache

URDF = """<robot name="bot">
  <link name="base"/>
  <link name="arm"><inertial><mass value="2"/><origin xyz="0 0 0.1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.9" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping="0.5" friction="0.25"/>
  </joint>
  <joint name="spin" type="continuous"><parent link="arm"/><child link="tip"/></joint>
</robot>"""


def test_demo_pushes_a_quadruped(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hinge.command.demo.find_spec", lambda name: None)
    assert main(["demo"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for word in ("quadruped: 13 bodies", "inverse dynamics", "sways 7", "pip install", "wrote"):
        assert word in printed
    assert (tmp_path / "hinge_demo.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["hinge_demo.png"]


def test_the_pushed_quadruped_comes_back_within_its_limits():
    motion = pushed().motion
    assert 0.05 < np.abs(motion.q[:, 1]).max() < 0.1
    assert np.abs(motion.robot.difference(motion.q[0], motion.q[-1])).max() < 5e-3
    assert_array_equal(motion.q, [limits(motion.robot.mechanism).kept(q) for q in motion.q])
    for foot in ("FL_foot", "RR_foot"):
        moved = motion.frame_positions(foot) - motion.frame_positions(foot)[0]
        assert np.abs(moved).max() < 0.01


def test_demo_cannot_write_there(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path / "missing" / "demo.svg")]) == 1
    assert "hinge: " in capsys.readouterr().err
    assert main(["demo", "--output", "demo.foo"]) == 1
    assert "cannot write 'demo.foo'" in " ".join(capsys.readouterr().err.split())


def test_demo_moves_a_robot_of_a_file(tmp_path, capsys):
    path = tmp_path / "bot.urdf"
    path.write_text(URDF)
    assert main(["demo", str(path), "-o", str(tmp_path / "bot.svg"), "--floating-base"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "within limits" in printed and "joint 'turn'" in printed and "singular" in printed
    assert b"<svg" in (tmp_path / "bot.svg").read_bytes()
    path.write_text('<robot name="stone"><link name="a"/></robot>')
    assert main(["demo", str(path), "-o", str(tmp_path / "bot.svg")]) == 1
    assert "'stone' has no joint that could be moved" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("robot", [hinge.zoo.humanoid(), hinge.zoo.arm(7), hinge.zoo.tree(n=9)])
def test_tours_stay_within_limits(robot):
    """Rates are those of q, forces those of both, and free bodies do not move."""
    mech, motion = robot.mechanism, through_its_ranges(robot)
    assert_array_equal(motion.q, [limits(mech).kept(q) for q in motion.q])
    h = motion.t[1]
    rates = robot.difference(motion.q[:-2], motion.q[2:]) / (2 * h)
    assert np.abs(rates - motion.qd[1:-1]).max() < 0.05 * np.abs(motion.qd).max()
    for body in mech.bodies[1:]:
        qd = motion.qd[:, mech.v_slice(body.joint_name)]
        assert np.all(np.abs(qd) <= body.joint.velocity_limit)
        assert (np.abs(qd).max() == 0) == isinstance(body.joint, Free)


def test_tours_respect_joints_that_follow():
    b = hinge.MechanismBuilder("gripper")
    inertia = hinge.Inertia(1.0, (0.0, 0.0, 0.1), np.eye(3))
    b.add("left", "world", Revolute((0, 1, 0), lower=-1, upper=1), "lead", None, inertia)
    follow = Revolute((0, 1, 0), lower=-0.5, upper=0.5, mimic=Mimic("lead", -2.0))
    b.add("right", "world", follow, "follow", None, inertia)
    q = through_its_ranges(hinge.Robot(b.build())).q
    assert 0.05 < np.abs(q).max() <= 0.25


def test_demo_opens_the_studio_on_a_terminal(monkeypatch):
    pytest.importorskip("viser")
    from hinge.viewer.scene import Scene

    waited = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("hinge.command.demo.is_local", lambda: True)
    monkeypatch.setattr("hinge.viewer.server.is_local", lambda: False)
    monkeypatch.setattr(Scene, "wait", lambda scene: waited.append(scene) or scene.close())
    assert main(["demo"]) == 0
    assert waited[0].player is not None


def test_info_shows_tree_joints_and_warnings(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "bot.urdf"
    path.write_text(URDF)
    assert main(["info", str(path), "--floating-base"]) == 0
    printed = capsys.readouterr().out
    for word in ("bot", "root_joint", "turn", "-1 … 2", "0.5", "0.25", "2 kg", "nv = 8"):
        assert word in printed
    assert "body 'arm': principal moments" in printed
    assert printed.count("triangle inequality") == 1
    assert "joint 'spin': nothing beyond it resists" in printed


def test_info_says_no_in_one_line(tmp_path, capsys):
    assert main(["info", str(tmp_path / "none.urdf")]) == 1
    error = capsys.readouterr().err
    assert "cannot read" in error and "Traceback" not in error
    (tmp_path / "bad.urdf").write_text("<html/>")
    assert main(["info", str(tmp_path / "bad.urdf")]) == 1
    assert "the root element is <html>" in " ".join(capsys.readouterr().err.split())


def test_view_writes_a_picture_or_opens_a_page(tmp_path, capsys, monkeypatch):
    pytest.importorskip("viser")
    from hinge.viewer.scene import Scene

    path = tmp_path / "bot.urdf"
    path.write_text(URDF)
    assert main(["view", str(path), "-o", str(tmp_path / "bot.png"), "--floating-base"]) == 0
    printed = capsys.readouterr().out
    assert "wrote " in printed and printed.count("triangle inequality") == 1
    assert (tmp_path / "bot.png").read_bytes().startswith(b"\x89PNG")
    assert main(["view", str(path), str(path), "-o", "bot.png"]) == 1
    assert "--output takes one robot, got 2 files" in capsys.readouterr().err
    waited = []
    monkeypatch.setattr(Scene, "wait", lambda scene: waited.append(scene) or scene.close())
    assert main(["view", str(path), str(path), "--no-browser"]) == 0
    printed = capsys.readouterr().out
    assert len(waited) == 2 and printed.count("http://localhost:") == 2
    assert main(["view", str(path), "-o", "bot.foo"]) == 1
    assert "cannot write 'bot.foo'" in " ".join(capsys.readouterr().err.split())


def test_the_command_is_installed(tmp_path):
    command = os.path.join(os.path.dirname(sys.executable), "hinge")
    run = subprocess.run([command, "info", "nothing"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1 and "cannot read 'nothing'" in run.stderr


def test_versions_agree(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and capsys.readouterr().out == f"hinge {hinge.__version__}\n"


def test_the_module_is_the_command(tmp_path):
    command = [sys.executable, "-m", "hinge", "--version"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, f"hinge {hinge.__version__}\n")


def test_long_work_shows_progress_on_a_terminal(monkeypatch):
    import io

    from hinge.runtime import progress as module

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    assert list(module.progress(range(5), "simulate")) == list(range(5))
    assert "simulate" in screen.getvalue()
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    assert list(module.progress(iter([1, 2]), "simulate")) == [1, 2]
    assert "simulate" not in quiet.getvalue()


def test_loading_shows_what_it_does_on_a_terminal(monkeypatch):
    from hinge import robot as module

    said = []
    monkeypatch.setattr(module, "during", lambda what: said.append(what) or nullcontext())
    hinge.load('<robot name="x"><link name="a"/></robot>')
    with pytest.raises(hinge.ModelError):
        hinge.load("none.urdf")
    assert said == ["loading a text", "loading none.urdf"]


@pytest.mark.parametrize("module", ["matplotlib", "rich", "mujoco", "llvmlite"])
def test_importing_hinge_imports_little(module):
    assert run_python(f"import hinge, sys; print({module!r} in sys.modules)") == "False\n"


def test_cache_tells_and_clears(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    cache.store("key", b"x" * 3_000_000)
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'hinge'}: 1 kernels, 3.0 of at most 500 MB\n"
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.endswith(": 1 kernels deleted\n") and cache.load("key") is None
    assert main(["cache", "info"]) == 0 and ": 0 kernels, 0.0 of at most" in capsys.readouterr().out
    (tmp_path / "hinge").chmod(0o777)
    for action in ("info", "clear"):
        assert main(["cache", action]) == 0
        assert "no cache: there is no folder" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["cache", "burn"])

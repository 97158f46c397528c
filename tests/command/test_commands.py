"""Commands about a robot file: simulate, bench, codegen; good, bad and interrupted."""

import csv
import subprocess

import numpy as np
import pytest

import hinge
import with_c
from hinge import zoo
from hinge.cli import main
from hinge.command import bench, peers, simulate
from hinge.runtime import cpu
from hinge.viewer import output

LINK = """<link name="{0}"><inertial><origin xyz="0.02 0 -0.2"/><mass value="{1}"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0.001" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
  <origin xyz="0 0.05 -0.4"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="2" velocity="3" effort="9"/>{4}</joint>"""


def urdf(mimic=""):
    links = "".join(LINK.format(*link) for link in (("base", 4), ("a", 3), ("b", 2), ("c", 1)))
    joints = JOINT.format("shoulder", "revolute", "base", "a", "")
    joints += JOINT.format("elbow", "continuous", "a", "b", "")
    joints += JOINT.format("rail", "prismatic", "b", "c", mimic)
    return f'<robot name="bot[/x]">{links}{joints}</robot>'


MJCF = """<mujoco model="hopper"><worldbody><body name="trunk"><freejoint/>
  <geom type="box" size=".1 .2 .1"/><body name="leg" pos="0 0 -.1">
  <joint name="hip" axis="0 1 0" armature="0.1" damping="0.4"/>
  <geom type="capsule" fromto="0 0 0 .1 0 -.3" size=".04"/></body></body></worldbody></mujoco>"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    (tmp_path / "bot.urdf").write_text(urdf())
    (tmp_path / "bot.xml").write_text(MJCF)
    return "bot.urdf"


@pytest.fixture
def refused(capsys):
    """What a command says that must not work: one sentence, status 1."""

    def ask(*arguments):
        assert main(list(arguments)) == 1
        said = capsys.readouterr().err
        assert said.startswith("hinge: ") and said.count("\n") == 1
        return said

    return ask


COMMANDS = ["demo", "info", "view", "simulate", "bench", "codegen", "compile", "cache"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name, capsys):
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0 and f"  hinge {name}" in capsys.readouterr().out.replace(
        ": ", ":  "
    )


def test_names_are_printed_as_they_are(file, capsys):
    assert main(["info", file]) == 0
    assert "bot[/x]: 3 moving bodies" in capsys.readouterr().out


# simulate


def test_simulate_tells_what_happened(file, capsys):
    words = ["--q", "elbow=0.5", "shoulder=1.9", "--qd", "9,-4,0.1", "--duration", "0.3"]
    assert main(["simulate", file, *words]) == 0
    printed = capsys.readouterr().out
    for word in ("falling for 0.3 s in 300 steps of rk4", "times real time", "energy: kinetic"):
        assert word in printed
    assert "position limits, at which stops act, reached by: shoulder (" in printed
    assert "which nothing enforces, exceeded by: shoulder (0 s), elbow (0 s)" in printed
    assert main(["simulate", file, *words, "--no-limits"]) == 0
    assert "position limits, which do not act, left by" in capsys.readouterr().out


def test_simulate_says_which_joint_forces_are_cut_off(tmp_path, capsys):
    robot = hinge.Robot(hinge.edit.with_joint(zoo.arm(2).mechanism, "joint2", effort_limit=1.0))
    with pytest.warns(hinge.ModelWarning, match="armature"):
        hinge.save(robot, tmp_path / "weak.urdf")
    words = [
        "simulate",
        str(tmp_path / "weak.urdf"),
        "--q",
        "0",
        "1",
        "--hold",
        "--duration",
        "0.05",
    ]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "warning: simulate 'arm2': joint forces are cut off" in printed
    assert "effort limits, at which joint forces are cut off, reached by: joint2 (0 s)" in printed
    assert main([*words, "--no-limits"]) == 0
    assert "effort limits, which do not act, reached by: joint2 (0 s)" in capsys.readouterr().out


def test_simulate_writes_what_the_ending_says(file, capsys):
    outputs = [f"--output=fall.{ending}" for ending in ("npz", "csv", "svg", "png", "gif")]
    assert main(["simulate", file, "--q", "0.3", "0.2", "0", "--duration", "0.05", *outputs]) == 0
    assert capsys.readouterr().out.count("wrote fall.") == 5
    robot = hinge.load(file)
    motion = hinge.simulate(robot, [0.3, 0.2, 0.0], duration=0.05)
    with np.load("fall.npz") as kept:
        np.testing.assert_array_equal(kept["q"], motion.q)
        np.testing.assert_array_equal(kept["kinetic"] + kept["potential"], motion.energy)
    with open("fall.csv", newline="") as rows:
        header, *rows = list(csv.reader(rows))
    assert header[:4] == ["t", "q shoulder", "q elbow", "q rail"] and header[-1] == "tau rail"
    np.testing.assert_array_equal(np.array(rows, float)[:, 4:7], motion.qd)
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "gif": b"GIF8"}
    for ending, start in starts.items():
        with open(f"fall.{ending}", "rb") as written:
            assert written.read().startswith(start)


def test_hold_carries_the_weight(file, capsys):
    words = ["--hold", "--duration", "0.2", "--floating-base", "--method", "variational"]
    assert main(["simulate", file, "--q", "elbow=1", *words, "-o", "held.npz"]) == 0
    assert "held for 0.2 s in 200 steps of variational" in capsys.readouterr().out
    with np.load("held.npz") as kept:
        np.testing.assert_allclose(kept["q"][-1], kept["q"][0], atol=1e-9)
        assert np.abs(kept["tau"]).max() > 1


def test_simulate_says_no_before_it_works(file, refused, monkeypatch):
    def never(*arguments):
        raise AssertionError("the file was read")

    monkeypatch.setattr(simulate, "loaded", never)
    assert "expected .npz, .csv, .png" in refused("simulate", file, "-o", "fall.foo")
    assert "there is no folder 'gone'" in refused("simulate", file, "-o", "gone/fall.npz")


@pytest.mark.parametrize(
    "words, said",
    [
        (["--q", "elbo=1"], "has no joint 'elbo'; did you mean 'elbow'?"),
        (["--q", "elbow=much"], "'much' is not a number"),
        (["--q", "1", "2"], "q has shape (2,)"),
        (["--floating-base", "--q", "root_joint=1"], "'root_joint' has several numbers"),
        (["--dt", "0"], "dt is 0.0"),
        (["--duration", "-1"], "duration is -1.0"),
        (["--duration", "1e300"], "expected at most 1e+08"),
    ],
)
def test_simulate_refuses_numbers_that_do_not_fit(file, refused, words, said):
    assert said in refused("simulate", file, *words)


# codegen


def test_codegen_writes_what_the_kernel_has(file, capsys):
    robot = hinge.load(file)
    kernel = robot.kernel("forward_dynamics", "q", "qd", "tau")
    words = ["--function", "forward_dynamics", "--prefix="]
    assert main(["codegen", file, *words]) == 0
    code = capsys.readouterr().out
    assert code[code.index("#include") :] == kernel.source("c")[kernel.source("c").index("#inc") :]
    orders = " *   Entries of q: shoulder[0], elbow[1], rail[2].\n"
    assert orders in code and orders.replace("q:", "velocities and forces:") in code
    assert main(["codegen", file, *words, "--language=cuda"]) == 0
    assert "forward_dynamics(const double *q" in (code := capsys.readouterr().out)
    assert code[code.index("#ifndef") :] == (s := kernel.source("cuda"))[s.index("#ifndef") :]
    words = ["--language", "llvm", "--output", "fd.ll"]
    assert main(["codegen", file, "--function", "forward_dynamics", *words]) == 0
    assert "wrote forward_dynamics(q, qd, tau) of 'bot[/x]'" in capsys.readouterr().out
    with open("fd.ll") as written:
        assert written.read() == kernel.source("llvm")
    assert main(["codegen", file, "--function=jacobian", "--frame=c", "--dtype=float32"]) == 0
    code = capsys.readouterr().out
    assert "float q[3]" in code and "double q" not in code


@with_c.compiled
def test_functions_of_two_robots_are_linked(file, tmp_path, capsys):
    hinge.save(zoo.pendulum(2), "other.urdf")
    for name in (file, "other.urdf"):
        assert main(["codegen", name, "-o", f"{name}.c"]) == 0
        assert f"to {name}.c and {name}.h" in capsys.readouterr().out
    prototype = "void pendulum2_inverse_dynamics(const double *q, const double *qd, "
    assert prototype in (tmp_path / "other.urdf.h").read_text()
    (tmp_path / "main.c").write_text(
        '#include "bot.urdf.h"\n#include "other.urdf.h"\nint main(void) {'
        "double x[3] = {0.3, 0.2, 0.1}, a[3], b[2]; bot_x_inverse_dynamics(x, x, x, a);"
        "pendulum2_inverse_dynamics(x, x, x, b); return a[0] + b[0] == 0.0; }"
    )
    files = ["main.c", "bot.urdf.c", "other.urdf.c", "-lm", "-o", "both"]
    subprocess.run([with_c.CC, *with_c.FLAGS, *files], check=True)
    assert subprocess.run(["./both"]).returncode == 0


def test_a_header_of_somebody_else_stays(file, refused, tmp_path):
    (tmp_path / "arm.h").write_text("mine")
    assert "arm.h, where its header goes, is not of hinge" in refused("codegen", file, "-oarm.c")
    assert (tmp_path / "arm.h").read_text() == "mine"
    assert main(["codegen", file, "-ohand.c"]) == main(["codegen", file, "-ohand.c"]) == 0


@pytest.mark.parametrize(
    "words, said",
    [
        (["--output", "x.h"], "its header has this name; expected a name in .c"),
        (["--language", "java"], "--language java; expected c, cuda, llvm"),
        (["--function", "forward_dynamic"], "did you mean 'forward_dynamics'?"),
        (["--function", "hybrid_dynamics"], "needs active, which a command line cannot give"),
        (["--function", "jacobian"], "needs the name of a frame: --frame NAME"),
        (["--function", "jacobian", "--frame", "d"], "'d'"),
        (["--frame", "c"], "takes no --frame"),
        (["--dtype", "float16"], "kernels come in float64 and float32"),
        (["--output", "gone/x.c"], "there is no folder 'gone'"),
        (["--output", "."], "it is a folder"),
    ],
)
def test_codegen_refuses_in_a_sentence(file, refused, words, said):
    assert said in refused("codegen", file, *words)


# bench


@pytest.fixture
def hasty(monkeypatch):
    for name, value in {"_SECONDS": 0.0, "_TURN": 1e-6, "_FEWEST": 1, "_BATCH": 16}.items():
        monkeypatch.setattr(bench, name, value)


def lines(printed, word):
    return [line for line in printed.splitlines() if word in line]


@pytest.mark.parametrize("floating", [[], ["--floating-base"]])
def test_bench_beside_pinocchio(file, capsys, hasty, floating):
    pytest.importorskip("pinocchio")
    assert main(["bench", file, *floating]) == 0
    printed = capsys.readouterr().out
    for quantity in peers.ARGUMENTS:
        one, many = lines(printed, f"│ {quantity} ")
        assert one.count("µs") + one.count("ms") == many.count("µs") + many.count("ms") == 2
    assert "16 states in a batch" in printed and "with Pinocchio's results" in printed
    assert "differs" not in printed


def test_bench_of_joints_that_follow(file, capsys, hasty):
    pytest.importorskip("pinocchio")
    with open(file, "w") as out:
        out.write(urdf('<mimic joint="shoulder" multiplier="0.5"/>'))
    assert main(["bench", file]) == 0
    printed = capsys.readouterr().out
    assert (
        "–" in lines(printed, "forward_dynamics ")[0] and "Pinocchio, forward_dynamics: " in printed
    )


def test_bench_beside_mujoco(file, capsys, hasty):
    pytest.importorskip("mujoco")
    assert main(["bench", "bot.xml"]) == 0
    printed = capsys.readouterr().out
    assert "with MuJoCo's results" in printed and "differs" not in printed
    assert "MuJoCo has no inverse_dynamics_derivatives" in printed
    for quantity in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        assert "–" not in lines(printed, f"│ {quantity} ")[0]


def test_bench_compares_only_what_agrees(file, capsys, hasty, monkeypatch):
    pytest.importorskip("pinocchio")
    monkeypatch.setattr(peers, "_difference", lambda found, expected: float("nan"))
    assert main(["bench", file]) == 0
    printed = capsys.readouterr().out
    assert "inverse_dynamics of Pinocchio differs by nan: not compared" in printed
    assert "agrees" not in printed and lines(printed, "│ mass_matrix ")[0].count("–") == 2


def test_bench_without_a_peer(file, capsys, hasty, monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert main(["bench", file]) == 0
    printed = capsys.readouterr().out
    assert "Pinocchio is not installed" in printed and "ratio" not in printed
    monkeypatch.setattr(peers, "find_spec", lambda name: True)
    monkeypatch.setattr(peers, "_LARGEST", 2)
    assert peers.peer_of(hinge.load(file), file, False)[0] is None


def test_a_peer_that_sees_another_robot_is_left_out(file):
    pytest.importorskip("pinocchio")
    peer, why = peers.peer_of(hinge.zoo.arm(4), file, False)
    assert peer is None and why == ["Pinocchio is left out: it has nv = 3, this robot 4"]


@pytest.mark.parametrize("make", [zoo.quadruped, zoo.humanoid, zoo.cartpole, zoo.slosh])
def test_robots_without_a_file_are_built_in_pinocchio(make):
    pytest.importorskip("pinocchio")
    robot = make()
    peer, why = peers.peer_of(robot, None, False)
    assert peer is not None and why == []
    states = bench._states(robot)
    # derivatives there take axes for fixed in the body, which those of a universal joint are not
    for quantity in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        ours = peers.own_calls(robot, quantity, states)
        found = peers.compared(peer, quantity, states, ours.first())
        assert found.calls is not None and found.difference < 1e-11, found.note


def test_what_pinocchio_has_no_joint_for_is_left_out():
    pytest.importorskip("pinocchio")
    b = hinge.MechanismBuilder("screw")
    b.add(
        "a", joint=hinge.Helical((1, 0, 0), 0.1), inertia=hinge.Inertia(1.0, (0, 0, 1), np.eye(3))
    )
    peer, why = peers.peer_of(hinge.Robot(b.build()), None, False)
    assert peer is None and "Pinocchio is left out: joint Helical" in why[0]


def test_what_a_library_says_past_python_is_a_sentence(file, capfd, hasty):
    """Pinocchio's reader of files writes to standard error itself."""
    pytest.importorskip("pinocchio")
    with open(file, "w") as out:
        out.write(urdf().replace(' ixy="0"', ""))
    with pytest.warns(hinge.ModelWarning):
        hinge.load(file)
    assert main(["bench", file]) == 0
    said = capfd.readouterr()
    assert said.err == "" and "Pinocchio says of the file: " in said.out


def test_bench_of_a_joint_that_moves_nothing(file, capsys, hasty):
    text = urdf().replace(LINK.format("c", 1), '<link name="c"/>')
    with open(file, "w") as out:
        out.write(text)
    assert main(["bench", file]) == 0
    printed = capsys.readouterr().out
    assert "–" in lines(printed, "│ forward_dynamics ")[0] and "'rail'" in printed


# every command


@pytest.mark.parametrize("name", ["info", "view", "simulate", "bench", "codegen"])
def test_files_that_are_not_robots_are_refused_in_a_sentence(file, refused, name):
    assert "cannot read" in refused(name, "none.urdf")
    with open("page.html", "w") as out:
        out.write("<html/>")
    assert "the root element is <html>" in refused(name, "page.html")


def test_interrupts_and_lack_of_memory_are_told(file, refused, monkeypatch):
    for error, said in ((KeyboardInterrupt(), "interrupted"), (MemoryError("8 EiB"), "8 EiB")):

        def broken(*arguments, error=error):
            raise error

        monkeypatch.setattr(simulate, "loaded", broken)
        assert said in refused("simulate", file)


def test_a_file_that_cannot_be_written_is_named(file, refused, monkeypatch):
    def closed(*arguments):
        raise PermissionError(13, "Permission denied", "fall.npz")

    monkeypatch.setattr(np, "savez", lambda *a, **k: closed())
    said = refused("simulate", file, "--duration", "0.01", "-o", "fall.npz")
    assert said.endswith("cannot write 'fall.npz': Permission denied\n")


def test_view_and_films_say_no_before_they_work(file, refused, monkeypatch):
    assert "view: cannot write 'x.gif'; expected .png" in refused(
        "view", "none.urdf", "-o", "x.gif"
    )
    assert "there is no folder 'gone'" in refused("view", "none.urdf", "-o", "gone/x.png")
    monkeypatch.setattr(output.shutil, "which", lambda name: None)
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    for command in ("demo", "simulate"):
        assert "MP4 needs the program ffmpeg" in refused(command, "none.urdf", "-o", "x.mp4")


# compile


def test_methods_are_compiled_before_they_are_called(file, tmp_path, monkeypatch, capsys, refused):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = ["compile", file, "--methods", "mass_matrix", "jacobian", "--frame", "c"]
    assert main([*given, "--processes", "1", "--dtype", "float32"]) == 0
    said = capsys.readouterr().out
    assert "mass_matrix" in said and "2 methods of 'bot[/x]' in float32, ready in" in said

    def never(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(cpu, "compile_texts", never)
    robot = hinge.Robot(hinge.load(file).mechanism, dtype=np.float32)
    assert robot.mass_matrix(robot.neutral()).shape == (3, 3)
    assert robot.jacobian(robot.neutral(), "c").shape == (6, 3)
    assert "did you mean 'mass_matrix'" in refused("compile", file, "--methods", "mass_matrx")

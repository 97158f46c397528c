"""Motions to be looked at: some samples of many, in words, in pictures, in files."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import hinge
from hinge import simulate, zoo

ARM = zoo.arm(2)
MANY = 10_000


@pytest.fixture(scope="module")
def batch():
    """Ten thousand motions of three states."""
    starts = np.random.default_rng(0).uniform(-1, 1, size=(MANY, 2))
    return simulate(ARM, starts, duration=0.08, dt=0.04)


def test_a_sample_of_a_batch_is_the_motion_that_it_is_alone():
    def crossing(t, q, qd):
        return q[0] - 0.3

    starts, gravity = np.array([[[0.2, 0.4], [0.29, 0.1]]]), np.zeros((1, 2, 3))
    gravity[..., 0] = [3.0, 9.0]
    setting = dict(duration=0.2, dt=0.01, method="adaptive", events=crossing)
    run = simulate(ARM, starts, [1.0, 0.0], gravity=gravity, **setting)
    alone = simulate(ARM, starts[0, 1], [1.0, 0.0], gravity=gravity[0, 1], **setting)
    one = run.samples(1)
    assert_array_equal(one.q, run.q[:, 0, 1])
    np.testing.assert_allclose(one.q, alone.q, rtol=1e-9)
    np.testing.assert_allclose(one.energy, alone.energy, rtol=1e-9)
    np.testing.assert_allclose(one.events[0].t, alone.events[0].t, rtol=1e-9)
    assert one.taken.shape == () and one.q.shape == alone.q.shape
    several = run.samples([1, 0, -1])
    assert_array_equal(several.q, run.q[:, 0, [1, 0, 1]])
    assert_array_equal(several.energy, run.energy[:, 0, [1, 0, 1]])
    assert len(several.events[0].t) == 2 * len(one.events[0].t) + len(run.samples(0).events[0].t)
    assert_array_equal(np.unique(several.events[0].sample), [0, 1, 2])


def test_what_was_kept_and_forces_of_the_ground_go_along():
    keep = {"most": hinge.Max(lambda qd: qd @ qd)}
    run = simulate(ARM, [[0.1, 0.2], [0.3, 0.4]], duration=0.05, dt=0.01, keep=keep)
    assert run.samples(1).kept.most == run.kept.most[1]
    robot = zoo.quadruped()
    ground = hinge.Ground(["FL_foot", "FR_foot"], law="rigid")
    run = simulate(robot, [robot.neutral()] * 3, duration=0.02, dt=0.01, ground=ground)
    one = run.samples(2)
    assert one.forces.shape == (3, 2, 3) and one.residual.shape == (3,)
    assert one.contact_positions.shape == (3, 2, 3)


@pytest.mark.parametrize("wrong", [2, -3, "first", 0.5, [], [0, 7], [[0, 1]], None])
def test_samples_that_there_are_none_of(wrong):
    run = simulate(ARM, [[0.1, 0.2], [0.3, 0.4]], duration=0.02, dt=0.01)
    with pytest.raises(hinge.ArgumentError, match="sample is .*; expected numbers from 0 to 1"):
        run.samples(wrong)


# pictures of batches


@pytest.mark.parametrize("ending", ["gif", "html"])
def test_of_ten_thousand_motions_one_is_drawn(batch, tmp_path, ending):
    if ending == "html":
        pytest.importorskip("viser")
    path, alone = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    batch.samples(0).draw(alone, size=(80, 60))
    tracemalloc.start()
    batch.draw(path, size=(80, 60))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # one film needs a few MB of pictures
    assert peak < 100e6
    if ending == "gif":
        assert path.read_bytes() == alone.read_bytes()
        batch.draw(path, size=(80, 60), sample=7)
        assert path.read_bytes() != alone.read_bytes()
        batch.draw(alone, size=(80, 60), sample=range(8))
        assert len(alone.read_bytes()) > len(path.read_bytes())
    assert path.stat().st_size > 1000


def test_more_than_seven_ghosts_are_refused(batch, tmp_path):
    with pytest.raises(hinge.ArgumentError, match="9 samples; expected at most 8, one and 7 gho"):
        batch.draw(tmp_path / "a.gif", sample=range(9))


def test_of_ten_thousand_configurations_eight_are_drawn(batch):
    few, many = (ARM.draw(batch.q[-1, :n], size=(80, 60)) for n in (8, MANY))
    assert_array_equal(few, many)


def test_a_batch_is_plotted_sample_by_sample(batch, tmp_path):
    figure = batch.plot(tmp_path / "a.svg", sample=3)
    line = figure.axes[0].lines[1]
    assert_array_equal(line.get_ydata(), batch.q[:, 3, 1])
    assert figure.axes[0].get_title() == "arm2, sample 3 of 10000"
    with pytest.raises(hinge.ArgumentError, match="sample is .0, 1.; expected a number"):
        batch.plot(sample=[0, 1])


def test_an_ending_that_no_plot_has_is_refused(batch, tmp_path):
    with pytest.raises(hinge.ArgumentError, match=r"cannot write .*a.bmp'; expected .*\.svg"):
        batch.plot(tmp_path / "a.bmp")


def test_of_ten_thousand_motions_some_are_viewed(batch):
    pytest.importorskip("viser")
    with batch.view(browser=False) as scene:
        assert scene.player.q.shape == (3, 8, 2)
    with batch.view(browser=False, sample=5) as scene:
        assert_array_equal(scene.player.q[:, 0], batch.q[:, 5])
        assert_array_equal(scene.player.curves["q"].values, batch.q[:, 5])


# in words


def test_a_motion_says_what_it_did():
    robot = zoo.arm(3)
    run = simulate(robot, [2.75, 0.3, 0.1], [4.0, 0, 0], duration=0.2)
    assert repr(run) == "<Trajectory of 'arm3': 201 states from 0 to 0.2 s>"
    assert "position limits left by joint1 (0.0" in str(run)
    assert "speed limits exceeded by joint1 (0 s)" in str(run) and "energy: kinetic" in str(run)
    # with ten joints over their limits, four are named
    arm = zoo.arm(10)
    fast = simulate(arm, arm.neutral(), np.full(10, 4.0), duration=0.01)
    assert "joint4 (0 s), and 6 more" in str(fast)
    strong = simulate(robot, [0.0] * 3, tau=[100.0, 0, 0], duration=0.01)
    assert "effort limits reached by joint1 (0 s)" in str(strong)


def test_a_batch_says_what_it_is(batch):
    assert repr(batch) == "<Trajectory of 'arm2': 3 states from 0 to 0.08 s, batch (10000,)>"
    q = np.zeros((4, 2))
    q[2] = np.nan
    lost = simulate(ARM, q, duration=0.02, dt=0.01)
    assert "not finite: 1 of 4 samples, the first from 0 s on" in str(lost)


def test_grounds_events_and_steps_in_words():
    robot = zoo.quadruped()
    ground = hinge.Ground(["FL_foot", "FR_foot"], law="compliant")
    run = simulate(robot, robot.neutral(), duration=0.01, ground=ground)
    assert "ground: 2 points, forces up to" in str(run)
    run = simulate(ARM, [0.1, 0.2], method="adaptive", events=[lambda t, q, qd: q[0] - 5.0])
    assert "events: 0" in str(run) and f"steps: {run.taken} taken" in str(run)


# files


def test_arrays_come_back_as_they_were(tmp_path, batch):
    batch.save(tmp_path / "a.npz")
    found = hinge.Trajectory.load(ARM, tmp_path / "a.npz")
    for name in ("t", "q", "qd", "tau", "energy"):
        assert_array_equal(getattr(found, name), getattr(batch, name))
    run = simulate(ARM, [0.1, 0.2], method="adaptive", dt=0.1)
    run.save(tmp_path / "a.npz")
    found = hinge.Trajectory.load(ARM, tmp_path / "a.npz")
    assert (found.taken, found.rejected) == (run.taken, run.rejected)


def test_a_table_comes_back_as_it_was(tmp_path):
    for dtype in (float, np.float32):
        robot = hinge.Robot(ARM.mechanism, dtype)
        run = simulate(robot, [0.1, 0.2], tau=lambda t, q, qd: -qd, duration=0.05)
        run.save(tmp_path / "a.csv")
        found = hinge.Trajectory.load(robot, tmp_path / "a.csv")
        for name in ("t", "q", "qd", "tau"):
            assert_array_equal(getattr(found, name), getattr(run, name))
            assert getattr(found, name).dtype == getattr(run, name).dtype
    # columns by their names, wherever they are
    lines = (tmp_path / "a.csv").read_text().splitlines()
    swapped = [",".join(reversed(line.split(","))) for line in lines]
    (tmp_path / "b.csv").write_text("\n".join(swapped))
    assert_array_equal(hinge.Trajectory.load(robot, tmp_path / "b.csv").q, run.q)


def test_a_table_has_one_motion(batch, tmp_path):
    with pytest.raises(hinge.ArgumentError, match=r"a table has one motion.*\(10000,\); take .npz"):
        batch.save(tmp_path / "a.csv")
    with pytest.raises(hinge.ArgumentError, match="cannot write .*a.txt'; expected .npz, .csv"):
        batch.save(tmp_path / "a.txt")


def test_files_that_are_no_motions_of_the_robot(tmp_path, batch):
    def refused(name, match, robot=ARM):
        with pytest.raises(hinge.ArgumentError, match=match):
            hinge.Trajectory.load(robot, tmp_path / name)

    batch.save(tmp_path / "a.npz")
    with pytest.raises(hinge.ArgumentError, match="Trajectory.load needs a Robot, got str"):
        hinge.Trajectory.load("a.npz", ARM)
    refused(
        "a.npz", r"q has shape .*; expected numbers \(3, …, 3\) for a motion of 'arm3'", zoo.arm(3)
    )
    refused("none.npz", "cannot read .*none.npz': No such file")
    refused("a.txt", "cannot read .*a.txt'; expected .npz, .csv")
    refused("a\0.npz", "cannot read .*: embedded null byte")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    refused("bad.npz", "cannot read")
    np.savez(tmp_path / "less.npz", t=np.arange(3.0), q=np.zeros((3, 2)))
    refused("less.npz", "cannot read .*qd")
    np.savez(tmp_path / "object.npz", t=np.array([None, {}]))
    refused("object.npz", "cannot read .*pickle")
    rows = np.zeros((3, 2))
    np.savez(tmp_path / "back.npz", t=np.array([0.0, 2.0, 1.0]), q=rows, qd=rows, tau=rows)
    refused("back.npz", "expected times that grow")
    batch.samples(0).save(tmp_path / "a.csv")
    refused("a.csv", "has no column 'q joint3'", zoo.arm(3))
    for name, text in (("empty", ""), ("ragged", "t,a\n1,2,3\n"), ("words", "t,a\n1,b\n")):
        (tmp_path / f"{name}.csv").write_text(text)
        refused(f"{name}.csv", "cannot read")


# summaries of what goes with motions


def test_grounds_plans_and_others_in_a_line():
    """However many numbers they have."""
    ground = hinge.Ground([("trunk", (x, 0, 0)) for x in np.linspace(0, 1, 100)], [0.5, 0.8] * 50)
    assert (
        repr(ground)
        == "<Ground: 100 points on trunk; plane at z = 0; friction 0.5 to 0.8, compliant>"
    )
    slope = hinge.Ground(list("abcdef"), law="rigid", height=0.2, normal=(1, 0, 1))
    assert "6 points on a, b, c, d, …; plane at z = 0.2, normal (0.707107, 0, 0.707107)" in repr(
        slope
    )
    bumps = hinge.HeightField(np.zeros((30, 40)), (-1, 1), (0, 2))
    assert repr(bumps) == "<HeightField: 30 × 40 heights, x = [-1.0, 1.0], y = [0.0, 2.0]>"
    assert repr(bumps) in repr(hinge.Ground("a", terrain=bumps)) and "1 point on a" in repr(
        hinge.Ground("a", terrain=bumps)
    )
    s = hinge.trajectory_sensitivity(ARM, [0.1, 0.2], [0.0, 0.0], np.zeros((50, 2)))
    assert repr(s) == "<TrajectorySensitivity of 'arm2': 50 steps of 0.001 s, rk4>"


def test_kernels_of_grounds_that_read_alike_are_not_shared():
    """The key on disk has all numbers, whatever is printed."""
    b = hinge.MechanismBuilder("ball")
    b.add("ball", "world", hinge.Free(), inertia=hinge.Inertia(1.0, about_com=np.eye(3)))
    mech, found = b.build(), []
    for height in (0.0, 0.02):
        terrain = hinge.HeightField(np.full((5, 5), height), (-1, 1), (-1, 1))
        # a robot of its own each, as in another process
        robot = hinge.Robot(mech)
        q = robot.neutral()
        q[2] = 0.02
        ground = hinge.Ground("ball", terrain=terrain)
        found.append(simulate(robot, q, duration=0.05, ground=ground).q[-1, 2])
    assert found[1] - found[0] > 0.005


def test_a_plan_in_a_line():
    plan = hinge.control.Plan(
        ARM,
        0.01,
        *np.zeros((3, 5, 2)),
        np.zeros((5, 2, 4)),
        np.array([3.0, 1.0]),
        0.1,
        "unfinished",
    )
    assert repr(plan) == (
        "<Plan for 'arm2': 5 steps of 0.01 s, cost 3 → 1 in 1 iterations, unfinished, inequalities "
        "off by 0.1>"
    )

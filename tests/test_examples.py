"""Every example runs, draws what it says, and says what it found."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import hinge

FOLDER = Path(__file__).parent.parent / "examples"
# packages that not every environment has
NEEDS = {
    "learned_masses": "torch",
    "learned_policy": "torch",
    "minimum_time": "casadi",
    "mppi_jax": "jax",
    "study": "dask",
}
EXAMPLES = [p.stem for p in sorted(FOLDER.glob("*.py")) if p.stem != "drawing"]


@pytest.fixture
def example(monkeypatch):
    """What imports an example, whatever else has its name."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def imported(name):
        package = NEEDS.get(name, "numpy")
        found = importlib.util.find_spec(package)
        # a folder of tests of that name is no package
        if found is None or found.origin is None:
            pytest.skip(f"{name} is an example for {package}, which is not installed")
        title = f"example_{name}"
        spec = importlib.util.spec_from_file_location(title, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        # dataclasses look their module up
        monkeypatch.setitem(sys.modules, title, module)
        spec.loader.exec_module(module)
        return module

    yield imported
    sys.modules.pop("drawing", None)


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, example, tmp_path, capsys):
    example(name).main(["--quick", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "nan" not in said
    for kind in ("svg", "gif"):
        drawn = tmp_path / f"{name}.{kind}"
        assert drawn.stat().st_size > 1000
        assert f"wrote {drawn}" in said


@pytest.mark.long
def test_the_quadruped_trots_and_falls_without_control(example):
    trot = example("trot")
    walked = trot.walk(trot.Plan(samples=48), 2.0, push=40.0).motion
    alone = trot.walk(trot.Plan(samples=2, noise=0.0), 2.0).motion
    assert trot.upright(walked) and walked.q[-1, 0] > 0.5
    assert walked.contact_positions[..., 2].min() > -1e-3
    assert not trot.upright(alone)


def test_the_quickest_motion_is_the_same_in_both_ways(example):
    code = example("minimum_time")
    robot, strength = hinge.zoo.arm(2), np.array([1.0, 4.0])
    start, goal = np.array([-0.8, -0.5]), np.array([0.9, 0.7])
    ways = code.compiled_torques, code.symbolic_torques
    ours, theirs = (code.quickest(robot, start, goal, strength, 8, way) for way in ways)
    assert ours.iterations == theirs.iterations
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-6)
    # limits are kept and used; a tenth of them would not hold it up
    share = np.abs(ours.tau / strength)
    assert share.max() < 1 + 1e-6 and (share.max(axis=1) > 0.99).any()
    assert np.abs(ours.qd / robot.velocity_limit).max() < 1 + 1e-6
    with pytest.raises(RuntimeError, match="IPOPT stopped"):
        code.quickest(robot, start, goal, 0.1 * strength, 8)


def test_masses_learnt_are_the_true_ones(example):
    code = example("learned_masses")
    model = hinge.zoo.arm(2)
    truth = code.other_masses(model)
    found = code.learn(model, code.measured(truth, model, 8), 20)
    true = code.masses_of(truth)
    assert np.abs(code.masses_of(model) / true - 1).max() > 0.2
    np.testing.assert_allclose(code.masses_of(found.robot), true, rtol=0.01)
    # what is left is the noise
    assert np.sqrt(found.losses[-1]) < 1.1 * code.NOISE


def test_a_policy_gets_better_by_true_gradients(example):
    code = example("learned_policy")
    run = code.motions(hinge.zoo.cartpole(), 8)
    trained = code.train(run, 50, 32, 50, 8, lean=0.3)
    assert trained.costs[-5:].mean() < 0.2 * trained.costs[:5].mean()
    start = code.starts(3, np.random.default_rng(0))
    weights = [w.requires_grad_() for w in trained.weights]

    def spent(*weights):
        return run(*start, *weights, steps=20)[-1][-1].sum()

    slope = code.torch.autograd.grad(spent(*weights), weights[1])[0][2].item()
    moved = []
    for sign in (1, -1):
        other = [w.detach().clone() for w in weights]
        other[1][2] += sign * 1e-6
        moved.append(spent(*other).item())
    np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6)


def test_the_tool_follows_its_figure(example):
    code = example("mppi_jax")
    robot = hinge.Robot(hinge.zoo.arm(7).mechanism, dtype=np.float32)
    # whatever other tests have set
    with code.jax.enable_x64(False):
        _, off, _ = code.follow(robot, code.Plan(samples=128), 60)
    assert off[0] > 0.3 and off[-20:].max() < 0.05


def test_a_study_counts_the_carts_that_catch_their_poles(example):
    code = example("study")
    robot, masses, gains = hinge.zoo.cartpole(), np.array([0.1, 15.0]), np.array([0.02, 1.0])
    task = code.study(robot, masses, gains, starts=5, steps=600)
    found = task.compute(scheduler="synchronous")
    caught = found["caught"].reshape(2, 2)
    # weak gains hold nothing; the law is for light poles, the cart is not for heavy ones
    assert caught[0, 0] == 0 and caught[0, 1] > 0.5 > caught[1, 1]
    assert found["mean"] == caught.mean() and found["best"].point["gain"] == 1.0
    # a pole of the robot's own mass is the robot's own
    q, qd = np.array([[0.0, 0.1]]), np.zeros((1, 2))
    tau = np.array([min(code.GAINS[1] * 0.1, code.FORCE), 0.0])
    moved = code.balanced(robot)(q, qd, 0.1, 1.0, steps=1)[1][0, 0]
    expected = code.DT * robot.forward_dynamics(q[0], qd[0], tau)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)

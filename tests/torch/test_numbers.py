"""Numbers of a mechanism as parameters of a module: physical whatever they are."""

import pickle

import numpy as np
import pytest

import hinge
from hinge.errors import ArgumentError
from hinge.model.parameters import parameters

pytest.importorskip("torch.library", reason="PyTorch is not installed: .ci/frameworks has it")
torch = pytest.importorskip("torch")

ROBOT = hinge.zoo.arm(3)


def state(*lead):
    return [torch.tensor(x) for x in np.random.default_rng(0).normal(size=(3, *lead, ROBOT.nv))]


@pytest.fixture(params=[("inertia", "placement", "gravity"), ("mass",), "gravity"], ids=str)
def dyn(request):
    torch.manual_seed(0)
    return hinge.torch.robot(ROBOT, learn=request.param)


def test_start_at_the_robot_and_move_away_from_it(dyn):
    x = state()
    there = ROBOT.inverse_dynamics(*(a.numpy() for a in x))
    assert np.allclose(dyn.inverse_dynamics(*x).detach(), there, rtol=1e-12)
    with torch.no_grad():
        for p in dyn.parameters():
            p.add_(torch.randn_like(p))
    moved = dyn.inverse_dynamics(*x).detach()
    now = dyn.learnt_robot()
    assert np.allclose(moved, now.inverse_dynamics(*(a.numpy() for a in x)), rtol=1e-10)
    assert not np.allclose(moved, there)
    for row in parameters(now.mechanism)["inertia"]:
        mass, h, (xx, yx, yy, zx, zy, zz) = row[0], row[1:4], row[4:]
        J = np.array([[xx, yx, zx], [yx, yy, zy], [zx, zy, zz]])
        P = np.block([[0.5 * np.trace(J) * np.eye(3) - J, h[:, None]], [h[None], mass]])
        assert np.linalg.eigvalsh(P).min() > 0
    for row in parameters(now.mechanism)["placement"]:
        R = row[:9].reshape(3, 3)
        assert np.allclose(R.T @ R, np.eye(3), atol=1e-12)


def test_gradients_by_differences(dyn):
    names = [n for n, _ in dyn.named_parameters()]
    x = state()

    def function(*values):
        return torch.func.functional_call(dyn, dict(zip(names, values, strict=True)), tuple(x))

    values = [p.detach().clone().requires_grad_() for p in dyn.parameters()]
    assert torch.autograd.gradcheck(function, values)


def test_compiles_pickles_and_prints(dyn):
    x = state(2)
    other = pickle.loads(pickle.dumps(dyn))
    assert torch.equal(other(*x), dyn(*x))
    compiled = torch.compile(dyn, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*x), dyn(*x))
    assert "Robot 'arm3'" in repr(dyn)


def test_masses_are_found_again():
    truth = {"inertia": parameters(ROBOT.mechanism)["inertia"] * [[1.3], [0.8], [1.1]]}
    x = state(64)
    measured = ROBOT.kernel("inverse_dynamics", "q", "qd", "qdd", "inertia")
    tau = torch.tensor(measured(*(a.numpy() for a in x), truth["inertia"]))
    dyn = hinge.torch.robot(ROBOT, learn="mass")
    descent = torch.optim.LBFGS(dyn.parameters(), max_iter=50, line_search_fn="strong_wolfe")

    def loss():
        descent.zero_grad()
        error = (dyn.inverse_dynamics(*x) - tau).square().mean()
        error.backward()
        return error

    descent.step(loss)
    found = dyn.numbers()["inertia"][:, 0].detach().numpy()
    # the mass of what only turns about its own axis does not show
    assert loss() < 1e-6 and np.allclose(found[1:], truth["inertia"][1:, 0], rtol=1e-2)


def test_numbers_by_name_and_refusals():
    dyn, x = hinge.torch.robot(ROBOT), state()
    gravity = torch.zeros(3, dtype=torch.float64)
    light = dyn.inverse_dynamics(*x, gravity=gravity)
    still = dyn.gravity_forces(x[0], gravity=gravity)
    assert not still.abs().max() > 1e-14 and not torch.equal(light, dyn.inverse_dynamics(*x))
    assert dyn.numbers() == {} and dyn.learnt_robot() is ROBOT
    with pytest.raises(ArgumentError, match="learn is 'masses'; expected one of"):
        hinge.torch.robot(ROBOT, learn="masses")
    with pytest.raises(ArgumentError, match="a mass is part of an inertia"):
        hinge.torch.robot(ROBOT, learn=("mass", "inertia"))

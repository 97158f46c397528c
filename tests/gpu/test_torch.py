"""hinge.torch on a real card against the CPU: `pytest -m gpu`, where there is one."""

import numpy as np
import pytest

import hinge

pytestmark = pytest.mark.gpu

ROBOT = hinge.zoo.space_arm(2)


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no card here")
    return torch


def state(torch, *lead):
    rng = np.random.default_rng(0)
    rates = rng.normal(size=(2, *lead, ROBOT.nv))
    return [torch.tensor(x) for x in (1.2 * ROBOT.random_configuration(rng, lead), *rates)]


def both(torch, function, there, x):
    """Gradients on the CPU and on the card."""
    found = []
    for call, place in ((function, "cpu"), (there, "cuda")):
        moving = [a.to(place).requires_grad_() for a in x]
        found.append([a.cpu() for a in torch.autograd.grad(call(*moving).sum(), moving)])
    return found


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_gradients(torch, name):
    dyn, x = hinge.torch.robot(ROBOT), state(torch, 100)
    there = hinge.torch.robot(ROBOT).to("cuda")
    assert there.robot.device == "cuda:0" and dyn.robot is ROBOT
    for a, b in zip(*both(torch, getattr(dyn, name), getattr(there, name), x), strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-10 * a.abs().max())
    moving = [a[:2].cuda().requires_grad_() for a in x]
    assert torch.autograd.gradcheck(getattr(there, name), moving, fast_mode=True)


def test_rollouts(torch):
    def step(q, qd, tau, h):
        qd = qd + h * ROBOT.alg.forward_dynamics(q, qd, tau)
        return ROBOT.alg.integrate(q, h * qd), qd

    here, there = (
        hinge.torch.function(r.rollout(step, inputs=("tau",))) for r in (ROBOT, ROBOT.to("cuda"))
    )
    q, qd, _ = state(torch, 70)
    given = [q, qd, torch.zeros(20, 70, ROBOT.nv, dtype=q.dtype), torch.tensor(0.01, dtype=q.dtype)]
    for every in (1, 5):
        ends = [lambda *x, f=f, n=every: f(*x, every=n)[0] for f in (here, there)]
        for a, b in zip(*both(torch, *ends, given), strict=True):
            assert torch.allclose(a, b, rtol=1e-10, atol=1e-10 * a.abs().max())


def test_numbers_and_places(torch):
    dyn = hinge.torch.robot(ROBOT, learn="inertia").to("cuda")
    x = [a.cuda() for a in state(torch, 5)]
    dyn.inverse_dynamics(*x).square().sum().backward()
    assert all(p.grad.is_cuda and p.grad.abs().max() > 0 for p in dyn.parameters())
    with pytest.raises(hinge.ArgumentError, match="q is on cpu, the robot on cuda:0"):
        dyn.inverse_dynamics(x[0].cpu(), *x[1:])

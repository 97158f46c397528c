"""Rollouts on tensors: whole motions and their gradients."""

import numpy as np
import pytest

import hinge
from hinge.errors import ArgumentError

pytest.importorskip("torch.library", reason="PyTorch is not installed: .ci/frameworks has it")
torch = pytest.importorskip("torch")

STEPS = 6


def motion(robot):
    def step(q, qd, tau, h):
        qd = qd + h * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, h * qd), qd, robot.alg.kinetic_energy(q, qd)

    return hinge.torch.function(robot.rollout(step, inputs=("tau",)))


@pytest.fixture(scope="module", params=["arm", "space_arm"])
def case(request):
    robot, rng = getattr(hinge.zoo, request.param)(2), np.random.default_rng(0)
    start = 1.1 * robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    given = [*start, rng.normal(size=(STEPS, 2, robot.nv)), np.array(0.02)]
    return robot, motion(robot), [torch.tensor(x) for x in given]


@pytest.mark.parametrize("every", [1, 4])
def test_gradients_by_differences(case, every):
    _, rollout, given = case
    moving = [x.clone().requires_grad_() for x in given]
    assert torch.autograd.gradcheck(
        lambda *x: rollout(*x, every=every),
        moving,
        fast_mode=True,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )


def test_is_the_rollout_of_the_robot(case):
    _, rollout, given = case
    there = rollout.rollout(*(x.numpy() for x in given), every=2)
    for mine, y in zip(rollout(*given, steps=STEPS, every=2), there, strict=True):
        assert np.array_equal(mine.numpy(), y)


def test_transforms(case):
    _, rollout, given = case
    q, qd, taus, h = given
    mapped = torch.func.vmap(rollout, in_dims=(None, 0, 1, None), out_dims=1)(*given)
    assert all(torch.equal(x, y) for x, y in zip(mapped, rollout(*given), strict=True))
    moving = (q.clone().requires_grad_(), qd, taus, h, STEPS, 1)
    assert set(torch.library.opcheck(rollout.op, moving).values()) == {"SUCCESS"}
    total = torch.compile(lambda *x: rollout(*x)[2].sum(), fullgraph=True, backend="aot_eager")
    (mine,) = torch.autograd.grad(total(*moving[:4]), moving[0])
    (there,) = torch.autograd.grad(rollout(*moving[:4])[2].sum(), moving[0])
    assert torch.equal(mine, there)
    per_sample = torch.func.vmap(torch.func.grad(lambda v, u: rollout(q, v, u, h)[2].sum()), (0, 1))
    assert torch.allclose(
        per_sample(qd, taus), torch.func.grad(lambda v: rollout(q, v, taus, h)[2].sum())(qd)
    )


def test_second_derivatives_forward_first(case):
    _, rollout, (q, qd, taus, h) = case

    def energy(v):
        return rollout(q, v, taus[:, 0], h)[2][-1]

    hessian = torch.func.jacrev(torch.func.jacfwd(energy))(qd[0])
    assert torch.allclose(hessian, torch.func.jacfwd(torch.func.jacfwd(energy))(qd[0]))
    small = 1e-5 * torch.eye(len(hessian), dtype=h.dtype)
    slopes = torch.func.grad(energy)
    for row, change in zip(hessian, small, strict=True):
        there = (slopes(qd[0] + change) - slopes(qd[0] - change)) / 2e-5
        assert torch.allclose(row, there, rtol=1e-5, atol=1e-6)
    moving = qd[0].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(moving), moving, create_graph=True)
    with pytest.raises(ArgumentError, match="has no gradient; for second derivatives"):
        gradient.sum().backward()


def test_without_inputs_and_wrong_tensors(case):
    _, rollout, given = case
    fall = hinge.torch.function(
        hinge.rollout(lambda z, v, h: (z + h * v, v - h), ("z", "v"), z=(), v=(), h=())
    )
    z, v, h = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (1.0, 0.0, 0.1))
    height, speed = fall(z, v, h, steps=10)
    height[-1].backward()
    assert z.grad == 1.0 and v.grad.item() == pytest.approx(1.0)
    assert speed[-1].item() == pytest.approx(-1.0)
    with pytest.raises(ArgumentError, match="how many steps"):
        fall(z, v, h)
    with pytest.raises(ArgumentError, match="expected torch.float64"):
        fall(z.float(), v, h, steps=3)
    with pytest.raises(ArgumentError, match="h is a float; expected a tensor"):
        fall(z, v, 0.1, steps=3)
    with pytest.raises(ArgumentError, match="every is 0"):
        rollout(*given, every=0)
    assert "rollout of step" in repr(rollout)


def test_what_is_reduced_and_its_gradient(case):
    robot, rollout, given = case

    def step(q, qd, tau, h):
        qd = qd + h * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, h * qd), qd, robot.alg.kinetic_energy(q, qd)

    keep = {
        "work": hinge.Sum(lambda qd, tau, h: h * (qd @ tau)),
        "energy": hinge.Mean(2),
        "fastest": hinge.Max(lambda qd: qd),
    }
    reducing = robot.rollout(step, inputs=("tau",), keep=keep)
    f = hinge.torch.function(reducing)
    assert "rollout of step(q, qd, tau, h)" in repr(f)
    for a, b in zip(f(*given), reducing(*(x.numpy() for x in given)), strict=True):
        assert np.array_equal(a.numpy(), b)
    moving = [x.clone().requires_grad_() for x in given]
    assert torch.autograd.gradcheck(f, moving, fast_mode=True, check_forward_ad=True)
    # the same through all states
    qs, qds, energy = rollout(*moving)
    work = (moving[3] * qds * moving[2]).sum((0, -1))
    stored = qs[-1], qds[-1], work, energy.mean(0), qds.max(0).values
    one, other = (
        torch.autograd.grad(sum((y**2).sum() for y in ys), moving) for ys in (f(*moving), stored)
    )
    for a, b in zip(one, other, strict=True):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-12)

"""Operators under everything that PyTorch does to functions."""

import sys

import numpy as np
import pytest

import hinge
from hinge.errors import ArgumentError

pytest.importorskip("torch.library", reason="PyTorch is not installed: .ci/frameworks has it")
torch = pytest.importorskip("torch")

ROBOTS = {"fixed": hinge.zoo.arm(4), "floating": hinge.zoo.space_arm(2)}


def state(robot, *lead, seed=0):
    rng = np.random.default_rng(seed)
    rates = rng.normal(size=(2, *lead, robot.nv))
    return [torch.tensor(x) for x in (1.2 * robot.random_configuration(rng, lead), *rates)]


@pytest.fixture(scope="module", params=ROBOTS)
def dyn(request):
    return hinge.torch.robot(ROBOTS[request.param])


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_second_derivatives_by_differences(dyn, name):
    moving = [x.requires_grad_() for x in state(dyn.robot)]
    assert torch.autograd.gradgradcheck(getattr(dyn, name), moving, fast_mode=True)


@pytest.mark.parametrize("jacobian", ["jacrev", "jacfwd"])
def test_jacobians_are_those_of_the_recursions(jacobian):
    dyn = hinge.torch.robot(ROBOTS["fixed"])
    q, qd, tau = state(dyn.robot)
    mine = getattr(torch.func, jacobian)(dyn.forward_dynamics, argnums=(0, 1, 2))(q, qd, tau)
    there = dyn.robot.forward_dynamics_derivatives(q.numpy(), qd.numpy(), tau.numpy())
    for x, y in zip(mine, there, strict=True):
        assert np.abs(x.numpy() - y).max() <= 1e-12 * np.abs(y).max()


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_hessians_by_any_two(dyn, inner, outer):
    q, qd, tau = state(dyn.robot)
    first = getattr(torch.func, inner)(lambda v: dyn.forward_dynamics(q, v, tau))
    mine = getattr(torch.func, outer)(first)(qd)
    given = (x.numpy() for x in (q, qd, tau))
    there = dyn.robot.forward_dynamics_derivatives(*given, order=2).dqd_dqd
    assert np.abs(mine.numpy() - there).max() <= 1e-11 * np.abs(there).max()


def test_along_a_quaternion_nothing_changes():
    dyn = hinge.torch.robot(ROBOTS["floating"])
    q, qd, tau = state(dyn.robot)
    gradient = torch.func.grad(lambda q: dyn.forward_dynamics(q, qd, tau).sum())(q)
    assert abs(gradient[3:7] @ q[3:7]) <= 1e-13 * gradient.abs().max()
    # and along the others it is the change of q that the robot's own derivatives are along
    turned = torch.func.jvp(lambda v: dyn.integrate(q, v), (0 * qd,), (tau,))[1]
    change = torch.func.jvp(lambda q: dyn.forward_dynamics(q, qd, tau), (q,), (turned,))[1]
    there = dyn.robot.forward_dynamics_derivatives(q.numpy(), qd.numpy(), tau.numpy()).dq
    assert np.abs(change.numpy() - there @ tau.numpy()).max() <= 1e-10 * np.abs(there).max()


def test_vmap_is_a_batch(dyn):
    q, qd, tau = state(dyn.robot, 3, 2)
    whole = dyn.forward_dynamics(q, qd[0, 0], tau[:, 0, None])
    mapped = torch.func.vmap(dyn.forward_dynamics, in_dims=(1, None, None), out_dims=1)
    inner = torch.func.vmap(mapped, in_dims=(0, None, 0))
    assert torch.equal(inner(q.mT, qd[0, 0], tau[:, 0]).mT, whole)
    hessians = torch.func.vmap(torch.func.hessian(lambda q: dyn.potential_energy(q)))(q[:, 0])
    assert torch.allclose(hessians, hessians.mT, atol=1e-9) and len(hessians) == 3


def test_gradients_of_what_was_broadcast_and_of_a_sum(dyn):
    q, qd, tau = (x.requires_grad_() for x in state(dyn.robot, 5))
    # an expanded gradient has strides of 0
    dyn.forward_dynamics(q, qd[0], tau).sum().backward()
    each = [torch.func.grad(lambda v, i=i: dyn(q[i], v, tau[i]).sum())(qd[0]) for i in range(5)]
    assert torch.allclose(qd.grad[0], sum(each)) and not qd.grad[1:].any()
    assert q.grad.shape == q.shape


def test_opcheck_and_names(dyn):
    q, qd, tau = state(dyn.robot, 2)
    dyn.forward_dynamics(q, qd, tau)
    name = dyn._operator("torch", "forward_dynamics", ("q", "qd", "tau"), ())
    operator = getattr(torch.ops.hinge, name).default
    for given in ((q, qd, tau), (q.requires_grad_(), qd, tau[0])):
        found = torch.library.opcheck(operator, given)
        assert set(found.values()) == {"SUCCESS"}
    assert name.startswith("forward_dynamics_of_")


def test_compiles_whole(dyn):
    frame = dyn.robot.frame_names[-1]

    def cost(q, qd, tau):
        d = dyn.inverse_dynamics_derivatives(q, qd, tau)
        reach = dyn.frame_pose(q, frame=frame)[..., :3, 3].sum()
        return reach + dyn.forward_dynamics(q, qd, tau=tau).sum() + d.dq.sum()

    q, qd, tau = state(dyn.robot)
    q.requires_grad_()
    compiled = torch.compile(cost, fullgraph=True, backend="aot_eager")
    (mine,) = torch.autograd.grad(compiled(q, qd, tau), q)
    (there,) = torch.autograd.grad(cost(q, qd, tau), q)
    assert torch.equal(mine, there)


def test_with_constraints_compiled_as_a_kernel():
    robot = ROBOTS["floating"]
    held = (hinge.Contact(robot.frame_names[-1]),)
    kernel = robot.kernel("constrained_forward_dynamics", "q", "qd", "tau", constraints=held)
    function = hinge.torch.function(kernel)
    compiled = torch.compile(lambda *x: function(*x)[0], fullgraph=True, backend="aot_eager")
    given = state(robot)
    assert torch.equal(compiled(*given), torch.tensor(kernel(*(x.numpy() for x in given))[0]))
    assert repr(function).startswith("<hinge.torch.function constrained_forward_dynamics")


def test_a_kernel_of_ones_own():
    alone = hinge.compile(lambda x, a: (a * x,), x=(3,), a=())
    f, x = hinge.torch.function(alone), torch.arange(3.0, dtype=torch.float64)
    (y,) = f(x, a=torch.tensor(2.0, dtype=torch.float64))
    assert torch.equal(y, 2 * x)
    single = hinge.compile(lambda x: np.sin(x).sum(), dtype=np.float32, x=(3,))
    g = torch.func.grad(hinge.torch.function(single))(x.float())
    assert g.dtype == torch.float32 and torch.allclose(g, torch.cos(x.float()))


# what is wrong is said


def wrong(dyn):
    q, qd, tau = state(dyn.robot)
    return {
        r"q has dtype torch\.float32; expected torch\.float64": (q.float(), qd, tau),
        r"qd has shape \(1,\); expected shape \(…, ": (q, qd[:1], tau),
        r"tau is a list; expected a tensor": (q, qd, tau.tolist()),
        r"tau is missing": (q, qd),
    }


def test_wrong_tensors_are_refused(dyn):
    for words, given in wrong(dyn).items():
        with pytest.raises(ArgumentError, match=words):
            dyn.forward_dynamics(*given)
    q, qd, tau = state(dyn.robot)
    with pytest.raises(ArgumentError, match="forse is not an argument"):
        dyn.forward_dynamics(q, qd, tau, forse=tau)
    with pytest.raises(ArgumentError, match="takes 3 arrays"):
        dyn.robot.kernel("forward_dynamics", "q", "qd", "tau")(q.numpy(), qd.numpy())


def test_wrong_tensors_are_refused_while_tracing(dyn):
    q, qd, tau = state(dyn.robot)
    call = torch.compile(dyn.forward_dynamics, fullgraph=True, backend="eager")
    for given, words in (((q.float(), qd, tau), "dtype"), ((q, qd[:1], tau), "expected shape")):
        with pytest.raises(Exception, match=words):
            call(*given)


def test_other_devices_are_named(dyn):
    q, qd, tau = state(dyn.robot)
    fake = torch._subclasses.FakeTensorMode()
    with fake, pytest.raises(ArgumentError, match=r"q is on cuda:0, the robot on cpu"):
        dyn.forward_dynamics(
            *(torch.empty(x.shape, dtype=x.dtype, device="cuda") for x in (q, qd, tau))
        )


def test_what_it_is_made_of():
    with pytest.raises(ArgumentError, match="got a int; expected a kernel"):
        hinge.torch.function(3)
    with pytest.raises(ArgumentError, match="needs a Robot, got int"):
        hinge.torch.robot(3)


def test_without_pytorch_that_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.library", None)
    with pytest.raises(ArgumentError, match="needs PyTorch, which is not installed"):
        hinge.torch.robot(ROBOTS["fixed"])


def test_what_an_operator_raises_comes_through():
    dyn, q = hinge.torch.robot(hinge.zoo.arm(2)), torch.zeros(2, dtype=torch.float64)
    dyn.mass_matrix(q)
    dyn.mass_matrix(q)

    def full(*tensors):
        raise RuntimeError("the memory is full")

    for method in dyn._quick:
        dyn._quick[method] = full
    with pytest.raises(RuntimeError, match="the memory is full"):
        dyn.mass_matrix(q)

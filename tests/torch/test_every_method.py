"""Every compiled method of a robot on tensors: what the robot gives, and its gradients."""

import numpy as np
import pytest

import hinge
from hinge.robot.method import methods_of
from hinge.specialize.arrays import array_shape

pytest.importorskip("torch.library", reason="PyTorch is not installed: .ci/frameworks has it")
torch = pytest.importorskip("torch")

ROBOTS = {"fixed": hinge.zoo.arm(4), "floating": hinge.zoo.space_arm(2)}
METHODS = {method.name: method for method in methods_of(hinge.Robot)}


# of joints whose rates are those of coordinates alone
CHARTS = ("christoffel", "mass_factor_curl")


def settings(robot, method):
    """What a method needs besides arrays."""
    last, held = robot.frame_names[-1], method.name == "constrained_inverse_dynamics"
    known = {
        "frame": last,
        "frames": (last,),
        "active": robot.joint_names[-2:] if held else robot.joint_names[-1:],
        "constraints": (hinge.Contact(last, "weld" if held else "point"),),
    }
    if method.name == "constrained_hybrid_dynamics":
        known["constraints"] = (hinge.LoopConstraint(last, "world", axes=(4,)),)
    needed = [p.name for p in method.parameters if p.required and not p.is_array]
    return {n: known[n] for n in needed}


def arrays(robot, method, static, seed=0):
    """Tensors for the arrays that a method needs."""
    rng = np.random.default_rng(seed)
    out = {}
    for p in method.parameters:
        if p.required and p.is_array:
            if p.name in ("q", "q0", "q1"):
                # a quaternion need not be of unit length
                x = 1.2 * robot.random_configuration(rng)
            else:
                x = rng.normal(size=array_shape(robot.mechanism, p.name, static))
            out[p.name] = torch.tensor(x)
    return out


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.fixture(scope="module", params=ROBOTS)
def dyn(request):
    return hinge.torch.robot(ROBOTS[request.param])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_gives_what_the_robot_gives_and_its_gradients(dyn, name):
    robot, method = dyn.robot, METHODS[name]
    if name in CHARTS and robot.nq != robot.nv:
        pytest.skip("has joints whose rates are not those of coordinates")
    static = settings(robot, method)
    given = arrays(robot, method, static)
    call = getattr(dyn, name)
    mine = as_tuple(call(**given, **static))
    there = as_tuple(getattr(robot, name)(**{n: x.numpy() for n, x in given.items()}, **static))
    assert type(call(**given, **static)) in (torch.Tensor, tuple, method.form)
    for x, y in zip(mine, there, strict=True):
        assert np.array_equal(x.numpy(), y) or np.allclose(x.numpy(), y, rtol=1e-12, atol=1e-12)
    names = tuple(given)

    def function(*tensors):
        return call(**dict(zip(names, tensors, strict=True)), **static)

    moving = [x.requires_grad_() for x in given.values()]
    # what is found by iterating is exact to some 1e-9 only, and so are its differences
    eps = {"eps": 1e-3, "atol": 1e-4} if name == "differential_inverse_kinematics" else {}
    assert torch.autograd.gradcheck(function, moving, fast_mode=True, check_forward_ad=True, **eps)

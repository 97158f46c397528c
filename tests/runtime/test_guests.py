"""Arrays of other packages in the ordinary calls: packages made up here, which hold NumPy's."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hinge
from hinge.errors import ArgumentError

ROBOT = hinge.zoo.arm(3)


class Held:
    """An array of some package, in memory of the host unless told otherwise."""

    place = 1

    def __init__(self, x):
        self.x = np.asarray(x)

    @property
    def device(self):
        return "a card" if self.place != 1 else "cpu"

    def __dlpack__(self, **how):
        return self.x.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.place, 0


class Elsewhere(Held):
    place = 2


class Tensor(Held):
    requires_grad = False

    @property
    def device(self):
        return SimpleNamespace(type="cpu" if self.place == 1 else "cuda")

    def detach(self):
        return self

    def numpy(self):
        return self.x


class Tracer:
    aval = "float64[3]"


Held.__module__ = Elsewhere.__module__ = "guests"
Tensor.__module__, Tracer.__module__ = "torch", "jax._src.core"


@pytest.fixture(params=[Held, Tensor])
def kind(request, monkeypatch):
    for name in ("guests", "torch"):
        package = SimpleNamespace(from_dlpack=request.param, is_grad_enabled=lambda: True)
        monkeypatch.setitem(sys.modules, name, package)
    return request.param


def state(*lead):
    return list(np.random.default_rng(0).normal(size=(3, *lead, ROBOT.nv)))


def test_results_are_of_the_kind_of_the_arguments(kind):
    x = state()
    there = ROBOT.forward_dynamics(*x)
    for _ in range(4):
        mine = ROBOT.forward_dynamics(*map(kind, x))
        assert type(mine) is kind and np.array_equal(mine.x, there)
    # one is enough, by name or by place, beside lists and NumPy's
    mixed = ROBOT.forward_dynamics(x[0].tolist(), kind(x[1]), tau=x[2])
    assert type(mixed) is kind and np.array_equal(mixed.x, there)
    d = ROBOT.inverse_dynamics_derivatives(*map(kind, x))
    assert type(d).__name__ == "InverseDynamicsDerivatives" and type(d.dq) is kind
    assert type(ROBOT.kinetic_energy(kind(x[0]), x[1])) is kind
    assert type(ROBOT.forward_dynamics(*x)) is np.ndarray


def test_nothing_is_copied(kind):
    x, out = state(5), np.zeros((5, ROBOT.nv))
    held = kind(out)
    for call in (ROBOT.forward_dynamics, ROBOT.kernel("forward_dynamics", "q", "qd", "tau")):
        for _ in range(3):
            out[:] = 0
            assert call(*map(kind, x), out=held) is held
            assert np.array_equal(out, ROBOT.forward_dynamics(*x))
    three = tuple(kind(np.zeros((5, ROBOT.nv, ROBOT.nv))) for _ in range(3))
    for _ in range(3):
        d = ROBOT.inverse_dynamics_derivatives(*map(kind, x), out=three)
        assert all(a is b for a, b in zip(d, three, strict=True))
    assert np.array_equal(three[2].x, ROBOT.mass_matrix(x[0]))


def test_kernels_and_rollouts_too(kind):
    double = hinge.compile(lambda a: (2 * a, a @ a), a=(3,))
    twice, square = double(kind([1.0, 2.0, 3.0]))
    assert type(twice) is type(square) is kind and square.x == 14.0
    out = kind(np.zeros(3)), kind(np.zeros(()))
    assert double(kind([1.0, 2.0, 3.0]), out=out) == out and out[1].x == 14.0
    fall = hinge.rollout(lambda z, v: (z + v, v - 1), ("z", "v"), z=(), v=())
    z, v = fall(kind(1.0), kind(0.0), steps=3)
    assert type(z) is type(v) is kind and v.x[-1] == -3.0


def test_what_is_no_kernel_too(kind):
    q, qd, tau = state()
    for robot in (ROBOT, hinge.Robot(ROBOT.mechanism, dtype="float32")):
        model = robot.linearize(kind(q), qd, tau)
        assert type(model.A) is type(model.B) is kind
        assert np.allclose(model.A.x, robot.linearize(q, qd, tau).A, rtol=1e-5)
    motion = hinge.simulate(ROBOT, kind(q), kind(qd), duration=0.01)
    assert type(motion.q) is kind and type(motion.t) is np.ndarray
    target = ROBOT.frame_pose(kind(q), "tool")
    assert type(ROBOT.inverse_kinematics("tool", target, kind(q)).q) is kind


def test_a_package_that_takes_nothing_gets_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "guests", SimpleNamespace())
    assert type(ROBOT.mass_matrix(Held(np.zeros(3)))) is np.ndarray


def test_what_is_not_here_or_is_traced_is_said(kind, monkeypatch):
    q, qd, tau = state()
    with pytest.raises(ArgumentError, match="forward_dynamics of 'arm3': an array is on a card"):
        ROBOT.forward_dynamics(Elsewhere(q), qd, tau)
    jax = SimpleNamespace(core=SimpleNamespace(Tracer=Tracer))
    monkeypatch.setitem(sys.modules, "jax", jax)
    with pytest.raises(ArgumentError, match="traced by JAX; hinge.jax has functions"):
        ROBOT.forward_dynamics(Tracer(), qd, tau)
    tensor = Tensor(q)
    tensor.requires_grad = True
    with pytest.raises(ArgumentError, match="requires grad.*hinge.torch has functions"):
        ROBOT.forward_dynamics(tensor, qd, tau)
    tensor.requires_grad, tensor.place = False, 2
    with pytest.raises(ArgumentError, match="the robot on the CPU; bring it here"):
        ROBOT.forward_dynamics(tensor, qd, tau)

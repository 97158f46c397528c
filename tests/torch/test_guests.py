"""Tensors in the ordinary calls of a robot: taken without a copy, given back as tensors."""

import numpy as np
import pytest

import hinge
from hinge.errors import ArgumentError

pytest.importorskip("torch.library", reason="PyTorch is not installed: .ci/frameworks has it")
torch = pytest.importorskip("torch")

ROBOT = hinge.zoo.arm(3)


def test_tensors_in_tensors_out():
    x = [torch.tensor(a) for a in np.random.default_rng(0).normal(size=(3, 5, ROBOT.nv))]
    there = ROBOT.forward_dynamics(*(a.numpy() for a in x))
    out = torch.empty(5, ROBOT.nv, dtype=torch.float64)
    for _ in range(4):
        mine = ROBOT.forward_dynamics(*x)
        assert isinstance(mine, torch.Tensor) and np.array_equal(mine.numpy(), there)
        assert ROBOT.forward_dynamics(*x, out=out) is out and torch.equal(out, mine)
    assert isinstance(ROBOT.kinetic_energy(x[0][0], x[1][0]), torch.Tensor)


def test_what_has_no_gradient_says_so():
    q = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ArgumentError, match="requires grad"):
        ROBOT.mass_matrix(q)
    with torch.no_grad():
        assert isinstance(ROBOT.mass_matrix(q), torch.Tensor)
    with pytest.raises(ArgumentError, match="on meta, the robot on the CPU"):
        ROBOT.mass_matrix(q.detach().to("meta"))


def test_motions_of_tensors_are_in_words():
    q = torch.tensor([0.1, 0.2, 0.0], dtype=torch.float64)
    run = hinge.simulate(ROBOT, q, duration=0.02, dt=0.01)
    assert str(run).startswith("Trajectory of 'arm3': 3 states from 0 to 0.02 s")

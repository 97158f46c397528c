"""Matrices of large robots on a card that is not there: kernels, the last of which solves."""

import pickle

import numpy as np
import pytest

import hinge
from fake_card import COMPILE, Tensor, card_left_empty, fake_torch
from hinge import zoo
from hinge.runtime import card_systems
from hinge.runtime.card_systems import SystemsLauncher
from hinge.runtime.cuda import Cuda
from hinge.runtime.launcher import Launcher
from hinge.specialize.routing import SYSTEMS
from mechanisms import EPS

MECHANISM = zoo.humanoid().mechanism
CPU = hinge.Robot(MECHANISM)
RNG = np.random.default_rng(5)
B = 70
STATE = CPU.random_configuration(RNG, B), *RNG.normal(size=(2, B, CPU.nv))
EXACT = CPU.forward_dynamics_derivatives(*STATE)


@pytest.fixture
def library(monkeypatch):
    for name in SYSTEMS:
        monkeypatch.setitem(SYSTEMS, name, range(20, 81))
    with card_left_empty(monkeypatch) as library, fake_torch(monkeypatch):
        yield library


@pytest.fixture
def robot(library):
    return hinge.Robot(MECHANISM, device="cuda")


def tensors(*arrays):
    return [Tensor(np.array(x)) for x in arrays]


def near(got, expected=EXACT):
    for a, b in zip(got, expected, strict=True):
        array = a.array if isinstance(a, Tensor) else np.asarray(a)
        assert array.shape == b.shape
        np.testing.assert_allclose(array, b, rtol=0, atol=1e4 * EPS * np.abs(b).max(initial=1))


def test_five_kernels_give_the_derivatives_and_two_the_inverse(robot, library):
    for i in range(3):
        got = robot.forward_dynamics_derivatives(*tensors(*STATE))
        assert type(got) is type(EXACT) and type(got.dq) is Tensor
        near(got)
        assert len(library.launches) == 5 * (i + 1)
    del library.launches[:]
    near([robot.mass_matrix_inverse(*tensors(STATE[0]))], [EXACT.dtau])
    assert len(library.launches) == 2


def test_derivatives_in_float32(library):
    robot = hinge.Robot(MECHANISM, "float32", device="cuda")
    state = [x.astype(np.float32) for x in STATE]
    got = robot.forward_dynamics_derivatives(*tensors(*state))
    assert len(library.launches) == 5
    for a, b in zip(got, EXACT, strict=True):
        assert a.array.dtype == np.float32
        np.testing.assert_allclose(a.array, b, rtol=0, atol=1e-3 * np.abs(b).max())


def test_a_batch_is_taken_some_samples_at_a_time(robot, library, monkeypatch):
    monkeypatch.setattr(card_systems, "at_a_time", lambda card, size: 32)
    out = [Tensor(np.full(x.shape, 7.0)) for x in EXACT]
    for _ in range(2):
        got = robot.forward_dynamics_derivatives(*tensors(*STATE), out=tuple(out))
        assert got.dq is out[0]
        near(got)
    assert len(library.launches) == 2 * 5 * 3


def test_columns_are_answered_by_columns(robot, library):
    given = [Tensor(np.asfortranarray(x)) for x in STATE]
    got = robot.forward_dynamics_derivatives(*given)
    near(got)
    assert got.dq.array.strides[0] == 8 and len(library.launches) == 5


def test_leading_shapes_broadcast_and_one_sample_is_for_all(robot):
    q, qd, tau = STATE
    got = robot.forward_dynamics_derivatives(*tensors(q[:6].reshape(2, 3, -1), qd[0], tau[:3]))
    expected = CPU.forward_dynamics_derivatives(q[:6].reshape(2, 3, -1), qd[0], tau[:3])
    near(got, expected)


@pytest.mark.parametrize("samples", [0, 1, 33])
def test_any_number_of_samples(robot, samples):
    got = robot.forward_dynamics_derivatives(*tensors(*(x[:samples] for x in STATE)))
    near(got, [x[:samples] for x in EXACT])


def test_arrays_of_the_host_go_there_and_back(robot):
    near(robot.forward_dynamics_derivatives(*STATE))
    one = robot.forward_dynamics_derivatives(*(x[3] for x in STATE))
    near(one, [x[3] for x in EXACT])


@pytest.mark.parametrize("which", range(3))
def test_a_sample_that_is_not_finite_is_nan_in_all_its_results(robot, which):
    given = tensors(*STATE)
    given[which].array[40, 9] = np.nan
    for x, exact in zip(robot.forward_dynamics_derivatives(*given), EXACT, strict=True):
        assert np.isnan(x.array[40]).all()
        near([np.delete(x.array, 40, axis=0)], [np.delete(exact, 40, axis=0)])


def test_loads_and_numbers_of_the_mechanism_go_to_the_kernels_that_take_them(library):
    here, there = (
        hinge.Robot(MECHANISM, device=device, parameters=("gravity",)) for device in ("cpu", "cuda")
    )
    f_ext, g = RNG.normal(size=(B, MECHANISM.n_bodies, 6)), np.array([0.1, 0.2, -3.0])
    expected = here.forward_dynamics_derivatives(*STATE, f_ext=f_ext, gravity=g)
    given = {"f_ext": Tensor(f_ext), "gravity": Tensor(g)}
    near(there.forward_dynamics_derivatives(*tensors(*STATE), **given), expected)


def test_it_is_told_and_travels(robot):
    told = robot.explain("forward_dynamics_derivatives")
    assert "linear systems, a thread for each column, from forward_dynamics, mass_factor" in told
    assert "a thread that has a whole sample of 32 DoF cannot hold" in told
    assert "samples at a time by 5 kernels; " in told and "; the systems: " in told
    robot.forward_dynamics_derivatives(*tensors(*STATE))
    there = pickle.loads(pickle.dumps(robot))
    near(there.forward_dynamics_derivatives(*tensors(*STATE)))


def test_a_method_that_is_asked_for_is_one_kernel(robot, library):
    near(robot.forward_dynamics_derivatives(*tensors(*STATE), method="articulated"))
    assert len(library.launches) == 1


def test_xla_launches_one_kernel(robot, monkeypatch):
    code = pytest.importorskip("hinge.jax.code", exc_type=ImportError)
    monkeypatch.setattr(code, "_there", lambda x: {"function": x.function.handle})
    kernel = robot.kernel("mass_matrix_inverse", "q")
    made = code.kernel_code(kernel, 5, "cuda")
    assert (
        type(made.alive.launcher) is Launcher and type(kernel.caller.launcher()) is SystemsLauncher
    )
    assert made.words["function"] == made.alive.launcher.function.handle


def test_the_text_of_all_kernels(robot, monkeypatch):
    """As the assembler takes them; `compile` makes the same."""
    text = robot.kernel("mass_matrix_inverse", "q").source("ptx")
    assert text.count(".entry run") == 2 and "cp.async" in text
    asked = []
    monkeypatch.setattr(Launcher, "function_of", staticmethod(lambda *given: asked.append(given)))
    monkeypatch.setattr(Cuda, "compile", COMPILE)
    fresh = hinge.Robot(MECHANISM, "float32", device="cuda").kernel("mass_matrix_inverse", "q")
    code = fresh._source.artifact(fresh.backend).code
    assert len(asked) == code.count(b".entry run") == 2

"""Robots on a card that is not there: arrays, strides, streams and errors, with a driver in Python.

What kernels compute on a real one is compared in tests/gpu.
"""

import os
import pickle
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import hinge
from fake_card import (
    COMPILE,
    INVALID_CONTEXT,
    OUT_OF_MEMORY,
    Exchange,
    Tensor,
    card_left_empty,
    fake_card,
    fake_torch,
)
from hinge import ArgumentError, DeviceArray, DeviceError, DeviceMemoryError, zoo
from hinge.emit.ptx.launch import Launch
from hinge.operators import place
from hinge.runtime import array_kinds, driver
from hinge.runtime.cuda import Cuda
from hinge.runtime.device_calls import DeviceCall
from hinge.runtime.driver import driver as the_driver
from hinge.runtime.gather import packed_copy
from hinge.runtime.launcher import Launcher, unpacked
from mechanisms import EPS

MECHANISM = zoo.space_arm(2).mechanism
CPU = hinge.Robot(MECHANISM)
RNG = np.random.default_rng(0)
B = 6
Q, QD, QDD = CPU.random_configuration(RNG, B), *RNG.normal(size=(2, B, CPU.nv))
TAU = CPU.inverse_dynamics(Q, QD, QDD)
STATE = Q, QD, QDD


@pytest.fixture
def library(monkeypatch):
    with card_left_empty(monkeypatch) as library:
        yield library


@pytest.fixture
def torch(library, monkeypatch):
    with fake_torch(monkeypatch) as torch:
        yield torch


@pytest.fixture
def robot(library):
    return hinge.Robot(MECHANISM, device="cuda")


def tensors(*arrays):
    return [Tensor(np.array(x)) for x in arrays]


def columns(x):
    return Tensor(np.asfortranarray(x))


def near(got, expected=TAU, bound=1e4 * EPS):
    array = got.array if isinstance(got, Tensor) else np.asarray(got)
    assert array.shape == expected.shape
    np.testing.assert_allclose(array, expected, rtol=bound, atol=bound * np.abs(expected).max())


def kinds(library):
    return [launch[0] for launch in library.launches]


# arrays


def test_tensors_go_in_as_they_are_and_come_out_as_tensors(robot, torch, library):
    for _ in range(3):
        got = robot.inverse_dynamics(*tensors(*STATE))
        assert type(got) is Tensor
        near(got)
    assert kinds(library) == ["Interpreted"] * 3 and not library.waits


def test_several_results_have_their_form(robot, torch):
    expected = CPU.forward_dynamics_derivatives(*STATE)
    for _ in range(2):
        got = robot.forward_dynamics_derivatives(*tensors(*STATE))
        assert type(got) is type(expected)
        for a, b in zip(got, expected, strict=True):
            near(a, b)


@pytest.mark.parametrize("again", [False, True])
def test_samples_may_lie_anywhere(robot, torch, library, again):
    wide = np.concatenate([*STATE, np.ones((B, 3))], axis=1)
    cuts = np.cumsum([0, robot.nq, robot.nv, robot.nv])
    slices = [Tensor(wide[:, a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
    others = [
        slices,
        [Tensor(Q), Tensor(QD), Tensor(np.repeat(QDD, 2, axis=0)[::2])],
        [Tensor(x.reshape(2, 3, -1)) for x in STATE],
    ]
    for given in others * (1 + again):
        near(robot.inverse_dynamics(*given), TAU.reshape(*given[0].shape[:-1], -1))
    assert set(kinds(library)) == {"Interpreted"}


def test_what_lies_otherwise_is_copied_on_the_card(robot, torch, library):
    others = [
        [columns(Q), Tensor(QD), Tensor(QDD)],
        [Tensor(Q[::-1].copy()[::-1]), Tensor(QD), Tensor(QDD)],
        [Tensor(Q), Tensor(QD), Tensor(QDD.reshape(3, 2, -1).swapaxes(0, 1))],
    ]
    for given in others[:2]:
        near(robot.inverse_dynamics(*given))
    assert kinds(library) == ["Gather", "Interpreted"] * 2
    turned = [Tensor(x.reshape(3, 2, -1).swapaxes(0, 1)) for x in STATE]
    near(robot.inverse_dynamics(*turned), TAU.reshape(3, 2, -1).swapaxes(0, 1))
    assert not library.waits


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "int8", "uint8", "bool"])
def test_other_numbers_are_converted_on_the_card(robot, torch, library, dtype):
    whole = np.round(3 * np.abs(QD)).astype(dtype)
    near(
        robot.inverse_dynamics(Tensor(Q), Tensor(whole), Tensor(QDD)),
        CPU.inverse_dynamics(Q, whole.astype(float), QDD),
    )
    assert kinds(library) == ["Gather", "Interpreted"]


def test_columns_are_used_as_they_are(robot, torch, library):
    given = [columns(x) for x in STATE]
    for _ in range(2):
        got = robot.inverse_dynamics(*given)
        near(got)
        assert got.stride() == (1, B)
    out = columns(np.zeros_like(TAU))
    for _ in range(2):
        assert robot.inverse_dynamics(*given, out=out) is out
        near(out)
    derivatives = robot.forward_dynamics_derivatives(*given)
    assert derivatives.dq.stride() == (1, robot.nv * B, B)
    near(derivatives.dq, CPU.forward_dynamics_derivatives(*STATE).dq)
    assert set(kinds(library)) == {"Interpreted"}
    # in the way of an argument
    near(robot.inverse_dynamics(given[0], given[1], given[2], out=given[2]))
    assert kinds(library)[-2:] == ["Gather", "Interpreted"]


def test_leading_shapes_broadcast(robot, torch, library):
    expected = CPU.inverse_dynamics(Q, QD[0], QDD)
    for _ in range(2):
        near(robot.inverse_dynamics(Tensor(Q), Tensor(QD[0].copy()), Tensor(QDD)), expected)
    near(robot.inverse_dynamics(Tensor(Q), QD[0], QDD), expected)
    assert set(kinds(library)) == {"Interpreted"}
    grid = CPU.inverse_dynamics(Q[:, None], QD, QDD)
    near(robot.inverse_dynamics(Tensor(Q[:, None]), Tensor(QD), Tensor(QDD)), grid)
    near(robot.inverse_dynamics(*tensors(Q[0], QD[0], QDD[0])), TAU[0])
    assert robot.inverse_dynamics(*tensors(Q[:0], QD[:0], QDD[:0])).shape == (0, robot.nv)


def test_results_go_where_they_are_told(robot, torch, library):
    out = Tensor(np.zeros_like(TAU))
    made = len(torch.made)
    for _ in range(2):
        assert robot.inverse_dynamics(*tensors(*STATE), out=out) is out
        near(out)
        assert kinds(library)[-1] == "Interpreted" and len(torch.made) == made
    # what would be written before it is read is copied
    room = Tensor(QDD.copy())
    for _ in range(2):
        room.array[...] = QDD
        near(robot.inverse_dynamics(Tensor(Q), Tensor(QD), room, out=room))
        assert kinds(library)[-2:] == ["Gather", "Interpreted"]
    parts = [Tensor(np.zeros((B, robot.nv, robot.nv))) for _ in range(3)]
    got = robot.forward_dynamics_derivatives(*tensors(*STATE), out=parts)
    assert all(a is b for a, b in zip(got, parts, strict=True))


def test_results_that_cannot_be_there_are_refused(robot, torch):
    given, zeros = tensors(*STATE), np.zeros_like(TAU)
    frozen = SimpleInterface(zeros, read_only=True)
    for bad in (zeros, Tensor(zeros[:3]), Tensor(zeros.astype(np.float32)), frozen):
        with pytest.raises(ArgumentError, match="out is not a writeable float64 array"):
            robot.inverse_dynamics(*given, out=bad)
    with pytest.raises(ArgumentError, match="out has 2 arrays; expected 1"):
        robot.inverse_dynamics(*given, out=tensors(zeros, zeros))
    with pytest.raises(ArgumentError, match="out is not C-contiguous"):
        robot.inverse_dynamics(*given, out=columns(zeros))
    shared = [Tensor(np.zeros((B, robot.nv, robot.nv)))] * 3
    with pytest.raises(ArgumentError, match="arrays of out share memory"):
        robot.forward_dynamics_derivatives(*given, out=shared)


def test_shapes_and_dtypes_are_checked(robot, torch):
    with pytest.raises(ArgumentError, match=r"qd has shape \(6, 3\); expected"):
        robot.inverse_dynamics(Tensor(Q), Tensor(QD[:, :3]), Tensor(QDD))
    with pytest.raises(ArgumentError, match="leading shapes do not broadcast"):
        robot.inverse_dynamics(Tensor(Q), Tensor(QD[:4]), Tensor(QDD))
    odd = Tensor(QD)
    odd.__class__ = type("Odd", (Tensor,), {"__module__": "torch", "dtype": torch.bfloat16})
    with pytest.raises(ArgumentError, match="qd has dtype"):
        robot.inverse_dynamics(Tensor(Q), odd, Tensor(QDD))
    with pytest.raises(ArgumentError, match="qd has dtype complex128"):
        robot.inverse_dynamics(DeviceArray.of(Q), DeviceArray.of(QD * 1j), QDD)
    with pytest.raises(ArgumentError, match="a tensor requires grad"):
        robot.inverse_dynamics(Tensor(Q, requires_grad=True), Tensor(QD), Tensor(QDD))
    there = DeviceArray.of(Q, device=1)
    with pytest.raises(ArgumentError, match="q lives on cuda:1, and this on cuda:0"):
        robot.inverse_dynamics(there, QD, QDD)


def test_nan_stays_in_its_sample_and_is_not_looked_for(robot, torch):
    bad = QD.copy()
    bad[2, 0] = np.nan
    got = robot.inverse_dynamics(*tensors(Q, bad, QDD)).array
    assert np.isnan(got[2]).all() and np.isfinite(np.delete(got, 2, axis=0)).all()
    assert np.isnan(robot.inverse_dynamics(*tensors(Q[2], bad[2], QDD[2])).array).all()
    # those of the host are
    with pytest.raises(ArgumentError, match=r"qd\[0\] is nan"):
        robot.inverse_dynamics(Q[2], bad[2], QDD[2])


# other kinds


class SimpleInterface:
    """An array of a package that nobody knows."""

    def __init__(self, array, read_only=False, **more):
        self.array, self.read_only, self.more = array, read_only, more

    @property
    def __cuda_array_interface__(self):
        x = self.array
        strides = None if x.flags.c_contiguous else x.strides
        data = x.ctypes.data, self.read_only
        told = {"shape": x.shape, "typestr": x.dtype.str, "data": data, "strides": strides}
        return {**told, "version": 3, **self.more}


class Capsules:
    """One that knows DLPack alone."""

    def __init__(self, array):
        self.array = DeviceArray.of(array)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream):
        assert stream != 0
        return self.array.__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [SimpleInterface, Capsules, DeviceArray.of])
def test_arrays_of_any_package_go_in(robot, kind, library):
    for order in ("C", "F"):
        got = robot.inverse_dynamics(*[kind(np.array(x, order=order)) for x in STATE])
        assert type(got) is DeviceArray and got.device == 0
        near(got)


def test_numpy_arrays_go_there_and_back(robot, library):
    got = robot.inverse_dynamics(Q, QD[0], [list(x) for x in QDD])
    assert type(got) is np.ndarray
    near(got, CPU.inverse_dynamics(Q, QD[0], QDD))
    assert len(library.waits) == 1
    assert robot.inverse_dynamics(Q[:0], QD[:0], QDD[:0]).shape == (0, robot.nv)
    near(robot.inverse_dynamics(Q[:, None], QD, QDD), CPU.inverse_dynamics(Q[:, None], QD, QDD))
    out = np.zeros_like(TAU)
    assert robot.inverse_dynamics(*STATE, out=out) is out
    near(out)


def test_our_own_arrays_are_given_to_other_packages(library):
    x = DeviceArray.of(Q)
    assert repr(x) == f"<DeviceArray {Q.shape} float64 on cuda:0>" and len(x) == B
    told = x.__cuda_array_interface__
    assert told["shape"] == Q.shape and told["strides"] is None and told["data"][1] is False
    near(np.asarray(x), Q, 0)
    turned = x.seen(Q.T.shape, x.strides[::-1])
    assert turned.__cuda_array_interface__["strides"] == x.strides[::-1]
    near(turned, Q.T, 0)
    again = DeviceArray.from_capsule(turned.__dlpack__(stream=1), 1)
    assert ("event", x.stream) in library.launches and ("wait", 1) in library.launches
    del x, turned
    near(again, Q.T, 0)
    assert DeviceArray.from_capsule(DeviceArray.of(np.ones(2, bool)).__dlpack__(), 0).dtype == bool
    # one that nobody took
    again.__dlpack__()


def test_arrays_of_many_dimensions_are_packed_slice_by_slice(library):
    shape = (2, 3) * 4
    x = RNG.normal(size=shape)
    there = DeviceArray.of(x)
    axes = [6, 1, 4, 3, 2, 5, 0, 7]
    turned = there.seen([shape[a] for a in axes], [there.strides[a] for a in axes])
    near(packed_copy(turned, np.dtype(float), 0), x.transpose(axes), 0)
    empty = DeviceArray.of(np.empty((0, 3)))
    assert packed_copy(empty, np.dtype(float), 0).numpy().shape == (0, 3)


# streams


def test_the_current_stream_is_used_or_the_one_given(robot, torch, library):
    torch.now = 11
    stream = SimpleNamespace(cuda_stream=12)
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, 13))
    numba = SimpleNamespace(handle=SimpleNamespace(value=14))
    for given, expected in ((None, 11), (stream, 12), (protocol, 13), (numba, 14), (15, 15)):
        for _ in range(2):
            got = robot.inverse_dynamics(*tensors(*STATE), stream=given)
            assert library.launches[-1][1] == expected
        # memory that another stream writes stays until that is done
        assert getattr(got, "recorded", 11) == expected
    with pytest.raises(ArgumentError, match="stream is 'fast'; expected a handle"):
        robot.inverse_dynamics(*tensors(*STATE), stream="fast")


def test_streams_wait_for_each_other(robot, library):
    q, qd, qdd = (SimpleInterface(x, stream=s) for x, s in zip(STATE, (5, 5, 6), strict=True))
    robot.inverse_dynamics(q, qd, qdd)
    assert library.launches == [("event", 6), ("wait", 5), ("Interpreted", 5, 1)]
    library.launches.clear()
    robot.inverse_dynamics(DeviceArray.of(Q, stream=8), DeviceArray.of(QD, stream=9), QDD)
    assert library.launches == [("event", 9), ("wait", 8), ("Interpreted", 8, 1)]


def test_threads_share_a_kernel(robot, torch):
    found = []

    def work():
        found.extend(robot.inverse_dynamics(*tensors(*STATE)) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 20
    for got in found:
        near(got)


# everything else that robots do


CALLS = {
    "keyword": lambda r, q, v, a: r.inverse_dynamics(q, qdd=a, qd=v),
    "f_ext": lambda r, q, v, a: r.inverse_dynamics(q, v, a, np.ones((3, 6))),
    "frame": lambda r, q, v, a: r.jacobian(q, "tool"),
    "split": lambda r, q, v, a: r.hybrid_dynamics(q, v, a, a, ["joint1"]).qdd,
    "operators": lambda r, q, v, a: r.operators(q).mass.inv @ a,
    "dense": lambda r, q, v, a: r.operators(q).mass.dense(),
    "compile": lambda r, q, v, a: r.compile(lambda q, qd: r.alg.kinetic_energy(q, qd))(q, v),
    "kernel": lambda r, q, v, a: r.kernel("mass_matrix", "q")(q=q),
    "second": lambda r, q, v, a: r.inverse_dynamics_derivatives(q, v, a, order=2).dq_dq,
    "linearize": lambda r, q, v, a: r.linearize(q, v, a, 0.01).A,
    "reach": lambda r, q, v, a: r.operational_space_inertia(q, "tool"),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_all_kinds(robot, torch, call):
    expected = CALLS[call](CPU, *STATE)
    for _ in range(2):
        got = CALLS[call](robot, *tensors(*STATE))
        assert type(got) is Tensor
        near(got, expected, 1e-9)


def test_expressions_on_a_card_are_kernels(robot, torch, monkeypatch):
    there, here, x = robot.operators(Tensor(Q)), CPU.operators(Q), np.ones((B, 18))
    near((there.phi @ there.M).apply(Tensor(x)), (here.phi @ here.M).apply(x))
    monkeypatch.setattr(place, "_LARGEST", 1)
    with pytest.raises(ArgumentError, match="too large for one kernel"):
        (there.phi @ there.M @ there.phi.T).apply(Tensor(x))


def test_numbers_of_the_mechanism_come_with_the_samples(library, torch):
    robot = hinge.Robot(MECHANISM, parameters=("gravity",), device="cuda")
    g = RNG.normal(size=(B, 3))
    expected = hinge.Robot(MECHANISM, parameters=("gravity",)).inverse_dynamics(*STATE, gravity=g)
    for _ in range(2):
        near(robot.inverse_dynamics(*tensors(*STATE), gravity=Tensor(g)), expected)


def euler(robot):
    def step(q, qd, tau):
        qd = qd + 0.01 * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, 0.01 * qd), qd

    return step


def test_rollouts(robot, torch, library):
    here, there = (r.rollout(euler(r)) for r in (CPU, robot))
    expected = here(*STATE, steps=4, every=2)
    for given in (tensors(*STATE), [columns(x) for x in STATE], STATE):
        got = there(*given, steps=4, every=2)
        for a, b in zip(got, expected, strict=True):
            assert type(a) is (np.ndarray if given is STATE else Tensor)
            near(a, b)
    there(*tensors(*STATE), steps=1, stream=9)
    assert library.launches[-1][:2] == ("Interpreted", 9)
    assert there(*tensors(*(x[:0] for x in STATE)), steps=2)[0].shape == (2, 0, robot.nq)


@pytest.mark.parametrize("lead", [(), (B,)])
def test_rollouts_with_inputs(robot, torch, lead):
    taus = RNG.normal(size=(5, *lead, robot.nv))
    here, there = (r.rollout(euler(r), inputs=("tau",)) for r in (CPU, robot))
    expected = here(Q, QD[0], taus)
    for order in ("C", "F"):
        got = there(Tensor(Q), Tensor(QD[0].copy()), Tensor(np.array(taus, order=order)))
        for a, b in zip(got, expected, strict=True):
            near(a, b)


def test_rollouts_into_what_is_there(robot, torch):
    here, there = (r.rollout(euler(r)) for r in (CPU, robot))
    expected = here(*STATE, steps=4, every=2)
    results = [Tensor(np.zeros_like(x)) for x in expected]
    ends = there.fill_there(results, tensors(*STATE), 4, 2)
    for a, b in zip(results, expected, strict=True):
        near(a, b)
    for a, b in zip(ends, expected, strict=False):
        near(a.numpy(), b[-1])


KEEP = {"fastest": hinge.Max(lambda qd: qd), "total": hinge.Sum(lambda qd: qd @ qd)}


def test_rollouts_that_reduce(robot, torch):
    taus = RNG.normal(size=(5, B, robot.nv))
    here, there = (r.rollout(euler(r), inputs=("tau",), keep=KEEP) for r in (CPU, robot))
    expected = here(Q, QD, taus)
    for given in (tensors(Q, QD, taus), (Q, QD, taus)):
        got = there(*given)
        assert type(got.fastest) is type(given[0])
        for a, b in zip(got, expected, strict=True):
            near(a, b)
    *_, last = there.stream(Q, QD, [taus[:2], taus[2:]])
    for a, b in zip(last, expected, strict=True):
        near(a, b)
    plain = robot.rollout(euler(robot), inputs=("tau",))
    with pytest.raises(ArgumentError, match="it takes no out with arrays on a card"):
        plain(*tensors(Q, QD, taus), out=())
    bare = [DeviceArray.of(x) for x in (Q, QD)]
    for run in (there, plain.stream):
        with pytest.raises(ArgumentError, match="a DeviceArray has no parts that could be taken"):
            list(run(*bare, [taus]))
    out = [np.empty((5, B, n)) for n in (robot.nq, robot.nv)]
    plain(Q, QD, taus, out=out)
    near(out[0][-1], expected.q)


def test_blocks(robot, library):
    """Of NumPy's arrays: to the card and back."""
    out = np.empty((B, robot.nv), np.float32)
    assert hinge.in_blocks(robot.inverse_dynamics, *STATE, out=out, block=4) is out
    near(out, bound=np.finfo(np.float32).eps)
    near(hinge.in_blocks(robot.inverse_dynamics, *STATE, block=4))
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    near(hinge.in_blocks(kernel, *STATE, block=4))
    parts = hinge.stream(robot.inverse_dynamics, ([x[i : i + 4] for x in STATE] for i in (0, 4)))
    near(np.concatenate(list(parts)))


def test_simulate(robot, torch):
    here, there = (hinge.simulate(r, *STATE, 0.1, 0.01) for r in (CPU, robot))
    near(there.q, here.q)
    seen = hinge.simulate(robot, *tensors(*STATE), duration=0.1, dt=0.01)
    assert type(seen.q) is type(seen.tau) is Tensor and type(seen.t) is np.ndarray
    near(seen.qd, here.qd)
    kept = hinge.simulate(robot, *tensors(*STATE), duration=0.1, dt=0.01, keep=KEEP).kept
    assert type(kept.fastest) is Tensor
    near(kept.fastest, here.qd[1:].max(axis=0))
    target = Tensor(CPU.frame_pose(Q, "tool"))
    # the interpreter takes all the steps that a search may have
    found = robot.inverse_kinematics("tool", target, Tensor(Q), starts=2, iterations=20)
    assert type(found.q) is Tensor
    near(found.q, Q, 1e-6)


def test_limits_act_in_steps_of_ones_own_and_in_simulate(robot, torch):
    """Forces beyond the effort limits, and one that is no number, as on the host."""
    forces = 1e4 * STATE[2]
    forces[3, 0] = np.nan

    def step(r):
        return lambda q, qd, tau, dt: hinge.step(r, q, qd, tau, dt)[:2]

    here, there = (r.rollout(step(r), state=("q", "qd")) for r in (CPU, robot))
    for given in ((*STATE[:2], STATE[2], 2e-3), (*STATE[:2], 1e3 * STATE[2], 2e-3)):
        expected, got = here(*given, steps=3), there(*tensors(*given[:3]), 2e-3, steps=3)
        for a, b in zip(got, expected, strict=True):
            near(a, b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        here, there = (hinge.simulate(r, *STATE[:2], forces, 0.01) for r in (CPU, robot))
    near(np.delete(there.q, 3, axis=1), np.delete(here.q, 3, axis=1))
    assert np.isnan(there.q[-1, 3]).all() and np.isnan(here.q[-1, 3]).all()


def test_a_long_mechanism_has_its_matrices_by_columns(library, torch):
    snake = zoo.snake(66)
    robot, (q, qd, qdd) = (
        snake.to("cuda"),
        (snake.random_configuration(0, 2), *RNG.normal(size=(2, 2, snake.nv))),
    )
    expected, given = snake.mass_matrix(q), Tensor(q)
    near(robot.mass_matrix(given), expected)
    out = Tensor(np.zeros_like(expected))
    assert robot.mass_matrix(given, out=out) is out
    near(out, expected)
    near(robot.mass_matrix(Tensor(q[0])), expected[0])
    near(robot.mass_matrix(q), expected)
    assert set(library.waits) <= {2}
    got, expected = (
        r.inverse_dynamics_derivatives(*x)
        for r, x in ((robot, tensors(q, qd, qdd)), (snake, (q, qd, qdd)))
    )
    assert type(got) is type(expected)
    for a, b in zip(got, expected, strict=True):
        near(a, b)


def test_a_long_mechanism_moves(library):
    snake = zoo.snake(41)
    q = snake.random_configuration(0)
    given = {"duration": 0.002, "dt": 0.001, "method": "semi_implicit_euler", "compiled": True}
    seen = hinge.simulate(snake.to("cuda"), q, **given)
    near(seen.q, hinge.simulate(snake, q, **given).q)


def test_what_is_no_kernel_goes_by_way_of_the_host(library, torch):
    snake = zoo.snake(66)
    q, qd, qdd = snake.random_configuration(0, 2), *RNG.normal(size=(2, 2, snake.nv))
    got = snake.to("cuda").torque_regressor(*tensors(q, qd, qdd))
    assert type(got) is Tensor
    near(got, snake.torque_regressor(q, qd, qdd))
    with pytest.raises(ArgumentError, match="takes no out on a card"):
        snake.to("cuda").torque_regressor(*tensors(q, qd, qdd), out=got)


def test_functions_of_ones_own(library, torch):
    norm = hinge.compile(lambda x: np.sqrt(x @ x), device="cuda", x=(3,))
    x = RNG.normal(size=(5, 3))
    near(norm(Tensor(x)), np.sqrt((x**2).sum(1)))
    near(norm(Tensor(x), stream=3), np.sqrt((x**2).sum(1)))
    fall = hinge.rollout(lambda z, v: (z + 0.1 * v, v), ("z", "v"), device="cuda", z=(), v=())
    z, _ = fall(Tensor(np.zeros(4)), Tensor(np.ones(4)), steps=3)
    near(z, 0.1 * np.arange(1, 4)[:, None] * np.ones(4))
    assert ".target sm_90" in norm.source("ptx")


# how kernels are launched


@pytest.mark.parametrize("persistent", [False, True])
def test_scratch_and_shared_memory(monkeypatch, persistent, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    launch = Launch(32, 4, shared=1 << 16, scratch=1024, persistent=persistent)
    with fake_card(monkeypatch, launch) as library, fake_torch(monkeypatch):
        robot = hinge.Robot(MECHANISM, device="cuda")
        q, qd, qdd = (np.tile(x, (10, 1)) for x in STATE)
        near(robot.inverse_dynamics(*tensors(q, qd, qdd)), np.tile(TAU, (10, 1)))
        # 60 samples, 4 a block; two multiprocessors hold three blocks each
        assert library.launches[-1] == ("Interpreted", 0, 6 if persistent else 15)
        assert not library.memory


def test_scratch_takes_a_part_of_the_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    launch = Launch(32, 4, scratch=1024, persistent=True)
    with fake_card(monkeypatch, launch, total=4 * 3000) as library, fake_torch(monkeypatch):
        robot = hinge.Robot(MECHANISM, device="cuda")
        near(
            robot.inverse_dynamics(*tensors(*(np.tile(x, (10, 1)) for x in STATE))),
            np.tile(TAU, (10, 1)),
        )
        assert library.launches[-1] == ("Interpreted", 0, 2)


def test_a_card_with_too_little_shared_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with (
        fake_card(monkeypatch, Launch(32, 4, shared=1 << 18)),
        fake_torch(monkeypatch),
        pytest.raises(DeviceError, match="wants 262144 bytes of shared memory .* has 131072"),
    ):
        hinge.Robot(MECHANISM, device="cuda").mass_matrix(Tensor(Q))


def test_code_is_kept(library, torch, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hinge.Robot(MECHANISM, device="cuda").mass_matrix(Tensor(Q))
    monkeypatch.setattr(Cuda, "compile", None)
    near(hinge.Robot(MECHANISM, device="cuda").mass_matrix(Tensor(Q)), CPU.mass_matrix(Q))


def test_what_is_kept_is_a_launch_and_ptx(robot, monkeypatch):
    compiled = []
    monkeypatch.setattr(Launcher, "function_of", lambda card, code: compiled.append(code))
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    code = COMPILE(kernel.backend, kernel.program, kernel._source.settings)
    launch, text = unpacked(code)
    assert compiled == [code] and launch.threads >= 32
    assert text.decode() == kernel.source("ptx") + "\0" and ".visible .entry run" in text.decode()
    loop = robot.rollout(euler(robot))
    assert ".visible .entry run" in loop.source()


def test_a_launch_in_another_context_is_made_in_its_own(robot, torch, library):
    robot.inverse_dynamics(*tensors(*STATE))
    driver, launch = the_driver(), the_driver().launch

    def elsewhere(*given):
        return launch(*given) if library.current else INVALID_CONTEXT

    driver.launch = elsewhere
    near(robot.inverse_dynamics(*tensors(*STATE)))


# devices and errors


def test_robots_move(library, torch):
    robot = hinge.load(_urdf(), device="cuda:1")
    assert robot.device == "cuda:1" and robot.to("cpu").device == "cpu"
    assert CPU.device == "cpu" and CPU.to("cuda").to("cuda:1").device == "cuda:1"
    again = pickle.loads(pickle.dumps(CPU.to("cuda")))
    near(again.inverse_dynamics(*tensors(*STATE)))
    for bad in ("gpu", "cuda:x", "cpu:1", None):
        with pytest.raises(ArgumentError, match="expected 'cpu', 'cuda' or 'cuda:1'"):
            CPU.to(bad)
    with pytest.raises(DeviceError, match="no card of that number"):
        CPU.to("cuda:7")


def _urdf():
    return (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia '
        'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
        'type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )


def test_without_a_card_that_is_said_at_once(monkeypatch):
    monkeypatch.setattr(driver.ctypes, "CDLL", _no_library)
    driver.driver.cache_clear()
    with pytest.raises(DeviceError, match="no NVIDIA card here, or no driver.*device='cpu'"):
        hinge.Robot(MECHANISM, device="cuda")
    with fake_card(monkeypatch, cards=0), pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES"):
        CPU.to("cuda")


def _no_library(name):
    raise OSError(name)


def test_old_drivers_and_old_cards(monkeypatch):
    with fake_card(monkeypatch, version=11010), pytest.raises(DeviceError, match="CUDA 11.1; exp"):
        CPU.to("cuda")
    with (
        fake_card(monkeypatch, capability=(7, 5)),
        pytest.raises(DeviceError, match="compute capability 7.5; expected 8.0"),
    ):
        CPU.to("cuda")


def test_errors_of_the_driver_say_what_to_do(robot, torch, library):
    library.fails["cuMemAllocFromPoolAsync"] = OUT_OF_MEMORY
    with pytest.raises(DeviceMemoryError, match="take a smaller batch"):
        robot.inverse_dynamics(*STATE)
    del library.fails["cuMemAllocFromPoolAsync"]
    robot.inverse_dynamics(*tensors(*STATE))
    for code, told in ((719, "takes no more calls"), (900, "give out="), (12345, "Driver API")):
        library.fails["cuLaunchKernel"] = code
        with pytest.raises(DeviceError, match=f"a launch failed with {code} .it is said.*{told}"):
            robot.inverse_dynamics(*tensors(*STATE))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told(robot, torch):
    robot.inverse_dynamics(*tensors(*STATE))
    the_driver()._lose()
    for given in (tensors(*STATE), STATE):
        with pytest.raises(DeviceError, match="this process was forked"):
            robot.inverse_dynamics(*given)


def test_explain_says_how_kernels_run(robot, library, monkeypatch):
    told = robot.explain("inverse_dynamics")
    assert told.startswith(CPU.explain("inverse_dynamics"))
    assert "card        32 threads work at 32 samples, 72 registers and 0 local bytes each" in told
    assert "its pieces, each as a kernel" in zoo.snake(66).to("cuda").explain("mass_matrix")


# by machine code


def test_tensors_go_straight_to_the_launch(robot, torch, monkeypatch):
    given, expected = tensors(*STATE), CPU.forward_dynamics_derivatives(*STATE)
    for _ in range(2):
        robot.inverse_dynamics(*given)
        robot.forward_dynamics_derivatives(*given)
    monkeypatch.setattr(DeviceCall, "again", None)
    monkeypatch.setattr(DeviceCall, "__call__", None)
    near(robot.inverse_dynamics(*given))
    near(robot.inverse_dynamics(qdd=given[2], qd=given[1], q=given[0]))
    out = Tensor(np.zeros_like(TAU))
    references = sys.getrefcount(out)
    assert robot.inverse_dynamics(*given, out=out) is out
    assert sys.getrefcount(out) == references
    near(out)
    several = robot.forward_dynamics_derivatives(*given)
    assert type(several) is type(expected)
    for a, b in zip(several, expected, strict=True):
        near(a, b)
    more = tensors(*(np.concatenate([x, x]) for x in STATE))
    near(robot.inverse_dynamics(*more), np.concatenate([TAU, TAU]))
    wide = np.concatenate(STATE, axis=1)
    cuts = np.cumsum([0, robot.nq, robot.nv, robot.nv])
    near(
        robot.inverse_dynamics(
            *(Tensor(wide[:, i:j]) for i, j in zip(cuts, cuts[1:], strict=False))
        )
    )


def test_other_arguments_are_handed_on(robot, torch, library):
    given = tensors(*STATE)
    for _ in range(3):
        robot.inverse_dynamics(*given)
    near(robot.inverse_dynamics(given[0], given[1], Tensor(QDD.astype(np.float32))), bound=1e-5)
    near(
        robot.inverse_dynamics(given[0], given[1], Tensor(QDD.astype(int))),
        CPU.inverse_dynamics(Q, QD, QDD.astype(int)),
    )
    near(
        robot.inverse_dynamics(given[0], Tensor(QD[0].copy()), given[2]),
        CPU.inverse_dynamics(Q, QD[0], QDD),
    )
    near(robot.inverse_dynamics(given[0], given[1], given[2], out=given[2]))
    room = Tensor(QDD.copy())
    near(robot.inverse_dynamics(given[0], given[1], room))
    assert robot.inverse_dynamics(*(Tensor(x[:0]) for x in STATE)).shape == (0, robot.nv)
    with pytest.raises(ArgumentError, match="requires grad"):
        robot.inverse_dynamics(Tensor(Q, requires_grad=True), given[1], room)
    with pytest.raises(ArgumentError, match="qd has shape"):
        robot.inverse_dynamics(given[0], Tensor(QD[:, 1:]), room)
    # no memory: made in the other way
    torch.full, made = True, len(torch.made)
    near(robot.inverse_dynamics(given[0], given[1], room))
    assert len(torch.made) == made + 1
    library.fails["cuLaunchKernel"] = 719
    with pytest.raises(DeviceError, match="a launch failed with 719"):
        robot.inverse_dynamics(given[0], given[1], room)


def test_an_api_of_another_version_is_left_alone(torch, library, robot, monkeypatch):
    exchange = Exchange(torch)
    exchange.table[0] = 2
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__", exchange.capsule())
    for _ in range(3):
        near(robot.inverse_dynamics(*tensors(*STATE)))
    assert array_kinds.exchange() == (0, 0)
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__", "no capsule")
    assert array_kinds.exchange() == (0, 0)

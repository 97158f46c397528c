"""Robots on a real card against the CPU: `pytest -m gpu`, where there is one, and PyTorch."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.robot.method import methods_of
from hinge.specialize.arrays import array_shape
from hinge.specialize.routing import SYSTEMS
from mechanisms import EPS, ROBOTS, assert_close, everything, random_split
from pages import DOCS

pytestmark = pytest.mark.gpu

B = 67
METHODS = {method.name: method for method in methods_of(hinge.Robot)}
MOVING = {"everything": everything(), **{n: r for n, r in ROBOTS.items() if r.nv}}
DTYPES = {"float64": EPS, "float32": float(np.finfo(np.float32).eps)}
# of the largest entry; states are random, some of them badly conditioned
BOUND = 1e4
# those that solve for something that some states hardly have: in float64 alone
HELD = "constrained_", "impulse_"
LOOSE = ("differential_inverse_kinematics", *HELD)


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    # where it is not installed, a folder of tests has its name
    if not hasattr(torch, "cuda") or not torch.cuda.is_available():
        pytest.skip("no PyTorch here, or no card")
    return torch


@cache
def robots(name, dtype="float64"):
    """A robot on the card, and the same on the CPU."""
    robot = MOVING[name] if name in MOVING else zoo.snake(int(name.removeprefix("snake")))
    here = hinge.Robot(robot.mechanism, dtype)
    return here.to("cuda"), here


def on_card(torch, x, dtype=None):
    return torch.as_tensor(np.array(x, dtype or x.dtype), device="cuda")


def tensors(torch, *arrays, dtype=None):
    return [on_card(torch, x, dtype) for x in arrays]


def host(x):
    return x.cpu().numpy()


def states(robot, *lead, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng, lead), *rng.normal(size=(2, *lead, robot.nv))


def same(got, expected, eps=EPS, bound=BOUND):
    many = isinstance(expected, tuple)
    for a, b in zip(got, expected, strict=True) if many else [(got, expected)]:
        a = a if isinstance(a, np.ndarray) else host(a)
        assert np.isnan(a).tolist() == np.isnan(b).tolist()
        assert_close(np.nan_to_num(a), np.nan_to_num(b), bound * eps)


def arguments(robot, method, rng):
    """Random arguments of a method: those that it needs."""
    static = {
        "frame": robot.frame_names[-1],
        "frames": (robot.frame_names[-1],),
        "active": tuple(bool(x) for x in random_split(robot)),
        "constraints": (hinge.Contact(robot.frame_names[-1], "point"),),
    }
    for p in method.parameters:
        if not p.required:
            continue
        if p.name in static:
            yield p.name, static[p.name]
        elif p.name in ("q", "q0", "q1"):
            yield p.name, robot.random_configuration(rng, B)
        else:
            settings = {"constraints": static["constraints"]}
            shape = array_shape(robot.mechanism, p.name, settings)
            yield p.name, rng.uniform(-1, 1, size=(B, *shape))


def several(x):
    """Results, one or more."""
    return x if isinstance(x, tuple) else (x,)


def settled(call, given, expected):
    """The samples whose results rounding does not decide: a last digit more changes little.

    Where constraints nearly contradict each other, it decides whether there is a result.
    """
    near = {n: x * (1 + EPS) if isinstance(x, np.ndarray) else x for n, x in given.items()}
    sure = np.full(B, True)
    for x, y in zip(several(expected), several(call(**near)), strict=True):
        scale = np.abs(np.nan_to_num(x)).max(initial=1.0)
        close = np.isclose(x, y, rtol=0, atol=1e7 * EPS * scale, equal_nan=True)
        sure &= close.reshape(B, -1).all(1)
    return sure


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, method", list(product(MOVING, METHODS)))
def test_every_method_of_every_robot(torch, name, method, dtype):
    there, here = robots(name, dtype)
    given = dict(arguments(here, METHODS[method], np.random.default_rng(1)))
    try:
        expected = getattr(here, method)(**given)
    except hinge.HingeError:
        pytest.skip("not for this robot")
    loose = method.startswith(LOOSE)
    if loose and dtype == "float32":
        pytest.skip("some states have no answer in float32")
    held = method.startswith(HELD)
    sure = settled(getattr(here, method), given, expected) if held else slice(None)
    arrays = {n: isinstance(x, np.ndarray) for n, x in given.items()}
    given = {n: on_card(torch, x, dtype) if arrays[n] else x for n, x in given.items()}
    for _ in range(2):
        got = [host(x)[sure] for x in several(getattr(there, method)(**given))]
        wanted = tuple(x[sure] for x in several(expected))
        same(got, wanted, DTYPES[dtype], 1e9 if loose else BOUND)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 255, 256, 257, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_of_any_size(torch, size, dtype):
    there, here = robots("arm", dtype)
    given = states(here, size)
    expected = here.forward_dynamics(*given)
    same(there.forward_dynamics(*tensors(torch, *given, dtype=dtype)), expected, DTYPES[dtype])


def test_one_sample(torch):
    there, here = robots("arm")
    given = states(here)
    same(there.forward_dynamics(*tensors(torch, *given)), here.forward_dynamics(*given))


@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_that_lie_anywhere(torch, dtype):
    there, here = robots("space_arm", dtype)
    given = states(here, 6, 20)
    expected = here.inverse_dynamics(*given)
    q, v, a = tensors(torch, *given, dtype=dtype)
    wide = torch.cat([q, v, a, a], -1)
    cuts = np.cumsum([0, here.nq, here.nv, here.nv])
    ways = [
        [wide[..., i:j] for i, j in zip(cuts, cuts[1:], strict=False)],
        [x.movedim(-1, 0).contiguous().movedim(0, -1) for x in (q, v, a)],
        [q.movedim(-1, 0).contiguous().movedim(0, -1), v, a],
        [torch.stack([x, x], -1)[..., 0] for x in (q, v, a)],
        [q, v, a.double()],
    ]
    for way in ways:
        same(there.inverse_dynamics(*way), expected, DTYPES[dtype])
    turned = there.inverse_dynamics(*(x.transpose(0, 1) for x in (q, v, a)))
    same(turned.transpose(0, 1), expected, DTYPES[dtype])
    same(
        there.inverse_dynamics(q, v[0, 0], a),
        here.inverse_dynamics(given[0], given[1][0, 0], given[2]),
        DTYPES[dtype],
    )


def test_columns_are_used_as_they_are(torch):
    there, here = robots("arm")
    given = states(here, 1000)
    q, v, a = (x.T.contiguous().T for x in tensors(torch, *given))
    got = there.inverse_dynamics(q, v, a)
    assert got.stride() == (1, 1000)
    same(got, here.inverse_dynamics(*given))
    same(there.mass_matrix(q), here.mass_matrix(given[0]))
    out = torch.empty_like(a)
    assert out.stride() == (1, 1000) and there.inverse_dynamics(q, v, a, out=out) is out
    same(out, here.inverse_dynamics(*given))


def test_nan_stays_in_its_sample(torch):
    there, here = robots("quadruped")
    q, v, a = states(here, 100)
    v[17, 3], q[50, 6] = np.nan, np.inf
    expected = here.forward_dynamics(q, v, a)
    assert np.isnan(expected).any(1).tolist() == [i in (17, 50) for i in range(100)]
    same(there.forward_dynamics(*tensors(torch, q, v, a)), expected)


def test_sines_of_large_angles(torch):
    x = np.random.default_rng(0).uniform(-1, 1, size=1000) * np.logspace(0, 12, 1000)
    for dtype, eps in DTYPES.items():
        wave = hinge.compile(lambda x: (np.sin(x), np.cos(x)), dtype, device="cuda", x=())
        given = x.astype(dtype)
        got = wave(on_card(torch, given))
        same(got, (np.sin(given.astype(float)), np.cos(given.astype(float))), eps, 4)


def test_numbers_of_the_mechanism_come_with_the_samples(torch):
    here = hinge.Robot(MOVING["arm"].mechanism, parameters=("gravity", "inertia"))
    there, given = here.to("cuda"), states(here, B)
    numbers = {
        "gravity": np.random.default_rng(0).normal(size=(B, 3)),
        "inertia": hinge.model.parameters.parameters(here.mechanism)["inertia"],
    }
    expected = here.forward_dynamics(*given, **numbers)
    more = {n: on_card(torch, x) for n, x in numbers.items()}
    same(there.forward_dynamics(*tensors(torch, *given), **more), expected)


@pytest.mark.parametrize("name", ["arm", "quadruped"])
def test_second_derivatives_and_operators(torch, name):
    there, here = robots(name)
    q, v, a = given = states(here, 9)
    x, y, z = tensors(torch, *given)
    if name == "arm":
        same(
            tuple(there.inverse_dynamics_derivatives(x, y, z, order=2)),
            tuple(here.inverse_dynamics_derivatives(q, v, a, order=2)),
        )
    same(there.operators(x).mass.inv @ z, here.operators(q).mass.inv @ a)


def euler(robot):
    def step(q, qd, tau):
        qd = qd + 0.001 * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, 0.001 * qd), qd

    return step


@pytest.mark.parametrize("dtype", DTYPES)
def test_rollouts(torch, dtype):
    there, here = robots("space_arm", dtype)
    given = states(here, B)
    loops = [r.rollout(euler(r)) for r in (there, here)]
    got = loops[0](*tensors(torch, *given, dtype=dtype), steps=50, every=7)
    same(got, loops[1](*given, steps=50, every=7), DTYPES[dtype])
    taus = np.random.default_rng(0).normal(size=(20, B, here.nv))
    loops = [r.rollout(euler(r), inputs=("tau",)) for r in (there, here)]
    got = loops[0](*tensors(torch, given[0], given[1][0], taus, dtype=dtype))
    same(got, loops[1](given[0], given[1][0], taus), DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rollouts_that_reduce(torch, dtype):
    there, here = robots("space_arm", dtype)
    given = states(here, B)
    keep = {
        "total": hinge.Sum(lambda qd: qd @ qd),
        "fastest": hinge.Max(lambda qd: qd),
        "where": hinge.Histogram(lambda q: q[:3], np.linspace(-5, 5, 11)),
    }
    loops = [r.rollout(euler(r), keep=keep) for r in (there, here)]
    expected = loops[1](*given, steps=50)
    same(loops[0](*tensors(torch, *given, dtype=dtype), steps=50)[:4], expected[:4], DTYPES[dtype])
    got = loops[0](*given, steps=50)
    same(got[:4], expected[:4], DTYPES[dtype])
    assert got.where.sum() == expected.where.sum()


def test_blocks(torch):
    """Of NumPy's arrays: to the card and back."""
    there, here = robots("arm")
    given = states(here, B)
    got = hinge.in_blocks(there.inverse_dynamics, *given, block=20)
    same(got, here.inverse_dynamics(*given))


def test_simulate(torch):
    there, here = robots("arm")
    given = states(here, B)
    expected = hinge.simulate(here, *given, 0.05, 0.001)
    same(hinge.simulate(there, *given, 0.05, 0.001).q, expected.q)


@pytest.mark.parametrize("name", ["snake66", "snake300"])
def test_long_mechanisms(torch, name):
    there, here = robots(name)
    given = states(here, 33)
    x = tensors(torch, *given)
    same(there.inverse_dynamics(*x), here.inverse_dynamics(*given))
    same(there.forward_dynamics(*x), here.forward_dynamics(*given), bound=1e6)
    same(there.mass_matrix(x[0]), here.mass_matrix(given[0]))


SCANS = [("arm", "float64"), ("humanoid", "float64"), ("snake66", "float64")]
SCANS += [("snake300", "float64"), ("snake5000", "float64"), ("arm", "float32")]


@pytest.mark.parametrize("name, dtype", SCANS)
def test_scans(torch, name, dtype):
    """Of one state, in one block and in many, of trees too; again, and on another stream."""
    there, here = robots(name, dtype)
    q, qd, tau = (x.astype(dtype) for x in states(here))
    x = tensors(torch, q, qd, tau)
    near = {"eps": DTYPES[dtype], "bound": 1e6 if dtype == "float64" else BOUND}
    expected = here.forward_dynamics(q, qd, tau)
    for _ in range(3):
        same(there.forward_dynamics(*x, method="scan"), expected, **near)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = there.forward_dynamics(*x, method="scan")
    stream.synchronize()
    same(got, expected, **near)
    active = np.arange(here.nv) % 3 == 0
    split = here.hybrid_dynamics(q, qd, qd, tau, active)
    got = there.hybrid_dynamics(x[0], x[1], x[1], x[2], active, method="scan")
    same(got.tau, split.tau, **near)
    same(got.qdd, split.qdd, **near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["forward_dynamics_derivatives", "mass_matrix_inverse"])
def test_systems_of_large_robots(torch, method, dtype, monkeypatch):
    """Several kernels, some samples at a time, in rows and columns; NaN stays in its sample."""
    monkeypatch.setattr("hinge.runtime.card_systems.at_a_time", lambda card, size: 1024)
    monkeypatch.setitem(SYSTEMS, method, range(20, 81))
    mech, rng, B = zoo.humanoid().mechanism, np.random.default_rng(2), 2500
    robot, cpu = hinge.Robot(mech, dtype, device="cuda"), hinge.Robot(mech)
    assert "linear systems" in robot.explain(method)
    state = [cpu.random_configuration(rng, B), *rng.normal(size=(2, B, mech.nv))]
    state = [x.astype(dtype) for x in state[: 1 if method == "mass_matrix_inverse" else 3]]
    exact = getattr(cpu, method)(*state)
    exact = exact if isinstance(exact, tuple) else (exact,)
    state[0][77, -1] = np.nan
    for columns in (False, True):
        given = [torch.as_tensor(x, device="cuda") for x in state]
        given = [x.T.contiguous().T for x in given] if columns else given
        got = getattr(robot, method)(*given)
        for a, b in zip(got if isinstance(got, tuple) else (got,), exact, strict=True):
            a = a.cpu().numpy()
            assert np.isnan(a[77]).all()
            a, b = (np.delete(x, 77, axis=0) for x in (a, b))
            assert np.abs(a - b).max() <= BOUND * DTYPES[dtype] * np.abs(b).max()


def test_streams_and_graphs(torch):
    there, here = robots("arm")
    given = states(here, 1000)
    expected = here.inverse_dynamics(*given)
    x = tensors(torch, *given)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        got = there.inverse_dynamics(*x)
    stream.synchronize()
    same(got, expected)
    out = torch.zeros_like(x[2])
    there.inverse_dynamics(*x, out=out, stream=stream)
    stream.synchronize()
    same(out, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        there.inverse_dynamics(*x, out=out)
    out.zero_()
    x[2].mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    same(out, here.inverse_dynamics(given[0], given[1], 2 * given[2]))


@pytest.mark.parametrize("package", ["cupy", "jax", "numba.cuda", "warp", "own"])
def test_arrays_of_other_packages(torch, package):
    there, here = robots("arm")
    given = states(here, 100)
    expected = here.inverse_dynamics(*given)
    if package == "own":
        make = hinge.DeviceArray.of
    else:
        module = pytest.importorskip(package)
        if package == "jax":
            module.config.update("jax_enable_x64", True)
        names = {"cupy": "asarray", "numba.cuda": "to_device"}
        make = {
            "jax": lambda x: module.numpy.asarray(x),
            "warp": lambda x: module.array(x, dtype=module.float64, device="cuda"),
        }.get(package) or getattr(module, names[package])
    arrays = [make(x) for x in given]
    for _ in range(2):
        got = there.inverse_dynamics(*arrays)
        assert type(got) is type(arrays[0])
        found = got.get() if package == "cupy" else got.numpy() if hasattr(got, "numpy") else got
        found = found.copy_to_host() if hasattr(found, "copy_to_host") else np.asarray(found)
        same(found, expected)


def test_arrays_of_the_host(torch):
    there, here = robots("arm")
    given = states(here, 100)
    same(there.inverse_dynamics(*given), here.inverse_dynamics(*given))
    with pytest.raises(hinge.ArgumentError, match=r"q\[0\] is nan"):
        there.inverse_dynamics(*(np.full_like(x[0], np.nan) for x in given))


def test_the_page_runs(torch):
    page = (DOCS / "gpu.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", page, flags=re.S | re.M)
    names = {}
    for block in blocks:
        exec(block.replace("1_000_000", "1_000"), names)
    assert len(blocks) == 3 and names["energy"].shape == (1000,)

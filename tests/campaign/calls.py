"""Every spelling of a call, results in arrays that are there, and results that are kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import hinge
from hinge.errors import HingeError
from hinge.robot.method import Method
from hinge.runtime import memory
from hinge.specialize.arrays import array_shape
from mechanisms import assert_same_bits

from .lines import Outcome, line
from .pool import CONFIGURATIONS, random_task, robot

POOL = ["revolute", "spherical", "free", "gripper", "arm"]
# what code for one sample and code for many may differ by, in eps of the largest entry
_ROUNDING = 100
# those whose kernels take long to compile, or which ask for more than arrays and names
_LEFT_OUT = {"curvature", "mass_matrix_second_sensitivity", "constrained_forward_dynamics"}


@line("calls", weight=2)
def spellings(rng: np.random.Generator) -> Outcome:
    """Arguments by place and by name, as arrays, lists, whole numbers, in other dtypes, orders and
    strides, unaligned, broadcast, of no samples, with NaN and of the wrong shape, settings right
    and wrong: a method that has learnt dozens of other calls gives the numbers, to rounding, or the
    error, of one that has learnt none."""
    one, fresh = _twins(str(rng.choice(POOL)), str(rng.choice(["float64", "float32"])))
    method, count = _method(one, rng), 20
    for _ in range(count):
        if rng.random() < 0.1:
            method = _method(one, rng)
        arguments, keywords = _spelt(one, method, rng)
        # nothing learnt: every call is a first one
        fresh._doors.clear()
        expected = _outcome(getattr(fresh, method.name), arguments, keywords)
        got = _outcome(getattr(one, method.name), arguments, keywords)
        _assert_same(f"{method.name} of {one!r}, {_told(arguments, keywords)}", got, expected)
    return Outcome(count)


@lru_cache
def _twins(name: str, dtype: str) -> tuple[hinge.Robot, hinge.Robot]:
    open_to = ("gravity", "inertia") if name == "arm" else ()
    mech = robot(name).mechanism
    return hinge.Robot(mech, dtype, parameters=open_to), hinge.Robot(mech, dtype, None, open_to)


def _method(one: hinge.Robot, rng: np.random.Generator) -> Method:
    known = inspect.getmembers_static(type(one), lambda x: isinstance(x, Method))
    chosen = [m for _, m in known if m.name not in _LEFT_OUT]
    return chosen[rng.integers(len(chosen))]


def _spelt(one: hinge.Robot, method: Method, rng: np.random.Generator) -> tuple[list, dict]:
    """A call: arguments by place, and by name."""
    lead = [(), (), (1,), (3,), (int(rng.integers(1, 20)),), (2, 3), (0,)][rng.integers(7)]
    values: dict[str, Any] = {}
    for p in method.of(one):
        if p.name == "out":
            continue
        if p.is_array:
            if p.required or rng.random() < 0.3:
                values[p.name] = _array(one, p.name, lead, rng)
        elif p.required or rng.random() < 0.3:
            values[p.name] = _setting(one, p.name, p.default, rng)
    if rng.random() < 0.05:
        values.pop(str(rng.choice(list(values))))
    if rng.random() < 0.05:
        values["misspelt"] = 1
    by_place = int(rng.integers(len(values) + 1))
    names = [p.name for p in method.of(one)]
    first = [n for n, m in zip(values, names, strict=False) if n == m][:by_place]
    rest = {n: x for n, x in values.items() if n not in first}
    return [values[n] for n in first], rest


def _array(one: hinge.Robot, name: str, lead: tuple[int, ...], rng: np.random.Generator) -> Any:
    """An array, in one of the ways that arrays come."""
    shape = array_shape(one.mechanism, name)
    own = lead[rng.integers(len(lead) + 1) :] if rng.random() < 0.2 else lead
    x = rng.normal(size=own + shape)
    if name in CONFIGURATIONS:
        x = x + one.random_configuration(rng)
    if name == "inertia":
        x = np.abs(x) + 1
    x = x.astype(one.dtype)
    if x.size and rng.random() < 0.1:
        x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, 1e30, 0.0])
    return _WAYS[rng.integers(len(_WAYS))](x) if rng.random() < 0.6 else x


def _apart(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((*x.shape, 2), x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


def _unaligned(x: np.ndarray) -> np.ndarray:
    room = np.zeros(x.nbytes + 1, np.uint8)
    y = np.ndarray(x.shape, x.dtype, room, 1)
    y[...] = x
    return y


def _frozen(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


class _Own(np.ndarray):
    """A kind of arrays of one's own."""


_WAYS: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda x: x.tolist(),
    lambda x: x.astype(np.float32),
    lambda x: x.astype(np.float64),
    lambda x: x.astype(np.longdouble),
    lambda x: x.astype(x.dtype.newbyteorder()),
    # not 0: a quaternion has to be something
    lambda x: np.ceil(np.clip(np.nan_to_num(np.abs(x)), 0.1, 9)).astype(np.int64),
    lambda x: np.asfortranarray(x),
    lambda x: x[::-1].copy()[::-1] if x.ndim else x,
    lambda x: x[..., :-1] if x.ndim else x,
    lambda x: x[None],
    lambda x: x.view(_Own),
    lambda x: x.astype(complex),
    lambda x: None,
    lambda x: "q",
    lambda x: (),
    _apart,
    _unaligned,
    _frozen,
)


def _setting(one: hinge.Robot, name: str, default: Any, rng: np.random.Generator) -> Any:
    """A setting: right, now and then wrong, the same object again or another equal to it."""
    frames = one.frame_names
    flags = rng.random(one.nv) < 0.5
    known: dict[str, list[Any]] = {
        "frame": [frames[-1], frames[0], "".join(frames[-1]), "nowhere"],
        "frames": [frames[-1], (frames[-1],), [frames[-1]], ()],
        "reference": ["world", "body", "aligned", "sideways"],
        "active": [one.joint_names[:1], list(one.joint_names[:1]), flags, tuple(flags), "no joint"],
        "order": [1, 1.0, True, 3],
        "normalized": [True, False, 1, None],
        "method": ["articulated", "conventional", "guessed"],
        "kind": [1, 2, 0],
    }
    choices = known.get(name, [default])
    return choices[rng.integers(len(choices))]


def _outcome(call: Callable[..., Any], arguments: list, keywords: dict) -> Any:
    """Results, or what was said."""
    try:
        return call(*arguments, **keywords)
    except HingeError as error:
        return f"{type(error).__name__}: {error}"


def _told(arguments: list, keywords: dict) -> str:
    def short(x: Any) -> str:
        return f"{x.dtype}{x.shape}" if isinstance(x, np.ndarray) else repr(x)[:80]

    named = [f"{n}={short(x)}" for n, x in keywords.items()]
    return ", ".join([*map(short, arguments), *named])


def _assert_same(what: str, got: Any, expected: Any) -> None:
    assert type(got) is type(expected), f"{what}: got {got!r}, expected {expected!r}"
    if isinstance(expected, str):
        # of two mistakes either may be told
        assert got.partition(":")[0] == expected.partition(":")[0], f"{what}: {got}, not {expected}"
        return
    parts = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for a, b in parts:
        # code for one sample and for many rounds differently
        b = np.asarray(b)
        eps = np.finfo(b.dtype).eps if b.dtype.kind == "f" else 0.0
        with np.errstate(invalid="ignore"):
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        assert np.allclose(a, b, 0.0, _ROUNDING * eps * scale, equal_nan=True), f"{what}: {a}, {b}"


@line("calls", weight=1)
def results_over_arguments(rng: np.random.Generator) -> Outcome:
    """Results written over the arguments they come from, wholly, shifted by some numbers, in one
    block with several of them: what they would be elsewhere."""
    task, n = random_task(rng, most=2000), int(rng.integers(1, 40))
    for _ in range(10):
        block = rng.normal(size=n * 60).astype(task.robot.dtype)
        fits = all(n * int(np.prod(shape)) <= block.size for shape in task.shapes)
        if not fits:
            break
        arrays = [_anywhere(block, (n, *shape), rng) for shape in task.shapes]
        kept = [x.copy() for x in arrays]
        expected = task.kernel(*kept)
        expected = expected if isinstance(expected, tuple) else (expected,)
        if sum(x.size for x in expected) > block.size:
            break
        out, at = [], int(rng.integers(block.size - sum(x.size for x in expected) + 1))
        for x in expected:
            out.append(block[at : at + x.size].reshape(x.shape))
            at += x.size
        way = task.kernel if rng.random() < 0.5 else task.kernel.call
        way(*arrays, out=out if len(out) > 1 else out[0])
        for a, b in zip(out, expected, strict=True):
            assert_same_bits(a, b, f"{task}, over its arguments")
    return Outcome(10)


def _anywhere(block: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    size = int(np.prod(shape))
    at = int(rng.integers(block.size - size + 1))
    return block[at : at + size].reshape(shape)


_KEPT: list[tuple[Any, np.ndarray]] = []


@line("results", weight=1)
def results_that_are_kept(rng: np.random.Generator) -> Outcome:
    """Large results in memory that is used again: whoever keeps one, or a view of it, or a view of
    a view, never sees it change."""
    task = random_task(rng, "mass_matrix", "inverse_dynamics", "jacobian", "poses")
    n = int(rng.integers(1, 400))
    before = memory.LARGE
    memory.LARGE = 1 << int(rng.integers(8, 16))
    try:
        for _ in range(10):
            states = [rng.normal(size=(n, *shape)) for shape in task.shapes]
            result = getattr(task.robot, task.name)(*states, **task.static)
            view = [result, result[::2], memoryview(result), result.reshape(n, -1)[:, :1]]
            keep = view[rng.integers(4)]
            _KEPT.append((keep, np.array(keep)))
            del view, result, keep
            if len(_KEPT) > 40:
                del _KEPT[int(rng.integers(len(_KEPT)))]
        for kept, copy in _KEPT:
            assert_same_bits(np.asarray(kept), copy, "a kept result")
    finally:
        memory.LARGE = before
    return Outcome(10)

"""Batches larger than memory: mapped arrays, blocks of samples, and what is said of them."""

import tracemalloc

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from hinge.robot import blocks
from marks import short_way
from mechanisms import EPS, assert_close


def mapped(folder, name, array, mode="r"):
    """The array in a file, read where it lies."""
    path = folder / name
    np.asarray(array).tofile(path)
    return np.memmap(path, array.dtype, mode, shape=array.shape)


def states(robot, n, seed=0):
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, n)
    return q, rng.normal(size=(n, robot.nv)), rng.normal(size=(n, robot.nv))


def peak_of(call, *arguments, **named):
    tracemalloc.start()
    call(*arguments, **named)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


# mapped arrays as arguments


@short_way
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_mapped_arrays_are_taken_where_they_lie(tmp_path, mode):
    robot = zoo.arm(3)
    given = states(robot, 5000)
    expected = robot.inverse_dynamics(*given)
    maps = [mapped(tmp_path, str(i), x, mode) for i, x in enumerate(given)]
    out = mapped(tmp_path, "out", np.zeros_like(expected), "r+")
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    for call in (robot.inverse_dynamics, kernel):
        for _ in range(3):
            out[:] = 0
            assert call(*maps, out=out) is out
            assert np.array_equal(out, expected)
        assert peak_of(call, *maps, out=out) < 0.1 * out.nbytes
        assert np.array_equal(call(*maps), expected)


def test_a_map_that_is_not_to_be_written_is_refused(tmp_path):
    robot = zoo.arm(3)
    given = states(robot, 10)
    out = mapped(tmp_path, "out", np.zeros((10, 3)), "r")
    with pytest.raises(ArgumentError, match="out is not a writeable, aligned, C-contiguous"):
        robot.inverse_dynamics(*given, out=out)
    with pytest.raises(ArgumentError, match="inverse_dynamics of 'arm3': out is read-only"):
        hinge.in_blocks(robot.inverse_dynamics, *given, out=out, block=4)


# arrays in blocks


class Stored:
    """What libraries of files have: a shape, a dtype and slices."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.most = 0

    def __getitem__(self, at):
        part = self.array[at]
        self.most = max(self.most, len(part))
        return part

    def __setitem__(self, at, value):
        self.array[at] = value


KINDS = {
    "plain": lambda x: x,
    "other dtype": lambda x: x.astype(np.float32).astype(x.dtype).astype(np.float32),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "columns": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "Fortran": np.asfortranarray,
    "backwards": lambda x: x[::-1].copy()[::-1],
    "stored": Stored,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [1, 7, 25, 100, None])
def test_blocks_give_what_one_call_gives(kind, block):
    robot = zoo.arm(3)
    given = [x.astype(np.float32).astype(float) for x in states(robot, 25)]
    expected = robot.forward_dynamics(*given)
    cut = [KINDS[kind](x) for x in given]
    for target in (None, *KINDS.values()):
        out = None if target is None else target(np.zeros_like(expected))
        got = hinge.in_blocks(robot.forward_dynamics, *cut, out=out, block=block)
        assert out is None or got is out
        values = got.array if isinstance(got, Stored) else got
        assert_close(values, expected, 2 * np.finfo(values.dtype).eps + 20 * EPS)
    if kind == "stored" and block == 7:
        assert [x.most for x in cut] == [7, 7, 7]


def test_all_that_a_method_takes():
    robot = hinge.Robot(zoo.quadruped().mechanism, parameters=("gravity",))
    n, rng = 23, np.random.default_rng(1)
    q, qd, tau = states(robot, n)
    f_ext = rng.normal(size=(n, len(robot.body_names), 6))
    gravity = rng.normal(size=(n, 3))
    frame = robot.frame_names[-1]
    cases = [
        (robot.forward_dynamics, (q, qd, tau), dict(f_ext=f_ext, gravity=gravity)),
        (robot.forward_dynamics, (q, qd, tau), dict(f_ext=f_ext[0], gravity=gravity[0])),
        (robot.inverse_dynamics_derivatives, (q, qd), dict(qdd=tau)),
        (robot.jacobian, (q, frame), dict(reference="body")),
        (robot.hybrid_dynamics, (q, qd, tau, qd, tau > 0), {}),
        (robot.kinetic_energy, (q, qd[0]), {}),
        (robot.rnea, (q, qd, tau), {}),
    ]
    for call, arguments, named in cases:
        # as it is bound at first, and as a door
        for _ in range(3):
            whole = call(*arguments, **named)
            parts = hinge.in_blocks(call, *arguments, block=5, **named)
            assert type(parts) is type(whole)
            pairs = zip(parts, whole, strict=True) if isinstance(whole, tuple) else [(parts, whole)]
            for a, b in pairs:
                assert_close(a, b, 20 * EPS)


def test_results_of_several_arrays_go_to_several(tmp_path):
    robot = zoo.arm(3)
    given = states(robot, 20)
    whole = robot.forward_dynamics_derivatives(*given)
    out = [mapped(tmp_path, str(i), np.zeros_like(x), "r+") for i, x in enumerate(whole)]
    for _ in range(2):
        got = hinge.in_blocks(robot.forward_dynamics_derivatives, *given, out=out, block=6)
        assert got is out
        for a, b in zip(out, whole, strict=True):
            assert_close(a, b, 20 * EPS)


def test_constraints_and_their_masks():
    robot = zoo.quadruped()
    feet = tuple(hinge.Contact(f, "point") for f in robot.frame_names if "foot" in f)
    q, qd, tau = states(robot, 11)
    mask = np.random.default_rng(0).integers(0, 2, size=(11, len(feet)))
    call = robot.constrained_forward_dynamics
    whole = call(q, qd, tau, feet, mask=mask)
    parts = hinge.in_blocks(call, q, qd, tau, feet, mask=mask, block=4)
    assert_close(parts.qdd, whole.qdd, 1e-9)


def test_leading_shapes_broadcast():
    robot = zoo.arm(2)
    rng = np.random.default_rng(0)
    q, qd, tau = (rng.normal(size=shape) for shape in ((6, 1, 2), (4, 2), (6, 4, 2)))
    whole = robot.forward_dynamics(q, qd, tau)
    assert np.array_equal(hinge.in_blocks(robot.forward_dynamics, q, qd, tau, block=4), whole)
    one = hinge.in_blocks(robot.forward_dynamics, q[0, 0], qd[0], list(tau[0, 0]))
    assert_close(one, robot.forward_dynamics(q[0, 0], qd[0], tau[0, 0]), 0.0)
    out = np.empty(2)
    assert hinge.in_blocks(robot.forward_dynamics, q[0, 0], qd[0], tau[0, 0], out=out) is out
    assert_close(out, one, 0.0)
    assert hinge.in_blocks(robot.forward_dynamics, q[:0], qd, tau[:0]).shape == (0, 4, 2)


def test_kernels():
    robot = zoo.arm(2)
    step = robot.compile(lambda q, qd, dt: (q + dt * qd, robot.alg.kinetic_energy(q, qd)))
    q, qd, _ = states(robot, 30)
    whole, out = step(q, qd, 0.1), (np.empty((30, 2)), np.empty(30))
    for named in ({"dt": 0.1}, {"dt": np.full(30, 0.1)}):
        hinge.in_blocks(step, q, qd, out=out, block=8, **named)
        assert all(np.array_equal(a, b) for a, b in zip(out, whole, strict=True))
    assert np.array_equal(hinge.in_blocks(step, q, qd, 0.1, block=8)[0], whole[0])


def test_rollouts_are_cut_behind_their_time():
    def step(x, v, u, k):
        v = v + 0.1 * (u - k * x)
        return x + 0.1 * v, v

    given = step, ("x", "v"), ("u",)
    shapes = dict(x=(), v=(), u=(), k=())
    plain = hinge.rollout(*given, **shapes)
    reducing = hinge.rollout(*given, keep={"far": hinge.Max(lambda x: x)}, **shapes)
    rng = np.random.default_rng(0)
    x, u, k = rng.normal(size=20), rng.normal(size=(9, 20)), rng.uniform(1, 2, size=20)
    whole = plain(x, 0.0, u, k, every=2)
    out = tuple(np.zeros_like(a) for a in whole)
    assert hinge.in_blocks(plain, x, 0.0, u, k, every=2, block=6, out=out) is out
    assert all(np.array_equal(a, b) for a, b in zip(out, whole, strict=True))
    kept = hinge.in_blocks(reducing, x, 0.0, u, k, block=6)
    assert kept._fields == ("x", "v", "far")
    pairs = zip(kept, reducing(x, 0.0, u, k), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_memory_is_that_of_a_block(tmp_path):
    """Also where every number has to be converted."""
    robot = zoo.arm(3)
    given = [x.astype(">f4") for x in states(robot, 100_000)]
    maps = [mapped(tmp_path, str(i), x) for i, x in enumerate(given)]
    out = mapped(tmp_path, "out", np.zeros((100_000, 3), np.float32), "r+")
    hinge.in_blocks(robot.inverse_dynamics, *(x[:10] for x in maps))
    peak = peak_of(hinge.in_blocks, robot.inverse_dynamics, *maps, out=out, block=1000)
    assert peak < 0.1 * out.nbytes + 20 * 1000 * 8 * 3
    expected = robot.inverse_dynamics(*(x.astype(float) for x in given))
    assert_close(out, expected, np.finfo(np.float32).eps)


@pytest.mark.parametrize("seen", [KeyboardInterrupt, OSError])
def test_an_interrupt_leaves_what_is_finished(monkeypatch, seen):
    robot = zoo.arm(2)
    given = states(robot, 20)
    expected, out = robot.inverse_dynamics(*given), np.zeros((20, 2))
    hinge.in_blocks(robot.inverse_dynamics, *given, block=20)
    put = blocks._Results.put

    def interrupted(self, begin, end):
        if begin == 12:
            raise seen
        put(self, begin, end)

    monkeypatch.setattr(blocks._Results, "put", interrupted)
    with pytest.raises(seen) as stop:
        hinge.in_blocks(robot.inverse_dynamics, *given, out=out, block=6)
    assert_close(out[:12], expected[:12], 10 * EPS)
    assert not out[12:].any()
    assert "samples 12 to 17 of 20; what came before is finished" in stop.value.__notes__[0]


def test_progress_is_shown(monkeypatch):
    seen = []

    def progress(items, label):
        seen.append((len(items) if hasattr(items, "__len__") else None, label))
        return items

    monkeypatch.setattr(blocks, "progress", progress)
    robot = zoo.arm(2)
    given = states(robot, 20)
    hinge.in_blocks(robot.inverse_dynamics, *given, block=6)
    list(hinge.stream(robot.inverse_dynamics, [given, given]))
    assert seen == [(4, "inverse_dynamics of 'arm2'"), (2, "stream of inverse_dynamics")]


class Foreign:
    """An array of another package."""

    shape, dtype = (8, 2), "somewhere.float64"


Q = np.zeros((8, 2))
BAD = {
    "a function": (lambda r: (np.sin, Q), {}, r"<ufunc 'sin'> is no compiled method of a robot"),
    "no kernel": (lambda r: (r.inverse_kinematics, Q), {}, "hinge.stream takes any function"),
    "size": (lambda r: (r.mass_matrix, Q), dict(block=0), "block is 0; expected a whole number"),
    "shape": (lambda r: (r.mass_matrix, Q[:, :1]), {}, r"q has shape \(8, 1\); expected shape"),
    "dtype": (lambda r: (r.mass_matrix, Q + 1j), {}, "q has dtype complex128; expected real"),
    "a tensor": (
        lambda r: (r.mass_matrix, Foreign()),
        {},
        "q is a Foreign; in_blocks takes arrays",
    ),
    "leads": (lambda r: (r.rnea, Q, Q[:3], Q), {}, r"do not broadcast: q \(8,\), qd \(3,\)"),
    "missing": (lambda r: (r.rnea, Q, Q), {}, "qdd is missing"),
    "unknown": (lambda r: (r.mass_matrix, Q), dict(gain=1), "gain is not an argument"),
    "a frame": (lambda r: (r.jacobian, Q, "hand"), {}, "hand"),
    "out": (lambda r: (r.rnea, Q, Q, Q), dict(out=np.zeros((8, 3))), r"shape \(8, 3\); expected"),
    "outs": (lambda r: (r.rnea, Q, Q, Q), dict(out=[Q, Q]), r"shape \(8, 2\), \(8, 2\); expected"),
    "kernel": (
        lambda r: (r.kernel("mass_matrix", "q"), Q, Q),
        {},
        "takes q; got 2 arrays",
    ),
    "rollout": (
        lambda r: (hinge.rollout(lambda x: x, "x", x=()), Q, Q),
        {},
        "takes x; got 2 arrays",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_cut(case):
    make, named, message = BAD[case]
    call, *arguments = make(zoo.arm(2))
    with pytest.raises(hinge.HingeError, match=message):
        hinge.in_blocks(call, *arguments, **named)


def test_results_do_not_go_where_arguments_are_still_to_be_read():
    robot = zoo.arm(2)
    both = np.zeros((21, 2))
    both[:20] = states(robot, 20)[0]
    expected = robot.inverse_dynamics(both[:20], both[:20], both[:20])
    with pytest.raises(ArgumentError, match="out shares memory with q, and is not the same array"):
        hinge.in_blocks(robot.inverse_dynamics, *[both[:20]] * 3, out=both[1:], block=6)
    hinge.in_blocks(robot.inverse_dynamics, *[both[:20]] * 3, out=both[:20], block=6)
    assert_close(both[:20], expected, 10 * EPS)


def test_a_block_that_fails_says_which_samples():
    """Slices of a file that is shorter than it says."""

    class Short(Stored):
        def __getitem__(self, at):
            return self.array[at] if at[-1].start < 12 else self.array[at][:2]

    robot = zoo.arm(2)
    q, qd, qdd = states(robot, 20)
    with pytest.raises(ArgumentError, match="samples 12 to 17 of 20: .*leading shapes do not bro"):
        hinge.in_blocks(robot.inverse_dynamics, Short(q), qd, qdd, block=6)


# blocks as they come


def test_blocks_as_they_come():
    robot = zoo.arm(2)
    q, qd, qdd = states(robot, 20)
    f_ext = np.ones((2, 6))
    whole = robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
    cuts = [slice(0, 3), slice(3, 11), slice(11, 20)]
    names = "q", "qd", "qdd"
    by_place = ((q[c], qd[c], qdd[c]) for c in cuts)
    by_name = (dict(zip(names, (q[c], qd[c], qdd[c]), strict=True)) for c in cuts)
    for given in (by_place, by_name):
        parts = list(hinge.stream(robot.inverse_dynamics, given, f_ext=f_ext))
        assert [len(part) for part in parts] == [3, 8, 9]
        assert_close(np.concatenate(parts), whole, 10 * EPS)
    alone = list(hinge.stream(robot.mass_matrix, (q[c] for c in cuts)))
    assert_close(np.concatenate(alone), robot.mass_matrix(q), 10 * EPS)
    assert list(hinge.stream(lambda x, y: x + y, [[1], [2]], y=3)) == [4, 5]


def test_a_stream_holds_no_block_back():
    """Nothing is read before it is wanted, and nothing is kept that was given."""
    read = []

    def source():
        for i in range(3):
            read.append(i)
            yield np.full(100_000, float(i))

    results = hinge.stream(np.negative, source())
    assert read == []
    next(results)
    assert read == [0]
    assert peak_of(lambda: [None for _ in results]) < 3.5 * 100_000 * 8


def test_a_stream_says_which_block_failed():
    robot = zoo.arm(2)
    q = np.zeros((5, 2))
    got = hinge.stream(robot.mass_matrix, [q, q, q[:, :1], q])
    assert len(next(got)) == len(next(got)) == 5
    with pytest.raises(
        ArgumentError, match=r"block 2: mass_matrix of 'arm2': q has shape \(5, 1\)"
    ):
        next(got)
    with pytest.raises(ZeroDivisionError) as problem:
        list(hinge.stream(lambda x: 1 / x, [1, 0]))
    assert problem.value.__notes__ == ["hinge was at block 1; what came before is finished"]

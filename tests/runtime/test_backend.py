"""Another backend: programs run by the interpreter, in NumPy, and nobody above can tell."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Kernel, SingularError, zoo
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.graph.scan import Scan
from hinge.runtime.cpu import Cpu
from hinge.runtime.rollout import Rollout
from mechanisms import EPS, assert_close, random_state


@dataclass(frozen=True)
class Interpreted:
    """Its code is the program itself; version: of the backend."""

    version: int = 1
    language: ClassVar[str] = "operations"
    climbs: ClassVar[bool] = True
    solves: ClassVar[bool] = False

    def text(self, program, settings):
        return "\n".join(node.op for node in program.nodes)

    def compile(self, program, settings):
        return pickle.dumps(program)

    def marks(self):
        return "interpreted", str(self.version)

    def needs(self):
        return self.marks()

    def suited(self, settings, samples):
        return self

    def load(self, artifact, settings):
        return InterpretedProgram(pickle.loads(artifact.code), settings)

    def load_scan(self, artifact, settings, states, inputs):
        return InterpretedScan(pickle.loads(artifact.code), settings)

    def caller(self, kernel):
        return None

    def loop_caller(self, rollout):
        return None

    def empty(self, shapes, dtype):
        return [np.full(shape, 7.0, dtype) for shape in shapes]


def write(found, results, lead, strict):
    """Results where they belong; of a strict sample none or all are numbers."""
    axes = [tuple(range(len(lead), x.ndim)) for x in found]
    sound = np.all([np.isfinite(x).all(axis) for x, axis in zip(found, axes, strict=True)], axis=0)
    for x, result in zip(found, results, strict=True):
        ones = (1,) * (x.ndim - len(lead))
        result[...] = np.where(sound.reshape(lead + ones), x, np.nan) if strict else x


class InterpretedProgram:
    """A program and how to run it."""

    def __init__(self, program, settings):
        self.program, self.settings = program, settings

    def run(self, arrays, results, lead):
        if 0 in lead:
            return
        pairs = zip(arrays, self.program.inputs, strict=True)
        given = [np.broadcast_to(x, lead + shape) for x, shape in pairs]
        write(interpret(self.program, given), results, lead, self.settings.strict)

    def entry(self, otherwise, form, least):
        return None


class InterpretedScan:
    """A time loop and how to run it."""

    def __init__(self, scan, settings):
        self.scan, self.settings = scan, settings

    def run(self, arrays, results, lead, steps, every):
        scan = self.scan
        given = [self.whole(i, x, lead) for i, x in enumerate(arrays)]
        rows = (steps // every, *lead)
        write(interpret(scan, given, steps, every), results, rows, self.settings.strict)
        last = Scan(scan.step, scan.states, scan.inputs_per_step, scan.stages, range(scan.states))
        return [x[-1] for x in interpret(last, given, steps)]

    def whole(self, i, x, lead):
        """An argument with the leading shape of all."""
        scan, shape = self.scan, self.scan.inputs[i]
        time = x.shape[: int(scan.states <= i < scan.states + scan.inputs_per_step)]
        own = x.shape[len(time) : x.ndim - len(shape)]
        ones = (1,) * (len(lead) - len(own))
        return np.broadcast_to(x.reshape(time + ones + own + shape), time + lead + shape)


BACKEND = Interpreted()


def law(A, x, s):
    return A @ x * s + np.sin(x[0]), x @ x / s


LAW = trace(law, [(2, 3), (3,), ()])
NAMES = ("A", "x", "s")


def both(program, **settings):
    return [Kernel(program, "law", NAMES, backend=b, **settings) for b in (BACKEND, Cpu())]


def sample(*leads):
    rng = np.random.default_rng(len(leads[0]))
    pairs = zip(leads, [(2, 3), (3,), ()], strict=True)
    return [rng.uniform(0.5, 1.5, size=lead + shape) for lead, shape in pairs]


def same(got, expected, bound=50 * EPS):
    assert type(got) is type(expected)
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for a, b in pairs:
        assert a.dtype == b.dtype and a.shape == b.shape
        assert_close(a, b, bound)


@pytest.mark.parametrize(
    "leads", [[()] * 3, [(5,)] * 3, [(0,)] * 3, [(4, 1), (5,), ()], [(), (2, 3), (3,)]]
)
def test_kernels_take_any_leading_shape(leads):
    toy, real = both(LAW)
    given = sample(*leads)
    same(toy(*given), real(*given))
    same(toy.call(*given), real(*given))
    same(toy(given[0], s=given[2], x=np.asfortranarray(given[1])), real(*given))


def test_results_go_where_they_are_told():
    toy, real = both(LAW)
    given = sample((6,), (6,), (6,))
    out = np.zeros((6, 2)), np.zeros(6)
    got = toy(*given, out=out)
    assert all(a is b for a, b in zip(got, out, strict=True))
    same(got, real(*given))
    for bad in ((out[0],), (out[0], np.zeros(5)), (out[0].astype(np.float32), out[1])):
        with pytest.raises(ArgumentError, match="law: out "):
            toy(*given, out=bad)
    # a result in place of an argument, shifted by a sample
    twice, room = Kernel(trace(lambda x: 2 * x, [(2,)]), backend=BACKEND), np.ones((9, 2))
    assert (twice(room[:-1], out=room[1:]) == 2).all()


def test_mistakes_are_found_before_the_backend():
    toy = both(LAW)[0]
    A, x, s = sample((), (), ())
    for given, told in [
        ((A, x), "takes 3 arrays"),
        ((A, x[:2], s), r"x has shape \(2,\)"),
        ((A, x, "s"), "s is 's'; expected"),
    ]:
        with pytest.raises(ArgumentError, match=f"law.*{told}"):
            toy(*given)


def test_a_strict_kernel_spoils_whole_samples():
    toy, real = both(LAW, strict=True)
    A, x, s = sample((4,), (4,), (4,))
    s[2] = 0.0
    got = toy(A, x, s)
    assert np.isnan(got[0][2]).all() and np.isfinite(got[0][[0, 1, 3]]).all()
    np.testing.assert_allclose(got[0], real(A, x, s)[0], rtol=1e-14)


def test_code_has_a_language():
    toy, real = both(LAW)
    assert toy.source() == toy.source("operations") and "sin" in toy.source().split()
    assert "define" in real.source("llvm") and toy.source("c") == real.source("c")
    with pytest.raises(
        ArgumentError, match="law: source is 'llvm'; expected 'operations', 'c', 'header' or 'cuda'"
    ):
        toy.source("llvm")


def test_every_backend_has_code_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make():
        made.append(1)
        return LAW

    backends = [BACKEND, BACKEND, Interpreted(version=2), Cpu(), Interpreted(version=2)]
    codes = [Kernel(make, key="law", backend=b).artifact.code for b in backends]
    assert len(made) == 3 and codes[0] == codes[1] == codes[2] != codes[3]


def spring(x, v, u, k):
    v = v + 0.1 * (u - k * x)
    return x + 0.1 * v, v


SHAPES = dict(x=(2,), v=(2,), u=(2,), k=())
SPRING = Scan(trace(spring, list(SHAPES.values())), 2, 1, recorded=(0, 1))


@pytest.mark.parametrize("leads", [[()] * 4, [(3,)] * 4, [(3, 1), (4,), (), (4,)]])
@pytest.mark.parametrize("every", [1, 3])
def test_time_loops(leads, every):
    toy, real = (Rollout(SPRING, SHAPES, 2, 1, backend=b) for b in (BACKEND, Cpu()))
    rng = np.random.default_rng(0)
    x, v, k = (rng.normal(size=leads[i] + list(SHAPES.values())[i]) for i in (0, 1, 3))
    given = x, v, rng.normal(size=(7, *leads[2], 2)), k
    same(toy(*given, every=every), real(*given, every=every))
    assert toy.ops == real.ops
    lead = np.broadcast_shapes(*leads)
    rows = [[np.empty((7, *lead, 2)) for _ in range(2)] for _ in range(2)]
    ends = [r.fill(row, given, lead, 7, 1) for r, row in zip((toy, real), rows, strict=True)]
    same(tuple(ends[0]), tuple(ends[1]))


# a robot on it


@pytest.fixture
def robots():
    """A robot that is interpreted, and the usual one."""
    pair = [hinge.Robot(zoo.space_arm(2).mechanism) for _ in range(2)]
    pair[0]._backend = BACKEND
    return pair


def euler(robot):
    def step(q, qd, tau):
        qd = qd + 0.01 * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, 0.01 * qd), qd

    return step


CALLS = {
    "inverse_dynamics": lambda r, s: r.inverse_dynamics(s.q, s.qd, s.qdd),
    "with forces": lambda r, s: r.inverse_dynamics(s.q, s.qd, s.qdd, f_ext=np.ones((3, 6))),
    "forward_dynamics": lambda r, s: r.forward_dynamics(s.q, s.qd, s.qdd),
    "mass_matrix": lambda r, s: r.mass_matrix(s.q),
    "jacobian": lambda r, s: r.jacobian(s.q, "tool"),
    "derivatives": lambda r, s: tuple(r.forward_dynamics_derivatives(s.q, s.qd, s.qdd)),
    "operators": lambda r, s: r.operators(s.q).mass.inv @ s.qdd,
    "compile": lambda r, s: r.compile(lambda q, qd: r.alg.kinetic_energy(q, qd))(s.q, s.qd),
    "rollout": lambda r, s: r.rollout(euler(r))(s.q, s.qd, s.qdd, steps=4),
    "simulate": lambda r, s: hinge.simulate(r, s.q, s.qd, s.qdd, 0.1, 0.01).q,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_robot_does_not_know_what_it_runs_on(robots, call, monkeypatch):
    states = [random_state(robots[0], seed) for seed in range(3)]
    names = "q", "qd", "qdd"
    batch = SimpleNamespace(**{n: np.array([getattr(s, n) for s in states]) for n in names})
    for state in (states[0], batch):
        # the first call, the one that learns, the one that has learned
        for _ in range(3):
            expected = CALLS[call](robots[1], state)
            with monkeypatch.context() as m:
                m.setattr(Cpu, "load", None)
                m.setattr(Cpu, "load_scan", None)
                same(CALLS[call](robots[0], state), expected, 1e4 * EPS)


def test_errors_of_a_robot_are_the_same(robots):
    s = random_state(robots[0], 0)
    for robot in robots:
        with pytest.raises(ArgumentError, match=r"qd\[1\] is nan; expected finite"):
            robot.inverse_dynamics(s.q, np.where(np.arange(len(s.qd)) == 1, np.nan, s.qd), s.qdd)
        with pytest.raises(SingularError, match="the result is not finite"):
            robot.inverse_dynamics(s.q, np.full(robot.nv, 1e200), s.qdd)

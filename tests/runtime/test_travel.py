"""Kernels that travel: to another process they bring their code, to another CPU their program."""

import pickle

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.graph.program import trace
from hinge.graph.scan import Scan
from hinge.runtime import target
from hinge.runtime.cpu import Cpu
from hinge.runtime.cuda import Cuda
from hinge.runtime.threads import limited, thread_count

X = np.random.default_rng(1).normal(size=(11, 2))


@pytest.fixture
def compiled(monkeypatch):
    """The programs that are compiled, with nothing found on disk."""
    found, plain = [], Cpu.compile
    monkeypatch.setattr("hinge.runtime.cache.load", lambda key: None)

    def noted(backend, program, settings):
        found.append(program)
        return plain(backend, program, settings)

    monkeypatch.setattr(Cpu, "compile", noted)
    return found


@pytest.fixture
def another(monkeypatch):
    """What makes this machine another one."""

    def become():
        monkeypatch.setattr(target, "_told_by_linux", lambda: ("another", ["sse2"]))
        target.host.cache_clear()

    yield become
    monkeypatch.undo()
    target.host.cache_clear()


def kernels():
    arm = zoo.arm(2)
    yield arm.kernel("inverse_dynamics", "q", "qd", "qdd"), (X, X, X), {}
    yield hinge.compile(lambda x, y: (x @ y, np.sin(x)), x=(2,), y=(2,)), (X, X), {}
    fall = hinge.rollout(lambda z, v, h: (z + h * v, v - 9.81 * h), ("z", "v"), z=(), v=(), h=())
    yield fall, (X[:, 0], X[:, 1], 0.1), {"steps": 5}


def test_code_comes_along(compiled):
    for kernel, arrays, settings in kernels():
        whole = kernel(*arrays, **settings)
        count = len(compiled)
        again = pickle.loads(pickle.dumps(kernel))
        np.testing.assert_equal(again(*arrays, **settings), whole)
        assert len(compiled) == count


def test_another_cpu_compiles_for_itself(compiled, another):
    sent = []
    for kernel, arrays, settings in kernels():
        whole = kernel(*arrays, **settings)
        sent.append((pickle.dumps(kernel), arrays, settings, whole))
    another()
    for data, arrays, settings, whole in sent:
        count, kernel = len(compiled), pickle.loads(data)
        found = kernel(*arrays, **settings)
        assert kernel.backend.target.vector_bits == 128 and len(compiled) == count + 1
        several = isinstance(whole, tuple)
        pairs = zip(found, whole, strict=True) if several else [(found, whole)]
        for x, y in pairs:
            np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


def test_code_for_one_sample_comes_along_too(compiled):
    fall = hinge.rollout(lambda z, v: (z + v, v), ("z", "v"), z=(), v=())
    whole, count = fall(1.0, 2.0, steps=3), len(compiled)
    np.testing.assert_equal(pickle.loads(pickle.dumps(fall))(1.0, 2.0, steps=3), whole)
    assert len(compiled) == count


def test_a_cpu_that_was_chosen_stays_it():
    chosen = Cpu(2, target.Target("generic", "", 128))
    assert pickle.loads(pickle.dumps(chosen)) == chosen
    assert pickle.loads(pickle.dumps(Cpu(3))) == Cpu(3)


def test_programs_pickle_however_deep_they_are():
    def deep(x):
        y = x
        for _ in range(5000):
            y = np.sin(y) * x + 1.0
        return y

    program = trace(deep, [()])
    again = pickle.loads(pickle.dumps(Scan(program, 1))).step
    assert again.digest == program.digest
    loop = zoo.snake(60).kernel("forward_dynamics", "q", "qd", "tau").program
    assert pickle.loads(pickle.dumps(loop)).digest == loop.digest


def test_code_of_a_card_asks_for_such_a_card(monkeypatch):
    from fake_card import fake_card

    with fake_card(monkeypatch, capability=(9, 0)):
        first = Cuda(0).needs()
        assert first == Cuda(1).needs()
    with fake_card(monkeypatch, capability=(8, 6)):
        assert Cuda(0).needs() != first


def test_a_thread_is_limited_as_long_as_it_lasts():
    before = thread_count(None)
    with limited(1):
        assert thread_count(None) == 1 and thread_count(3) == 3
    assert thread_count(None) == before

"""Object code mapped without LLVM: the same numbers, never writable code, nothing unknown run."""

import ctypes
import platform
import struct
import sys

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import Kernel, zoo
from hinge.graph.program import trace
from hinge.robot.answers import robot_kernel
from hinge.runtime import engine, loader
from hinge.runtime.cpu import Cpu
from hinge.runtime.symbols import symbols
from hinge.runtime.target import Target, host
from mechanisms import random_state

linux = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="ELF for x86-64"
)
pytestmark = linux

PLAIN = Target("x86-64", "", 128)


def sines(x, y):
    """Several results, calls of the C library, constants of several sizes, zeros."""
    z = np.array([np.sin(x[0]), np.cos(x[1]), hinge.atan2(x[2], y)])
    return z, np.outer(z, x), hinge.where(hinge.less(y, 0.0), y, np.sqrt(abs(y))), np.zeros(2)


def dynamics(name, *arrays, robot=None, dtype=np.float64):
    """A kernel of a robot, and arguments for a batch."""
    robot = robot or zoo.humanoid()
    states = [random_state(robot, seed) for seed in range(11)]
    given = [[getattr(s, {"tau": "qdd"}.get(a, a)) for s in states] for a in arrays]
    kernel = robot_kernel(robot.mechanism, name, arrays, (), dtype, Cpu(1))
    return kernel, [np.array(x, dtype) for x in given]


def of_sines(dtype=np.float64, target=None):
    rng = np.random.default_rng(0)
    kernel = Kernel(trace(sines, [(3,), ()]), "sines", ("x", "y"), dtype, Cpu(1, target or host()))
    # large angles take the way through the C library
    x, y = rng.normal(size=(11, 3)) * 10.0 ** rng.integers(0, 12, (11, 3)), rng.normal(size=11)
    return kernel, [x.astype(dtype), y.astype(dtype)]


def library_of(kernel):
    """The code of a kernel in memory."""
    return kernel._loaded._code.library


KERNELS = {
    "float64": of_sines,
    "float32": lambda: of_sines(np.float32),
    "plain x86-64": lambda: of_sines(target=PLAIN),
    "plain x86-64, float32": lambda: of_sines(np.float32, PLAIN),
    "unrolled": lambda: dynamics("forward_dynamics", "q", "qd", "tau"),
    "unrolled, float32": lambda: dynamics("inverse_dynamics", "q", "qd", "qdd", dtype=np.float32),
    "written past the caches": lambda: dynamics("mass_matrix", "q"),
    "looped": lambda: dynamics("inverse_dynamics", "q", "qd", "qdd", robot=zoo.snake(60)),
    "looped, float32": lambda: dynamics(
        "forward_dynamics", "q", "qd", "tau", robot=zoo.snake(60), dtype=np.float32
    ),
}


def without_loader(monkeypatch):
    """Libraries are LLVM's business from now on."""
    monkeypatch.setattr(engine, "load", lambda code, given: None)


def identical(a, b):
    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    return all(x.tobytes() == y.tobytes() for x, y in pairs)


@pytest.mark.parametrize("name", KERNELS)
def test_both_ways_give_the_same_bits(name, monkeypatch):
    kernel, batch = KERNELS[name]()
    one = [x[3].copy() for x in batch]
    strided = [np.repeat(x, 2, axis=0)[::2] for x in batch]
    got = [kernel(*a) for a in (batch, one, strided)]
    assert isinstance(library_of(kernel)._image, loader.Image)
    without_loader(monkeypatch)
    other, _ = KERNELS[name]()
    expected = [other(*a) for a in (batch, one, strided)]
    assert isinstance(library_of(other)._image, engine._Linked)
    assert all(identical(a, b) for a, b in zip(got, expected, strict=True))
    assert identical(got[0], got[2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lead", [(), (13,)])
def test_time_loops_both_ways(dtype, lead, monkeypatch):
    def run():
        robot = hinge.Robot(zoo.arm(4).mechanism, dtype)

        @robot.rollout(inputs=("tau",))
        def step(q, qd, tau):
            return q + 0.01 * qd, qd + 0.01 * robot.alg.forward_dynamics(q, qd, tau)

        rng = np.random.default_rng(1)
        q, qd = rng.normal(size=(2, *lead, 4))
        return step(q, qd, rng.normal(size=(20, *lead, 4))), step

    got, first = run()
    ((_, loaded),) = first._loaded.values()
    assert isinstance(loaded._code.library._image, loader.Image)
    without_loader(monkeypatch)
    assert identical(got, run()[0])


def test_code_compiled_in_pieces():
    """Several objects in one image: all code first, calls between them direct."""
    kernel, batch = KERNELS["unrolled"]()
    objects = loader.objects_in(kernel.artifact.code)
    assert len(objects) > 1 and loader.packed(objects) == kernel.artifact.code
    kernel(*batch)
    image = library_of(kernel)._image
    places = [image.address(name) for name in ("body0_f64", "run")]
    assert all(places) and max(places) - min(places) < len(kernel.artifact.code)
    # the last without the others
    assert loader.load(objects[-1], symbols()) is None


# what is in memory


def rights(address):
    """The rights of the page at an address."""
    with open("/proc/self/maps") as file:
        for line in file:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if begin <= address < end:
                return line.split()[1]
    return None


def test_code_is_never_writable_and_goes_with_its_kernel():
    kernel, batch = of_sines()
    kernel(*batch)
    address = library_of(kernel).address("run")
    assert library_of(kernel).address("none") == 0
    pages = np.frombuffer(library_of(kernel)._image._memory, np.uint8)
    begin, end = pages.ctypes.data, pages.ctypes.data + len(pages)
    assert begin <= address < end
    assert {rights(page) for page in range(begin, end, 4096)} == {"r-xp"}
    call, expected = kernel.call, kernel(*batch)
    del kernel
    # a function keeps its code
    assert rights(address) == "r-xp" and identical(call(*batch), expected)


def test_memory_that_may_not_be_executed(monkeypatch):
    monkeypatch.setattr(loader, "_protect", lambda *a: loader._need(False))
    kernel, batch = of_sines()
    kernel(*batch)
    assert isinstance(library_of(kernel)._image, engine._Linked)


def test_protection_that_fails():
    with pytest.raises(loader._UnknownError):
        loader._protect(1, 4096, 1)


# objects that are not as they should be


def code():
    return bytearray(of_sines()[0].artifact.code)


def sections(data):
    """Where the section headers are."""
    at, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    return [at + i * size for i in range(count)]


def section(data, kind, flags=0):
    """The first section header of a kind with some flags."""
    for at in sections(data):
        k, f = struct.unpack_from("<IQ", data, at + 4)
        if k == kind and f & flags == flags:
            return at
    return None


def content(data, kind):
    return struct.unpack_from("<Q", data, section(data, kind) + 24)[0]


def function(data):
    """Where the symbol of a function is that can be seen from outside."""
    at = content(data, 2)
    while data[at + 4] != 0x12:
        at += 24
    return at


def put(form, place, value):
    """A change of an object: a number at a place, which may depend on the object."""

    def change(data):
        struct.pack_into(form, data, place(data) if callable(place) else place, value)

    return change


UNKNOWN = {
    "not ELF": put("<4s", 0, b"MZ\0\0"),
    "32 bits": put("<B", 4, 1),
    "big-endian": put("<B", 5, 2),
    "a program": put("<H", 16, 2),
    "another machine": put("<H", 18, 183),
    "section headers of another size": put("<H", 58, 40),
    "section headers outside": put("<Q", 40, 10**9),
    "too many sections": put("<H", 60, 60000),
    "data to be written": put("<Q", lambda d: section(d, 1, 2) + 8, 7),
    "zeros to be made": put("<I", lambda d: section(d, 1, 2) + 4, 8),
    "no symbols": put("<I", lambda d: section(d, 2) + 4, 1),
    "code outside": put("<Q", lambda d: section(d, 1, 4) + 24, 10**9),
    "code without end": put("<Q", lambda d: section(d, 1, 4) + 32, 2**63),
    "an odd alignment": put("<Q", lambda d: section(d, 1, 4) + 48, 3),
    "a large alignment": put("<Q", lambda d: section(d, 1, 4) + 48, 1 << 21),
    "relocations without addends": put("<I", lambda d: section(d, 4) + 4, 9),
    "relocations of no section": put("<I", lambda d: section(d, 4) + 44, 1000),
    "half a relocation": put("<Q", lambda d: section(d, 4) + 32, 25),
    "an unknown relocation": put("<I", lambda d: content(d, 4) + 8, 1),
    "a place outside": put("<Q", lambda d: content(d, 4), 10**6),
    "a place at the end of numbers": put("<Q", lambda d: content(d, 4), 2**64 - 2),
    "a symbol outside": put("<I", lambda d: content(d, 4) + 12, 10**6),
    "a far addend": put("<q", lambda d: content(d, 4) + 16, 2**40),
    "a name outside": put("<I", lambda d: function(d), 10**6),
    "a symbol of no section": put("<H", lambda d: function(d) + 6, 1000),
    "a symbol beyond its section": put("<Q", lambda d: function(d) + 8, 2**40),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_not_known_is_not_loaded(what):
    data = code()
    assert loader.load(bytes(data), symbols()) is not None
    UNKNOWN[what](data)
    assert loader.load(bytes(data), symbols()) is None


def test_half_an_object_is_not_loaded():
    data = bytes(code())
    for size in [*range(0, 200, 7), *range(200, len(data), 997), len(data) - 1]:
        assert loader.load(data[:size], symbols()) is None


def test_any_damage_is_survived():
    """Not all of it can be seen here, that is what the digest is for.

    But an object is refused, or what it has to offer lies in the memory that was made for it; and
    memory of others is not touched: those loaded before still compute what they did.
    """
    kernel, batch = of_sines()
    expected = kernel(*batch)
    data, rng = bytes(kernel.artifact.code), np.random.default_rng(0)
    tables = [p for p in range(len(data)) if not 4096 <= p < len(data) - 8192]
    refused = 0
    for place in rng.choice(tables, 300):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        image = loader.load(bytes(damaged), symbols())
        if image is None:
            refused += 1
            continue
        memory = np.frombuffer(image._memory, np.uint8)
        for address in image.functions.values():
            assert 0 <= address - memory.ctypes.data <= len(memory)
    assert 0 < refused < 300
    assert identical(kernel(*batch), expected)


def test_a_name_that_nobody_has():
    given = dict(symbols())
    del given["hinge_sin"]
    assert loader.load(bytes(code()), given) is None


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems(system, monkeypatch):
    data = bytes(code())
    with monkeypatch.context() as m:
        m.setattr(sys, "platform", system)
        assert loader.load(data, symbols()) is None
    assert loader.load(data, symbols()) is not None


def test_a_call_too_far_goes_through_the_table():
    """Functions of Python and of C are more than 2 GB away from fresh memory, or may be."""
    text = """
        declare double @far(double)
        @near = constant double 3.0
        define double @twice(double %x) nounwind {
          %y = call double @far(double %x)
          %z = call double @far(double %y)
          %c = load double, ptr @near
          %s = fadd double %z, %c
          ret double %s
        }"""
    data = engine.compile_text(text, host())
    far = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: 10 * x + 1)
    image = loader.load(data, {"far": ctypes.cast(far, ctypes.c_void_p).value})
    twice = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(image.address("twice"))
    assert twice(2.0) == 214.0


# a new process

CHILD = """
import sys
import numpy as np
import hinge
robot = hinge.zoo.arm(7)
q = np.linspace(0, 1, 7)
tau = robot.inverse_dynamics(q, q, q)
assert robot.inverse_dynamics(q, q, q).tobytes() == tau.tobytes()
print("llvmlite" in sys.modules, tau.tobytes().hex())
"""


def test_llvm_is_not_loaded_for_what_is_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (first, tau), (second, again) = (run_python(CHILD).split() for _ in range(2))
    assert (first, second) == ("True", "False") and tau == again

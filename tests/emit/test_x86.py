"""Machine code without LLVM: bytes of instructions against LLVM's assembler, results against LLVM.

What is computed has the bits that LLVM's code has: the same operations, fused where it fuses them.
"""

import platform
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import hinge
from emit.everything import EDGES, both_dtypes, every_operation
from hinge import zoo
from hinge.emit.llvm import module
from hinge.emit.x86.instructions import MORE, PASSED, Code, Memory, instructions
from hinge.emit.x86.object import Assembled, object_file
from hinge.emit.x86.piece import Places, UnknownError, machine_code
from hinge.graph.interpret import interpret
from hinge.graph.program import Program, trace
from hinge.graph.workspace import Step
from hinge.robot.answers import robot_kernel
from hinge.runtime import engine, loader
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel
from hinge.runtime.target import Target, host
from mechanisms import assert_same_bits, random_state

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="ELF for x86-64"
)
here = pytest.mark.skipif(not host().flavor("double").direct, reason="no AVX-512")

FORMS = [(lanes, word) for word in (8, 4) for lanes in (1, 16 // word, 32 // word, 64 // word)]
NAMES = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "min": "min", "max": "max"}
NAMES |= {"sqrt": "sqrt", "and": "pand", "xor": "pxor", "choose": "blendm"}
FUSED = {"plus": "fmadd", "minus": "fmsub", "from": "fnmadd"}
NAMES |= {f"{own}{k}": f"{x}{k}" for own, x in FUSED.items() for k in (132, 213, 231)}
REGISTERS = (0, 5, 8, 15, 16, 23, 24, 31)
OFFSETS = (0, 8, 64, -64, 4, 12, 127 * 64, 128 * 64, -128 * 64, 1 << 20)
BASES = dict(
    zip((*PASSED, *MORE), ("di", "si", "dx", "cx", "8", "9", "ax", "10", "11"), strict=True)
)


def assembled(lines):
    """What LLVM's assembler makes of AT&T's syntax."""
    llvm = engine._llvm()
    llvm.initialize_native_asmparser()
    features = "+avx512f,+avx512vl,+avx512dq"
    text = "\n".join(f'module asm "{line}"' for line in lines)
    code = engine.compile_text(text, Target("x86-64", features, 512))
    object = loader._Loading(code)
    (section,) = np.flatnonzero(object.sections["flags"] & 4)
    return object.read(int(section), np.dtype("u1")).tobytes()


def spelt(name, lanes, word):
    """LLVM's name of an instruction."""
    ending = ("d", "q") if name in ("and", "xor") else ("ps", "pd")
    return f"v{NAMES[name]}{ending[word == 8]}"


def address(memory, lanes, word, broadcast=True):
    many = max(lanes, 16 // word)
    return f"{memory.offset}(%r{BASES[memory.base]})" + (
        f"{{1to{many}}}" if memory.all_lanes and broadcast else ""
    )


def vector(register, lanes, word):
    return f"%{ {16: 'x', 32: 'y', 64: 'z'}[max(16, lanes * word)] }mm{register}"


@pytest.mark.parametrize(("lanes", "word"), FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_has_the_bytes_of_an_assembler(name, lanes, word):
    code, lines, what = Code(word), [], instructions(lanes, word)[name]
    mask, masked = (1, "{%k1}") if name == "choose" else (0, "")
    lasts = [*REGISTERS]
    lasts += [Memory(b, o, a or lanes == 1) for b in BASES for o in OFFSETS[:5] for a in (0, 1)]
    lasts += [Memory(7, o, a or lanes == 1) for o in OFFSETS for a in (False, True)]
    for i, last in enumerate(lasts):
        to, second = REGISTERS[i % 8], REGISTERS[i * 3 % 8]
        code.put(what, to, 0 if name == "sqrt" else second, last, mask)
        place = vector(last, lanes, word) if isinstance(last, int) else address(last, lanes, word)
        read = [place] if name == "sqrt" else [place, vector(second, lanes, word)]
        given = ", ".join([*read, vector(to, lanes, word)])
        lines.append(f"{{evex}} {spelt(name, lanes, word)} {given}{masked}")
    assert bytes(code.bytes) == assembled(lines)


@pytest.mark.parametrize(("lanes", "word"), FORMS)
def test_moves_have_the_bytes_of_an_assembler(lanes, word):
    """Loads, stores, copies, numbers for all lanes, comparisons."""
    code, lines, what = Code(word), [], instructions(lanes, word)
    packed, one = ("pd", "sd") if word == 8 else ("ps", "ss")
    spread = "vmovddup" if word == 8 and lanes <= 2 else f"vbroadcast{one}"
    load = spread if lanes == 1 else f"vmovu{packed}"
    store = f"vmov{one}" if lanes == 1 else f"vmovu{packed}"
    for register, (base, offset) in product(REGISTERS, product(BASES, OFFSETS)):
        at, own = Memory(base, offset, lanes == 1), vector(register, lanes, word)
        place = address(at, lanes, word, broadcast=False)
        code.put(what["load"], register, 0, at)
        code.put(what["store"], register, 0, at)
        code.put(what["spread"], register, 0, Memory(base, offset, True), 0x81)
        lines += [f"{{evex}} {load} {place}, {own}", f"{{evex}} {store} {own}, {place}"]
        lines.append(f"{{evex}} {spread} {place}, {own}{{%k1}}{{z}}")
    for a, b in product(REGISTERS, repeat=2):
        first, last = vector(a, lanes, word), vector(b, lanes, word)
        code.put(what["copy"], a, 0, b)
        code.put(what["compare"], 1, a, b, more=b"\x11")
        code.put(what["compare"], 1, a, Memory(9, 24, True), more=b"\x04")
        lines += [f"{{evex}} vmova{packed} {last}, {first}"]
        lines += [f"vcmp{packed} $17, {last}, {first}, %k1"]
        lines += [f"vcmp{packed} $4, {address(Memory(9, 24, True), lanes, word)}, {first}, %k1"]
    assert bytes(code.bytes) == assembled(lines)


def test_pointers_from_the_stack_and_constants_behind_the_code():
    code = Code(8)
    for to, offset in ((0, 200), (10, 208), (11, 1 << 20)):
        code.fetch_pointer(to, offset)
    code.put(instructions(8, 8)["add"], 1, 2, code.constant(b"12345678"))
    code.put(instructions(8, 8)["compare"], 1, 2, code.constant(b"abcdefgh"), more=b"\4")
    lines = ["movq 200(%rsp), %rax", "movq 208(%rsp), %r10", f"movq {1 << 20}(%rsp), %r11"]
    lines += ["vaddpd one(%rip){1to8}, %zmm2, %zmm1", "vcmppd $4, two(%rip){1to8}, %zmm2, %k1"]
    lines += ["vzeroupper", "ret", ".balign 8, 0xcc", "one:", ".ascii \\2212345678\\22"]
    lines += ["two:", ".ascii \\22abcdefgh\\22"]
    assert code.finished() == assembled(lines)


def test_an_object_file_is_loaded_by_both(monkeypatch):
    """mov eax, n; ret: by our loader and by LLVM."""
    import ctypes

    parts = [Assembled(f"f{n}", b"\xb8" + n.to_bytes(4, "little") + b"\xc3") for n in (7, 11)]
    code, kind = object_file(parts), ctypes.CFUNCTYPE(ctypes.c_int)
    for _ in range(2):
        library = engine.Library(code, host())
        assert [kind(library.address(f"f{n}"))() for n in (7, 11)] == [7, 11]
        monkeypatch.setattr(engine, "load", lambda code, given: None)


# whole programs


def both_ways(monkeypatch, make):
    """What `make` gives with machine code written here, and with all of it by LLVM."""
    flavor = Target.flavor
    monkeypatch.setattr(module, "MOST_WITH_MAIN", 0)
    monkeypatch.setattr(module, "LEAST_SINGLE_DIRECT", 0)
    monkeypatch.setattr(engine.cache, "load", lambda key: None)
    direct = make()
    assert any(b"body" in x for x in loader.objects_in(direct.artifact.code)[:-1])
    monkeypatch.setattr(Target, "flavor", lambda *a: replace(flavor(*a), direct=False))
    other = make()
    assert direct.artifact.code != other.artifact.code
    return direct, other


@here
@both_dtypes
def test_every_operation_is_that_of_interpret(dtype, monkeypatch):
    every = every_operation()
    values = tuple(v for v in every.values if v.op not in ("atan2", "sin", "cos"))
    program = Program("every", every.inputs, ((len(values),),), values)
    kernel, _ = both_ways(monkeypatch, lambda: Kernel(program, dtype=dtype, backend=Cpu(1)))
    with np.errstate(over="ignore"):
        x = np.array(list(product(EDGES, repeat=3)), dtype=dtype)
    (expected,) = interpret(program, [x])
    assert_same_bits(kernel(x), expected)
    assert_same_bits(np.array([kernel.call(row) for row in x]), expected)


@here
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics_derivatives"])
def test_dynamics_have_the_bits_of_llvm(name, monkeypatch):
    """In single precision, where some constants become 1, LLVM sees other products to fuse."""
    robot, last = zoo.humanoid(), "tau" if name == "forward_dynamics" else "qdd"
    arrays = ("q", "qd", last)
    kernels = both_ways(
        monkeypatch, lambda: robot_kernel(robot.mechanism, name, arrays, (), backend=Cpu(1))
    )
    states = [random_state(robot, seed) for seed in range(11)]
    batch = [np.array([getattr(s, a) for s in states]) for a in ("q", "qd", "qdd")]
    for given in (batch, [x[0] for x in batch]):
        for x, y in zip(*(flat(kernel(*given)) for kernel in kernels), strict=True):
            assert_same_bits(x, y)


def flat(results):
    return results if isinstance(results, tuple) else (results,)


@here
@both_dtypes
@pytest.mark.parametrize("count", [5, 7, 8, 20])
def test_many_arguments_and_constants_everywhere(count, dtype, monkeypatch):
    """Pointers in further registers, and where there are none left from the stack."""

    def fn(*x):
        s = sum(x)
        p = [s * a + 0.5 for a in x] + [3.0 - s / a for a in x] + [s * s - 2.0 * a for a in x]
        return [hinge.where(hinge.less(a, 0.25), 1.0, b) for a, b in zip(p, p[1:], strict=False)], s

    program = trace(lambda *x: tuple(np.array(y) for y in fn(*x)), [()] * count)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 9)).astype(dtype)
    monkeypatch.setattr(module, "MOST_WITH_MAIN", 0)
    monkeypatch.setattr(module, "LEAST_SINGLE_DIRECT", 0)
    kernel = Kernel(program, dtype=dtype, backend=Cpu(1))
    for got, expected in zip(kernel(*x), by_text(kernel, x), strict=True):
        assert_same_bits(got, expected)
    assert b"body0" in loader.objects_in(kernel.artifact.code)[0]


def by_text(kernel, x):
    """The same from text, which LLVM compiles."""
    settings = kernel._source.settings
    flavor = replace(host().flavor(settings.scalar), direct=False)
    code = engine.compile_text(module.module_text(kernel.program, flavor, settings.strict), host())
    made = kernel.artifact._replace(code=code)
    results = [np.empty((x.shape[1], *shape), x.dtype) for shape in made.outputs]
    Cpu(1).load(made, settings).run([*x], results, (x.shape[1],))
    return results


def test_more_values_at_once_than_registers_are_left_to_llvm():
    program = trace(lambda x: np.sqrt(x), [(33,)])
    steps = [Step(node, (node.args[0].id,)) for node in program.values]
    places = Places(1, [(0, i) for i in range(33)], {}, {})
    assert machine_code(steps[:32], [], places, 8, 8)
    with pytest.raises(UnknownError):
        machine_code(steps, [], places, 8, 8)

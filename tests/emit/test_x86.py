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
from hinge.graph.operations import library_functions
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
here = pytest.mark.skipif(not host().flavor("double").direct, reason="no AVX2")

# lanes, bytes of a number, registers: 32 with AVX-512, 16 with AVX2
FORMS = [(lanes, word, 32) for word in (8, 4) for lanes in (1, 16 // word, 32 // word, 64 // word)]
FORMS += [(lanes, word, 16) for word in (8, 4) for lanes in (1, 16 // word, 32 // word)]
FUSED = {"plus": "fmadd", "minus": "fmsub", "from": "fnmadd"}
NAMES = {f"{own}{k}": f"{x}{k}" for own, x in FUSED.items() for k in (132, 213, 231)}
NAMES |= {name: name for name in ("add", "sub", "mul", "div", "min", "max", "sqrt")}
REGISTERS = (0, 5, 8, 15, 16, 23, 24, 31)
OFFSETS = (0, 8, 64, -64, 4, 12, 127 * 64, 128 * 64, -128 * 64, 1 << 20)
BASES = dict(
    zip((*PASSED, *MORE), ("di", "si", "dx", "cx", "8", "9", "ax", "10", "11"), strict=True)
)

forms = pytest.mark.parametrize(("lanes", "word", "registers"), FORMS)


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


def address(memory, lanes, word, broadcast=False):
    many = max(lanes, 16 // word)
    ending = f"{{1to{many}}}" if broadcast and memory.all_lanes else ""
    return f"{memory.offset}(%r{BASES[memory.base]})" + ending


def vector(register, lanes, word):
    return f"%{ {16: 'x', 32: 'y', 64: 'z'}[max(16, lanes * word)] }mm{register}"


def places(lanes, registers, numbers=True):
    """Last operands: registers and memory; numbers: also such that are for all lanes."""
    ways = (True,) if lanes == 1 else (False, True) if registers == 32 and numbers else (False,)
    near, far = product(BASES, OFFSETS[:5], ways), product((7,), OFFSETS, ways)
    return [*REGISTERS[: registers // 4], *(Memory(*place) for place in (*near, *far))]


def endings(word):
    """Of names of instructions: on vectors, on one number."""
    return ("pd", "sd") if word == 8 else ("ps", "ss")


@forms
@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_has_the_bytes_of_an_assembler(name, lanes, word, registers):
    code, lines, what = Code(word), [], instructions(lanes, word, registers)[name]
    some, ending = REGISTERS[: registers // 4], endings(word)[lanes == 1]
    for i, last in enumerate(places(lanes, registers)):
        to, second = some[i % len(some)], some[i * 3 % len(some)]
        reads_one = name == "sqrt" and lanes > 1
        code.put(what, to, 0 if reads_one else second, last)
        if isinstance(last, int):
            may_swap = name in ("add", "mul") and lanes * word < 64
            if may_swap and second < 8 <= last < 16 and to < 16:
                # the assembler does that itself, but of vectors only
                second, last = last, second
            read = [vector(last, lanes, word)]
        else:
            read = [address(last, lanes, word, lanes > 1)]
        read += [] if reads_one else [vector(second, lanes, word)]
        lines.append(f"v{NAMES[name]}{ending} {', '.join(read)}, {vector(to, lanes, word)}")
    assert bytes(code.bytes) == assembled(lines)


@forms
@pytest.mark.parametrize("name", ["and", "xor", "choose"])
def test_bits_and_choices_have_the_bytes_of_an_assembler(name, lanes, word, registers):
    code, lines, what = Code(word), [], instructions(lanes, word, registers)[name]
    masks, packed = registers == 32, endings(word)[0]
    spelt = f"vp{name}{'q' if word == 8 else 'd'}" if masks else f"v{name}{packed}"
    if name == "choose":
        spelt = f"v{'blendm' if masks else 'blendv'}{packed}"
    some = REGISTERS[: registers // 4]
    for i, last in enumerate(places(lanes, registers)):
        to, second, signs = (some[i * k % len(some)] for k in (1, 3, 5))
        chosen, more = "", b""
        if name == "choose" and not masks:
            chosen, more = f"{vector(signs, lanes, word)}, ", bytes((signs << 4,))
        code.put(what, to, second, last, int(name == "choose" and masks), more)
        own = isinstance(last, int)
        place = vector(last, lanes, word) if own else address(last, lanes, word, masks)
        given = f"{chosen}{place}, {vector(second, lanes, word)}, {vector(to, lanes, word)}"
        lines.append(f"{'{evex} ' * masks}{spelt} {given}{'{%k1}' * (masks and name == 'choose')}")
    assert bytes(code.bytes) == assembled(lines)


@forms
def test_moves_have_the_bytes_of_an_assembler(lanes, word, registers):
    """Loads, stores, copies, numbers for all lanes."""
    code, lines, what = Code(word), [], instructions(lanes, word, registers)
    packed, one = endings(word)
    spread = "vmovddup" if word == 8 and lanes <= 2 else f"vbroadcast{one}"
    move = f"vmov{one}" if lanes == 1 else f"vmovu{packed}"
    some = REGISTERS[: registers // 4]
    for register, (base, offset) in product(some, product(BASES, OFFSETS)):
        at, own = Memory(base, offset, lanes == 1), vector(register, lanes, word)
        place = address(at, lanes, word)
        code.put(what["load"], register, 0, at)
        code.put(what["store"], register, 0, at)
        lines += [f"{move} {place}, {own}", f"{move} {own}, {place}"]
        if registers == 32:
            code.put(what["spread"], register, 0, Memory(base, offset, True))
            code.put(what["spread"], register, 0, Memory(base, offset, True), 0x81)
            lines += [f"{spread} {place}, {own}", f"{spread} {place}, {own}{{%k1}}{{z}}"]
    for a, b in product(some, repeat=2):
        code.put(what["copy"], a, 0, b)
        # else it would write the other of two opcodes
        form = "{vex3} " if a < 8 <= b < 16 and lanes * word < 64 else ""
        lines.append(f"{form}vmova{packed} {vector(b, lanes, word)}, {vector(a, lanes, word)}")
    assert bytes(code.bytes) == assembled(lines)


@forms
def test_comparisons_have_the_bytes_of_an_assembler(lanes, word, registers):
    code, lines, what = Code(word), [], instructions(lanes, word, registers)["compare"]
    masks, (packed, one) = registers == 32, endings(word)
    spelt = f"vcmp{one if lanes == 1 and not masks else packed}"
    at = Memory(9, 24, masks)
    for a, b in product(REGISTERS[: registers // 4], repeat=2):
        first, last = vector(a, lanes, word), vector(b, lanes, word)
        to, result = (1, "%k1") if masks else (b, last)
        code.put(what, to, a, b, more=b"\x11")
        code.put(what, to, a, at, more=b"\x04")
        lines.append(f"{spelt} $17, {last}, {first}, {result}")
        lines.append(f"{spelt} $4, {address(at, lanes, word, masks)}, {first}, {result}")
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
    by_llvm = {*library_functions(), "floor", "rint", "sign"}
    values = tuple(v for v in every.values if v.op not in by_llvm)
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


@here
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sines_of_later_angles_come_between_pieces_of_bytes(monkeypatch, dtype):
    """Of more angles than a vector has, and of results and arguments among them."""

    def fn(x, y):
        first = np.sin(x) + y
        second = np.cos(first * y) * x
        return first, np.sin(second + first), np.sin(np.cos(x))

    x = np.random.default_rng(4).normal(size=(2, 37, 11)).astype(dtype)
    monkeypatch.setattr(module, "MOST_WITH_MAIN", 10)
    monkeypatch.setattr(module, "LEAST_SINGLE_DIRECT", 10)
    for program in (trace(fn, [(11,), (11,)]), trace(lambda x: np.sin(np.sin(x)), [(11,)])):
        given = x[: len(program.inputs)]
        kernel = Kernel(program, "turning", dtype=dtype)
        text, *others = module.module_texts(program, host().flavor(kernel._source.settings.scalar))
        assert all(isinstance(part, bytes) for part in others) and "call void @angles_" in text
        found = kernel(*given)
        found = found if isinstance(found, tuple) else (found,)
        for part, exact in zip(found, interpret(program, [*given.astype(float)]), strict=True):
            assert np.abs(part - exact).max() <= 20 * np.finfo(dtype).eps
        alone = kernel(*(a[5] for a in given))
        alone = alone if isinstance(alone, tuple) else (alone,)
        assert all(np.array_equal(a, b[5]) for a, b in zip(alone, found, strict=True))


def test_more_values_at_once_than_registers_are_left_to_llvm():
    program = trace(lambda x: np.sqrt(x), [(33,)])
    steps = [Step(node, (node.args[0].id,)) for node in program.values]
    places = Places(1, [(0, i) for i in range(33)], {}, {})
    for lanes, registers in ((8, 32), (4, 16)):
        assert machine_code(steps[:registers], [], places, lanes, 8, registers)
        with pytest.raises(UnknownError):
            machine_code(steps[: registers + 1], [], places, lanes, 8, registers)

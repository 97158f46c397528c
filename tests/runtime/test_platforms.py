"""Other Pythons and other systems, as far as they can be tried on this one."""

import os
import platform
import re
import struct
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import zoo
from hinge.emit.llvm.copies import copies_text
from hinge.emit.llvm.door import door_text
from hinge.emit.llvm.held import held_text
from hinge.emit.llvm.module import module_text
from hinge.emit.llvm.team import team_text
from hinge.graph.operations import library_functions
from hinge.graph.program import trace
from hinge.robot.answers import robot_kernel
from hinge.runtime import engine, loader, symbols
from hinge.runtime.target import Target, host
from marks import short_way
from public_tour import CONDITIONS
from windows_code import declarations

TESTS = Path(__file__).parents[1]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="leaves Linux")
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="code for x86-64")


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """What public functions return in a fresh process under a condition."""
    folder = tmp_path_factory.mktemp("tours")

    def run(condition, check=""):
        file = folder / f"{condition}.npz"
        code = f"import public_tour as t; t.main({str(file)!r}, {condition!r}); {check}"
        places = {k: str(folder / condition) for k in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")}
        path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        run_python(code, **places, PYTHONPATH=path)
        with np.load(file) as arrays:
            return dict(arrays)

    return run


@pytest.fixture(scope="module")
def usual(tour):
    return tour("as it is", f"assert t.fast() == {engine.fast_calls_work()}")


def agree(got, expected):
    assert got.keys() == expected.keys()
    for name, x in expected.items():
        eps = np.finfo(np.float32 if name.startswith("float32") else float).eps
        assert np.abs(got[name] - x).max() <= 1e3 * eps * max(1.0, np.abs(x).max()), name


@short_way
@pytest.mark.parametrize("condition", CONDITIONS[:3])
def test_all_works_without_the_c_interface_of_python(tour, usual, condition):
    agree(tour(condition, "assert not t.fast()"), usual)


@on_linux
@pytest.mark.parametrize("condition", CONDITIONS[3:])
def test_all_works_without_the_devices_of_linux(tour, usual, condition):
    team = (
        "from hinge.runtime.team import HERE; assert HERE[0] == 0" if condition == "windows" else ""
    )
    agree(tour(condition, team), usual)


@on_linux
@on_x86
@short_way
def test_code_for_windows_computes_the_same(tour, usual):
    entered = "import windows_code; assert len(windows_code._kept()) > 20"
    agree(tour("windows code", entered), usual)


# names that objects leave open

SYSTEMS = {
    "Linux, x86-64": ("x86_64-unknown-linux-gnu", Target("x86-64-v3", "", 256)),
    "Linux, ARM": ("aarch64-unknown-linux-gnu", Target("generic", "", 128)),
    "macOS, x86-64": ("x86_64-apple-darwin", Target("x86-64-v3", "", 256)),
    "macOS, ARM": ("arm64-apple-darwin", Target("apple-m1", "", 128)),
    "Windows": ("x86_64-pc-windows-msvc-elf", Target("x86-64-v3", "", 256)),
    "Windows, AVX-512": ("x86_64-pc-windows-msvc-elf", Target("x86-64-v4", "", 512)),
}


SYMBOLS = set(re.findall(r"@(hinge_\w+)", "\n".join(declarations())))


def programs():
    """Unrolled and looped dynamics, and functions that call the C library."""
    for robot in (zoo.arm(7), zoo.snake(60)):
        arrays = ("q", "qd", "tau")
        yield robot_kernel(robot.mechanism, "forward_dynamics", arrays, (), np.float64).program
    yield trace(lambda x: (np.sin(x), hinge.atan2(x[0], x[1])), [(9,)])


@cache
def objects(system):
    """All kinds of objects for a system."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, target = SYSTEMS[system]
    texts = [door_text(), copies_text(), held_text(target.flavor("double"), python=True)]
    if triple.startswith(platform.machine()):
        texts.append(team_text())
    for scalar in ("double", "float"):
        flavor = target._replace(features="+fma").flavor(scalar)
        texts += [module_text(program, flavor, True) for program in programs()]
    with pytest.MonkeyPatch.context() as m:
        m.setattr(engine, "_triple", lambda: triple)
        return [engine.compile_text(text, target) for text in texts]


@pytest.mark.parametrize("system", SYSTEMS)
def test_objects_need_nothing_that_is_not_given(system):
    given = {*SYMBOLS, "__chkstk"} if "Windows" in system else SYMBOLS
    needed = set().union(*(names_left_open(code) for code in objects(system)))
    assert {"hinge_sin", "hinge_new_array"} <= needed <= given


@pytest.mark.parametrize("system", [name for name in SYSTEMS if "Windows" in name])
def test_code_for_windows_reaches_everything(system):
    """Whole addresses only: no offset can be too short."""
    absolute = 1
    for code in objects(system):
        assert all((r["kind"] == absolute).all() for r in relocations(code))


def sections(code):
    """The section headers of an ELF object."""
    header = loader._HEADER.unpack_from(code)
    return np.frombuffer(code, loader._SECTION, header[12], header[6])


def content(code, section, dtype):
    at, size = int(section["at"]), int(section["size"])
    return np.frombuffer(code[at : at + size], dtype)


def relocations(code):
    found = sections(code)
    return [content(code, s, loader._RELOCATION) for s in found[found["kind"] == 4]]


def names_left_open(code):
    """The names that an ELF or Mach-O object uses and does not define."""
    if code[:4] == b"\xcf\xfa\xed\xfe":
        return set(_open_in_mach_o(code))
    found = sections(code)
    (table,) = found[found["kind"] == 2]
    names = int(found[table["link"]]["at"])
    entries = content(code, table, loader._SYMBOL)[1:]
    return {_text(code, names + int(e["name"])) for e in entries[entries["section"] == 0]}


def _open_in_mach_o(code):
    """Commands follow the header; that of kind 2 tells where symbols and their names are."""
    at = 32
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        kind, size = struct.unpack_from("<II", code, at)
        if kind == 2:
            first, count, names = struct.unpack_from("<III", code, at + 8)
            for i in range(count):
                name, flags = struct.unpack_from("<IB", code, first + 16 * i)
                if flags & 0x0F == 1:
                    yield _text(code, names + name).removeprefix("_")
        at += size


def _text(code, at):
    return code[at : code.index(b"\0", at)].decode()


# pieces


def test_the_quick_tests_are_there():
    lines = (TESTS.parent / ".ci/quick_tests").read_text().splitlines()
    assert all((TESTS.parent / line).exists() for line in lines if not line.startswith("#"))


@short_way
def test_every_name_has_an_address():
    found = symbols.symbols()
    # of the C library also what only C calls
    of_c = {f"hinge_{name}" for name in library_functions()}
    assert SYMBOLS | of_c == set(found) and all(found.values())


def test_names_of_windows(monkeypatch):
    asked = []

    class Library:
        def __init__(self, name):
            asked.append(name)
            self.__dict__["__chkstk"] = _FUNCTION

        def __getattr__(self, name):
            return _FUNCTION

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(symbols.ctypes, "CDLL", Library)
    found = symbols.symbols.__wrapped__()
    assert asked == ["ucrtbase", "ntdll"] and found["__chkstk"] == found["hinge_sin"] != 0


_FUNCTION = symbols.ctypes.pythonapi.Py_IncRef


def test_a_c_library_of_its_own(monkeypatch):
    """Where the process itself has no sine, the library of mathematics is looked for."""
    real, asked = symbols.ctypes.CDLL, []

    def library(name):
        asked.append(name)
        return real(name) if name else object()

    monkeypatch.setattr(symbols.ctypes, "CDLL", library)
    assert symbols._math_library().sin and len(asked) == 2


def test_a_module_without_calls_from_python_needs_nothing_of_it():
    program = trace(lambda x: np.sin(x), [(3,)])
    text = module_text(program, host().flavor("double"), python=False)
    assert "hinge_sin" in text and not any(name in text for name in symbols.python_symbols())

"""Which machine this is, asked of the system first and of LLVM where the system does not tell."""

import builtins
import importlib.util
import sys

import numpy as np
import pytest

from hinge import Kernel
from hinge.graph.program import trace
from hinge.runtime import target
from hinge.runtime.cpu import Cpu

INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
stepping\t: 6
cpu MHz\t\t: 2900.000
flags\t\t: fpu sse2 fma avx avx2 {}

processor\t: 1
flags\t\t: none
"""


def test_linux_tells_which_x86_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(target.platform, "machine", lambda: "x86_64")
    file = tmp_path / "cpuinfo"
    file.write_text(INTEL.format("avx512f"))
    name, flags = target._told_by_linux(str(file))
    assert name == "GenuineIntel 6 106 6" and flags[-3:] == ["avx", "avx2", "avx512f"]
    assert target._bits(flags) == 512
    file.write_text(INTEL.format(""))
    assert target._bits(target._told_by_linux(str(file))[1]) == 256
    file.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert target._told_by_linux(str(file)) is None
    assert target._told_by_linux(str(tmp_path / "none")) is None


def test_an_emulated_arm_does_not_trust_the_file_of_its_host(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(INTEL.format("avx512f"))
    monkeypatch.setattr(target.platform, "machine", lambda: "aarch64")
    assert target._told_by_linux(str(tmp_path / "cpuinfo")) is None


def test_llvm_tells_where_the_system_does_not(monkeypatch):
    here = target.host()
    monkeypatch.setattr(target, "_told_by_linux", lambda: None)
    told = target.host.__wrapped__()
    assert not told.native and told.flavor("double") == here.flavor("double")
    program = trace(lambda x: x @ x * np.sin(x), [(3,)])
    x = np.linspace(-1, 9, 21).reshape(7, 3)
    by_name, by_itself = (Kernel(program, backend=Cpu(target=t)) for t in (told, here))
    assert by_name(x).tobytes() == by_itself(x).tobytes()


def test_one_llvm_is_told_from_another(tmp_path, monkeypatch):
    version = target.llvm_version.__wrapped__
    stamps = [version()]
    assert version() == stamps[0]
    (tmp_path / "llvmlite/binding").mkdir(parents=True)
    library, words = tmp_path / "llvmlite/binding/lib.so", tmp_path / "llvmlite/_version.py"
    (tmp_path / "llvmlite/__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "llvmlite", raising=False)
    importlib.invalidate_caches()
    for file, text in ((words, "1"), (words, "2"), (library, "code"), (library, "more code")):
        if not words.exists():
            words.write_text("0")
        file.write_text(text)
        stamps.append(version())
    assert len(set(stamps)) == 5 and version() == stamps[-1]


def test_a_wrapper_without_files(monkeypatch):
    import llvmlite

    monkeypatch.setattr(target, "find_spec", lambda name: None)
    assert target.llvm_version.__wrapped__().startswith(llvmlite.__version__)


@pytest.mark.skipif(not target.host().native, reason="LLVM is asked")
def test_llvm_is_not_asked_in_vain(monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments):
        if name.startswith("llvmlite"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert target.host.__wrapped__() == target.host() and target.llvm_version.__wrapped__()


@pytest.mark.parametrize(
    ("features", "bits", "registers", "direct"),
    [
        ("+avx,+avx2,+fma", 256, 16, True),
        ("+avx,+avx2", 256, 16, False),
        ("+sse4.2", 128, 16, False),
        ("+avx2,+fma,+avx512f,+avx512vl,+avx512dq", 512, 32, True),
        ("+avx2,+fma,+avx512f", 512, 16, False),
        ("+avx2,+fma,+avx512f,+avx512vl", 512, 32, False),
    ],
)
def test_which_machines_have_code_written_as_bytes(features, bits, registers, direct, monkeypatch):
    monkeypatch.setattr(target, "_is_elf_of_x86", lambda: True)
    monkeypatch.setattr(target, "_is_arm", lambda: False)
    flavor = target.Target("any", features, bits).flavor("double")
    assert (flavor.registers, flavor.direct) == (registers, direct)
    monkeypatch.setattr(target, "_is_elf_of_x86", lambda: False)
    assert not target.Target("any", features, bits).flavor("double").direct

"""Emitted C through a compiler: what comes out of it, and how it is compared."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from hinge.emit.c.source import c_source

CC = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off"]
STRICT = ["-Wshadow", "-Wconversion", "-Wdouble-promotion", "-Wmissing-prototypes"]
SCALARS = {"double": np.float64, "float": np.float32}

compiled = pytest.mark.skipif(CC is None, reason="no C compiler (gcc, clang or cc) on the path")
both = pytest.mark.parametrize("scalar", SCALARS)


def compile_c(source, folder, *options):
    """The path of what the compiler makes of a source; any warning fails."""
    path = folder / "program.c"
    path.write_text(source)
    target = folder / "program.out"
    command = [CC, *FLAGS, *STRICT, *options, str(path), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


class Compiled:
    """A program through the C compiler, called on arrays one sample at a time."""

    def __init__(self, program, scalar, folder, *options, **names):
        self.program, self.dtype = program, SCALARS[scalar]
        self.source = c_source(program, scalar, **names)
        name = re.search(r"^void (\w+)\(", self.source, re.M)[1]
        library = ctypes.CDLL(str(compile_c(self.source, folder, "-shared", "-fPIC", *options)))
        self._function = getattr(library, name)
        self._function.restype = None

    def __call__(self, *arguments):
        given = [np.ascontiguousarray(a, self.dtype) for a in arguments]
        results = [np.full(shape, 7.0, self.dtype) for shape in self.program.outputs]
        self._function(*(ctypes.c_void_p(a.ctypes.data) for a in [*given, *results]))
        return results


def assert_lonely(source, folder, functions):
    """No other function is called, and no variable is outside of functions."""
    if shutil.which("nm") is None:
        pytest.skip("no nm to look into objects")
    path = compile_c(source, folder, "-c")
    table = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in table.splitlines()]
    # a sine and a cosine of one angle may become one call
    allowed = {name + f for name in {*functions, "sincos"} for f in ("", "f")}
    assert {name for kind, name in symbols if kind == "U"} <= allowed
    assert not [name for kind, name in symbols if kind in "DdBbCGgSs"]
    assert len([name for kind, name in symbols if kind == "T"]) == 1
    assert set(re.findall(r"#include (.*)", source)) == {"<math.h>"}

"""Headers for CUDA, compiled as C++ and run, against `interpret`; with nvcc, where there is one."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from emit.everything import EDGES, every_operation
from hinge import zoo
from hinge.emit.c.dialect import CUDA
from hinge.emit.c.source import c_source
from hinge.graph.interpret import interpret
from hinge.specialize.programs import robot_program
from loop_cases import looped, swapping
from with_c import SCALARS, both

CXX = shutil.which("g++") or shutil.which("clang++")
NVCC = shutil.which("nvcc")
FLAGS = ["-std=c++11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off"]

with_cxx = pytest.mark.skipif(CXX is None, reason="no C++ compiler (g++ or clang++) on the path")
with_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc on the path")


def build(command, source, folder):
    """What a compiler makes of a file that includes the header; any warning fails."""
    (folder / "program.cuh").write_text(source)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Included:
    """A header, called from C++ on one sample at a time."""

    def __init__(self, program, scalar, folder):
        self.program, self.dtype = program, SCALARS[scalar]
        source = c_source(program, scalar, dialect=CUDA)
        name, given = re.search(r"^HINGE_DEVICE void (\w+)\(([^)]*)\)", source, re.M).groups()
        called = ", ".join(re.findall(r"\*(\w+)", given))
        outer = f'extern "C" void call({given})\n{{\n    {name}({called});\n}}\n'
        # twice, as two files of a project may
        (folder / "program.cpp").write_text('#include "program.cuh"\n' * 2 + outer)
        flags = [*FLAGS, "-shared", "-fPIC", "program.cpp", "-o", "program.so", "-lm"]
        build([CXX, *flags], source, folder)
        self.call = ctypes.CDLL(str(folder / "program.so")).call

    def __call__(self, *arguments):
        given = [np.ascontiguousarray(a, self.dtype) for a in arguments]
        results = [np.full(shape, 7.0, self.dtype) for shape in self.program.outputs]
        self.call(*(ctypes.c_void_p(a.ctypes.data) for a in [*given, *results]))
        return results


def assert_as_interpreted(program, scalar, folder, eps):
    """Close, in units of eps of the largest entry."""
    rng, function = np.random.default_rng(3), Included(program, scalar, folder)
    given = [rng.normal(size=shape).astype(SCALARS[scalar]) for shape in program.inputs]
    for got, wanted in zip(function(*given), interpret(program, given), strict=True):
        bound = eps * np.finfo(SCALARS[scalar]).eps * np.abs(wanted).max(initial=1.0)
        assert np.abs(got - wanted).max(initial=0.0) <= bound


@with_cxx
@both
def test_every_operation_as_cpp(scalar, tmp_path):
    program = every_operation()
    function = Included(program, scalar, tmp_path)
    with np.errstate(over="ignore", under="ignore"):
        grid = np.array([(a, b, c) for a in EDGES for b in EDGES for c in (0.0, 2.5)])
        grid = grid.astype(SCALARS[scalar])
    (expected,), got = interpret(program, [grid]), np.concatenate([function(x) for x in grid])
    np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(SCALARS[scalar]).eps)


CALLS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
}


@with_cxx
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("robot", ["arm", "humanoid"])
def test_algorithms_as_cpp(robot, name, tmp_path):
    mech = (zoo.arm(7) if robot == "arm" else zoo.humanoid()).mechanism
    program = robot_program(mech, name, CALLS[name], {})
    assert_as_interpreted(program, "double", tmp_path, 1e3 if robot == "humanoid" else 50)


@with_cxx
@pytest.mark.parametrize(
    "name, scalar", [("inverse_dynamics", "double"), ("forward_dynamics", "float")]
)
def test_loops_as_cpp(name, scalar, tmp_path):
    program = looped(zoo.tree(3, 50).mechanism, name)
    assert_as_interpreted(program, scalar, tmp_path, 200)


@with_cxx
def test_values_change_places(tmp_path):
    program, x, expected = swapping()
    assert np.array_equal(Included(program, "double", tmp_path)(x)[0], expected)


def test_two_robots_have_two_guards():
    guards = set()
    for n in (2, 3):
        source = zoo.arm(n).kernel("gravity_forces", "q").source("cuda")
        guards.add(re.search(r"#ifndef (HINGE_GRAVITY_FORCES_\w+)\n#define \1\n", source)[1])
    assert len(guards) == 2 and "\n#include <math.h>\n" in source


@with_nvcc
def test_nvcc_takes_the_headers(tmp_path):
    """In a kernel of one's own, for the card and the host."""
    texts = [zoo.arm(3).kernel("inverse_dynamics", "q", "qd", "qdd").source("cuda")]
    texts.append(c_source(looped(zoo.snake(50).mechanism, "gravity_forces"), dialect=CUDA))
    kernel = """
__global__ void run(const double *q, const double *qd, const double *qdd, double *tau)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    inverse_dynamics(q + 3 * i, qd + 3 * i, qdd + 3 * i, tau + 3 * i);
    gravity_forces(q + 56 * i, tau + 55 * i);
}
"""
    (tmp_path / "program.cu").write_text('#include "program.cuh"\n' + kernel)
    build([NVCC, "-c", "program.cu", "-o", "program.o"], "\n".join(texts), tmp_path)

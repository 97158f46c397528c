"""Emitted C under the address and undefined-behaviour sanitizers: built, run, and compared."""

import inspect
from functools import partial

import numpy as np
import pytest

import hinge
import sanitized
from emit.everything import program_of
from hinge import zoo
from hinge.emit.c.source import c_source
from hinge.graph.interpret import interpret
from hinge.graph.loop import LoopProgram
from loop_cases import looped
from mechanisms import everything, gripper
from same_kernels import states
from sanitized import can_sanitize, run_sanitized

pytestmark = pytest.mark.skipif(
    not can_sanitize(), reason="no C compiler with the libraries of its sanitizers"
)
ROBOTS = {
    "arm": zoo.arm(3),
    "gripper": gripper(),
    "tree": zoo.tree(2, 5),
    "space_arm": zoo.space_arm(2),
}
# straight lines of many more operations take minutes under sanitizers
MOST = 3000
# an arm of three joints cannot move its tip everywhere: rounding divided by rounding
SINGULAR = {"operational_space_inertia", "operational_space_inertia_margin"}


def check(program, scalar, given, folder, names=None):
    """Whatever a sanitizer says fails; the numbers are those of the definition."""
    dtype = np.float64 if scalar == "double" else np.float32
    given = [np.asarray(x, dtype) for x in given]
    samples = [list(sample) for sample in zip(*given, strict=True)]
    results = run_sanitized(program, scalar, samples, folder, names=names)
    expected = interpret(program, given)
    for k, got in enumerate(results):
        for a, x in zip(got, expected, strict=True):
            scale = 1 + np.abs(x[k]).max(initial=0.0)
            assert np.abs(a - x[k]).max(initial=0.0) <= 1e4 * np.finfo(dtype).eps * scale


def cases():
    for robot in ROBOTS:
        for name in sorted(set(hinge.algorithms.__all__) - SINGULAR):
            quick = robot == "gripper" and name in ("inverse_dynamics", "mass_matrix", "integrate")
            marks = [] if quick else [pytest.mark.long]
            yield pytest.param(robot, name, marks=marks, id=f"{robot}-{name}")


@pytest.mark.parametrize("robot, name", list(cases()))
def test_every_algorithm(robot, name, tmp_path):
    robot = ROBOTS[robot]
    arrays, program = program_of(robot, name)
    if sum(program.ops) > MOST:
        pytest.skip("too long for a sanitizer")
    for scalar in ("double", "float"):
        check(program, scalar, states(robot, arrays, program.inputs), tmp_path, arrays)


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", pytest.param("forward_dynamics", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(everything, id="every joint", marks=pytest.mark.long),
        pytest.param(partial(zoo.snake, 44), id="snake"),
    ],
)
def test_loops(make, name, tmp_path):
    robot = make()
    program = looped(robot.mechanism, name)
    assert isinstance(program, LoopProgram)
    arrays = list(inspect.signature(getattr(hinge.algorithms, name)).parameters)[1:5]
    check(program, "double", states(robot, arrays, program.inputs), tmp_path)


WRONG = {
    "a read past the end": "    out0[0] = q[3];\n",
    "a shift by too much": "    volatile int far = 40;\n    out0[0] = (double)(1 << far);\n",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_seen(wrong, tmp_path, monkeypatch):
    def spoilt(*arguments, **names):
        source = c_source(*arguments, **names)
        at = source.index("{\n", source.rindex("void gravity_forces(")) + 2
        return source[:at] + WRONG[wrong] + source[at:]

    monkeypatch.setattr(sanitized, "c_source", spoilt)
    program = ROBOTS["arm"].kernel("gravity_forces", "q").program
    with pytest.raises(AssertionError, match="Sanitizer: heap-buffer-overflow|runtime error"):
        run_sanitized(program, "double", [[np.zeros(3)]], tmp_path, names=("q",))

"""Every compiled method as a kernel for cards: its warps, run on the CPU, give what it gives."""

import numpy as np
import pytest

import hinge
from emit.test_ptx_kernels import arguments as any_numbers
from emit.test_ptx_kernels import assert_right, results_of
from hinge.emit.ptx.kernel import kernel_module
from hinge.graph.interpret import interpret
from hinge.graph.program import Program
from hinge.robot.method import methods_of
from mechanisms import ROBOTS, random_split

pytestmark = pytest.mark.long
METHODS = {method.name: method for method in methods_of(hinge.Robot)}


def program_of(robot, method):
    """Of a method with the arguments that it needs; None if it has no straight-line program."""
    static = {
        "frame": robot.frame_names[-1],
        "frames": (robot.frame_names[-1],),
        "active": tuple(bool(x) for x in random_split(robot)),
        "constraints": (hinge.Contact(robot.frame_names[-1], "point"),),
    }
    needed = [p.name for p in method.parameters if p.required]
    given = {name: static[name] for name in needed if name in static}
    try:
        program = robot.kernel(
            method.name, *(n for n in needed if n not in static), **given
        ).program
    except hinge.HingeError:
        return None
    return program if isinstance(program, Program) else None


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method):
    program = program_of(ROBOTS["space_arm"], METHODS[method])
    if program is None:
        pytest.skip("no program for this robot")
    given = any_numbers(program)
    if any(x.size and np.isnan(x).all() for x in interpret(program, given)):
        pytest.skip("no answer for any numbers")
    results = results_of(program, kernel_module(program, "double", False), given)
    assert_right(program, results, given, eps=1e5)

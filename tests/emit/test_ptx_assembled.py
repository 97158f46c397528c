"""Kernels for cards, as NVIDIA's assembler takes them: every algorithm, and what some of them need.

The registers of a thread decide how many are at work at once, and what they do not hold is spilled.
"""

import pytest

import hinge
from assembler import assembled, assembles
from emit.everything import program_of
from hinge import zoo
from hinge.emit.ptx.kernel import kernel_module
from hinge.emit.ptx.loop import loop_module
from hinge.emit.ptx.scan import scan_module
from hinge.graph.loop import LoopProgram
from hinge.motion.steps import motion_kernel
from mechanisms import gripper

pytestmark = assembles

SCALARS = ("float", "double")
ROBOTS = {"arm": zoo.arm(3), "gripper": gripper(), "space_arm": zoo.space_arm(2)}
QUICK = {"inverse_dynamics", "integrate", "mass_matrix"}
# straight lines of many more operations, and results of many more entries, take long to assemble
MOST, MOST_RESULTS = 3000, 1000


def cases():
    for robot in ROBOTS:
        for name in sorted(hinge.algorithms.__all__):
            marks = [] if robot == "gripper" and name in QUICK else [pytest.mark.long]
            yield pytest.param(robot, name, marks=marks, id=f"{robot}-{name}")


@pytest.mark.parametrize("robot, name", list(cases()))
def test_every_algorithm(robot, name):
    _, program = program_of(ROBOTS[robot], name)
    if sum(program.ops) > MOST or sum(program.output_sizes) > MOST_RESULTS:
        pytest.skip("too long")
    for scalar in SCALARS:
        text, launch = kernel_module(program, scalar, strict=True)
        assert launch.shared <= 227 * 1024
        assert assembled(text).registers <= 255


# what the loops need in float and double: registers, and bytes that are spilled
LOOPS = {
    ("inverse_dynamics", "q", "qd", "qdd"): ((80, 0), (128, 0)),
    ("forward_dynamics", "q", "qd", "tau"): ((128, 100), (168, 800)),
    ("gravity_forces", "q"): ((64, 0), (96, 0)),
}


@pytest.mark.parametrize("call", LOOPS, ids=lambda call: call[0])
def test_loops_over_bodies(call):
    """The same for any number of bodies: what grows is the tables."""
    program = zoo.snake(60).kernel(*call).program
    assert isinstance(program, LoopProgram)
    for scalar, (registers, spilled) in zip(SCALARS, LOOPS[call], strict=True):
        text, launch = loop_module(program, scalar, strict=True)
        figures = assembled(text)
        assert figures.registers <= registers and figures.spilled <= spilled
        assert launch.persistent and launch.shared <= 32 * 1024


SCANS = {"rk4": (128, 232), "semi_implicit_euler": (104, 168), "variational": (128, 240)}


@pytest.mark.parametrize("method", SCANS)
def test_time_loops(method):
    """The states of an arm of seven joints are in registers from the first step to the last."""
    scan = motion_kernel(zoo.arm(7), method, ("taus",), None, ()).scan
    for scalar, most in zip(SCALARS, SCANS[method], strict=True):
        text, launch = scan_module(scan, scalar, strict=True)
        figures = assembled(text)
        assert figures.registers <= most and figures.stack == figures.spilled == 0
        assert launch.shared == launch.scratch == 0


def test_long_steps_come_in_functions(monkeypatch):
    """Which find their values in local memory, and spill nothing besides."""
    monkeypatch.setattr("hinge.emit.ptx.scan._MOST_INLINE", 2000)
    scan = motion_kernel(zoo.quadruped(), "rk4", (), None, ()).scan
    text, launch = scan_module(scan, "float", strict=True)
    figures = assembled(text)
    assert "@body2_f32(" in text and figures.stack > 0
    assert figures.spilled == launch.scratch == 0

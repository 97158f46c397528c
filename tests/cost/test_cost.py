"""What the algorithms cost: operations of the traced sweeps, in all and per body."""

import re
from functools import cache

import numpy as np
import pytest

from cost.general_chain import chain
from hinge import algorithms
from hinge.graph.program import trace
from hinge.robot.answers import robot_kernel
from hinge.specialize.arrays import array_shape
from hinge.specialize.canonical import canonical
from pages import DOCS
from robot_files import panda_arm

ARRAYS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
    "mass_matrix_inverse": ("q",),
    "jacobian": ("q",),
    "total_rates": ("q", "qd"),
    "diagonal_dynamics": ("q", "nu", "tau"),
}


@cache
def operations(name, n):
    """Multiplications and additions of an algorithm on the canonical chain."""
    static = {"frame": "tip"} if name == "jacobian" else {}
    mech = chain(n) if static else canonical(chain(n)).mechanism
    shapes = [array_shape(mech, a) for a in ARRAYS[name]]
    ops = trace(lambda *given: getattr(algorithms, name)(mech, *given, **static), shapes).ops
    return np.array([ops.multiplications, ops.additions])


# the most multiplications and additions that one more body may cost
PER_BODY = {
    "inverse_dynamics": (92, 83),
    "forward_dynamics": (242, 217),
    "jacobian": (117, 84),
    "total_rates": (149, 129),
    "diagonal_dynamics": (408, 355),
}


@pytest.mark.parametrize("name", PER_BODY)
def test_one_more_body_costs_the_same_everywhere(name):
    counts = np.array([operations(name, n) for n in (10, 20, 30, 40)])
    more = np.diff(counts, axis=0) / 10
    np.testing.assert_allclose(more, more[[0, 0, 0]], rtol=0.01)
    assert (more[0] <= PER_BODY[name]).all(), more[0]


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse"])
def test_matrices_cost_a_square(name):
    counts = np.array([operations(name, n) for n in (10, 20, 30, 40)])
    square, more = np.diff(counts, n=2, axis=0)
    assert (square > 1000).all()
    np.testing.assert_allclose(more, square, rtol=0.01)


def test_panda():
    mech = panda_arm()
    assert mech.nv == 7
    ops = robot_kernel(mech, "inverse_dynamics", ("q", "qd", "qdd"), ()).program.ops
    assert ops.multiplications <= 320 and ops.additions <= 320
    # nothing depends on how the arm is turned about gravity
    assert ops.divisions == 0 and ops.sincos == 6
    ops = robot_kernel(mech, "forward_dynamics", ("q", "qd", "tau"), ()).program.ops
    assert ops.multiplications <= 622 and ops.additions <= 606
    ops = robot_kernel(mech, "total_rates", ("q", "qd"), ()).program.ops
    assert ops.multiplications <= 300 and ops.additions <= 290
    ops = robot_kernel(mech, "diagonal_dynamics", ("q", "nu", "tau"), ()).program.ops
    assert ops.multiplications <= 1141 and ops.additions <= 1036
    ops = robot_kernel(mech, "mass_matrix", ("q",), ()).program.ops
    assert ops.multiplications <= 200 and ops.additions <= 210


def test_the_page_on_total_rates_counts_as_the_kernels_do():
    """The columns of diagonal_dynamics and total_rates, on the chain of these tests."""
    page = (DOCS / "theory" / "diagonalized.md").read_text()
    rows = re.findall(r"^\| (\d+) \| [\d ]+ \| (\d+ \d+) \| [\d.]+ \| (\d+ \d+) \|$", page, re.M)
    assert len(rows) == 8
    for n, *counts in rows[:4]:
        for name, told in zip(("diagonal_dynamics", "total_rates"), counts, strict=True):
            assert told == "{} {}".format(*operations(name, int(n)))

"""The C of a double pendulum, kept as a file: every change of it shows, and can be read."""

from pathlib import Path

import numpy as np

import hinge
from hinge import algorithms
from hinge.emit.c.source import c_source
from hinge.graph.program import trace

GOLDEN = Path(__file__).parent / "double_pendulum.c"


def double_pendulum() -> str:
    """Its numbers are sums of few powers of two: the text is the same on every machine."""
    b = hinge.MechanismBuilder("double_pendulum", gravity=(0, 0, -10))
    link = hinge.Inertia(mass=1.0, com=(0, 0, -0.5), about_com=np.eye(3) * 0.25)
    hang = hinge.Transform(translation=(0, 0, -1))
    b.add("upper", "world", hinge.Revolute((0, 1, 0)), inertia=link)
    b.add("lower", "upper", hinge.Revolute((0, 1, 0)), placement=hang, inertia=link)
    mech = b.build()
    program = trace(
        lambda q, qd, tau: algorithms.forward_dynamics(mech, q, qd, tau),
        [(2,), (2,), (2,)],
        "double_pendulum",
    )
    about = "Accelerations of two links of 1 m and 1 kg that hang from one another, hinges about y."
    return c_source(program, names=("q", "qd", "tau"), results=("qdd",), about=about)


def test_golden_double_pendulum():
    assert double_pendulum() == GOLDEN.read_text(), (
        "the C of the double pendulum has changed; if that is meant, run "
        "python tests/golden/test_double_pendulum.py and read the difference"
    )


if __name__ == "__main__":
    GOLDEN.write_text(double_pendulum())

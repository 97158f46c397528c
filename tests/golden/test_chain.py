"""The C of a chain as loops, kept as a file: every change of it shows, and can be read."""

from pathlib import Path

import numpy as np

import hinge
from hinge import algorithms
from hinge.emit.c.source import c_source
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops

GOLDEN = Path(__file__).parent / "chain.c"


def chain() -> str:
    """Its numbers are sums of few powers of two: the text is the same on every machine."""
    b, parent, place = hinge.MechanismBuilder("chain", gravity=(0, 0, -8)), "world", (0, 0, 0)
    link = hinge.Inertia(mass=1.0, com=(0, 0, -0.5), about_com=np.eye(3) * 0.25)
    for name in ("upper", "middle", "lower"):
        at = hinge.Transform(translation=place)
        b.add(name, parent, hinge.Revolute((0, 1, 0)), placement=at, inertia=link)
        parent, place = name, (0, 0, -1)
    program = trace_loops(algorithms.gravity_forces, canonical(b.build()), {"q": (3,)}, "chain")
    about = "Forces that hold up three links of 1 m and 1 kg, one hanging from another."
    return c_source(program, names=("q",), results=("tau",), about=about)


def test_golden_chain():
    assert chain() == GOLDEN.read_text(), (
        "the C of the chain has changed; if that is meant, run "
        "python tests/golden/test_chain.py and read the difference"
    )


if __name__ == "__main__":
    GOLDEN.write_text(chain())

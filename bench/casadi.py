"""Functions of CasADi: compiled by hinge, beside CasADi's own of the same algorithm.

`python -m bench.casadi` prints two tables.  The first: inverse and forward dynamics of a Panda,
their Jacobians, and Hessians of weighted sums, of one sample and of forty columns.  SX is what
`robot.alg` gives on symbols, run by CasADi's virtual machine; "SX in C" the same by its code
generator and gcc -O2; "callback" hinge by way of Python.  Memory is bound beforehand, so that no
conversion of arrays is timed, and results are compared first.  The second table: the NLP of
`examples/minimum_time.py`, when all is compiled.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from subprocess import run
from time import perf_counter
from typing import Any

import casadi
import numpy as np
from rich.console import Console
from rich.table import Table

import hinge
from hinge.casadi.called import callback
from hinge.casadi.pieces import whole

from .measure import Settings, WrongResultError, interleave
from .peers import Contestant
from .robots import make

ARRAYS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}
WORDS = {"inverse_dynamics": "τ", "forward_dynamics": "q̈"}
ORDERS = ("{}", "∂{}", "∂²(w · {})")
SAMPLES, TOLERANCE = 40, 1e-9
EXAMPLES = Path(__file__).parent.parent / "examples"


def symbolic(robot: hinge.Robot, name: str, order: int) -> Any:
    """The plain algorithm on symbols, differentiated by CasADi; x: (3 nv,)."""
    x, w = casadi.SX.sym("x", 3 * robot.nv), np.arange(1.0, robot.nv + 1)
    parts = np.array(casadi.vertsplit(x)).reshape(3, robot.nv)
    y = casadi.vertcat(*getattr(robot.alg, name)(*parts))
    made = (y, casadi.jacobian, lambda y, x: casadi.hessian(casadi.dot(w, y), x)[0])[order]
    # a library is known by its name, so that each has its own
    return casadi.Function(f"{name}_{order}", [x], [made if order == 0 else made(y, x)])


def ours(f: Any, order: int) -> Any:
    """The same of a kernel for any number of columns x: (3 nv, columns)."""
    nv, columns = f.size_in(0)
    x = casadi.MX.sym("x", 3 * nv, columns)
    w = np.tile(np.arange(1.0, nv + 1)[:, None], columns)
    y = f(*casadi.vertsplit(x, nv))
    if order == 2:
        made = casadi.hessian(casadi.dot(w, y), x)[0]
    else:
        made = casadi.jacobian(y, x) if order else y
    return casadi.Function(f.name(), [x], [made])


def in_c(f: Any, folder: str) -> Any:
    """A function of CasADi as C, compiled."""
    f.generate(f"{f.name()}.c", {"with_header": False})
    source = Path(f"{f.name()}.c").replace(Path(folder) / f"{f.name()}.c")
    library = source.with_suffix(".so")
    run(["gcc", "-O2", "-fPIC", "-shared", source, "-o", library], check=True)
    return casadi.external(f.name(), str(library))


def contestant(name: str, f: Any, x: np.ndarray) -> Contestant:
    """A function bound to memory."""
    buffer, trigger = f.buffer()
    given, found = np.asfortranarray(x).ravel(order="F"), np.zeros(f.nnz_out(0))
    buffer.set_arg(0, memoryview(given))
    buffer.set_res(0, memoryview(found))

    def result() -> np.ndarray:
        trigger()
        # the memory stays as long as what is timed
        scope["memory"] = given, found, buffer
        return casadi.DM(f.sparsity_out(0), found).full()

    scope: dict[str, Any] = {"trigger": trigger}
    return Contestant(name, "trigger()", scope, result)


def calls(settings: Settings, label: str = "panda") -> Table:
    """Times per sample."""
    robot, rng = hinge.Robot(make(label).mechanism, threads=1), np.random.default_rng(0)
    ways = ("hinge", "hinge, callback", "SX in C", "SX")
    table = Table("quantity", "columns", *ways, "SX over hinge", title="Panda, µs per sample")
    with tempfile.TemporaryDirectory() as folder:
        for name, arrays in ARRAYS.items():
            kernel = robot.kernel(name, *arrays)
            for order, what in enumerate(ORDERS):
                theirs = symbolic(robot, name, order)
                c = in_c(theirs, folder) if order < 2 and shutil.which("gcc") else None
                for columns in (1, SAMPLES):
                    x = rng.normal(size=(3 * robot.nv, columns))
                    f = ours(hinge.casadi.function(kernel, columns), order)
                    python = ours(callback(whole(name, kernel, columns), 2), order)
                    mine = [contestant("hinge", f, x), contestant("hinge, callback", python, x)]
                    mapped = [("SX", theirs), *([("SX in C", c)] if c is not None else [])]
                    others = [contestant(n, g.map(columns), x) for n, g in mapped]
                    for other in others:
                        _compare(mine[0], other, columns)
                    times = interleave([*mine, *others], settings)
                    best = {n: 1e6 * float(np.min(t)) / columns for n, t in times.items()}
                    cells = [f"{best[n]:.3g}" if n in best else "" for n in ways]
                    gain = f"{best['SX'] / best['hinge']:.0f} ×"
                    table.add_row(what.format(WORDS[name]), str(columns), *cells, gain)
    return table


def _compare(mine: Contestant, other: Contestant, columns: int) -> None:
    """Hinge's derivatives are block diagonal, those of a map side by side."""
    a, b = mine.result(), other.result()
    if a.shape != b.shape:
        height, width = a.shape[0] // columns, a.shape[1] // columns
        blocks = a.reshape(columns, height, columns, width)
        a = np.concatenate([blocks[i, :, i] for i in range(columns)], axis=1)
    worst = np.abs(a - b).max() / np.abs(b).max()
    if not worst < TOLERANCE:
        raise WrongResultError(f"{mine.name} and {other.name} differ by {worst:.1e}")


def overhead() -> str:
    """What a call inside of a graph costs on top of the kernel: of a chain of squares."""
    square, chain, words = hinge.compile(lambda x: x * x, x=()), 1000, []
    for name, f in (
        ("library", hinge.casadi.function(square, name="square")),
        ("callback", callback(whole("square", square, 1), 0)),
    ):
        x = y = casadi.MX.sym("x")
        for _ in range(chain):
            y = f(y)
        timed = contestant(name, casadi.Function("chain", [x], [y]), np.ones((1, 1)))
        seconds = float(np.min(interleave([timed], Settings(seconds=0.5))[name]))
        words.append(f"{name} {1e6 * seconds / chain:.2g} µs")
    return f"a call inside of a graph, the whole of x²: {', '.join(words)}"


def programs() -> Table:
    """The NLP of the example in both ways: the second time, when all is compiled."""
    sys.path.insert(0, str(EXAMPLES))
    example = import_module("minimum_time")
    robot = hinge.zoo.arm(7)
    asked = robot, np.full(7, -0.8), np.full(7, 0.9), example.STRENGTH, 60
    table = Table("dynamics", "T", "iterations", "preparing", "solving", title="minimum time")
    for words, way in (("hinge", example.compiled_torques), ("SX", example.symbolic_torques)):
        example.quickest(*asked, way)
        found = example.quickest(*asked, way)
        times = (f"{found.compiling:.2f} s", f"{found.seconds:.2f} s")
        table.add_row(words, f"{found.t[-1]:.6f} s", str(found.iterations), *times)
    return table


def main() -> None:
    """Print both tables."""
    console, begin = Console(), perf_counter()
    console.print(f"CasADi {casadi.__version__}, one thread")
    console.print(overhead())
    console.print(calls(Settings(seconds=1.0)))
    console.print(programs())
    console.print(f"{perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()

"""Functions of JAX: hinge's beside frax, where it is installed, and beside hinge from NumPy.

`taskset -c 0 python -m bench.jax` prints two tables, on one core, in float64, with
`jax_cpu_enable_async_dispatch` off: on one core XLA's other threads only take turns with ours.  The
first is a call of a jitted function, of one sample or of 4096; the second a step of `lax.scan`, in
which XLA adds next to nothing of its own.  "kernel" is the code that is called, from a loop of
machine code: a rollout whose step is the function.  Results are compared first, and contestants
take turns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import hinge

from .measure import WrongResultError
from .others import FRAX_SETTINGS, installed
from .robots import ARGUMENTS, Case, make, random_states

for _name, _value in FRAX_SETTINGS.items():
    os.environ.setdefault(_name, _value)
jax: Any = import_module("jax")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)

BATCH, STEPS, ROUNDS = 4096, 1000, 25
TOLERANCE = 1e-8
Function = Callable[..., Any]


def frax_function(case: Case, quantity: str) -> Function:
    """The same by frax; its base is fixed."""
    from frax.core.robot import Robot

    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(case.urdf or "")
        file.flush()
        robot = Robot(file.name, joint_ordering=list(case.mechanism.joint_names))
    up = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    if quantity == "inverse_dynamics":
        return lambda q, v, a: robot.rnea(q, v, a, up, None)
    return lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)


def seconds(contestants: Sequence[Function]) -> list[float]:
    """The quickest of many rounds in which all take turns."""
    counts, best = [], [np.inf] * len(contestants)
    for call in contestants:
        start = perf_counter()
        call()
        counts.append(max(1, int(2e-3 / (perf_counter() - start))))
    for _ in range(ROUNDS):
        for i, (call, count) in enumerate(zip(contestants, counts, strict=True)):
            start = perf_counter()
            for _ in range(count):
                call()
            best[i] = min(best[i], (perf_counter() - start) / count)
    return best


def compare(what: str, results: Sequence[Any]) -> None:
    """All are what the first is."""
    first = np.asarray(results[0])
    for other in results[1:]:
        if np.abs(np.asarray(other) - first).max() > TOLERANCE * np.abs(first).max():
            raise WrongResultError(what)


def called(fn: Function, arrays: Sequence[Any]) -> Function:
    """A call of a jitted function that waits for its result."""
    jitted, given = jax.jit(fn), [jax.numpy.asarray(x) for x in arrays]
    return lambda: jax.block_until_ready(jitted(*given))


def stepped(fn: Function, arrays: Sequence[Any]) -> Function:
    """The function many times in one `lax.scan`, each time of the result before."""
    *fixed, last = (jax.numpy.asarray(x) for x in arrays)

    def loop(last: Any) -> Any:
        def step(x: Any, _: None) -> tuple[Any, None]:
            return 0.5 * fn(*fixed, x), None

        return jax.lax.scan(step, last, None, length=STEPS)[0]

    return called(loop, [last])


def machine(robot: hinge.Robot, quantity: str, arrays: Sequence[Any]) -> Function:
    """The same by a loop of machine code."""
    *fixed, last = (np.asarray(x) for x in arrays)
    names = ARGUMENTS[quantity]
    plain = getattr(robot.alg, quantity)
    shapes = dict(
        zip((names[-1], *names[:-1]), (last.shape, *(x.shape for x in fixed)), strict=True)
    )
    text = f"lambda {names[-1]}, {', '.join(names[:-1])}: 0.5 * plain({', '.join(names)})"
    rollout = hinge.rollout(eval(text, {"plain": plain}), (names[-1],), threads=1, **shapes)
    return lambda: rollout(last, *fixed, steps=STEPS, every=STEPS)[-1]


def main() -> None:
    """Measure and print."""
    calls = Table("a call, µs", "hinge.jax", "hinge", "frax", title="jitted functions")
    loops = Table("a step, µs", "hinge.jax", "kernel", "frax", title="inside lax.scan")
    for name in ("panda", "talos"):
        case = make(name)
        for quantity in ("inverse_dynamics", "forward_dynamics"):
            measure(calls, loops, case, quantity)
        jacobians(calls, case)
    Console(width=120).print(calls, loops)


def peers(case: Case, quantity: str) -> list[Function]:
    """frax, if it takes part."""
    takes_part = installed("frax") and not case.floating
    return [frax_function(case, quantity)] if takes_part else []


def quick(robot: hinge.Robot, quantity: str, arrays: Sequence[Any]) -> Function:
    """A method, when it knows its calls."""
    for _ in range(3):
        getattr(robot, quantity)(*arrays)
        getattr(robot, quantity)(*(x[0] for x in arrays))
    return getattr(robot, quantity)


def measure(calls: Table, loops: Table, case: Case, quantity: str) -> None:
    """One function: a call, a batch, a step of a loop."""
    robot, states = hinge.Robot(case.mechanism, threads=1), random_states(case.mechanism, BATCH)
    many, theirs = states.arguments(quantity), peers(case, quantity)
    own, direct = getattr(hinge.jax.robot(robot), quantity), quick(robot, quantity, many)
    one, words = [x[0] for x in many], f"{case.label} {quantity.replace('_', ' ')}"
    single = [called(own, one), lambda: direct(*one), *(called(f, one) for f in theirs)]
    batch = [called(own, many), lambda: direct(*many)]
    batch += [called(jax.vmap(f), many) for f in theirs]
    for label, row in ((words, single), (f"{words}, {BATCH}", batch)):
        compare(label, [f() for f in row])
        add(calls, label, seconds(row))
    row = [stepped(own, one), machine(robot, quantity, one), *(stepped(f, one) for f in theirs)]
    compare(words, [f() for f in row])
    add(loops, words, [t / STEPS for t in seconds(row)])


def jacobians(calls: Table, case: Case) -> None:
    """∂q̈/∂q of one sample; hinge from NumPy gives all three derivatives."""
    robot, states = hinge.Robot(case.mechanism, threads=1), random_states(case.mechanism, 1)
    one = [x[0] for x in states.arguments("forward_dynamics")]
    functions = hinge.jax.robot(robot).forward_dynamics, *peers(case, "forward_dynamics")
    row = [called(jax.jacobian(f), one) for f in functions]
    compare("jacobian", [f() for f in row])
    row.insert(1, lambda: robot.forward_dynamics_derivatives(*one))
    add(calls, f"{case.label} jacobian of forward dynamics over q", seconds(row))


def add(table: Table, label: str, times: Sequence[float]) -> None:
    """A row."""
    table.add_row(label, *(f"{1e6 * t:.3g}" for t in times))


if __name__ == "__main__":
    main()

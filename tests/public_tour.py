"""A tour of what users call, in a process of its own, under conditions of other platforms.

    python public_tour.py RESULTS.npz CONDITION

Conditions, set before hinge is imported: "as it is"; "no vectorcall", a Python whose C interface
lacks a function; "another Python", which has none; "other objects", whose heads have another size;
"macos" and "windows", every device of Linux switched off (own loader, team, affinity, owners,
what the system tells of the CPU); "windows code", compiled as for Windows, and run.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import os
import platform
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

CONDITIONS = ["no vectorcall", "another Python", "other objects", "macos", "windows"]
_OF_LINUX = ["sched_yield", "sched_getaffinity", "register_at_fork", "geteuid", "uname"]
_OF_LINUX += ["O_NOFOLLOW", "fork", "process_cpu_count"]


def set_condition(name: str) -> None:
    """Make this process what the condition says."""
    if name == "no vectorcall":
        ctypes.pythonapi = _Lacking(ctypes.pythonapi, "PyObject_Vectorcall")
    elif name == "another Python":
        sys.implementation = SimpleNamespace(**{**vars(sys.implementation), "name": "other"})
    elif name == "other objects":
        from hinge.runtime import engine

        engine._HEAD = 32
    elif name == "windows code":
        from windows_code import run_code_for_windows

        run_code_for_windows()
    elif name != "as it is":
        _leave_linux(name)


class _Lacking:
    """A library without one of its functions."""

    def __init__(self, library: Any, name: str) -> None:
        self._library, self._name = library, name

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise AttributeError(name)
        return getattr(self._library, name)


def _leave_linux(name: str) -> None:
    """Another system, as far as hinge can see; other packages keep the one that they know."""
    # they ask it when they are imported
    for known in ("concurrent.futures.thread", "subprocess", "tempfile", "llvmlite.binding"):
        importlib.import_module(known)
    platform.machine()
    sys.platform = "darwin" if name == "macos" else "win32"
    if name != "macos":
        ctypes.CDLL = _libraries_of_windows(ctypes.CDLL)
        for thing in _OF_LINUX:
            if hasattr(os, thing):
                delattr(os, thing)
    opened = builtins.open

    def refuse(path: Any, *arguments: Any, **more: Any) -> Any:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(path)
        return opened(path, *arguments, **more)

    builtins.open = refuse


def _libraries_of_windows(load: Any) -> Any:
    here = load(None)
    known = {"ucrtbase": here, "ntdll": SimpleNamespace(__chkstk=here.abort)}
    return lambda name, *more: known[name]


def results() -> dict[str, Any]:
    """What a good part of the public functions return."""
    import hinge

    robot = hinge.zoo.arm(3)
    single = hinge.Robot(robot.mechanism, np.float32)
    rng = np.random.default_rng(0)
    q, qd, u = rng.normal(size=(3, 3))
    found: dict[str, Any] = {}
    for shape in ((), (5,), (2, 3)):
        a, b, c = (rng.normal(size=(*shape, 3)) for _ in range(3))
        found |= {f"{k} {shape}": v for k, v in _dynamics(robot, a, b, c).items()}
    found |= {f"float32 {k}": v for k, v in _dynamics(single, q, qd, u).items()}
    found |= _spellings(robot, q, qd, u) | _larger(hinge, robot, q, qd, u)
    return found


def _dynamics(robot: Any, q: Any, qd: Any, u: Any) -> dict[str, Any]:
    return {
        "inverse dynamics": robot.inverse_dynamics(q, qd, u),
        "forward dynamics": robot.forward_dynamics(q, qd, u),
        "mass matrix": robot.mass_matrix(q),
        "its inverse": robot.mass_matrix_inverse(q),
        "pose": robot.frame_pose(q, "tool"),
        "jacobian": robot.jacobian(q, "tool"),
        "momentum": robot.momentum(q, qd),
        "energy": robot.kinetic_energy(q, qd),
        "total rates": robot.total_rates(q, qd),
        "hybrid": np.stack(robot.hybrid_dynamics(q, qd, u, u, [robot.joint_names[0]])[:2]),
        "slopes": np.stack(robot.forward_dynamics_derivatives(q, qd, u)[:2]),
    }


def _spellings(robot: Any, q: Any, qd: Any, u: Any) -> dict[str, Any]:
    out = np.empty(3)
    robot.inverse_dynamics(q, qd, u, out=out)
    try:
        robot.inverse_dynamics(q, qd, [1.0, 2.0])
    except robot_error() as error:
        said = str(error)
    return {
        "by name": robot.inverse_dynamics(q=q, qd=qd, qdd=u),
        "out": out,
        "lists": robot.inverse_dynamics(list(q), list(qd), list(u)),
        "strided": robot.inverse_dynamics(np.repeat(q, 2)[::2], qd, u),
        "whole": robot.inverse_dynamics(np.zeros(3, int), qd, u),
        "said": np.array([len(said)]),
    }


def robot_error() -> type[Exception]:
    """What hinge raises."""
    import hinge

    return hinge.ArgumentError


def _larger(hinge: Any, robot: Any, q: Any, qd: Any, u: Any) -> dict[str, Any]:
    snake = hinge.zoo.snake(40)
    s = np.linspace(-1.0, 1.0, snake.nv)
    x = hinge.simulate(robot, q, qd, duration=0.05, dt=0.01)
    law = robot.compile(lambda q, tau: robot.alg.mass_matrix(q) @ tau)
    many = np.tile(s, (20_000, 1))
    wide = hinge.compile(lambda x: np.sin(x) * x, x=(snake.nv,))
    reached = robot.inverse_kinematics("tool", robot.frame_pose(q, "tool"), q + 0.01)
    return {
        "snake": snake.inverse_dynamics(snake.random_configuration(0), s, s),
        "motion": np.concatenate([x.q[-1], x.qd[-1]]),
        "law": law(q, u),
        "large angles": hinge.compile(lambda x: np.sin(x), x=(3,))(1e9 * q),
        "threads": wide(many),
        "operators": robot.operators(q).mass.inv @ u,
        "linear": robot.linearize(q, qd, u, dt=0.01).A,
        "reached": robot.frame_pose(reached.q, "tool"),
    }


def fast() -> bool:
    """Whether calls take the short way."""
    from hinge.runtime.engine import fast_calls_work

    return fast_calls_work()


def main(file: str, condition: str) -> None:
    """The tour, its results in a file."""
    set_condition(condition)
    np.savez(file, **results())


if __name__ == "__main__":
    main(*sys.argv[1:])

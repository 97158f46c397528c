"""What every kernel of the tests' robots computes, for comparing one commit with another.

    python tests/same_kernels.py write FILE        operations, graph and results of every kernel
    python tests/same_kernels.py compare FILE      the same now, and where it differs

A change that is to change nothing writes the file before and compares after.  This is a tool: no
test runs it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import hinge
from hinge import zoo
from mechanisms import ROBOTS

# robots whose sweeps are loops, beside those of the tests
LONG = {"long chain": zoo.snake(44), "long tree": zoo.tree(3, 50)}
CONFIGURATIONS = {"q", "q0", "q1"}
ARRAYS = CONFIGURATIONS | {"qd", "qdd", "tau", "dv", "u", "v", "nu", "eps", "f_ext"}
ARRAYS |= {"dq", "dqd", "dqdd", "dtau", "cotangent", "qdd_active", "tau_passive"}
# arrays that are left out where they may be
OPTIONAL = {"qd_active", "momentum_passive", "points"}
# their graphs have nv⁴ entries: for small robots only
QUARTIC = {"curvature", "mass_matrix_second_sensitivity"}
# what the name of an algorithm with a matrix as its result contains: not for long robots
MATRICES = ("derivatives", "sensitivity", "curl", "christoffel", "matrix", "factor")
SMALL, MOST_OPERATIONS = 20, 40_000


def signature(robot, name):
    """The arrays and the other arguments to compile an algorithm for; None if there are none."""
    arrays, static = [], {}
    others = {
        "frame": robot.frame_names[-1],
        "frames": (robot.frame_names[-1],),
        "active": tuple(i % 2 == 0 for i in range(robot.nv)),
    }
    for p in list(inspect.signature(getattr(hinge.algorithms, name)).parameters.values())[1:]:
        required = p.default is p.empty
        if p.name in ARRAYS or p.name in OPTIONAL and required:
            arrays.append(p.name)
        elif p.name in others:
            static[p.name] = others[p.name]
        elif required:
            return None
    return arrays, static


def asked_for(title, robot, name):
    """Whether an algorithm is compiled for a robot at all: what takes minutes is not."""
    if title in LONG:
        return name not in QUARTIC and not any(word in name for word in MATRICES)
    return name not in QUARTIC or robot.nv <= SMALL


def measured(robot, name, arrays, static, with_results):
    """Operations, a hash of the graph, and a hash of the results for three random states."""
    kernel = robot.kernel(name, *arrays, **static)
    program = kernel.program
    found = {"ops": list(program.ops), "graph": program.digest}
    if not with_results or sum(program.ops) > MOST_OPERATIONS:
        return found
    results = kernel(*states(robot, arrays, program.inputs))
    results = results if isinstance(results, tuple) else (results,)
    flat = np.concatenate([np.ravel(x) for x in results]) if results else np.zeros(0)
    found["results"] = hashlib.sha256(np.ascontiguousarray(flat).tobytes()).hexdigest()
    found["size"] = float(np.abs(np.nan_to_num(flat)).sum())
    return found


def states(robot, arrays, shapes):
    """Three random values of each array, the same at every call."""
    rng, given = np.random.default_rng(5), []
    for array, shape in zip(arrays, shapes, strict=True):
        # drawn for every array: those after it must not depend on what it is
        configurations = np.array([robot.random_configuration(rng) for _ in range(3)])
        other = array not in CONFIGURATIONS
        given.append(rng.normal(size=(3, *shape)) if other else configurations)
    return given


def manifest():
    """Every kernel by name, and what is measured of it or how it is refused."""
    warnings.simplefilter("ignore")
    found = {}
    for title, robot in {**ROBOTS, **LONG}.items():
        for name in sorted(hinge.algorithms.__all__):
            wanted = signature(robot, name) if asked_for(title, robot, name) else None
            if wanted is None:
                continue
            arrays, static = wanted
            without = [a for a in arrays if a != "f_ext"]
            for chosen in [arrays, without] if "f_ext" in arrays else [arrays]:
                key = f"{title} {name}({', '.join(chosen)})"
                try:
                    found[key] = measured(robot, name, chosen, static, title not in LONG)
                except (hinge.HingeError, ValueError, TypeError) as error:
                    found[key] = {"refused": type(error).__name__}
    return found


def differences(before, now):
    """(kernel, what, before, now) of everything that is not the same."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, {"there": "no"}), now.get(key, {"there": "no"})
        for what in sorted(old.keys() | new.keys()):
            if old.get(what) != new.get(what):
                yield key, what, old.get(what), new.get(what)


def main(verb, path):
    """Write or compare."""
    now = manifest()
    if verb == "write":
        Path(path).write_text(json.dumps(now, indent=0), encoding="utf-8")
        print(f"{len(now)} kernels")
        return 0
    found = list(differences(json.loads(Path(path).read_text(encoding="utf-8")), now))
    for key, what, old, new in found:
        print(f"{key}\n    {what}: {old} → {new}")
    print(f"{len(now)} kernels, {len({key for key, *_ in found})} differ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

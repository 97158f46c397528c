"""What every kernel of the tests' robots computes, for comparing one commit with another.

    python tests/same_kernels.py write FILE        operations, graph and results of every kernel
    python tests/same_kernels.py compare FILE      the same now, and where it differs

A change that is to change nothing writes the file before and compares after.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import warnings

import numpy as np

import hinge
from hinge import zoo
from mechanisms import ROBOTS

# robots whose sweeps are loops, beside those of the tests
LONG = {"long chain": zoo.snake(44), "long tree": zoo.tree(3, 50)}
ARRAYS = {"q", "q0", "q1", "qd", "qdd", "tau", "dv", "u", "v", "nu", "eps", "f_ext"}
ARRAYS |= {"dq", "dqd", "dqdd", "dtau", "qdd_active", "tau_passive"}
LEFT_OUT = {"qd_active", "momentum_passive", "points"}
# their graphs have nv⁴ entries
SLOW = {"curvature", "mass_matrix_second_sensitivity"}


def arguments(robot, name):
    """The arrays and the other arguments to compile an algorithm for; None if there are none."""
    arrays, static = [], {}
    for p in list(inspect.signature(getattr(hinge.algorithms, name)).parameters.values())[1:]:
        if p.name in ARRAYS or p.name in LEFT_OUT and p.default is p.empty:
            arrays.append(p.name)
        elif p.name == "frame":
            static["frame"] = robot.frame_names[-1]
        elif p.name == "frames":
            static["frames"] = (robot.frame_names[-1],)
        elif p.name == "active":
            static["active"] = tuple(i % 2 == 0 for i in range(robot.nv))
        elif p.default is p.empty:
            return None
    return arrays, static


def measured(robot, name, arrays, static, long):
    """Operations, a hash of the graph, and the results for three random states."""
    kernel = robot.kernel(name, *arrays, **static)
    program = kernel.program
    found = {"ops": list(program.ops), "graph": program.digest}
    if long or sum(program.ops) > 40_000:
        return found
    rng = np.random.default_rng(5)
    given = []
    for a, shape in zip(arrays, program.inputs, strict=True):
        random = np.array([robot.random_configuration(rng) for _ in range(3)])
        given.append(random if a in ("q", "q0", "q1") else rng.normal(size=(3, *shape)))
    results = kernel(*given)
    results = results if isinstance(results, tuple) else (results,)
    flat = np.concatenate([np.ravel(x) for x in results]) if results else np.zeros(0)
    found["results"] = hashlib.sha256(np.ascontiguousarray(flat).tobytes()).hexdigest()
    found["size"] = float(np.abs(np.nan_to_num(flat)).sum())
    return found


def manifest():
    """All of them."""
    warnings.simplefilter("ignore")
    found = {}
    for title, robot in {**ROBOTS, **LONG}.items():
        for name in sorted(hinge.algorithms.__all__):
            asked = arguments(robot, name)
            large = title in LONG or robot.nv > 20
            if asked is None or (large and name in SLOW):
                continue
            matrices = any(w in name for w in ("derivatives", "sensitivity", "curl", "christoffel"))
            if title in LONG and (matrices or "matrix" in name or "factor" in name):
                continue
            for forces in (True, False) if "f_ext" in asked[0] else (True,):
                arrays = [a for a in asked[0] if forces or a != "f_ext"]
                key = f"{title} {name}({', '.join(arrays)})"
                try:
                    found[key] = measured(robot, name, arrays, asked[1], title in LONG)
                except (hinge.HingeError, ValueError, TypeError) as error:
                    found[key] = {"refused": type(error).__name__}
    return found


def main(verb, path):
    """Write or compare."""
    now = manifest()
    if verb == "write":
        with open(path, "w", encoding="utf-8") as file:
            json.dump(now, file, indent=0)
        print(f"{len(now)} kernels")
        return 0
    with open(path, encoding="utf-8") as file:
        before = json.load(file)
    differing = 0
    for key in sorted(before.keys() | now.keys()):
        a, b = before.get(key, {"there": "no"}), now.get(key, {"there": "no"})
        if a != b:
            differing += 1
            print(
                key,
                *(
                    f"\n    {k}: {a.get(k)} → {b.get(k)}"
                    for k in sorted({*a, *b})
                    if a.get(k) != b.get(k)
                ),
            )
    print(f"{len(now)} kernels, {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

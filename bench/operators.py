"""Lines of operators from Python, at another configuration each time: kept and compiled, or plain.

`python -m bench.operators` prints the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np

import hinge
from hinge.operators import Operators

from .measure import Row, Settings, WrongResultError, interleave
from .peers import Contestant
from .robots import Case, random_states

__all__ = ["AIM", "LINES", "operators"]

# seconds that a line may take
AIM = 10e-6
# as many configurations take turns
_MANY = 64
AGREEMENT = 1e-9

# what is written of o = operators(q) and a vector; with _p of operators(q, active=half)
LINES = {
    "mass.inv @ tau": "o.mass.inv @ tau",
    "mass @ tau": "o.mass @ tau",
    "psi.T @ f": "o.psi.T @ f",
    "(H @ phi @ M @ phi.T @ H.T) @ tau": "(o.H @ o.phi @ o.M @ o.phi.T @ o.H.T) @ tau",
    "(B.T @ phi.T @ H.T) @ tau": "(o.B(frame).T @ o.phi.T @ o.H.T) @ tau",
    "mass_p.inv @ tau_p": "o.mass_p.inv @ tau_p",
    "(0.5 * mass) @ tau": "(0.5 * o.mass) @ tau",
}


def operators(case: Case, settings: Settings) -> Iterator[Row]:
    """Every line, from q to the result, once per configuration."""
    robot, rng = hinge.Robot(case.mechanism), np.random.default_rng(0)
    half = robot.joint_names[: len(robot.joint_names) // 2]
    passive = robot.operators(robot.neutral(), half).H_p.out.dim
    scope: dict[str, Any] = {
        "robot": robot,
        "Operators": Operators,
        "mechanism": case.mechanism,
        "qs": cycle(random_states(case.mechanism, _MANY).q.copy()),
        "half": half,
        "frame": robot.frame_names[-1],
        "tau": rng.normal(size=robot.nv),
        "tau_p": rng.normal(size=passive),
        "f": rng.normal(size=6 * len(robot.body_names)),
    }
    for name, line in LINES.items():
        yield _row(case, name, line, scope, settings)


def _row(case: Case, name: str, line: str, scope: dict[str, Any], settings: Settings) -> Row:
    given = "next(qs), half" if "_p" in line else "next(qs)"
    ours = f"o = robot.operators({given}); y = {line}"
    plain = f"o = Operators(mechanism, {given}); y = {line}"
    pair = [
        Contestant("hinge", ours, scope, lambda: scope["y"]),
        Contestant("plain", plain, scope, lambda: scope["y"]),
    ]
    got, expected = (_result(contestant, scope["robot"].neutral()) for contestant in pair)
    worst = float(np.abs(got - expected).max() / np.abs(expected).max())
    if not worst < AGREEMENT:
        raise WrongResultError(f"{name} of plain Python differs by {worst:.1e}")
    times = interleave(pair, settings)
    return Row.of(case, name, "operators", 1, pair, times, {"plain": worst})


def _result(contestant: Contestant, q: np.ndarray) -> np.ndarray:
    """What a line gives at one configuration."""
    scope = {**contestant.scope, "qs": cycle([q])}
    exec(contestant.statement, scope)
    return scope["y"]


def main() -> None:
    """Print the lines and what they take."""
    case = Case("arm", "arm of seven hinges", hinge.zoo.arm(7).mechanism)
    for row in operators(case, Settings()):
        best, other = row.best["hinge"], row.best["plain"]
        print(f"{row.quantity:36} {1e6 * best:7.2f} µs   plain {1e6 * other:8.0f} µs")


if __name__ == "__main__":
    main()

"""`python -m bench.accuracy`: how many digits are right, and those of Pinocchio and MuJoCo.

The reference is the plain algorithm in arithmetic of 40 digits, on the mechanism whose rotations
are exact and of which everyone has the numbers rounded.  Errors are the largest difference of an
entry, over the largest entry of the exact result, in units of eps = 2⁻⁵²; printed as tables, and
written to docs/accuracy.md and docs/accuracy.svg.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from rich.console import Console
from rich.progress import Progress

import hinge
from hinge import algorithms
from hinge.algebra.rotation import from_rpy

from .accuracy_functions import section
from .accuracy_page import DRAWN, Found, draw, page
from .accuracy_peers import QUANTITIES, Quantity, contestants, of_hinge
from .robots import chain, make

__all__ = ["CASES", "QUANTITIES", "Case", "exact_mechanism", "measured"]

EPS = float(np.finfo(float).eps)
DIGITS = 40


@dataclass(frozen=True)
class Case:
    """A mechanism, and where its base is if it floats."""

    title: str
    why: str
    make: Callable[[], hinge.Mechanism]
    away: float = 0.0
    states: int = 3

    def drawn(self, mech: hinge.Mechanism) -> Iterator[dict[str, np.ndarray]]:
        """Random states; tau is what inverse dynamics says, rounded."""
        rng, robot = np.random.default_rng(0), hinge.Robot(mech)
        for _ in range(self.states):
            s = {"q": robot.random_configuration(rng)}
            if isinstance(mech.bodies[1].joint, hinge.Free):
                s["q"][:3] += self.away * np.array([1.0, -1.0, 1.0])
            s["qd"], s["qdd"] = rng.normal(size=(2, mech.nv))
            s["tau"] = robot.inverse_dynamics(s["q"], s["qd"], s["qdd"])
            yield s


def _masses(mech: hinge.Mechanism, ratio: float) -> hinge.Mechanism:
    """Every other body heavier by the ratio."""
    bodies = list(mech.bodies)
    for k, b in enumerate(bodies):
        if k % 2 == 0 and k:
            I = b.inertia
            bodies[k] = replace(
                b, inertia=hinge.Inertia(ratio * I.mass, I.com, ratio * I.about_com)
            )
    return replace(mech, bodies=tuple(bodies))


def _floating(links: int) -> hinge.Mechanism:
    """A chain of which the first body floats."""
    mech = chain(links)
    first = replace(mech.bodies[1], joint=hinge.Free(), placement=hinge.Transform())
    return replace(mech, bodies=(mech.bodies[0], first, *mech.bodies[2:]))


def _small(links: int, size: float) -> hinge.Mechanism:
    """A chain whose lengths are so much smaller, gravity's too, its angles nearly right ones."""
    mech = chain(links)
    bodies = [mech.bodies[0]]
    for k, b in enumerate(mech.bodies[1:]):
        turn = from_rpy(0.5 * np.pi * (k % 3) + 1e-12, 0.5 * np.pi * (k % 2), 1e-13)
        m, com, about = b.inertia.mass, b.inertia.com, b.inertia.about_com
        inertia = hinge.Inertia(m, size * com, size**2 * about)
        place = hinge.Transform(turn, size * b.placement.translation)
        bodies.append(replace(b, placement=place, inertia=inertia))
    gravity = tuple(size * g for g in mech.gravity)
    return replace(mech, bodies=tuple(bodies), gravity=gravity)


CASES = (
    Case("A chain of 8", "General links and angles.", lambda: chain(8)),
    Case(
        "Mass ratios of 10⁶",
        "A chain of 8, every other link a million times heavier.",
        lambda: _masses(chain(8), 1e6),
    ),
    Case(
        "10 km away",
        "A floating base with 7 links on it, 10 km from the origin along each axis.",
        lambda: _floating(8),
        away=1e4,
    ),
    Case(
        "Picometres, and angles that are nearly right",
        "A chain of 8 in picometres, gravity too; its angles are 10⁻¹² off right ones.",
        lambda: _small(8, 1e-12),
    ),
    Case("Talos", "A humanoid, floating.", lambda: make("talos").mechanism, states=2),
)
CHAINS = (4, 8, 16, 32, 64, 128, 256, 1000)


def exact_mechanism(mech: hinge.Mechanism) -> hinge.Mechanism:
    """The mechanism in numbers of many digits, every rotation a rotation to all of them."""
    bodies = [mech.bodies[0]]
    for b in mech.bodies[1:]:
        I = b.inertia
        inertia = hinge.Inertia(mpmath.mpf(I.mass), _many(I.com), _many(I.about_com))
        pose = _pose(b.placement)
        bodies.append(replace(b, placement=pose, offset=_pose(b.offset), inertia=inertia))
    frames = tuple(replace(f, placement=_pose(f.placement)) for f in mech.frames)
    return replace(mech, bodies=tuple(bodies), frames=frames)


def _pose(X: hinge.Transform) -> hinge.Transform:
    R = _many(X.rotation)
    for _ in range(3):
        R = R - R @ (R.T @ R - np.eye(3)) / 2
    return hinge.Transform(R, _many(X.translation))


def _many(x: Any) -> np.ndarray:
    """The same numbers with room for more digits."""
    values = [mpmath.mpf(float(e)) for e in np.ravel(x)]
    return np.array(values, dtype=object).reshape(np.shape(x))


def _exact(mech: hinge.Mechanism, quantity: Quantity, s: Mapping[str, np.ndarray]) -> np.ndarray:
    plain = getattr(algorithms, quantity.algorithm)
    given = {n: _many(x) for n, x in s.items()}
    return np.asarray(
        of_hinge(lambda *a, **k: plain(mech, *a, **k), mech, quantity, given), dtype=object
    )


def errors(got: Any, exact: np.ndarray) -> float:
    """The largest difference over the largest exact entry, in eps."""
    exact = exact.ravel()
    apart = np.abs(_many(got).ravel() - exact).max()
    return float(apart / np.abs(exact).max() / EPS)


def measured(
    case: Case, quantities: Iterable[str] = QUANTITIES, tell: Callable[[str], Any] = str
) -> Found:
    """Errors by quantity and contestant, one for each state."""
    mech, found = case.make(), Found()
    there = contestants(mech)
    with mpmath.workdps(DIGITS):
        truth, states = exact_mechanism(mech), list(case.drawn(mech))
        for name in quantities:
            tell(f"{case.title}: {name}")
            quantity = QUANTITIES[name]
            if mech.nv > quantity.largest:
                continue
            found[name] = {who: [] for who in there}
            for s in states:
                exact = _exact(truth, quantity, s)
                for who, answer in there.items():
                    got = answer(quantity, s)
                    if got is not None:
                        found[name][who].append(errors(got, exact))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser("python -m bench.accuracy", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the page")
    parser.add_argument("--quick", action="store_true", help="the first case and short chains")
    options = parser.parse_args(arguments)
    cases, lengths = (CASES[:1], CHAINS[:2]) if options.quick else (CASES, CHAINS)
    tables, chains = {}, {}
    with Progress(console=Console(stderr=True)) as progress:
        steps = len(cases) * len(QUANTITIES) + len(lengths) * len(DRAWN)
        task = progress.add_task("accuracy", total=steps)

        def tell(what: str) -> None:
            progress.update(task, description=what, advance=1)

        for n in lengths:
            long = Case(f"{n} links", "", partial(chain, n), states=2)
            chains[n] = measured(long, DRAWN, tell)
        for case in cases:
            tables[case.title, case.why] = measured(case, tell=tell)
    options.out.joinpath("accuracy.md").write_text(
        page(tables, chains, section()), encoding="utf-8"
    )
    draw(chains, options.out / "accuracy.svg")
    print(f"wrote {options.out / 'accuracy.md'} and {options.out / 'accuracy.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

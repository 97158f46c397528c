"""Hybrid dynamics: a kernel against the mass matrix and a Schur complement, and how both grow.

`python -m bench.hybrid` prints the comparison and draws docs/underactuated.svg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hinge
from hinge import algorithms, zoo
from hinge.graph.program import trace
from hinge.specialize.canonical import canonical

from .measure import Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import Contestant
from .robots import Case, States, random_states

__all__ = ["LINKS", "SPLITS", "counts", "hybrids"]

BATCH = 4096
LINKS = (10, 20, 50, 100, 200)
COUNTED = (10, 20, 50, 100, 200, 500, 1000)
AGREEMENT = 1e-8
# the others' batches are loops over samples: a few of them tell the time of all
_FEW = 64

# which of a snake's DoF are driven; the first six are its head's
SPLITS: dict[str, Callable[[int], np.ndarray]] = {
    "all active (inverse dynamics)": lambda nv: np.ones(nv, dtype=bool),
    "base passive": lambda nv: np.arange(nv) >= 6,
    "second half passive": lambda nv: np.arange(nv) < nv // 2,
    "every third joint driven": lambda nv: (np.arange(nv) % 3 == 0) & (np.arange(nv) >= 6),
    "all passive (forward dynamics)": lambda nv: np.zeros(nv, dtype=bool),
}

# as one writes it with Pinocchio and NumPy
_PIN = """
def hybrid(q, v, a, t):
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    b = pin.nonLinearEffects(model, data, q, v)
    M_pa = M[pa]
    a[p] = np.linalg.solve(M[pp], t[p] - b[p] - M_pa @ a[a_])
    t[a_] = M_pa.T @ a[p] + M[aa] @ a[a_] + b[a_]
    return t, a
"""


def counts(links: int, split: str) -> int:
    """Multiplications and additions of hybrid dynamics of a snake."""
    mech = canonical(zoo.snake(links).mechanism).mechanism
    active = tuple(bool(x) for x in SPLITS[split](mech.nv))
    shapes = [(mech.nq,), *[(mech.nv,)] * 3]
    ops = trace(lambda *x: algorithms.hybrid_dynamics(mech, *x, active), shapes).ops
    return ops.multiplications + ops.additions


def hybrids(settings: Settings, links: Sequence[int] = LINKS) -> Iterator[Row]:
    """A free-flying arm, then snakes with every third joint driven; one thread."""
    arm = zoo.space_arm(7).mechanism
    yield _contest(Case("space_arm7", "free-flying arm", arm), np.arange(13) >= 6, settings)
    for n in links:
        mech = zoo.snake(n).mechanism
        active = SPLITS["every third joint driven"](mech.nv)
        yield _contest(Case(f"snake{n}", f"snake of {n}", mech), active, settings)


def _contest(case: Case, active: np.ndarray, settings: Settings) -> Row:
    states = random_states(case.mechanism, BATCH)
    ours = _hinge(case, states, active)
    others = [_pin(case, states.head(_FEW), active)] if installed("pinocchio") else []
    # how much of it is Pinocchio's own
    alone = [_crba(c) for c in others]
    samples = {"hinge": BATCH, "pin": _FEW, "crba": _FEW}
    everyone = [ours, *others, *alone]
    times = interleave(everyone, settings)
    each = {name: t / samples[name] for name, t in times.items()}
    difference = {}
    for other in others:
        a, b = ours.result()[:_FEW], other.result()
        difference[other.name] = worst = float(np.abs(a - b).max() / np.abs(b).max())
        if not worst < AGREEMENT:
            raise WrongResultError(f"hybrid dynamics of {case.name} differ by {worst:.1e}")
    return Row.of(case, "hybrid_dynamics", "hybrid", BATCH, everyone, each, difference)


def _hinge(case: Case, states: States, active: np.ndarray) -> Contestant:
    robot = hinge.Robot(case.mechanism, threads=1)
    scope: dict[str, Any] = {"robot": robot, "q": states.q, "qd": states.qd, "qdd": states.qdd}
    scope |= {"tau": states.tau, "active": active, "out": []}
    text = "out[:] = robot.hybrid_dynamics(q, qd, qdd, tau, active)"
    return Contestant("hinge", text, scope, lambda: np.concatenate(scope["out"], axis=1))


def _pin(case: Case, states: States, active: np.ndarray) -> Contestant:
    import pinocchio as pin

    model, there = _model(pin, case.mechanism)
    held = active[there]
    scope: dict[str, Any] = {"pin": pin, "np": np, "model": model, "data": model.createData()}
    a, p = np.flatnonzero(held), np.flatnonzero(~held)
    scope |= {"a_": a, "p": p, "pp": np.ix_(p, p), "pa": np.ix_(p, a), "aa": np.ix_(a, a)}
    scope["out"] = []
    exec(_PIN, scope)
    q = np.concatenate([states.q[:, :3], states.q[:, 4:7], states.q[:, 3:4], states.q[:, 7:]], 1)
    rates = [np.ascontiguousarray(x[:, there]) for x in (states.qd, states.qdd, states.tau)]
    scope["states"] = list(zip(q, *rates, strict=True))
    text = "out[:] = [hybrid(q, v, a.copy(), t.copy()) for q, v, a, t in states]"
    back = np.argsort(there)

    def result() -> np.ndarray:
        found = np.array(scope["out"])[:, :, back]
        return found.reshape(len(found), -1)

    return Contestant("pin", text, scope, result)


def _crba(whole: Contestant) -> Contestant:
    """The two calls of Pinocchio alone, nothing solved."""
    text = "for q, v, a, t in states: crba(model, data, q); nle(model, data, q, v)"
    pin = whole.scope["pin"]
    scope = whole.scope | {"crba": pin.crba, "nle": pin.nonLinearEffects}
    return Contestant("crba", text, scope, whole.result)


def _model(pin: Any, mech: hinge.Mechanism) -> tuple[Any, np.ndarray]:
    """Pinocchio's model of a free base with hinges, and which of our rates are its."""
    model = pin.Model()
    model.gravity.linear = np.array(mech.gravity)
    axes = {(0.0, 1.0, 0.0): pin.JointModelRY, (0.0, 0.0, 1.0): pin.JointModelRZ}
    for k, body in enumerate(mech.bodies[1:], 1):
        at = pin.SE3(body.placement.rotation, np.asarray(body.placement.translation))
        own = body.inertia
        inertia = pin.Inertia(own.mass, np.asarray(own.com), np.asarray(own.about_com))
        free = isinstance(body.joint, hinge.Free)
        joint = pin.JointModelFreeFlyer() if free else axes[tuple(body.joint.axis)]()
        model.addJoint(body.parent, joint, at, body.joint_name)
        model.appendBodyToJoint(k, inertia, pin.SE3.Identity())
    model.armature = np.concatenate([np.zeros(6), *[b.joint.armature for b in mech.bodies[2:]]])
    return model, np.r_[3:6, 0:3, 6 : mech.nv]


def main() -> None:
    """Measure, print, draw."""
    rows = list(hybrids(Settings()))
    for row in rows:
        ratio = ", ".join(f"{k} {v:.1f} ×" for k, v in row.ratio.items())
        own = f"{1e6 * row.best['hinge']:.3g} µs"
        print(f"{row.case.label:18s} {own:>10s}  {ratio}  {row.difference}")
    cost = {split: [counts(n, split) for n in COUNTED] for split in SPLITS}
    for split, found in cost.items():
        slope = (found[-1] - found[0]) / (COUNTED[-1] - COUNTED[0])
        print(f"{split:32s} {found[0]:6d} … {found[-1]:7d}  {slope:6.1f} a link")
    _draw(rows, cost, Path("docs/underactuated.svg"))


def _draw(rows: Sequence[Row], cost: dict[str, list[int]], path: Path) -> None:
    import matplotlib.style

    matplotlib.use("Agg")
    matplotlib.style.use("hinge.look")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for split, found in cost.items():
        left.loglog(COUNTED, found, "o-", ms=3, lw=1, label=split)
    left.set(xlabel="links", ylabel="multiplications and additions")
    left.legend(frameon=False, fontsize=7)
    snakes = [row for row in rows if row.case.name.startswith("snake")]
    names = {"hinge": "hinge", "pin": "crba + NumPy Schur complement", "crba": "crba and nle alone"}
    for key, name in names.items():
        known = [row for row in snakes if key in row.best]
        times = [1e6 * row.best[key] for row in known]
        links = [r.case.mechanism.n_bodies for r in known]
        right.loglog(links, times, "o-", ms=3, lw=1, label=name)
    right.set(xlabel="links", ylabel="µs per state, one core")
    right.legend(frameon=False, fontsize=7)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()

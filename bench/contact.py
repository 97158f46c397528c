"""Robots on their feet: constrained dynamics and impacts beside Pinocchio's, and with masks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import hinge

from .measure import BATCH, TOLERANCE, Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import SWAP, Contestant, Pinocchio
from .robots import HELD, HELD_DERIVATIVES, Case, States, contacts, random_states

__all__ = ["AIMS", "DERIVATIVE_AIMS", "MOST_MASKED", "Aims", "held", "held_derivatives"]

# states whose derivatives a core's own cache holds
_NEAR = 32
# Pinocchio is asked for so many states of a batch, one after the other
_LOOP = 512
_ARGUMENTS = HELD | HELD_DERIVATIVES


class Aims(NamedTuple):
    """Seconds per state in a batch, of one call, of the first call; Pinocchio's time over ours."""

    batch: float
    call: float
    first: float
    ratio: float


AIMS = {"talos": Aims(0.8e-6, 3e-6, 2.0, 20.0), "solo12": Aims(0.25e-6, 1.5e-6, 2.0, 30.0)}
DERIVATIVE_AIMS = {
    "talos": Aims(6e-6, 30e-6, 2.0, 13.0),
    "solo12": Aims(1.2e-6, 6e-6, 2.0, 24.0),
}
# a batch with masks over one without, at most
MOST_MASKED = 1.4


def held(case: Case, settings: Settings) -> Iterator[Row]:
    """Batches, single calls, and masks."""
    states = random_states(case.mechanism, BATCH)
    ours = _Hinge(case, states)
    theirs = _Pinocchio(case, states) if installed("pinocchio") else None
    for quantity in HELD:
        for kind, count in (("held", BATCH), ("one held", 1)):
            both = [ours.contestant(quantity, count)]
            both += [theirs.contestant(quantity, count)] if theirs else []
            worst = {c.name: _difference(both[0], c) for c in both[1:]}
            yield _row(case, quantity, kind, count, both, worst, settings)
        pair = [ours.contestant(quantity, BATCH), ours.masked(quantity)]
        worst = {"with masks": _difference(*pair)}
        yield _row(case, quantity, "masks", BATCH, pair, worst, settings)


def held_derivatives(case: Case, settings: Settings) -> Iterator[Row]:
    """Batches whose results stay in a core's cache, and single calls."""
    states = random_states(case.mechanism, _NEAR)
    ours = _Hinge(case, states)
    theirs = _Pinocchio(case, states) if installed("pinocchio") else None
    for quantity in HELD_DERIVATIVES:
        for kind, count in (("held derivatives", _NEAR), ("one held derivative", 1)):
            both = [ours.contestant(quantity, count)]
            both += [theirs.contestant(quantity, count)] if theirs else []
            worst = {c.name: _difference(both[0], c) for c in both[1:]}
            yield _row(case, quantity, kind, count, both, worst, settings)


class _Hinge:
    """The public calls."""

    def __init__(self, case: Case, states: States) -> None:
        self.case, self.states = case, states
        self.robot = hinge.Robot(case.mechanism, threads=1)

    def contestant(self, quantity: str, count: int) -> Contestant:
        scope = self._scope(quantity, count)
        given = ", ".join([*_ARGUMENTS[quantity], "feet"])
        more = ", out=out" if count > 1 else ""
        return self._of("hinge", f"robot.{quantity}({given}{more})", scope, quantity)

    def masked(self, quantity: str) -> Contestant:
        """Every foot on the ground, as a mask with each sample says."""
        scope = self._scope(quantity, BATCH)
        scope["mask"] = np.ones((BATCH, len(scope["feet"])))
        given = ", ".join([*HELD[quantity], "feet"])
        return self._of(
            "with masks", f"robot.{quantity}({given}, mask=mask, out=out)", scope, quantity
        )

    def _scope(self, quantity: str, count: int) -> dict[str, Any]:
        arrays = {n: getattr(self.states, n)[:count].copy() for n in _ARGUMENTS[quantity]}
        feet = contacts(self.case.name)
        whole = getattr(self.robot, quantity)(*arrays.values(), feet)
        one = {n: x[0].copy() for n, x in arrays.items()}
        out = [np.empty_like(x) for x in whole]
        return {"robot": self.robot, "feet": feet, "out": out, **(arrays if count > 1 else one)}

    def _of(self, name: str, statement: str, scope: dict[str, Any], quantity: str) -> Contestant:
        def result() -> np.ndarray:
            # once each for the checked way, the door, and what it learns
            for _ in range(3):
                exec(statement, scope)
            found = eval(statement, scope)
            lead = len(scope["q"]) if scope["q"].ndim == 2 else 1
            return np.concatenate([np.reshape(x, (lead, -1)) for x in found], axis=-1)

        return Contestant(name, statement, scope, result)


class _Pinocchio:
    """Pinocchio's own reading of the same file, with the same feet."""

    def __init__(self, case: Case, states: States) -> None:
        self.peer, self.feet = Pinocchio(case), contacts(case.name)
        columns = self.peer._state("forward_dynamics", states)
        self.rows = {k: np.ascontiguousarray(x.T[:_LOOP]) for k, x in columns.items()}

    @cached_property
    def constraints(self) -> tuple[Any, Any]:
        """Models of the contacts, and their data."""
        pin, model = self.peer.pin, self.peer.model
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for c in self.feet:
            frame = model.frames[model.getFrameId(c.frame)]
            kind = pin.ContactType.CONTACT_3D if c.kind == "point" else pin.ContactType.CONTACT_6D
            axes = pin.LOCAL_WORLD_ALIGNED if c.reference == "aligned" else pin.LOCAL
            place = model, frame.parentJoint, frame.placement, axes
            models.append(pin.RigidConstraintModel(kind, *place))
            datas.append(models[-1].createData())
        pin.initConstraintDynamics(model, self.peer.data, models, datas)
        return models, datas

    def contestant(self, quantity: str, count: int) -> Contestant:
        models, datas = self.constraints
        pin, peer = self.peer.pin, self.peer
        scope = {"pin": pin, "model": peer.model, "data": peer.data, **self.rows}
        scope |= {"models": models, "datas": datas, "steps": pin.ProximalSettings(1e-12, 0.0, 1)}
        call = "pin.constraintDynamics(model, data, q[i], v[i], tau[i], models, datas, steps)"
        if quantity.startswith("impulse_dynamics"):
            call = "pin.impulseDynamics(model, data, q[i], v[i], models, datas, 0.0, steps)"
        scope["i"] = 0
        if quantity in HELD_DERIVATIVES:
            return self._derivatives(quantity, count, call, scope)
        loop = call if count == 1 else f"for i in range({_LOOP}): {call}"

        def result() -> np.ndarray:
            out = []
            for i in range(min(count, 64)):
                x = eval(call, scope | {"i": i})[peer._back]
                parts = zip(self.feet, datas, strict=True)
                forces = [d.contact_force.vector[SWAP][list(c.axes)] for c, d in parts]
                out.append(np.concatenate([x, *forces]))
            return np.array(out)

        return Contestant("pin", loop, scope, result)

    def _derivatives(
        self, quantity: str, count: int, call: str, scope: dict[str, Any]
    ) -> Contestant:
        """The motion and then its derivatives, of which there are more than of an impact."""
        impact, names = quantity.startswith("impulse"), ("dq", "dv", "dtau")
        own = "Impulse" if impact else "Constraint"
        more = "models, datas, 0.0, steps" if impact else "models, datas, steps"
        both = f"{call}; pin.compute{own}DynamicsDerivatives(model, data, {more})"
        loop = both if count == 1 else f"for i in range({count}): {both}"
        peer, back, rows = self.peer, self.peer._back, self._row_order()

        def result() -> np.ndarray:
            # data that were used before change what Pinocchio makes of an impact
            data, (models, datas) = peer.model.createData(), self.constraints
            peer.pin.initConstraintDynamics(peer.model, data, models, datas)
            exec(both, scope | {"data": data, "i": 0})
            parts = names[:2] if impact else names
            moved = [np.array(getattr(data, f"ddq_{n}"))[np.ix_(back, back)] for n in parts]
            # and its derivatives are those of the jump
            moved[1] = moved[1] + impact * np.eye(len(back))
            forces = [np.array(getattr(data, f"dlambda_{n}"))[rows][:, back] for n in parts]
            return np.concatenate([x.ravel() for x in (*moved, *forces)])[None]

        return Contestant("pin", loop, scope, result)

    def _row_order(self) -> list[int]:
        """Where Pinocchio has our rows: linear ones first in each contact."""
        rows, start = [], 0
        for c in self.feet:
            rows += [start + i for i in (SWAP if len(c.axes) == 6 else range(3))]
            start += len(c.axes)
        return rows


def _difference(ours: Contestant, other: Contestant) -> float:
    """The largest of results, relative to the largest entry of each sample."""
    a, b = ours.result(), other.result()
    a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
    worst = float(np.max(np.abs(a - b).max(axis=1) / np.abs(b).max(axis=1)))
    if not worst < TOLERANCE:
        raise WrongResultError(f"{ours.statement} and {other.statement} differ by {worst:.1e}")
    return worst


def _row(
    case: Case,
    quantity: str,
    kind: str,
    count: int,
    both: list[Contestant],
    worst: dict[str, float],
    settings: Settings,
) -> Row:
    runs = {"pin": min(count, _NEAR if quantity in HELD_DERIVATIVES else _LOOP)}
    times = {n: t / runs.get(n, count) for n, t in interleave(both, settings).items()}
    return Row.of(case, quantity, kind, count, both, times, worst)

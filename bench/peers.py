"""Who is timed: hinge and Pinocchio here, the others in `others`.

Every contestant is a statement, the very text that is timed, and a way to see its result in
hinge's conventions.  Conversions of states and results are never part of what is timed, and every
contestant gets its arrays in the layout it likes best.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

import hinge

from .robots import ARGUMENTS, Case, States

__all__ = ["SWAP", "Contestant", "Hinge", "Peer", "Pinocchio", "cores", "free_memory"]

# (angular; linear) to (linear; angular) and back
SWAP = np.r_[3:6, 0:3]
# bytes per nv³ of a Data of Pinocchio
_PIN_DATA = 33
# results of a loop that keeps none are compared on so many states
_LOOKED_AT = 64


@dataclass(frozen=True)
class Contestant:
    """Something to time.

    statement: what is run, over the names of `scope`; result: (states, …) in hinge's conventions.
    """

    name: str
    statement: str
    scope: dict[str, Any]
    result: Callable[[], np.ndarray]


class Peer(Protocol):
    """A library that computes some of the quantities of one robot."""

    name: str

    def batch(self, quantity: str, states: States, threads: int) -> Contestant | None:
        """All states at once; None where there is nothing to compare with."""
        ...

    def single(self, quantity: str, states: States) -> Contestant | None:
        """The first state in one call from Python."""
        ...


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> float:
    """Bytes that are available."""
    try:
        with open("/proc/meminfo") as lines:
            facts = dict(line.split(":") for line in lines)
        return 1024.0 * int(facts["MemAvailable"].split()[0])
    except (OSError, KeyError):
        return 4e9


class Hinge:
    """The public calls of `hinge.Robot`."""

    name = "hinge"

    def __init__(self, case: Case) -> None:
        self.case = case

    def robot(self, threads: int) -> hinge.Robot:
        """The robot, its batches on so many threads."""
        return hinge.Robot(self.case.mechanism, threads=threads)

    def batch(self, quantity: str, states: States, threads: int) -> Contestant:
        robot, given = self.robot(threads), states.arguments(quantity)
        out = np.empty_like(getattr(robot, quantity)(*given))
        names = ARGUMENTS[quantity]
        scope = {"robot": robot, "out": out, **dict(zip(names, given, strict=True))}
        statement = f"robot.{quantity}({', '.join(names)}, out=out)"
        return Contestant(self.name, statement, scope, lambda: out)

    def single(self, quantity: str, states: States) -> Contestant:
        robot, names = self.robot(1), ARGUMENTS[quantity]
        given = [x[0].copy() for x in states.arguments(quantity)]
        method = getattr(robot, quantity)
        method(*given)
        scope = {"robot": robot, **dict(zip(names, given, strict=True))}
        statement = f"robot.{quantity}({', '.join(names)})"
        return Contestant(self.name, statement, scope, lambda: method(*given)[None])


class Pinocchio:
    """Pinocchio's own reading of the same file: in parallel over states, or one call at a time."""

    name = "pin"

    def __init__(self, case: Case) -> None:
        import pinocchio

        self.case, self.pin = case, pinocchio
        self.pools: dict[int, Any] = {}
        self.model = self._chain() if case.urdf is None else self._read()

    def _read(self) -> Any:
        base = (self.pin.JointModelFreeFlyer(),) if self.case.floating else ()
        return self.pin.buildModelFromXML(self.case.urdf, *base)

    def _chain(self) -> Any:
        model, pin = self.pin.Model(), self.pin
        for k, body in enumerate(self.case.mechanism.bodies[1:], 1):
            at = pin.SE3(body.placement.rotation, np.asarray(body.placement.translation))
            own = body.inertia
            inertia = pin.Inertia(own.mass, np.asarray(own.com), np.asarray(own.about_com))
            # the cheapest joint it has for this axis
            model.addJoint(k - 1, pin.JointModelRZ(), at, body.joint_name)
            model.appendBodyToJoint(k, inertia, pin.SE3.Identity())
        return model

    def fits(self, copies: int) -> bool:
        """Whether its Data, which grow with the cube of nv, leave half of the memory alone."""
        return copies * _PIN_DATA * self.model.nv**3 < 0.5 * free_memory()

    def pool(self, threads: int) -> Any:
        """A pool for so many threads, one at a time; None if memory does not suffice."""
        if threads not in self.pools:
            self.pools.clear()
            # one more than is kept is needed while it is made
            fits = self.fits(threads + 1)
            self.pools[threads] = self.pin.ModelPool(self.model, threads) if fits else None
        return self.pools[threads]

    def batch(self, quantity: str, states: States, threads: int) -> Contestant | None:
        if quantity == "mass_matrix":
            return self._loop(states) if threads == 1 and self.fits(1) else None
        pool = self.pool(threads)
        if pool is None:
            return None
        call, last = _PARALLEL[quantity]
        scope = {"pin": self.pin, "threads": threads, **self._state(quantity, states)}
        scope["pool"] = pool
        scope["out"] = np.zeros((self.model.nv, len(states.q)), order="F")
        statement = f"pin.{call}(threads, pool, q, v, {last}, out)"
        return Contestant(self.name, statement, scope, lambda: scope["out"].T[:, self._back])

    def _loop(self, states: States) -> Contestant:
        q = self._state("mass_matrix", states)["q"]
        scope = {"pin": self.pin, "model": self.model, "data": self.data, "states": list(q.T)}
        statement = "for q in states: pin.crba(model, data, q)"
        return Contestant(self.name, statement, scope, lambda: self._mass(scope["states"]))

    def single(self, quantity: str, states: States) -> Contestant | None:
        if not self.fits(1):
            return None
        call, names = _SINGLE[quantity]
        state = {k: x[:, 0].copy() for k, x in self._state(quantity, states).items()}
        scope = {"pin": self.pin, "model": self.model, "data": self.data, **state}
        function = getattr(self.pin, call)

        def result() -> np.ndarray:
            if quantity == "mass_matrix":
                return self._mass([scope["q"]])
            return function(self.model, self.data, *state.values())[None, self._back]

        return Contestant(self.name, f"pin.{call}(model, data, {names})", scope, result)

    @cached_property
    def data(self) -> Any:
        """Pinocchio's workspace."""
        # createData needs twice as much while it works
        return self.pin.Data(self.model)

    @cached_property
    def _there(self) -> np.ndarray:
        """Which of hinge's rates are Pinocchio's, in Pinocchio's order."""
        there = np.zeros(self.model.nv, dtype=int)
        for name, joint in self._joints():
            at = self.case.mechanism.v_slice(name)
            own = np.arange(at.start, at.stop)
            there[joint.idx_v : joint.idx_v + joint.nv] = own[SWAP] if joint.nv == 6 else own
        return there

    @cached_property
    def _back(self) -> np.ndarray:
        return np.argsort(self._there)

    def _joints(self) -> list[tuple[str, Any]]:
        pairs = zip(self.model.names, self.model.joints, strict=True)
        return [(name, joint) for name, joint in pairs if name != "universe"]

    def _state(self, quantity: str, states: States) -> dict[str, np.ndarray]:
        """States as columns next to each other in memory, as Pinocchio wants them."""
        q = np.zeros((len(states.q), self.model.nq))
        for name, joint in self._joints():
            x = states.q[:, self.case.mechanism.q_slice(name)]
            q[:, joint.idx_q : joint.idx_q + joint.nq] = _coordinates(joint.shortname(), x)
        rates = [np.ascontiguousarray(x[:, self._there]) for x in states.arguments(quantity)[1:]]
        last = "a" if quantity == "inverse_dynamics" else "tau"
        columns = dict(zip(("v", last), rates, strict=False))
        return {"q": q.T, **{k: x.T for k, x in columns.items()}}

    def _mass(self, states: list[np.ndarray]) -> np.ndarray:
        """Mass matrices from their upper triangles, the only ones that are promised."""
        out = []
        for q in states[:_LOOKED_AT]:
            upper = np.triu(self.pin.crba(self.model, self.data, q))
            out.append((upper + np.triu(upper, 1).T)[np.ix_(self._back, self._back)])
        return np.array(out)


_PARALLEL = {
    "inverse_dynamics": ("rneaInParallel", "a"),
    "forward_dynamics": ("abaInParallel", "tau"),
}
_SINGLE = {
    "inverse_dynamics": ("rnea", "q, v, a"),
    "forward_dynamics": ("aba", "q, v, tau"),
    "mass_matrix": ("crba", "q"),
}


def _coordinates(kind: str, x: np.ndarray) -> np.ndarray:
    """hinge's coordinates of one joint as Pinocchio's joint of that kind has them."""
    if kind == "JointModelFreeFlyer":
        return np.concatenate([x[:, :3], x[:, 4:], x[:, 3:4]], axis=1)
    if kind.startswith(("JointModelRUB", "JointModelRevoluteUnbounded")):
        return np.concatenate([np.cos(x), np.sin(x)], axis=1)
    return x

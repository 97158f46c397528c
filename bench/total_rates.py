"""Total rates and their motion: ours in sweeps, Pinocchio's mass matrix with NumPy's Cholesky.

Nobody else has them.  Pinocchio keeps its own order of joints, in which total rates are others: the
kinetic energy ½|ν|² and the power νᵀν̇ are compared, and the generic code with every entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import hinge

from .measure import BATCH, TOLERANCE, Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import Contestant, Pinocchio
from .robots import Case, States, random_states

__all__ = ["ROBOTS", "total_rates"]

ROBOTS = ("panda", "talos")

_NUMPY = {
    "total_rates": """
for i, (q, v, t) in enumerate(states):
    M[i] = pin.crba(model, data, q)
m = np.linalg.cholesky(M[:, ::-1, ::-1])[:, ::-1, ::-1]
nu[:] = np.einsum("bij,bi->bj", m, V)
""",
    "diagonal_dynamics": """
for i, (q, v, t) in enumerate(states):
    M[i] = pin.crba(model, data, q)
    C[i] = pin.computeCoriolisMatrix(model, data, q, v)
    A[i] = pin.aba(model, data, q, v, t)
m = np.linalg.cholesky(M[:, ::-1, ::-1])[:, ::-1, ::-1]
l = np.linalg.inv(m)
rate = l @ (C + C.transpose(0, 2, 1)) @ l.transpose(0, 2, 1)
nu[:] = np.einsum("bij,bi->bj", m, V)
nud[:] = np.einsum("bij,bi->bj", m, A) + np.einsum("bij,bi->bj", weight * rate, nu)
""",
}


def total_rates(case: Case, settings: Settings) -> Iterator[Row]:
    """Both quantities of a batch, on one thread."""
    states = random_states(case.mechanism, BATCH)
    robot = hinge.Robot(case.mechanism, threads=1)
    nu = robot.total_rates(states.q, states.qd)
    for quantity in _NUMPY:
        ours, got = _hinge(robot, quantity, states, nu)
        contestants, differences = [ours], {"generic": _generic(robot, quantity, states, nu, got)}
        if installed("pinocchio"):
            peer, scope = _pin(case, quantity, states)
            contestants.append(peer)
            exec(peer.statement, scope)
            mine = [0.5 * (nu * nu).sum(axis=1), (nu * got).sum(axis=1)]
            others = [
                0.5 * (scope["nu"] ** 2).sum(axis=1),
                (scope["nu"] * scope["nud"]).sum(axis=1),
            ]
            which = list(_NUMPY).index(quantity)
            scale = np.abs(mine[which]).max()
            differences["pin"] = float(np.abs(mine[which] - others[which]).max() / scale)
        for name, worst in differences.items():
            if not worst < TOLERANCE:
                raise WrongResultError(f"{quantity} of {name} differs by {worst:.1e}")
        times = {k: t / BATCH for k, t in interleave(contestants, settings).items()}
        yield Row.of(case, quantity, "total rates", BATCH, contestants, times, differences)


def _hinge(
    robot: hinge.Robot, quantity: str, states: States, nu: np.ndarray
) -> tuple[Contestant, np.ndarray]:
    scope: dict[str, Any] = {"robot": robot, "q": states.q, "qd": states.qd, "nu": nu}
    scope |= {"tau": states.tau, "out": np.empty_like(nu)}
    given = "q, qd" if quantity == "total_rates" else "q, nu, tau"
    statement = f"robot.{quantity}({given}, out=out)"
    exec(statement, scope)
    out = scope["out"]
    return Contestant("hinge", statement, scope, lambda: out), out


def _generic(
    robot: hinge.Robot, quantity: str, states: States, nu: np.ndarray, got: np.ndarray
) -> float:
    """How far the kernel is from the plain code, on the first state."""
    rest = (states.qd[0],) if quantity == "total_rates" else (nu[0], states.tau[0])
    expected = getattr(robot.alg, quantity)(states.q[0], *rest)
    return float(np.abs(got[0] - expected).max() / np.abs(expected).max())


def _pin(case: Case, quantity: str, states: States) -> tuple[Contestant, dict[str, Any]]:
    peer = Pinocchio(case)
    columns = peer._state("forward_dynamics", states)
    count, nv = len(states.q), case.nv
    scope: dict[str, Any] = {"pin": peer.pin, "model": peer.model, "data": peer.data, "np": np}
    scope["states"] = list(zip(columns["q"].T, columns["v"].T, columns["tau"].T, strict=True))
    scope |= {name: np.zeros((count, nv, nv)) for name in ("M", "C")}
    scope |= {name: np.zeros((count, nv)) for name in ("A", "nu", "nud")}
    scope["V"] = np.ascontiguousarray(columns["v"].T)
    scope["weight"] = np.triu(np.ones((nv, nv))) - 0.5 * np.eye(nv)
    return Contestant("pin", _NUMPY[quantity], scope, lambda: scope["nu"]), scope

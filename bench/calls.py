"""One call from Python in every spelling, beside Pinocchio's; and results in memory used again."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import hinge
from hinge.model.parameters import parameters
from hinge.spatial import se3, so3

from .measure import BATCH, TOLERANCE, Row, Settings, WrongResultError, interleave
from .operators import operators
from .others import installed
from .peers import Contestant, Pinocchio
from .robots import Case, random_states

__all__ = ["LEAST", "MOST_FRESH", "ROBOTS", "aims", "calls"]

ROBOTS = ("panda", "talos")
# how many times longer Pinocchio takes, at least, and a batch without `out`, at most
LEAST, MOST_FRESH = 1.5, 1.3


class Spelling(NamedTuple):
    """A call; aim: the seconds that it may take."""

    statement: str
    aim: float


# of an arm of seven hinges
_SPELLINGS = {
    "inverse dynamics": Spelling("robot.inverse_dynamics(q, qd, qdd)", 0.6e-6),
    "by name": Spelling("robot.inverse_dynamics(q=q, qd=qd, qdd=qdd)", 0.6e-6),
    "with f_ext": Spelling("robot.inverse_dynamics(q, qd, qdd, f_ext)", 0.6e-6),
    "with f_ext by name": Spelling("robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext)", 0.6e-6),
    "into out": Spelling("robot.inverse_dynamics(q, qd, qdd, out=out)", 0.6e-6),
    "all by name": Spelling(
        "robot.inverse_dynamics(q=q, qd=qd, qdd=qdd, f_ext=f_ext, out=out)", 0.6e-6
    ),
    "with inertias": Spelling("loose.inverse_dynamics(q, qd, qdd, inertia=inertia)", 0.6e-6),
    "generalized jacobian": Spelling('robot.generalized_jacobian(q, "tool", active)', 2e-6),
    "hybrid dynamics": Spelling("robot.hybrid_dynamics(q, qd, qdd, tau, active)", 2e-6),
    "linearize": Spelling("robot.linearize(q, qd, tau)", 10e-6),
    "linearize, dt": Spelling("robot.linearize(q, qd, tau, dt=0.01)", 10e-6),
}
# ours, Pinocchio's, and what Pinocchio's is, in our conventions
_FRAMES = {
    "frame pose": (
        "robot.frame_pose(q, frame)",
        "pin.forwardKinematics(model, data, q); pin.updateFramePlacement(model, data, id)",
        "data.oMf[id].homogeneous",
    ),
    "jacobian": (
        "robot.jacobian(q, frame)",
        "J = pin.computeFrameJacobian(model, data, q, id, aligned)",
        "J[swap][:, back]",
    ),
    "frame velocity": (
        "robot.frame_velocity(q, qd, frame)",
        "pin.forwardKinematics(model, data, q, v)\n"
        "V = pin.getFrameVelocity(model, data, id, aligned)",
        "V.vector[swap]",
    ),
    "momentum": (
        "robot.momentum(q, qd)",
        "h = pin.computeCentroidalMomentum(model, data, q, v)",
        "h.vector[swap]",
    ),
}
# of rotations and poses: ours, Pinocchio's, and what Pinocchio's is, in our conventions
_SPATIAL = {
    "so3.exp": ("so3.exp(w)", "R = pin.exp3(w)", "R"),
    "so3.log": ("so3.log(R)", "w = pin.log3(R)", "w"),
    "se3.exp": ("se3.exp(V)", "M = pin.exp6(v)", "M.homogeneous"),
    "se3.log": ("se3.log(X)", "u = pin.log6(M)", "u.vector[swap]"),
    "se3.log_jacobian": ("se3.log_jacobian(X)", "J = pin.Jlog6(M)", "J[swap][:, swap]"),
    "se3.compose": ("se3.compose(X, X)", "MM = M * M", "MM.homogeneous"),
    "so3.to_quaternion": (
        "so3.to_quaternion(R)",
        "Q = pin.Quaternion(R)",
        "Q.coeffs()[[3, 0, 1, 2]] * np.sign(Q.w)",
    ),
}
# results with as many matrices over nv, written to memory that is used again
_FRESH = {
    "mass_matrix": "q",
    "inverse_dynamics_derivatives": "q, qd, qdd",
    "forward_dynamics_derivatives": "q, qd, tau",
}


def aims() -> dict[str, float]:
    """The seconds that every call of the arm may take, operators apart."""
    return {name: spelling.aim for name, spelling in _SPELLINGS.items()}


def calls(case: Case | None, settings: Settings) -> Iterator[Row]:
    """Calls of a robot, beside Pinocchio's; without one, every spelling for an arm."""
    if case is None:
        arm = Case("arm", "arm of 7", hinge.zoo.arm(7).mechanism)
        yield from _spelled(arm, settings)
        yield from _spatial(arm, settings)
        yield from operators(arm, settings)
        return
    yield from _frames(case, settings)
    if case.name == "talos":
        yield from _fresh(case, settings)


def _spelled(case: Case, settings: Settings) -> Iterator[Row]:
    robot, one = hinge.Robot(case.mechanism), random_states(case.mechanism, 1)
    rng = np.random.default_rng(0)
    scope: dict[str, Any] = {
        "robot": robot,
        "loose": hinge.Robot(case.mechanism, parameters=("inertia",)),
        "inertia": parameters(case.mechanism)["inertia"],
        "q": one.q[0].copy(),
        "qd": one.qd[0].copy(),
        "qdd": one.qdd[0].copy(),
        "tau": one.tau[0].copy(),
        "f_ext": rng.normal(size=(len(robot.body_names), 6)),
        "out": np.zeros(robot.nv),
        "active": robot.joint_names[:3],
    }
    for name, spelling in _SPELLINGS.items():
        # once each for the checked way, the door, and what it learns
        for _ in range(3):
            exec(spelling.statement, scope)
        ours = Contestant("hinge", spelling.statement, scope, lambda: np.zeros(0))
        yield _row(case, name, "spelling", 1, [ours], {}, settings)


def _frames(case: Case, settings: Settings) -> Iterator[Row]:
    robot, one = hinge.Robot(case.mechanism), random_states(case.mechanism, 1)
    scope: dict[str, Any] = {"robot": robot, "q": one.q[0].copy(), "qd": one.qd[0].copy()}
    if not installed("pinocchio"):
        return
    peer = Pinocchio(case)
    scope["frame"] = [n for n in robot.frame_names if peer.model.existFrame(n)][-1]
    columns = peer._state("forward_dynamics", one)
    theirs: dict[str, Any] = {"pin": peer.pin, "model": peer.model, "data": peer.data}
    theirs |= {k: x[:, 0].copy() for k, x in columns.items()}
    theirs |= {"id": peer.model.getFrameId(scope["frame"]), "back": peer._back}
    theirs |= {"aligned": peer.pin.LOCAL_WORLD_ALIGNED, "swap": np.r_[3:6, 0:3]}
    for name, statements in _FRAMES.items():
        yield _pair(case, name, "frames", statements, scope, theirs, settings)


def _spatial(case: Case, settings: Settings) -> Iterator[Row]:
    """Functions of `hinge.spatial`, beside Pinocchio's."""
    if not installed("pinocchio"):
        return
    pin: Any = import_module("pinocchio")
    V, swap = np.array([0.3, -0.5, 0.8, 1.0, 2.0, -1.0]), np.r_[3:6, 0:3]
    X = se3.exp(V)
    scope = {"so3": so3, "se3": se3, "V": V, "w": V[:3].copy(), "X": X, "R": X[:3, :3].copy()}
    M = pin.SE3(X)
    theirs = {"pin": pin, "np": np, "v": V[swap], "w": V[:3].copy(), "R": scope["R"], "M": M}
    theirs["swap"] = swap
    for name, (ours, other, result) in _SPATIAL.items():
        yield _pair(case, name, "spatial", (ours, other, result), scope, theirs, settings)


def _pair(
    case: Case,
    name: str,
    kind: str,
    statements: tuple[str, str, str],
    scope: dict[str, Any],
    theirs: dict[str, Any],
    settings: Settings,
) -> Row:
    """One call of ours in turns with one of Pinocchio's that gives the same."""
    ours, other, result = statements
    exec(other, theirs)
    got, expected = eval(ours, scope), np.array(eval(result, theirs))
    worst = float(np.abs(got - expected).max() / np.abs(expected).max())
    if not worst < TOLERANCE:
        raise WrongResultError(f"{name} of {case.label} differs by {worst:.1e}")
    pair = [
        Contestant("hinge", ours, scope, lambda: np.zeros(0)),
        Contestant("pin", other, theirs, lambda: np.zeros(0)),
    ]
    return _row(case, name, kind, 1, pair, {"pin": worst}, settings)


def _fresh(case: Case, settings: Settings) -> Iterator[Row]:
    """A batch into arrays that are there, and into new ones, the last ones having been dropped."""
    robot, states = hinge.Robot(case.mechanism, threads=1), random_states(case.mechanism, BATCH)
    for quantity, given in _FRESH.items():
        scope: dict[str, Any] = {"robot": robot, **vars(states)}
        exec(f"out = robot.{quantity}({given})", scope)
        kept, new = f"robot.{quantity}({given}, out=out)", f"robot.{quantity}({given})"
        pair = [
            Contestant("hinge", kept, scope, lambda: np.zeros(0)),
            Contestant("without out", new, scope, lambda: np.zeros(0)),
        ]
        yield _row(case, quantity, "fresh", BATCH, pair, {}, settings)


def _row(
    case: Case,
    quantity: str,
    kind: str,
    count: int,
    all_: list[Contestant],
    difference: dict[str, float],
    settings: Settings,
) -> Row:
    times = {name: t / count for name, t in interleave(all_, settings).items()}
    return Row.of(case, quantity, kind, count, all_, times, difference)

"""The arrays that algorithms take: their names, shapes and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..algorithms.constrained.description import contacts_of, count_rows
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, parameter_shape

__all__ = ["PER_DOF", "array_shape", "is_array", "meaning"]

# arrays with an entry per degree of freedom, and what the entries are
PER_DOF = {
    "dq": "changes of q along the joints",
    "dqd": "changes of joint velocities",
    "dqdd": "changes of joint accelerations",
    "dtau": "changes of joint forces",
    "dgiven": "changes of accelerations where a DoF is driven, of forces where it is not",
    "cotangent": "weights of what is differentiated, one for each DoF",
    "given": "accelerations where a DoF is driven, forces where it is not",
    "qd": "joint velocities",
    "qdd": "joint accelerations",
    "qdd_before": "joint accelerations of a moment before",
    "tau": "joint forces",
    "dv": "joint displacements",
    "u": "joint displacements",
    "v": "joint velocities",
    "nu": "total rates",
    "eps": "working forces",
    "active": "marks, 1 for a driven DoF and 0 for another",
    "qd_active": "joint velocities, used where a DoF is driven",
    "qdd_active": "joint accelerations, used where a DoF is driven",
    "tau_passive": "joint forces, used where a DoF is not driven",
    "tau_weights": "weights of joint forces",
    "momentum_passive": "joint momenta, used where a DoF is not driven",
}


# arrays with an entry per constraint, or per row of them, and what the entries are
PER_CONSTRAINT = {
    "mask": "marks, 1 for a constraint that acts, 0 for another",
    "restitution": "coefficients of restitution, one for each constraint",
}
PER_ROW = {
    "forces": "forces, one for each row of the constraints",
    "force_weights": "weights of forces, one for each row of the constraints",
}


def array_shape(
    mech: Mechanism, name: str, static: Mapping[str, Any] | None = None
) -> tuple[int, ...]:
    """The shape of one sample of an array of that name; a name without a meaning is a scalar.

    static: the other arguments of the call; some arrays are as long as there are constraints.
    """
    if static and "constraints" in static:
        if name in PER_CONSTRAINT:
            return (len(static["constraints"]),)
        if name in PER_ROW:
            return (count_rows(static["constraints"]),)
        if name == "anchors":
            return (len(contacts_of(static["constraints"])), 4, 4)
    if name in ("q", "q0", "q1"):
        return (mech.nq,)
    if name == "f_ext":
        return (mech.n_bodies, 6)
    if name == "points":
        return (mech.n_bodies, 3)
    if name == "velocity":
        return (6,)
    if name in PARAMETERS:
        return parameter_shape(mech, name)
    return (mech.nv,) if name in PER_DOF else ()


def is_array(name: str) -> bool:
    """Whether an argument of that name is an array; `active` may be one, but need not."""
    named = ("q", "q0", "q1", "s", "span", "f_ext", "points", "anchors", "velocity", "out")
    if name in named or name in PARAMETERS:
        return True
    return name in PER_CONSTRAINT | PER_ROW or (name in PER_DOF and name != "active")


def meaning(mech: Mechanism, name: str) -> str:
    """What one sample of an array of that name holds."""
    if name in ("q", "q0", "q1"):
        return f"nq = {mech.nq} coordinates"
    if name == "f_ext":
        return f"a force (moment; force) on {mech.n_bodies} bodies"
    if name == "s":
        return "a part of the way, a number"
    if name == "span":
        return "a time, a number"
    if name == "points":
        return f"a point of each of {mech.n_bodies} bodies"
    if name == "anchors":
        return "a pose for each contact among the constraints"
    if name == "velocity":
        return "the velocity (ω; v) of a frame"
    if name in PARAMETERS:
        return f"the {name} of the mechanism"
    held = PER_CONSTRAINT | PER_ROW
    if name in held:
        return held[name]
    return f"nv = {mech.nv} {PER_DOF[name]}"

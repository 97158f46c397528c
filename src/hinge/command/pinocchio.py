"""The same mechanism in Pinocchio, where that is installed, to see how long it takes there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..algebra.spatial import Transform
from ..model.joint import Joint
from ..model.joints import Free, Prismatic, Revolute, Spherical
from ..model.mechanism import Mechanism

__all__ = ["calls_of"]


def calls_of(mech: Mechanism) -> dict[str, Callable[[], Any]] | None:
    """Calls of inverse and forward dynamics and mass matrix; None if it cannot be compared."""
    if find_spec("pinocchio") is None or not all(_is_known(b.joint) for b in mech.bodies[1:]):
        return None
    pin = import_module("pinocchio")
    model = _model(pin, mech)
    data, q, v = model.createData(), pin.neutral(model), np.full(model.nv, 0.1)
    return {
        "inverse_dynamics": partial(pin.rnea, model, data, q, v, v),
        "forward_dynamics": partial(pin.aba, model, data, q, v, v),
        "mass_matrix": partial(pin.crba, model, data, q),
    }


def _is_known(joint: Joint) -> bool:
    return joint.mimic is None and type(joint) in (Free, Prismatic, Revolute, Spherical)


def _model(pin: Any, mech: Mechanism) -> Any:
    model, numbers = pin.Model(), [0]
    for body in mech.bodies[1:]:
        parent = numbers[body.parent]
        place = _pose(pin, mech.bodies[body.parent].offset) * _pose(pin, body.placement)
        number = model.addJoint(parent, _joint(pin, body.joint), place, body.joint_name)
        own = body.inertia
        inertia = pin.Inertia(own.mass, np.asarray(own.com), np.asarray(own.about_com))
        model.appendBodyToJoint(number, inertia, _pose(pin, body.offset))
        numbers.append(number)
    return model


def _pose(pin: Any, X: Transform) -> Any:
    return pin.SE3(np.asarray(X.rotation), np.asarray(X.translation))


def _joint(pin: Any, joint: Joint) -> Any:
    """The cheapest joint it has for it."""
    if isinstance(joint, Free):
        return pin.JointModelFreeFlyer()
    if not isinstance(joint, Revolute | Prismatic):
        return pin.JointModelSpherical()
    kind, slides = ("P", "Prismatic") if isinstance(joint, Prismatic) else ("R", "Revolute")
    for letter, axis in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(joint.axis, axis):
            return getattr(pin, f"JointModel{kind}{letter}")()
    return getattr(pin, f"JointModel{slides}Unaligned")(np.array(joint.axis))

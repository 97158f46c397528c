"""Steps of semi-implicit Euler that are implicit in what joints do by themselves.

    (M + h D + h² K) (v − q̇) = h (τ − C − g − K (x + h q̇) − D q̇),   q ← q ⊞ h v                 (1)

x is how far springs are drawn, K their stiffness, D the damping of joints and, for dry friction f,
f s(q̇)/q̇: what it is at this speed, in proportion to the speed after the step, which so never goes
the other way.  On the left D and K are armature.  Stops and the ground come as in `simulate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import algorithms
from ..algorithms.passive import friction_damping
from ..errors import ArgumentError, warn_of_model
from ..model.joint import Joint
from ..model.mechanism import Mechanism
from ..model.parameters import with_more_armature
from ..robot import Robot, check_robot
from ..specialize.canonical import Reframed
from .ground import Ground
from .rigid import Stepped
from .stops import pace_of
from .surroundings import surroundings_of

__all__ = ["softened", "step"]


def step(
    robot: Robot,
    q: Any,
    qd: Any,
    tau: Any,
    dt: Any,
    ground: Ground | None = None,
    forces: Any = None,
    f_ext: Any = None,
    limits: bool = True,
) -> Stepped:
    """q and q̇ after one step of length dt, of one sample of numbers or traced: for rollouts.

    tau: of motors, cut off at the effort limits; springs, damping and friction of the joints act
    besides, implicitly in the velocity, and stops at their limits; limits=False leaves out stops
    and effort limits.  ground: of either law; forces: on its points in world axes, as the step
    before gave them, from which those of a rigid one are found.
    """
    where = f"step of {check_robot('step', robot).name!r}"
    if robot.constraints:
        raise ArgumentError(
            f"{where}: it knows no loop constraints; take hinge.simulate, or a robot without them"
        )
    around, mech = surroundings_of(where, robot, ground, limits), robot.mechanism
    state = q, qd = np.asarray(q), np.asarray(qd)
    soft, own = softened(mech, mech, q, qd, dt)
    stopped = around.stopped(mech, q, qd, pace_of("semi_implicit_euler", dt))
    total = around.driven(np.asarray(tau)) + own + stopped
    if ground is not None and ground.rigid:
        robot._keep(("unpressed, said", ground), lambda: _warn_of_unpressed(where, mech, ground))
        start = np.zeros((len(ground.points), 3)) if forces is None else np.asarray(forces)
        return ground.rigid_law(ground.spots(mech)).step(soft, *state, total, f_ext, dt, start)
    push = around.f_ext(mech, Reframed.same(mech), f_ext, q, qd)
    after = qd + dt * algorithms.forward_dynamics(soft, q, qd, total, push)
    felt = np.zeros((0, 3)) if ground is None else ground.act(robot, q, qd).forces
    return Stepped(algorithms.integrate(mech, q, dt * after), after, felt, 0.0)


def _warn_of_unpressed(where: str, mech: Mechanism, ground: Ground) -> None:
    names = [ground.points[i].frame for i in ground.unpressed(mech)]
    if names:
        warn_of_model(
            f"{where}: no joint moves {', '.join(names)} along the normal of the ground: rigid "
            f"ground has no normal force and no friction there"
        )


def softened(mech: Mechanism, form: Mechanism, q: Any, qd: Any, h: Any) -> tuple[Mechanism, Any]:
    """A form of a mechanism with h D + h² K of (1) as armature; its springs and losses (nv,)."""
    own = algorithms.passive_forces(mech, q, qd)
    joints = [(b.joint, v) for b, v in zip(mech.bodies, mech.rates(qd), strict=True)]
    numbers = (x for joint, _ in joints for x in (joint.stiffness, joint.damping, joint.friction))
    if not any(map(np.any, numbers)):
        return form, own
    pulled = mech.join([-h * np.array(joint.stiffness) * v for joint, v in joints])
    return with_more_armature(form, [_implicit(*x, h) for x in joints]), own + pulled


def _implicit(joint: Joint, qd: Any, h: Any) -> np.ndarray:
    """h D + h² K of a joint."""
    losses = np.array(joint.damping) + friction_damping(joint, qd)
    return h * losses + h * h * np.array(joint.stiffness)

"""What a motion did, in words: how long it took, its energy, and which limits it reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..model.joint import Joint

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["in_a_line", "in_words", "limits_met"]

_NAMED = 4  # joints in a line
_AT = 1e-6  # of an effort limit, by which a force may be short of it


def limits_met(motion: Trajectory) -> dict[str, str]:
    """The joints that left their "position" limits, exceeded their "speed" limits, or were driven
    with their "effort" limits or more, each with the first time; nothing of what did not happen.
    """
    found: dict[str, list[str]] = {"position": [], "speed": [], "effort": []}
    for body in motion.robot.mechanism.bodies[1:]:
        for what, rows in _met(motion, body.joint, body.joint_name):
            if rows.any():
                found[what].append(f"{body.joint_name} ({motion.t[rows.argmax()]:.3g} s)")
    return {what: _listed(names) for what, names in found.items() if names}


def _met(motion: Trajectory, joint: Joint, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """For each limit of a joint, at which times any sample was beyond it."""
    if joint.mimic is not None:
        return
    q = motion.q[..., motion.robot.q_slice(name)]
    qd, tau = (x[..., motion.robot.v_slice(name)] for x in (motion.qd, motion.tau))
    if joint.nq == joint.nv:
        yield "position", _ever((q < joint.lower) | (q > joint.upper))
    yield "speed", _ever(np.abs(qd) > joint.velocity_limit)
    most = np.array(joint.effort_limit)
    yield "effort", _ever((np.abs(tau) >= (1 - _AT) * most) & (most > 0) & (most < np.inf))


def _ever(beyond: np.ndarray) -> np.ndarray:
    """Of what is looked at sample by sample: at which times it is so."""
    return np.any(beyond.reshape(len(beyond), -1), axis=1)


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def in_a_line(motion: Trajectory) -> str:
    """How long, of what, and of how many samples; without computing anything."""
    shape, t = motion.q.shape[1:-1], motion.t
    batch = f", batch {shape}" if shape else ""
    span = f"from {t[0]:.4g} to {t[-1]:.4g} s" if len(t) else ""
    return f"<Trajectory of {motion.robot.name!r}: {len(t)} states {span}{batch}>"


def in_words(motion: Trajectory) -> str:
    """What the motion did, in lines."""
    lines = [in_a_line(motion)[1:-1]]
    if not isinstance(motion.q, np.ndarray):  # on a GPU, or of another package
        return lines[0]
    state = np.concatenate([motion.q, motion.qd], axis=-1)
    fine = np.asarray(np.isfinite(state).all(axis=-1))
    if motion.q.ndim == 2 and fine.all():
        total, kinetic = motion.energy, motion.kinetic_energy
        lines.append(
            f"energy: kinetic up to {kinetic.max():.4g} J, total {total[0]:.6g} J at the start and "
            f"{total[-1]:.6g} J at the end"
        )
    if not fine.all():
        lost, begins = np.count_nonzero(~fine.all(axis=0)), _ever(~fine).argmax()
        first = f"the first from {motion.t[begins]:.4g} s on"
        lines.append(f"not finite: {lost} of {fine[0].size} samples, {first}")
    says = {"position": "left by", "speed": "exceeded by", "effort": "reached by"}
    lines += [f"{what} limits {says[what]} {who}" for what, who in limits_met(motion).items()]
    if motion.forces is not None:
        most = np.linalg.norm(motion.forces, axis=-1).max(initial=0.0)
        lines.append(f"ground: {motion.forces.shape[-2]} points, forces up to {most:.4g} N")
    if motion.events:
        counts = ", ".join(str(len(event.t)) for event in motion.events)
        lines.append(f"events: {counts}")
    if motion.taken is not None and motion.rejected is not None:
        lines.append(f"steps: {np.sum(motion.taken)} taken, {np.sum(motion.rejected)} taken back")
    return "\n".join(lines)

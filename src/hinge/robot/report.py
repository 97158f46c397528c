"""Words about a mechanism: its conventions, its tree, and what looks wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..algebra.spatial import congruence
from ..algorithms import mass_matrix, neutral
from ..model.joint import PerDof
from ..model.mechanism import Body, Mechanism

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

__all__ = ["concerns", "conventions", "joint_table", "tree"]


def conventions(mech: Mechanism) -> str:
    """What every number means, for this mechanism."""
    lines = [
        f"{mech.name}: {mech.n_bodies} bodies, nq = {mech.nq}, nv = {mech.nv}",
        "",
        "Spatial vectors are (angular; linear), forces (moment; force).  Units SI, angles rad.",
        f"Gravity is {mech.gravity} m/s².",
        "qd is the joints' velocity variable; for quaternions it is not dq/dt.",
        "Quaternions are scalar first and need not be exactly of unit length.",
        f"f_ext is ({mech.n_bodies}, 6): forces on the bodies, in body axes at body origins, rows",
        f"  in the order of body_names: {_short(mech.body_names)}",
        'Frame velocities and Jacobians: reference="aligned" (world axes, the frame\'s origin),',
        '  "body" (its axes and origin) or "world" (the world\'s).',
        "",
        "joint: entries of q → entries of qd, qdd, tau",
    ]
    for body in mech.bodies[1:]:
        lines.append(f"  {_joint_line(mech, body)}")
    return "\n".join(lines)


def _joint_line(mech: Mechanism, body: Body) -> str:
    joint, name, mimic = body.joint, body.joint_name, body.joint.mimic
    if mimic:
        return f"{name} ({joint}): {mimic.ratio:g} · {mimic.joint} + {mimic.offset:g}"
    (of_q, of_qd), q, v = joint.entries, mech.q_slice(name), mech.v_slice(name)
    return f"{name} ({joint}): q[{q.start}:{q.stop}] {of_q} → qd[{v.start}:{v.stop}] {of_qd}"


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def tree(mech: Mechanism) -> Tree:
    """The bodies as a tree to print."""
    from rich.markup import escape
    from rich.tree import Tree

    branches = [Tree(f"[bold]{escape(mech.bodies[0].name)}[/]")]
    for p, k in mech.outward():
        b = mech.bodies[k]
        joint = escape(f"{b.joint_name}: {b.joint}, {float(b.inertia.mass):.4g} kg")
        branches.append(branches[p].add(f"{escape(b.name)}  [dim]{joint}[/]"))
    return branches[0]


def joint_table(mech: Mechanism) -> Table:
    """Joints, their limits and their losses, as a table to print."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        "joint", "type", "limits", "velocity", "effort", "armature", "damping", "friction"
    )
    for b in mech.bodies[1:]:
        j = b.joint
        follows = f" = {j.mimic.ratio:g} · {j.mimic.joint}" if j.mimic else ""
        bounds = zip(np.atleast_1d(j.lower), np.atleast_1d(j.upper), strict=True)
        limits = "  ".join(_range(low, high) for low, high in bounds)
        rest = (j.velocity_limit, j.effort_limit, j.armature, j.damping, j.friction)
        table.add_row(escape(b.joint_name), escape(f"{j}{follows}"), limits, *map(_numbers, rest))
    return table


def _range(low: float, high: float) -> str:
    return f"{low:.4g} … {high:.4g}" if np.isfinite([low, high]).any() else "–"


def _numbers(values: PerDof) -> str:
    """One number for all DoF where they agree; a dash for no limit."""
    words = ("–" if np.isinf(v) else f"{v:.4g}" for v in np.atleast_1d(values))
    return " ".join(dict.fromkeys(words))


def concerns(mech: Mechanism) -> list[str]:
    """What a user should know before trusting forward dynamics: joints that move no inertia."""
    M, most = mass_matrix(mech, neutral(mech)), _inertia_beyond(mech)
    out = []
    for b, scale in zip(mech.bodies[1:], most[1:], strict=True):
        at = mech.v_slice(b.joint_name)
        if b.joint.mimic is None and np.linalg.eigvalsh(M[at, at])[0] <= 1e-12 * scale:
            out.append(
                f"joint {b.joint_name!r}: nothing beyond it resists some of its motion at q = "
                f"neutral; forward dynamics is singular there without armature"
            )
    return out


def _inertia_beyond(mech: Mechanism) -> list[float]:
    """What each joint could move of the bodies beyond it, lay they as awkwardly as they can."""
    q = neutral(mech)
    H, phi, crb = mech.H(q), mech.phi(q), list(mech.M)
    for p, k in mech.inward():
        crb[p] = crb[p] + congruence(crb[k], phi[k])
    out = [0.0]
    for _, k in mech.outward():
        J, h = np.abs(crb[k].J).max(), np.abs(crb[k].h).max()
        rows = np.linalg.norm(H[k].reshape(-1, 2, 3), axis=2)
        out.append(float(np.max(rows @ [[J, h], [h, crb[k].mass]] * rows)))
    return out

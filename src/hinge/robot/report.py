"""Words about a mechanism: its conventions, its tree, and what looks wrong with it."""

from __future__ import annotations

import numpy as np

from ..algebra.spatial import congruence
from ..algorithms import mass_matrix, neutral, total_mass
from ..model.joint import PerDof
from ..model.mechanism import Body, Mechanism

__all__ = ["concerns", "conventions", "described", "joint_table", "tree"]

WIDTH = 80  # columns of a terminal


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


def described(mech: Mechanism) -> str:
    """The mechanism in a few lines, and its joints in a table: what `print(robot)` prints."""
    head = (
        f"{mech.name}: {mech.n_bodies} moving bodies, {len(mech.frames)} frames, nq = {mech.nq}, "
        f"nv = {mech.nv}, {total_mass(mech):.4g} kg"
    )
    return "\n".join([head, *(["", joint_table(mech)] if mech.n_bodies else [])])


def tree(mech: Mechanism) -> str:
    """The bodies as a tree to print; a chain goes straight down, branches are indented."""
    children = [[k for p, k in mech.outward() if p == b] for b in range(len(mech.bodies))]
    lines, depth = [mech.bodies[0].name], [0] * len(mech.bodies)
    for p, k in mech.outward():
        b = mech.bodies[k]
        depth[k] = depth[p] + (len(children[p]) > 1)
        told = f"{b.joint_name}: {b.joint}, {float(b.inertia.mass):.4g} kg"
        indent = "  " * depth[k]
        line = f"{indent}{'└' if len(children[p]) > 1 else '│'} {b.name}"
        fits = len(line + told) + 2 <= WIDTH
        lines += [f"{line}  {told}"] if fits else [line, f"{indent}      {told}"]
    return "\n".join(lines)


def joint_table(mech: Mechanism) -> str:
    """Joints, their coordinates, limits and losses as a table to print.

    q: where the joint's coordinates are in q; of a joint that mimics another, how it follows them.
    Columns in which no joint has anything are left out.  Where all of it is too wide for a line,
    each name has one of its own: no name is cut.
    """
    rows = [["joint", *_COLUMNS], *([b.joint_name, *_cells(mech, b)] for b in mech.bodies[1:])]
    told = [column for column in zip(*rows, strict=True) if set(column[1:]) - {"–", "0", ""}]
    widths = [max(map(len, column)) for column in told]
    lines = []
    for name, *cells in zip(*told, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        if sum(widths) + 2 * len(widths[1:]) <= WIDTH:
            lines.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
        else:
            lines += [name, *_folded(padded)]
    return "\n".join(lines)


_COLUMNS = "type", "q", "limits", "speed", "effort", "armature", "damping", "friction", "spring"


def _cells(mech: Mechanism, body: Body) -> list[str]:
    """What the table says of a joint besides its name."""
    j, at = body.joint, mech.q_slice(body.joint_name)
    if j.mimic:
        offset = f" + {j.mimic.offset:g}" if j.mimic.offset else ""
        place = f"{j.mimic.ratio:g} · {at.start}{offset}"
    else:
        place = f"{at.start}" if j.nq == 1 else f"{at.start}:{at.stop}"
    bounds = zip(np.atleast_1d(j.lower), np.atleast_1d(j.upper), strict=True)
    limits = ", ".join(dict.fromkeys(_range(low, high) for low, high in bounds))
    rest = j.velocity_limit, j.effort_limit, j.armature, j.damping, j.friction, j.stiffness
    return [str(j), place, limits, *map(_numbers, rest)]


def _folded(cells: list[str]) -> list[str]:
    """Cells side by side in as many indented lines as they need."""
    lines = [""]
    for cell in cells:
        if lines[-1] and len(lines[-1]) + 2 + len(cell.rstrip()) > WIDTH:
            lines.append("")
        lines[-1] += f"  {cell}" if lines[-1] else f"    {cell}"
    return [line.rstrip() for line in lines]


def _range(low: float, high: float) -> str:
    return f"{low:.4g} … {high:.4g}" if np.isfinite([low, high]).any() else "–"


def _numbers(values: PerDof) -> str:
    """One number for all DoF where they agree; a dash for no limit."""
    words = ("–" if np.isinf(v) else f"{v:.4g}" for v in np.atleast_1d(values))
    return ", ".join(dict.fromkeys(words))


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

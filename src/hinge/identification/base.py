"""Base parameters: the combinations of parameters that motion can show, from structure.

Torques show a parameter only through kinetic energy and changes of potential energy.  Both are, per
body, a row times its ten numbers.  A row of body p that is carried on to body k, whose joint is at
q, is e G(q), where G(q) takes the ten numbers of k to those that p feels.  Let E(p) be all rows of
body p and V(p) all its velocities, as spaces.  As joint k is independent of all before it, it shows
by itself (the rest of the row being zero, but for bodies beyond k)

    D(k) = { b(H*, H*) + armature,  b(H*, φ*(q) V(p)),  E(p) (G(q) − G(0)) }                    (1)

b being the bilinear form of kinetic energy; everything else it shows as part of its parent:

    E(k) = E(p) G(q) + D(k),   V(k) = φ*(q) V(p) + H*,   E(0) = (0, −g, 0),   V(0) = 0           (2)

over all q.  The base parameters are Σ dim D(k) many, and none of these spaces has more than ten
dimensions (or 6): ranks are found body by body, with a gap that is looked at, from a few
configurations of one joint.  This is Gautier and Khalil's regrouping for any joint, gravity and
tree (P. Wensing, G. Niemeyer, J.-J. Slotine, "A geometric characterization of observability in
inertial parameter identification", 2017).  Joints that follow others are not independent, and an
armature on velocities that do not commute is no kinetic energy: then it is the rows of the
regressor at many random states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import congruence
from ..algorithms.configuration import random_configuration
from ..algorithms.regressors import joint_terms_of, momentum_map, torque_regressor
from ..edit import right_angles
from ..errors import warn_of_model
from ..model.mechanism import Body, Mechanism, hinge_map, transfer
from ..model.parameters import inertia_numbers, inertia_of
from ..robot import Robot, check_robot
from ..runtime.threads import one_blas_thread

__all__ = ["BaseParameters", "base_parameters"]

# directions that show less than this, beside the strongest of their body, are not seen
_SEEN = 1e-6
# and more than this is not rounding
_NOTHING = 1e-10
# coefficients smaller than this are rounding
_DUST = 1e-9


@dataclass(frozen=True)
class BaseParameters:
    """Combinations β = matrix π of parameters that motion shows; no other can be identified.

    names: of π; independent: columns of which matrix is the identity, so that
    Y π = Y[:, independent] β; gap: how much weaker than the weakest direction that is seen the
    strongest is that is not, at the worst body.
    """

    robot: str
    names: tuple[str, ...]
    matrix: np.ndarray
    independent: tuple[int, ...]
    gap: float

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.independent)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Parameters that move nothing, whatever their value."""
        return tuple(n for n, c in zip(self.names, self.matrix.T, strict=True) if not c.any())

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each combination in words: "link2.Jzz + 0.16 link3.m − …"."""
        return tuple(_sentence(self.names, row) for row in self.matrix)

    def __str__(self) -> str:
        head = f"{self.robot!r}: {self.rank} of {len(self.names)} parameters can be identified"
        lines = [head, *(f"  {sentence}" for sentence in self.sentences)]
        unseen = ", ".join(self.unseen)
        return "\n".join([*lines, *([f"  without effect: {unseen}"] if unseen else [])])


@one_blas_thread()
def base_parameters(robot: Robot, joint_terms: str | Sequence[str] = ()) -> BaseParameters:
    """The combinations of parameters that any motion of the robot can show.

    joint_terms: as in `robot.torque_regressor`.  Right angles are taken for what they are meant to
    be: files round them, and what shows at 4e-6 of a radian only nobody measures.
    """
    mech = right_angles(check_robot("base_parameters", robot).mechanism)
    terms = joint_terms_of(f"base_parameters of {robot.name!r}", joint_terms)
    names, _ = robot.linear_parameters(terms)
    ranks = _Ranks()
    turning = any(not b.joint.commuting for b in mech.bodies)
    if mech.has_followers or (turning and "armature" in terms):
        rows = _rows_of_states(mech, terms, len(names), ranks)
    else:
        rows = _rows_of_structure(mech, terms, len(names), ranks)
    if ranks.doubt > _NOTHING:
        warn_of_model(
            f"{robot.name!r}: some parameters show {ranks.doubt:.0e} of what others do, neither "
            f"nothing nor enough to be measured: taken for unseen; angles or lengths of the model "
            f"are nearly special"
        )
    independent = _first_independent(rows)
    matrix = np.linalg.solve(rows[:, independent], rows)
    matrix[np.abs(matrix) < _DUST] = 0.0
    matrix[:, independent] = np.eye(len(independent))
    return BaseParameters(robot.name, names, matrix, tuple(independent), ranks.gap)


class _Ranks:
    """Bases; the smallest gap between what was kept and what was not, the most that was not."""

    def __init__(self) -> None:
        self.gap, self.doubt = np.inf, 0.0

    def basis(self, rows: np.ndarray) -> np.ndarray:
        """Orthonormal rows that span the same."""
        if not rows.any():
            return np.zeros((0, rows.shape[1]))
        _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
        kept = sizes > _SEEN * sizes[0]
        rest = sizes[~kept].max(initial=np.finfo(float).eps * sizes[0])
        self.gap = min(self.gap, float(sizes[kept].min() / rest))
        self.doubt = max(self.doubt, float(rest / sizes[0]))
        found = basis[kept]
        found[np.abs(found) < _DUST] = 0.0
        return found


class _Shown(NamedTuple):
    """V and E of a body: rows that span them."""

    velocities: np.ndarray
    energies: np.ndarray


def _rows_of_structure(
    mech: Mechanism, terms: tuple[str, ...], columns: int, ranks: _Ranks
) -> np.ndarray:
    """A row for each base parameter: the D(k), carried on to the bodies beyond k."""
    at, rng = _places(mech, terms), np.random.default_rng(0)
    pull = np.concatenate([np.zeros(1), -np.array(mech.gravity), np.zeros(6)])
    shown, onward, rows = [_Shown(np.zeros((0, 6)), pull[None])], [np.eye(10)], []
    for p, k in mech.outward():
        body = mech.bodies[k]
        units = np.eye(body.joint.nv) if "armature" in at else np.zeros((body.joint.nv, 0))
        own, there, D = _shown_by(body, units, shown[p], rng, ranks)
        shown.append(own)
        onward.append(there)
        blocks = np.zeros((len(D), columns))
        blocks[:, 10 * k - 10 : 10 * k] = D[:, :10]
        if "armature" in at:
            blocks[:, at["armature"][k]] = D[:, 10:]
        rows.append((k, blocks))
    for k, blocks in rows:
        for p, c in mech.outward():
            if c > k and blocks[:, 10 * p - 10 : 10 * p].any() and p:
                felt = blocks[:, 10 * p - 10 : 10 * p] @ onward[c]
                blocks[:, 10 * c - 10 : 10 * c] = felt
    return np.concatenate([np.zeros((0, columns)), *(b for _, b in rows), _unit_rows(at, columns)])


def _places(mech: Mechanism, terms: tuple[str, ...]) -> dict[str, dict[int, slice]]:
    """Where the columns of each joint are, for each of the terms."""
    at, start = {}, 10 * mech.n_bodies
    for term in terms:
        at[term] = {}
        for _, k in mech.outward():
            at[term][k] = slice(start, start := start + mech.bodies[k].joint.nv)
    return at


def _unit_rows(at: dict[str, dict[int, slice]], columns: int) -> np.ndarray:
    """Damping, friction and springs depend on the motion as nothing else does."""
    others = [s for term, places in at.items() if term != "armature" for s in places.values()]
    return np.concatenate([np.zeros((0, columns)), *(np.eye(columns)[s] for s in others)])


def _shown_by(
    body: Body, units: np.ndarray, parent: _Shown, rng: np.random.Generator, ranks: _Ranks
) -> tuple[_Shown, np.ndarray, np.ndarray]:
    """V and E of a body, G(0) of its joint, and D (1), (2).

    units: a row for each DoF, the columns of D for the armature.
    """
    more = ((0, 0), (0, units.shape[1]))
    first, velocities, energies, alone = None, [], [], []
    for phi, H in _configurations(body, rng):
        G = np.array([inertia_numbers(congruence(inertia_of(e), phi)) for e in np.eye(10)]).T
        first = G if first is None else first
        moved = (phi.T @ parent.velocities.T).T
        velocities += [moved, H]
        energies.append(parent.energies @ G)
        alone += [np.append(h @ momentum_map(h), unit) for h, unit in zip(H, units, strict=True)]
        cross = [h @ momentum_map(V) for i, h in enumerate(H) for V in (*moved, *H[:i])]
        rest = np.reshape([*cross, *(parent.energies @ (G - first))], (-1, 10))
        alone += list(np.pad(rest, more))
    D = ranks.basis(np.array(alone))
    E = ranks.basis(np.concatenate([*energies, D[:, :10]]))
    return _Shown(ranks.basis(np.concatenate(velocities)), E), np.asarray(first), D


def _configurations(body: Body, rng: np.random.Generator) -> Iterator[tuple[Any, np.ndarray]]:
    """φ and H of a joint at neutral, and wherever else it may be, as if it had no limits."""
    joint = body.joint
    if joint.nq == joint.nv:
        joint = replace(joint, lower=-np.inf, upper=np.inf)
    for q in (joint.neutral(), *(joint.random(rng) for _ in range(min(8 * joint.nv, 20)))):
        yield transfer(body, q), hinge_map(body, joint.H(q))


def _rows_of_states(
    mech: Mechanism, terms: tuple[str, ...], columns: int, ranks: _Ranks
) -> np.ndarray:
    """Rows that span those of the regressor at twice as many random states as are needed."""
    rng, states = np.random.default_rng(0), []
    for _ in range(2 * columns // max(mech.nv, 1) + 2):
        q, (qd, qdd) = random_configuration(mech, rng), rng.normal(size=(2, mech.nv))
        states.append(torque_regressor(mech, q, qd, qdd, terms))
    Y = np.concatenate(states)
    size = np.linalg.norm(Y, axis=0)
    size[size < _DUST * size.max(initial=0.0)] = np.inf
    rows = ranks.basis(Y / size)
    return rows * np.where(np.isfinite(size), size, 0.0)


def _first_independent(rows: np.ndarray) -> list[int]:
    """The first columns, from the left, of which no one is a sum of those before."""
    found, basis = [], np.zeros((0, len(rows)))
    for j, column in enumerate(rows.T):
        rest = column - basis.T @ (basis @ column)
        rest = rest - basis.T @ (basis @ rest)
        if np.linalg.norm(rest) > _SEEN * np.linalg.norm(column):
            found.append(j)
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
    return found


def _sentence(names: Sequence[str], row: np.ndarray) -> str:
    words = []
    for name, c in zip(names, row, strict=True):
        if c:
            size = "" if abs(abs(c) - 1) < _DUST else f"{abs(c):.4g} "
            words += ["−" if c < 0 else "+", f"{size}{name}"]
    return " ".join(words[1:] if words[:1] == ["+"] else words)

"""Closed loops of a robot: configurations and velocities that keep constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constrained.description import Constraint, as_constraints
from ..errors import ArgumentError
from ..model.parameters import PARAMETERS
from ..runtime.arguments import broadcast
from ..runtime.check import check_choice, check_number, check_whole
from .front import Front
from .method import Numbers
from .through_host import through_host

if TYPE_CHECKING:
    from .assembly import Assembly

__all__ = ["Closed"]


class Closed(Front):
    """Loops, and what closes them."""

    @through_host
    def assemble(
        self,
        q: ArrayLike,
        constraints: Sequence[Constraint] | None = None,
        qd: ArrayLike | None = None,
        hold: Sequence[str] | ArrayLike = (),
        limits: bool = False,
        metric: Literal["mass", "plain"] | ArrayLike = "mass",
        tolerance: float | None = None,
        max_iterations: int = 200,
        **numbers: Unpack[Numbers],
    ) -> Assembly:
        """The configurations nearest to q (…, nq) that close the loops, and the nearest qd (…, nv).

        Nearest is by the mass matrix at q, so that what is heavy moves little whatever the units
        and coordinates; velocities are what an impulse of the constraints leaves of qd.  Redundant
        constraints are harmless; contacts stay at their anchors, or where they are at q.  The
        result says in `.status` and `.error` how it ended.
        constraints: None for those of the robot.
        hold: joints, or a flag per DoF, that stay at q and keep their rates; limits: q stays within
        those of the joints.
        metric: "plain" weighs all degrees of freedom alike, numbers (nv,) each as they say.
        tolerance: of what is closed, in rad and m, 1e-10 for float64.
        max_iterations: of steps, each O(nv³ + rows³).
        """
        from .assembly import assembled

        where = f"assemble of {self.name!r}"
        for name in numbers:
            check_choice(where, "an argument", name, PARAMETERS)
        given: dict[str, Any] = {"q": q, **numbers} | ({} if qd is None else {"qd": qd})
        least = max(1e-10, 100 * float(np.finfo(self.dtype).eps))
        return assembled(
            self,
            self.constraints if constraints is None else as_constraints(where, constraints),
            broadcast(where, self._arguments(given, {})),
            np.asarray(self.mechanism.driven(hold), float),
            check_choice(where, "limits", limits, (True, False)),
            _weights(where, metric, self.nv),
            least if tolerance is None else check_number(where, "tolerance", tolerance, above=0),
            check_whole(where, "max_iterations", max_iterations),
        )


def _weights(where: str, metric: Any, nv: int) -> Any:
    """The name of a metric, or weights (nv,)."""
    if isinstance(metric, str):
        return check_choice(where, "metric", metric, ("mass", "plain"))
    weights = np.asarray(metric, dtype=float)
    if weights.shape != (nv,) or not ((weights > 0) & (weights < np.inf)).all():
        raise ArgumentError(
            f"{where}: metric is {metric!r}; expected 'mass', 'plain', or nv = {nv} weights above 0"
        )
    return weights

"""Linear models of a robot: derivatives of its dynamics, and what control makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linalg import expm
from ..algorithms.linearized.forward import ForwardDynamicsDerivatives
from ..algorithms.linearized.inverse import InverseDynamicsDerivatives
from ..errors import SingularError
from ..runtime.arguments import broadcast
from ..runtime.check import check_number
from .front import Front
from .method import Numbers, compiled
from .second_order import ForwardDynamicsSecondDerivatives, InverseDynamicsSecondDerivatives

if TYPE_CHECKING:
    from ..algorithms.linearized.forward import Method
    from ..algorithms.linearized.loads import Load

__all__ = ["LinearModel", "Linearized"]


class LinearModel(NamedTuple):
    """ẋ = A x + B u, or x ← A x + B u, of x = (δq, δq̇) (2 nv) and u = δτ (nv)."""

    A: np.ndarray
    B: np.ndarray


class Linearized(Front):
    """How forces and accelerations change with the motion."""

    @overload
    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        order: Literal[1] = 1,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> InverseDynamicsDerivatives:
        """The first derivatives."""
        ...

    @overload
    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[2],
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> InverseDynamicsSecondDerivatives:
        """The second derivatives."""
        ...

    @compiled(InverseDynamicsDerivatives)
    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        order: Literal[1, 2] = 1,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> InverseDynamicsDerivatives | InverseDynamicsSecondDerivatives:
        """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ = M as `.dq .dqd .dqdd`, each (…, nv, nv).

        ∂q is along the joints' tangents.  load: what stays of f_ext when the bodies move: its
        components in "body" axes, the force in the "world", or a "dead" load's direction, which
        acts at the points (…, n_bodies, 3) of the bodies, by default their origins.
        order: 2 for the second derivatives `.dq_dq .dq_dqd .dqd_dqd .dq_dqdd` instead.
        out: arrays for the results, in their order.
        """
        ...

    @compiled()
    def inverse_dynamics_jvp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        dq: ArrayLike,
        dqd: ArrayLike,
        dqdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """δτ = ∂τ/∂q dq + ∂τ/∂q̇ dqd + M dqdd, without the matrices: (…, nv).

        load, points: as in `inverse_dynamics_derivatives`.
        """
        ...

    @overload
    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        method: Method | None = None,
        order: Literal[1] = 1,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ForwardDynamicsDerivatives:
        """The first derivatives."""
        ...

    @overload
    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[2],
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ForwardDynamicsSecondDerivatives:
        """The second derivatives."""
        ...

    @compiled(ForwardDynamicsDerivatives)
    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        method: Method | None = None,
        order: Literal[1, 2] = 1,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ForwardDynamicsDerivatives | ForwardDynamicsSecondDerivatives:
        """∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ = M⁻¹ as `.dq .dqd .dtau`, each (…, nv, nv).

        load, points: as in `inverse_dynamics_derivatives`.  method: "articulated" (Algorithm 6) or
        "conventional" (Algorithm 4, by way of inverse dynamics); None takes the cheaper one.
        order: 2 for the second derivatives `.dq_dq .dq_dqd .dqd_dqd .dq_dtau` instead.
        out: arrays for the results, in their order.
        """
        ...

    @compiled()
    def forward_dynamics_jvp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        dq: ArrayLike,
        dqd: ArrayLike,
        dtau: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        method: Method | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """δq̈ = ∂q̈/∂q dq + ∂q̈/∂q̇ dqd + M⁻¹ dtau, without the matrices: (…, nv).

        load, points, method (Algorithm 5 or 3): as in `forward_dynamics_derivatives`.
        """
        ...

    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        dt: float | None = None,
        f_ext: ArrayLike | None = None,
    ) -> LinearModel:
        """A (…, 2 nv, 2 nv) and B (…, 2 nv, nv) of the motion near (q, q̇, τ), x = (δq, δq̇).

        δq is along the joints' tangents, q ⊞ δq; where they do not commute it turns with the
        motion: dδq/dt = δq̇ − [q̇, δq].  dt: the step of a discrete model, exact for a force that is
        held; None for a continuous one.
        """
        d = self.forward_dynamics_derivatives(q, qd, tau, f_ext)
        lead, n = d.dq.shape[:-2], self.nv
        drift = np.broadcast_to(self._drift(qd), d.dq.shape)
        one, none = np.broadcast_to(np.eye(n), d.dq.shape), np.zeros((*lead, n, n))
        A = np.concatenate([_beside(drift, one), _beside(d.dq, d.dqd)], axis=-2)
        both = _beside(A, np.concatenate([none, d.dtau], axis=-2))
        if dt is not None:
            where = f"linearize of {self.name!r}"
            step = check_number(where, "dt", dt, above=0)
            held = np.concatenate([both, np.zeros((*lead, n, 3 * n))], axis=-2)
            both = expm(step * held)[..., : 2 * n, :]
            if lead == () and not np.isfinite(both).all():
                raise SingularError(
                    f"{where}: e^(A dt) overflows; dt is {dt}: take a shorter step, or none"
                )
        parts = both[..., : 2 * n], both[..., 2 * n :]
        return LinearModel(*(np.ascontiguousarray(x, self.dtype) for x in parts))

    def _drift(self, qd: ArrayLike) -> np.ndarray:
        """−[q̇, ·] of every joint, on the diagonal: (…, nv, nv)."""
        where = f"linearize of {self.name!r}"
        rates = broadcast(where, [self._argument("qd", qd)])["qd"]
        out = np.zeros((*rates.shape, self.nv))
        for body in self.mechanism.bodies[1:]:
            if not body.joint.commuting:
                at = self.v_slice(body.joint_name)
                columns = [body.joint.drift(e) for e in np.eye(body.joint.nv)]
                out[..., at, at] = np.einsum("...i,ijk->...jk", rates[..., at], columns)
        return out


def _beside(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b], axis=-1)

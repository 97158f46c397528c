"""Linear models of a robot: derivatives of its dynamics, and what control makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.linearized.forward_derivatives import ForwardDynamicsDerivatives
from ..algorithms.linearized.inverse_derivatives import InverseDynamicsDerivatives
from ..algorithms.linearized.transposed import ForwardDynamicsGradient, InverseDynamicsGradient
from ..errors import SingularError
from ..model.mechanism import Mechanism
from ..runtime.arguments import broadcast
from ..runtime.check import check_number
from ..runtime.held import linear_model
from .front import Front
from .method import Numbers, compiled
from .second_order import ForwardDynamicsSecondDerivatives, InverseDynamicsSecondDerivatives
from .through_host import through_host

if TYPE_CHECKING:
    from ..algorithms.linearized.forward_derivatives import Method
    from ..algorithms.linearized.loads import Load

__all__ = ["LinearModel", "Linearized"]

_INFINITE = float("inf")


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

    @compiled(InverseDynamicsGradient)
    def inverse_dynamics_vjp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        cotangent: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> InverseDynamicsGradient:
        """(∂τ/∂q)ᵀ μ, (∂τ/∂q̇)ᵀ μ, M μ as `.dq .dqd .dqdd`, without the matrices: (…, nv).

        The gradient of μ·τ for the cotangent μ, dq along the joints' tangents.  load, points: as in
        `inverse_dynamics_derivatives`.  out: arrays for the results, in their order.
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

    @compiled(ForwardDynamicsGradient)
    def forward_dynamics_vjp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        cotangent: ArrayLike,
        f_ext: ArrayLike | None = None,
        points: ArrayLike | None = None,
        load: Load = "body",
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ForwardDynamicsGradient:
        """(∂q̈/∂q)ᵀ μ, (∂q̈/∂q̇)ᵀ μ, M⁻¹ μ as `.dq .dqd .dtau`, without the matrices: (…, nv).

        The gradient of μ·q̈ for the cotangent μ, dq along the joints' tangents.  load, points: as in
        `forward_dynamics_derivatives`.  out: arrays for the results, in their order.
        """
        ...

    @through_host
    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        dt: float | None = None,
        f_ext: ArrayLike | None = None,
        **numbers: Unpack[Numbers],
    ) -> LinearModel:
        """A (…, 2 nv, 2 nv) and B (…, 2 nv, nv) of the motion near (q, q̇, τ), x = (δq, δq̇).

        δq is along the joints' tangents, q ⊞ δq; where they do not commute it turns with the
        motion: dδq/dt = δq̇ − [q̇, δq].  dt: the step of a discrete model, exact for a force that is
        held; None for a continuous one.
        """
        if dt is not None and not (type(dt) is float and 0.0 < dt < _INFINITE):
            dt = check_number(f"linearize of {self.name!r}", "dt", dt, above=0)
        d = self.forward_dynamics_derivatives(q, qd, tau, f_ext, **numbers)
        single = self._dtype.char == "f"
        if single:
            d = ForwardDynamicsDerivatives(*(x.astype(float) for x in d))
        A, B, bad = linear_model(*d, self._drift(qd, d.dq.shape), dt)
        if bad and A.ndim == 2:
            raise SingularError(
                f"linearize of {self.name!r}: e^(A dt) overflows; dt is {dt}: take a shorter step, "
                f"or none"
            )
        if single:
            A, B = A.astype(self._dtype), B.astype(self._dtype)
        return LinearModel(A, B)

    def _drift(self, qd: ArrayLike, shape: tuple[int, ...]) -> np.ndarray | None:
        """−[q̇, ·] of every joint, on the diagonal: (…, nv, nv); nothing where all commute."""
        slopes = self._keep("drift", lambda: _drift_slopes(self.mechanism))
        if not slopes:
            return None
        rates = broadcast(f"linearize of {self.name!r}", [self._argument("qd", qd)])["qd"]
        out = np.zeros(shape)
        for at, columns in slopes:
            out[..., at, at] = np.einsum("...i,ijk->...jk", rates[..., at], columns)
        return out


def _drift_slopes(mech: Mechanism) -> list[tuple[slice, np.ndarray]]:
    """For every joint whose tangents do not commute, −[e, ·] along each of its rates e."""
    return [
        (mech.v_slice(b.joint_name), np.array([b.joint.drift(e) for e in np.eye(b.joint.nv)]))
        for b in mech.bodies[1:]
        if not b.joint.commuting
    ]

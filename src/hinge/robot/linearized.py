"""Linear models of a robot: derivatives of its dynamics, and what control makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linalg import expm
from ..algorithms.linearized.loads import LOADS, Load
from ..errors import ArgumentError, SingularError
from ..runtime.call import broadcast, evaluate
from ..runtime.check import check_choice, check_number
from .columns import as_results, derivatives_by_columns, too_large
from .front import Front
from .second_order import (
    ForwardDynamicsSecondDerivatives,
    InverseDynamicsSecondDerivatives,
    second_order_kernel,
)

if TYPE_CHECKING:
    from ..algorithms.linearized.forward import ForwardDynamicsDerivatives, Method
    from ..algorithms.linearized.inverse import InverseDynamicsDerivatives

__all__ = ["LinearModel", "Linearized"]

# DoF from which the straight-line code of ∂q̈ outgrows the instruction caches, so that one state is
# cheaper by way of M⁻¹; more bodies come by columns, from Algorithm 5, which is more exact there
_BY_PARTS = range(30, 49)
_METHODS = ("articulated", "conventional")


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
    ) -> InverseDynamicsSecondDerivatives:
        """The second derivatives."""
        ...

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
    ) -> InverseDynamicsDerivatives | InverseDynamicsSecondDerivatives:
        """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ = M as `.dq .dqd .dqdd`, each (…, nv, nv).

        ∂q is along the joints' tangents.  load: what stays of f_ext when the bodies move: its
        components in "body" axes, the force in the "world", or a "dead" load's direction, which
        acts at the points (…, n_bodies, 3) of the bodies, by default their origins.
        order: 2 for the second derivatives `.dq_dq .dq_dqd .dqd_dqd .dq_dqdd` instead.
        out: arrays for the results, in their order.
        """
        from ..algorithms.linearized.inverse import InverseDynamicsDerivatives

        name, static = "inverse_dynamics_derivatives", self._load(load)
        if self._second(name, order, load):
            given = {"q": q, "qd": qd, "qdd": qdd, "f_ext": f_ext}
            return InverseDynamicsSecondDerivatives(*self._call_second(name, out, **given))
        arrays: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "f_ext": f_ext, "points": points}
        if too_large(self, matrices=3):
            parts = derivatives_by_columns(self, name, static, arrays, out)
            return InverseDynamicsDerivatives(*parts)
        return self._call(name, static, InverseDynamicsDerivatives, **arrays, out=out)

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
    ) -> np.ndarray:
        """δτ = ∂τ/∂q dq + ∂τ/∂q̇ dqd + M dqdd, without the matrices: (…, nv).

        load, points: as in `inverse_dynamics_derivatives`.
        """
        arrays: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "dq": dq, "dqd": dqd, "dqdd": dqdd}
        extra: dict[str, Any] = {"f_ext": f_ext, "points": points}
        return self._call("inverse_dynamics_jvp", self._load(load), **arrays, **extra)

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
    ) -> ForwardDynamicsSecondDerivatives:
        """The second derivatives."""
        ...

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
    ) -> ForwardDynamicsDerivatives | ForwardDynamicsSecondDerivatives:
        """∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ = M⁻¹ as `.dq .dqd .dtau`, each (…, nv, nv).

        load, points: as in `inverse_dynamics_derivatives`.  method: "articulated" (Algorithm 6) or
        "conventional" (Algorithm 4, by way of inverse dynamics); None takes the cheaper one.
        order: 2 for the second derivatives `.dq_dq .dq_dqd .dqd_dqd .dq_dtau` instead.
        out: arrays for the results, in their order.
        """
        from ..algorithms.linearized.forward import ForwardDynamicsDerivatives

        name, static = "forward_dynamics_derivatives", self._way(load, method)
        if self._second(name, order, load):
            given = {"q": q, "qd": qd, "tau": tau, "f_ext": f_ext}
            return ForwardDynamicsSecondDerivatives(*self._call_second(name, out, **given))
        arrays: dict[str, Any] = {"q": q, "qd": qd, "tau": tau, "f_ext": f_ext, "points": points}
        if too_large(self, matrices=3, across=True) and method != "conventional":
            parts = derivatives_by_columns(self, name, static, arrays, out)
            return ForwardDynamicsDerivatives(*parts)
        large = self.nv in _BY_PARTS
        if large and method is None and _one_sample(q, qd, tau, f_ext, points):
            return self._by_parts(q, qd, tau, f_ext, points, load, out)
        form = ForwardDynamicsDerivatives
        return self._call(name, static, form, single=not large, **arrays, out=out)

    def _by_parts(
        self, q: Any, qd: Any, tau: Any, f_ext: Any, points: Any, load: Load, out: Any
    ) -> ForwardDynamicsDerivatives:
        """The same for one sample of a large robot, from three kernels and two matrix products."""
        from ..algorithms.linearized.forward import ForwardDynamicsDerivatives

        # without forces the calls go straight to machine code
        forces = () if f_ext is None else (f_ext,)
        loads = () if f_ext is None else (f_ext, points, load)
        robot: Any = self  # with the chapter on dynamics
        qdd = robot.forward_dynamics(q, qd, tau, *forces)
        d = robot.inverse_dynamics_derivatives(q, qd, qdd, *loads)
        M_inv = robot.mass_matrix_inverse(q)
        parts = (-M_inv @ d.dq, -M_inv @ d.dqd, M_inv)
        if out is not None:
            parts = as_results(self, f"forward_dynamics_derivatives of {self.name!r}", parts, out)
        return ForwardDynamicsDerivatives(*parts)

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
    ) -> np.ndarray:
        """δq̈ = ∂q̈/∂q dq + ∂q̈/∂q̇ dqd + M⁻¹ dtau, without the matrices: (…, nv).

        load, points, method (Algorithm 5 or 3): as in `forward_dynamics_derivatives`.
        """
        arrays: dict[str, Any] = {"q": q, "qd": qd, "tau": tau, "dq": dq, "dqd": dqd, "dtau": dtau}
        extra: dict[str, Any] = {"f_ext": f_ext, "points": points}
        return self._call("forward_dynamics_jvp", self._way(load, method), **arrays, **extra)

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
        rates = broadcast(where, [self.argument("qd", qd)])["qd"]
        out = np.zeros((*rates.shape, self.nv))
        for body in self.mechanism.bodies[1:]:
            if not body.joint.commuting:
                at = self.v_slice(body.joint_name)
                columns = [body.joint.drift(e) for e in np.eye(body.joint.nv)]
                out[..., at, at] = np.einsum("...i,ijk->...jk", rates[..., at], columns)
        return out

    def _second(self, name: str, order: int, load: Load) -> bool:
        """Whether second derivatives are asked for; those of loads that turn are not known."""
        where = f"{name} of {self.name!r}"
        if check_choice(where, "order", order, (1, 2)) == 2 and load != "body":
            raise ArgumentError(
                f"{where}: load is {load!r}; second derivatives know forces in body axes only: "
                f"use load='body', or hinge.hessian of a function of your own"
            )
        return order == 2

    def _call_second(self, name: str, out: Any, **arrays: Any) -> Any:
        """The second derivatives, from a kernel that is kept."""
        given = [self.argument(k, v) for k, v in arrays.items() if v is not None]
        names = tuple(a.name for a in given)
        make = partial(second_order_kernel, self.mechanism, name, names, self.dtype, self.threads)
        kernel = self.keep(("second order", name, names), make)
        return evaluate(f"second order of {name} of {self.name!r}", kernel, given, out)

    def _load(self, load: Load) -> dict[str, Any] | None:
        kind = check_choice(f"derivatives of {self.name!r}", "load", load, LOADS)
        return None if kind == "body" else {"load": kind}

    def _way(self, load: Load, method: Method | None) -> dict[str, Any] | None:
        static = self._load(load)
        if method is None:
            return static
        where = f"derivatives of {self.name!r}"
        return {**(static or {}), "method": check_choice(where, "method", method, _METHODS)}


def _one_sample(q: Any, qd: Any, tau: Any, f_ext: Any, points: Any) -> bool:
    vectors = all(np.ndim(x) == 1 for x in (q, qd, tau))
    return vectors and all(x is None or np.ndim(x) == 2 for x in (f_ext, points))


def _beside(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b], axis=-1)

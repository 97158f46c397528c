"""Robots of which some joints are driven and the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.kinematics import Reference
    from ..algorithms.underactuated.derivatives import HybridDerivatives
    from ..algorithms.underactuated.generalized_jacobians import SchurBlocks
    from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics

__all__ = ["Underactuated"]


class Underactuated(Front):
    """What a robot does when not all of its joints obey.

    `active` says which degrees of freedom are driven: names of joints, or a mask (nv,); either gets
    a kernel of its own, in which the split is folded.  Where the result has a shape that does not
    depend on it, `active` may also be a mask per sample, (…, nv) with a leading shape: one kernel
    then serves every split.
    """

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
    ) -> HybridDynamics:
        """Forces of the active DoF and accelerations of the passive ones: .tau, .qdd (…, nv).

        qdd_active, tau_passive: (…, nv); entries of the other kind of DoF are not used.
        """
        key = _key(active)
        if key is None:
            active = _settled(active)
            key = _key(active)
        if key is None or f_ext is not None or self._numbers:
            return self._hybrid_dynamics(q, qd, qdd_active, tau_passive, active, f_ext)
        short = self.keep(("hybrid_dynamics of", key), lambda: self._short_call(active))
        return short(q, qd, qdd_active, tau_passive)

    def hybrid_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
    ) -> HybridDerivatives:
        """.dq, .dqd, .dgiven (…, nv, nv): rows τ of active, q̈ of passive DoF; ∂q along tangents."""
        from ..algorithms.underactuated.derivatives import HybridDerivatives

        given = {"q": q, "qd": qd, "qdd_active": qdd_active, "tau_passive": tau_passive}
        name = "hybrid_dynamics_derivatives"
        return HybridDerivatives(*self._split_call(name, active, {}, **given, f_ext=f_ext))

    def generalized_jacobian(
        self, q: ArrayLike, frame: str, active: Any, reference: Reference = "aligned"
    ) -> np.ndarray:
        """J_G: active accelerations to that of a frame, the passive DoF yielding: (…, 6, na)."""
        static = {"frame": frame, "reference": reference}
        return self._fixed_call("generalized_jacobian", active, static, q=q)

    def disturbance_jacobian(self, q: ArrayLike, active: Any) -> np.ndarray:
        """J_D = −M_pp⁻¹ M_pa: active accelerations to those of the passive DoF: (…, np, na)."""
        return self._fixed_call("disturbance_jacobian", active, {}, q=q)

    def active_inertia(self, q: ArrayLike, active: Any) -> np.ndarray:
        """S_aa = M_aa − M_ap M_pp⁻¹ M_pa: (…, na, na)."""
        return self._fixed_call("active_inertia", active, {}, q=q)

    def schur_blocks(self, q: ArrayLike, active: Any) -> SchurBlocks:
        """S_aa, M_ap M_pp⁻¹ and M_pp⁻¹: .aa, .ap, .pp."""
        from ..algorithms.underactuated.generalized_jacobians import SchurBlocks

        return SchurBlocks(*self._fixed_call("schur_blocks", active, {}, q=q))

    def complete_motion(
        self,
        q: ArrayLike,
        qd_active: ArrayLike,
        active: Any,
        momentum_passive: ArrayLike | None = None,
    ) -> np.ndarray:
        """q̇ with J_D q̇_a + M_pp⁻¹ h for the passive DoF, h zero by default: (…, nv)."""
        given = {"q": q, "qd_active": qd_active, "momentum_passive": momentum_passive}
        return self._split_call("complete_motion", active, {}, **given)

    def generalized_motion(
        self,
        q: ArrayLike,
        qd_active: ArrayLike,
        frame: str,
        active: Any,
        momentum_passive: ArrayLike | None = None,
        reference: Reference = "aligned",
    ) -> np.ndarray:
        """J_G q̇_a + J_p M_pp⁻¹ h: the velocity of a frame, the passive DoF yielding: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        given = {"q": q, "qd_active": qd_active, "momentum_passive": momentum_passive}
        return self._split_call("generalized_motion", active, static, **given)

    def disturbance_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
    ) -> np.ndarray:
        """The passive accelerations at q̈_a = 0: q̈_p = J_D q̈_a + bias: (…, np)."""
        given = {"q": q, "qd": qd, "tau_passive": tau_passive, "f_ext": f_ext}
        return self._fixed_call("disturbance_bias", active, {}, **given)

    def generalized_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau_passive: ArrayLike,
        frame: str,
        active: Any,
        reference: Reference = "aligned",
        f_ext: ArrayLike | None = None,
    ) -> np.ndarray:
        """The acceleration of a frame at q̈_a = 0: V̇ = J_G q̈_a + bias: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        given = {"q": q, "qd": qd, "tau_passive": tau_passive, "f_ext": f_ext}
        return self._split_call("generalized_bias", active, static, **given)

    def _hybrid_dynamics(
        self, q: Any, qd: Any, qdd_active: Any, tau_passive: Any, active: Any, f_ext: Any = None
    ) -> HybridDynamics:
        from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics

        given = {"q": q, "qd": qd, "qdd_active": qdd_active, "tau_passive": tau_passive}
        found = self._split_call("hybrid_dynamics", active, {}, **given, f_ext=f_ext)
        return HybridDynamics(*found)

    def _short_call(self, active: Any) -> Callable[..., HybridDynamics]:
        """Hybrid dynamics of one split, straight to machine code where the arrays allow."""
        from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics

        split = self._split(active)
        arrays = ("q", "qd", "qdd_active", "tau_passive")
        kernel = self.kernel("hybrid_dynamics", *arrays, active=split)
        return kernel.fast(partial(self._hybrid_dynamics, active=split), HybridDynamics)

    def _split(self, active: Any) -> tuple[bool, ...]:
        return tuple(bool(m) for m in self.mechanism.driven(active))

    def _split_call(self, name: str, active: Any, static: dict[str, Any], **arrays: Any) -> Any:
        """The algorithm with the split fixed, or with a mask that comes with the samples."""
        mask = _settled(active)
        if not isinstance(mask, np.ndarray) or mask.ndim < 2:
            return self._fixed_call(name, mask, static, **arrays)
        if not ((mask == 0) | (mask == 1)).all():
            raise ArgumentError(
                f"{name} of {self.name!r}: active has entries other than true (1) and false (0)"
            )
        return self._call(name, static, **arrays, active=mask)

    def _fixed_call(self, name: str, active: Any, static: dict[str, Any], **arrays: Any) -> Any:
        return self._call(name, {**static, "active": self._split(active)}, **arrays)


def _settled(active: Any) -> Any:
    """What says which DoF are active, so that it can be looked at twice; nested lists as an array.

    What makes no sense stays as it is: `Mechanism.driven` refuses it.
    """
    if isinstance(active, (str, np.ndarray)) or not isinstance(active, Iterable):
        return active
    words = tuple(active)
    lengths = {len(word) if isinstance(word, (list, tuple, np.ndarray)) else -1 for word in words}
    return np.array(words) if len(lengths) == 1 and -1 not in lengths else words


def _key(active: Any) -> Any:
    """What tells one split from another, or None if it comes with the samples."""
    if isinstance(active, np.ndarray):
        plain = active.ndim == 1 and active.dtype.kind in "biuf"
        return (active.dtype.char, active.tobytes()) if plain else None
    if not isinstance(active, tuple):
        return active if isinstance(active, str) else None
    return active if all(isinstance(word, (str, bool)) for word in active) else None

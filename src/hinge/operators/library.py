"""The operators of a mechanism at a configuration, or at a batch of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.inverse_dynamics import motion
from ..algorithms.kinematics import Reference
from ..model.mechanism import Mechanism
from .leaves import Data
from .operator import Operator
from .place import Place
from .spaces import Space
from .symbols import OF_JOINTS, Symbols

__all__ = ["Operators"]


class _Named:
    """A symbol by its name, at the configuration that is asked for it."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, o: Operators | None, owner: type | None = None) -> Any:
        if o is None:
            return self
        return (o.home.known.get(self._name) or o.home[self._name]).bind(o)


class Operators(Place):
    """H, φ, ψ, M, P, D, G, K, τ̄, ℰ_φ, ℰ_ψ, Ω, Υ, B, I of a mechanism at a configuration q (nq,).

    Nothing is worked out before an expression meets a vector.  With a split into active and passive
    joints (active: names, or a flag per DoF), H_a and H_p pick the rows of H, and `passive` has the
    operators P, D, G, K, ψ, … of the passive joints let go while the active ones are held; they
    are here too as P_p, D_p, G_p, K_p, psi_p, Omega_p.

    Made of a mechanism they run as plain Python on any scalar; `robot.operators(q)` compiles.
    """

    H = _Named("Hinge maps, body → joint.")
    M = _Named("Body inertias, body → body.")
    J = _Named("Armature, joint → joint; zero if no joint has any.")
    E_phi = _Named("Forces from each body to its parent, body → body.")
    phi = _Named("(I − ℰ_φ)⁻¹, body → body: forces from each body to all bodies it hangs on.")
    H_a = _Named("The rows of H of the active joints, body → active.")
    H_p = _Named("The rows of H of the passive joints, body → passive.")
    J_a = _Named("Armature of the active joints.")
    J_p = _Named("Armature of the passive joints.")
    P = _Named("Articulated-body inertias, body → body.")
    D = _Named("H P H* + J, joint → joint; its inverse is known.")
    D_root = _Named("L with D = L L*, upper triangular blocks, joint → joint.")
    G = _Named("P H* D⁻¹, the gain, joint → body.")
    K = _Named("ℰ_φ G, joint → body.")
    tau_bar = _Named("I − G H, body → body: what a joint lets through.")
    E_psi = _Named("ℰ_φ τ̄, body → body: forces to the parent, through a joint that gives way.")
    psi = _Named("(I − ℰ_ψ)⁻¹, body → body.")
    Omega = _Named("ψ* H* D⁻¹ H ψ, body → body: accelerations that forces on free bodies cause.")
    Upsilon = _Named("The block diagonal of Ω, body → body.")
    innovations = _Named("I − HψK, joint → joint: what is new in each joint force.")
    factor = _Named("I + HφK, joint → joint: the inverse of the innovations.")
    mass = _Named("H φ M φ* H* + J, joint → joint: the mass matrix as an operator.")
    mass_factor = _Named("m = [I + HφK] D^½, joint → joint, with m m* the mass operator.")
    I: Operator = Symbols.I

    def __init__(self, mechanism: Mechanism, q: Any, active: Any = None) -> None:
        self._settle(Symbols(mechanism, active), np.asarray(q))

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_p") and name[:-2] in OF_JOINTS:
            return self.home[name].bind(self)
        raise AttributeError(f"operators have no {name!r}")

    def __dir__(self) -> list[str]:
        return [*vars(type(self)), *(f"{name}_p" for name in OF_JOINTS)]

    @property
    def body(self) -> Space:
        """Spatial vectors, one per body."""
        return self.home.body

    @property
    def joint(self) -> Space:
        """An entry per degree of freedom."""
        return self.home.joint

    @property
    def is_split(self) -> bool:
        """Whether joints are split into active and passive ones."""
        return self.home.is_split

    @property
    def free(self) -> Any:
        """P, D, G, K, ψ, … of all joints: an `Articulation` at this configuration."""
        return _At(self.home.free, self)

    @property
    def passive(self) -> Any:
        """P, D, G, K, ψ, … of the passive joints, the active ones held."""
        return _At(self.home.passive, self)

    def B(self, *frames: str, reference: Reference = "aligned") -> Operator:
        """Forces on frames as forces on the bodies that carry them, frame → body.

        reference: the axes of the force and the point it acts at, as in `robot.jacobian`; then
        `B.T @ phi.T @ H.T` is the Jacobian.
        """
        return self.home.B(frames, reference).bind(self)

    def Lambda(self, *frames: str, reference: Reference = "aligned") -> Operator:
        """(B*ΩB)⁻¹, frame → frame: the inertia that frames show together, where there is one."""
        return self.home.Lambda(frames, reference).bind(self)

    def motion_forces(self, qd: Any, f_ext: Any = None) -> np.ndarray:
        """f, a body vector (…, 6 n_bodies): what each body needs for the motion at q̈ = 0.

        Gravity, Coriolis and gyroscopic forces and f_ext (…, n_bodies, 6) are in it; H φ f are the
        bias forces.
        """
        given = [self.rates("motion_forces", qd)]
        if f_ext is not None:
            given.append(self.forces("f_ext of motion_forces", f_ext))
        return self.worked_out("motion_forces", _motion_forces, given, (self.body.dim,), 3)

    def rates(self, what: str, x: Any) -> Data:
        """A number per degree of freedom that something is made for, checked; in a batch many."""
        return Data(np.array(self.joint.vector(what, x, self.is_batch)), (self.mechanism.nv,))

    def forces(self, what: str, f_ext: Any) -> Data:
        """Forces (…, n_bodies, 6) that something is made for, checked."""
        f = np.array(f_ext)
        flat = f.reshape(*f.shape[:-2], -1) if self.is_batch else f.reshape(-1)
        flat, shape = self.body.vector(what, flat, self.is_batch), (self.body.dim // 6, 6)
        return Data(flat.reshape(*flat.shape[:-1], *shape), shape)


class _At:
    """A set of joints that give way at a configuration."""

    def __init__(self, joints: Any, at: Operators) -> None:
        self._joints, self._at = joints, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._joints, name)
        return found.bind(self._at) if isinstance(found, Operator) else found


def _motion_forces(at: Operators, qd: np.ndarray, f_ext: Any = None) -> np.ndarray:
    still, maps = np.zeros(at.mechanism.nv), (at.H_blocks, at.phi_blocks)
    f = motion(at.mechanism, *maps, at.q, qd, still, f_ext).f
    return np.concatenate([np.zeros(0), *f[1:]])

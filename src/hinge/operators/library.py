"""The operators of a mechanism at a configuration, or at a batch of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..algorithms.inverse_dynamics import motion_forces
from ..algorithms.kinematics import Reference
from ..algorithms.mass_matrix import mass_matrix, mass_matrix_inverse
from ..algorithms.operational_space import reach
from ..model.mechanism import Mechanism
from .leaves import Data, Leaf, Local, Pick
from .opening import Opening
from .operator import Operator
from .plan import evaluate, plan
from .spaces import Space
from .symbols import OF_JOINTS, Symbols
from .words import equal, polynomial

__all__ = ["Operators"]

# beyond so many steps at bodies an expression is not unrolled into a kernel
_LARGEST = 2000
# a configuration forgets the blocks of leaves after so many others
_REMEMBERED = 256


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


class Operators:
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

    @classmethod
    def of(cls, home: Symbols, q: np.ndarray) -> Operators:
        """The operators with these symbols at configurations (…, nq)."""
        o = object.__new__(cls)
        o._settle(home, q)
        return o

    def _settle(self, home: Symbols, q: np.ndarray) -> None:
        self.home, self.q, self.is_batch = home, q, q.ndim > 1
        self._compiles = home.compile is not None and q.dtype == home.dtype

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_p") and name[:-2] in OF_JOINTS:
            return self.home[name].bind(self)
        raise AttributeError(f"operators have no {name!r}")

    def __dir__(self) -> list[str]:
        return [*vars(type(self)), *(f"{name}_p" for name in OF_JOINTS)]

    @property
    def mechanism(self) -> Mechanism:
        """What they are the operators of."""
        return self.home.mechanism

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

    def B(self, *frames: str, reference: Reference = "aligned") -> Pick:
        """Forces on frames as forces on the bodies that carry them, frame → body.

        reference: the axes of the force and the point it acts at, as in `robot.jacobian`; then
        `B.T @ phi.T @ H.T` is the Jacobian.
        """
        return self.home.B(frames, reference).bind(self)

    def motion_forces(self, qd: Any, f_ext: Any = None) -> np.ndarray:
        """f, a body vector (…, 6 n_bodies): what each body needs for the motion at q̈ = 0.

        Gravity, Coriolis and gyroscopic forces and f_ext (…, n_bodies, 6) are in it; H φ f are the
        bias forces.
        """
        given = [self.rates("motion_forces", qd)]
        if f_ext is not None:
            given.append(self.forces("f_ext of motion_forces", f_ext))
        name = f"motion_forces of {len(given)}"
        return self._worked_out(name, _motion_forces, given, (self.body.dim,), 3)

    def rates(self, what: str, x: Any) -> Data:
        """A number per degree of freedom that something is made for, checked; in a batch many."""
        return Data(np.array(self.joint.vector(what, x, self.is_batch)), (self.mechanism.nv,))

    def forces(self, what: str, f_ext: Any) -> Data:
        """Forces (…, n_bodies, 6) that something is made for, checked."""
        f = np.array(f_ext)
        flat = f.reshape(*f.shape[:-2], -1) if self.is_batch else f.reshape(-1)
        flat, shape = self.body.vector(what, flat, self.is_batch), (self.body.dim // 6, 6)
        return Data(flat.reshape(*flat.shape[:-1], *shape), shape)

    # blocks of one configuration

    @cached_property
    def phi_blocks(self) -> list[Any]:
        """φ(p, k) of every body."""
        return self.mechanism.phi(self.q)

    @cached_property
    def H_blocks(self) -> list[np.ndarray]:
        """H(k) of every body."""
        return self.mechanism.H(self.q)

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was worked out here for the key before, or is now."""
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = make()
        return self._known[key]

    def blocks(self, leaf: Leaf) -> Sequence[Any]:
        """The blocks of a local operator, or φ(body, frame) of the frames of a pick."""
        if isinstance(leaf, Pick):
            given = self.mechanism, self.phi_blocks
            key = leaf.frames, leaf.reference
            return self.once(key, lambda: [reach(*given, f, key[1])[1] for f in key[0]])
        if isinstance(leaf, Local):
            make = leaf.invert if leaf.inverse and leaf.invert else leaf.make
            key = leaf.name, leaf.inverse, leaf.needs
            return self.once(key, lambda: make(self, *leaf.needs))
        return []

    # applying expressions

    def on(self, A: Operator, x: Any) -> np.ndarray:
        """A x: at one configuration a vector (n,) or columns (…, n, k), in a batch (…, n)."""
        run = A.memo.get("run") if self._compiles else None
        if run is not None and type(x) is np.ndarray and x.dtype == self.home.dtype:
            kernel, shape = run
            if x.shape == shape or (self.is_batch and x.shape[-1:] == shape):
                return kernel(self.q, x)
        if self.is_batch:
            return self.apply(A, x)
        x = A.into.check(str(A), x)
        if x.ndim == 1 or self._kernel_of(A, x):
            return _turned(self.apply(A, _turned(x)))
        columns = np.moveaxis(x, -2, 0)
        y = evaluate(A, self, columns.reshape(len(columns), math.prod(columns.shape[1:])))
        return np.moveaxis(y.reshape(A.out.dim, *columns.shape[1:]), 0, -2)

    def apply(self, A: Operator, x: Any) -> np.ndarray:
        """A x for vectors (…, n), whose leading shape broadcasts with that of q."""
        x = A.into.rows(str(A), x)
        if kernel := self._kernel_of(A, x):
            return kernel(self.q, x)
        if x.ndim == 1 and not self.is_batch:
            return evaluate(A, self, x)
        opening = Opening(A)
        shapes = [*opening.shapes, (A.into.dim,)]
        return self._each(_applied(opening), [*opening.values, x], shapes, (A.out.dim,))

    def dense(self, A: Operator) -> np.ndarray:
        """The matrix of A by the cheapest route, (…, m, n).

        The mass operator and its inverse have algorithms of their own, which use the sparsity of
        branches; anything else is applied to unit vectors, from the side that has fewer.
        """
        if "route" not in A.memo:
            A.memo["route"] = self._route(A)
        if algorithm := A.memo["route"]:
            nv = self.mechanism.nv
            return self._worked_out(algorithm.__name__, algorithm, [], (nv, nv), nv)
        if A.into.dim > A.out.dim:
            return np.swapaxes(self._matrix(A.T), -1, -2)
        return self._matrix(A)

    def _matrix(self, A: Operator) -> np.ndarray:
        units = np.eye(A.into.dim)
        if not self.is_batch:
            return self.on(A, units)
        spread = Operators.of(self.home, self.q[..., None, :])
        opening = Opening(A)
        pairs = zip(opening.values, opening.shapes, strict=True)
        wide = [v[()] if v.ndim == len(s) else np.expand_dims(v, -1 - len(s)) for v, s in pairs]
        return np.swapaxes(spread.apply(opening.closed(wide), units), -1, -2)

    def _route(self, A: Operator) -> Callable[..., np.ndarray] | None:
        if not A.out == A.into == self.joint:
            return None
        words, s = polynomial(A), self.home.free
        inverse = s.innovations.T @ s.D.inv @ s.innovations
        known = ((s.mass, _mass_matrix), (inverse, _mass_matrix_inverse))
        return next((found for B, found in known if equal(words, polynomial(B))), None)

    def first(self, A: Operator) -> tuple[Operator, Operators]:
        """The expression and the configuration of the first of a batch."""
        if not self.is_batch:
            return A.symbol, self
        opening = Opening(A)
        pairs = zip(opening.values, opening.shapes, strict=True)
        one = [v[(0,) * (v.ndim - len(shape))] for v, shape in pairs]
        return opening.closed(one), Operators.of(self.home, self.q[(0,) * (self.q.ndim - 1)])

    # kernels

    def _kernel_of(self, A: Operator, x: np.ndarray) -> Callable[..., np.ndarray] | None:
        """(q, x) ↦ A x compiled, if it is for such numbers."""
        if not self._compiles or x.dtype.kind not in "fiu":
            return None
        if "run" not in A.memo:
            opening, x_shape = Opening(A), (A.into.dim,)
            work, shapes = _applied(opening), [*opening.shapes, x_shape]
            given = opening.text, str(A), work, shapes, len(plan(A).steps), opening.values
            kernel = self._kernel(*given)
            if kernel is None:
                return None
            A.memo["run"] = _with_numbers(kernel, opening.values, self.home.dtype), x_shape
        return A.memo["run"][0]

    def _kernel(
        self,
        key: str,
        title: str,
        work: Callable[..., Any],
        shapes: Sequence[tuple[int, ...]],
        steps: int,
        values: Sequence[np.ndarray],
    ) -> Any:
        """work(configuration, *arrays) compiled, once for a key; None for what is not compiled."""
        home = self.home
        plain = all(v.dtype.kind in "fiu" for v in values)
        small = steps * home.mechanism.n_bodies <= _LARGEST
        if home.compile is None or not (self._compiles and plain and small):
            return None
        named = {"q": (home.mechanism.nq,), **{f"x{i}": s for i, s in enumerate(shapes)}}

        def traced(q: np.ndarray, *arrays: np.ndarray) -> Any:
            return work(Operators.of(home, q), *arrays)

        return home.once(("kernel", key), partial(home.compile, key, title, traced, named))

    def _worked_out(
        self,
        name: str,
        work: Callable[..., Any],
        data: Sequence[Data],
        out: tuple[int, ...],
        steps: int,
    ) -> np.ndarray:
        """work(configuration, *arrays) for all configurations."""
        values, shapes = [d.value for d in data], [d.shape for d in data]
        kernel = self._kernel(name, name, work, shapes, steps, values)
        if kernel is not None:
            return kernel(self.q, *values)
        return self._each(work, values, shapes, out) if self.is_batch else work(self, *values)

    def _each(
        self,
        work: Callable[..., Any],
        values: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
        out: tuple[int, ...],
    ) -> np.ndarray:
        """work(configuration, *arrays) for one sample after the other."""
        pairs = list(zip([self.q, *values], [self.q.shape[-1:], *shapes], strict=True))
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(s)] for x, s in pairs))
        q, *rest = (np.broadcast_to(x, lead + s) for x, s in pairs)
        samples = [
            work(Operators.of(self.home, q[i]), *(x[i] for x in rest)) for i in np.ndindex(lead)
        ]
        return np.array(samples).reshape(lead + out)


class _At:
    """A set of joints that give way at a configuration."""

    def __init__(self, joints: Any, at: Operators) -> None:
        self._joints, self._at = joints, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._joints, name)
        return found.bind(self._at) if isinstance(found, Operator) else found


def _applied(opening: Opening) -> Callable[..., np.ndarray]:
    """(configuration, *numbers of an expression, x) ↦ the expression on x."""
    return lambda at, *arrays: evaluate(opening.closed(arrays[:-1]), at, arrays[-1])


def _with_numbers(
    kernel: Callable[..., Any], values: Sequence[np.ndarray], dtype: np.dtype
) -> Callable[..., Any]:
    """(q, x) ↦ the kernel with the numbers of an expression in their place."""
    numbers = [v.astype(dtype) for v in values]
    return (lambda q, x: kernel(q, *numbers, x)) if numbers else kernel


def _turned(x: np.ndarray) -> np.ndarray:
    """Columns as rows, and back."""
    return x if x.ndim == 1 else np.ascontiguousarray(np.swapaxes(x, -1, -2))


def _mass_matrix(at: Operators) -> np.ndarray:
    return mass_matrix(at.mechanism, at.q)


def _mass_matrix_inverse(at: Operators) -> np.ndarray:
    return mass_matrix_inverse(at.mechanism, at.q)


def _motion_forces(at: Operators, qd: np.ndarray, f_ext: Any = None) -> np.ndarray:
    still, maps = np.zeros(at.mechanism.nv), (at.H_blocks, at.phi_blocks)
    f = motion_forces(at.mechanism, *maps, at.q, qd, still, f_ext)
    return np.concatenate([np.zeros(0), *f[1:]])

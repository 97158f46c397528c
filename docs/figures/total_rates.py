"""From M to ν: the factor, energy split over joints, decoupled braking; for an arm of 7 joints."""

from __future__ import annotations

import numpy as np
from common import panels, save

import hinge
from hinge.control import RateFeedback

ARM = hinge.zoo.arm(7)


def factor() -> None:
    """M and m side by side; where they are zero stays white."""
    body = hinge.zoo.quadruped()
    figure, axes = panels(3, height=3.0)
    q = body.random_configuration(0)
    matrices = {
        "M": body.mass_matrix(q),
        "m,  M = m mᵀ": body.mass_factor(q),
        "ℓ = m⁻¹": body.mass_factor_inverse(q),
    }
    for a, (title, A) in zip(axes, matrices.items(), strict=True):
        a.grid(False)
        size = np.log10(np.abs(A) + 1e-12)
        shown = a.imshow(np.where(A == 0, np.nan, size), cmap="viridis", vmin=-4, vmax=1.5)
        a.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axes, label="log₁₀ |entry|;  white: zero", shrink=0.8)
    save(figure, "mass_factor")


def energy() -> None:
    """An arm falls and swings: ½ ν_k² adds up to the kinetic energy."""
    q = np.array([0.3, 1.2, -0.4, 0.9, 0.5, -0.7, 0.2])
    run = hinge.simulate(ARM, q, duration=1.5, dt=1e-3, every=10, limits=False)
    nu = ARM.total_rates(run.q, run.qd)
    share = 0.5 * nu * nu
    worst = np.abs(share.sum(axis=-1) - run.kinetic_energy).max()
    print(f"Σ ½ν² − kinetic energy: {worst:.1e} J of {run.kinetic_energy.max():.1f} J")
    M = ARM.mass_matrix(run.q)
    own = 0.5 * np.einsum("tii,ti->ti", M, run.qd**2)
    figure, (left, right) = panels(2)
    left.stackplot(run.t, share.T, labels=ARM.joint_names)
    left.plot(run.t, run.kinetic_energy, "C7", lw=1)
    left.set(xlabel="time  [s]", ylabel="½ ν²  [J]", title="energy of each total rate, stacked")
    right.stackplot(run.t, own.T)
    right.plot(run.t, run.kinetic_energy, "C7", lw=1)
    right.set(xlabel="time  [s]", ylabel="½ M_kk q̇²  [J]", title="the diagonal of M alone")
    left.legend(fontsize="x-small", loc="upper left")
    save(figure, "energy_split")


def braking() -> None:
    """ε = −c ν: without forces other than this, |ν| decays as e^(−ct), whatever C does."""
    rng = np.random.default_rng(2)
    q, qd = ARM.random_configuration(rng), 2 * rng.normal(size=7)
    figure, (left, middle, right) = panels(3, width=11)
    ways = {"duration": 2.0, "dt": 1e-3, "every": 4, "limits": False}
    run = hinge.simulate(ARM, q, qd, RateFeedback(ARM, 2.0), **ways)
    nu = ARM.total_rates(run.q, run.qd)
    left.plot(run.t, run.qd)
    left.set(xlabel="time  [s]", ylabel="q̇  [rad/s]", title="joint rates")
    middle.plot(run.t, nu)
    length = np.linalg.norm(nu, axis=-1)
    middle.plot(run.t, length, "C7", run.t, -length, "C7", lw=1)
    middle.set(xlabel="time  [s]", ylabel="ν  [√J]", title="total rates and ±|ν|")
    right.semilogy(run.t, run.kinetic_energy, label="c = 2")
    right.semilogy(run.t, run.kinetic_energy[0] * np.exp(-4 * run.t), "C7--", lw=1, label="e^(−4t)")
    slow_base = RateFeedback(ARM, np.array([0.3, 2, 2, 2, 2, 2, 2]))
    other = hinge.simulate(ARM, q, qd, slow_base, **ways)
    right.semilogy(other.t, other.kinetic_energy, label="c = 0.3 for ν₁")
    right.set(xlabel="time  [s]", ylabel="W = kinetic energy  [J]", title="Lyapunov function")
    right.legend()
    worst = np.abs(run.kinetic_energy / run.kinetic_energy[0] - np.exp(-4 * run.t)).max()
    print(f"W against e^(−4t): {worst:.1e}")
    save(figure, "braking")


def main() -> None:
    factor()
    energy()
    braking()


if __name__ == "__main__":
    main()

"""Which link was hit?  Residuals of joint forces, raw and whitened by ℓ, on a Panda.

A force meets a random point of a random link; the residual is r = Jᵀf + noise.  A link is blamed by
the outermost joint whose residual is beyond three standard deviations of its own noise.
Needs example-robot-data for the Panda.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path

import numpy as np
from common import panels, save

import hinge

FORCES = np.array([5.0, 10.0, 20.0, 40.0, 80.0, 160.0])
SAMPLES, SIGMAS = 20000, 3.0


def panda() -> hinge.Robot:
    """The arm alone, its fingers welded to the hand."""
    files = importlib.metadata.files("example-robot-data") or []
    path = next(Path(str(f.locate())) for f in files if f.name == "panda.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mech = hinge.load(path, package_dirs=[path.parents[4]]).mechanism
        for finger in ("panda_finger_joint2", "panda_finger_joint1"):
            mech = hinge.edit.weld(mech, finger)
    return hinge.Robot(mech)


ARM = panda()


def hits(count: int, rng: np.random.Generator):
    """Configurations, links that are hit, and Jᵀf of a unit force on a random point of each."""
    q = np.array([ARM.random_configuration(rng) for _ in range(count)])
    link = rng.integers(0, 7, size=count)
    force = rng.normal(size=(count, 3))
    force /= np.linalg.norm(force, axis=1)[:, None]
    point = rng.uniform(-0.1, 0.1, size=(count, 3))
    f_ext = np.zeros((count, 7, 6))
    f_ext[np.arange(count), link] = np.concatenate([np.cross(point, force), force], axis=1)
    still = np.zeros((count, 7))
    return q, link, ARM.bias_forces(q, still) - ARM.bias_forces(q, still, f_ext)


def times(A, x):
    return np.einsum("bij,bj->bi", A, x)


def blamed(x, deviation):
    """The outermost joint that stands out, or −1."""
    beyond = np.abs(x) > SIGMAS * deviation
    return np.where(beyond.any(axis=1), 6 - np.argmax(beyond[:, ::-1], axis=1), -1)


def noises(q, rng):
    """Name → (noise, covariance): random forces on the bodies, errors of q̈, of the sensors."""
    M, m = ARM.mass_matrix(q), ARM.mass_factor(q)
    g = rng.normal(size=(len(q), 7))
    one = np.broadcast_to(np.eye(7), M.shape)
    return {
        "forces on the bodies, Σ = M": (times(m, g), M),
        "errors of q̈, Σ = (2 rad/s²)² M²": (2 * times(M, g), 4 * M @ M),
        "torque sensors, Σ = (0.3 N m)² 1": (0.3 * g, 0.09 * one),
    }


def accuracy() -> None:
    rng = np.random.default_rng(0)
    q, link, unit = hits(SAMPLES, rng)
    l = ARM.mass_factor_inverse(q)
    figure, axes = panels(3, width=11)
    for a, (name, (noise, covariance)) in zip(axes, noises(q, rng).items(), strict=True):
        whitened = l @ covariance @ l.transpose(0, 2, 1)
        deviations = [np.sqrt(np.einsum("bii->bi", S)) for S in (covariance, whitened)]
        right = []
        for force in FORCES:
            r = force * unit + noise
            found = [blamed(r, deviations[0]), blamed(times(l, r), deviations[1])]
            right.append([np.mean(f == link) for f in found] + [np.mean(f < 0) for f in found])
        right = 100 * np.array(right)
        print(name)
        for force, row in zip(FORCES, right, strict=True):
            print(
                f"  {force:5.0f} N: right link raw {row[0]:.0f} %, whitened {row[1]:.0f} %; "
                f"missed raw {row[2]:.0f} %, whitened {row[3]:.0f} %"
            )
        a.semilogx(FORCES, right[:, 0], "o-", label="raw")
        a.semilogx(FORCES, right[:, 1], "s-", label="whitened by ℓ")
        a.set(title=name, xlabel="force  [N]", ylim=(0, 100))
        a.title.set_fontsize("medium")
    axes[0].set_ylabel("right link  [%]")
    axes[0].legend()
    save(figure, "collision_accuracy")
    D = np.einsum("bii->bi", ARM.mass_factor(q)) ** 2
    ratio = np.median(np.einsum("bii->bi", ARM.mass_matrix(q)) / D, axis=0)
    print("median M_kk / D_k:", np.round(ratio, 2))


def one_hit() -> None:
    """A motion in which something pushes link 2 for 50 ms, with forces on all bodies as noise."""
    rng = np.random.default_rng(3)
    start = np.array([0.3, 0.4, -0.4, -1.8, 0.2, 1.8, 0.5])
    run = hinge.simulate(ARM, start, 0.5 * np.ones(7), ARM.gravity_forces(start), 0.4, 1e-3)
    pushed = (run.t > 0.2) & (run.t < 0.25)
    f_ext = np.zeros((len(run.t), 7, 6))
    f_ext[:, 1] = pushed[:, None] * np.array([0.0, 0.0, 4.0, 0.0, 40.0, 0.0])
    still = np.zeros_like(run.qd)
    clean = ARM.bias_forces(run.q, still) - ARM.bias_forces(run.q, still, f_ext)
    r = clean + times(ARM.mass_factor(run.q), rng.normal(size=run.q.shape))
    seen = ARM.innovations(run.q, r)
    figure, axes = panels(2)
    raw = r / np.sqrt(np.einsum("tii->ti", ARM.mass_matrix(run.q)))
    for a, x, title in zip(
        axes, (raw, seen.whitened), ("raw, over its deviation", "whitened"), strict=True
    ):
        shown = a.imshow(
            np.abs(x).T, aspect="auto", extent=(0, 400, 7.5, 0.5), vmin=0, vmax=8, cmap="magma"
        )
        a.grid(False)
        a.axvline(200, color="w", lw=0.5)
        a.axvline(250, color="w", lw=0.5)
        a.set(xlabel="time  [ms]", title=f"residual, {title}")
    axes[0].set_ylabel("joint")
    figure.colorbar(shown, ax=axes, label="standard deviations")
    save(figure, "collision")
    for name, x in (("raw", raw), ("whitened", seen.whitened)):
        print(
            name,
            "mean |residual| per joint while pushed:",
            np.round(np.abs(x[pushed]).mean(axis=0), 1),
        )


def main() -> None:
    accuracy()
    one_hit()


if __name__ == "__main__":
    main()

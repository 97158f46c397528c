"""Measured motion: looked at before anything is fitted, filtered without delay, differentiated.

Signals are extended beyond their ends by odd reflection and filtered in the frequency domain by the
gain of a Butterworth filter run forwards and backwards,

    1 / (1 + (f / cutoff)⁸),                                                                    (1)

which shifts nothing in time; a derivative is a factor 2πi f.  As the reflection bends what is at
the ends, two periods of the cutoff are left out there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.small import is_masked
from ..errors import ArgumentError
from ..robot import Robot
from ..runtime.check import check_number

__all__ = ["Motion", "as_motion", "differentiated", "joint_of", "low_passed"]

# steps of time that differ by more than this, relatively, are not the same
_JITTER = 0.01
# a step of time that is so many times the usual one is a gap
_GAP = 1.5
# angles beyond this are more than three turns
_MANY_TURNS = 20.0
_DEGREES = float(np.degrees(1.0))
# the cutoff that is chosen, in multiples of the frequency below which most of the power is
_ABOVE, _MOST = 5.0, 0.99
# periods of the cutoff that are left out at either end
_ENDS = 2.0
# rates that are given may differ from the slope of q by so much
_SLOPE = 0.25
# but of few samples, or a joint that hardly moves (rad/s, m/s), one cannot tell
_FEW, _STILL = 8, 1e-3


@dataclass(frozen=True)
class Motion:
    """Samples fit to be fitted: q (n, nq); qd, qdd, tau, weights (n, nv); t (n,) or None.

    cutoff: of the filter that they went through, Hz.
    """

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    weights: np.ndarray
    t: np.ndarray | None
    cutoff: float | None

    @property
    def share(self) -> float:
        """How many independent samples each is worth, after filtering."""
        if self.t is None or self.cutoff is None:
            return 1.0
        return min(1.0, 2 * self.cutoff * float(self.t[1] - self.t[0]))


def as_motion(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None,
    tau: ArrayLike,
    qdd: ArrayLike | None,
    t: ArrayLike | None,
    weights: ArrayLike | None,
    cutoff: float | None,
    check_units: bool,
) -> Motion:
    """What was measured, checked; what was not, from its derivatives."""
    where = f"identify {robot.name!r}"
    given = {
        "q": (q, robot.nq),
        "qd": (qd, robot.nv),
        "qdd": (qdd, robot.nv),
        "tau": (tau, robot.nv),
    }
    arrays = {n: _array(where, n, x, width) for n, (x, width) in given.items() if x is not None}
    arrays["weights"] = _weights(where, weights, arrays["tau"].shape)
    samples = {n: len(x) for n, x in arrays.items()}
    if t is not None:
        arrays["t"] = _array(where, "t", np.asarray(t)[..., None], 1)[:, 0]
        samples["t"] = len(arrays["t"])
    if len(set(samples.values())) > 1:
        told = ", ".join(f"{n} has {count}" for n, count in samples.items())
        raise ArgumentError(f"{where}: the samples differ in number: {told}; give as many of each")
    dt = _step(where, arrays.get("t"))
    if check_units:
        _check_units(where, robot, arrays, dt)
    return _completed(where, robot, arrays, dt, cutoff)


def _weights(where: str, weights: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    """One for each torque, from one for each, for each sample, or none."""
    if weights is None:
        return np.ones(shape)
    given = np.asarray(weights)
    each = np.column_stack([given] * shape[1]) if given.ndim == 1 else given
    w = _array(where, "weights", each, shape[1])
    if (w < 0).any() or not w.any():
        raise ArgumentError(f"{where}: weights are below 0, or all 0; give what each sample counts")
    return w


def _array(where: str, name: str, value: Any, width: int) -> np.ndarray:
    """(n, width) finite numbers."""
    if is_masked(value):
        raise ArgumentError(f"{where}: {name} has masked entries; leave those samples out")
    try:
        x = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{where}: {name} is not an array of numbers") from None
    if x.ndim != 2 or x.shape[1] != width:
        shape = x.shape if name != "t" else x.shape[:-1]
        wanted = f"(n, {width})" if name != "t" else "(n,)"
        raise ArgumentError(
            f"{where}: {name} has shape {shape}; expected {wanted}, a row for each sample; a robot "
            f"of other joints does not fit"
        )
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise ArgumentError(
            f"{where}: {name} has {bad.sum()} of {len(x)} samples that are not finite, the first "
            f"at {int(np.argmax(bad))}; leave them out, and keep what is before and after apart: "
            f"pieces of motion are added one after the other by hinge.RecursiveIdentification"
        )
    return x


def _step(where: str, t: np.ndarray | None) -> float | None:
    """The step of time, if it is always the same."""
    if t is None or len(t) < 2:
        return None
    steps = np.diff(t)
    usual = float(np.median(steps))
    if usual <= 0 or (steps <= 0).any():
        at = int(np.argmin(steps))
        raise ArgumentError(
            f"{where}: t does not increase at sample {at + 1}: {t[at]:g} s, then {t[at + 1]:g} s"
        )
    worst = int(np.argmax(np.abs(steps - usual)))
    if steps.max() > _GAP * usual:
        at = int(np.argmax(steps))
        raise ArgumentError(
            f"{where}: t has a gap of {steps[at]:g} s after sample {at}, where samples are "
            f"{usual:g} s apart; give the pieces one after the other to "
            f"hinge.RecursiveIdentification"
        )
    if abs(steps[worst] - usual) > _JITTER * usual:
        raise ArgumentError(
            f"{where}: t is not uniform: samples are {steps.min():g} to {steps.max():g} s apart; "
            f"interpolate them to equal steps (np.interp), or give qd and qdd and no t"
        )
    return usual


def _check_units(where: str, robot: Robot, arrays: dict[str, np.ndarray], dt: float | None) -> None:
    """Refuse angles that look like degrees, and rates that are not those of q."""
    for body in robot.mechanism.bodies[1:]:
        name, joint = body.joint_name, body.joint
        if joint.nq != 1 or joint.mimic is not None or not joint.H(joint.neutral())[0, :3].any():
            continue
        most = float(np.abs(arrays["q"][:, robot.q_slice(name)]).max(initial=0.0))
        limit = float(np.abs(np.array([joint.lower, joint.upper])).max())
        beyond = max(min(_MANY_TURNS, 2 * limit), np.pi)
        if most > beyond:
            raise ArgumentError(
                f"{where}: q of joint {name!r} reaches {most:.4g} rad, beyond {beyond:.3g}: are "
                f"these degrees? Give radians, or check_units=False if they are"
            )
    if dt is not None and "qd" in arrays and robot.nq == robot.nv and len(arrays["q"]) > _FEW:
        _check_rates(where, np.gradient(arrays["q"], dt, axis=0), arrays["qd"])


def _check_rates(where: str, slope: np.ndarray, qd: np.ndarray) -> None:
    ratio = (slope * qd).sum(axis=0) / np.maximum((slope**2).sum(axis=0), 1e-300)
    wrong = ((slope**2).mean(axis=0) > _STILL**2) & (np.abs(ratio - 1) > _SLOPE)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ArgumentError(
            f"{where}: qd[:, {i}] is {ratio[i]:.3g} times the slope of q[:, {i}] over t: are "
            f"units, signs or columns mixed up? Give matching ones, or check_units=False if they "
            f"are"
        )


def _completed(
    where: str, robot: Robot, x: dict[str, np.ndarray], dt: float | None, cutoff: float | None
) -> Motion:
    """Everything low-passed alike, missing rates from derivatives."""
    missing = [n for n in ("qd", "qdd") if n not in x]
    if missing and dt is None:
        raise ArgumentError(
            f"{where}: without {' and '.join(missing)} the times t of the samples are needed"
        )
    if "qd" not in x and robot.nq != robot.nv:
        raise ArgumentError(
            f"{where}: q has quaternions, whose slope is not qd; give qd, measured or from "
            f"robot.difference(q[:-1], q[1:]) / dt"
        )
    if dt is None or (not missing and cutoff is None):
        if cutoff is not None:
            raise ArgumentError(f"{where}: a cutoff needs the times t of the samples")
        return Motion(x["q"], x["qd"], x["qdd"], x["tau"], x["weights"], x.get("t"), None)
    shown = x.get("qd", x["q"])
    low = _chosen(shown, dt) if cutoff is None else check_number(where, "cutoff", cutoff, 0.0)
    edge = int(np.ceil(_ENDS / (low * dt)))
    if len(shown) <= 4 * edge:
        raise ArgumentError(
            f"{where}: {len(shown)} samples of {dt:g} s are too few for a cutoff of {low:g} Hz, "
            f"which bends {edge} at either end; measure longer, or choose a higher cutoff"
        )
    qd = low_passed(x["qd"], dt, low) if "qd" in x else differentiated(x["q"], dt, low)
    qdd = low_passed(x["qdd"], dt, low) if "qdd" in x else None
    if qdd is None:
        qdd = differentiated(x["qd"], dt, low) if "qd" in x else differentiated(x["q"], dt, low, 2)
    q = low_passed(x["q"], dt, low) if robot.nq == robot.nv else x["q"]
    tau = low_passed(x["tau"], dt, low)
    inner = slice(edge, len(shown) - edge)
    q, qd, qdd, tau, w, t = (a[inner] for a in (q, qd, qdd, tau, x["weights"], x["t"]))
    return Motion(q, qd, qdd, tau, w, t, low)


def joint_of(robot: Robot, dof: int) -> str:
    """The name of the joint that a degree of freedom belongs to."""
    return next(n for n in robot.joint_names if dof in range(robot.nv)[robot.v_slice(n)])


def low_passed(x: np.ndarray, dt: float, cutoff: float) -> np.ndarray:
    """The signals (n, …) without what is faster than the cutoff in Hz, not delayed (1)."""
    return _filtered(x, dt, cutoff, 0)


def differentiated(x: np.ndarray, dt: float, cutoff: float, times: int = 1) -> np.ndarray:
    """The derivative of such signals, so many times."""
    return _filtered(x, dt, cutoff, times)


def _filtered(x: np.ndarray, dt: float, cutoff: float, times: int) -> np.ndarray:
    n = len(x)
    # about the line through both ends, which reflection makes periodic
    line = np.linspace(0.0, 1.0, n).reshape(-1, *[1] * (x.ndim - 1))
    base = x[:1] + line * (x[-1:] - x[:1])
    rest = x - base
    odd = np.concatenate([rest, -rest[-2:0:-1]])
    f = np.fft.rfftfreq(len(odd), dt).reshape(-1, *[1] * (x.ndim - 1))
    gain = (2j * np.pi * f) ** times / (1 + (f / cutoff) ** 8)
    out = np.fft.irfft(np.fft.rfft(odd, axis=0) * gain, len(odd), axis=0)[:n]
    slope = (x[-1:] - x[:1]) / ((n - 1) * dt)
    return out + (base, slope, 0.0)[times]


def _chosen(x: np.ndarray, dt: float) -> float:
    """A cutoff well above the frequencies that the signals have most of their power at."""
    rest = x - x.mean(axis=0)
    power = np.abs(np.fft.rfft(rest * np.hanning(len(x))[:, None], axis=0)) ** 2
    power = (power / np.maximum(power.sum(axis=0), 1e-300)).sum(axis=1)
    most = np.searchsorted(np.cumsum(power), _MOST * power.sum())
    f = np.fft.rfftfreq(len(x), dt)
    return float(min(_ABOVE * max(f[min(most, len(f) - 1)], f[1]), 0.4 / dt))

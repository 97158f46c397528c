"""Whether what a joint of one's own says of itself fits together.

Pose and hinge map are differentiated along motions of the joint, by central differences of fourth
order, and compared with what the class says of their rates:

    R* Ṙ = ω×,   R* ṗ = v,   (ω; v) = H* q̇                                                       (1)
    Ḣ = H_rate(q, q̇),   ∂_b H_a = H_slope,   ∂_b Ḣ = H_rate_slope                               (2)
    difference(q, integrate(q, u)) = u,   dq/dt = coordinate_rates(q) q̇                         (3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ModelError
from .joint import Joint

__all__ = ["check_joint", "check_unknown_joint"]

# truncation and rounding of differences over this step are near 1e-12
_STEP = 1e-3
_TOLERANCE = 1e-7
_STATES = 2


def check_joint(joint: Joint) -> None:
    """Raise a `ModelError` that lists what a joint says of itself and that does not hold.

    Compared at random coordinates: the pose with the hinge map H, H with its rate and derivatives,
    `integrate` with `difference`.  A joint of a class that hinge does not know is checked so when
    it is put into a mechanism.
    """
    said = dict.fromkeys(_mistakes(joint))
    if said:
        listed = "".join(f"\n  {line}" for line in said)
        raise ModelError(f"joint class {type(joint).__qualname__} does not fit together:{listed}")


def check_unknown_joint(where: str, joint: Joint) -> None:
    """Check a joint whose class is not of this package; where: for the message."""
    if type(joint).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    try:
        check_joint(joint)
    except ModelError as problem:
        raise ModelError(f"{where}: {problem}") from None


def _mistakes(joint: Joint) -> Iterator[str]:
    wrong = [*_wrong_shapes(joint), *_writers(joint)]
    if wrong:
        yield from wrong
        return
    start = joint.neutral()
    if not _near(np.hstack([joint.pose(start)[0], joint.pose(start)[1][:, None]]), np.eye(3, 4)):
        yield "pose(neutral()) is not the identity: choose q = neutral() where the frames coincide"
    for seed in range(_STATES if joint.nv else 0):
        yield from _wrong_rates(joint, np.random.default_rng(seed))


def _wrong_shapes(joint: Joint) -> Iterator[str]:
    q, qd, n = joint.neutral(), np.zeros(joint.nv), joint.nv
    R, p = joint.pose(q)
    expected = {
        "neutral()": (q, (joint.nq,)),
        "pose(q)[0]": (R, (3, 3)),
        "pose(q)[1]": (p, (3,)),
        "H(q)": (joint.H(q), (n, 6)),
        "H_rate(q, qd)": (joint.H_rate(q, qd), (n, 6)),
        "H_slope(q)": (joint.H_slope(q), (n, n, 6)),
        "H_rate_slope(q, qd)": (joint.H_rate_slope(q, qd), (n, n, 6)),
    }
    for name, (value, shape) in expected.items():
        if np.shape(value) != shape:
            yield f"{name} has shape {np.shape(value)}; expected {shape}"


def _writers(joint: Joint) -> Iterator[str]:
    """Methods that change the arrays that they are given."""
    q, u = joint.random(np.random.default_rng(0)), np.ones(joint.nv)
    taken = {"pose": 1, "H": 1, "H_slope": 1, "H_rate": 2, "H_rate_slope": 2, "integrate": 2}
    for name, count in taken.items():
        given = [q.copy(), u.copy()][:count]
        getattr(joint, name)(*given)
        if not all(np.array_equal(x, y) for x, y in zip(given, (q, u), strict=False)):
            yield f"{name} writes into its arguments; let it work on a copy"


def _wrong_rates(joint: Joint, rng: np.random.Generator) -> Iterator[str]:
    q, (qd, u) = joint.random(rng), rng.normal(size=(2, joint.nv))
    R, _ = joint.pose(q)

    def along(v: np.ndarray, what: Callable[[np.ndarray], Any]) -> np.ndarray:
        return _slope(lambda h: what(joint.integrate(q, h * v)))

    R_rate, p_rate = along(qd, lambda x: joint.pose(x)[0]), along(qd, lambda x: joint.pose(x)[1])
    W, spin = joint.H(q).T @ qd, R.T @ R_rate
    moved = np.array([spin[2, 1], spin[0, 2], spin[1, 0], *(R.T @ p_rate)])
    yield from _compared("H", "H(q).T @ qd", W, "pose moves with", moved, q, qd)
    H_rate = along(qd, joint.H)
    yield from _compared("H_rate", "H_rate(q, qd)", joint.H_rate(q, qd), "H changes by", H_rate, q)
    units = np.eye(joint.nv)
    slope = np.array([along(e, joint.H) for e in units])
    yield from _compared("H_slope", "H_slope(q)", joint.H_slope(q), "H changes by", slope, q)
    bend = np.array([along(e, lambda x: joint.H_rate(x, qd)) for e in units])
    given = joint.H_rate_slope(q, qd)
    yield from _compared("H_rate_slope", "H_rate_slope(q, qd)", given, "H_rate changes by", bend, q)
    back = joint.difference(q, joint.integrate(q, 0.1 * u))
    yield from _compared("difference", "difference(q, integrate(q, u))", back, "u is", 0.1 * u, q)
    if joint.nq == joint.nv:
        own = joint.coordinate_rates(q) @ qd
        rate = along(qd, lambda x: x)
        yield from _compared("coordinate_rates", "coordinate_rates(q) @ qd", own, "q by", rate, q)


def _compared(
    name: str, said: str, value: Any, found: str, expected: np.ndarray, *at: np.ndarray
) -> Iterator[str]:
    value = np.asarray(value, dtype=float)
    if not _near(value, expected):
        worst = np.unravel_index(np.nanargmax(np.abs(value - expected)), expected.shape)
        where = ", ".join(str(np.round(x, 3).tolist()) for x in at)
        entry = "".join(f"[{i}]" for i in worst)
        yield (
            f"{name}: {said}{entry} is {value[worst]:.6g}, and {found} {expected[worst]:.6g} "
            f"(at {where}); give {name} as it follows from pose and integrate"
        )


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max(initial=0.0) <= _TOLERANCE * max(1.0, np.abs(b).max(initial=0.0)))


def _slope(f: Callable[[float], Any]) -> np.ndarray:
    near, far = (np.subtract(f(h), f(-h)) for h in (_STEP, 2 * _STEP))
    return (8 * near - far) / (12 * _STEP)

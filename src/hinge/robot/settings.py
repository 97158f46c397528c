"""Arguments of methods that are not arrays: checked, and settled so that kernels can be told apart.

An argument that chooses a kernel becomes something that can be hashed: a split into active and
passive degrees of freedom a tuple of bool, names of frames a tuple of str.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..algorithms.constrained.description import as_constraints
from ..algorithms.linearized.loads import LOADS
from ..algorithms.regressors import joint_terms_of
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from ..runtime.check import check_choice, check_number

__all__ = ["frame_names", "settled", "split_of"]


def settled(mech: Mechanism, where: str, name: str, value: Any, split_per_sample: bool) -> Any:
    """An argument as kernels are told apart by it; an array if it comes with the samples.

    split_per_sample: a split may come so.
    """
    if name == "active":
        return _settled_split(mech, where, value, split_per_sample)
    if name == "method":
        called = where.removeprefix("explain ").partition(" of ")[0]
        return check_choice(where, name, value, _METHODS.get(called, _LINEARIZED))
    if name in _CHOICES:
        return check_choice(where, name, value, _CHOICES[name])
    settle = _SETTLE.get(name)
    return value if settle is None else settle(where, value)


def split_of(mech: Mechanism, active: Any) -> tuple[bool, ...]:
    """Which degrees of freedom are active, from names of joints or a mask."""
    return tuple(bool(m) for m in mech.driven(active))


def _settled_split(mech: Mechanism, where: str, active: Any, per_sample: bool) -> Any:
    """A split, or a mask (…, nv) per sample."""
    mask = _looked_at(active)
    if not per_sample or not isinstance(mask, np.ndarray) or mask.ndim < 2:
        return split_of(mech, mask)
    if not ((mask == 0) | (mask == 1)).all():
        raise ArgumentError(f"{where}: active has entries other than true (1) and false (0)")
    return mask


def _looked_at(active: Any) -> Any:
    """What says which DoF are active, so that it can be looked at twice; nested lists as an array.

    What makes no sense stays as it is: `Mechanism.driven` refuses it.
    """
    if isinstance(active, (str, np.ndarray)) or not isinstance(active, Iterable):
        return active
    words = tuple(active)
    if not words:
        return active
    lengths = {len(word) if isinstance(word, (list, tuple, np.ndarray)) else -1 for word in words}
    return np.array(words) if len(lengths) == 1 and -1 not in lengths else words


def frame_names(where: str, frames: Any) -> tuple[str, ...]:
    """One name or several."""
    if isinstance(frames, str):
        return (frames,)
    names = tuple(frames) if isinstance(frames, Iterable) else ()
    if not names:
        raise ArgumentError(f"{where}: frames is {frames!r}; expected names")
    return names


_CHOICES: dict[str, tuple[Any, ...]] = {
    "form": ("body", "christoffel"),
    "normalized": (True, False),
    "kind": (1, 2),
    "order": (1, 2),
    "load": LOADS,
}
_LINEARIZED = ("articulated", "conventional")
_METHODS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("forward_dynamics", "aba", "hybrid_dynamics"), ("sweep", "scan")
)
_SETTLE: dict[str, Callable[[str, Any], Any]] = {
    "constraints": as_constraints,
    "damping": lambda where, value: check_number(where, "damping", value, above=0),
    "dt": lambda where, value: check_number(where, "dt", value, above=0),
    "frames": frame_names,
    "joint_terms": joint_terms_of,
}

"""Arguments of every function of `hinge.spatial`, in both forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hinge
from hinge.spatial import se3, so3
from hinge.spatial.function import FUNCTIONS, Element

NAMES = sorted(FUNCTIONS)
# functions with the form of their rotations and poses: matrices, or with quaternions
FORMS = [
    (name, form)
    for name in NAMES
    for form in range(1 + any(isinstance(x, Element) for x in FUNCTIONS[name].arguments.values()))
]


def function(name: str) -> Callable[..., Any]:
    """What users call by that name."""
    module, _, last = name.partition(".")
    return getattr(getattr(hinge.spatial, module), last)


def arguments(name: str, form: int, lead: tuple[int, ...] = (), seed: int = 3) -> list[np.ndarray]:
    """Arrays that it takes: turns of up to π, twists and vectors of about 1."""
    rng = np.random.default_rng(seed)
    found = []
    for element in FUNCTIONS[name].arguments.values():
        if not isinstance(element, Element):
            found.append(rng.normal(size=(*lead, *element)))
        elif element.shapes[0] == (3, 3):
            R = so3.random(rng, lead)
            found.append(so3.to_quaternion(R) if form else R)
        else:
            X = se3.random(rng, lead)
            found.append(se3.to_quaternion(X) if form else X)
    return found


def parts(result: Any) -> tuple[np.ndarray, ...]:
    """The results of a function, whether one or several."""
    return result if isinstance(result, tuple) else (result,)

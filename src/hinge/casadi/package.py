"""The package CasADi itself, imported where it is first needed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..errors import HingeError

__all__ = ["casadi_package"]


def casadi_package() -> Any:
    """The module `casadi`."""
    if find_spec("casadi") is None:
        raise HingeError('hinge.casadi needs casadi; pip install "hinge-dynamics[casadi]"')
    import casadi

    return casadi

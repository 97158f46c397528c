"""hinge without JAX: nothing of it is imported, and its absence is said."""

import importlib.util

import pytest

import hinge
from fresh_process import run_python


def test_without_jax_its_absence_is_said(monkeypatch):
    for found in (None, importlib.util.spec_from_loader("jax", None, origin=None)):
        monkeypatch.setattr(hinge.jax, "find_spec", lambda name, found=found: found)
        with pytest.raises(hinge.ArgumentError, match=r"not installed: pip install 'hinge-dynam"):
            hinge.jax.robot(hinge.zoo.arm(1))


def test_hinge_imports_no_framework():
    code = "import sys, hinge\nhinge.jax\nassert not {'jax', 'torch', 'casadi'} & set(sys.modules)"
    assert run_python(code) == ""

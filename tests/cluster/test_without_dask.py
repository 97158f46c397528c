"""hinge without Dask: nothing of it is imported, and its absence is said."""

import importlib.util

import pytest

import hinge
from fresh_process import run_python


def test_without_dask_its_absence_is_said(monkeypatch):
    for found in (None, importlib.util.spec_from_loader("dask", None, origin=None)):
        monkeypatch.setattr(hinge.cluster, "find_spec", lambda name, found=found: found)
        for call in (hinge.cluster.map, hinge.cluster.study):
            with pytest.raises(hinge.ArgumentError, match=r"not installed: pip install 'hinge-dy"):
                call(hinge.zoo.arm(1).mass_matrix, None, {})


def test_hinge_imports_nothing_of_dask():
    code = "import sys, hinge\nhinge.cluster.grid(x=[1])\n"
    code += "assert not {'dask', 'distributed', 'cloudpickle'} & set(sys.modules)"
    assert run_python(code) == ""

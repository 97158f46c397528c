"""What tests of emitters share."""

import ctypes
import ctypes.util
from dataclasses import replace

import numpy as np
import pytest

from hinge.graph.operations import OPERATIONS, library_functions


@pytest.fixture
def c_sines(monkeypatch):
    """`interpret` with the C library's functions in place of NumPy's, which differ by an ulp."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))

    def of(name, count):
        wide, narrow = getattr(libm, name), getattr(libm, name + "f")
        for function, kind in ((wide, ctypes.c_double), (narrow, ctypes.c_float)):
            function.restype, function.argtypes = kind, [kind] * count

        def apply(*args):
            dtype = np.result_type(*args)
            function = wide if dtype == np.float64 else narrow
            return np.vectorize(function, otypes=[dtype])(*args)

        return apply

    for op, count in library_functions().items():
        monkeypatch.setitem(OPERATIONS, op, replace(OPERATIONS[op], numpy=of(op, count)))

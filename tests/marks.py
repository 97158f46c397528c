"""Marks of tests that need something that not every Python has."""

import pytest

from hinge.runtime.engine import fast_calls_work

short_way = pytest.mark.skipif(not fast_calls_work(), reason="all calls take the plain way here")

"""Test session: after a whole and green run, every `raise` of the library must have run.

That is looked at when the tests ran that run by default: those marked `long` do not count.
"""

import os
import tempfile
from pathlib import Path

import pytest

import raises

raises.install()

# a cache of kernels for this session alone, which its workers share
if "PYTEST_XDIST_WORKER" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory()
    os.environ["XDG_CACHE_HOME"] = _CACHE.name


@pytest.fixture
def own_algorithms():
    """Algorithms that a test declares are forgotten after it."""
    from hinge.algorithms.declare import ALGORITHMS

    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


def pytest_sessionfinish(session, exitstatus):
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["raises"] = sorted(raises.MARKS)
        return
    if exitstatus != 0 or config.args != config.getini("testpaths") or _narrowed(config):
        return
    source = Path(__import__("hinge").__file__).parent
    everything = {place for path in source.rglob("*.py") for place in raises.raises_in(path)}
    config.missed_raises = sorted(everything - raises.MARKS)
    if config.missed_raises:
        session.exitstatus = 1


def _narrowed(config):
    """Whether other tests were chosen than those that run by default."""
    option, default = config.option, config.getini("addopts")
    other = option.markexpr != default[default.index("-m") + 1]
    fewer = (
        option.keyword
        or option.ignore
        or option.deselect
        or getattr(option, "lf", False)
        or option.collectonly
    )
    return bool(other or fewer)


def pytest_testnodedown(node, error):
    raises.MARKS.update(getattr(node, "workeroutput", {}).get("raises", ()))


def pytest_terminal_summary(terminalreporter, config):
    missed = getattr(config, "missed_raises", [])
    if missed:
        terminalreporter.section("no test makes these raise")
        for place in missed:
            terminalreporter.write_line(f"src/hinge/{place}")

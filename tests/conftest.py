"""Test session: after a whole and green run, every `raise` of the library must have run.

That is looked at when the tests ran that run by default: those marked `long` do not count.  A room
that stands on a framework has its tests in a folder of its name, which are skipped where the
framework is not installed: there it is looked at when that folder ran, with it.

Some packages to compare with are large, and the extra `test` does without them: tests that need one
skip, and nothing is said of what they would have raised.  `pytest --leave FILE` writes down what
skipped and what was raised; with the extra `peers` installed, `pytest --after FILE` runs those
tests and looks at the raises of both runs.
"""

import json
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import raises

raises.install()

# rooms that stand on a package which other tests do without, and the package
FRAMEWORKS = {"casadi": "casadi", "cluster": "dask", "jax": "jax", "torch": "torch"}
# folders of tests that are called otherwise than the room
_ROOMS = {"frameworks": "casadi"}
# what the extra `peers` installs
_PEERS = ("casadi", "pinocchio", "playwright")
_SKIPPED: set[str] = set()

# a cache of kernels for this session alone, which its workers share
if "PYTEST_XDIST_WORKER" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory()
    os.environ["XDG_CACHE_HOME"] = _CACHE.name


def pytest_addoption(parser):
    parser.addoption("--leave", metavar="FILE", help="write down what skips and what is raised")
    parser.addoption("--after", metavar="FILE", help="run what skipped in a run with --leave")
    parser.addoption("--site", metavar="FOLDER", help="a built site, to be looked at in a browser")


def pytest_runtest_setup(item):
    """A folder of tests, imported for a package of its name that is not installed, goes away."""
    for name in FRAMEWORKS.values():
        module = sys.modules.get(name)
        if hasattr(module, "__path__") and getattr(module, "__file__", None) is None:
            del sys.modules[name]


def pytest_collection_modifyitems(config, items):
    if config.option.after is None:
        return
    skipped = tuple(json.loads(Path(config.option.after).read_text())["skipped"])
    items[:] = [item for item in items if item.nodeid.startswith(skipped)]


def pytest_collectreport(report):
    if report.skipped:
        _SKIPPED.add(report.nodeid)


def pytest_runtest_logreport(report):
    if report.skipped:
        _SKIPPED.add(report.nodeid)


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
    if config.option.leave is not None:
        left = {"skipped": sorted(_SKIPPED), "raises": sorted(raises.MARKS)}
        Path(config.option.leave).write_text(json.dumps(left))
    if config.option.after is not None:
        raises.MARKS.update(json.loads(Path(config.option.after).read_text())["raises"])
    folders = {_ROOMS.get(name, name) for name in (Path(a).name for a in config.args)}
    whole = config.args == config.getini("testpaths") and all(map(_is_installed, _PEERS))
    if exitstatus != 0 or not (whole or folders <= set(FRAMEWORKS)) or _narrowed(config):
        return
    source = Path(__import__("hinge").__file__).parent
    rooms = {path for path in source.iterdir() if path.name in folders or whole}
    rooms = {path for path in rooms if _is_installed(FRAMEWORKS.get(path.name, "numpy"))}
    files = [path for room in rooms for path in ([room] if room.is_file() else room.rglob("*.py"))]
    everything = {
        place for path in files if path.suffix == ".py" for place in raises.raises_in(path)
    }
    config.missed_raises = sorted(everything - raises.MARKS)
    if config.missed_raises:
        session.exitstatus = 1


def _is_installed(package):
    """Whether it is: a folder of tests of that name is not it."""
    found = find_spec(package)
    return found is not None and found.origin is not None


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

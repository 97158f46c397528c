"""The site: every public name is on it, described and shown; a fault on a page stops its building.

The tests that build one need Sphinx: `.ci/site` has it.
"""

import fnmatch
import importlib.util
import inspect
import json
import subprocess
import sys

import pytest

import hinge
import public
from hinge.robot.method import methods_of
from pages import DOCS, PAGES, blocks, missing
from public import CHAPTERS, entries, example, members
from units import MEANINGS, RESULTS, UNITS

ENTRIES = [(page, entry) for page in CHAPTERS for entry in entries(page)]


def conf():
    """The settings of the site, as a module."""
    spec = importlib.util.spec_from_file_location("site_conf", DOCS / "conf.py")
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_every_public_name_is_on_one_page_of_the_reference():
    names = [entry.full_name for _, entry in ENTRIES]
    assert len(names) == len(set(names))
    top = {name.split(".")[1] for name in names}
    assert top == set(dir(hinge))
    methods = {name for name in dir(hinge.Robot) if not name.startswith("_")}
    assert {
        n.removeprefix("hinge.Robot.") for n in names if n.startswith("hinge.Robot.")
    } == methods
    modules = "algorithms control control.space edit operators spatial.se3 spatial.so3 zoo"
    for module in modules.split():
        found = public._found(module)
        shown = {n.removeprefix(f"hinge.{module}.") for n in names}
        # a module in a list has a page or a section of its own
        assert {n for n in found.__all__ if not inspect.ismodule(getattr(found, n))} <= shown


def test_every_public_name_has_a_docstring():
    assert not [entry.full_name for _, entry in ENTRIES if not entry.doc]
    assert not [m.full_name for _, entry in ENTRIES for m in members(entry) if not m.doc]


def test_every_public_name_has_an_example():
    """On its page; a plain algorithm is covered by the method of its name."""
    bare = {entry.full_name for page, entry in ENTRIES if not example(page, entry.name)}
    covered = {f"hinge.algorithms.{name}" for name in dir(hinge.Robot)}
    assert not bare - covered


def test_examples_are_whole_statements():
    code = "x = f(\n    1,\n)\n\n\ndef g(q):\n    return f(q)\n\n\nprint(x)"
    parts = list(public._statements(code))
    assert parts == ["x = f(\n    1,\n)", "def g(q):\n    return f(q)", "print(x)"]


def test_every_method_has_units():
    declared = methods_of(hinge.Robot)
    assert {method.name for method in declared} == set(RESULTS)
    arrays = {p.name for method in declared for p in method.parameters if p.is_array}
    unitless = {
        "active",
        "anchors",
        "force_weights",
        "mask",
        "cotangent",
        "out",
        "restitution",
        "s",
        "tau_weights",
    }
    assert arrays - set(UNITS) == unitless & arrays
    assert set(MEANINGS) <= arrays


def test_every_page_is_in_the_navigation():
    patterns = [pattern for pages in conf().navigation.values() for pattern in pages]
    names = [str(p.relative_to(DOCS).with_suffix("")) for p in PAGES if p.is_relative_to(DOCS)]
    for name in set(names) - {"index"}:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name
    for pattern in patterns:
        assert fnmatch.filter(names, pattern), pattern


def test_pages_lead_to_every_task_in_two_clicks():
    """Every page of the navigation under Begin and Tasks is linked from the first page."""
    text = (DOCS / "index.md").read_text()
    navigation = conf().navigation
    for name in (*navigation["Begin"], *navigation["Tasks"]):
        assert f"]({name}.md)" in text, name


def test_what_blocks_print_and_draw_is_kept(tmp_path):
    code = [
        "from pathlib import Path\nprint('one')\nx = 2",
        "_ = Path('a.svg').write_text('<svg/>')\nprint(x)",
        "Path('b.txt').write_text('no picture')\n1 / 0",
        "print('never')",
    ]
    given, found = tmp_path / "blocks.json", tmp_path / "results.json"
    given.write_text(json.dumps(code))
    runner = DOCS / "_ext" / "run_blocks.py"
    subprocess.run([sys.executable, runner, given, found], cwd=tmp_path, check=True)
    first, second, third = json.loads(found.read_text())
    assert first == {"printed": "one\n", "shown": [], "raised": None}
    assert second == {"printed": "2\n", "shown": ["a.svg"], "raised": None}
    assert third["shown"] == [] and "ZeroDivisionError" in third["raised"]


def test_packages_that_pages_need(monkeypatch):
    assert missing("import numpy\nimport pytest") == []
    monkeypatch.setattr("pages._installed", lambda name: False)
    assert missing("import jax.numpy as jnp\nfrom torch import nn\nimport numpy") == [
        "jax",
        "torch",
    ]


@pytest.fixture
def build(tmp_path):
    """What builds a site of one page, and gives what is said, and the page."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: .ci/site has it")

    def built(text):
        source, out = tmp_path / "docs", tmp_path / "site"
        source.mkdir()
        (source / "index.md").write_text(text)
        paths = [str(DOCS / "_ext"), str(DOCS.parent / "tests")]
        settings = f"import sys\nsys.path[:0] = {paths}\nrepository = 'https://example.org'\n"
        settings += "extensions = ['myst_parser', 'executed', 'repository']\n"
        (source / "conf.py").write_text(settings + "html_math_renderer = 'mathml'\n")
        command = [sys.executable, "-m", "sphinx", "-q", "-W", source, out]
        ended = subprocess.run(command, capture_output=True, text=True)
        page = out / "index.html"
        return ended.returncode, ended.stderr, page.read_text() if page.exists() else ""

    return built


def test_a_page_shows_what_its_blocks_give(build):
    draw = "from pathlib import Path\nPath('a.svg').write_text('<svg/>')\nprint(6 * 7)"
    code, said, page = build(f"# Page\n\n```python\n{draw}\n```\n\n```py\n1 / 0\n```\n\n$x^2$\n")
    assert code == 0, said
    assert "42" in page and "_made/index/a.svg" in page


@pytest.mark.parametrize(
    "fault", ["```python\n1 / 0\n```", "[there](nowhere.md)", "![gone](gone.svg)"]
)
def test_a_fault_on_a_page_stops_the_building(build, fault):
    code, said, _ = build(f"# Page\n\n{fault}\n")
    assert code != 0 and ("ZeroDivisionError" in said or "nowhere" in said or "gone" in said)


def test_pages_of_the_reference_have_code():
    assert all(blocks(public.path_of(page)) for page in CHAPTERS)

"""Every Python block of the README and the documentation runs, in order, page by page."""

import re
from pathlib import Path

import pytest

import hinge
from pages import DOCS, PAGES, ROOT, blocks


def shapes(code):
    """The shapes that comments behind `print(….shape)` say."""
    return re.findall(r"^ *print\([^,]+\.shape\) +# (\([\d, ]*\))", code, flags=re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    """It prints no NaN, and the shapes that it says."""
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for number, code in enumerate(blocks(page), 1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), scope)
        printed = capsys.readouterr().out
        assert set(shapes(code)) <= set(printed.splitlines())
        assert not re.search(r"\bnan\b", printed)


def test_some_pages_say_shapes():
    assert sum(len(shapes(code)) for page in PAGES for code in blocks(page)) >= 5


PROJECT = re.compile(
    r"https://(?:github\.com/hinge-dynamics/hinge/(?:blob|tree)|"
    r"raw\.githubusercontent\.com/hinge-dynamics/hinge)/main/"
)


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            own, found = PROJECT.match(target), page.parent / target
            if own:
                found = ROOT / target[own.end() :]
            assert found.exists() or ("://" in target and not own), f"{page.name}: {target}"


def test_links_of_the_readme_work_outside_the_repository():
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    assert targets and all(PROJECT.match(target) for target in targets)


def test_readme_has_its_two_commands():
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M)
    assert commands == ["pip install . && hinge demo\n", 'pip install ".[test]" && pytest\n']


ROBOT = hinge.zoo.arm(2)
TEXT = {page.name: page.read_text() for page in PAGES}


@pytest.mark.parametrize("page", TEXT)
def test_names_on_the_page_exist(page):
    """Every `robot.name`, `robot.alg.name` and `hinge.name`; X stands for any of them."""
    for name in re.findall(r"\brobot\.(\w+)", TEXT[page]):
        assert name == "X" or hasattr(ROBOT, name), name
    for name in re.findall(r"\brobot\.alg\.(\w+)", TEXT[page]):
        assert name == "X" or name in hinge.algorithms.__all__, name
    for name in re.findall(r"\bhinge\.(\w+)", TEXT[page]):
        here = (Path(hinge.__file__).parent / name).with_suffix(".py").exists()
        assert here or hasattr(hinge, name), name


PUBLIC = {
    "hinge": hinge.__all__,
    "Robot": [n for n in dir(hinge.Robot) if not n.startswith("_")],
    "algorithms": hinge.algorithms.__all__,
    "control": hinge.control.__all__,
    "control.space": hinge.control.space.__all__,
    "operators": hinge.operators.__all__,
    "edit": hinge.edit.__all__,
    "zoo": hinge.zoo.__all__,
}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_some_page(module):
    words = set(re.findall(r"\w+", " ".join(TEXT.values())))
    assert not set(PUBLIC[module]) - words


def test_every_page_and_picture_is_shown_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", " ".join(TEXT.values()))
    shown = {Path(target).name for target in targets}
    drawn = {p.name for kind in ("svg", "gif") for p in DOCS.rglob(f"*.{kind}")}
    assert (set(TEXT) | drawn) - shown == {"README.md"}


C_ARRAYS = {"inverse dynamics": "qd qdd", "forward dynamics": "qd tau", "mass matrix": ""}


def test_operations_on_the_embedded_page_are_those_of_the_kernels():
    rows = re.findall(
        r"^\| `(\w+)\((\d*)\)` ([\w ]+) \| (\d+(?:, \d+){3}) \|", TEXT["embedded.md"], re.M
    )
    assert len(rows) == 9
    for kind, size, name, told in rows:
        robot = getattr(hinge.zoo, kind)(*map(int, size.split()))
        kernel = robot.kernel(name.replace(" ", "_"), "q", *C_ARRAYS[name].split())
        assert kernel.program.ops[:4] == tuple(map(int, told.split(", "))), (kind, name)


def test_sizes_of_loops_on_the_embedded_page_are_those_of_the_files():
    rows = re.findall(r"^\| `snake\((\d+)\)` ([\w ]+) \| ([\d |]+) \|$", TEXT["embedded.md"], re.M)
    tables = re.compile(r"^static const .*? = \{\n.*?^\};\n", re.M | re.S)
    assert len(rows) == 4
    for size, name, told in rows:
        robot = hinge.Robot(hinge.zoo.snake(int(size)).mechanism, dtype="float32")
        text = robot.kernel(name.replace(" ", "_"), "q", *C_ARRAYS[name].split()).source("c")
        lines, code, workspace = (int(x.replace(" ", "")) for x in told.split("|"))
        assert f"Workspace on the stack: {workspace} bytes" in text
        # where lines are cut depends on the last digits of numbers
        assert abs(text.count("\n") - lines) < 10
        assert abs(tables.sub("", text).count("\n") - code) < 10

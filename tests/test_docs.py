"""Every Python block of the README and the documentation runs, in order, page by page."""

import ast
import pydoc
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import hinge
from pages import DOCS, PAGES, ROOT, blocks
from test_shape_of_code import LAYERS


def shapes(code):
    """The shapes that comments behind `print(….shape)` say."""
    return re.findall(r"^ *print\([^,]+\.shape\) +# (\([\d, ]*\))", code, flags=re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys, own_algorithms):
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
    assert commands == [
        'pip install ".[view]" && hinge demo\n',
        'pip install ".[test]" && pytest\n',
    ]


ROBOT = hinge.zoo.arm(2)
TEXT = {page.name: page.read_text() for page in PAGES}


@pytest.mark.parametrize("page", TEXT)
def test_names_on_the_page_exist(page):
    """Every `robot.name`, `robot.alg.name` and `hinge.name`; X stands for any of them."""
    for name in re.findall(r"(?<!hinge\.)\brobot\.(\w+)", TEXT[page]):
        assert name == "X" or hasattr(ROBOT, name), name
    for name in re.findall(r"\brobot\.alg\.(\w+)", TEXT[page]):
        assert name == "X" or name in hinge.algorithms.__all__, name
    for name in re.findall(r"\bhinge\.(\w+)", TEXT[page]):
        assert hasattr(hinge, name) or find_spec(f"hinge.{name}"), name
    for name in re.findall(r"\bhinge(?:\.\w+){2,}", TEXT[page]):
        module, last = name.rsplit(".", 1)
        assert hasattr(pydoc.locate(module), last) or find_spec(name), name


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


# pages that say where things are in the source
GUIDES = ["architecture.md", "extend.md"]
SOURCE = Path(hinge.__file__).parent


def source_file(name):
    """A file of the source, of the repository, or beside other tests, by what a page calls it."""
    places = [SOURCE / name, ROOT / name, *(ROOT / "tests").glob(f"*/{name}")]
    found = [path for path in places if path.exists()]
    assert found, name
    return found[0]


def defined(path):
    """Names that a module defines: NAME, function, Class, Class.method."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            names |= {f"{node.name}.{x.name}" for x in inner if isinstance(x, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {
            t.id for target in targets if target for t in ast.walk(target) if type(t) is ast.Name
        }
    return names


@pytest.mark.parametrize("page", GUIDES)
def test_files_and_modules_on_the_page_exist(page):
    words = re.findall(r"`([\w./]+)`", TEXT[page])
    files = [word for word in words if word.endswith(".py") and "NAME" not in word]
    assert all(source_file(name) for name in files) and files
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    dotted = [word for word in words if word.split(".")[0] in rooms and word.count(".") > 1]
    for module, name in (word.rsplit(".", 1) for word in dotted):
        assert name in defined(source_file(f"{module.replace('.', '/')}.py")), (module, name)


@pytest.mark.parametrize("page", GUIDES)
def test_functions_of_a_row_are_in_the_file_of_the_row(page):
    rows = re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", TEXT[page], re.M)
    for file, cell in rows:
        names = re.findall(r"`([\w.]+)`", cell)
        assert names and set(names) <= defined(source_file(file)), (file, cell)


def test_the_rooms_are_those_of_the_source():
    """Each with its modules, in the order of the layers."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) ?\|$", TEXT["architecture.md"], re.M)
    told = {room: set(re.findall(r"`([\w.]+)`", cell)) for room, cell in rows}
    there = {path.stem: set() for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    for path in SOURCE.glob("*/**/*.py"):
        room, *module = path.relative_to(SOURCE).with_suffix("").parts
        there.setdefault(room, set()).update({".".join(module)} - {"__init__"})
    there = {
        room: {m for m in found if not m.endswith("__init__")} for room, found in there.items()
    }
    assert told == there
    order = [next(i for i, row in enumerate(LAYERS) if room in row) for room in told]
    assert order == sorted(order, reverse=True)


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

"""Every Python block of the README and the documentation runs, in order, page by page."""

import ast
import importlib
import operator
import pydoc
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import hinge
from pages import DOCS, PAGES, ROOT, blocks, called, missing, targets
from remarks import Remarks, agree
from test_shape_of_code import LAYERS


# pages show what is left out of a file
@pytest.mark.filterwarnings("ignore::hinge.ModelWarning")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=called)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys, own_algorithms):
    """It prints no NaN, and the numbers and shapes that its comments say."""
    if absent := missing("\n".join(blocks(page))):
        pytest.skip(f"{', '.join(absent)} is not installed")
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for number, code in enumerate(blocks(page), 1):
        remarks = Remarks(code)
        scope["print"] = remarks.shown(print)
        exec(compile(code, f"{called(page)}, block {number}", "exec"), scope)
        assert not list(remarks.wrong(scope))
        assert not re.search(r"\bnan\b", capsys.readouterr().out)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=called)
def test_pages_begin_with_what_the_base_install_has(page):
    """But for those that are about a package, most of them called by its name."""
    about = {"cluster": "dask"}.get(page.stem, page.stem)
    base = {"hinge", "numpy", about, *sys.stdlib_module_names}
    imported = re.findall(r"^(?:import|from) (\w+)", blocks(page)[0], flags=re.M)
    assert set(imported) <= base


@pytest.mark.parametrize(
    ("comment", "printed", "agrees"),
    [
        ("# 8e-7 J", "68.50278095660855", False),
        ("# 8e-7 J", "8.4e-07", True),
        ("# 3e-14 J", "1.1e-14", True),
        ("# 3e-14 J", "3e-13", False),
        ("# 2 mm", "0.0018666", True),
        ("# 2 mm", "0.0026", False),
        ("# 1.51, −0.6: it comes back", "1.508 -0.5977", True),
        ("# 1.51, −0.6: it comes back", "-0.5977 1.508", False),
        ("# 1.51, −0.6: it comes back", "1.508 0.5977", False),
        ("# 1000 reached", "999 reached", False),
        ("# (1001,) (1001, 7) …", "(1001,) (1001, 7) (1001, 7)", True),
        ("# (3, 3)", "(3, 4)", False),
        ("# in 3-D, float32, ∂²τ, http://localhost:8080", "", True),
    ],
)
def test_numbers_of_comments_are_compared_with_what_is_printed(comment, printed, agrees):
    assert agree(comment, printed) == agrees


@pytest.mark.parametrize("said", [(2, 3), (3, 2)])
def test_shapes_of_comments_are_compared_with_what_there_is(said):
    code = f"import numpy as np\nx = np.ones((2, 3))  # {said}, twice\nx, x  # {said} each\n"
    remarks, scope = Remarks(code), {}
    exec(code, scope)
    assert len(list(remarks.wrong(scope))) == (0 if said == (2, 3) else 3)


def test_some_pages_say_numbers():
    behind = r"^ *print\(.*\) +# .*\d"
    assert sum(len(re.findall(behind, page.read_text(), re.M)) for page in PAGES) > 60


PROJECT = re.compile(
    r"https://(?:github\.com/hinge-dynamics/hinge/(?:blob|tree)|"
    r"raw\.githubusercontent\.com/hinge-dynamics/hinge)/main/"
)


def led_to(page, target):
    """The file of the repository that a link of a page leads to; None: it leads elsewhere."""
    own = PROJECT.match(target)
    if own:
        return ROOT / target[own.end() :]
    return None if "://" in target else (page.parent / target).resolve()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in targets(page):
            found = led_to(page, target)
            assert found is None or found.exists(), f"{called(page)}: {target}"


def headings(page):
    """Where links within a page may lead, as GitHub and the site call its headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in found}


def test_links_to_headings_lead_to_one():
    for page in PAGES:
        for target, name in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            assert name in headings(page.parent / target if target else page), (page, target, name)


def test_links_of_the_readme_work_outside_the_repository():
    links = targets(ROOT / "README.md")
    assert links and all(PROJECT.match(target) for target in links)


def test_readme_has_its_two_commands():
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M)
    assert commands == [
        'pip install ".[view]" && hinge demo\n',
        'pip install ".[test]" && pytest\n',
    ]


ROBOT = hinge.zoo.arm(2)
TEXT = {called(page): page.read_text() for page in PAGES}


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
        assert last == "X" or hasattr(pydoc.locate(module), last) or find_spec(name), name


NAMESPACES = [n for n in hinge.__all__ if isinstance(getattr(hinge, n), ModuleType)]


@pytest.mark.parametrize("name", [*NAMESPACES, "control.space", "spatial.se3", "spatial.so3"])
def test_namespaces_are_imported_under_the_names_of_the_pages(name):
    """`import hinge.edit` and `from hinge.edit import lock`, as well as `hinge.edit.lock`."""
    module = importlib.import_module(f"hinge.{name}")
    assert module is pydoc.locate(f"hinge.{name}") and module.__name__ == f"hinge.{name}"
    assert module.__all__ and all(hasattr(module, public) for public in module.__all__)


PUBLIC = {
    "hinge": dir(hinge),
    "Robot": [n for n in dir(hinge.Robot) if not n.startswith("_")],
    "algorithms": hinge.algorithms.__all__,
    "cluster": hinge.cluster.__all__,
    "control": hinge.control.__all__,
    "control.space": hinge.control.space.__all__,
    "operators": hinge.operators.__all__,
    "edit": hinge.edit.__all__,
    "spatial.se3": hinge.spatial.se3.__all__,
    "spatial.so3": hinge.spatial.so3.__all__,
    "zoo": hinge.zoo.__all__,
}


NAMESPACES = {*PUBLIC, "casadi", "jax", "torch"} - {"hinge", "Robot"}


@pytest.mark.parametrize("module", sorted(NAMESPACES))
def test_a_namespace_shows_its_public_names(module):
    """What completion shows: not what a module imports, nor the files that it is made of."""
    if module == "casadi":
        pytest.importorskip("casadi", reason="casadi is not installed")
    found = pydoc.locate(f"hinge.{module}") or operator.attrgetter(module)(hinge)
    assert dir(found) == sorted(found.__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_some_page(module):
    words = set(re.findall(r"\w+", " ".join(TEXT.values())))
    assert not set(PUBLIC[module]) - words


def test_every_page_and_picture_is_shown_somewhere():
    shown = {led_to(page, target) for page in PAGES for target in targets(page)}
    drawn = {p for kind in ("svg", "gif") for p in DOCS.rglob(f"*.{kind}")}
    logos = set((DOCS / "_static").iterdir())
    assert {*PAGES, *drawn} - shown - logos == {ROOT / "README.md"}


def test_methods_of_the_table_are_those_of_robots():
    """With a dagger, those that only `robot.alg` has."""
    cells = re.findall(r"^\| (`[^|]+`[^|]*) \|", TEXT["algorithms.md"], re.M)
    told = re.findall(r"`(\w+)`( †)?", " ".join(cells))
    assert len(told) > 60
    for name, dagger in told:
        assert hasattr(ROBOT, name) != bool(dagger) and hasattr(hinge.algorithms, name), name


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


LINK_TO_SOURCE = re.compile(r"\[(`\w[^\]]*)\]\(((?:\.\./)+src/hinge/[\w/]+\.py)\)")


@pytest.mark.parametrize("page", [p for p in TEXT if p.startswith("theory")])
def test_equations_lead_to_what_computes_them(page):
    """A link names functions and classes of its file, and marks of equations, (3), that it has."""
    for words, target in LINK_TO_SOURCE.findall(TEXT[page]):
        path = (DOCS / page).parent / target
        names, marks = re.findall(r"`([\w.]+)`", words), re.findall(r"\(\d+\)", words)
        assert set(names) <= defined(path), (target, set(names) - defined(path))
        text = path.read_text()
        assert not [mark for mark in marks if mark not in text], (target, marks)


def test_chapters_of_theory_lead_to_the_source():
    chapters = [p for p in TEXT if p.startswith("theory") and not p.endswith("index.md")]
    assert len(chapters) == 6
    assert all(len(LINK_TO_SOURCE.findall(TEXT[page])) >= 5 for page in chapters)

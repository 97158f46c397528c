"""How the code is made: layers, sizes, docstrings, types, and a test behind every `raise`."""

import ast
import builtins
import importlib
from pathlib import Path

import pytest

import hinge
from fresh_process import run_python
from hinge.algorithms.declare import ALGORITHMS

SOURCE = Path(hinge.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = Path(__file__).parent.parent

# Each room may import from the rooms below its own; imports inside functions count too.
LAYERS = [
    ["errors"],
    ["algebra"],
    ["model"],
    ["edit"],
    ["algorithms", "load", "graph"],
    ["operators", "emit", "write"],
    ["specialize"],
    ["runtime"],
    ["functions"],
    ["viewer"],
    ["robot"],
    ["zoo"],
    ["differentiable"],
    ["motion"],
    ["identification"],
    ["control"],
    ["casadi", "cluster", "jax", "torch"],
    ["spatial"],
    ["command"],
    ["cli"],
    ["__main__"],
]


def layer_of(name):
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def module_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imports(path):
    """The top-level hinge modules that a file imports."""
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) + 1 - node.level]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            # the version is in the package itself
            names = [name for name in names if name != "__version__"]
            yield from ([*above, *name.split(".")][0] for name in names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [getattr(node, "module", None) or "", *(a.name for a in node.names)]
            assert not any(n.startswith("hinge") for n in names), f"{path}: import relatively"


def module_at(place):
    """The file of a module or of a package."""
    files = [place.with_suffix(".py"), place / "__init__.py"]
    return next((file for file in files if file.exists()), None)


def modules_imported(path):
    """The hinge modules that a file imports, inside functions too; those for types alone not."""
    tree = ast.parse(path.read_text())
    types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or node in types:
            continue
        above = package[: len(package) + 1 - node.level]
        home = SOURCE.joinpath(*above, *(node.module or "").split("."))
        for alias in node.names:
            # a name is a module of the package, or something in the module
            yield module_at(home / alias.name) or module_at(home)


def circles():
    """The sets of modules that reach each other by their imports."""
    reached = {path: set(modules_imported(path)) for path in FILES}
    grown = True
    while grown:
        grown = False
        for path, found in reached.items():
            more = found.union(*(reached[there] for there in found))
            grown, reached[path] = grown or len(more) > len(found), more
    for path in FILES:
        if path in reached[path]:
            yield frozenset(p for p in reached[path] if path in reached[p])


def test_no_modules_import_each_other_in_a_circle():
    assert not [[str(p.relative_to(SOURCE)) for p in circle] for circle in circles()]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    here = module_of(path)
    if here == "__init__":
        return
    for there in imports(path):
        if there != here:
            assert layer_of(there) < layer_of(here), f"{here} must not import {there}"


def test_algorithms_know_only_mechanisms_and_algebra():
    allowed = {"errors", "algebra", "model", "algorithms"}
    for path in (SOURCE / "algorithms").rglob("*.py"):
        assert set(imports(path)) <= allowed, path


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    # longer than that, it is hardly about one thing
    assert len(text.splitlines()) <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= 40, f"{path}: {node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_everything_public_is_documented_and_typed(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), f"{path} has no docstring"
    inherited = {
        "pose",
        "H",
        "H_rate",
        "neutral",
        "normalize",
        "random",
        "integrate",
        "difference",
        "commuting",
        "turn",
        "stretch",
        "spring_force",
        "H_slope",
        "H_rate_slope",
        "to_middle",
        "from_middle",
        "departing",
        "carried",
        "coordinate_rates",
        "glided",
        "gliding",
        "glide_rate",
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            private = any(
                isinstance(parent, (ast.FunctionDef, ast.ClassDef))
                and (parent.name.startswith("_") or isinstance(parent, ast.FunctionDef))
                and node in ast.walk(parent)
                and node is not parent
                for parent in ast.walk(tree)
            )
            if private or (path.name in ("joints.py", "canonical.py") and node.name in inherited):
                continue
            assert ast.get_docstring(node), f"{path}: {node.name} has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            untyped = [
                a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")
            ]
            assert not untyped, f"{path}: {node.name}({', '.join(untyped)}) is not typed"
            assert node.returns is not None, f"{path}: {node.name} has no return type"


def test_no_assert_in_the_library():
    for path in FILES:
        nodes = ast.walk(ast.parse(path.read_text()))
        assert not any(isinstance(node, ast.Assert) for node in nodes), path


def test_public_names_are_those_of_the_lists():
    for name in dir(hinge):
        assert hasattr(hinge, name)
    assert set(hinge.algorithms.__all__) == set(ALGORITHMS)
    for name, declared in ALGORITHMS.items():
        assert getattr(hinge.algorithms, name) is declared.function


def test_the_project_speaks_of_itself_alone():
    words = ["/tm" + "p/", "/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/"]
    for path in [
        *FILES,
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("*.md"),
        *ROOT.glob("tests/**/*.py"),
    ]:
        text = path.read_text()
        assert not [w for w in words if w in text], path


LAZY = [hinge]


@pytest.mark.parametrize("package", LAZY, ids=lambda p: p.__name__)
def test_what_is_imported_later_is_what_the_list_has(package):
    later = package._LATER
    assert list(later) == sorted(later) and set(later) <= set(package.__all__)
    # a star import leaves what Python has as it is
    assert set(package.__all__) == set(dir(package)) - set(dir(builtins))
    for name, home in later.items():
        if home:
            module = importlib.import_module(f"{package.__name__}.{home}")
            assert getattr(package, name) is getattr(module, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("package", LAZY, ids=lambda p: p.__name__)
def test_no_module_takes_the_place_of_a_function(package):
    """An import binds the name of the module: a later one must not be called like a function."""
    folder = Path(package.__file__).parent
    modules = {p.stem for p in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/*.py")}
    later = {name for name, home in package._LATER.items() if home}
    assert not modules & later


BARE = """
import sys
import hinge
given = {name for name in sys.modules if name.startswith("hinge.")}
heavy = ["graph.program", "graph.scalar", "emit", "specialize.canonical", "specialize.loops"]
heavy += ["load.urdf", "motion", "functions.derivatives"]
assert not given & {"hinge." + name for name in heavy}, given
assert not {"llvmlite", "difflib", "json", "hashlib", "sysconfig", "scipy"} & set(sys.modules)
"""


def test_import_takes_what_the_first_lines_need():
    run_python(BARE)

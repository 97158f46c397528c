"""How the tests are made: each asserts something."""

import ast
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Function(NamedTuple):
    """Where it is, what it is called and given, whether it asserts, and what it calls."""

    place: str
    name: str
    given: set[str]
    asserts: bool
    calls: set[str]


def functions(tree, path):
    """Those of a file, also within others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            inside = list(ast.walk(node))
            given = {argument.arg for argument in node.args.args}
            own = any(isinstance(x, ast.Assert) for x in inside)
            yield Function(f"{path}:{node.lineno}", node.name, given, own, set(called(inside)))


def called(nodes):
    """Names of the functions that are called, and of methods that are named for an assertion."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in ("raises", "warns", "near") or name.startswith("assert_"):
                yield name


def asserts(function, helpers):
    """Whether it has an assertion, or calls one, a helper that has one, or what it was given."""
    known = {"raises", "warns", *helpers, *function.given}
    return function.asserts or any(
        name in known or name.startswith("assert_") for name in function.calls
    )


def helpers_that_assert(found):
    """Names of functions outside of tests that assert, at once or through one another."""
    others = [f for f in found if not f.name.startswith("test_")]
    helpers, more = set(), {""}
    while more:
        more = {f.name for f in others if asserts(f, helpers)} - helpers
        helpers |= more
    return helpers


def test_every_test_asserts_something():
    paths = sorted(FOLDER.rglob("*.py"))
    found = [f for path in paths for f in functions(ast.parse(path.read_text()), path.name)]
    tests = [f for f in found if f.name.startswith("test_")]
    helpers = helpers_that_assert(found)
    assert len(tests) > 1000
    assert not [f"{f.place}: {f.name}" for f in tests if not asserts(f, helpers)]


def test_a_test_without_an_assertion_is_seen():
    code = "def test_nothing(robot):\n    robot.inverse_dynamics(0)\n"
    code += "def checked(x):\n    assert x\ndef test_something():\n    checked(1)\n"
    nothing, helper, something = functions(ast.parse(code), "")
    helpers = helpers_that_assert([nothing, helper, something])
    assert not asserts(nothing, helpers) and asserts(something, helpers)

"""How the tests are made: each asserts something."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
TREES = {path: ast.parse(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def called(function):
    """Names of the functions it calls, and of methods that are named for an assertion."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            yield name if name in ("raises", "warns", "near") or name[:7] == "assert_" else ""


def asserts(function, helpers):
    """Whether it has an assertion, or calls one, a helper that has one, or what it was given."""
    given = {argument.arg for argument in function.args.args}
    known = {"raises", "warns", *helpers, *given}
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        name in known or name.startswith("assert_") for name in called(function)
    )


def helpers_that_assert():
    """Names of functions outside of tests that assert, at once or through one another."""
    others = [f for tree in TREES.values() for f in functions(tree) if f.name[:5] != "test_"]
    helpers, more = set(), {""}
    while more:
        more = {f.name for f in others if asserts(f, helpers)} - helpers
        helpers |= more
    return helpers


HELPERS = helpers_that_assert()


@pytest.mark.parametrize("path", TREES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_test_asserts_something(path):
    for function in functions(TREES[path]):
        if function.name.startswith("test_"):
            assert asserts(function, HELPERS), f"{path.name}:{function.lineno}: {function.name}"


def test_a_test_without_an_assertion_is_seen():
    (function,) = ast.parse("def test_nothing(robot):\n    robot.inverse_dynamics(0)").body
    assert not asserts(function, HELPERS)

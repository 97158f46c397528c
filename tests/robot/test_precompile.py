"""Methods compiled before they are called: here, or by other processes, and found on disk."""

import io
import pickle
import sys

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from hinge.model.parameters import parameters
from hinge.robot import precompile as module
from hinge.runtime import cache, cpu


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def no_compiler(monkeypatch):
    """From now on everything has to be there."""

    def never(*arguments):
        raise AssertionError("compiled again")

    return lambda: monkeypatch.setattr(cpu, "compile_texts", never)


def test_other_processes_leave_the_code_on_disk(no_compiler):
    robot = zoo.pendulum(2)
    no_compiler()
    took = robot.precompile("mass_matrix", "forward_dynamics", processes=2)
    assert list(took) == ["mass_matrix", "forward_dynamics"] and min(took.values()) > 0
    x = np.ones(2)
    assert robot.mass_matrix(x).shape == (2, 2)
    assert robot.forward_dynamics(np.ones((3, 2)), x, x).shape == (3, 2)
    with pytest.raises(AssertionError, match="compiled again"):
        robot.inverse_dynamics(x, x, x)


def test_settings_go_to_the_methods_that_take_them(no_compiler):
    robot = zoo.pendulum(2)
    took = robot.precompile("mass_matrix", "jacobian", frame="link2", batch=False, processes=1)
    assert list(took) == ["mass_matrix", "jacobian"]
    no_compiler()
    assert robot.jacobian(np.ones(2), "link2").shape == (6, 2)


def test_numbers_of_the_mechanism(no_compiler):
    robot = hinge.Robot(zoo.pendulum(1).mechanism, parameters=("inertia", "gravity"))
    robot.precompile("forward_dynamics", processes=1)
    no_compiler()
    own = {n: parameters(robot.mechanism)[n] for n in robot.parameters}
    assert robot.forward_dynamics([0.1], [0.0], [1.0], **own).shape == (1,)


@pytest.mark.long
def test_all_that_the_mechanism_has_an_answer_to():
    """Christoffel symbols need coordinates, a sphere has none; frames were not named."""
    b = hinge.MechanismBuilder("ball")
    b.add("ball", "world", hinge.Spherical(), inertia=hinge.Inertia(1.0, np.zeros(3), np.eye(3)))
    robot = hinge.Robot(b.build())
    took = robot.precompile(batch=False, processes=1)
    assert {"forward_dynamics", "mass_matrix"} < set(took)
    assert not {"christoffel", "jacobian"} & set(took)
    assert cache.info()[1] >= len(took)


def test_without_a_cache_this_process_compiles(monkeypatch):
    monkeypatch.setattr(cache, "folder", lambda: None)
    assert list(zoo.pendulum(1).precompile("mass_matrix", "gravity_forces", processes=2)) == [
        "mass_matrix",
        "gravity_forces",
    ]


def test_processes_that_die_are_replaced_by_this_one(monkeypatch):
    monkeypatch.setattr(module, "_SERVE", "raise SystemExit")
    took = zoo.pendulum(1).precompile("mass_matrix", "gravity_forces", processes=2)
    assert len(took) == 2


def test_what_another_process_does(monkeypatch, capsys):
    """Line by line; what it cannot do it says so."""
    task = pickle.dumps((zoo.pendulum(1), ((),), {}))
    given = len(task).to_bytes(8, "little") + task + b"mass_matrix\njacobian\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    monkeypatch.setattr(sys, "stdout", said := io.StringIO())
    module.serve()
    first, second = said.getvalue().split()
    assert float(first) > 0 and second == "null"


@pytest.mark.parametrize(
    ("methods", "settings", "words"),
    [
        (("forward",), {}, "no compiled method is called 'forward'; did you mean"),
        (("jacobian",), {}, "frame is missing"),
        (("mass_matrix",), {"frame": "link1"}, "frame is no setting of mass_matrix"),
        ((), {"single": False, "batch": False}, "neither single nor batch"),
        ((), {"processes": 0}, "processes is 0; expected a whole number above 0"),
    ],
)
def test_what_makes_no_sense(methods, settings, words):
    with pytest.raises(ArgumentError, match=words):
        zoo.pendulum(1).precompile(*methods, **settings)

"""An algorithm that this package does not know is a function with its declaration, and a method.

What `docs/extend.md` says of a new algorithm is done here, in a file that nothing else knows.
"""

import inspect
from typing import Any, Unpack

import numpy as np
import pytest
from numpy.typing import ArrayLike

import hinge
from fresh_process import run_python
from hinge import zoo
from hinge.algorithms.declare import algorithm
from hinge.graph.loop import LoopProgram
from hinge.model.protocol import Tree
from hinge.robot.method import Numbers, compiled
from mechanisms import EPS, assert_close, everything, gripper, random_state


def power(mech: Tree, qd: Any, tau: Any) -> Any:
    """Σ τ q̇, what goes into the joints, in W.  O(N)."""
    qd_, tau_ = mech.rates(qd), mech.rates(tau)
    total = 0.0
    for _, k in mech.outward():
        total = total + qd_[k] @ tau_[k]
    return total


def rotor_forces(mech: Tree, qdd: Any) -> Any:
    """What the rotors need of the joint forces: (nv,).  O(N)."""
    qdd_ = mech.rates(qdd)
    (tau,) = mech.slots(1)
    for _, k in mech.outward():
        tau[k] = mech.armature[k] * qdd_[k]
    return mech.join(tau)


class Machine(hinge.Robot):
    """A robot with two more methods."""

    @compiled()
    def power(
        self, qd: ArrayLike, tau: ArrayLike, out: Any = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """Σ τ q̇: (…)."""
        ...

    @compiled()
    def rotor_forces(
        self, qdd: ArrayLike, out: Any = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """What the rotors need: (…, nv)."""
        ...


@pytest.fixture(autouse=True)
def declared(own_algorithms):
    """Both are algorithms for the time of a test."""
    algorithm(joint_level=True)(power)
    algorithm(joint_level=True, loops=True)(rotor_forces)


@pytest.mark.parametrize("make", [everything, gripper, lambda: zoo.arm(3)])
def test_it_is_a_method_with_all_that_methods_have(make):
    robot = Machine(make().mechanism)
    rng = np.random.default_rng(0)
    qd, tau = rng.normal(size=(2, 5, robot.nv))
    expected = np.sum(qd * tau, axis=-1)
    if robot.mechanism.has_followers:
        expected = np.array([power(robot.mechanism, *pair) for pair in zip(qd, tau, strict=True)])
    for found in (robot.power(qd, tau), robot.power(tau=tau, qd=qd)):
        assert_close(found, expected, 100 * EPS)
    for _ in range(3):
        assert_close(robot.power(qd[0], tau=tau[0]), expected[0], 100 * EPS)
    robot.power(qd, tau, out=(out := np.empty(5)))
    assert_close(out, expected, 100 * EPS)
    assert (
        robot.power.__doc__ == "Σ τ q̇: (…)." and "tau" in inspect.signature(robot.power).parameters
    )
    with pytest.raises(hinge.ArgumentError, match="power of .*: tau is missing"):
        robot.power(qd)  # pyright: ignore[reportCallIssue]


def test_it_is_routed_explained_and_looped():
    robot = Machine(zoo.snake(44).mechanism)
    qdd = random_state(robot, 1).qdd
    assert isinstance(robot.kernel("rotor_forces", "qdd").program, LoopProgram)
    assert "a loop over bodies" in robot.explain("rotor_forces")
    assert_close(robot.rotor_forces(qdd), rotor_forces(robot.mechanism, qdd), 10 * EPS)


def test_it_is_part_of_other_kernels_and_of_derivatives():
    robot = Machine(zoo.arm(3).mechanism)
    mech, state = robot.mechanism, random_state(robot, 2)
    slope = hinge.grad(lambda qd, tau: power(mech, qd, tau))(state.qd, state.qdd)
    assert_close(slope, state.qdd, 10 * EPS)


EDITED = """
import hinge
from hinge.algorithms.declare import algorithm

@algorithm(joint_level=True)
def rotor_forces(mech, qdd):
    return TIMES * qdd

robot = hinge.zoo.arm(2)
assert robot.kernel("rotor_forces", "qdd")([1.0, 2.0]).tolist() == [TIMES, 2 * TIMES]
"""


def test_code_kept_for_a_function_is_not_used_once_the_function_has_changed():
    for times in (1, 2):
        run_python(f"TIMES = {times}{EDITED}")

"""The algorithms with a mechanism bound: their names, words and types."""

import inspect

import numpy as np
import pytest

from hinge import algorithms, zoo
from hinge.algorithms import Algorithms
from type_checker import wrong_lines

ARM = zoo.arm(3).mechanism


def test_every_algorithm_is_bound():
    assert dir(Algorithms(ARM)) == sorted(algorithms.__all__)


@pytest.mark.parametrize("name", algorithms.__all__)
def test_what_is_left_is_the_function_without_its_mechanism(name):
    function, attribute = getattr(algorithms, name), getattr(Algorithms(ARM), name)
    assert (attribute.__name__, attribute.__doc__) == (function.__name__, function.__doc__)
    _, *rest = inspect.signature(function).parameters.values()
    assert list(inspect.signature(attribute).parameters.values()) == rest


def test_bound_algorithms_give_what_functions_give():
    q, alg = np.array([0.1, -0.4, 0.7]), Algorithms(ARM)
    assert np.array_equal(alg.mass_matrix(q), algorithms.mass_matrix(ARM, q))
    assert np.array_equal(alg.rnea(q, q, qdd=q), algorithms.inverse_dynamics(ARM, q, q, q))


def test_unknown_names_are_told_the_nearest():
    with pytest.raises(AttributeError, match="'mass_matrx'; did you mean 'mass_matrix'"):
        Algorithms(ARM).mass_matrx  # noqa: B018


SNIPPET = """
import numpy as np
from hinge import Mechanism
from hinge.algorithms import Algorithms

def use(mechanism: Mechanism, q: np.ndarray) -> None:
    alg = Algorithms(mechanism)
    found: np.ndarray = alg.inverse_dynamics(q, q, q, f_ext=None)
    slopes: np.ndarray = alg.forward_dynamics_derivatives(q, q, q, load="world").dq
    alg.inverse_dynamics(q, q, qdd=q, f_exd=found)    # a misspelt keyword
    alg.invers_dynamics(q, q, slopes)                 # a misspelt name
    alg.mass_matrix(q, q)                             # one argument too many
    alg.momentum(q, q, about="base")                  # a choice that there is not
"""


def test_a_type_checker_knows_what_they_take(tmp_path):
    found, marked = wrong_lines(tmp_path, SNIPPET)
    assert found == marked

"""Machine code of robots between pages that must not be touched; in processes that may end so."""

import sys

import pytest

from campaign.pool import ALGORITHMS
from fresh_process import run_python
from hinge.runtime.target import host
from pages import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")
CODE = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from campaign.bounds import fenced_calls
from campaign.pool import is_possible, robot, task_of
from hinge.runtime.target import host

rng, calls = np.random.default_rng(0), 0
for dtype, scalar in (("float64", "double"), ("float32", "float")):
    for name in {names!r}:
        task = task_of(robot({robot!r}, dtype), name)
        if task is None or not is_possible(task, 4000):
            continue
        for n in range(1, 2 * host().lanes(scalar) + 2):
            calls += fenced_calls(task, n, rng)
print(calls)
"""


def calls_between_fences(robot, *names):
    """How many calls came back, and with the right numbers."""
    return int(run_python(CODE.format(tests=str(ROOT / "tests"), robot=robot, names=names)))


def test_an_algorithm_of_a_floating_robot():
    """Batches of one sample to two tiles and one more: as many as vectors are wide."""
    lanes = host().lanes("double")
    assert calls_between_fences("free", "inverse_dynamics") > 125 * lanes


@pytest.mark.long
@pytest.mark.parametrize("robot", ["free", "gripper", "tree"])
def test_every_algorithm(robot):
    """The campaign has all types of joints."""
    assert calls_between_fences(robot, *ALGORITHMS) > 1250 * host().lanes("double")


def test_a_step_outside_ends_the_process():
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n" + (
        "import numpy as np\nfrom fences import fenced\n"
        "x = fenced(np.ones(5), at_end=True)\n"
        "np.lib.stride_tricks.as_strided(x, (6,)).sum()\n"
    )
    with pytest.raises(AssertionError):
        run_python(code)
    assert run_python(code.replace("(6,)", "(5,)")) == ""

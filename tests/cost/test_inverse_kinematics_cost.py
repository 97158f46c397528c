"""What inverse kinematics costs: a step of the search, and rates within limits."""

import numpy as np
import pytest

from hinge import zoo
from hinge.robot.goals import asked
from hinge.robot.inverse_kinematics import search_kernel

ARM = zoo.arm(7)
STEPS = {"pose": (np.eye(4), 1660), "position": (np.zeros(3), 880)}


@pytest.mark.parametrize("task", STEPS)
def test_a_step_of_an_arm(task):
    target, most = STEPS[task]
    ask = asked(ARM, "cost", "tool", target, task, None, None, ())
    assert 0.95 * most < sum(search_kernel(ARM, ask).ops) <= most


def test_rates_of_an_arm():
    kernel = ARM.kernel("differential_inverse_kinematics", "q", "velocity", frame="tool")
    assert sum(kernel.ops) <= 10_920

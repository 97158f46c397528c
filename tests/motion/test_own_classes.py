"""Code of classes that are not of this package is never taken from another time they had."""

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import simulate, zoo
from hinge.motion.integrators import METHODS, Integrator
from mechanisms import assert_close

REDUCTION = """
import numpy as np, hinge
class Power(hinge.Reduction):
    def start(self, shape, dtype):
        return np.zeros(shape, dtype)
    def update(self, total, value):
        return total + value ** {p}
kept = {{"x": Power(lambda q: q[1])}}
motion = hinge.simulate(hinge.zoo.arm(2), np.ones(2), duration=0.1, dt=0.01, keep=kept)
print(float(motion.kept.x))
"""
INTEGRATOR = """
import numpy as np, hinge
from hinge.motion.integrators import METHODS, Integrator
def advance(system, t, h, q, qd, memory, stage):
    qd = qd + {p} * h * system.acceleration(t, q, qd)
    return system.move(q, h, qd), qd, ()
METHODS["own"] = Integrator(advance)
motion = hinge.simulate(hinge.zoo.arm(2), np.ones(2), duration=0.1, dt=0.01, method="own")
print(float(motion.qd[-1, 1]))
"""
TERRAIN = """
import numpy as np, hinge
class Steps(hinge.HeightField):
    def nearest(self, p):
        return p[2] - 0.44 - 0.01 * {p}, np.array([0.0, 0.0, 1.0])
ground = hinge.Ground(["tool"], terrain=Steps(np.zeros((2, 2)), (-1, 1), (-1, 1)))
motion = hinge.simulate(hinge.zoo.arm(2), np.ones(2), duration=0.1, ground=ground)
print(float(motion.q[-1, 1]))
"""
CASES = {
    "a reduction": REDUCTION,
    "an integrator": INTEGRATOR,
    "a terrain": TERRAIN,
}


@pytest.mark.parametrize("what", CASES)
def test_code_kept_of_a_class_is_not_used_once_the_class_has_changed(what, tmp_path):
    codes = [CASES[what].format(p=p) for p in (1, 2, 1)]
    one, two, again = (float(run_python(c, XDG_CACHE_HOME=str(tmp_path))) for c in codes)
    assert one == again and abs(one - two) > 1e-6
    assert two == float(run_python(codes[1], XDG_CACHE_HOME=str(tmp_path / "other")))


def test_methods_are_told_apart_by_what_they_do(monkeypatch):
    robot, found = zoo.arm(2), []
    for p in (1.0, 2.0):

        def advance(system, t, h, q, qd, memory, stage, p=p):
            qd = qd + p * h * system.acceleration(t, q, qd)
            return system.move(q, h, qd), qd, ()

        monkeypatch.setitem(METHODS, "own", Integrator(advance))
        found.append(simulate(robot, np.ones(2), duration=0.1, dt=0.01, method="own").qd[-1])
    euler = simulate(robot, np.ones(2), duration=0.1, dt=0.01, method="semi_implicit_euler")
    assert_close(found[0], euler.qd[-1], 1e-14)
    assert np.abs(found[1] - found[0]).max() > 0.1


def test_reductions_of_one_name_are_told_apart():
    robot, found = zoo.arm(2), []
    for p in (1, 2, 3):

        class Power(hinge.Reduction):
            def start(self, shape, dtype):
                return np.zeros(shape, dtype)

            def update(self, total, value, p=p):
                return total + value**p

        kept = {"x": Power(lambda q: q)}
        motion = simulate(robot, np.ones(2), duration=0.1, dt=0.01, keep=kept)
        whole = simulate(robot, np.ones(2), duration=0.1, dt=0.01)
        assert_close(motion.kept.x, (whole.q[1:] ** p).sum(axis=0), 1e-13)
        found.append(motion.kept.x)
    assert len({x.tobytes() for x in found}) == 3

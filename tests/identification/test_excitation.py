"""Exciting trajectories stay within limits, start at rest, and show every base parameter."""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge.identification import excitation
from identification.arms import arm


def limited():
    """The arm with limits, one of them one-sided."""
    bodies = list(arm().mechanism.bodies)
    own = ({"lower": -0.4, "upper": 1.0}, {"lower": 0.2}, {"velocity_limit": 0.7})
    for k, limits in enumerate(own, 1):
        bodies[k] = replace(bodies[k], joint=replace(bodies[k].joint, **limits))
    return hinge.Robot(replace(arm().mechanism, bodies=tuple(bodies)))


def test_it_is_within_limits_and_shows_everything():
    robot = limited()
    x = hinge.exciting_trajectory(robot, 6.0, joint_terms="damping", acceleration=4.0, starts=1)
    q, qd, qdd = x.at(np.linspace(0, 12.0, 5001))
    assert q[:, 0].min() > -0.4 and q[:, 0].max() < 1.0 and q[:, 1].min() > 0.2
    assert np.abs(qd[:, 2]).max() < 0.7 and np.abs(qd).max() < 2.0 and np.abs(qdd).max() < 4.0
    share = np.abs([(q - x.center) / (0.7, 1.5, 1.5), qd / (2.0, 2.0, 0.7), qdd / 4.0]).max(
        axis=(0, 1)
    )
    assert (share > 0.7).all()
    np.testing.assert_allclose(qd[0], 0, atol=1e-12)
    np.testing.assert_allclose(qdd[0], 0, atol=1e-12)
    np.testing.assert_allclose(q[0], q[-1], atol=1e-9)
    np.testing.assert_allclose(np.gradient(x.q, x.t, axis=0)[1:-1], x.qd[1:-1], atol=1e-2)
    assert x.condition < 40 and x.center[0] == pytest.approx(0.3)
    rng, worse = np.random.default_rng(1), []
    for _ in range(3):
        search = excitation._Search("", robot, ("damping",), 6.0)
        search.sample(5, excitation._limits("", robot, None, None, 4.0))
        worse.append(-search(rng.normal(size=30))[0])
    assert x.log_det > max(worse) + 5


def test_the_gradient_is_that_of_the_information():
    search = excitation._Search("", arm(), (), 5.0)
    search.sample(3, excitation._limits("", arm(), None, 1.0, 3.0))
    rng = np.random.default_rng(0)
    z, d = rng.normal(size=(2, 18))
    h = 1e-5
    slope = (search(z + h * d)[0] - search(z - h * d)[0]) / (2 * h)
    assert search(z)[1] @ d == pytest.approx(slope, rel=1e-6)


def test_plots(tmp_path):
    x = hinge.exciting_trajectory(hinge.zoo.pendulum(1), 5.0, harmonics=3, starts=1)
    x.plot(tmp_path / "motion.svg")
    assert (tmp_path / "motion.svg").read_text().count("<path") > 5


def test_torques_beyond_the_motors_are_said():
    mech = hinge.zoo.pendulum(1).mechanism
    joint = replace(mech.bodies[1].joint, effort_limit=1e-3)
    weak = hinge.Robot(replace(mech, bodies=(mech.bodies[0], replace(mech.bodies[1], joint=joint))))
    with pytest.warns(hinge.ModelWarning, match="choose a longer duration"):
        assert hinge.exciting_trajectory(weak, 5.0, harmonics=3, starts=1).condition > 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"duration": 0}, "duration is 0"),
        ({"harmonics": 2}, "harmonics is 2"),
        ({"starts": 0}, "starts is 0"),
        ({"center": (0.0, 9.0, 0.0)}, "not within the limits"),
        ({"velocity": "fast"}, "velocity is 'fast'; give a number"),
        ({"acceleration": -1.0}, "have to be above 0"),
        ({"joint_terms": "none"}, "no term 'none'"),
    ],
)
def test_bad_settings_are_refused(given, said):
    robot = limited() if "center" not in given else _narrow()
    with pytest.raises(hinge.ArgumentError, match=said):
        hinge.exciting_trajectory(robot, **given)


def _narrow():
    bodies = [replace(b, joint=replace(b.joint, upper=1.0)) for b in arm().mechanism.bodies[1:]]
    return hinge.Robot(replace(arm().mechanism, bodies=(arm().mechanism.bodies[0], *bodies)))


def test_quaternions_are_refused():
    with pytest.raises(hinge.ArgumentError, match="joints with quaternions"):
        hinge.exciting_trajectory(hinge.zoo.space_arm(1))

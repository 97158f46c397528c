"""Recursive identification says what the offline one does, and forgets what was."""

import numpy as np
import pytest

import hinge
from identification.arms import arm, measured, wrong

TERMS = ("armature", "damping", "friction")


def test_updates_add_up_to_all_samples():
    s = measured()
    one = hinge.RecursiveIdentification(wrong(), TERMS)
    for i in range(0, len(s.q), 100):
        part = slice(i, i + 100)
        one.update(s.q[part], s.qd[part], s.qdd[part], s.noisy[part])
    all_ = hinge.RecursiveIdentification(wrong(), TERMS)
    all_.update(
        s.q.reshape(2, 500, 3),
        s.qd.reshape(2, 500, 3),
        s.qdd.reshape(2, 500, 3),
        s.noisy.reshape(2, 500, 3),
    )
    assert one.samples == all_.samples == 1000
    np.testing.assert_allclose(one.base_std, all_.base_std, rtol=1e-6)
    np.testing.assert_allclose(one.base_values, all_.base_values, rtol=1e-3, atol=1e-3)
    away = (
        one.base_values
        - hinge.base_parameters(arm(), TERMS).matrix @ arm().linear_parameters(TERMS).values
    )
    assert np.abs(away / one.base_std).max() < 5
    assert one.parameters is one.parameters


def test_what_was_not_seen_yet_is_said():
    s = measured()
    online = hinge.RecursiveIdentification(
        wrong(), noise=(0.1, 0.1, 0.1), known=wrong().body_names[0]
    )
    assert np.isinf(online.base_std).all()
    np.testing.assert_allclose(
        online.parameters.values, wrong().linear_parameters().values, rtol=1e-9
    )
    online.update(s.q[0], s.qd[0], s.qdd[0], s.noisy[0])
    assert np.isinf(online.base_std).any() and "not seen in this motion" in online.remarks[0]


def test_old_samples_are_forgotten():
    s = measured(noise=0.01)
    online = hinge.RecursiveIdentification(wrong(), TERMS, forgetting=0.99)
    online.update(s.q, s.qd, s.qdd, 3 * s.noisy)
    heavy = online.robot.total_mass
    for _ in range(2):
        online.update(s.q, s.qd, s.qdd, s.noisy)
    tau = online.robot.inverse_dynamics(s.q, s.qd, s.qdd) - online.robot.passive_forces(s.q, s.qd)
    assert np.abs(tau - s.tau).std() < 0.05 * s.tau.std() and online.robot.total_mass < heavy


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"noise": (1.0, 2.0)}, "noise is"),
        ({"noise": 0.0}, "give a number above 0"),
        ({"forgetting": 1.5}, "expected at most 1"),
        ({"forgetting": 0}, "forgetting is 0"),
    ],
)
def test_bad_settings_are_refused(given, said):
    with pytest.raises(hinge.ArgumentError, match=said):
        hinge.RecursiveIdentification(wrong(), **given)


def test_bad_samples_are_refused():
    s, online = measured(), hinge.RecursiveIdentification(wrong())
    with pytest.raises(hinge.ArgumentError, match="tau has numbers that are not finite"):
        online.update(s.q[:2], s.qd[:2], s.qdd[:2], np.full((2, 3), np.nan))
    with pytest.raises(hinge.ArgumentError, match="update of 'arm3': q has shape"):
        online.update(s.q[0, :2], s.qd[0], s.qdd[0], s.noisy[0])
    assert online.samples == 0

"""`identify` finds the arm that moved, says how well, and what it did not see."""

import re
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import hinge
from hinge.identification.bodies import Bodies
from hinge.identification.signals import differentiated, low_passed
from hinge.model.parameters import parameters
from identification.arms import arm, measured, wrong

TERMS = ("armature", "damping", "friction")


def off(robot, at):
    """How far torques of a robot are from those of the arm, beside the latter."""
    tau = robot.inverse_dynamics(at.q, at.qd, at.qdd) - robot.passive_forces(at.q, at.qd)
    return np.sqrt(((tau - at.tau) ** 2).mean() / (at.tau**2).mean())


def is_physical(robot):
    """Whether every body is one that can exist."""
    for body in robot.mechanism.bodies[1:]:
        hinge.edit.with_inertia(robot.mechanism, body.name, body.inertia)
        moments = np.linalg.eigvalsh(body.inertia.about_com)
        assert body.inertia.mass > 0 and moments[0] > 0 and moments[0] + moments[1] > moments[2]


def test_without_noise_the_arm_is_found():
    s = measured(noise=0.0)
    found = hinge.identify(wrong(), *s.given, joint_terms=TERMS, spread=1e3)
    truth = found.base.matrix @ arm().linear_parameters(TERMS).values
    np.testing.assert_allclose(found.base_values, truth, rtol=1e-4, atol=1e-6)
    assert off(found.robot, measured(noise=0.0, seed=1)) < 1e-5
    is_physical(found.robot)


@pytest.mark.parametrize("work", ["identify", "base_parameters", "exciting_trajectory"])
def test_small_factorisations_keep_other_cores_free(work, monkeypatch):
    """On several BLAS threads they take up to thirty times the processor's time."""
    seen, s = set(), measured(noise=0.0)

    def watched(call):
        def factor(*args, **kwargs):
            seen.update(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
            return call(*args, **kwargs)

        return factor

    monkeypatch.setattr(np.linalg, "qr", watched(np.linalg.qr))
    monkeypatch.setattr(np.linalg, "svd", watched(np.linalg.svd))
    calls = {
        "identify": lambda: hinge.identify(wrong(), *s.given, joint_terms=TERMS),
        "base_parameters": lambda: hinge.base_parameters(arm()),
        "exciting_trajectory": lambda: hinge.exciting_trajectory(arm(), harmonics=3, starts=1),
    }
    with threadpool_limits(limits=2, user_api="blas"):
        calls[work]()
    assert seen == {1}


def test_with_noise_the_uncertainty_is_true():
    s = measured()
    found = hinge.identify(wrong(), *s.given, joint_terms=TERMS)
    other = measured(seed=1)
    assert off(wrong(), other) > 0.1 and off(found.robot, other) < 0.01
    truth = found.base.matrix @ arm().linear_parameters(TERMS).values
    away = (found.base_values - truth) / found.base_std
    assert np.abs(away).max() < 4 and 0.4 < np.sqrt((away**2).mean()) < 1.6
    np.testing.assert_allclose(found.noise, 0.05 * s.tau.std(axis=0), rtol=0.1)
    assert 0.02 < found.misfit < 0.06
    is_physical(found.robot)
    assert str(found).count("\n") > found.base.rank and "% of the torque left over" in str(found)


def test_numbers_of_joints_that_are_not_sought_are_known():
    """Armature, damping and friction of the file are taken off."""
    s = measured(noise=0.0)
    bodies = zip(wrong().mechanism.bodies, arm().mechanism.bodies, strict=True)
    mixed = tuple(replace(a, joint=b.joint) for a, b in bodies)
    robot = hinge.Robot(replace(wrong().mechanism, bodies=mixed))
    found = hinge.identify(robot, *s.given, spread=1e3)
    assert off(found.robot, measured(noise=0.0, seed=1)) < 1e-5
    some = hinge.identify(robot, *s.given, joint_terms="friction", spread=1e3)
    assert off(some.robot, measured(noise=0.0, seed=1)) < 1e-5
    online = hinge.RecursiveIdentification(robot, "damping", noise=1e-3, spread=1e3)
    online.update(s.q, s.qd, s.qdd, s.tau)
    assert off(online.robot, s) < 1e-4


def test_outliers_count_little():
    s, rng = measured(), np.random.default_rng(3)
    tau = s.noisy.copy()
    hit = rng.random(tau.shape) < 0.05
    tau[hit] += 20.0
    fit = [
        hinge.identify(
            wrong(), s.q, s.qd, tau, s.qdd, joint_terms=TERMS, robust=robust, max_misfit=2
        )
        for robust in (True, False)
    ]
    robust, plain = (off(each.robot, measured(seed=1)) for each in fit)
    assert robust < 0.02 < plain


def test_weights_say_what_counts():
    s = measured(noise=0.0)
    tau, w = s.tau.copy(), np.ones(len(s.q))
    tau[:300], w[:300] = 50.0, 0.0
    given = wrong(), s.q, s.qd, tau, s.qdd
    found = hinge.identify(*given, joint_terms=TERMS, weights=w, spread=1e3)
    assert off(found.robot, s) < 1e-5
    columns = np.column_stack([w] * 3)
    again = hinge.identify(*given, joint_terms=TERMS, weights=columns, spread=1e3)
    np.testing.assert_allclose(again.parameters.values, found.parameters.values)
    columns[:, 2] = 0.0
    with pytest.warns(hinge.ModelWarning, match="near the file: joint3.armature; joint3.damping"):
        two = hinge.identify(*given, joint_terms=TERMS, weights=columns, spread=1e3)
    assert np.isfinite(two.parameters.values).all() and two.misfit < 1e-3


def test_motion_from_positions_alone():
    s, rng = measured(n=2000), np.random.default_rng(2)
    q = s.q + 1e-5 * rng.normal(size=s.q.shape)
    found = hinge.identify(wrong(), q, None, s.noisy, t=s.t, joint_terms=TERMS, cutoff=4.0)
    assert off(found.robot, measured(seed=1)) < 0.02
    assert found.motion.cutoff == 4.0 and len(found.residuals) < 2000
    rates = hinge.identify(wrong(), q, s.qd, s.noisy, t=s.t, joint_terms=TERMS)
    assert off(rates.robot, measured(seed=1)) < 0.02
    assert 2.0 < rates.motion.cutoff < 20.0
    both = hinge.identify(wrong(), *s.given, t=s.t, joint_terms=TERMS, cutoff=4.0)
    assert both.motion.share == pytest.approx(8.0 * (s.t[1] - s.t[0]))


def test_what_is_known_stays():
    s = measured()
    body, joint = wrong().body_names[1], wrong().joint_names[0]
    single = f"{wrong().body_names[2]}.m"
    names = (body, joint, f"{wrong().joint_names[1]}.damping", single)
    found = hinge.identify(wrong(), *s.given, joint_terms=TERMS, known=names, max_misfit=1.0)
    before = wrong().linear_parameters(TERMS)
    same = {n for n, a, b in zip(*before, found.parameters.values, strict=True) if a == b}
    assert {f"{body}.m", f"{body}.Jzz", f"{joint}.friction", names[2]} <= same
    at = before.names.index(single)
    assert found.parameters.values[at] == pytest.approx(before.values[at], rel=1e-3)
    assert f"{wrong().joint_names[2]}.friction" not in same
    with pytest.raises(hinge.ArgumentError, match="nothing is called 'forearn'"):
        hinge.identify(wrong(), *s.given, known="forearn")


def test_what_motion_does_not_show_is_said_and_stays():
    """With two joints still, much is not seen."""
    s = measured()
    q, qd, qdd = (x * [1.0, 0.0, 0.0] for x in (s.q, s.qd, s.qdd))
    tau = arm().inverse_dynamics(q, qd, qdd)
    with pytest.warns(hinge.ModelWarning, match="too little motion: not seen in this motion"):
        found = hinge.identify(wrong(), q, qd, tau, qdd)
    assert np.isinf(found.base_std).any() and np.isfinite(found.base_std).any()
    assert any("seen in no motion" in remark for remark in found.remarks)
    is_physical(found.robot)


def test_forces_on_bodies_are_taken_off():
    s, rng = measured(noise=0.0), np.random.default_rng(5)
    f_ext = rng.normal(size=(len(s.q), 3, 6))
    push = arm().inverse_dynamics(s.q, s.qd, s.qdd, f_ext) - arm().inverse_dynamics(
        s.q, s.qd, s.qdd
    )
    given = s.q, s.qd, s.tau + push, s.qdd
    found = hinge.identify(wrong(), *given, joint_terms=TERMS, f_ext=f_ext, spread=1e3)
    assert off(found.robot, s) < 1e-5
    with pytest.raises(hinge.ArgumentError, match="f_ext is not filtered"):
        hinge.identify(wrong(), *given, t=s.t, cutoff=5.0, f_ext=f_ext)


def test_numbers_that_no_body_has_are_left():
    bodies = list(wrong().mechanism.bodies)
    bodies[2] = replace(bodies[2], inertia=hinge.Inertia(1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1])))
    bodies[3] = replace(bodies[3], inertia=hinge.Inertia())
    robot = hinge.Robot(replace(wrong().mechanism, bodies=tuple(bodies)))
    found = hinge.identify(robot, *measured().given, joint_terms=TERMS)
    is_physical(found.robot)
    assert off(found.robot, measured(seed=1)) < 0.02
    assert any("no body has the numbers of the file" in remark for remark in found.remarks)


def test_a_robot_that_does_not_fit_is_refused():
    s = measured()
    with pytest.raises(hinge.ArgumentError, match="the robot does not fit; look at signs"):
        hinge.identify(wrong(), s.q, s.qd, -s.noisy, s.qdd)
    with pytest.raises(hinge.ArgumentError, match=r"q has shape \(1000, 3\); expected \(n, 2\)"):
        hinge.identify(hinge.zoo.arm(2), *s.given)


BAD = {
    "tau is missing": lambda s: {"tau": None},
    "qd has 999, qdd has 1000": lambda s: {"qd": s.qd[1:]},
    "has 2 of 1000 samples that are not finite, the first at 5": lambda s: {"tau": _nan(s.noisy)},
    "is not an array of numbers": lambda s: {"q": "measured"},
    r"t has shape \(\); expected \(n,\)": lambda s: {"t": 0.01},
    "t does not increase at sample 4": lambda s: {"t": np.where(np.arange(1000) == 4, 0.0, s.t)},
    "t has a gap of 5.01": lambda s: {"t": s.t + 5.0 * (np.arange(1000) > 300)},
    "t is not uniform": lambda s: {"t": s.t + 1e-3 * np.sin(np.arange(1000))},
    "are these degrees": lambda s: {"q": np.degrees(s.q), "qd": np.degrees(s.qd)},
    r"tau is 10\d\d times.*another unit": lambda s: {"tau": 1000 * s.noisy},
    r"tau is 0.00\d* times": lambda s: {"tau": 0.001 * s.noisy},
    r"qd\[:, 0\] is 57.3 times the slope of q\[:, 0\]": lambda s: {"qd": np.degrees(s.qd)},
    "without qdd the times t": lambda s: {"qdd": None, "t": None},
    "a cutoff needs the times": lambda s: {"cutoff": 3.0, "t": None},
    "are too few for a cutoff of 0.5 Hz": lambda s: {"cutoff": 0.5},
    "cutoff is -1": lambda s: {"cutoff": -1},
    "the same in all samples": lambda s: {"q": 0 * s.q, "qd": 0 * s.q},
    "no term 'dampling'": lambda s: {"joint_terms": "dampling"},
    "spread is 0": lambda s: {"spread": 0},
    "max_misfit is 'half'": lambda s: {"max_misfit": "half"},
    "weights are below 0": lambda s: {"weights": -np.ones(1000)},
    "weights has 10": lambda s: {"weights": np.ones(10)},
    "q has masked entries": lambda s: {"q": np.ma.masked_greater(s.q, 1.0)},
}


def _nan(x):
    x = x.copy()
    x[5, 1] = x[9, 0] = np.nan
    return x


@pytest.mark.parametrize("said", BAD)
def test_bad_data_are_refused(said):
    s = measured()
    given = {"q": s.q, "qd": s.qd, "tau": s.noisy, "qdd": s.qdd, "t": s.t} | BAD[said](s)
    with pytest.raises(hinge.ArgumentError, match=said):
        hinge.identify(wrong(), **given)


def test_few_samples_and_quaternions_are_refused():
    s = measured()
    with pytest.raises(hinge.ArgumentError, match=re.escape("3 samples give 9 equations")):
        hinge.identify(wrong(), *(x[:3] for x in s.given))
    free, n = hinge.zoo.space_arm(1), 20
    q = np.tile(free.neutral(), (n, 1))
    with pytest.raises(hinge.ArgumentError, match="q has quaternions, whose slope is not qd"):
        hinge.identify(free, q, None, np.zeros((n, free.nv)), t=np.arange(n) * 0.1)
    with pytest.raises(hinge.ArgumentError, match="identify needs a Robot"):
        hinge.identify(arm().mechanism, *s.given)


def test_a_floating_robot_is_identified_from_its_rates():
    robot = hinge.zoo.space_arm(2)
    rng, t = np.random.default_rng(0), np.linspace(0, 5, 400)[:, None]
    w, a = rng.uniform(1, 3, size=robot.nv), rng.normal(size=robot.nv) * 0.3
    q = np.array([robot.random_configuration(rng) for _ in t])
    qd, qdd = a * np.sin(w * t), a * w * np.cos(w * t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    heavier = hinge.edit.with_inertia(
        robot.mechanism, robot.body_names[1], hinge.Inertia(9.0, (0.1, 0, 0), np.eye(3))
    )
    found = hinge.identify(hinge.Robot(heavier), q, qd, tau, qdd, spread=1e3)
    again = found.robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(again, tau, atol=1e-4 * np.abs(tau).max())


def test_plots(tmp_path):
    found = hinge.identify(wrong(), *measured().given, joint_terms=TERMS)
    found.plot(tmp_path / "torques.svg")
    assert (tmp_path / "torques.svg").read_text().count("<path") > 10


def test_slopes_of_bodies_are_derivatives():
    bodies = Bodies(parameters(arm().mechanism)["inertia"])
    theta = np.random.default_rng(0).normal(size=30) * 0.3
    J = np.zeros((30, 30))
    for k, block in enumerate(bodies.slopes(theta)):
        J[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
    h = 1e-6
    for i, e in enumerate(np.eye(30)):
        slope = (bodies.values(theta + h * e) - bodies.values(theta - h * e)).ravel() / (2 * h)
        np.testing.assert_allclose(J[:, i], slope, atol=1e-8)


def test_filters_do_not_delay():
    dt = 0.002
    t = np.arange(0, 8, dt)
    x = np.stack([np.sin(2 * t) + 0.3 * t, np.cos(3 * t)], axis=1)
    rate = np.stack([2 * np.cos(2 * t) + 0.3, -3 * np.sin(3 * t)], axis=1)
    acceleration = np.stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t)], axis=1)
    inner = slice(300, -300)
    for got, expected in (
        (low_passed(x, dt, 10.0), x),
        (differentiated(x, dt, 10.0), rate),
        (differentiated(x, dt, 10.0, 2), acceleration),
    ):
        np.testing.assert_allclose(got[inner], expected[inner], atol=1e-3)
    fast = np.sin(2 * np.pi * 40 * t)[:, None]
    assert np.abs(low_passed(fast, dt, 10.0)[inner]).max() < 1e-3

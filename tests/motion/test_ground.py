"""The ground, compliant and rigid: exact results of mechanics, derivatives, every way to step."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hinge
from hinge import Ground, HeightField, simulate, zoo
from hinge.motion.integrators import METHODS
from hinge.motion.rigid import Response
from hinge.motion.touching import axes_of, touches
from mechanisms import everything, gripper

G, MU, RADIUS = 9.81, 0.4, 0.1
LAWS = ("compliant", "rigid")
LEGS = ("FL", "FR", "RL", "RR")
FEET = [f"{leg}_foot" for leg in LEGS]


def body(inertia, *collisions, gravity=(0, 0, -G)):
    b = hinge.MechanismBuilder("body", gravity=gravity)
    b.add("body", "world", hinge.Free(), inertia=inertia, collisions=collisions)
    return hinge.Robot(b.build())


def ball():
    return body(hinge.Inertia(2.0, (0, 0, 0), 0.8 * RADIUS**2 * np.eye(3)))


def on_ball(law, **settings):
    return Ground([("body", (0, 0, 0), RADIUS)], MU, law, **settings)


def block():
    """0.3 × 0.2 × 0.1 m."""
    moments = np.diag([0.04 + 0.01, 0.09 + 0.01, 0.09 + 0.04]) / 6
    return body(hinge.Inertia(2.0, (0, 0, 0), moments))


def under(x, y, z):
    """The corners of its lower side."""
    return [("body", (a * x, b * y, -z)) for a in (0.5, -0.5) for b in (0.5, -0.5)]


def standing():
    """The zoo's quadruped with its feet on the ground, and motors that hold it."""
    robot = zoo.quadruped()
    q = robot.neutral()
    for leg in LEGS:
        q[robot.q_slice(f"{leg}_pitch")], q[robot.q_slice(f"{leg}_knee")] = 0.7, -1.4
    q[2] = -robot.frame_pose(q, "FL_foot")[2, 3]

    def hold(t, x, xd):
        return np.concatenate([np.zeros(6), 80.0 * (q[7:] - x[7:]) - 4.0 * xd[6:]])

    return robot, q, hold


# exact results


@pytest.mark.parametrize("slope", [0.2, 0.6])
def test_a_block_on_an_incline_sticks_or_slips(slope):
    """It stays where tan(slope) < μ, and else goes g (sin − μ cos) t; exact but for the steps."""
    robot, dt = block(), 1e-3
    n = np.array([np.sin(slope), 0, np.cos(slope)])
    down = np.array([np.cos(slope), 0, -np.sin(slope)])
    ground = Ground(under(0.3, 0.2, 0.05), MU, "rigid", normal=tuple(n))
    q = np.array([*(0.05 * n), np.cos(slope / 2), 0, np.sin(slope / 2), 0])
    run = simulate(robot, q, duration=0.3, dt=dt, ground=ground)
    a = G * max(0.0, np.sin(slope) - MU * np.cos(slope))
    way = 0.5 * a * run.t * (run.t + dt)  # of semi-implicit Euler
    assert_allclose((run.q[:, :3] - q[:3]) @ down, way, atol=1e-8)
    assert_allclose((run.q[:, :3] - q[:3]) @ n, 0.0, atol=1e-8)
    friction = -2.0 * min(MU * G * np.cos(slope), G * np.sin(slope)) * down
    total = 2.0 * G * np.cos(slope) * n + friction
    assert_allclose(run.forces[-1].sum(axis=0), total, atol=1e-5)
    assert run.residual.max() < 1e-5


def test_a_compliant_incline_creeps_below_its_slip_speed():
    robot, slope = block(), 0.2
    n = np.array([np.sin(slope), 0, np.cos(slope)])
    ground = Ground(under(0.3, 0.2, 0.05), MU, slip_speed=0.02, normal=tuple(n))
    q = np.array([*(0.05 * n), np.cos(slope / 2), 0, np.sin(slope / 2), 0])
    run = simulate(robot, q, duration=1.0, ground=ground)
    # where s(v) = tan(slope)/μ
    x = np.linspace(0, 1, 10_001)
    creep = 0.02 * x[np.argmax(0.5 * x * (3 - x * x) > np.tan(slope) / MU)]
    assert_allclose(np.linalg.norm(run.qd[-1, 3:]), creep, rtol=1e-3)
    assert_allclose(run.forces[-1].sum(axis=0), [0, 0, 2.0 * G], atol=1e-2)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_ball_bounces(restitution):
    """Up to e² of the height that it fell from, and again."""
    robot, q = ball(), np.array([0, 0, RADIUS + 0.5, 1, 0, 0, 0])
    run = simulate(
        robot, q, duration=1.5, dt=1e-4, ground=on_ball("rigid", restitution=restitution)
    )
    z = run.q[:, 2] - RADIUS
    inner = z[1:-1]
    peaks = inner[(inner > z[:-2]) & (inner >= z[2:]) & (inner > 1e-4)]
    assert len(peaks) == {0.0: 0, 0.5: 5, 1.0: 2}[restitution] or restitution == 0.5
    for i, height in enumerate(peaks[:3]):
        assert_allclose(height, 0.5 * restitution ** (2 * i + 2), rtol=5e-3)
    assert z.min() > -1e-12


@pytest.mark.parametrize("law", LAWS)
def test_a_ball_slides_until_it_rolls(law):
    """Uniformly slowed by μg until it rolls, at 2v/(7μg), with 5/7 of its speed."""
    robot, speed = ball(), 2.0
    deep = 1e-3 * 4 if law == "compliant" else 0.0
    q = np.array([0, 0, RADIUS - deep, 1, 0, 0, 0])
    run = simulate(robot, q, [0, 0, 0, speed, 0, 0], duration=1.0, ground=on_ball(law))
    slow = 0.02 if law == "compliant" else 3e-3
    v = np.diff(run.q[:, 0]) / 1e-3
    rolls = 2 * speed / (7 * MU * G)
    sliding = run.t[1:] < rolls - 0.005
    assert_allclose(v[sliding], speed - MU * G * run.t[1:][sliding], atol=slow)
    assert_allclose(v[-1], 5 / 7 * speed, rtol=1e-3)
    assert_allclose(run.qd[-1, 1] * RADIUS, v[-1], rtol=1e-3)
    assert_allclose(run.forces[-1, 0], [0, 0, 2.0 * G], atol=2e-3)


def test_without_friction_a_spinning_ball_slides_on():
    ground = Ground([("body", (0, 0, 0), RADIUS)], 0.0, "rigid")
    run = simulate(ball(), [0, 0, RADIUS, 1, 0, 0, 0], [3.0, 2, 1, 1, 0, 0], ground=ground, dt=1e-2)
    assert_allclose(run.q[-1, :3], [1.0, 0, RADIUS], atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_a_standing_quadruped_weighs_what_it_weighs(law):
    robot, q, hold = standing()
    ground = Ground(FEET, 0.8, law)
    dt = 1e-3 if law == "rigid" else 2e-4
    run = simulate(robot, q, tau=hold, duration=4.0, dt=dt, ground=ground)
    weight = robot.total_mass * G
    assert_allclose(run.forces[-1].sum(axis=0), [0, 0, weight], atol=2e-3 * weight)
    assert np.all(run.forces[-1, :, 2] > 0.1 * weight)
    assert np.abs(run.contact_positions[..., 2]).max() < (5e-3 if law == "compliant" else 1e-4)
    assert np.all(
        np.linalg.norm(run.forces[..., :2], axis=-1) <= 0.8001 * run.forces[..., 2] + 1e-9
    )
    # what the ground pushes is what the momentum changes by, the weight besides
    p = robot.momentum(run.q, run.qd, about="world")[:, 3:]
    middle = run.forces.sum(axis=1)
    middle = middle[1:] if law == "rigid" else 0.5 * (middle[1:] + middle[:-1])
    gained = dt * np.cumsum(middle - [0, 0, weight], axis=0)
    assert_allclose(p[1:] - p[0], gained, atol=5e-3 * np.abs(p).max() + 2e-3)


# the parts


@pytest.mark.parametrize("make", [everything, gripper], ids=lambda f: f.__name__)
def test_the_response_of_points_is_that_of_dense_algebra(make):
    robot, rng = make(), np.random.default_rng(0)
    mech, q = robot.mechanism, robot.random_configuration(rng)
    names = [robot.body_names[i] for i in (-1, 2, 2)]
    ground = Ground([(n, rng.normal(size=3), 0.1) for n in names], normal=rng.normal(size=3))
    points = touches(mech, ground.spots(mech), ground.surface, q)
    axes = [axes_of(p.normal) for p in points]
    rows = []
    for p, x, name in zip(points, axes, names, strict=True):
        J = robot.alg.jacobian(q, name)
        arm = p.R @ p.at
        cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        rows.append(x @ (J[3:] - cross @ J[:3]))
        assert_allclose(x @ x.T, np.eye(3), atol=1e-14)
    J, M = np.concatenate(rows), robot.alg.mass_matrix(q)
    found, c = Response(mech, q, points, axes), rng.normal(size=9)
    exact = J @ np.linalg.solve(M, J.T)
    assert_allclose(found.A, exact, atol=1e-11 * np.abs(exact).max())
    exact = np.linalg.solve(M, J.T @ c)
    assert_allclose(found.velocities(c), exact, atol=1e-11 * np.abs(exact).max())


def test_compliant_forces_differentiate():
    """By complex steps and by hinge's own derivatives, on a field of heights."""
    (robot, q, _), rng = standing(), np.random.default_rng(1)
    hills = HeightField(0.05 * rng.normal(size=(5, 6)), (-1, 1), (-1, 1))
    ground = Ground([(f, (0, 0, 0), 0.02) for f in FEET], terrain=hills)
    q[2] -= 0.06
    q[3:7], qd = q[3:7] + 0.05 * rng.normal(size=4), 0.2 * rng.normal(size=robot.nv)
    fn = lambda q, qd: ground.act(robot, q, qd).f_ext  # noqa: E731
    assert np.abs(ground.act(robot, q, qd).forces).max() > 10
    slopes = hinge.jacobian(fn, argnums=(0, 1))(q, qd)
    for J, at in zip(slopes, (q, qd), strict=True):
        for i in range(len(at)):
            step = np.zeros(len(at), complex)
            step[i] = 1e-30j
            state = (q + step, qd) if at is q else (q, qd + step)
            exact = fn(*state).imag / 1e-30
            assert_allclose(J[..., i], exact, atol=1e-10 * np.abs(J).max())


def test_a_field_of_heights_goes_through_its_heights():
    rng = np.random.default_rng(2)
    heights = rng.normal(size=(4, 5))
    field = HeightField(heights, (0, 3), (-2, 2))
    for (i, j), z in np.ndenumerate(heights):
        gap, n = field.nearest(np.array([float(i), j - 2.0, z + 1.0]))
        assert_allclose(gap, n[2], rtol=1e-12)
    # a tilted plane is met everywhere, and its normal with it
    tilted = HeightField(np.add.outer(0.5 * np.arange(4.0), 0.25 * np.arange(5.0)), (0, 3), (0, 4))
    gap, n = tilted.nearest(np.array([1.3, 2.6, 0.65 + 0.65]))
    assert_allclose([gap, *n], [0, *(np.array([-0.5, -0.25, 1]) / np.sqrt(1.3125))], atol=1e-14)
    # beyond its edges it goes on, level
    gap, n = tilted.nearest(np.array([9.0, 9.0, 3.5]))
    assert_allclose([gap, *n], [1.0, 0, 0, 1], atol=1e-14)


def test_a_ball_rolls_into_a_valley_and_rests_there():
    x = np.linspace(-1, 1, 9)
    bowl = HeightField(0.3 * np.add.outer(x**2, x**2), (-1, 1), (-1, 1))
    robot = ball()
    q = np.array([0.5, 0.3, 0.35, 1, 0, 0, 0])
    for law in LAWS:
        ground = Ground([("body", (0, 0, 0), RADIUS)], 0.8, law, terrain=bowl)
        run = simulate(robot, q, duration=1.0, dt=2e-3, ground=ground)
        down = np.linalg.norm(run.q[:, :2], axis=1)
        assert down.min() < 0.1 and run.q[:, 2].min() > RADIUS - 0.02
        assert np.linalg.norm(run.contact_positions - run.q[:, None, :3], axis=-1).max() < 0.1001


def test_mujocos_ant_stands_as_ours_does():
    """With cones that do not creep: the same angles, as high but for the margin of its shapes."""
    mujoco, gymnasium = pytest.importorskip("mujoco"), pytest.importorskip("gymnasium")
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        robot = hinge.load(path)
    shins = [b for b in robot.mechanism.bodies if b.joint_name.startswith("ankle")]
    places = [s.placement @ np.array([0, 0, 0.5 * s.size[1]]) for b in shins for s in b.collisions]
    ends = [s.placement @ np.array([0, 0, -0.5 * s.size[1]]) for b in shins for s in b.collisions]
    far = [max(pair, key=np.linalg.norm) for pair in zip(places, ends, strict=True)]
    feet = [(b.name, at, 0.08) for b, at in zip(shins, far, strict=True)]
    ground, q = Ground(feet, 1.0, "rigid"), robot.neutral()
    for i, angle in enumerate((1.0, -1.0, -1.0, 1.0)):
        q[robot.q_slice(f"ankle_{i + 1}")] = angle
    q[2] -= ground.positions(robot, q)[:, 2].min()
    run = simulate(robot, q, duration=1.0, dt=0.01, ground=ground)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator, model.opt.cone, model.opt.impratio = 0, 1, 100
    data = mujoco.MjData(model)
    data.qpos[:] = q
    for _ in range(100):
        mujoco.mj_step(model, data)
    assert_allclose(run.q[-1, 3:], data.qpos[3:], atol=2e-3)
    assert_allclose(run.q[-1, 2], data.qpos[2] - 0.02, atol=1e-2)
    assert_allclose(run.forces[-1, :, 2].sum(), robot.total_mass * G, rtol=2e-3)


@pytest.mark.long
def test_a_minute_of_standing_and_what_has_fallen():
    """Nothing drifts, and what lies still stays so."""
    robot, q, hold = standing()
    run = simulate(
        robot, q, tau=hold, duration=60.0, dt=2e-3, every=500, ground=Ground(FEET, 0.8, "rigid")
    )
    assert_allclose(run.q[30:], np.tile(run.q[30], (31, 1)), atol=1e-4)
    assert np.abs(run.contact_positions[..., 2]).max() < 1e-5
    corners = [("trunk", (x, y, -0.06)) for x in (0.25, -0.25) for y in (0.125, -0.125)]
    ground = Ground([*FEET, *corners], 0.7, "rigid")
    run = simulate(robot, q, duration=30.0, dt=2e-3, every=100, ground=ground)
    weight = robot.total_mass * G
    assert_allclose(run.forces[-1].sum(axis=0), [0, 0, weight], atol=1e-2 * weight)
    assert run.contact_positions[..., 2].min() > -1e-3 and run.q[-1, 2] < 0.07
    assert np.abs(run.q[-1] - run.q[-20]).max() < 1e-2


def test_whatever_the_state_no_energy_comes_from_the_ground():
    """Feet deep in it, legs in all directions: some states have no solution (Painlevé)."""
    robot, rng = zoo.quadruped(), np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(256)])
    q[:, 2] = rng.uniform(-0.2, 0.5, 256)
    qd = 3 * rng.normal(size=(256, robot.nv))
    ways = {"duration": 0.5, "dt": 5e-3, "ground": Ground(FEET, 0.8, "rigid"), "limits": False}
    run = simulate(robot, q, qd, **ways)
    assert np.isfinite(run.q).all()
    free = simulate(robot, q, qd, **{**ways, "ground": None, "method": "semi_implicit_euler"})
    gained, drifted = ((x.energy - x.energy[0]).max(axis=0) for x in (run, free))
    assert gained.max() < 0.1 * drifted.max()


# ways to step


@pytest.mark.parametrize("method", METHODS)
def test_any_integrator_stands_on_compliant_ground(method):
    robot, q = ball(), np.array([0, 0, RADIUS, 1, 0, 0, 0])
    run = simulate(
        robot, q, [0, 1, 0, 0, 0, 0], duration=1.0, ground=on_ball("compliant"), method=method
    )
    assert_allclose(run.q[-1, 2] - RADIUS, -4e-3, rtol=1e-2)  # its weight on one point
    ways = [
        simulate(robot, q, duration=0.02, ground=on_ball("compliant"), method=method, compiled=c)
        for c in (True, False)
    ]
    assert_allclose(ways[0].q, ways[1].q, rtol=1e-6, atol=1e-9)


def test_rigid_ground_step_by_step_and_in_batches():
    robot, rng = ball(), np.random.default_rng(3)
    q = np.tile([0, 0, RADIUS + 0.01, 1, 0, 0, 0], (5, 1))
    qd = rng.normal(size=(5, 6))
    gravity = [0, 0, -1.0] * np.arange(5.0, 10.0)[:, None]
    ground = on_ball("rigid", restitution=0.3)
    ways = {"duration": 0.205, "dt": 0.01, "ground": ground, "gravity": gravity}
    runs = [simulate(robot, q, qd, compiled=c, **ways) for c in (True, False)]
    for name in ("q", "qd", "forces", "residual"):
        assert_allclose(getattr(runs[0], name), getattr(runs[1], name), rtol=1e-9, atol=1e-9)
    assert runs[0].forces.shape == (22, 5, 1, 3) and runs[0].residual.shape == (22, 5)
    ways["gravity"] = gravity[2]
    alone = simulate(robot, q[2], qd[2], every=2, **{**ways, "duration": 0.2})
    assert_allclose(alone.q, runs[0].q[:21:2, 2], rtol=1e-9, atol=1e-12)


def test_a_step_of_ones_own():
    """`Ground.step` in a rollout is what `simulate` does, on numbers too."""
    robot, ground = ball(), on_ball("rigid")
    q, qd = np.array([0, 0, RADIUS, 1, 0, 0, 0.0]), np.array([0, 1.0, 0, 1, 0, 0])

    @robot.rollout(state=("q", "qd", "forces"), forces=(1, 3))
    def run(q, qd, forces, dt):
        after = ground.step(robot, q, qd, np.zeros(6), dt, forces)
        return after.q, after.qd, after.forces

    qs, qds, forces = run(q, qd, np.zeros((1, 3)), 1e-3, steps=50)
    same = simulate(robot, q, qd, duration=0.05, dt=1e-3, ground=ground)
    assert_allclose(qs, same.q[1:], atol=1e-13)
    assert_allclose(forces, same.forces[1:], atol=1e-9)
    plain = ground.step(robot, q, qd, np.zeros(6), 1e-3)
    assert_allclose(plain.q, same.q[1], atol=1e-14)


@pytest.mark.parametrize("qd", [[0, 1.0, 0, 1, 0, 0], [0, 20.0, 0, 0.1, 0, 0]])
def test_rigid_steps_differentiate_where_contacts_stay_as_they_are(qd):
    """Of a ball that rolls, and of one that slips."""
    robot, ground, q = ball(), on_ball("rigid"), np.array([0, 0, RADIUS, 1, 0, 0, 0])
    step = lambda qd: ground.step(robot, q, qd, np.zeros(6), 1e-2).qd  # noqa: E731
    J, qd = hinge.jacobian(step)(np.array(qd)), np.array(qd)
    for i, d in enumerate(1e-6 * np.eye(6)):
        assert_allclose(J[:, i], (step(qd + d) - step(qd - d)) / 2e-6, atol=1e-7)


def test_events_on_rigid_ground():
    robot = ball()
    low = lambda t, q, qd: q[2] - RADIUS - 0.1  # noqa: E731
    q = [0, 0, RADIUS + 0.2, 1, 0, 0, 0]
    run = simulate(robot, q, duration=0.4, dt=1e-3, ground=on_ball("rigid"), events=low)
    assert_allclose(run.events[0].t, [np.sqrt(0.2 / G)], atol=2e-3)


def test_what_sinks_in_is_lifted_without_speed():
    robot, q = ball(), np.array([0, 0, RADIUS - 0.02, 1, 0, 0, 0])
    run = simulate(robot, q, duration=0.3, dt=0.01, ground=on_ball("rigid"))
    assert abs(run.q[-1, 2] - RADIUS) < 1e-4
    assert np.abs(run.qd).max() < 1e-10


def test_points_that_cannot_move_in_all_directions():
    """The tip of a pendulum comes down on the ground, and stays."""
    robot = zoo.pendulum(1)
    ground = Ground("tip", 0.1, "rigid", height=-0.8)
    run = simulate(robot, [1.2], duration=2.0, dt=1e-3, ground=ground)
    z = run.contact_positions[:, 0, 2]
    assert z.min() > -0.8001 and abs(z[-1] + 0.8) < 1e-5
    assert_allclose(run.qd[-1], 0.0, atol=1e-6)


def test_the_viewer_gets_the_forces(monkeypatch):
    """Those of the first of a batch, where they act."""
    pytest.importorskip("viser")
    played = []

    class Stage:
        def __init__(self, *given):
            pass

        def play(self, t, q, curves, f_ext, forces):
            assert curves["ground"].names == ["body"]
            played.extend(forces)

    monkeypatch.setattr("hinge.viewer.scene.Scene", Stage)
    q = np.tile([0, 0, RADIUS, 1, 0, 0, 0], (2, 1))
    run = simulate(ball(), q, duration=0.01, ground=on_ball("rigid"))
    run.view()
    assert_allclose(played[0], np.zeros((11, 1, 3)), atol=1e-12)
    assert_allclose(played[1], np.tile([0, 0, 2 * G], (11, 1, 1)), rtol=1e-9, atol=1e-9)


def test_points_from_collision_shapes():
    shapes = [
        hinge.Shape("sphere", (0.1,), hinge.Transform(translation=(1, 0, 0))),
        hinge.Shape("box", (0.2, 0.4, 0.6)),
        hinge.Shape("capsule", (0.1, 0.5)),
        hinge.Shape("cylinder", (0.1, 0.5)),
        hinge.Shape("cylinder", (0.5, 0.1)),
        hinge.Shape("plane", (0.0, 0.0)),
    ]
    robot = body(hinge.Inertia(1.0, (0, 0, 0), np.eye(3)), *shapes)
    points = Ground.from_collisions(robot, friction=0.5).points
    assert len(points) == 1 + 8 + 2 + 2 + 8
    assert points[0] == ("body", (1.0, 0.0, 0.0), 0.1) and points[1].at == (-0.1, -0.2, -0.3)
    assert [p.at[2] for p in points[9:13]] == [-0.25, 0.25, -0.15, 0.15]
    mesh = hinge.Shape("mesh", (1, 1, 1), mesh="foot.stl")
    with pytest.warns(hinge.ModelWarning, match="left out: mesh of body; give points"):
        Ground.from_collisions(body(hinge.Inertia(1.0), shapes[0], mesh), bodies="body")
    with pytest.raises(hinge.ArgumentError, match="no sphere, capsule, cylinder or box"):
        Ground.from_collisions(zoo.pendulum())


BAD = {
    "no points": (lambda: Ground([]), "points is empty"),
    "point": (lambda: Ground([("tip", (1, 2))]), "a point is .* expected the name of a frame"),
    "radius": (lambda: Ground([("tip", (1, 2, 3), -1)]), "a point is"),
    "law": (lambda: Ground("tip", law="soft"), "law is 'soft'; expected one of"),
    "friction": (
        lambda: Ground("tip", friction=[1, 2]),
        r"friction is \[1, 2\]; expected a number",
    ),
    "negative": (
        lambda: Ground("tip", friction=-1.0),
        "friction is -1.0; expected a number from 0",
    ),
    "normal": (lambda: Ground("tip", normal=(0, 0, 0)), "normal is .* expected three numbers"),
    "other law": (lambda: Ground("tip", sweeps=3), "sweeps is 3, which belongs to the rigid law"),
    "restitution": (lambda: Ground("tip", law="rigid", restitution=2.0), "restitution is 2.0"),
    "terrain": (
        lambda: Ground("tip", terrain="hills"),
        "terrain is 'hills'; expected a hinge.Height",
    ),
    "both": (
        lambda: Ground("tip", height=1.0, terrain=HeightField(np.zeros((2, 2)), (0, 1), (0, 1))),
        "height and normal are those of a plane",
    ),
    "words": (lambda: HeightField("x", (0, 1), (0, 1)), "expected numbers"),
    "field": (lambda: HeightField(np.zeros((1, 5)), (0, 1), (0, 1)), r"shape \(1, 5\); expected"),
    "ends": (
        lambda: HeightField(np.zeros((3, 3)), (1, 0), (0, 1)),
        "expected .first, last. of both",
    ),
    "frame": (lambda: on(Ground("top")), "has no frame 'top'; did you mean"),
    "still": (lambda: on(Ground("world")), "frame 'world' of 'pendulum1' does not move"),
    "no ground": (lambda: on("floor"), "ground is 'floor'; expected a hinge.Ground"),
    "method": (
        lambda: on(Ground("tip", law="rigid"), method="rk4"),
        "solved for in steps of 'semi",
    ),
    "loops": (
        lambda: on(Ground("tip", law="rigid"), constraints=[hinge.LoopConstraint("tip", "world")]),
        "constraints and rigid ground are not solved for together",
    ),
    "many": (
        lambda: simulate(
            zoo.pendulum(50), np.zeros(50), ground=Ground("tip", law="rigid"), duration=0.01
        ),
        "the robot has 50 bodies, and rigid ground takes 40",
    ),
    "act": (
        lambda: Ground("tip", law="rigid").act(zoo.pendulum(), [0.0], [0.0]),
        "only over a step",
    ),
    "step": (lambda: Ground("tip").step(zoo.pendulum(), [0.0], [0.0], [0.0], 0.1), "law='rigid'"),
    "no contact": (lambda: on(None).contact_positions, "it had no ground"),
}


def on(ground, **settings):
    return simulate(zoo.pendulum(), [0.0], duration=0.01, ground=ground, **settings)


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case):
    call, said = BAD[case]
    with pytest.raises(hinge.ArgumentError, match=said):
        call()

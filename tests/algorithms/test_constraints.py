"""Loop closures: the constraint's rates are exact, the forces right, redundancy harmless."""

import numpy as np
import pytest

import hinge
from hinge import LoopConstraint, edit, simulate, zoo
from hinge.algebra.rotation import from_rpy
from mechanisms import EPS, ROBOTS, along, assert_close, complex_step, random_state

AXES = {
    "weld": (0, 1, 2, 3, 4, 5),
    "hinge": (0, 1, 3, 4, 5),
    "ball": (3, 4, 5),
    "slider": (0, 1, 2, 3, 4),
    "point on plane": (5,),
    "one angle": (1,),
}


def frames(robot):
    """Two frames on different branches."""
    names = [n for n in robot.frame_names if n != "world"]
    return names[-1], names[len(names) // 2]


@pytest.mark.parametrize("name", ["tree0", "tree1", "humanoid", "quadruped"])
@pytest.mark.parametrize("kind", AXES)
def test_rates_of_the_constraint_are_exact_at_any_state(name, kind):
    robot = ROBOTS[name]
    s = random_state(robot, 2)
    loop = [LoopConstraint(*frames(robot), AXES[kind], stiffness=0.0, damping=0.0)]
    alg = robot.alg
    K = alg.constraint_jacobian(s.q, loop)
    path = along(robot, s.q, s.qd)
    rate = complex_step(lambda h: alg.constraint_jacobian(path(h), loop) @ s.qd)
    # what cancels in the relative acceleration sets the scale of its rounding
    parts = [robot.velocity_product_acceleration(s.q, s.qd, frame) for frame in frames(robot)]
    scale = max(1.0, np.abs(parts).max())
    assert_close(-alg.constraint_bias(s.q, s.qd, loop), rate, 100 * EPS, scale)
    positions = [i for i, axis in enumerate(AXES[kind]) if axis >= 3]
    drift = complex_step(lambda h: alg.constraint_error(path(h), loop))
    assert_close(drift[positions], (K @ s.qd)[positions], 100 * EPS)


@pytest.mark.parametrize("kind", AXES)
def test_error_moves_with_the_constraint_velocity_where_it_vanishes(kind):
    """ė = K q̇ for the angles too, at e = 0, whatever the turn about a free hinge axis."""
    robot = zoo.tree(4, 8)
    s = random_state(robot, 4)
    left, right = frames(robot)
    # a frame on the body of `left` that sits right on `right`, turned about z for the hinge
    X = np.linalg.inv(robot.frame_pose(s.q, left)) @ robot.frame_pose(s.q, right)
    turn = from_rpy(0, 0, 2.5) if kind == "hinge" else np.eye(3)
    on = hinge.Transform(X[:3, :3] @ turn, X[:3, 3])
    robot = hinge.Robot(
        edit.attach(robot.mechanism, hinge.MechanismBuilder("mark").build(), left, on)
    )
    loop = [LoopConstraint("mark/mount", right, AXES[kind])]
    assert_close(robot.alg.constraint_error(s.q, loop), np.zeros(len(AXES[kind])), 50 * EPS)
    rate = complex_step(lambda h: robot.alg.constraint_error(along(robot, s.q, s.qd)(h), loop))
    assert_close(rate, robot.alg.constraint_jacobian(s.q, loop) @ s.qd, 100 * EPS)


@pytest.mark.parametrize(
    "name", ["tree0", pytest.param("humanoid", marks=pytest.mark.long), "gripper"]
)
def test_motion_and_forces_solve_the_saddle_point_system(name):
    robot = ROBOTS[name]
    s = random_state(robot, 3)
    loops = (
        [LoopConstraint(*frames(robot), (3, 4, 5))]
        if name != "gripper"
        else [LoopConstraint("pad", "left", (5,))]
    )
    tau = s.qdd
    motion = robot.constrained_forward_dynamics(s.q, s.qd, tau, loops, s.f_ext)
    K = robot.alg.constraint_jacobian(s.q, loops)
    k = robot.alg.constraint_bias(s.q, s.qd, loops)
    M, bias = robot.mass_matrix(s.q), robot.bias_forces(s.q, s.qd, s.f_ext)
    n = len(k)
    saddle = np.block([[M, -K.T], [K, np.zeros((n, n))]])
    exact = np.linalg.solve(saddle, np.concatenate([tau - bias, k]))
    bound = 100 * EPS * np.linalg.cond(saddle)
    assert_close(motion.qdd, exact[: robot.nv], bound)
    assert_close(motion.forces, exact[robot.nv :], bound)


@pytest.mark.long
def test_constraint_forces_are_forces_on_the_frames():
    """λ acts on `left`, −λ on `right`, at the origin of `left`, in the axes of `right`."""
    robot = ROBOTS["tree1"]
    s = random_state(robot, 1)
    left, right = frames(robot)
    loop = LoopConstraint(left, right)
    motion = robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, [loop], s.f_ext)
    R = robot.frame_pose(s.q, right)[:3, :3]
    moment, force = R @ motion.forces[:3], R @ motion.forces[3:]
    d = robot.frame_pose(s.q, left)[:3, 3] - robot.frame_pose(s.q, right)[:3, 3]
    J_left, J_right = robot.jacobian(s.q, left), robot.jacobian(s.q, right)
    on_left = J_left.T @ np.concatenate([moment, force])
    on_right = J_right.T @ np.concatenate([moment + np.cross(d, force), force])
    free = robot.forward_dynamics(s.q, s.qd, s.qdd + on_left - on_right, s.f_ext)
    assert_close(motion.qdd, free, 200 * EPS)


def four_bar():
    """Two pendulums of equal length whose tips a rod joins: a parallelogram."""
    b = hinge.MechanismBuilder("four_bar")
    rod = hinge.Inertia(1.0, (0, 0, -0.5), np.diag([0.1, 0.1, 0.01]))
    bar = hinge.Inertia(1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))
    down, aside = (hinge.Transform(translation=p) for p in ((0, 0, -1.0), (1.0, 0, 0)))
    b.add("left", "world", hinge.Revolute((0, 1, 0)), inertia=rod)
    b.add("right", "world", hinge.Revolute((0, 1, 0)), placement=aside, inertia=rod)
    b.add("bar", "left", hinge.Revolute((0, 1, 0)), placement=down, inertia=bar)
    b.add_frame("right_tip", "right", down)
    b.add_frame("bar_end", "bar", aside)
    return hinge.Robot(b.build())


PLANAR = LoopConstraint("bar_end", "right_tip", (3, 5))
# all that a hinge holds: three of the five rows say nothing new in the plane
REDUNDANT = LoopConstraint("bar_end", "right_tip", (0, 2, 3, 4, 5))


def test_redundant_constraints_give_the_same_motion():
    robot = four_bar()
    q, qd = np.array([0.4, -0.4, 0.4]), np.array([0.7, -0.7, 0.7])
    lean = robot.constrained_forward_dynamics(q, qd, np.array([1.0, 0, 0]), [PLANAR])
    for loops in ([REDUNDANT], [PLANAR, PLANAR], [REDUNDANT, PLANAR]):
        rich = robot.constrained_forward_dynamics(q, qd, np.array([1.0, 0, 0]), loops)
        assert_close(rich.qdd, lean.qdd, 50 * EPS)


def test_parallelogram_is_the_pendulum_it_should_be():
    """One DoF: effective inertia and weight known in closed form."""
    robot = four_bar()
    angle = 0.4
    q = np.array([angle, -angle, angle])
    loop = LoopConstraint("bar_end", "right_tip", (3, 5))
    got = robot.constrained_forward_dynamics(q, np.zeros(3), np.zeros(3), [loop]).qdd[0]
    # two rods about their pivots, and the bar, which only translates on a circle of radius 1
    inertia = 2 * (0.1 + 0.25) + 1.0
    weight = -9.81 * np.sin(angle) * (0.5 + 0.5 + 1.0)
    assert_close(got, weight / inertia, 200 * EPS)


def test_no_constraints_is_forward_dynamics():
    robot = zoo.tree(1, 6)
    s = random_state(robot, 1)
    motion = robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, [])
    assert motion.forces.shape == (0,)
    assert_close(motion.qdd, robot.forward_dynamics(s.q, s.qd, s.qdd), 50 * EPS)


def drift_after(stiffness, damping, mismatch):
    loop = LoopConstraint("bar_end", "right_tip", (3, 5), stiffness, damping)
    robot = four_bar()
    start = np.array([1.0, -1.0 + mismatch, 1.0])
    motion = simulate(robot, start, duration=1.0, dt=1e-2, constraints=[loop])
    error = [np.linalg.norm(robot.alg.constraint_error(q, [loop])) for q in motion.q[::10]]
    return np.array(error), motion


def test_stabilisation_removes_an_initial_error():
    """Critically damped: (1 + 20 t) e^(−20 t) of it is there after t."""
    error, _ = drift_after(400.0, 40.0, 1e-3)
    assert error[0] > 5e-4
    left = 21 * np.exp(-20.0) * error[0]
    assert_close(error[-1], left, 2e-3, left)
    error, _ = drift_after(0.0, 0.0, 1e-3)
    assert error[-1] > 1e-4


def test_a_closed_loop_keeps_its_energy():
    error, motion = drift_after(400.0, 40.0, 0.0)
    assert error.max() < 20 * EPS
    swing, dt = np.ptp(motion.kinetic_energy), motion.t[1]
    assert np.ptp(motion.energy) < 10 * dt**4 * swing


def test_one_constraint_needs_no_list():
    robot, hold = zoo.arm(3), LoopConstraint("tool", "world", [3, 5])
    given = (np.full(3, 0.3), np.ones(3), np.zeros(3))
    one = robot.constrained_forward_dynamics(*given, hold)
    several = robot.constrained_forward_dynamics(*given, [hold])
    assert_close(one.qdd, several.qdd, 0.0)
    assert hold.axes == (3, 5)
    with pytest.raises(hinge.ArgumentError, match="both on body 'link3', and cannot move against"):
        robot.constrained_forward_dynamics(*given, LoopConstraint("tool", "link3"))
    for gain in (-1.0, np.nan, "much"):
        with pytest.raises(hinge.ArgumentError, match="damping of the constraint .* a number from"):
            LoopConstraint("tool", "world", damping=gain)
    assert LoopConstraint("tool", "world", 5).axes == (5,)
    for wrong in (None, ["tool"], "tool"):
        with pytest.raises(
            hinge.ArgumentError, match=r"arm3': (None|'tool') among .* is not a hinge.Loop"
        ):
            robot.constrained_forward_dynamics(*given, wrong)


# scales and contradictions

PLANE, SPATIAL = (3, 5), (0, 2, 3, 4, 5)


def gates(masses, axes=PLANE, metre=1.0, kilogram=1.0, **options):
    """Parallelograms side by side, each with a mass of its own, in some units."""
    b, loops = hinge.MechanismBuilder("gates", gravity=(0, 0, -9.81 * metre)), []
    for i, mass in enumerate(masses):
        m = mass * kilogram
        spread = m * metre**2 / 12
        bar = hinge.Inertia(m, (0, 0, -metre / 2), spread * np.diag([1.0, 1.0, 0.01]))
        for side, x in (("left", 3 * i), ("right", 3 * i + 1)):
            place = hinge.Transform(translation=(x * metre, 0, 0))
            b.add(f"{side}{i}", "world", hinge.Revolute((0, 1, 0)), placement=place, inertia=bar)
        top = hinge.Inertia(m, (metre / 2, 0, 0), spread * np.diag([0.01, 1.0, 1.0]))
        low = hinge.Transform(translation=(0, 0, -metre))
        b.add(f"top{i}", f"left{i}", hinge.Revolute((0, 1, 0)), placement=low, inertia=top)
        b.add_frame(f"corner{i}", f"top{i}", hinge.Transform(translation=(metre, 0, 0)))
        b.add_frame(f"end{i}", f"right{i}", low)
        loops.append(LoopConstraint(f"corner{i}", f"end{i}", axes))
    return hinge.Robot(b.build(), **options), loops


def swinging(robot, masses):
    """Every gate at an angle and a rate of its own; forces as the masses are."""
    q, qd, tau = np.zeros((3, robot.nv))
    for i, mass in enumerate(masses):
        for side, turn in (("left", 1), ("right", 1), ("top", -1)):
            at = robot.v_slice(f"{side}{i}_joint")
            q[at], qd[at] = turn * (0.3 + 0.5 * i), turn * (1.0 - 0.7 * i)
            tau[at] = mass * (i + turn)
    return q, qd, tau


@pytest.mark.parametrize("axes", [PLANE, (3, 4, 5), SPATIAL])
@pytest.mark.parametrize("masses", [(1.0, 1.0), (1e4, 1e-4), (1e-8, 1e8)])
def test_light_and_heavy_loops_do_not_meet(masses, axes):
    """Each gate moves as it does alone, redundant axes or not, whatever the others weigh."""
    robot, loops = gates(masses, axes)
    state = swinging(robot, masses)
    found = robot.constrained_forward_dynamics(*state, loops)
    for i, mass in enumerate(masses):
        alone, loop = gates([mass])
        own = slice(3 * i, 3 * i + 3)
        expected = alone.constrained_forward_dynamics(*(x[own] for x in state), loop)
        assert_close(found.qdd[own], expected.qdd, 2e3 * EPS)
        assert np.abs(found.forces).max() < 100 * max(masses)


def test_units_are_the_users():
    """In millimetres and grams: the same accelerations, to rounding."""
    masses = (2.0, 0.01)
    robot, loops = gates(masses, SPATIAL)
    small, small_loops = gates(masses, SPATIAL, metre=1e3, kilogram=1e3)
    q, qd, tau = swinging(robot, masses)
    expected = robot.constrained_forward_dynamics(q, qd, tau, loops)
    found = small.constrained_forward_dynamics(q, qd, tau * 1e9, small_loops)
    assert_close(found.qdd, expected.qdd, 2e3 * EPS)


def test_constraints_that_contradict_each_other_say_so():
    robot, loops = gates([1.0])
    q, qd, tau = swinging(robot, [1.0])
    # the corner is to stay where it is, on the end of the other bar, and at the origin
    torn = [*loops, LoopConstraint("corner0", "world", (3, 5)), LoopConstraint("end0", "world")]
    for call in (robot.constrained_forward_dynamics, robot.alg.constrained_forward_dynamics):
        with pytest.raises(
            hinge.SingularError, match="no motion keeps '.*0' on 'world' along axis"
        ):
            call(q, qd, tau, torn)
    batch = robot.constrained_forward_dynamics(np.array([q, q]), qd, tau, torn)
    assert all(np.isnan(x).all() for x in batch)


def test_one_contradiction_spoils_only_its_own_sample():
    """Two sliders on one lift are held twice: at rest that is redundant, but they are not to stop
    in two ways at once.
    """
    b = hinge.MechanismBuilder("rail", gravity=(0, 0, 0))
    b.add("lift", "world", hinge.Prismatic((0, 0, 1)), inertia=hinge.Inertia(1.0))
    for name in ("left", "right"):
        b.add(name, "lift", hinge.Prismatic((0, 1, 0)), inertia=hinge.Inertia(1.0))
    b.add_frame("high", "right", hinge.Transform(translation=(0, 0, 1)))
    robot = hinge.Robot(b.build())
    also = LoopConstraint("high", "world", (5,), stiffness=0.0, damping=7.0)
    torn = [LoopConstraint("left", "world", (5,)), also]
    q, qd, tau = np.zeros((2, 3)), np.zeros((2, 3)), np.ones(3)
    qd[1, 0] = 1.0
    found = robot.constrained_forward_dynamics(q, qd, tau, torn)
    assert_close(found.qdd[0], np.array([0.0, 1.0, 1.0]), 10 * EPS)
    assert_close(found.forces[0], np.array([-0.5, -0.5]), 1e-7)
    assert np.isnan(found.qdd[1]).all() and np.isnan(found.forces[1]).all()
    with pytest.raises(hinge.SingularError, match="no motion keeps"):
        robot.constrained_forward_dynamics(q[1], qd[1], tau, torn)


def test_a_row_that_no_joint_moves_is_left_out():
    """A pendulum whose end is held in the plane that it never leaves, obliquely to all axes."""
    b = hinge.MechanismBuilder("oblique")
    turn = hinge.Transform(from_rpy(0.3, -0.4, 0.7))
    bar = hinge.Inertia(1.0, (0, 0, -1), 0.01 * np.eye(3))
    b.add("bar", "world", hinge.Revolute((0, 1, 0)), placement=turn, inertia=bar)
    b.add_frame("end", "bar", hinge.Transform(translation=(0, 0, -1)))
    b.add_frame("plane", "world", turn)
    robot, hold = hinge.Robot(b.build()), LoopConstraint("end", "plane", (4,))
    state = np.array([0.3]), np.array([1.0]), np.array([0.5])
    found = robot.constrained_forward_dynamics(*state, [hold])
    assert_close(found.qdd, robot.forward_dynamics(*state), 10 * EPS)
    assert found.forces == 0.0
    # the same where another joint follows it
    twin = hinge.Revolute((0, 1, 0), mimic=hinge.Mimic("bar_joint", ratio=-1.0))
    b.add("twin", "world", twin, placement=turn, inertia=bar)
    robot = hinge.Robot(b.build())
    found = robot.constrained_forward_dynamics(*state, [hold])
    assert_close(found.qdd, robot.forward_dynamics(*state), 10 * EPS)
    assert found.forces == 0.0


@pytest.mark.parametrize("links", [1, 50])
def test_a_row_that_no_joint_moves_and_that_is_off_has_no_answer(links):
    """Frames on the axis of all joints: λ is known to be 0, and yet nothing keeps them there."""
    b = hinge.MechanismBuilder("spindle", gravity=(0, 0, 0))
    for i in range(links):
        disc = hinge.Inertia(1.0, (0, 0, 0), 0.01 * np.eye(3))
        parent = f"disc{i - 1}" if i else "world"
        b.add(f"disc{i}", parent, hinge.Revolute((0, 0, 1)), inertia=disc)
    robot, n = hinge.Robot(b.build()), links
    hold = hinge.Contact(f"disc{n - 1}", stiffness=100.0)
    q, anchors = np.zeros((3, n)), np.array([[np.eye(4)]] * 3)
    anchors[1, 0, 0, 3] = 1.0
    state = q, q, np.ones((3, n))
    found = robot.constrained_forward_dynamics(*state, hold, anchors=anchors)
    assert np.isnan(found.qdd[1]).all() and np.isnan(found.forces[1]).all()
    free = robot.forward_dynamics(*state)[[0, 2]]
    assert_close(found.qdd[[0, 2]], free, 1e4 * EPS, np.abs(free).max())
    assert (found.forces[[0, 2]] == 0).all()
    changes = robot.constrained_forward_dynamics_derivatives(*state, hold, anchors=anchors)
    assert all(np.isnan(x[1]).all() and np.isfinite(x[[0, 2]]).all() for x in changes)
    for robot_ in (robot, robot.alg):
        with pytest.raises(hinge.SingularError, match="no motion keeps"):
            robot_.constrained_forward_dynamics(*(x[1] for x in state), [hold], anchors=anchors[1])


def test_what_nothing_holds_does_not_move_in_simulations_either():
    b = hinge.MechanismBuilder("spindle", gravity=(0, 0, 0))
    b.add("disc", "world", hinge.Revolute((0, 0, 1)), inertia=hinge.Inertia(1.0))
    b.add_frame("off", "world", hinge.Transform(translation=(1, 0, 0)))
    loop = LoopConstraint("disc", "off")
    with pytest.warns(hinge.OpenLoopWarning), pytest.raises(hinge.SingularError):
        simulate(hinge.Robot(b.build()), [0.0], duration=0.01, constraints=loop)


def test_many_passive_joints_are_refused():
    """Their forces are a dense system, which would take minutes: compiled code says so too."""
    snake = zoo.snake(700)
    still, hold = np.zeros(snake.nv), [hinge.Contact("tail")]
    for call in (snake.alg.constrained_inverse_dynamics, snake.constrained_inverse_dynamics):
        with pytest.raises(hinge.ArgumentError, match="'snake700': 601 passive DoF .* 600 at the"):
            call(snake.neutral(), still, still, hold, snake.joint_names[:99])

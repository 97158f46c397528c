"""Scans on a card that is not there: their kernels run from their own text, on threads of the host,
and as NVIDIA's assembler takes them."""

import threading

import numpy as np
import pytest

import hinge
from assembler import assembled, assembles
from fake_card import Tensor, card_left_empty, fake_torch
from hinge import zoo
from hinge.emit.ptx import joins, path_scan
from hinge.graph.path_scan import dealt
from hinge.graph.program import trace
from hinge.robot.scan_plan import Along, Places, Plan
from hinge.robot.scan_programs import Programs
from mechanisms import EPS, ROBOTS, assert_close, random_mask, random_state

BODY = hinge.Inertia(1.0, (0.1, 0.2, -0.1), 0.02 * np.eye(3))
SIDE = hinge.Transform(translation=(0.3, 0, 0))


@pytest.fixture
def few_threads(monkeypatch):
    """Blocks of two warps, since each thread is one of the host."""
    monkeypatch.setattr(joins, "WARPS", 2)
    monkeypatch.setattr(joins, "FEW", 2)


@pytest.fixture
def library(monkeypatch, few_threads):
    """A card with room for three blocks."""
    with card_left_empty(monkeypatch, units=3) as library:
        yield library


@pytest.fixture
def torch(library, monkeypatch):
    with fake_torch(monkeypatch) as torch:
        yield torch


def tensors(*arrays):
    return [Tensor(np.array(x)) for x in arrays]


@pytest.mark.parametrize("links", [70, 250])
def test_a_chain_in_several_blocks(torch, library, links):
    """A floating base, and stretches of one link or of several."""
    here = zoo.snake(links)
    state = random_state(here, 5)
    given = state.q, state.qd, 0.1 * state.qdd
    there = here.to("cuda")
    got = there.forward_dynamics(*tensors(*given), method="scan")
    assert isinstance(got, Tensor)
    expected = here.forward_dynamics(*given)
    assert_close(got.array, expected, 1e3 * EPS * links)
    # one launch for each scan of one level, and again what it was
    launches = len(library.launches)
    again = there.forward_dynamics(*tensors(*given), method="scan")
    assert (again.array == got.array).all()
    assert len(library.launches) == 2 * launches
    assert launches < 10


@pytest.mark.parametrize("name", ["quadruped", "tree0", "everything"])
def test_trees_loads_and_splits(torch, name):
    robot = ROBOTS.get(name) or everything_without_followers()
    state, active = random_state(robot, 3), random_mask(robot, 4)
    q, qd, qdd, f_ext = state.q, state.qd, state.qdd, state.f_ext
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext)
    there = hinge.Robot(robot.mechanism, device="cuda")
    given = tensors(q, qd, qdd, tau)
    got = there.hybrid_dynamics(*given, active, Tensor(f_ext), method="scan")
    assert_close(got.qdd.array, qdd, 1e6 * EPS)
    assert_close(got.tau.array, tau, 1e6 * EPS)


def everything_without_followers():
    """Joints of all kinds, one after the other."""
    b = hinge.MechanismBuilder("kinds")
    joints = hinge.Free(), hinge.Spherical(armature=0.1), hinge.Universal(), hinge.Prismatic()
    for i, joint in enumerate((*joints, hinge.Revolute())):
        parent = f"link{i - 1}" if i else "world"
        b.add(f"link{i}", parent, joint, placement=SIDE, inertia=BODY)
    return hinge.Robot(b.build())


def test_arrays_of_the_host_and_batches_go_there_state_by_state(torch):
    here = zoo.arm(3)
    there = here.to("cuda")
    rng = np.random.default_rng(0)
    q = here.random_configuration(rng, 2)
    qd, tau = rng.normal(size=(2, 2, here.nv))
    expected = here.forward_dynamics(q, qd, tau)
    assert_close(there.forward_dynamics(q, qd, tau, method="scan"), expected, 1e3 * EPS)
    got = there.forward_dynamics(*tensors(q, qd, tau), method="scan")
    assert_close(got.array, expected, 1e3 * EPS)
    # other numbers, and other strides, are copied on the card
    mixed = Tensor(q[0]), Tensor(qd[0].astype(np.float32)), Tensor(np.stack([tau[0]] * 2, 1)[:, 0])
    got = there.forward_dynamics(*mixed, method="scan")
    assert_close(got.array, expected[0], 1e-6)


def test_each_stream_has_arrays_of_its_own(torch, library):
    there = zoo.arm(3).to("cuda")
    given = tensors(*np.zeros((3, 3)))
    there.forward_dynamics(*given, method="scan")
    kept = len(library.memory)
    torch.now = 7
    there.forward_dynamics(*given, method="scan")
    assert len(library.memory) == 2 * kept
    assert {stream for _, stream, _ in library.launches} == {0, 7}


@pytest.mark.parametrize("failing", ["cuGraphInstantiateWithFlags", "cuMemsetD8Async"])
def test_a_recording_that_fails_leaves_nothing_behind(torch, library, failing):
    there, given = zoo.arm(3).to("cuda"), tensors(*np.zeros((3, 3)))
    library.fails[failing] = 1
    with pytest.raises(hinge.DeviceError, match="it is said to fail"):
        there.forward_dynamics(*given, method="scan")
    del library.fails[failing]
    assert not library.held and not library.graphs
    expected = zoo.arm(3).forward_dynamics(*np.zeros((3, 3)))
    assert_close(there.forward_dynamics(*given, method="scan").array, expected, 1e3 * EPS)


def test_each_thread_has_arrays_of_its_own_on_its_default_stream(torch, library):
    """Which has one number for all threads, and is another one in each."""
    there, kept = zoo.arm(3).to("cuda"), []
    given = np.zeros((3, 3))

    def call():
        there.forward_dynamics(*given, method="scan")
        kept.append(len(library.memory))

    call()
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    call()
    assert kept == [kept[0], 2 * kept[0], kept[0]]


class Weld(hinge.Joint):
    """A joint that does not move, and is no `Fixed`, whose body would be merged."""

    nq = nv = 0

    def pose(self, q):
        return np.eye(3), np.zeros(3)

    def H(self, q):
        return np.zeros((0, 6))

    def H_rate(self, q, qd):
        return np.zeros((0, 6))


@pytest.mark.parametrize("joints", [(), (Weld(),), (hinge.Revolute(), Weld(), hinge.Revolute())])
def test_bodies_without_degrees_of_freedom(torch, joints):
    b = hinge.MechanismBuilder("welded")
    for i, joint in enumerate(joints):
        parent = f"link{i - 1}" if i else "world"
        b.add(f"link{i}", parent, joint, placement=SIDE, inertia=BODY)
    here = hinge.Robot(b.build())
    assert here.n_bodies == len(joints)
    there = hinge.Robot(here.mechanism, device="cuda")
    state = random_state(here, 2)
    given = state.q, state.qd, state.qdd
    expected = here.forward_dynamics(*given)
    got = there.forward_dynamics(*tensors(*given), method="scan")
    assert_close(got.array, expected, 1e3 * EPS)
    for robot in (here, there):
        assert_close(robot.forward_dynamics(*given, method="scan"), expected, 1e3 * EPS)
        active = np.ones(here.nv, bool)
        split = robot.hybrid_dynamics(*given, expected, active, method="scan")
        assert split.tau.shape == split.qdd.shape == (here.nv,)


@pytest.mark.parametrize("arm", [0, 1])
def test_a_state_that_is_not_finite_is_nan_in_all_its_results(torch, arm):
    """Of two arms on the ground, which do not feel each other, too."""
    b = hinge.MechanismBuilder("two")
    for k in range(4):
        parent = "world" if k % 2 == 0 else f"link{k - 1}"
        b.add(f"link{k}", parent, hinge.Revolute(), placement=SIDE, inertia=BODY)
    there = hinge.Robot(b.build(), device="cuda")
    given = np.zeros((3, 4))
    given[2, 2 * arm + 1] = np.nan
    assert np.isnan(there.forward_dynamics(*tensors(*given), method="scan").array).all()


def test_values_are_dealt_out_once_each():
    program = trace(lambda A, b: (A @ b, A @ A, A), [(4, 4), (4,)])
    shares = dealt(program, 3)
    assert sorted(i for share in shares for i in share) == list(range(len(program.values)))
    assert min(map(len, shares)) > 0


@assembles
@pytest.mark.parametrize("scalar", ["float", "double"])
def test_registers_of_scans(scalar):
    """Hardly anything is spilled, and a block fits an A100's shared memory, in float any card's."""
    mech = zoo.snake(10).mechanism
    plan = Plan(Places(mech, 64, 32), ("q", "qd", "tau", "f_ext"))
    scans = [x for x in plan.operations if isinstance(x, Along)]
    assert len(scans) == 4
    for operation in scans:
        text, launch = path_scan.path_scan_module(Programs(EPS).scan(operation), scalar)
        figures = assembled(text)
        assert launch.cooperative and launch.shared <= (99 if scalar == "float" else 163) * 1024
        assert figures.registers * launch.threads <= 65536
        assert figures.spilled <= 64

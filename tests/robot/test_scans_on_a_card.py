"""Scans on a card that is not there: their kernels run from their own text, on threads of the host,
and as NVIDIA's assembler takes them."""

import numpy as np
import pytest

import hinge
from assembler import assembled, assembles
from fake_card import Tensor, card_left_empty, fake_torch
from hinge import zoo
from hinge.emit.ptx import joins, path_scan
from hinge.graph.path_scan import dealt
from hinge.graph.program import trace
from hinge.robot.scan_card import programs_of
from hinge.robot.scan_plan import Along, Places, Plan
from mechanisms import EPS, ROBOTS, assert_close, random_mask, random_state


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
    body = hinge.Inertia(1.0, (0.1, 0.2, -0.1), 0.02 * np.eye(3))
    joints = hinge.Free(), hinge.Spherical(armature=0.1), hinge.Universal(), hinge.Prismatic()
    for i, joint in enumerate((*joints, hinge.Revolute())):
        parent = f"link{i - 1}" if i else "world"
        b.add(
            f"link{i}",
            parent,
            joint,
            placement=hinge.Transform(translation=(0.3, 0, 0)),
            inertia=body,
        )
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
        text, launch = path_scan.path_scan_module(programs_of(operation, EPS), scalar)
        figures = assembled(text)
        assert launch.cooperative and launch.shared <= (99 if scalar == "float" else 163) * 1024
        assert figures.registers * launch.threads <= 65536
        assert figures.spilled <= 64

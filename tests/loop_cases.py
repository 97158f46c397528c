"""Loop programs for tests."""

from functools import partial

import numpy as np

from hinge import algorithms
from hinge.algorithms.declare import ALGORITHMS
from hinge.graph.loop import Load, LoopProgram, Stage, Step, Store, Visit
from hinge.graph.scalar import Graph
from hinge.specialize.arrays import array_shape
from hinge.specialize.canonical import Reframed, canonical
from hinge.specialize.loops import trace_loops
from hinge.specialize.walks import walk_to, walks_of

ARRAYS = {
    "inverse_dynamics": ("q", "qd", "qdd", "f_ext"),
    "forward_dynamics": ("q", "qd", "tau", "f_ext"),
    "bias_forces": ("q", "qd"),
    "gravity_forces": ("q",),
}


def looped(mech, name):
    """The loop program of an algorithm."""
    arrays = {a: array_shape(mech, a) for a in ARRAYS[name]}
    return trace_loops(getattr(algorithms, name), canonical(mech), arrays, name)


def split_in_loops(robot):
    """Hybrid dynamics with every other DoF driven."""
    mech, active = robot.mechanism, tuple(i % 2 == 0 for i in range(robot.nv))
    algorithm = partial(algorithms.hybrid_dynamics, active=active)
    arrays = {a: array_shape(mech, a) for a in ("q", "qd", "qdd_active", "tau_passive")}
    return trace_loops(algorithm, canonical(mech), arrays, "hybrid", active), active


def frame_in_loops(robot, frame, reference="aligned", way=None):
    """The Jacobian; way: to a frame that is not the one, perhaps."""
    algorithm = partial(algorithms.jacobian, frame=frame, reference=reference)
    mech, arrays = robot.mechanism, {"q": (robot.nq,)}
    walks = [walk_to(mech, (way or frame,))]
    return trace_loops(algorithm, Reframed.same(mech), arrays, "jacobian", walks=walks)


def held_in_loops(robot, name, arrays, constraints, active=None):
    """An algorithm of a mechanism that is held."""
    static = {"constraints": constraints} | ({} if active is None else {"active": active})
    mech, algorithm = robot.mechanism, partial(getattr(algorithms, name), **static)
    shapes = {a: array_shape(mech, a, static) for a in arrays}
    walks = walks_of(mech, static, ALGORITHMS[name].reads_passive)
    return trace_loops(algorithm, canonical(mech), shapes, name, active, walks)


def swapping():
    """A program, its argument and its result: in each body two values change places.

    The bodies are far apart in the argument, and the result comes from three slots.
    """
    graph = Graph()
    x, a, b = graph.input(), graph.input(), graph.input()
    own = partial(Load, "slot", row="own")
    first = Step((Load("argument", 0, "own", 0),), (Store(0, "own", 0, x), Store(1, "own", 0, -x)))
    loads = (Load("argument", 0, "own", 0), own(which=0, entry=0), own(which=1, entry=0))
    second = Step(loads, (Store(0, "own", 0, b), Store(1, "own", 0, a), Store(2, "own", 0, x * x)))
    visits = tuple(Visit(0, k, 0, (70000 * (k - 1),), ()) for k in (1, 2))
    results = ((0, 1, 0), (0, 2, 0), (1, 1, 0), (1, 2, 0), (2, 2, 0))
    stages = (Stage((first,), False), Stage((second,), True))
    sizes = ((70001,),), ((5,),), (1, 1, 1)
    program = LoopProgram("swapping", *sizes, 3, {}, stages, visits, results)
    argument = np.zeros(70001)
    argument[0], argument[-1] = 2.0, 3.0
    return program, argument, np.array([-2.0, -3.0, 2.0, 3.0, 9.0])

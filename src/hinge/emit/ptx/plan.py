"""Where the values of a straight-line program are while a thread computes them, chosen by rule.

A multiprocessor has 64 Ki registers and 227 KiB of shared memory for all its warps; what a thread
takes of them decides how many warps there are to wait for memory and arithmetic in turns.  The
order of the operations is known, and with it the next use of every value: when the registers are
full, the value leaves that is needed last (Belady's rule), for shared memory: where a result will
be, where an argument has been, or a slot.  Only what fits nowhere goes to global memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from ...graph.operations import SINCOS
from ...graph.program import Program
from ...graph.reads import Order
from ...graph.scalar import Node, reachable
from ...graph.schedule import depth_first, first_angles, most_live, on_demand
from ...graph.workspace import Step, melted_products, step_plan
from .turns import Turns, turns_of

__all__ = ["FAR", "LANES", "OF_BLOCK", "PIECE", "SHARED_BYTES", "SLOT", "TILE", "Place", "Plan"]
__all__ += ["Stage", "Tile", "Trial"]
__all__ += ["card_plan", "input_places", "planned", "result_places", "staged"]

# threads of a warp, and samples side by side where a kernel leaves numbers for another one: such
# that the one writes and the other reads whole sectors
LANES, TILE = 32, 8
# a place that is no entry of a tile: a slot in shared memory, or one far away in global memory
SLOT, FAR = -1, -2
# what a multiprocessor of compute capability 8.0 to 9.0 has, and what a block takes besides
_REGISTERS, SHARED_BYTES, OF_BLOCK = 1 << 16, 227 * 1024, 1024
# registers of 32 bits that code needs besides the values it holds, and the most a thread has
_SPARE, _MOST = {4: 28, 8: 54}, 255
# bytes of a sample that are written at once where results are written in pieces, by the size of a
# number, and of a line: Talos' mass matrix 0.27 G/s in float32 by 128, 0.34 by 256; in float64 0.17
# and 0.16
PIECE, _LINE = {4: 256, 8: 128}, 16
# the sines and cosines of so many angles are made before all else
FEW = 8
# how many warps are tried, from the most on; with the last, what does not fit goes far away, and
# with fewer only if the arguments would not fit
_WARPS = (24, 20, 16, 12, 10, 8, 6, 5, 4)
_FEWEST = (_WARPS[-1], 2, 1)
# so many are enough if no more values than that have to wait: on an H200, float32, Panda's inverse
# dynamics 33.0 G/s with 32 warps, 34.0 with 24, its forward dynamics 21.2 with 24, 21.7 with 20
_ENOUGH, _HARDLY = 20, 8
# of programs with few results in float32: the most warps for more than so many operations.  They
# wait for arithmetic more than for memory, and the driver's compiler makes something of registers
# that are left.  On an H200, G/s: Panda's forward dynamics (1200) 22.7 with 20 warps, 23.6 with 16;
# Talos' inverse dynamics (3800) 5.8 with 12, 6.2 with 8
_LONG = {3000: 8, 1000: 16}
# with how many warps, by the size of a number, instructions come in an order of our own that waits
# little (`latency.py`).  With more, others work meanwhile; of two warps on each scheduler, whose
# threads have all registers there are, the driver's compiler makes more.  On an H200, in our order
# and in its own, G/s: float32, 20 warps: Panda's forward dynamics 23.0 and 22.1; 12 and 10: Talos'
# inverse dynamics 5.71 and 5.60, Panda's ∂τ 5.47 and 5.22; 8: Talos' forward dynamics 2.89 and
# 2.98.  float64, 16: Panda's forward dynamics 12.0 and 12.6; 5: Talos' inverse dynamics 1.62 and
# 1.95; 4: its forward dynamics 0.80 and 0.56, Panda's ∂q̈ 1.24 and 1.08
# Where arguments are fetched ahead, from so many warps on, the driver's order is the better one: in
# float32, 16 warps, Panda's forward dynamics 23.6 (not ahead 22.6 and 21.1); ANYmal's, for which
# there is no room, 9.8 and 9.6, with 12 warps ahead 8.6 (not ahead 9.4 and 9.0)
_WAITING, _AHEAD = {4: range(9, 21), 8: range(1, 5)}, 16
# operations of a program whose numbers are fetched, so that its code, of 16 bytes an instruction,
# is within the 128 kB that are at hand: in an instruction itself a double takes one or two more
_CODE = 6000
_NEVER = 1 << 60


class Tile(NamedTuple):
    """An array's numbers for one warp in shared memory, `size` for each thread.

    start, pitch, step: in bytes, where it begins, from thread to thread, from entry to entry.
    """

    start: int
    size: int
    pitch: int
    step: int

    @property
    def packed(self) -> bool:
        """Whether its rows follow each other as they do in the array."""
        return self.pitch == self.size * self.step


NOWHERE = Tile(0, 0, 0, 0)


class Place(NamedTuple):
    """Where a value waits: an entry of a tile, of the slots, or far away."""

    tile: int
    entry: int


class Stage(NamedTuple):
    """The order of the operations, and what of arguments and results is in shared memory.

    tiles: of the arguments, then of the results, NOWHERE for one that is written in pieces, by
    steps "put" and "write" in the order; twins: which argument's tile a result takes over.
    piece: where such pieces are gathered.  ahead: from the tiles of these samples' arguments to
    those of the next, which are fetched meanwhile; 0 if they are not.
    angles: those that are known at the start, if they are few: their sines and cosines are made
    before all else.  turns: of many, those whose sines and cosines are made in a loop.
    """

    order: list[Node]
    tiles: list[Tile]
    twins: dict[int, int]
    piece: Tile
    ahead: int
    room: int
    angles: list[Node]
    turns: list[Turns]

    @property
    def cosines(self) -> int:
        """How many slots loops of turns write, whether or not somebody needs what is in them."""
        return sum(len(turns.offsets) for turns in self.turns)


class Trial(NamedTuple):
    """What is tried: warps of a multiprocessor, values that a thread holds, slots it may have."""

    warps: int
    held: int
    slots: int


class Plan(NamedTuple):
    """Operations in their order, where values wait meanwhile, and what that takes.

    held: what a thread holds in registers; room: bytes of shared memory of a warp; far: how many
    places there are far away; warps: how many a multiprocessor is to have.
    """

    stage: Stage
    steps: list[Step]
    places: dict[int, Place]
    slots: Tile
    far: int
    trial: Trial

    @property
    def room(self) -> int:
        """The bytes of shared memory that a warp takes."""
        return self.slots.start + LANES * self.slots.size * self.slots.pitch

    @property
    def warps_of_block(self) -> int:
        """So many that blocks fill a multiprocessor."""
        return next(n for n in (4, 2, 1) if self.trial.warps % n == 0)

    @property
    def as_written(self) -> bool:
        """Whether instructions come in an order that waits little, and are to stay in it."""
        return not self.stage.ahead and _waits(self.trial.warps, self.slots.step // LANES)

    @property
    def numbers_apart(self) -> bool:
        """Whether numbers are fetched from the memory of constants: that is less code."""
        return len(self.steps) > _CODE

    @property
    def fits(self) -> bool:
        """Whether as many warps fit as are wanted."""
        blocks = self.trial.warps // self.warps_of_block
        return self.trial.warps * self.room + (blocks - 1) * OF_BLOCK <= SHARED_BYTES


def card_plan(
    program: Program, word: int, columns: bool = False, at_once: bool | None = None
) -> Plan:
    """The plan with the most warps that fit, a few less if hardly a value has to wait then; or with
    the fewest and places far away.

    columns: arguments are; at_once: results are written as they are made, by default if they are
    columns too.
    """
    order, at_once = _order(program, word), columns if at_once is None else at_once
    plans = _fitting(program, order, word, columns, at_once)
    best = next(plans, None)
    if best is None:
        stage = staged(program, order, word, columns, at_once)
        room = stage.room + LANES * word * stage.cosines
        fewest = next((n for n in _FEWEST if n * room <= SHARED_BYTES), 1)
        left = (SHARED_BYTES // fewest - stage.room) // (LANES * word)
        return planned(program, stage, word, Trial(fewest, held(fewest, word), left))
    enough = takewhile(lambda plan: plan.trial.warps >= _ENOUGH, chain([best], plans))
    return next((plan for plan in enough if len(plan.places) <= _HARDLY), best)


def _fitting(
    program: Program, order: list[Node], word: int, columns: bool, at_once: bool
) -> Iterator[Plan]:
    """Plans with nothing far away, from the most warps on."""
    live = most_live(staged(program, order, word, columns, at_once).order)
    few_results = sum(program.output_sizes) <= sum(program.input_sizes)
    long = _LONG if few_results and word == 4 else {}
    most = next((warps for size, warps in long.items() if len(order) > size), _WARPS[0])
    for warps in _WARPS[_WARPS.index(most) :]:
        trial = Trial(warps, held(warps, word), _NEVER)
        if live <= trial.held + SHARED_BYTES // (warps * LANES * word):
            may_be_ahead = few_results and (warps >= _AHEAD or not _waits(warps, word))
            for ahead in (True, False) if may_be_ahead else (False,):
                stage = staged(program, order, word, columns, at_once, ahead)
                plan = planned(program, stage, word, trial)
                if plan.fits:
                    yield plan
                    break


def _waits(warps: int, word: int) -> bool:
    """Whether warps are so few that threads wait for their own results, and we know better how."""
    return warps in _WAITING[word]


def held(warps: int, word: int) -> int:
    """How many values a thread holds if there are to be so many warps."""
    registers = min(_MOST, _REGISTERS // (LANES * warps) // 8 * 8)
    return 4 * (registers - _SPARE[word]) // word


def _order(program: Program, word: int) -> list[Node]:
    """The order of making, unless another one has far fewer values waiting; a few sines first."""
    made = sorted(depth_first(program.values), key=lambda node: node.id)
    starts = (len(made) * k // 20 for k in (2, 5, 8, 11, 14, 17))
    if most_live(made) > held(_WARPS[-1], word) // 2:
        made = min([made, *(on_demand(made, start) for start in starts)], key=most_live)
    angles = first_angles(program.nodes)
    if len(angles) > FEW:
        turned = _turned(turns_of(program, angles))
        return [node for node in made if node.id not in turned]
    known = {angle.id for angle in angles}
    early = [n for n in made if n.op in SINCOS and n.args[0].id in known]
    needed = [n for n in reachable(angles) if n.op not in ("const", "input")]
    first = {n.id: n for n in [*needed, *early]}
    return [*first.values(), *(node for node in made if node.id not in first)]


# what is in shared memory from the start to the end


def staged(
    program: Program,
    order: list[Node],
    word: int,
    columns: bool,
    at_once: bool = False,
    ahead: bool = False,
) -> Stage:
    """Tiles for the arguments, and for results as far as there is room for a few warps."""
    tiles: list[Tile] = []
    twins: dict[int, int] = {}
    angles = first_angles(program.nodes)
    turns = turns_of(program, angles) if len(angles) > FEW else []
    end = further = 0
    for size in program.input_sizes:
        tiles.append(tile := _tile(end, size, word, columns))
        end += _lines(tile, word, columns)
    if ahead:
        end, further = 2 * end, end
    # arguments that are results as they are stay where they are
    kept = {input_places(program)[v.value].tile for v in program.values if v.op == "input"}
    few = SHARED_BYTES // (_WARPS[-1] * LANES * word) - sum(program.input_sizes)
    whole = [] if at_once else list(_small(program.output_sizes, few))
    for i, size in enumerate(program.output_sizes):
        taken = {*twins.values(), *kept}
        twin = None if ahead else _twin(program, order, turns, i, taken)
        if i not in whole:
            tiles.append(NOWHERE)
        elif twin is not None:
            twins[len(tiles)] = twin
            tiles.append(tiles[twin])
        else:
            tiles.append(tile := _tile(end, size, word, columns))
            end += _lines(tile, word, columns)
    piece = NOWHERE
    if NOWHERE in tiles and not at_once:
        piece = Tile(end, PIECE[word] // word, PIECE[word] + 16, word)
        end += LANES * piece.pitch
    steps = _with_writes(program, order, whole, word, at_once)
    steps += _kept(program, whole)
    few = angles if len(angles) <= FEW else []
    return Stage(steps, tiles, twins, piece, further, end, few, turns)


def _turned(turns: Sequence[Turns]) -> set[int]:
    """What is made in loops before the operations: sines, cosines, and their angles."""
    both = [n for t in turns for n in (*t.sines, *t.cosines) if n is not None]
    return {x.id for n in both for x in (n, *n.args) if x.op != "input"}


def _kept(program: Program, whole: Collection[int]) -> list[Node]:
    """A step that holds on to results which no step makes: arguments."""
    first, kept = 0, []
    for i, size in enumerate(program.output_sizes):
        values = program.values[first : first + size] if i in whole else ()
        kept += [v for v in values if v.op == "input"]
        first += size
    return [Node(kept[0].graph, -1, "keep", tuple(kept), None)] if kept else []


def _lines(tile: Tile, word: int, columns: bool) -> int:
    """The bytes of a tile in whole lines."""
    return LANES * tile.size * word if columns else -(-LANES * tile.pitch // 16) * 16


def _small(sizes: Sequence[int], room: int) -> Iterator[int]:
    """Which arrays, from the smallest on, have room together."""
    for size, i in sorted((size, i) for i, size in enumerate(sizes)):
        room -= size
        if room >= 0:
            yield i


def _tile(start: int, size: int, word: int, columns: bool) -> Tile:
    """Rows are as in the array, unless four threads or more would ask the same bank at once."""
    if columns:
        return Tile(start, size, word, LANES * word)
    return Tile(start, size, (size + (size % 4 == 0)) * word, word)


def _twin(
    program: Program,
    order: Sequence[Node],
    turns: Sequence[Turns],
    result: int,
    taken: Collection[int],
) -> int | None:
    """An argument of the same size, all of whose entries are used before the result's are made."""
    sizes, n = program.input_sizes, program.output_sizes[result]
    first = sum(program.output_sizes[:result])
    values = program.values[first : first + n]
    made = {node.id: i for i, node in enumerate(order)}
    if len({v.id for v in values}) < n or any(v.id not in made for v in values):
        return None
    number = {n.id: t.first + i for t in turns for i, n in enumerate(t.sines) if n is not None}
    last: dict[int, int] = {}
    # such a product is made with its sum, wherever it is in the order
    melted = melted_products(Order(order), {v.id for v in program.values})
    for i, node in enumerate(order):
        read = [x for a in node.args for x in (a, *(a.args if a.id in melted else ()))]
        last |= {a.value if a.op == "input" else number.get(a.id, -1): i for a in read}
    for i, size in enumerate(sizes):
        entries = range(sum(sizes[:i]), sum(sizes[: i + 1]))
        if size == n and i not in taken:
            pairs = zip(entries, values, strict=True)
            if all(last.get(e, -1) <= made[v.id] for e, v in pairs):
                return i
    return None


def _with_writes(
    program: Program, order: list[Node], whole: Collection[int], word: int, at_once: bool
) -> list[Node]:
    """The order with steps after the last of those entries that are written together.

    "put" takes a line of entries to where a piece of a result is gathered, "write" writes it.
    """
    at = {node.id: i for i, node in enumerate(order)}
    keyed = [((i, 0, 0), node) for i, node in enumerate(order)]
    first, line, long = 0, _LINE // word, 1 if at_once else PIECE[word] // word
    for i, size in enumerate(program.output_sizes):
        values, when = program.values[first : first + size], -1
        first += size
        for e in range(0, size, long) if i not in whole else ():
            piece = values[e : e + long]
            when = max((at[v.id] for v in piece if v.id in at), default=when)
            lines = [piece[k : k + line] for k in range(0, len(piece), line)]
            for k, group in enumerate(lines if at_once else [*lines, ()]):
                number = len(keyed) + 2
                op, what = "put" if group else "write", (i, e, k * line if group else len(piece))
                step = Node(values[0].graph, -number, op, tuple(group), what)
                keyed.append(((when, 1, number), step))
    return [node for _, node in sorted(keyed, key=lambda pair: pair[0])]


# what waits where


def planned(program: Program, stage: Stage, word: int, trial: Trial) -> Plan:
    """The plan of a stage with so many values in registers and slots."""
    results, there = result_places(program, stage), turned_places(program, stage)
    elsewhere = {*results, *there}
    plan = step_plan(Order(stage.order), len(stage.order) or 1, trial.held, elsewhere)
    # products are steps of their own here, for they are scheduled apart from their sums
    steps = [
        Step(node, step.gone if node is step.node else ())
        for piece in plan.pieces
        for step in piece
        for node in step.nodes
    ]
    ends, opens = _open_places(program, steps, results, there)
    found = _Places(steps, ends, opens, trial.slots, there, stage.cosines)
    places, slots, far = found.of(plan.slot)
    room = Tile(stage.room, slots, word, LANES * word)
    return Plan(stage, steps, places, room, far, trial)


def input_places(program: Program) -> list[Place]:
    """Where each number of the arguments is."""
    return [Place(i, e) for i, size in enumerate(program.input_sizes) for e in range(size)]


def result_places(program: Program, stage: Stage) -> dict[int, Place]:
    """Where each value is that is made for a tile of results, at the first of its entries."""
    found: dict[int, Place] = {}
    entries = iter(program.values)
    for i, size in enumerate(program.output_sizes, len(program.inputs)):
        for e in range(size):
            node = next(entries)
            if stage.tiles[i].size and node.op not in ("const", "input"):
                found.setdefault(node.id, Place(stage.twins.get(i, i), e))
    return found


def turned_places(program: Program, stage: Stage) -> dict[int, Place]:
    """Where sines and cosines are that are made in loops: sines in place of angles."""
    found: dict[int, Place] = {}
    arguments, slot = input_places(program), 0
    for turns in stage.turns:
        for i, (sine, cosine) in enumerate(zip(turns.sines, turns.cosines, strict=True)):
            pairs = (sine, arguments[turns.first + i]), (cosine, Place(SLOT, slot + i))
            found |= {node.id: place for node, place in pairs if node is not None}
        slot += len(turns.offsets)
    return found


def _open_places(
    program: Program,
    steps: Sequence[Step],
    results: Mapping[int, Place],
    there: Mapping[int, Place],
) -> tuple[dict[Place, int], dict[int, list[Place]]]:
    """Until which step a place of a tile is free, and from which step on such places are.

    there: where values are that no step makes, besides arguments.
    """
    made = {step.node.id: i for i, step in enumerate(steps)}
    arguments = input_places(program)
    last: dict[Place, int] = {}
    for i, step in enumerate(steps):
        for a in step.node.args:
            place = arguments[a.value] if a.op == "input" else there.get(a.id)
            if place is not None:
                last[place] = i
    ends = {place: made[id] for id, place in results.items()}
    opens: dict[int, list[Place]] = defaultdict(list)
    opens[0] = [place for place in ends if place.tile >= len(program.inputs)]
    for place in {*arguments, *there.values()}:
        opens[last.get(place, 0)].append(place)
    return ends, {i: sorted(places) for i, places in opens.items()}


class _Places:
    """A place for each value that waits, while the steps go by.

    ends: until when a place of a tile is free; opens: the places that are free from a step on;
    there: values that wait from the start; slots: how many are taken by then.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        ends: Mapping[Place, int],
        opens: dict[int, list[Place]],
        most: int,
        there: Mapping[int, Place],
        slots: int,
    ) -> None:
        self.steps, self.ends, self.opens, self.most = steps, ends, opens, most
        self.last = {a.id: i for i, step in enumerate(steps) for a in step.node.args}
        self.free: list[Place] = []
        self.there, self.place, self.slots = there, dict(there), slots

    def of(self, waiting: Collection[int]) -> tuple[dict[int, Place], int, int]:
        """Where each of those waits, how many slots there are, and how many places far away."""
        for i, node in enumerate(step.node for step in self.steps):
            self.free += self.opens.pop(i, [])
            if node.id in waiting:
                self.place[node.id] = place = self.found(i, self.last[node.id])
                if place.tile != FAR:
                    self.opens.setdefault(self.last[node.id], []).append(place)
        return self.place, self.slots, self.far_away()

    def found(self, now: int, end: int) -> Place:
        """The place that is free for no longer than it must be, or a slot, or one far away."""
        fits = [p for p in self.free if self.ends.get(p, _NEVER) > end]
        if fits:
            place = min(fits, key=lambda p: (self.ends.get(p, _NEVER), p))
            self.free.remove(place)
            return place
        if self.slots < self.most:
            self.slots += 1
            return Place(SLOT, self.slots - 1)
        return self.instead(now, end)

    def instead(self, now: int, end: int) -> Place:
        """The slot of what is needed longer than this, which goes far away for good."""
        slots = (x for x, p in self.place.items() if p.tile == SLOT and x not in self.there)
        held = (x for x in slots if self.last[x] > now)
        longest = max(held, key=lambda x: self.last[x], default=None)
        if longest is None or self.last[longest] <= end:
            return Place(FAR, 0)
        place, self.place[longest] = self.place[longest], Place(FAR, 0)
        self.opens[self.last[longest]].remove(place)
        return place

    def far_away(self) -> int:
        """Numbers the places far away, each free again after its last use; how many there are."""
        free: list[int] = []
        ends: dict[int, list[int]] = defaultdict(list)
        count = 0
        for i, node in enumerate(step.node for step in self.steps):
            free += ends.pop(i, [])
            if self.place.get(node.id, Place(0, 0)).tile == FAR:
                if not free:
                    free.append(count)
                    count += 1
                self.place[node.id] = Place(FAR, free.pop())
                ends[self.last[node.id]].append(self.place[node.id].entry)
        return count

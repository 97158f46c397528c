"""Where the values of a loop program are, so that little memory is touched.

A value that is a result is kept where results go.  One that is used in a single stage passes from a
thing to its children or to its parent: rows for those are few and used again as soon as a thing is
done, so that they stay in the nearest cache however many things there are.  The others are kept,
a row for each thing, as long as its role needs; values of different stages share a place.  What
belongs to no thing has a place of its own.

What it gives: forward dynamics of a chain keeps 9 numbers a body instead of 108.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, zip_longest
from typing import NamedTuple

from ..graph.loop import GROUND, PAIR, LoopProgram, Stage, Step

__all__ = ["Area", "Entry", "Place", "Rows"]

Entry = tuple[int, int]


class Place(NamedTuple):
    """An area, and where a value is in a row of it."""

    area: str
    at: int


class Area(NamedTuple):
    """Rows of values: for every visit where that of the thing and that of its parent begin.

    ground: where the row of what is no thing begins; size: how many values there are.
    """

    own: list[int]
    parent: list[int]
    ground: int
    size: int


class _Use(NamedTuple):
    """In which stages an entry is touched, and how: (stage, "load" or "store", row)."""

    ways: frozenset[tuple[int, str, str]]

    @property
    def first(self) -> int:
        return min(stage for stage, _, _ in self.ways)

    @property
    def last(self) -> int:
        return max(stage for stage, _, _ in self.ways)

    def at(self, stage: int) -> set[tuple[str, str]]:
        """How it is touched in a stage."""
        return {(way, row) for i, way, row in self.ways if i == stage}

    @property
    def by_children(self) -> bool:
        """Whether it is touched in the row of a parent."""
        return any(row == "parent" for _, _, row in self.ways)

    @property
    def of_no_thing(self) -> bool:
        """Whether it belongs to none."""
        return any(row == GROUND for _, _, row in self.ways)

    @property
    def from_afar(self) -> set[int]:
        """The stages in which things that climb load it."""
        return {stage for stage, _, row in self.ways if row in ("lower", "upper")}


class Rows:
    """The places of all values of a program."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.uses = _uses(program.stages)

    @cached_property
    def _results(self) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
        """Slot → row → where its results begin, and entry → how much further on.

        Of slots that are results and nothing else to parents, each value once.
        """
        found: dict[int, dict[tuple[int, int], int]] = {}
        again = set()
        for i, (slot, row, entry) in enumerate(self.program.results):
            if (row, entry) in found.setdefault(slot, {}):
                again.add(slot)
            found[slot][row, entry] = i
        things = {visit.own for visit in self.program.visits}
        made = {}
        for slot, where in found.items():
            begin = {row: i for (row, entry), i in where.items() if entry == 0}
            if slot in again or set(begin) != things:
                continue
            shifts: dict[int, set[int]] = {}
            for (row, entry), i in where.items():
                shifts.setdefault(entry, set()).add(i - begin[row])
            used = {entry: use for (s, entry), use in self.uses.items() if s == slot}
            plain = all(e in shifts and not use.by_children for e, use in used.items())
            if plain and all(len(x) == 1 for x in shifts.values()):
                made[slot] = begin, {entry: x.pop() for entry, x in shifts.items()}
        return made

    @cached_property
    def places(self) -> dict[Entry, Place]:
        """Where each entry of a slot is."""
        kept, made, shared = [], {}, 0
        passing = [0] * len(self.program.stages)
        gathered = {(slot, entry) for slot, _, entry in self.program.results}
        for entry, use in self.uses.items():
            if use.of_no_thing:
                made[entry] = Place(GROUND, shared)
                shared += 1
            elif entry[0] in self._results:
                made[entry] = Place(f"result{entry[0]}", self._results[entry[0]][1][entry[1]])
            elif use.first == use.last and entry not in gathered and not use.from_afar:
                stage = self.program.stages[use.first]
                made[entry] = Place("inward" if stage.backwards else "outward", passing[use.first])
                passing[use.first] += 1
            else:
                kept.append(entry)
        return made | self._shared(kept, gathered)

    def _shared(self, kept: Sequence[Entry], gathered: set[Entry]) -> dict[Entry, Place]:
        """Places of entries that are kept: those of most roles first, then by time."""
        order = sorted(kept, key=lambda e: (-len(self._roles(e)), self.uses[e].first))
        users: list[list[Entry]] = []
        made = {}
        for entry in order:
            # what is gathered at the end shares with nothing
            open_ = (i for i, own in enumerate(users) if not gathered & {*own})
            free = (i for i in open_ if all(self._apart(entry, e) for e in users[i]))
            alone = entry in gathered
            i = len(users) if alone else next(free, len(users))
            if i == len(users):
                users.append([])
            users[i].append(entry)
            made[entry] = Place("kept", i)
        return made

    def _apart(self, a: Entry, b: Entry) -> bool:
        """Whether two entries may have one place: no thing has both, or not at once."""
        if not self._roles(a) & self._roles(b):
            return True
        x, y = sorted((self.uses[a], self.uses[b]), key=lambda use: (use.last, use.first))
        if x.last > y.first:
            return False
        return x.last < y.first or self._handed_over(x, y)

    def _handed_over(self, old: _Use, new: _Use) -> bool:
        """Whether in the stage where one ends and the other begins, no thing needs both.

        A step loads before it stores, and outward children come later, inward earlier.
        """
        stage = old.last
        if stage in old.from_afar | new.from_afar:
            return False
        before, after = old.at(stage), new.at(stage)
        stored = ("store", "own") in after and ("load", "own") not in after
        if self.program.stages[stage].backwards:
            return (
                stored and ("store", "own") not in before and {row for _, row in after} == {"own"}
            )
        return stored and before == {("load", "own")} and ("store", "parent") not in after

    def _roles(self, entry: Entry) -> set[int]:
        """The roles of the things that have a row with that entry."""
        count = max((len(stage.steps) for stage in self.program.stages), default=0)
        use = self.uses[entry]
        if use.by_children or use.from_afar:
            return set(range(count))
        return {role for role in range(count) if entry in self._own[role]}

    @cached_property
    def _own(self) -> list[set[Entry]]:
        """For each role the entries that its steps touch in the things' own rows."""
        stages = self.program.stages
        steps = zip(*(stage.steps for stage in stages), strict=True)
        climbs = zip(*(stage.climbs for stage in stages if stage.climbs), strict=True)
        return [
            {e for step in (*own, *chain(*inner)) for e, _, row in _touched(step) if row == "own"}
            for own, inner in zip_longest(steps, climbs, fillvalue=())
        ]

    @cached_property
    def areas(self) -> dict[str, Area]:
        """The areas that values are in, by name."""
        used = {place.area for place in self.places.values()}
        made = {
            "kept": self._kept(),
            GROUND: self._shared_by_all(),
            "outward": self._passing(False),
            "inward": self._passing(True),
        }
        made |= {f"result{slot}": self._result(begin) for slot, (begin, _) in self._results.items()}
        return {name: area for name, area in made.items() if name in used}

    @property
    def gathered(self) -> list[tuple[int, Place]]:
        """For results that are not where they belong: their number, and where they are instead."""
        begin = dict(zip((v.own for v in self.program.visits), self._kept().own, strict=True))
        # what belongs to no thing has no row
        begin[0] = 0
        found = []
        for i, (slot, row, entry) in enumerate(self.program.results):
            if slot not in self._results:
                area, at = self.places[slot, entry]
                found.append((i, Place(area, begin[row] + at)))
        return found

    def _shared_by_all(self) -> Area:
        """What belongs to no thing: the same place at every visit."""
        size = sum(place.area == GROUND for place in self.places.values())
        return Area([], [], 0, size)

    def _kept(self) -> Area:
        """A row for each thing and the ground, as wide as its role needs."""
        entries = [e for e, place in self.places.items() if place.area == "kept"]
        # of all roles, also where no sweep is left
        widths = [0] * max((visit.kind + 1 for visit in self.program.visits), default=0)
        for entry in entries:
            for role in self._roles(entry):
                widths[role] = max(widths[role], self.places[entry].at + 1)
        begin, size = {0: 0}, max(widths, default=0)
        for visit in self.program.visits:
            begin[visit.own] = size
            size += widths[visit.kind]
        own, parent = (
            [begin[getattr(v, row)] for v in self.program.visits] for row in ("own", "parent")
        )
        return Area(own, parent, 0, size)

    def _result(self, begin: dict[int, int]) -> Area:
        own = [begin[v.own] for v in self.program.visits]
        return Area(own, own, 0, 0)

    def _passing(self, backwards: bool) -> Area:
        """Rows that are used again as soon as a thing and all that touch it are done."""
        name = "inward" if backwards else "outward"
        width = 1 + max((p.at for p in self.places.values() if p.area == name), default=-1)
        visits = self.program.visits
        order = range(len(visits) - 1, -1, -1) if backwards else range(len(visits))
        ends: dict[int, int] = {}
        for time, i in enumerate(order):
            ends[visits[i].own] = ends[visits[i].parent] = time
        # row 0 is the ground's for good
        row, free, rows = {0: 0}, [], 1
        own, parent = [0] * len(visits), [0] * len(visits)
        for time, i in enumerate(order):
            for thing, column in ((visits[i].own, own), (visits[i].parent, parent)):
                if thing not in row:
                    if not free:
                        free, rows = [rows], rows + 1
                    row[thing] = free.pop()
                column[i] = width * row[thing]
            done = {visits[i].own, visits[i].parent} - {0}
            free += [row[thing] for thing in done if ends[thing] == time]
        return Area(own, parent, 0, width * rows)


def _touched(step: Step) -> list[tuple[Entry, str, str]]:
    """What a step loads and stores: entries, how, and in whose row."""
    loads = [((x.which, x.entry), "load", x.row) for x in step.used if x.kind == "slot"]
    stores = (s for s in step.stores if s.row != PAIR)
    return loads + [((s.slot, s.entry), "store", s.row) for s in stores]


def _uses(stages: Sequence[Stage]) -> dict[Entry, _Use]:
    ways: dict[Entry, set[tuple[int, str, str]]] = {}
    for i, stage in enumerate(stages):
        for step in stage.all_steps:
            for entry, way, row in _touched(step):
                ways.setdefault(entry, set()).add((i, way, row))
    return {entry: _Use(frozenset(found)) for entry, found in ways.items()}

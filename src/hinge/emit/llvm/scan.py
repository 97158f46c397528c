"""Time loops as LLVM text: a tile of samples goes through all steps before the next tile starts.

The states of a tile stay in the scratch memory, as vectors over its samples, from the first step to
the last.  A step loads its inputs, runs the bodies once for each stage, hands the new states on,
and now and then writes down its results.  One lane makes the same code for a single sample.
"""

from __future__ import annotations

from ...graph.scan import Scan
from ..layout import Layout
from .body import Flavor, bodies, constants, number_text
from .math import angles_loop, declarations
from .tiles import finite_sum, sums, tiles

__all__ = ["scan_parts"]


def scan_parts(scan: Scan, f: Flavor, strict: bool) -> tuple[Layout, list[str], list[str]]:
    """Where results go, the names of the bodies, and the texts that a module has of its own.

    strict: a sample with an argument or a state that is not finite is NaN from the next record on.
    """
    layout = Layout(scan.step)
    text, names, slots = bodies(layout, f, f)
    rows = tiles(f) if f.lanes > 1 else _rows_alone(f)
    parts = [declarations(f), angles_loop(f), text, rows, _moves(f)]
    parts += [_table(scan, f), sums(f)] if strict else [_table(scan, f)]
    loop = _Loop(scan, layout, f, strict)
    size = f"define i64 @workspace() #1 {{\n  ret i64 {(loop.scratch + slots) * f.bytes}\n}}\n"
    return layout, names, [*parts, loop.text(), size]


def _table(scan: Scan, f: Flavor) -> str:
    numbers = [f"{f.scalar} {number_text(x, f.scalar)}" for row in scan.stages for x in row]
    return f"@stages = internal constant [{len(numbers)} x {f.scalar}] [{', '.join(numbers)}]"


def _rows_alone(f: Flavor) -> str:
    """`pack` and `unpack` of one sample; the sum is not used here."""
    head = "ptr %base, i64 %stride, i64 %b, i64 %end, ptr %tile, i64 %n"
    lines = [
        f"define internal {f.type} @pack_{f.name}({head}, {f.type} %sum) #1 {{",
        "  %o = mul i64 %b, %stride",
        "  %row = getelementptr i8, ptr %base, i64 %o",
        f"  call void @splat_{f.name}(ptr %row, ptr %tile, i64 %n)",
        f"  ret {f.type} %sum\n}}",
        f"define internal {f.type} @unpack_{f.name}({head}, ptr %index, {f.type} %sum) #1 {{",
        "  %o = mul i64 %b, %stride",
        "  %row = getelementptr i8, ptr %base, i64 %o",
        f"  call void @take_{f.name}(ptr %tile, ptr %index, ptr %row, i64 %n)",
        f"  ret {f.type} %sum\n}}",
    ]
    return "\n".join(lines)


def _moves(f: Flavor) -> str:
    """`splat`: numbers to all lanes; `take`: values to their places; `fetch`: rows, or one row."""
    t = f.type
    spread = [f"  %v = bitcast {t} %x to {t}"]
    if f.lanes > 1:
        zeros = f"<{f.lanes} x i32> zeroinitializer"
        spread = [
            f"  %one = insertelement {t} poison, {f.scalar} %x, i32 0",
            f"  %v = shufflevector {t} %one, {t} poison, {zeros}",
        ]
    splat = [
        f"  %p = getelementptr {f.scalar}, ptr %from, i64 %j",
        f"  %x = load {f.scalar}, ptr %p",
    ]
    splat += [*spread, f"  %q = getelementptr {t}, ptr %to, i64 %j", f"  store {t} %v, ptr %q"]
    take = [
        "  %ip = getelementptr i32, ptr %index, i64 %j",
        "  %i = load i32, ptr %ip",
        "  %w = zext i32 %i to i64",
        f"  %p = getelementptr {t}, ptr %from, i64 %w",
        f"  %v = load {t}, ptr %p",
        f"  %q = getelementptr {t}, ptr %to, i64 %j",
        f"  store {t} %v, ptr %q",
    ]
    rows = "ptr %a, i64 %s, i64 %b, i64 %end, ptr %to, i64 %n"
    fetch = f"""
define internal void @fetch_{f.name}({rows}) #1 {{
  %same = icmp eq i64 %s, 0
  br i1 %same, label %one, label %many
one:
  call void @splat_{f.name}(ptr %a, ptr %to, i64 %n)
  ret void
many:
  %packed = call {t} @pack_{f.name}({rows}, {t} {f.const(0.0)})
  ret void
}}"""
    return (
        _entries(f"splat_{f.name}", "", splat)
        + _entries(f"take_{f.name}", "ptr %index, ", take)
        + fetch
    )


def _entries(name: str, more: str, lines: list[str]) -> str:
    """A loop over n entries."""
    head = f"define internal void @{name}(ptr noalias %from, {more}ptr noalias %to, i64 %n) #1"
    body = "\n".join(lines)
    return f"""{head} {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
{body}
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
"""


class _Loop:
    """void run(ptr arrays, ptr strides, ptr jumps, ptr plan, i64 begin, i64 end, ptr scratch).

    arrays: the addresses of all arguments, then of what is recorded; strides: bytes from a sample
    to the next; jumps: bytes from a step, or a record, to the next; plan: how many steps, every how
    many of them to record, after how many the first time.  The states are written back at the end.

    Two blocks of values take turns: the states are read from one (`now`) while results are written
    to the other (`out`), which the next stage reads.
    """

    def __init__(self, scan: Scan, layout: Layout, f: Flavor, strict: bool) -> None:
        self.scan, self.layout, self.f, self.strict = scan, layout, f, strict
        self.sizes = scan.step.input_sizes
        self.entries, at = [], 0
        for size in scan.step.output_sizes:
            self.entries.append(f"ptr getelementptr (i32, ptr @index, i64 {at})")
            at += size
        # a value that is two entries of the states, or a constant, has to be put in its places
        self.together = sum(self.sizes[: scan.states])
        self.in_place = layout.index[: self.together] == list(range(self.together))
        self.block = layout.size if self.in_place else max(self.together, layout.size)

    @property
    def scratch(self) -> int:
        """How many values `run` keeps besides the workspace of the bodies."""
        return sum(self.sizes[self.scan.states :]) + self.block * (2 if self.in_place else 3)

    def text(self) -> str:
        """The function: tile by tile."""
        scan, newline = self.scan, "\n"
        signature = "ptr %arrays, ptr %strides, ptr %jumps, ptr %plan, i64 %begin, i64 %end"
        later = range(scan.states + scan.inputs_per_step, len(scan.inputs))
        start = [self.fetched(i, f"%a{i}", "start") for i in range(scan.states)]
        start += [self.fetched(i, f"%a{i}", "in") for i in later]
        return f"""define void @run({signature}, ptr %scratch) #1 {{
entry:
{newline.join(self.head())}
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %tile, label %done
tile:
  %b = phi i64 [ %begin, %entry ], [ %b_next, %finish ]
{newline.join(start)}
  br label %time
{self.steps()}
finish:
{newline.join(self.unpacked(i, f"%a{i}", i) for i in range(scan.states))}
  %b_next = add i64 %b, {self.f.lanes}
  %rest = icmp slt i64 %b_next, %end
  br i1 %rest, label %tile, label %done
done:
  ret void
}}
"""

    def steps(self) -> str:
        """All steps of a tile."""
        scan, newline = self.scan, "\n"
        moving = range(scan.states, scan.states + scan.inputs_per_step)
        return f"""time:
  %i = phi i64 [ 0, %tile ], [ %i_next, %next ]
  %left = phi i64 [ %first, %tile ], [ %left_next, %next ]
  %row = phi i64 [ 0, %tile ], [ %row_next, %next ]
  %old = phi ptr [ %block0, %tile ], [ %new, %next ]
  %spare = phi ptr [ %block1, %tile ], [ %now, %next ]
{newline.join(self.moved(i) for i in moving)}
  br label %stage
{self.stages()}
stepped:
  %left_less = sub i64 %left, 1
  %due = icmp eq i64 %left_less, 0
  br i1 %due, label %record, label %next
record:
{newline.join(self.recorded())}
  br label %next
next:
  %left_next = select i1 %due, i64 %every, i64 %left_less
  %one = zext i1 %due to i64
  %row_next = add i64 %row, %one
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %steps
  br i1 %more, label %time, label %finish"""

    def stages(self) -> str:
        """All stages of a step."""
        names = [*(f"ptr %in{i}" for i in range(len(self.sizes))), "ptr %out", "ptr %ws"]
        newline = "\n"
        return f"""stage:
  %k = phi i64 [ 0, %time ], [ %k_next, %stage ]
  %now = phi ptr [ %old, %time ], [ %new, %stage ]
  %other = phi ptr [ %spare, %time ], [ %now, %stage ]
{newline.join([*self.states("now", "in"), *self.numbers()])}
  call void @all_{self.f.name}({", ".join(names)})
{newline.join(self.handed_on())}
  %k_next = add i64 %k, 1
  %again = icmp slt i64 %k_next, {len(self.scan.stages)}
  br i1 %again, label %stage, label %stepped"""

    def head(self) -> list[str]:
        """Addresses, strides, jumps, the plan."""
        lines, f, states = [], self.f, self.scan.states
        for i in range(len(self.scan.inputs) + len(self.scan.recorded)):
            for name, kind in (("arrays", "ptr"), ("strides", "i64"), ("jumps", "i64")):
                x = f"{name[0]}{i}"
                lines.append(f"  %p{x} = getelementptr {kind}, ptr %{name}, i64 {i}")
                lines.append(f"  %{x} = load {kind}, ptr %p{x}")
        sizes = {f"in{i}": size for i, size in enumerate(self.sizes) if i >= states}
        sizes |= {"block0": self.block, "block1": self.block}
        sizes |= {"ws": 0} if self.in_place else {"out": self.block, "ws": 0}
        offset = 0
        for name, size in sizes.items():
            lines.append(f"  %{name} = getelementptr i8, ptr %scratch, i64 {offset * f.bytes}")
            offset += size
        for i, name in enumerate(("steps", "every", "first")):
            lines.append(f"  %p_{name} = getelementptr i64, ptr %plan, i64 {i}")
            lines.append(f"  %{name} = load i64, ptr %p_{name}")
        return lines + self.states("block0", "start")

    def states(self, block: str, name: str) -> list[str]:
        """The addresses of the states in a block."""
        lines, offset = [], 0
        for i in range(self.scan.states):
            at = f"getelementptr i8, ptr %{block}, i64 {offset * self.f.bytes}"
            lines.append(f"  %{name}{i} = {at}")
            offset += self.sizes[i]
        # results go where the next states are read, or to a place of their own
        made = block == "now" and self.in_place
        return [*lines, "  %out = getelementptr i8, ptr %other, i64 0"] if made else lines

    def fetched(self, i: int, base: str, name: str) -> str:
        """Argument i of the tile."""
        rows = f"ptr {base}, i64 %s{i}, i64 %b, i64 %end, ptr %{name}{i}, i64 {self.sizes[i]}"
        return f"  call void @fetch_{self.f.name}({rows})"

    def moved(self, i: int) -> str:
        """Argument i, of this step."""
        lines = [
            f"  %o{i} = mul i64 %i, %j{i}",
            f"  %u{i} = getelementptr i8, ptr %a{i}, i64 %o{i}",
        ]
        return "\n".join([*lines, self.fetched(i, f"%u{i}", "in")])

    def numbers(self) -> list[str]:
        """The numbers of this stage."""
        if not self.scan.staged:
            return []
        i, n = len(self.sizes) - 1, self.sizes[-1]
        return [
            f"  %at = mul i64 %k, {n}",
            f"  %numbers = getelementptr {self.f.scalar}, ptr @stages, i64 %at",
            f"  call void @splat_{self.f.name}(ptr %numbers, ptr %in{i}, i64 {n})",
        ]

    def handed_on(self) -> list[str]:
        """The new states, for the next stage."""
        if self.in_place:
            return ["  %new = getelementptr i8, ptr %out, i64 0"]
        first = "ptr @index"
        call = f"call void @take_{self.f.name}(ptr %out, {first}, ptr %other, i64 {self.together})"
        lines = [*constants(self.layout, self.f, "const"), f"  {call}"]
        return [*lines, "  %new = getelementptr i8, ptr %other, i64 0"]

    def recorded(self) -> list[str]:
        """What a record takes."""
        f, layout = self.f, self.layout
        lines = constants(layout, f, "const") if self.in_place else []
        if self.strict:
            more, total = finite_sum(layout, f)
            call = f"call void @add_{f.name}(ptr %out, i64 {layout.varying}, {f.type} {total})"
            lines += [*more, f"  {call}", *constants(layout, f, "again", total)]
            if not self.in_place:
                places = f"ptr %out, ptr @index, ptr %new, i64 {self.together}"
                lines.append(f"  call void @take_{f.name}({places})")
        first = len(self.scan.inputs)
        for i, number in enumerate(self.scan.recorded, first):
            lines.append(f"  %o{i} = mul i64 %row, %j{i}")
            lines.append(f"  %u{i} = getelementptr i8, ptr %a{i}, i64 %o{i}")
            lines.append(self.unpacked(number, f"%u{i}", i))
        return lines

    def unpacked(self, result: int, base: str, array: int) -> str:
        """A result of the tile into rows of an array."""
        f, size = self.f, self.scan.step.output_sizes[result]
        rows = f"ptr {base}, i64 %s{array}, i64 %b, i64 %end, ptr %out, i64 {size}"
        given = f"{rows}, {self.entries[result]}, {f.type} {f.const(0.0)}"
        return f"  %unpacked{array} = call {f.type} @unpack_{f.name}({given})"

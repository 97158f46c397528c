"""Threads that help with batches, as machine code: a job is open to whoever comes in time.

`share` opens a job, takes part after part of the batch from a counter, and shuts the job when none
are left; helpers that find it open do the same.  Nobody waits for a helper that has not begun, so a
core that is busy elsewhere costs nothing.  A helper without a job looks out for one for a while, so
that calls in a row find it awake, then sleeps.  There is one job at a time: a second caller works
alone, as does a fork, which has the memory of the team but not its threads.

All is in one block of memory, each thing that threads race for on a line of its own:

    header    the address of share, how many helpers; how to take and how to free a lock, and how
              to let another thread have the core
    slot      0, or 1 while somebody has a job
    gate      helpers at work, places left, whether the job is open, whether its owner sleeps
    next      the first sample that nobody has taken
    job       run, arrays, strides, samples, samples of a part, scratch, bytes of scratch, lock
    helpers   one line each: whether it sleeps, its lock, the block
"""

from __future__ import annotations

import platform

__all__ = ["HEADER", "HELPER", "JOB", "LINE", "LOCK", "team_text"]

LINE = 64
HEADER, SLOT, GATE, NEXT, JOB, HELPER = (LINE * i for i in range(6))
# the lock of the owner of a job is the last word of its line
LOCK = JOB + 56

_PLACE, _OPEN, _WAITING = 1 << 16, 1 << 32, 1 << 33
_COUNT = _PLACE - 1
# how often to look before sleeping: 20 to 100 µs, others being let by every so many times
_LOOKS, _POLITE = 1600, 16
# parts of a batch per thread: few enough to cost nothing, many enough to end together
_PARTS = 16

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}
_ALIASES = {"AMD64": "x86_64", "arm64": "aarch64"}


def team_text() -> str:
    """The module: `share` for callers, `help` for helpers."""
    machine = platform.machine()
    declaration, pause = _PAUSES.get(_ALIASES.get(machine, machine), ("", ""))
    rest = f"""define internal void @rest(ptr %team, i64 %i) #0 {{
  {pause}
  %turn = and i64 %i, {_POLITE - 1}
  %mine = icmp ne i64 %turn, 0
  br i1 %mine, label %done, label %others
others:
{_load("yield", "%team", HEADER + 32, "ptr")}
  %ignored = call i32 %yield()
  br label %done
done:
  ret void
}}
"""
    head = f"""declare i64 @llvm.smin.i64(i64, i64)
{declaration}
attributes #0 = {{ nounwind }}
"""
    return "\n".join([head, rest, _parts(), _wake(), _close(), _share(), _help()])


def _at(name: str, base: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr {base}, i64 {offset}"


def _load(name: str, base: str, offset: int, kind: str) -> str:
    return f"{_at(f'{name}_at', base, offset)}\n  %{name} = load {kind}, ptr %{name}_at"


def _parts() -> str:
    """Part after part of the open job, then shut it."""
    fields = {"run": "ptr", "arrays": "ptr", "strides": "ptr", "n": "i64", "step": "i64"}
    loads = "\n".join(_load(k, "%team", JOB + 8 * i, v) for i, (k, v) in enumerate(fields.items()))
    return f"""define internal void @parts(ptr %team, ptr %scratch) #0 {{
entry:
{loads}
{_at("next", "%team", NEXT)}
{_at("gate", "%team", GATE)}
  br label %head
head:
  %begin = atomicrmw add ptr %next, i64 %step monotonic
  %some = icmp slt i64 %begin, %n
  br i1 %some, label %part, label %over
part:
  %past = add i64 %begin, %step
  %end = call i64 @llvm.smin.i64(i64 %past, i64 %n)
  call void %run(ptr %arrays, ptr %strides, i64 %begin, i64 %end, ptr %scratch)
  br label %head
over:
  %before = atomicrmw and ptr %gate, i64 {~_OPEN} acq_rel
  ret void
}}
"""


def _wake() -> str:
    """Wake those of the first so many helpers that sleep."""
    return f"""define internal void @wake(ptr %team, i64 %count) #0 {{
entry:
{_load("free", "%team", HEADER + 24, "ptr")}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %in, %on ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %o = mul i64 %i, {LINE}
{_at("first", "%team", HELPER)}
  %own = getelementptr i8, ptr %first, i64 %o
  %seen = load atomic i64, ptr %own seq_cst, align 8
  %awake = icmp eq i64 %seen, 0
  br i1 %awake, label %on, label %claim
claim:
  %was = atomicrmw xchg ptr %own, i64 0 seq_cst
  %late = icmp eq i64 %was, 0
  br i1 %late, label %on, label %call
call:
{_load("lock", "%own", 8, "ptr")}
  call void %free(ptr %lock)
  br label %on
on:
  %in = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


def _close() -> str:
    """Wait until no helper is at work on a job that is shut: a moment awake, then asleep."""
    return f"""define internal void @close(ptr %team) #0 {{
entry:
{_at("gate", "%team", GATE)}
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %in, %again ]
  %g = load atomic i64, ptr %gate acquire, align 8
  %at_work = and i64 %g, {_COUNT}
  %none = icmp eq i64 %at_work, 0
  br i1 %none, label %done, label %idle
idle:
  %in = add i64 %i, 1
  %soon = icmp slt i64 %in, {_LOOKS}
  br i1 %soon, label %again, label %sleep
again:
  call void @rest(ptr %team, i64 %in)
  br label %look
sleep:
  %was = atomicrmw or ptr %gate, i64 {_WAITING} acq_rel
  %still = and i64 %was, {_COUNT}
  %over = icmp eq i64 %still, 0
  br i1 %over, label %done, label %wait
wait:
{_load("take", "%team", HEADER + 16, "ptr")}
{_load("lock", "%team", LOCK, "ptr")}
  %taken = call i32 %take(ptr %lock, i32 1)
  br label %done
done:
  ret void
}}
"""


def _share() -> str:
    """A batch with at most so many helpers; scratch: one area for each and one for the caller."""
    batch = "ptr %run, ptr %arrays, ptr %strides, i64 %n"
    fields = [*batch.split(", "), "i64 %step", "ptr %scratch", "i64 %bytes"]
    stores = "\n".join(
        f"{_at(f'field{i}', '%team', JOB + 8 * i)}\n  store {field}, ptr %field{i}"
        for i, field in enumerate(fields)
    )
    rest = "ptr %scratch, i64 %bytes, i64 %wanted, i64 %grain"
    return f"""define void @share(ptr %team, {batch}, {rest}) #0 {{
{_at("slot", "%team", SLOT)}
  %pair = cmpxchg ptr %slot, i64 0, i64 1 acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %open, label %alone
alone:
  call void %run(ptr %arrays, ptr %strides, i64 0, i64 %n, ptr %scratch)
  ret void
open:
{_load("size", "%team", HEADER + 8, "i64")}
  %helpers = call i64 @llvm.smin.i64(i64 %wanted, i64 %size)
  %threads = add i64 %helpers, 1
  %parts = mul i64 %threads, {_PARTS}
  %grains = mul i64 %parts, %grain
  %more = add i64 %n, %grains
  %up = sub i64 %more, 1
  %times = sdiv i64 %up, %grains
  %step = mul i64 %times, %grain
{stores}
{_at("next", "%team", NEXT)}
  store atomic i64 0, ptr %next monotonic, align 8
  %places = mul i64 %helpers, {_PLACE}
  %opened = or i64 %places, {_OPEN}
{_at("gate", "%team", GATE)}
  store atomic i64 %opened, ptr %gate seq_cst, align 8
  call void @wake(ptr %team, i64 %helpers)
  call void @parts(ptr %team, ptr %scratch)
  call void @close(ptr %team)
  store atomic i64 0, ptr %slot release, align 8
  ret void
}}
"""


def _has_place(name: str, gate: str) -> str:
    """Whether a job is open and has a place left: the first bit above the places tells."""
    return f"""  %{name}_no_count = and i64 {gate}, {_WAITING - _PLACE}
  %{name} = icmp sgt i64 %{name}_no_count, {_OPEN}"""


def _help() -> str:
    """What a helper does all its life."""
    return f"""define void @help(ptr %own) #0 {{
entry:
{_load("team", "%own", 16, "ptr")}
{_load("take", "%team", HEADER + 16, "ptr")}
{_load("free", "%team", HEADER + 24, "ptr")}
{_load("lock", "%own", 8, "ptr")}
{_load("owner", "%team", LOCK, "ptr")}
{_at("gate", "%team", GATE)}
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %in, %again ], [ 0, %join ], [ 0, %leave ], [ 0, %tell ], [ 0, %up ]
  %g = load atomic i64, ptr %gate seq_cst, align 8
{_has_place("place", "%g")}
  br i1 %place, label %join, label %idle
{_helping()}
idle:
  %in = add i64 %i, 1
  %soon = icmp slt i64 %in, {_LOOKS}
  br i1 %soon, label %again, label %sleep
again:
  call void @rest(ptr %team, i64 %in)
  br label %look
sleep:
  ; whoever opens a job from here on sees that this one sleeps; one opened before is seen here
  store atomic i64 1, ptr %own seq_cst, align 8
  %h = load atomic i64, ptr %gate seq_cst, align 8
{_has_place("late", "%h")}
  br i1 %late, label %back, label %wait
back:
  %was = atomicrmw xchg ptr %own, i64 0 seq_cst
  %unseen = icmp eq i64 %was, 1
  br i1 %unseen, label %up, label %wait
wait:
  %taken = call i32 %take(ptr %lock, i32 1)
  br label %up
up:
  br label %look
}}
"""


def _helping() -> str:
    """From a place that was seen to the end of the job; the last one out tells who waits for it."""
    return f"""join:
  %left = sub i64 %g, {_PLACE - 1}
  %pair = cmpxchg ptr %gate, i64 %g, i64 %left acq_rel monotonic
  %in_time = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %in_time, label %work, label %look
work:
  %places = lshr i64 %g, 16
  %number = and i64 %places, {_COUNT}
{_load("scratch", "%team", JOB + 40, "ptr")}
{_load("bytes", "%team", JOB + 48, "i64")}
  %o = mul i64 %number, %bytes
  %area = getelementptr i8, ptr %scratch, i64 %o
  call void @parts(ptr %team, ptr %area)
  br label %leave_
leave_:
  %before = atomicrmw sub ptr %gate, i64 1 acq_rel
  %who = and i64 %before, {_WAITING + _COUNT}
  %last = icmp eq i64 %who, {_WAITING + 1}
  br i1 %last, label %tell, label %leave
tell:
  call void %free(ptr %owner)
  br label %look
leave:
  br label %look"""

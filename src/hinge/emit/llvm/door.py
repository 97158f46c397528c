"""The door of a method as machine code: every spelling of a call, sorted out and handed on.

A method has parameters p₀ … p₍ₙ₋₁₎: arrays, and other arguments such as names of frames.  Which
kernel answers a call depends on which arrays are given and on what the others are.  The answers
known so far stand in a table: for each, what every parameter has to be (an array, or one certain
object), which of them are the arguments of the kernel, and the kernel's function with its own
`self`.  The door puts what it is given, by place or by name, in the order of the parameters, fills
in defaults, looks for an answer and calls its function as Python would.  What it does not know goes
to the Python callable that is the first item of `self`; the second is an array with the table.

    word   0        1     2        3        4             5 …
           count    out   answers  direct   first answer  names (count), defaults (count), answers

An answer is: function, self, number of arrays, their parameters (ROOM), what is wanted of each
parameter (ROOM; 0: anything but None).  direct: so many arguments, none by name, are the arrays of
the first answer.  out: the parameter of that name, or −1.
"""

from __future__ import annotations

__all__ = ["ANSWER", "HEAD", "MOST_ANSWERS", "ROOM", "door_text"]

# parameters of a method, answers of a door, words before the names, words of an answer
ROOM, MOST_ANSWERS, HEAD = 24, 8, 5
ANSWER = 3 + 2 * ROOM

_DECLARATIONS = """
@hinge_none = external global i8
@hinge_out_names = external global i8
declare i64 @hinge_size(ptr)
declare ptr @hinge_item(ptr, i64)
declare ptr @hinge_vectorcall(ptr, ptr, i64, ptr)
attributes #0 = { nounwind }
"""


def door_text() -> str:
    """The module: `door`, and the loops it is made of."""
    return "\n".join([_DECLARATIONS, _word(), _placed(), _named(), _filled(), _fits(), _door()])


def _word() -> str:
    return """define internal i64 @word(ptr %table, i64 %i) alwaysinline #0 {
  %p = getelementptr i64, ptr %table, i64 %i
  %w = load i64, ptr %p
  ret i64 %w
}
"""


def _loop(count: str, body: str) -> str:
    """`body` for i below the count; it ends by going on to `next`."""
    return f"""  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %in, %next ]
  %more = icmp slt i64 %i, {count}
  br i1 %more, label %body, label %done
body:
{body}
next:
  %in = add i64 %i, 1
  br label %head"""


def _placed() -> str:
    """Arguments by place, and nothing in the other slots."""
    body = """  %here = icmp slt i64 %i, %given
  br i1 %here, label %take, label %leave
take:
  %pa = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %pa
  br label %put
leave:
  br label %put
put:
  %x = phi ptr [ %a, %take ], [ null, %leave ]
  %ps = getelementptr ptr, ptr %slots, i64 %i
  store ptr %x, ptr %ps
  br label %next"""
    return f"""define internal void @placed(ptr %args, i64 %given, ptr %slots, i64 %count) #0 {{
entry:
{_loop("%count", body)}
done:
  ret void
}}
"""


def _named() -> str:
    """One argument by name; whether there is such a parameter, not taken yet."""
    body = f"""  %at = add i64 %i, {HEAD}
  %known = call i64 @word(ptr %table, i64 %at)
  %same = icmp eq i64 %known, %key
  br i1 %same, label %found, label %next"""
    return f"""define internal i1 @named(ptr %table, i64 %key, ptr %x, ptr %slots, i64 %count) #0 {{
entry:
{_loop("%count", body)}
found:
  %ps = getelementptr ptr, ptr %slots, i64 %i
  %old = load ptr, ptr %ps
  %free = icmp eq ptr %old, null
  store ptr %x, ptr %ps
  ret i1 %free
done:
  ret i1 false
}}
"""


def _filled() -> str:
    """Defaults where nothing is given; whether everything is there then."""
    body = f"""  %ps = getelementptr ptr, ptr %slots, i64 %i
  %old = load ptr, ptr %ps
  %set = icmp ne ptr %old, null
  br i1 %set, label %next, label %default
default:
  %names = add i64 %count, {HEAD}
  %at = add i64 %names, %i
  %w = call i64 @word(ptr %table, i64 %at)
  %x = inttoptr i64 %w to ptr
  store ptr %x, ptr %ps
  %none = icmp eq i64 %w, 0
  br i1 %none, label %missing, label %next"""
    return f"""define internal i1 @filled(ptr %table, ptr %slots, i64 %count) #0 {{
entry:
{_loop("%count", body)}
missing:
  ret i1 false
done:
  ret i1 true
}}
"""


def _fits() -> str:
    """Whether the slots are what an answer wants."""
    body = f"""  %pw = getelementptr i64, ptr %answer, i64 %i
  %pww = getelementptr i64, ptr %pw, i64 {3 + ROOM}
  %wanted = load i64, ptr %pww
  %ps = getelementptr ptr, ptr %slots, i64 %i
  %x = load ptr, ptr %ps
  %n = ptrtoint ptr %x to i64
  %same = icmp eq i64 %n, %wanted
  %any = icmp eq i64 %wanted, 0
  %some = icmp ne ptr %x, @hinge_none
  %array = and i1 %any, %some
  %good = or i1 %same, %array
  %out = icmp eq i64 %i, %out_slot
  %fine = or i1 %good, %out
  br i1 %fine, label %next, label %bad"""
    return f"""define internal i1 @fits(ptr %answer, ptr %slots, i64 %count, i64 %out_slot) #0 {{
entry:
{_loop("%count", body)}
bad:
  ret i1 false
done:
  ret i1 true
}}
"""


def _door() -> str:
    """The door itself."""
    return f"""define ptr @door(ptr %self, ptr %args, i64 %nargs, ptr %names) #0 {{
entry:
  %slots = alloca [{ROOM} x ptr]
  %handed = alloca [{ROOM + 1} x ptr]
  %array = call ptr @hinge_item(ptr %self, i64 1)
  %pt = getelementptr i8, ptr %array, i64 16
  %table = load ptr, ptr %pt
  %first_at = call i64 @word(ptr %table, i64 4)
{_DIRECT}
{_SORT}
{_LOOK}
{_HAND_ON}
otherwise:
  %python = call ptr @hinge_item(ptr %self, i64 0)
  %other = call ptr @hinge_vectorcall(ptr %python, ptr %args, i64 %nargs, ptr %names)
  ret ptr %other
}}
"""


# the arguments are those of the first answer: no need to look at them
_DIRECT = """  %direct = call i64 @word(ptr %table, i64 3)
  %plain = icmp eq i64 %direct, %nargs
  %unnamed = icmp eq ptr %names, null
  %straight = and i1 %plain, %unnamed
  br i1 %straight, label %on, label %sort
on:
  %pf = getelementptr i64, ptr %table, i64 %first_at
  %f = load ptr, ptr %pf
  %po = getelementptr ptr, ptr %pf, i64 1
  %o = load ptr, ptr %po
  %r0 = tail call ptr %f(ptr %o, ptr %args, i64 %nargs, ptr null)
  ret ptr %r0"""

# into the order of the parameters, by place, then by name, then defaults
_SORT = """sort:
  %count = call i64 @word(ptr %table, i64 0)
  %out_slot = call i64 @word(ptr %table, i64 1)
  %answers = call i64 @word(ptr %table, i64 2)
  %too_many = icmp sgt i64 %nargs, %count
  br i1 %too_many, label %otherwise, label %place
place:
  call void @placed(ptr %args, i64 %nargs, ptr %slots, i64 %count)
  br i1 %unnamed, label %fill, label %keys
keys:
  %nk = call i64 @hinge_size(ptr %names)
  br label %key_head
key_head:
  %j = phi i64 [ 0, %keys ], [ %jn, %key_put ]
  %key_more = icmp slt i64 %j, %nk
  br i1 %key_more, label %key, label %fill
key:
  %name = call ptr @hinge_item(ptr %names, i64 %j)
  %key_n = ptrtoint ptr %name to i64
  %ia = add i64 %nargs, %j
  %pa = getelementptr ptr, ptr %args, i64 %ia
  %a = load ptr, ptr %pa
  %jn = add i64 %j, 1
  %put = call i1 @named(ptr %table, i64 %key_n, ptr %a, ptr %slots, i64 %count)
  br i1 %put, label %key_put, label %otherwise
key_put:
  br label %key_head
fill:
  %complete = call i1 @filled(ptr %table, ptr %slots, i64 %count)
  br i1 %complete, label %look, label %otherwise"""

# the first answer that fits
_LOOK = f"""look:
  %v = phi i64 [ 0, %fill ], [ %vn, %no ]
  %at = phi i64 [ %first_at, %fill ], [ %atn, %no ]
  %known = icmp slt i64 %v, %answers
  br i1 %known, label %try, label %otherwise
try:
  %answer = getelementptr i64, ptr %table, i64 %at
  %fit = call i1 @fits(ptr %answer, ptr %slots, i64 %count, i64 %out_slot)
  br i1 %fit, label %yes, label %no
no:
  %vn = add i64 %v, 1
  %atn = add i64 %at, {ANSWER}
  br label %look"""

# its arrays in their order, and out by name if it is given
_HAND_ON = """yes:
  %n = call i64 @word(ptr %answer, i64 2)
  br label %hand_head
hand_head:
  %k = phi i64 [ 0, %yes ], [ %kn, %hand ]
  %hand_more = icmp slt i64 %k, %n
  br i1 %hand_more, label %hand, label %handed_on
hand:
  %kk = add i64 %k, 3
  %slot = call i64 @word(ptr %answer, i64 %kk)
  %ps = getelementptr ptr, ptr %slots, i64 %slot
  %x = load ptr, ptr %ps
  %ph = getelementptr ptr, ptr %handed, i64 %k
  store ptr %x, ptr %ph
  %kn = add i64 %k, 1
  br label %hand_head
handed_on:
  %function = load ptr, ptr %answer
  %powner = getelementptr ptr, ptr %answer, i64 1
  %owner = load ptr, ptr %powner
  %takes_out = icmp sge i64 %out_slot, 0
  br i1 %takes_out, label %look_out, label %call
look_out:
  %pso = getelementptr ptr, ptr %slots, i64 %out_slot
  %xo = load ptr, ptr %pso
  %no_out = icmp eq ptr %xo, @hinge_none
  br i1 %no_out, label %call, label %with_out
with_out:
  %pho = getelementptr ptr, ptr %handed, i64 %n
  store ptr %xo, ptr %pho
  br label %call
call:
  %keys_on = phi ptr [ null, %handed_on ], [ null, %look_out ], [ @hinge_out_names, %with_out ]
  %r = call ptr %function(ptr %owner, ptr %handed, i64 %n, ptr %keys_on)
  ret ptr %r"""

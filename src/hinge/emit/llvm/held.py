"""Linear models of a motion whose force is held during a step, as machine code with loops.

Of ẋ = X x + Y u, x = (δq, δq̇), for a step of length 1 (dt is taken into X and Y):

    e^X − 1 and φ₁(X) Y   are   Σₖ Xᵏ Z / (k+1)!,   Z = [X Y]                                   (1)

taken to degree 16 in blocks of four powers, after X and Y are halved until |X| ≤ θ, then doubled:

    T ← 2 T + F T,   F = e^X − 1, the first columns of T = [F, φ₁ Y]                            (2)

Six products of 2 nv rows and 3 nv columns, one more for every doubling.  Rows are padded to fours
and columns to whole vectors, with zeros.  θ: Al-Mohy and Higham, "Computing the action of the
matrix exponential", 2011, table 3.1.
"""

from __future__ import annotations

from math import factorial

from .builder import HEAD, Function, Value, i64
from .flavor import Flavor
from .python import CALL, data

__all__ = ["BUFFERS", "LINE", "ROWS", "held_text"]

# rows that are worked on together; matrices in the workspace, which begin with a line of so many
# bytes
ROWS, BUFFERS, LINE = 4, 7, 64
_THETA, _MOST_HALVINGS = 0.75, 60
_BLOCK = 4
_NAN = Value("double", "0x7FF8000000000000")

_PYTHON = """declare ptr @hinge_unlock()
declare void @hinge_lock(ptr)
declare ptr @hinge_from_number(i64)
"""
_MATH = "declare double @llvm.fabs.f64(double)"


def held_text(f: Flavor, python: bool) -> str:
    """The module: `held` on addresses, and `held_call` on arrays if Python may call it."""
    declared = _PYTHON + _MATH if python else _MATH
    parts = [HEAD, declared, _product(f), _combined(f), _scaled(f)]
    parts += [_filled(), _norm(), _written(), _spoilt(), _exponential(f), _held(f)]
    return "\n".join([*parts, _call()] if python else parts)


def _plus_product(fn: Function, total: Value, a: Value, b: Value) -> Value:
    return fn.op("fadd contract", total, fn.op("fmul contract", a, b))


def _product(f: Flavor) -> str:
    """C = w G + F T, four rows at a time; inner: columns of F that count."""
    shape = ("i64 rows", "i64 inner", "i64 vectors")
    fn = Function("product", "void", "ptr C", "ptr F", "ptr T", "ptr G", "double w", *shape)
    C, F, T, G, w, rows, inner, vectors = fn.parameters
    weight, width = f.spread(fn, w), fn.op("mul", vectors, f.lanes)
    with fn.count(0, rows, ROWS) as i:
        starts = [fn.op("mul", fn.op("add", i.i, r), vectors) for r in range(ROWS)]
        scalars = [fn.op("mul", fn.op("add", i.i, r), width) for r in range(ROWS)]
        with fn.count(0, vectors) as v:
            places = [fn.op("add", s, v.i) for s in starts]
            begin = [fn.op("fmul", weight, fn.entry(f.type, G, p)) for p in places]
            with fn.count(0, inner, carried=begin) as k:
                b = fn.entry(f.type, T, fn.op("add", fn.op("mul", k.i, vectors), v.i))
                a = [fn.entry("double", F, fn.op("add", s, k.i)) for s in scalars]
                pairs = zip(k.carried, a, strict=True)
                k.next = [_plus_product(fn, t, f.spread(fn, x), b) for t, x in pairs]
            for p, total in zip(places, k.carried, strict=True):
                fn.put(total, C, p)
    return fn.ret().text()


def _combined(f: Flavor) -> str:
    """Q = Σ c Z over the four powers; at: where their coefficients begin."""
    names = ("ptr Q", "ptr Z0", "ptr Z1", "ptr Z2", "ptr Z3", "i64 at", "i64 size")
    fn = Function("combined", "void", *names)
    Q, *powers, at, size = fn.parameters
    table = Value("ptr", "@coefficients")
    c = [f.spread(fn, fn.entry("double", table, fn.op("add", at, j))) for j in range(_BLOCK)]
    with fn.count(0, size) as i:
        total = f.value(0.0)
        for weight, Z in zip(c, powers, strict=True):
            total = _plus_product(fn, total, weight, fn.entry(f.type, Z, i.i))
        fn.put(total, Q, i.i)
    numbers = ", ".join(f"double {1 / factorial(k + 1)!r}" for k in range(_BLOCK * _BLOCK))
    constant = f"@coefficients = internal constant [{_BLOCK * _BLOCK} x double] [{numbers}]"
    return f"{constant}\n{fn.ret().text()}"


def _scaled(f: Flavor) -> str:
    """Z = s Z."""
    fn = Function("scaled", "void", "ptr Z", "double s", "i64 size")
    Z, s, size = fn.parameters
    factor = f.spread(fn, s)
    with fn.count(0, size) as i:
        fn.put(fn.op("fmul", factor, fn.entry(f.type, Z, i.i)), Z, i.i)
    return fn.ret().text()


def _filled() -> str:
    """A square block of Z, from a matrix (n, n), times dt."""
    fn = Function("filled", "void", "ptr Z", "i64 width", "ptr M", "i64 n", "double dt")
    Z, width, M, n, dt = fn.parameters
    with fn.count(0, n) as i:
        source, target = fn.op("mul", i.i, n), fn.op("mul", i.i, width)
        with fn.count(0, n) as j:
            x = fn.op("fmul", dt, fn.entry("double", M, fn.op("add", source, j.i)))
            fn.put(x, Z, fn.op("add", target, j.i))
    return fn.ret().text()


def _norm() -> str:
    """The largest sum of magnitudes in a row, of the first columns."""
    fn = Function("norm", "double", "ptr Z", "i64 width", "i64 columns")
    Z, width, columns = fn.parameters
    with fn.count(0, columns, carried=[Value("double", "0.0")]) as i:
        row = fn.op("mul", i.i, width)
        with fn.count(0, columns, carried=[Value("double", "0.0")]) as j:
            x = fn.entry("double", Z, fn.op("add", row, j.i))
            size = fn.call("llvm.fabs.f64", x, result="double")
            j.next = [fn.op("fadd", j.carried[0], size)]
        # what is not a number stays
        larger = fn.compare("fcmp ugt", j.carried[0], i.carried[0])
        i.next = [fn.select(larger, j.carried[0], i.carried[0])]
    return fn.ret(i.carried[0]).text()


def _written() -> str:
    """A block of T as a matrix with so many columns, with something added on the diagonal.

    Returns what is 0 if all its entries are finite, and NaN if not.
    """
    places = ("ptr T", "i64 width", "ptr M", "i64 rows", "i64 columns", "double plus")
    fn = Function("written", "double", *places)
    T, width, M, rows, columns, plus = fn.parameters
    with fn.count(0, rows, carried=[Value("double", "0.0")]) as i:
        source, target = fn.op("mul", i.i, width), fn.op("mul", i.i, columns)
        with fn.count(0, columns, carried=list(i.carried)) as j:
            x = fn.entry("double", T, fn.op("add", source, j.i))
            fn.put(x, M, fn.op("add", target, j.i))
            j.next = [fn.op("fadd", j.carried[0], fn.op("fsub", x, x))]
        at = fn.op("add", target, i.i)
        with fn.when(fn.compare("fcmp une", plus, Value("double", "0.0"))):
            fn.put(fn.op("fadd", plus, fn.entry("double", M, at)), M, at)
        i.next = list(j.carried)
    return fn.ret(i.carried[0]).text()


def _spoilt() -> str:
    """Nothing but NaN."""
    fn = Function("spoilt", "void", "ptr M", "i64 size")
    M, size = fn.parameters
    with fn.count(0, size) as i:
        fn.put(_NAN, M, i.i)
    return fn.ret().text()


def _exponential(f: Flavor) -> str:
    """[e^X − 1, φ₁(X) Y] from Z = [X Y], in the workspace behind it; where it is."""
    shape = ("i64 rows", "i64 inner", "i64 vectors")
    fn = Function("exponential", "ptr", "ptr ws", *shape)
    ws, rows, inner, vectors = fn.parameters
    size = fn.op("mul", rows, vectors)
    Z = [fn.at(ws, fn.op("mul", size, k), f.type) for k in range(BUFFERS)]
    width, double = fn.op("mul", vectors, f.lanes), lambda x: Value("double", repr(x))
    norm = fn.call("norm", Z[0], width, inner, result="double")
    with fn.loop(norm, double(1.0), i64(0)) as halving:
        left, scale, count = halving.carried
        large = fn.compare("fcmp ogt", left, double(_THETA))
        some = fn.compare("icmp slt", count, _MOST_HALVINGS)
        fn.stay(halving, fn.op("and", large, some))
        halves = [fn.op("fmul", x, double(0.5)) for x in (left, scale)]
        halving.next = [*halves, fn.op("add", count, 1)]
    sound = fn.compare("fcmp ole", halving.carried[0], double(_THETA))
    fn.call("scaled", Z[0], fn.select(sound, halving.carried[1], _NAN), size)
    grid = (rows, inner, vectors)
    for k in range(1, _BLOCK):
        fn.call("product", Z[k], Z[0], Z[k - 1], Z[0], double(0.0), *grid)
    Q, T, U = Z[_BLOCK:]
    fn.call("combined", T, *Z[:_BLOCK], i64(_BLOCK * (_BLOCK - 1)), size)
    for j in reversed(range(_BLOCK - 1)):
        fn.call("combined", Q, *Z[:_BLOCK], i64(_BLOCK * j), size)
        fn.call("product", U, Z[_BLOCK - 1], T, Q, double(1.0), *grid)
        T, U = U, T
    with fn.count(0, halving.carried[2], carried=[T, U]) as k:
        now, other = k.carried
        fn.call("product", other, now, now, now, double(2.0), *grid)
        k.next = [other, now]
    return fn.ret(k.carried[0]).text()


def _held(f: Flavor) -> str:
    """One sample after the other; without a step (dt = 0) Z itself is the model.

    Returns how many samples have no finite model: they are NaN.
    """
    arrays = ("ptr dq", "ptr dqd", "ptr dtau", "ptr drift", "ptr A", "ptr B", "ptr ws")
    fn = Function("held", "i64", *arrays, "ptr sizes", "ptr step", linkage="")
    dq, dqd, dtau, drift, A, B, given, sizes, step = fn.parameters
    number = fn.cast("ptrtoint", given, "i64")
    ws = fn.at(given, fn.op("and", fn.op("sub", i64(0), number), LINE - 1))
    names = ("n", "samples", "rows", "vectors", "drifts")
    n, samples, rows, vectors, drifts = (fn.entry("i64", sizes, k) for k in range(len(names)))
    dt, zero = fn.entry("double", step, 0), Value("double", "0.0")
    continuous = fn.compare("fcmp oeq", dt, zero)
    scale = fn.select(continuous, Value("double", "1.0"), dt)
    plus = fn.select(continuous, zero, Value("double", "1.0"))
    both, square = fn.op("mul", n, 2), fn.op("mul", n, n)
    width = fn.op("mul", vectors, f.lanes)
    with fn.count(0, samples, carried=[i64(0)]) as s:
        at = fn.op("mul", s.i, square)
        here = [fn.at(M, at, "double") for M in (dq, dqd, dtau, drift)]
        _fill(fn, f, ws, here, (n, rows, vectors, drifts), scale)
        with fn.when(fn.op("xor", continuous, 1)) as stepped:
            found = fn.call("exponential", ws, rows, both, vectors, result="ptr")
        T = fn.merged(stepped, found, ws)
        own = [fn.at(M, fn.op("mul", at, k), "double") for M, k in ((A, 4), (B, 2))]
        sizes_of = [fn.op("mul", square, k) for k in (4, 2)]
        left = fn.call("written", T, width, own[0], both, both, plus, result="double")
        rest = fn.at(T, both, "double")
        right = fn.call("written", rest, width, own[1], both, n, zero, result="double")
        bad = fn.compare("fcmp uno", left, right)
        with fn.when(bad):
            for M, size in zip(own, sizes_of, strict=True):
                fn.call("spoilt", M, size)
        s.next = [fn.op("add", s.carried[0], fn.cast("zext", bad, "i64"))]
    return fn.ret(s.carried[0]).text()


def _fill(
    fn: Function,
    f: Flavor,
    Z: Value,
    blocks: list[Value],
    sizes: tuple[Value, Value, Value, Value],
    scale: Value,
) -> None:
    """Z = [drift 1 0; dq dqd dtau], times the scale."""
    n, rows, vectors, drifts = sizes
    width = fn.op("mul", vectors, f.lanes)
    with fn.count(0, fn.op("mul", rows, vectors)) as i:
        fn.put(f.value(0.0), Z, i.i)
    lower = fn.op("mul", n, width)
    for k, M in enumerate(blocks[:3]):
        corner = fn.op("add", lower, fn.op("mul", n, k))
        fn.call("filled", fn.at(Z, corner, "double"), width, M, n, scale)
    with fn.when(fn.compare("icmp ne", drifts, 0)):
        fn.call("filled", Z, width, blocks[3], n, scale)
    with fn.count(0, n) as i:
        fn.put(scale, Z, fn.op("add", fn.op("mul", i.i, width), fn.op("add", n, i.i)))


def _call() -> str:
    """`held` as Python calls it, with arrays whose numbers are where they should be."""
    fn = Function("held_call", "ptr", *CALL, linkage="")
    args = fn.parameters[1]
    places = [data(fn, fn.entry("ptr", args, k)) for k in range(9)]
    thread = fn.call("hinge_unlock", result="ptr")
    bad = fn.call("held", *places, result="i64")
    fn.call("hinge_lock", thread)
    return fn.ret(fn.call("hinge_from_number", bad, result="ptr")).text()

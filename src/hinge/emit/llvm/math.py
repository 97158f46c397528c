"""Sine and cosine as LLVM text, for any number of lanes.

Cody–Waite reduction by π/2 in three parts (four for float), their products exact for |x| below
2²⁰ π/2 (2¹² π/2), then fdlibm's polynomials on [−π/4, π/4] with the tail of the reduced argument:
at most 1.5 ulp.  With fused multiply-add the parts of π/2 have all their bits, x − n p₁ is exact,
and the tail, below half an ulp, is let go: half as many operations, and 1.4 ulp at most where it
was sampled.  A lane beyond (or not a number) goes to the C library.
"""

from __future__ import annotations

from typing import Any

__all__ = ["angles_loop", "declarations", "sincos_text"]

# the largest argument of the fast path
_LARGE = {"double": 1.6e6, "float": 6e3}

_REDUCE = {
    # 2/π, the shift that rounds to a whole number, and the parts of π/2, with trailing zeros
    "double": (
        6.36619772367581382433e-01,
        6755399441055744.0,
        1.57079632673412561417e00,
        6.07710050630396597660e-11,
        2.02226624879595063154e-21,
    ),
    "float": (
        0.63661977236758134,
        12582912.0,
        1.57080078125,
        -4.453584551811218e-06,
        -8.706138032721356e-10,
        6.223371969669989e-14,
    ),
}
# 2/π, the shift, and the parts of π/2 with all their bits
_REDUCE_FUSED = {
    "double": (
        6.36619772367581382433e-01,
        6755399441055744.0,
        1.57079632679489655800e00,
        6.12323399573676603587e-17,
        -1.49738490485916983294e-33,
    ),
    "float": (
        0.63661977236758134,
        12582912.0,
        1.57079637050628662109375,
        -4.371138828673793e-8,
        -1.71512449944288e-15,
    ),
}
# coefficients of the kernels, from the highest power down (fdlibm k_sin.c, k_cos.c)
_SIN = {
    "double": (
        1.58969099521155010221e-10,
        -2.50507602534068634195e-08,
        2.75573137070700676789e-06,
        -1.98412698298579493134e-04,
        8.33333333332248946124e-03,
    ),
    "float": (2.718311493989822e-6, -0.00019839334836096632, 0.008333329385889463),
}
_SIN1 = {"double": -1.66666666666666324348e-01, "float": -0.16666666641626524}
_COS = {
    "double": (
        -1.13596475577881948265e-11,
        2.08757232129817482790e-09,
        -2.75573143513906633035e-07,
        2.48015872894767294178e-05,
        -1.38888888888741095749e-03,
        4.16666666666666019037e-02,
    ),
    "float": (2.43904487962774090654e-5, -0.00138867637746099294719, 0.0416666233237390631894),
}


class _Lines:
    """Lines of text with fresh names."""

    def __init__(self, flavor: Any, prefix: str) -> None:
        self.f, self.prefix, self.lines, self.count = flavor, prefix, [], 0

    def put(self, text: str) -> str:
        self.count += 1
        name = f"%{self.prefix}_{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def binary(self, op: str, a: str, b: str) -> str:
        return self.put(f"{op} {self.f.type} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        t = self.f.type
        return self.put(f"call {t} @llvm.fmuladd.{self.f.suffix}({t} {a}, {t} {b}, {t} {c})")

    def horner(self, z: str, coefficients: tuple[float, ...]) -> str:
        value = self.f.const(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, z, self.f.const(c))
        return value


def sincos_text(flavor: Any, x: str, prefix: str) -> tuple[str, str, str]:
    """Text that computes both, and the names of sine and cosine."""
    w = _Lines(flavor, prefix)
    beyond = _beyond(w, x)
    large = _any(w, beyond)
    s, c = _both(w, x)
    head, fast, t = "\n".join(w.lines), f"{prefix}_fast", flavor.type
    text = f"""{head}
  br label %{fast}
{fast}:
  br i1 {large}, label %{prefix}_slow, label %{prefix}_done, !prof !0
{prefix}_slow:
{_from_library(flavor, prefix, x, beyond, s, c)}
  br label %{prefix}_done
{prefix}_done:
  %{prefix}_s = phi {t} [ {s}, %{fast} ], [ %{prefix}_ls, %{prefix}_slow ]
  %{prefix}_c = phi {t} [ {c}, %{fast} ], [ %{prefix}_lc, %{prefix}_slow ]"""
    return text, f"%{prefix}_s", f"%{prefix}_c"


def angles_loop(flavor: Any) -> str:
    """`angles(both, n)`: of n angles the sines in their place, the cosines n further on.

    A loop keeps the constants in registers, and takes no time to compile.
    """
    w, t = _Lines(flavor, "t"), flavor.type
    beyond = _beyond(w, "%x")
    large = _any(w, beyond)
    s, c = _both(w, "%x")
    store = "store {t} {s}, ptr %ps, align {n}\n  store {t} {c}, ptr %pc, align {n}".format
    newline = "\n"
    return f"""define internal void @angles_{flavor.name}(ptr %both, i64 %n) noinline #0 {{
entry:
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %next ]
  %end = icmp eq i64 %j, %n
  br i1 %end, label %done, label %more
more:
  %ps = getelementptr {t}, ptr %both, i64 %j
  %jc = add i64 %j, %n
  %pc = getelementptr {t}, ptr %both, i64 %jc
  %x = load {t}, ptr %ps, align {flavor.bytes}
{newline.join(w.lines)}
  {store(t=t, s=s, c=c, n=flavor.bytes)}
  br i1 {large}, label %slow, label %next, !prof !0
slow:
{_from_library(flavor, "t", "%x", beyond, s, c)}
  {store(t=t, s="%t_ls", c="%t_lc", n=flavor.bytes)}
  br label %next
next:
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
"""


def _both(w: _Lines, x: str) -> tuple[str, str]:
    """Sine and cosine of what is not too large."""
    t, bits, word, truth = w.f.type, w.f.bits, w.f.word, w.f.truth
    if w.f.fused:
        r, quadrant = _reduced_fused(w, x)
        sine, cosine = _kernels_fused(w, r)
    else:
        r, tail, quadrant = _reduced(w, x)
        sine, cosine = _kernels(w, r, tail)
    odd = w.put(f"and {bits} {quadrant}, {word(1)}")
    swap = w.put(f"icmp ne {bits} {odd}, {word(0)}")
    s = w.put(f"select {truth} {swap}, {t} {cosine}, {t} {sine}")
    c = w.put(f"select {truth} {swap}, {t} {sine}, {t} {cosine}")
    return _flipped(w, s, quadrant), _flipped(w, c, w.put(f"add {bits} {quadrant}, {word(1)}"))


def _from_library(f: Any, prefix: str, x: str, beyond: str, s: str, c: str) -> str:
    """Lines that name both again, the large lanes from the C library."""
    t, p = f.type, f"%{prefix}"
    pair = f"{{ {t}, {t} }}"
    return f"""  {p}_lib = call {pair} @slow_sincos_{f.name}({t} {x})
  {p}_l0 = extractvalue {pair} {p}_lib, 0
  {p}_l1 = extractvalue {pair} {p}_lib, 1
  {p}_ls = select {f.truth} {beyond}, {t} {p}_l0, {t} {s}
  {p}_lc = select {f.truth} {beyond}, {t} {p}_l1, {t} {c}"""


def _beyond(w: _Lines, x: str) -> str:
    """Which lanes are beyond the fast path; NaN is."""
    f = w.f
    size = w.put(f"call {f.type} @llvm.fabs.{f.suffix}({f.type} {x})")
    return w.put(f"fcmp ugt {f.type} {size}, {f.const(_LARGE[f.scalar])}")


def _any(w: _Lines, truth: str) -> str:
    """Whether it is true of any lane."""
    if w.f.lanes == 1:
        return truth
    return w.put(f"call i1 @llvm.vector.reduce.or.v{w.f.lanes}i1({w.f.truth} {truth})")


def _reduced_fused(w: _Lines, x: str) -> tuple[str, str]:
    """x − n π/2, and n as bits."""
    f = w.f
    two_over_pi, shift, *parts = _REDUCE_FUSED[f.scalar]
    shifted = w.fma(x, f.const(two_over_pi), f.const(shift))
    quadrant = w.put(f"bitcast {f.type} {shifted} to {f.bits}")
    n = w.binary("fsub", shifted, f.const(shift))
    for p in parts:
        x = w.fma(n, f.const(-p), x)
    return x, quadrant


def _kernels_fused(w: _Lines, r: str) -> tuple[str, str]:
    """sin r = r + r z S(z) and cos r = 1 + z (−½ + z C(z)) for |r| ≤ π/4."""
    f = w.f
    z = w.binary("fmul", r, r)
    series = w.horner(z, (*_SIN[f.scalar], _SIN1[f.scalar]))
    sine = w.fma(w.binary("fmul", z, r), series, r)
    return sine, w.horner(z, (*_COS[f.scalar], -0.5, 1.0))


def _reduced(w: _Lines, x: str) -> tuple[str, str, str]:
    """x − n π/2 in two parts, and n as bits."""
    f = w.f
    two_over_pi, shift, p1, *middle, last = (f.const(c) for c in _REDUCE[f.scalar])
    shifted = w.fma(x, two_over_pi, shift)
    quadrant = w.put(f"bitcast {f.type} {shifted} to {f.bits}")
    n = w.binary("fsub", shifted, shift)
    # all products but the last are exact, and so is the first difference
    above = w.binary("fsub", x, w.binary("fmul", n, p1))
    lost = ""
    for p in middle:
        part = w.binary("fmul", n, p)
        r = w.binary("fsub", above, part)
        more = w.binary("fsub", w.binary("fsub", above, r), part)
        lost = w.binary("fadd", lost, more) if lost else more
        above = r
    rest = w.binary("fsub", w.binary("fmul", n, last), lost)
    r = w.binary("fsub", above, rest)
    tail = w.binary("fsub", w.binary("fsub", above, r), rest)
    return r, tail, quadrant


def _kernels(w: _Lines, r: str, tail: str) -> tuple[str, str]:
    """sin(r + tail) and cos(r + tail) for |r| ≤ π/4."""
    f = w.f
    half, one = f.const(0.5), f.const(1.0)
    z = w.binary("fmul", r, r)
    v = w.binary("fmul", z, r)
    series = w.horner(z, _SIN[f.scalar])
    # r − ((z (½ tail − v s) − tail) − v S1)
    inner = w.binary("fsub", w.binary("fmul", half, tail), w.binary("fmul", v, series))
    inner = w.binary("fsub", w.binary("fmul", z, inner), tail)
    inner = w.binary("fsub", inner, w.binary("fmul", v, f.const(_SIN1[f.scalar])))
    sine = w.binary("fsub", r, inner)
    series = w.binary("fmul", z, w.horner(z, _COS[f.scalar]))
    # 1 − ½z in two parts, the rest of it added to the small terms
    half_z = w.binary("fmul", half, z)
    top = w.binary("fsub", one, half_z)
    lost = w.binary("fsub", w.binary("fsub", one, top), half_z)
    small = w.binary("fsub", w.binary("fmul", z, series), w.binary("fmul", r, tail))
    cosine = w.binary("fadd", top, w.binary("fadd", lost, small))
    return sine, cosine


def _flipped(w: _Lines, value: str, quadrant: str) -> str:
    """The value, negated where bit 1 of the quadrant is set."""
    f = w.f
    width = 64 if f.scalar == "double" else 32
    two = w.put(f"and {f.bits} {quadrant}, {f.word(2)}")
    sign = w.put(f"shl {f.bits} {two}, {f.word(width - 2)}")
    raw = w.put(f"bitcast {f.type} {value} to {f.bits}")
    mixed = w.put(f"xor {f.bits} {raw}, {sign}")
    return w.put(f"bitcast {f.bits} {mixed} to {f.type}")


def declarations(flavor: Any) -> str:
    """What the bodies of a flavor call: intrinsics, and the C library lane by lane."""
    f, t, n = flavor, flavor.type, flavor.name
    pair = f"{{ {t}, {t} }}"
    lines = [
        f"declare {t} @llvm.fabs.{f.suffix}({t})",
        f"declare {t} @llvm.sqrt.{f.suffix}({t})",
        f"declare {t} @llvm.fmuladd.{f.suffix}({t}, {t}, {t})",
    ]
    if f.lanes > 1:
        lines.append(f"declare i1 @llvm.vector.reduce.or.v{f.lanes}i1({f.truth})")
    slow = _per_lane(f, ("hinge_sin", "hinge_cos"), ("%x",))
    lines.append(f"define internal {pair} @slow_sincos_{n}({t} %x) noinline cold #1 {{\n{slow}\n}}")
    atan = _per_lane(f, ("hinge_atan2",), ("%y", "%x"))
    lines.append(f"define internal {t} @atan2_{n}({t} %y, {t} %x) noinline #1 {{\n{atan}\n}}")
    return "\n".join(lines)


def _per_lane(f: Any, functions: tuple[str, ...], args: tuple[str, ...]) -> str:
    """Apply C functions of double to every lane."""
    lines: list[str] = []
    values = ["zeroinitializer" if f.lanes > 1 else "0.0"] * len(functions)
    for lane in range(f.lanes):
        scalars = []
        for i, arg in enumerate(args):
            name = arg
            if f.lanes > 1:
                name = f"%a{lane}_{i}"
                lines.append(f"  {name} = extractelement {f.type} {arg}, i32 {lane}")
            if f.scalar == "float":
                lines.append(f"  %w{lane}_{i} = fpext float {name} to double")
                name = f"%w{lane}_{i}"
            scalars.append(f"double {name}")
        for j, function in enumerate(functions):
            name = f"%r{lane}_{j}"
            lines.append(f"  {name} = call double @{function}({', '.join(scalars)})")
            if f.scalar == "float":
                lines.append(f"  %n{lane}_{j} = fptrunc double {name} to float")
                name = f"%n{lane}_{j}"
            if f.lanes > 1:
                new = f"%u{lane}_{j}"
                old = values[j]
                lines.append(
                    f"  {new} = insertelement {f.type} {old}, {f.scalar} {name}, i32 {lane}"
                )
                name = new
            values[j] = name
    if len(functions) == 1:
        return "\n".join([*lines, f"  ret {f.type} {values[0]}"])
    pair = f"{{ {f.type}, {f.type} }}"
    lines.append(f"  %p0 = insertvalue {pair} poison, {f.type} {values[0]}, 0")
    lines.append(f"  %p1 = insertvalue {pair} %p0, {f.type} {values[1]}, 1")
    return "\n".join([*lines, f"  ret {pair} %p1"])

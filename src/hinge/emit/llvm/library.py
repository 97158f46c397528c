"""The functions that bodies call: intrinsics, elementary functions, and the C library lane by lane.

A body calls `@NAME_SUFFIX`: an elementary function where there is one of this name, which is put
into each module that calls it; else the function of the C library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...graph.operations import SINCOS, intrinsics, library_functions
from .arithmetic import Arithmetic
from .builder import Function, Value
from .elementary import ELEMENTARY
from .flavor import Flavor

__all__ = ["declarations", "declared_intrinsics", "definitions", "library"]

_CALLED = re.compile(rf"@((?:{'|'.join(ELEMENTARY)})_(?:v\d+)?f(?:32|64))\(")


def declared_intrinsics(f: Flavor) -> list[str]:
    """Declares the intrinsics of LLVM that bodies and functions of a flavor call."""
    needed = {"fabs": 1, "fma": 3, "fmuladd": 3} | intrinsics()
    return [
        f"declare {f.type} @llvm.{x}.{f.suffix}({_types(f.type, n)})" for x, n in needed.items()
    ]


def definitions(text: str, wide: Flavor, complete: bool = False) -> str:
    """The elementary functions that a text calls, and what these call, of every width.

    wide: one of the widths; complete: whether there is all that functions of doubles call, also
    beside code of floats.
    """
    made: dict[str, str] = {}
    waiting = text
    while names := sorted({m[1] for m in _CALLED.finditer(waiting)} - {*made}):
        new = {name: _defined(name, wide) for name in names}
        made |= new
        waiting = "\n".join(new.values())
    floats = [x for x in made if x.endswith("f32") and not complete]
    doubles = {replace(_flavor(x, wide), scalar="double") for x in floats}
    needed = "\n".join(map(declarations, sorted(doubles, key=lambda f: f.lanes)))
    there = {x for x in text.splitlines() if x.startswith("declare")}
    return "\n".join([*(x for x in needed.splitlines() if x not in there), *made.values()])


def _flavor(name: str, wide: Flavor) -> Flavor:
    """The flavor of a function, by the ending of its name."""
    suffix = name.rsplit("_", 1)[1]
    lanes = int(suffix[1:-3]) if suffix[0] == "v" else 1
    return replace(wide, lanes=lanes, scalar="float" if suffix.endswith("f32") else "double")


def _defined(name: str, wide: Flavor) -> str:
    function, f = name.rsplit("_", 1)[0], _flavor(name, wide)
    names = ("x", "y")[: ELEMENTARY[function].arity]
    code = Function(name, f.type, *(f"{f.type} {x}" for x in names), attributes="noinline #1")
    if f.scalar == "double":
        return code.ret(ELEMENTARY[function].write(Arithmetic(code, f), *code.parameters)).text()
    double = replace(f, scalar="double")
    given = [code.cast("fpext", x, double.type) for x in code.parameters]
    value = code.call(f"{function}_{double.name}", *given, result=double.type)
    return code.ret(code.cast("fptrunc", value, f.type)).text()


def declarations(f: Flavor) -> str:
    """What the bodies of a flavor call: intrinsics, and the C library lane by lane."""
    t, lines = f.type, declared_intrinsics(f)
    if f.lanes > 1:
        lines.append(f"declare i1 @llvm.vector.reduce.or.v{f.lanes}i1({f.truth})")
    pair, cold = f"{{ {t}, {t} }}", "noinline cold #1"
    both = Function(f"slow_sincos_{f.name}", pair, f"{t} x", attributes=cold)
    value = Value(pair, "poison")
    for i, x in enumerate(_per_lane(both, f, ("hinge_sin", "hinge_cos"))):
        value = both.let(pair, f"insertvalue {value}, {x}, {i}")
    lines.append(both.ret(value).text())
    for name, arity in _of_c().items():
        if name not in SINCOS:
            given = (f"{t} x{i}" for i in range(arity))
            code = Function(f"{name}_{f.name}", t, *given, attributes="noinline #1")
            lines.append(code.ret(*_per_lane(code, f, (f"hinge_{name}",))).text())
    return "\n".join(lines)


def library() -> str:
    """The functions of the C library that any flavor calls."""
    functions = _of_c().items()
    return "\n".join(f"declare double @hinge_{x}({_types('double', n)})" for x, n in functions)


def _of_c() -> dict[str, int]:
    """Those that only the C library has, and how many arguments they have."""
    return {x: n for x, n in library_functions().items() if x not in ELEMENTARY}


def _types(kind: str, count: int) -> str:
    return ", ".join([kind] * count)


def _per_lane(code: Function, f: Flavor, functions: Sequence[str]) -> list[Value]:
    """C functions of double applied to every lane of the parameters."""
    values = [Value(f.type, "zeroinitializer" if f.lanes > 1 else "0.0")] * len(functions)
    for lane in range(f.lanes):
        given = list(code.parameters)
        if f.lanes > 1:
            given = [code.let(f.scalar, f"extractelement {x}, i32 {lane}") for x in given]
        if f.scalar == "float":
            given = [code.cast("fpext", x, "double") for x in given]
        for i, function in enumerate(functions):
            x = code.call(function, *given, result="double")
            if f.scalar == "float":
                x = code.cast("fptrunc", x, "float")
            if f.lanes > 1:
                x = code.let(f.type, f"insertelement {values[i]}, {x}, i32 {lane}")
            values[i] = x
    return values

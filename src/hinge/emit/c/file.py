"""What every file of C has: a public function, its prototype, and a comment on how to call it."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ...errors import ArgumentError
from ...graph.arrays import Shape
from ...graph.loop import LoopProgram
from ...graph.operations import functions_of_c
from ...graph.program import Program
from .body import Entry, Scalar
from .dialect import Dialect

__all__ = ["Array", "Front", "block", "braces", "function_name", "parameter_names", "wrapped"]

_LINE = 100


class Array(NamedTuple):
    """A parameter: an array, and whether it is written."""

    name: str
    shape: Shape
    result: bool

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def entries(self) -> list[Entry]:
        """All its numbers."""
        return [Entry(self.name, i) for i in range(self.size)]

    def declared(self, scalar: str) -> str:
        """As a parameter."""
        return f"{scalar} *{self.name}" if self.result else f"const {scalar} *{self.name}"

    def described(self) -> str:
        """In words."""
        kind = "result" if self.result else "argument"
        if len(self.shape) > 1:
            return f"{kind}, {' x '.join(map(str, self.shape))} numbers, row after row"
        return f"{kind}, {self.size} number{'' if self.size == 1 else 's'}"


class Front:
    """The public function: its name, its arrays, and the file around its code."""

    def __init__(
        self,
        program: Program | LoopProgram,
        scalar: Scalar,
        names: Sequence[str] | None,
        results: Sequence[str] | None,
        about: str,
        dialect: Dialect,
        prefix: str = "",
    ) -> None:
        self.program, self.scalar, self.about, self.dialect = program, scalar, about, dialect
        self.name = function_name(prefix + program.name)
        self._texts = _one_each(program, "argument", "in", names, program.inputs)
        self._texts += _one_each(program, "result", "out", results, program.outputs)
        self.arguments: list[Array] = []
        self.results: list[Array] = []

    @property
    def arrays(self) -> list[Array]:
        """All parameters."""
        return [*self.arguments, *self.results]

    def settle(self, others: Iterable[str]) -> None:
        """Name the parameters, unlike anything else that the file is about to name."""
        valid = iter(parameter_names(self._texts, [self.name, *others]))
        self.arguments = [Array(next(valid), s, result=False) for s in self.program.inputs]
        self.results = [Array(next(valid), s, result=True) for s in self.program.outputs]

    def file(self, kind: str, code: str, workspace: Sequence[str]) -> str:
        """The whole file; kind: of code, in words; workspace: what the comment says of it."""
        dialect = self.dialect
        include = [dialect.math] if _needs_math(code) else []
        parts = [_comment([*self._notes(kind), *workspace]), *include]
        if dialect.header:
            guard = f"HINGE_{self.name}_{self.program.digest[:8]}".upper()
            begin, end = f"#ifndef {guard}\n#define {guard}", "#endif"
            parts = [parts[0], begin, *include, *dialect.before, code, end]
        else:
            head = self.head(dialect.public, self.name, self.arrays)
            parts += [f"{head};", code]
        return "\n\n".join(parts) + "\n"

    def declaration(self) -> str:
        """The header: what the function of the file is, for C and C++."""
        self.settle(())
        guard = f"HINGE_{self.name}_H".upper()
        prototype = self.head(self.dialect.public, self.name, self.arrays)
        parts = [
            _comment(self._notes(self.dialect.name)),
            f"#ifndef {guard}\n#define {guard}",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            f"{prototype};",
            "#ifdef __cplusplus\n}\n#endif",
            "#endif",
        ]
        return "\n\n".join(parts) + "\n"

    def function(self, lines: Sequence[str], used: Collection[str]) -> str:
        """The public function; used: the parameters that its lines touch."""
        unused = [f"(void){a.name};" for a in self.arrays if a.name not in used]
        head = self.head(self.dialect.public, self.name, self.arrays)
        return block(head, [*unused, *lines])

    def head(self, kind: str, name: str, arrays: list[Array], more: Sequence[str] = ()) -> str:
        """The declaration of a function."""
        declared = [*(a.declared(self.scalar.name) for a in arrays), *more]
        return wrapped(f"{kind} {name}(", declared or ["void"], ")")

    def _notes(self, kind: str) -> list[str]:
        """What the comment at the top says, line by line."""
        ops = self.program.ops
        width = max((len(a.name) for a in self.arrays), default=0)
        made = [f"{a.name}[{a.size}]" for a in self.arrays if a.size]
        call = [a.name if a.size else "0" for a in self.arrays]
        lines = [f"{self.name}: {kind}, made by hinge.", ""]
        for paragraph in self.about.splitlines():
            lines += textwrap.wrap(paragraph, _LINE - 4, subsequent_indent=_indent(paragraph))
        lines += [""] if self.about else []
        lines += [f"  {a.name:<{width}}  {a.described()}" for a in self.arrays]
        lines += ["", "How to call it:", ""] if self.arrays else ["How to call it:", ""]
        lines += wrapped(f"    {self.scalar.name} ", made, ";", 8).split("\n") if made else []
        lines += [*wrapped(f"    {self.name}(", call, ");", 8).split("\n"), ""]
        lines += ["Nothing is allocated or kept.  A result must not overlap another array."]
        cost = (
            f"Operations: {ops.multiplications} multiplications, {ops.additions} additions, "
            f"{ops.divisions} divisions, sin and cos of {ops.sincos} angles, {ops.others} others."
        )
        return lines + textwrap.wrap(cost, _LINE - 4)


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()) + 4) if line.startswith(" ") else ""


def _needs_math(code: str) -> bool:
    return bool(re.search(rf"\b(({'|'.join(functions_of_c())})f?\(|INFINITY\b|NAN\b)", code))


def _one_each(
    program: Program | LoopProgram,
    what: str,
    short: str,
    names: Sequence[str] | None,
    shapes: Sequence[Shape],
) -> list[str]:
    """A name for each shape: those given, or in0, in1 …"""
    if names is None:
        return [f"{short}{i}" for i in range(len(shapes))]
    if len(names) != len(shapes):
        raise ArgumentError(
            f"{program.name}: {len(names)} names of {what}s ({', '.join(names)}); expected "
            f"{len(shapes)}"
        )
    return list(names)


def _comment(lines: Iterable[str]) -> str:
    # a comment inside the comment would end it
    safe = (line.replace("*/", "* /").replace("/*", "/ *") for line in lines)
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in safe), " */"])


def wrapped(start: str, items: Sequence[str], end: str, indent: int = 4, depth: int = 1) -> str:
    """A list in parentheses, on as many lines as it needs, cut between items.

    depth: how many braces will be around it.
    """
    solid = ", ".join(item.replace(" ", "\0") for item in items)
    text = textwrap.fill(
        start.replace(" ", "\0") + solid + end,
        _LINE - 4 * depth,
        subsequent_indent="\0" * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace("\0", " ")


def block(head: str, lines: Sequence[str]) -> str:
    """A head with lines in braces."""
    body = "\n".join(textwrap.indent(line, "    ") for line in lines)
    return f"{head}\n{{\n{body}\n}}" if body else f"{head}\n{{\n}}"


def braces(head: str, lines: Iterable[str]) -> str:
    """The same, the brace behind the head."""
    return "\n".join([f"{head} {{", *(textwrap.indent(line, "    ") for line in lines), "}"])


# of C and C++, so that a declaration can be copied into either; and macros that compilers define
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl complex
const const_cast constexpr continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if imaginary inline int linux long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
struct switch template this thread_local throw true try typedef typeid typename typeof union unix
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
# what the file itself defines, and macros of math.h
_USED = """
PART HINGE_DEVICE HINGE_PART INFINITY NAN HUGE HUGE_VAL HUGE_VALF
HUGE_VALL MAXFLOAT OVERFLOW UNDERFLOW DOMAIN SING TLOSS PLOSS NULL EOF errno math_errhandling
signgam
"""
_MACROS = re.compile(r"(FP|M|MATH)_[A-Z0-9_]+")
# the workspace and the locals of a body
_LOCALS = re.compile(r"w|[cst]\d+")

# functions of the standard library: a parameter may hide them, a function may not redefine them
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2
expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp
lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward
pow remainder remquo rint round scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan
tanh tgamma trunc y0 y1 yn
"""
_LIBRARY = """
abort abs alloca atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clock close div exit
fclose ffs fopen fprintf fputc fputs fread free fscanf fwrite getc getchar getenv gets index isalnum
isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit
labs ldiv link llabs lldiv longjmp main malloc memchr memcmp memcpy memmove mempcpy memset open
perror pipe printf putc putchar puts qsort raise rand read realloc remove rename rewind rindex scanf
setjmp signal snprintf sprintf srand sscanf stpcpy strcasecmp strcat strchr strcmp strcoll strcpy
strcspn strdup strerror strlen strncat strncmp strncpy strndup strpbrk strrchr strspn strstr strtod
strtof strtok strtol strtoul strxfrm system time toascii tolower toupper truncate unlink wait write
"""
_TAKEN = frozenset((*_KEYWORDS.split(), *_USED.split()))
_FUNCTIONS = _TAKEN.union(
    _LIBRARY.split(), (name + suffix for name in _MATH.split() for suffix in ("", "f", "l"))
)


def function_name(text: str) -> str:
    """A name for a function, as near to the text as C allows."""
    return _free(_spelled(text, "kernel"), _FUNCTIONS)


def parameter_names(texts: Sequence[str], others: Iterable[str]) -> list[str]:
    """Names for parameters, all different, and none of them one of the others."""
    called = {name + suffix for name in functions_of_c() for suffix in ("", "f")}
    names: list[str] = []
    for text in texts:
        names.append(_free(_spelled(text, "x"), {*_TAKEN, *called, *others, *names}))
    return names


def _spelled(text: str, otherwise: str) -> str:
    """Letters, digits and single underscores, a letter first; not like a macro of math.h."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or otherwise
    return f"x{name}" if name[0].isdigit() or _MACROS.fullmatch(name) else name


def _free(name: str, taken: Iterable[str]) -> str:
    """The name, with a number after it if it is taken."""
    new, count = name, 2
    while new in taken or _LOCALS.fullmatch(new):
        new, count = f"{name}_{count}", count + 1
    return new

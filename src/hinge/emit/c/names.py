"""Identifiers of C: any text becomes a valid name that stands for nothing else in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...graph.operations import functions_of_c

__all__ = ["function_name", "parameter_names"]

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
PART INFINITY NAN HUGE HUGE_VAL HUGE_VALF
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

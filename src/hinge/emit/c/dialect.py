"""In what a file of C99 differs from a header for CUDA and C++."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["C99", "CUDA", "DECLARATION", "DIALECTS", "Dialect"]

_PART = """/* kept apart: joined again, the parts would take long to compile */
#if defined(__GNUC__)
#define PART static __attribute__((noinline)) void
#else
#define PART static void
#endif"""

_DEVICE = """#ifndef HINGE_DEVICE
#if defined(__CUDACC__)
#define HINGE_DEVICE static inline __host__ __device__
#define HINGE_PART static __noinline__ __host__ __device__
#elif defined(__GNUC__)
#define HINGE_DEVICE static inline
#define HINGE_PART static __attribute__((noinline))
#else
#define HINGE_DEVICE static inline
#define HINGE_PART static
#endif
#endif"""

# NVRTC has the functions, but no files
_MATH = """#if !defined(__CUDACC_RTC__)
#include <math.h>
#elif !defined(INFINITY)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif"""


@dataclass(frozen=True)
class Dialect:
    """name: in the comment at the top; public, part: what functions and parts of them are.

    parts: defines the word for parts, where there are some; math: includes math.h.
    before: what a header begins with, nothing for a file that is compiled.
    """

    name: str
    public: str
    part: str
    parts: str
    math: str
    before: tuple[str, ...] = ()

    @property
    def header(self) -> bool:
        """Whether it is to be included: without a prototype, and its tables are inside of the
        function, since a card reads no others.
        """
        return bool(self.before)


C99 = Dialect("C99", "void", "PART", _PART, "#include <math.h>")
CUDA = Dialect("CUDA and C++", "HINGE_DEVICE void", "HINGE_PART void", "", _MATH, (_DEVICE,))
# the header of a file of C99: no code
DECLARATION = Dialect("the declaration for C and C++", "void", "", "", "")
# by the names that users give
DIALECTS = {"c": C99, "header": DECLARATION, "cuda": CUDA}

"""Emitted C under sanitizers: in a program of its own, every array in memory of its own."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hinge.emit.c.source import c_source
from with_c import CC, FLAGS, SCALARS, STRICT

__all__ = ["can_sanitize", "run_sanitized"]

# without optimization every access is looked at, and thousands of results take half as long;
# lines are enough to say where: to follow variables as well takes three times as long to compile
SANITIZE = ["-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
MAIN = """#include <stdio.h>
#include <stdlib.h>
void {name}({types});
int main(void)
{{
{arrays}
    while ({read}) {{
        {name}({names});
{written}
    }}
{freed}
    return 0;
}}
"""


@lru_cache(maxsize=1)
def can_sanitize() -> bool:
    """Whether there is a compiler with the libraries of both sanitizers."""
    if CC is None:
        return False
    with TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        target = str(source.with_suffix(".out"))
        made = subprocess.run([CC, *SANITIZE, str(source), "-o", target], capture_output=True)
        return made.returncode == 0 and subprocess.run([target]).returncode == 0


def run_sanitized(
    program: Any, scalar: str, samples: list[list[np.ndarray]], folder: Path, **names: Any
) -> list[list[np.ndarray]]:
    """The results of each sample; whatever a sanitizer or the compiler says fails."""
    source = c_source(program, scalar, **names)
    name = re.search(r"^void (\w+)\(", source, re.M)[1]  # pyright: ignore
    (folder / "function.c").write_text(source)
    (folder / "main.c").write_text(_main(program, scalar, name))
    target = folder / "program.out"
    files = [str(folder / file) for file in ("function.c", "main.c")]
    command = [CC, *FLAGS, *STRICT, *SANITIZE, *files, "-o", str(target), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    dtype = SCALARS[scalar]
    given = b"".join(np.ascontiguousarray(x, dtype).tobytes() for s in samples for x in s)
    done = subprocess.run([str(target)], input=given, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()[-2000:]
    numbers = np.frombuffer(done.stdout, dtype).reshape(len(samples), -1)
    ends = np.cumsum([0, *program.output_sizes])
    pairs = list(zip(ends, ends[1:], program.outputs, strict=False))
    return [[row[a:b].reshape(shape) for a, b, shape in pairs] for row in numbers]


def _main(program: Any, scalar: str, name: str) -> str:
    """A program that reads samples, calls the function and writes its results."""
    sizes = [*program.input_sizes, *program.output_sizes]
    given = len(program.input_sizes)
    pointers = [f"const {scalar} *"] * given + [f"{scalar} *"] * (len(sizes) - given)
    make = "    {0} *a{1} = malloc({2} * sizeof({0}));"
    reads = [f"fread(a{i}, sizeof({scalar}), {n}, stdin) == {n}" for i, n in enumerate(sizes)]
    write = "        fwrite(a{}, sizeof({}), {}, stdout);"
    return MAIN.format(
        name=name,
        types=", ".join(pointers) or "void",
        arrays="\n".join(make.format(scalar, i, n) for i, n in enumerate(sizes)),
        read=" && ".join(reads[:given]) or "0",
        names=", ".join(f"a{i}" for i in range(len(sizes))),
        written="\n".join(
            write.format(i, scalar, n) for i, n in enumerate(sizes) if i >= given and n
        ),
        freed="\n".join(f"    free(a{i});" for i in range(len(sizes))),
    )

"""MuJoCo's compiler, in this process or in one of its own.

MuJoCo is C++ that was not written for files of strangers: one of them may abort it, or worse.  In a
process of its own it gets the text and the files, and is bounded in time and, where the system can,
in memory; what comes back are arrays of numbers, in a format without code: a line of JSON, then
their bytes.  Nothing that comes back is trusted.

`python -m hinge.load.mujoco_compile REQUEST ANSWER MEMORY SECONDS` is that process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..errors import ModelError

__all__ = ["Compiled", "compile_apart", "compile_here"]

# a model and MuJoCo's warnings, or the message with which it refuses one
Compiled = tuple[Any, list[str]] | str

_ONE_AT_A_TIME = threading.Lock()
_ARRAYS = re.compile(
    r"(body|jnt|dof|geom|site|actuator|tendon|wrap|name)_\w+|mat_rgba"
    "|mesh_(pos|quat|scale|pathadr|vert|vertadr|vertnum|face|faceadr|facenum)"
    "|eq_(active0|data|obj1id|obj2id|objtype|solref|type)|qpos0|qpos_spring"
)
_SIZES = ("nbody", "nq", "nv", "nsite")
_OPTIONS = ("disableflags", "disableactuator", "density", "viscosity")
_KINDS = ("<f8", "<f4", "<i8", "<i4", "|u1", "|i1", "|b1")
_INTERPRETER = 1 << 30  # the address space that Python, NumPy and MuJoCo take
_KEPT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def compile_here(mujoco: ModuleType, text: str, files: Mapping[str, bytes]) -> Compiled:
    """What MuJoCo makes of a text and the files it names."""
    with _captured(mujoco) as said:
        try:
            return mujoco.MjModel.from_xml_string(text, dict(files)), said
        except Exception as e:
            return str(e)


@contextmanager
def _captured(mujoco: ModuleType) -> Iterator[list[str]]:
    """Collect MuJoCo's warnings, which it would print and write to a file in the working folder."""
    said: list[str] = []
    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(said.append)
        try:
            yield said
        finally:
            mujoco.set_mju_user_warning(before)


# the process that asks


def compile_apart(
    text: str, files: Mapping[str, bytes], max_memory: int, max_seconds: float
) -> Compiled:
    """The same, by a process of its own; ModelError if it dies, or takes too long.

    The model that comes back has those of MuJoCo's arrays that a mechanism is made of.
    """
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request"), Path(folder, "answer")
        sizes = {name: len(data) for name, data in files.items()}
        head = json.dumps({"text": len(text.encode()), "files": sizes})
        request.write_bytes(b"".join([head.encode(), b"\n", text.encode(), *files.values()]))
        limits = [str(max_memory), str(max_seconds)]
        command = [sys.executable, "-B", "-m", __name__, str(request), str(answer), *limits]
        ended = _run(command, folder, max_seconds)
        if ended or not answer.exists():
            raise ModelError(f"MuJoCo's compiler {ended or 'gave no answer'}; {_ADVICE}")
        with answer.open("rb") as file:
            return _answer(file.read(max_memory))


_ADVICE = "the file is too large, broken or hostile (limits: max_memory and max_seconds)"


def _run(command: list[str], folder: str, max_seconds: float) -> str:
    """How a process ended, empty if well."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
    environment["OPENBLAS_NUM_THREADS"] = "1"
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        status = process.wait(max_seconds)
    except subprocess.TimeoutExpired:
        return f"took more than {max_seconds:g} s"
    finally:
        process.kill()
        process.wait()
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}" if status else ""


def _answer(data: bytes) -> Compiled:
    """A model of the arrays that an answer lists."""
    try:
        line, _, data = data.partition(b"\n")
        head = json.loads(line)
        if "refused" in head:
            return str(head["refused"])
        arrays, at = {}, 0
        for name, kind, shape in head["arrays"]:
            dtype = _KINDS[_KINDS.index(kind)]
            arrays[name] = np.frombuffer(data, dtype, int(np.prod(shape)), at).reshape(shape)
            at += arrays[name].nbytes
        options = SimpleNamespace(gravity=arrays.pop("gravity"), **head["options"])
        texts = {name: arrays.pop(name).tobytes() for name in ("names", "paths")}
        return SimpleNamespace(opt=options, **texts, **arrays, **head["sizes"]), head["said"]
    except (ValueError, LookupError, TypeError, AttributeError) as e:
        raise ModelError(f"MuJoCo's compiler answered nonsense ({e}); {_ADVICE}") from None


# the process that answers


def main(request: str, answer: str, max_memory: str, max_seconds: str) -> None:
    """Compile what a request asks for, within limits."""
    _limit(int(max_memory), float(max_seconds))
    mujoco = import_module("mujoco")
    with open(request, "rb") as file:
        head = json.loads(file.readline())
        text = file.read(head["text"]).decode()
        files = {name: file.read(size) for name, size in head["files"].items()}
    made = compile_here(mujoco, text, files)
    with open(answer, "wb") as file:
        if isinstance(made, str):
            file.write(json.dumps({"refused": made}).encode())
        else:
            file.writelines(_packed(*made))


def _limit(memory: int, seconds: float) -> None:
    """Bound this process, as far as the system can: Windows cannot, macOS not its memory."""
    try:
        resource = import_module("resource")
    except ImportError:
        return
    bounds = {"AS": memory + _INTERPRETER, "FSIZE": memory, "CPU": int(seconds) + 1, "CORE": 0}
    for name, bound in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _packed(model: Any, said: list[str]) -> list[bytes]:
    """A model as a line of JSON and the bytes of its arrays."""
    arrays = {name: getattr(model, name) for name in dir(model) if _ARRAYS.fullmatch(name)}
    arrays = {name: np.ascontiguousarray(x) for name, x in arrays.items() if not callable(x)}
    arrays["gravity"] = np.array(model.opt.gravity)
    for name in ("names", "paths"):
        arrays[name] = np.frombuffer(getattr(model, name), np.uint8)
    head = {
        "arrays": [(name, x.dtype.str, x.shape) for name, x in arrays.items()],
        "sizes": {name: int(getattr(model, name)) for name in _SIZES},
        "options": {name: getattr(model.opt, name) for name in _OPTIONS},
        "said": said,
    }
    return [json.dumps(head).encode(), b"\n", *(x.tobytes() for x in arrays.values())]


if __name__ == "__main__":
    main(*sys.argv[1:])

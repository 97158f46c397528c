"""MuJoCo's compiler in a process of its own: it may refuse, die, hang or lie."""

from __future__ import annotations

import json
import signal
import sys
import warnings

import numpy as np
import pytest

from hinge.errors import ModelError
from hinge.load import mjcf, mujoco_compile
from hinge.load.mjcf import read_mjcf
from hinge.load.mujoco_compile import _answer, _run, compile_apart, compile_here, main

mujoco = pytest.importorskip("mujoco")

LIMITS = 1 << 30, 60.0
SERVO = """<mujoco><worldbody>
  <body name="b"><joint name="a" {}/><geom size=".1"/></body></worldbody>
  <actuator><position name="p" joint="a"/></actuator></mujoco>"""


def loaded(text: str, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mech = read_mjcf(text, "arm.xml", **options)
    return mech, [str(w.message) for w in caught]


def test_warnings_and_refusals_come_back():
    assert loaded(SERVO.format(""), isolate=True) == loaded(SERVO.format(""))
    with pytest.raises(ModelError, match=r"^arm.xml:2: MuJoCo refuses it: axis too small"):
        read_mjcf(SERVO.format('axis="0 0 0"'), "arm.xml", isolate=True)


def test_a_process_that_dies():
    """MuJoCo 4.0 prints the name of an unknown class as a format."""
    text = '<mujoco><worldbody><geom class="%n%s%s%s%s%s%s%s%s%s"/></worldbody></mujoco>'
    try:
        made = compile_apart(text, {}, *LIMITS)
    except ModelError as e:
        assert "MuJoCo's compiler was ended by SIG" in str(e)
    else:
        assert isinstance(made, str)  # a MuJoCo without the hole


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")
def test_a_process_that_needs_too_much_memory():
    vast = '<texture name="t" type="2d" width="20000" height="20000" builtin="flat"/>'
    text = f"<mujoco><asset>{vast}</asset></mujoco>"
    try:
        made = compile_apart(text, {}, 1 << 20, 60.0)
    except ModelError as e:
        assert "MuJoCo's compiler" in str(e)
    else:
        assert isinstance(made, str)
        assert "memory" in made or "alloc" in made


def test_how_a_process_ends(tmp_path):
    def run(code: str, seconds: float = 60) -> str:
        return _run([sys.executable, "-c", code], str(tmp_path), seconds)

    assert run("") == ""
    assert run("raise SystemExit(3)") == "ended with status 3"
    killed = f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)})"
    assert run(killed) in ("was ended by SIGTERM", f"ended with status {int(signal.SIGTERM)}")
    assert run("while True: pass", 0.5) == "took more than 0.5 s"


def test_the_error_names_the_file_and_the_limits():
    with pytest.raises(ModelError, match="^arm.xml: MuJoCo's compiler took more than .*seconds"):
        read_mjcf(SERVO.format(""), "arm.xml", isolate=True, max_seconds=0.01)


NONSENSE = {
    "nothing": b"",
    "no JSON": b"\xff\xfe\n",
    "no dictionary": b"[]\n",
    "no arrays": b"{}\n",
    "objects": json.dumps({"arrays": [["names", "|O", [1]]]}).encode() + b"\n" + bytes(8),
    "too few bytes": json.dumps({"arrays": [["names", "<f8", [9]]]}).encode() + b"\n" + bytes(8),
    "a negative size": json.dumps({"arrays": [["names", "<f8", [-9]]]}).encode() + b"\n" + bytes(8),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_an_answer_is_not_trusted(name):
    with pytest.raises(ModelError, match="MuJoCo's compiler answered nonsense"):
        _answer(NONSENSE[name])


def test_numbers_that_do_not_fit_together(monkeypatch):
    def lies(text, files, *limits):
        model, said = compile_apart(text, files, *limits)
        model.body_parentid = np.array([7, 7, 7])
        return model, said

    monkeypatch.setattr(mjcf, "compile_apart", lies)
    with pytest.raises(ModelError, match="arm.xml: MuJoCo's compiler answered nonsense"):
        read_mjcf(SERVO.format(""), "arm.xml", isolate=True)


def test_both_ways_give_the_same_arrays(tmp_path, monkeypatch):
    """The process that answers, run in this one."""
    monkeypatch.setattr(mujoco_compile, "_limit", lambda *_: None)
    text = SERVO.format('damping="2"').encode()
    request, answer = tmp_path / "request", tmp_path / "answer"
    head = json.dumps({"text": len(text), "files": {"a.obj": 3}}).encode()
    request.write_bytes(head + b"\n" + text + b"abc")
    main(str(request), str(answer), "1", "1")
    apart, said = _answer(answer.read_bytes())
    here, said_here = compile_here(mujoco, text.decode(), {})
    assert said == said_here
    assert apart.names == here.names
    for name in ("body_mass", "jnt_type", "dof_damping", "jnt_limited", "actuator_gear", "qpos0"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(here, name))
    request.write_bytes(json.dumps({"text": 1, "files": {}}).encode() + b"\n<")
    main(str(request), str(answer), "1", "1")
    assert isinstance(_answer(answer.read_bytes()), str)

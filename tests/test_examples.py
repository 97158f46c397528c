"""Every example runs, draws what it says, and says what it found."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = [p.stem for p in sorted(FOLDER.glob("*.py")) if p.stem != "drawing"]


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    try:
        importlib.import_module(name).main(["--quick", "--out", str(tmp_path)])
    finally:
        for module in (name, "drawing"):
            sys.modules.pop(module, None)
    said = capsys.readouterr().out
    assert "nan" not in said
    for kind in ("svg", "gif"):
        drawn = tmp_path / f"{name}.{kind}"
        assert drawn.stat().st_size > 1000
        assert f"wrote {drawn}" in said


@pytest.mark.long
def test_the_quadruped_trots_and_falls_without_control(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    try:
        trot = importlib.import_module("trot")
        walked = trot.walk(trot.Plan(samples=48), 2.0, push=40.0).motion
        alone = trot.walk(trot.Plan(samples=2, noise=0.0), 2.0).motion
    finally:
        for module in ("trot", "drawing"):
            sys.modules.pop(module, None)
    assert trot.upright(walked) and walked.q[-1, 0] > 0.5
    assert walked.contact_positions[..., 2].min() > -1e-3
    assert not trot.upright(alone)

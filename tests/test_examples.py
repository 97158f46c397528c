"""Every example runs, draws what it says, and says what it found."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = [p.stem for p in sorted(FOLDER.glob("*.py")) if p.stem != "drawing"]


@pytest.fixture
def example(monkeypatch):
    """What imports an example, whatever else has its name."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def imported(name):
        title = f"example_{name}"
        spec = importlib.util.spec_from_file_location(title, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        # dataclasses look their module up
        monkeypatch.setitem(sys.modules, title, module)
        spec.loader.exec_module(module)
        return module

    yield imported
    sys.modules.pop("drawing", None)


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, example, tmp_path, capsys):
    example(name).main(["--quick", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "nan" not in said
    for kind in ("svg", "gif"):
        drawn = tmp_path / f"{name}.{kind}"
        assert drawn.stat().st_size > 1000
        assert f"wrote {drawn}" in said


@pytest.mark.long
def test_the_quadruped_trots_and_falls_without_control(example):
    trot = example("trot")
    walked = trot.walk(trot.Plan(samples=48), 2.0, push=40.0).motion
    alone = trot.walk(trot.Plan(samples=2, noise=0.0), 2.0).motion
    assert trot.upright(walked) and walked.q[-1, 0] > 0.5
    assert walked.contact_positions[..., 2].min() > -1e-3
    assert not trot.upright(alone)

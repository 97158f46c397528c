"""The scripts of the documentation's figures run, on small sizes, and write what they say."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
# what each draws, and what makes it small
SMALL = {
    "collision": (["collision", "collision_accuracy"], {"SAMPLES": 20}),
    "diagonal_cost": (["diagonal_cost"], {"SIZES": (2, 3)}),
    "energy_drift": (["energy_drift"], {"SECONDS": 0.2, "CHAINS": 2, "JOINTS": 2}),
    "inverse_kinematics": (["inverse_kinematics"], {"TARGETS": 20, "SHOWN": 3}),
    "long_motion": (["long_motion"], {"STEPS": 200, "KEPT": 100}),
    "mpc": (["mpc"], {"TICKS": 6, "KICK": 3, "HORIZON": 8}),
    "pose_feedback": (["pose_feedback", "half_turn"], {"SECONDS": 0.5, "ARMS": 1, "JOINTS": 1}),
    "total_rates": (["mass_factor", "energy_split", "braking"], {}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_figure(name, tmp_path, monkeypatch, capsys):
    drawn, sizes = SMALL[name]
    monkeypatch.syspath_prepend(str(FOLDER))
    try:
        script, common = importlib.import_module(name), importlib.import_module("common")
        monkeypatch.setattr(common, "FOLDER", tmp_path)
        for constant, value in sizes.items():
            assert hasattr(script, constant)
            monkeypatch.setattr(script, constant, value)
        script.main()
    finally:
        for module in (name, "common"):
            sys.modules.pop(module, None)
    said = capsys.readouterr().out
    assert "nan" not in said
    for figure in drawn:
        assert f"wrote {figure}.svg" in said
        assert (tmp_path / f"{figure}.svg").read_text().count("<path") > 10


def test_every_figure_has_its_script_and_every_script_its_test():
    drawn = {figure for figures, _ in SMALL.values() for figure in figures}
    assert {p.stem for p in FOLDER.glob("*.svg")} == drawn
    assert {p.stem for p in FOLDER.glob("*.py")} == {*SMALL, "common"}

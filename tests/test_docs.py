"""Every Python block of the README and the documentation runs, in order, page by page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for number, code in enumerate(blocks(page), 1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), scope)


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_has_its_two_commands():
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M)
    assert commands == ["pip install . && hinge demo\n", 'pip install ".[test]" && pytest\n']


def test_notation_names_exist():
    """Every `robot.name` on the notation page is a name of the robot."""
    import hinge

    robot = hinge.zoo.arm(2)
    text = (ROOT / "docs" / "notation.md").read_text()
    for name in re.findall(r"`robot\.(\w+)", text):
        assert hasattr(robot, name), name

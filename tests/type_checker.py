"""What a type checker says of a program that uses hinge."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hinge


def wrong_lines(folder, program):
    """The lines that pyright finds fault with, and those marked with a comment, by number."""
    pyright = shutil.which("pyright", path=Path(sys.executable).parent) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    (folder / "program.py").write_text(program)
    settings = {"include": ["program.py"], "extraPaths": [str(Path(hinge.__file__).parent.parent)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    if not said.startswith("{"):
        pytest.skip(f"pyright does not run here: {said[:200]}")
    found = {d["range"]["start"]["line"] for d in json.loads(said)["generalDiagnostics"]}
    return sorted(found), [i for i, line in enumerate(program.splitlines()) if "    #" in line]

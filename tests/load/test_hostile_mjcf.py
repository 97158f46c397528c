"""Files made to hurt: whatever is changed in real ones, the process lives and says ModelError.

`python tests/load/test_hostile_mjcf.py SEED COUNT` is the process that may die.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from hinge.errors import ModelError
from hinge.load.mjcf import read_mjcf

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

VALUES = [
    *("0", "-1", "1e300", "nan", "-inf", "1e-300", "4294967297", "-2147483648", "99999", "", "x"),
    *("1 2 3 4 5 6", "0 0 0 0", "%n%s%p", "%s" * 12, "../x", "true", "mesh", "hfield", "sdf"),
    *("a" * 5000, "é\U0001f600"),
]
IN_BODIES = [
    '<flexcomp name="f" type="grid" count="3 3 3" dim="3" spacing=".1 .1 .1"/>',
    '<flexcomp name="g" type="direct" dim="2" point="0 0 0 1 0 0 0 1 0" element="0 1 99999"/>',
    '<flexcomp name="g" type="direct" dim="3" point="0 0 0 1 0 0 0 1 0" element="-1 -5 7 8"/>',
    '<replicate count="3" euler="1 2 3"><geom size=".1"/></replicate>',
    '<attach body="torso" prefix="p"/>',
    '<geom type="ellipsoid" fromto="0 0 0 0 0 0" size="1"/>',
    '<geom type="sdf" mesh="m"><plugin plugin="mujoco.sdf.torus"/></geom>',
    '<body mocap="true"><freejoint/></body>',
    '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 9 9 9"/>',
    '<joint type="free"/><joint type="free"/>',
]
AT_THE_END = [
    '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 99999"/></asset>',
    '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 -1 2" normal="1 2"/></asset>',
    '<asset><mesh name="m" vertex="0 0 0 0 0 0 0 0 0 0 0 0"/></asset>',
    '<asset><mesh name="m" vertex="1e38 0 0 1 0 0 0 1e38 0 0 0 inf"/></asset>',
    '<asset><mesh name="m" builtin="wedge" params="-5 -5 1 1 0"/></asset>',
    '<asset><mesh name="m" builtin="cone" params="0 0"/></asset>',
    '<tendon><fixed><joint joint="x" coef="nan"/></fixed></tendon>',
    '<deformable><flex name="f" dim="2" body="world" vertex="" element="0 1 9"/></deformable>',
    '<extension><plugin plugin="mujoco.pid"><instance name="i"/></plugin></extension>',
    '<actuator><general site="x" dyntype="user" actdim="-3"/></actuator>',
    '<compiler inertiafromgeom="true" boundmass="nan" settotalmass="1e300"/>',
    '<equality><connect body1="world" anchor="nan 0 0"/></equality>',
    '<default><geom type="mesh" mesh="z"/><joint type="free" axis="0 0 0"/></default>',
]


def models() -> list[str]:
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    return [path.read_text() for path in sorted(folder.glob("*.xml"))]


def changed(rng: random.Random, text: str) -> str:
    """The text with one thing in it that somebody may have put there."""
    values = list(re.finditer(r'="([^"]*)"', text))
    tags = list(re.finditer(r"<\w+", text))
    bodies = list(re.finditer(r"<body[^>/]*>", text))
    kind = rng.randrange(6)
    if kind == 0 and bodies:
        at = rng.choice(bodies).end()
        return text[:at] + rng.choice(IN_BODIES) + text[at:]
    if kind == 1:
        return text.replace("</mujoco>", rng.choice(AT_THE_END) + "</mujoco>")
    if kind == 2:
        at = rng.choice(tags).end()
        return (
            f'{text[:at]} {rng.choice(("class", "name", "type"))}="{rng.choice(VALUES)}"{text[at:]}'
        )
    if kind == 3:
        at = rng.choice(tags).end()
        return f'{text[:at]} class="%n{"%s" * 12}"{text[at:]}'
    value = rng.choice(values)
    words = value[1].split() or [""]
    words[rng.randrange(len(words))] = rng.choice(VALUES)
    return text[: value.start(1)] + " ".join(words) + text[value.end(1) :]


def read_many(seed: int, count: int) -> None:
    """Read changed models; whatever is neither a mechanism nor a ModelError ends it."""
    rng, texts = random.Random(seed), models()
    warnings.simplefilter("ignore")
    outcomes = {"read": 0, "refused": 0}
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.choice([1, 1, 2, 4])):
            text = changed(rng, text)
        try:
            read_mjcf(text, "arm.xml")
            outcomes["read"] += 1
        except ModelError:
            outcomes["refused"] += 1
    print(outcomes["read"], outcomes["refused"])


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 150), *(pytest.param(s, 1500, marks=pytest.mark.long) for s in (1, 2, 3))],
)
def test_hostile_files_are_read_or_refused(seed, count, tmp_path):
    command = [sys.executable, __file__, str(seed), str(count)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    read, refused = map(int, done.stdout.split())
    assert read + refused == count
    assert min(read, refused) > count // 20


if __name__ == "__main__":
    read_many(int(sys.argv[1]), int(sys.argv[2]))

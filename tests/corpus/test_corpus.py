"""The robot files that the packages of the tests bring: each agrees with its peer, or is listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import hinge
from corpus.files import Found, files_below, kind_of, robot_files
from corpus.page import write
from corpus.refusals import Refusal, Refusals
from corpus.verdicts import AGREES, CRASHED, DIFFERS, PEER_REFUSES, REFUSED, Judge, Verdict

pytest.importorskip("mujoco")
pytest.importorskip("pinocchio")

from corpus.compare import DiffersError  # noqa: E402
from corpus.mjcf import compare_mjcf  # noqa: E402
from corpus.urdf import compare_urdf  # noqa: E402

FILES = robot_files(["gymnasium", "mujoco-core", "example-robot-data"])
LISTED = Refusals.read()

URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0 .1 -1"/>
  <mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
  </joint></robot>"""
MJCF = """<mujoco><worldbody><body name="arm"><joint name="j" axis="0 1 0" stiffness="2"/>
  <geom size=".1" pos="0 .1 -1"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.dismiss()


@pytest.mark.parametrize("file", FILES, ids=str)
def test_file_agrees_or_is_listed(file, judge):
    verdict = judge(file)
    assert not LISTED.surprises([verdict]), f"{verdict.outcome}: {verdict.detail}"
    assert not LISTED.stale([verdict])


def found(path: Path, text: str) -> Found:
    path.write_text(text)
    return Found("mine", "1", path.name, path, kind_of(path) or "mjcf")


def test_every_kind_of_verdict(judge, tmp_path):
    """Files that agree, that nobody reads, that only the peer reads, and one that kills."""

    class Deadly(Found):
        def __reduce__(self):
            return os._exit, (3,)

    def outcome(text: str) -> str:
        return judge(found(tmp_path / "file", text)).outcome

    assert outcome(URDF) == outcome(MJCF) == AGREES
    assert outcome(URDF.replace("base", "", 1)) == PEER_REFUSES
    assert outcome("<mujoco><worldbody/><unknown/></mujoco>") == PEER_REFUSES
    assert outcome(URDF.replace("</joint>", '<mimic joint="missing"/></joint>')) == REFUSED
    assert judge(Deadly("", "", "", tmp_path, "urdf")).outcome == CRASHED
    assert outcome(URDF) == AGREES


@pytest.mark.parametrize(
    ("compare", "text", "was", "becomes", "word"),
    [
        (compare_urdf, URDF, 'value="3"', 'value="3.00001"', "mass matrix"),
        (compare_urdf, URDF, '"0 .1 -1"', '"0 .2 -1"', "mass matrix"),
        (compare_urdf, URDF, 'name="j"', 'name="k"', "joints"),
        (compare_urdf, URDF, 'xyz="0 1 0"', 'xyz="0 1 1e-5"', "poses"),
        (compare_urdf, URDF, "</joint>", '<dynamics damping="2"/></joint>', "damping"),
        (compare_mjcf, MJCF, 'stiffness="2"', "", "springs"),
        (compare_mjcf, MJCF, 'stiffness="2"', 'stiffness="2" frictionloss="1"', "friction"),
        (compare_mjcf, MJCF, 'stiffness="2"', 'stiffness="2" armature=".1"', "mass matrix"),
        (compare_mjcf, MJCF, 'stiffness="2"', 'stiffness="2" range="0 1"', "limits"),
        (compare_mjcf, MJCF, "<worldbody>", '<option gravity="0 0 -9.8"/><worldbody>', "forces"),
    ],
)
def test_what_differs_is_seen(compare, text, was, becomes, word, tmp_path, monkeypatch):
    """hinge reads another robot than the peer."""
    file, other = tmp_path / "file.xml", text.replace(was, becomes)
    file.write_text(text)
    monkeypatch.chdir(tmp_path)
    assert compare(file)
    load = hinge.load
    monkeypatch.setattr(hinge, "load", lambda path, **options: load(other, **options))
    with pytest.raises(DiffersError, match=word):
        compare(file)


def verdict(name: str, outcome: str, detail: str = "", nv: int = 0) -> Verdict:
    return Verdict(Found("pack", "2.1", name, Path(name), "urdf"), outcome, detail, nv)


VERDICTS = [
    verdict("a.urdf", AGREES, nv=3),
    verdict("b.urdf", AGREES),
    verdict("c.urdf", PEER_REFUSES),
    verdict("d.urdf", REFUSED, "line 3: too bad"),
    verdict("e.urdf", REFUSED, "line 3: too odd"),
    verdict("f.urdf", DIFFERS, "mass matrix"),
    verdict("g.urdf", CRASHED),
]


def test_a_list_says_neither_less_nor_more():
    listed = Refusals((Refusal("It is too bad.", "too bad", ("pack: [de].urdf", "pack: x*")),))
    assert [v.file.name for v in listed.surprises(VERDICTS)] == ["e.urdf", "f.urdf", "g.urdf"]
    (stale,), (idle,) = listed.stale(VERDICTS), listed.idle(VERDICTS)
    assert "e.urdf" in stale and "too odd" in stale and "x*" in idle
    assert not Refusals((Refusal("", "", ("other: x*",)),)).idle(VERDICTS)


def test_the_page_counts(tmp_path):
    write(tmp_path / "page.md", VERDICTS, Refusals((Refusal("Bad.", "too bad", ("pack: *",)),)))
    text = (tmp_path / "page.md").read_text()
    assert "| pack 2.1 | 7 | 6 | 2 | 1 | 1 | 3 | 33.3 |" in text
    assert "- Bad. (1: pack `d.urdf`)" in text


def test_files_below_a_folder(tmp_path):
    (tmp_path / "arm" / "old").mkdir(parents=True)
    found(tmp_path / "arm" / "a.urdf", f'<?xml version="1.0"?>\n<!-- <mujoco> -->{URDF}')
    found(tmp_path / "arm" / "old" / "b.XML", MJCF)
    found(tmp_path / "arm" / "part.xml", "<mujocoinclude/>")
    found(tmp_path / "arm" / "note.txt", MJCF)
    assert [(str(f), f.kind) for f in files_below(tmp_path)] == [
        ("arm: arm/a.urdf", "urdf"),
        ("arm: arm/old/b.XML", "mjcf"),
    ]

"""Mutated URDF files: each gives a robot that can be used or one HingeError, and nothing else.

A file that is read without a warning means what it says: where Pinocchio reads it too, both give
the same motion.
"""

from __future__ import annotations

import importlib
import random
import re
import warnings

import numpy as np
import pytest

import hinge
from hinge import algorithms as alg
from hinge.load.urdf import read_urdf
from mechanisms import Generic, assert_close
from robot_files import ARM, urdf_files

# numbers, words and signs that are wrong somewhere
VALUES = "|0|-1|1e308|-inf|nan|1e-320|1e13|0 0 0|1 2 3 4|1, 2, 3|0,5|1.\n5|%n|${x}|../x|world|base"
VALUES = (VALUES + "|package://../x|file:///x|fixed|Planar|spherical|floating|ä|\ud800|'").split(
    "|"
)
PIECES = ["<", ">", "/", '"', "&amp;", "&x;", "]]>", "<!--", "-->", "<![CDATA[", "\x00", "\n", "é"]
PIECES += ["<link/>", "<mass/>", "<inertia ixx='1'/>", "<limit/>", "<material/>", "<axis rpy='0'/>"]
WORD = re.compile(r"[A-Za-z_]+")
VALUE = re.compile(r'"[^"]*"')
ELEMENT = re.compile(r"<(\w+)[^<>]*(?:/>|>(?:(?!<\1\b).)*?</\1>)", re.DOTALL)


def another_value(rng, text):
    return _replaced(rng, text, VALUE, lambda old: f'"{rng.choice(VALUES)}"')


def a_value_from_elsewhere(rng, text):
    found = VALUE.findall(text)
    return _replaced(rng, text, VALUE, lambda old: rng.choice(found))


def another_word(rng, text):
    return _replaced(rng, text, WORD, lambda old: rng.choice((old[:-1], old.upper(), old + "s")))


def an_element_twice(rng, text):
    return _replaced(rng, text, ELEMENT, lambda old: old + old)


def an_element_less(rng, text):
    return _replaced(rng, text, ELEMENT, lambda old: "")


def a_piece_more(rng, text):
    i = rng.randrange(len(text))
    return text[:i] + rng.choice(PIECES) + text[i:]


def a_part_less(rng, text):
    i = rng.randrange(len(text))
    return text[:i] + text[i + rng.randrange(40) :]


def cut_off(rng, text):
    return text[: rng.randrange(len(text))]


MUTATIONS = [another_value, a_value_from_elsewhere, another_word, an_element_twice]
MUTATIONS += [an_element_less, a_piece_more, a_part_less]


def _replaced(rng, text, pattern, make):
    """The text with one match, near a random place, replaced."""
    match = pattern.search(text, rng.randrange(len(text)))
    return text if match is None else text[: match.start()] + make(match[0]) + text[match.end() :]


def mutated(rng, text):
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        text = rng.choice(MUTATIONS)(rng, text or " ")
    return cut_off(rng, text or " ") if rng.random() < 0.02 else text


def assert_robot_or_refusal(text, floating_base=False):
    """The mechanism, if there is one, and the warnings; everything that is said is ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mech = read_urdf(text, "r.urdf", floating_base=floating_base)
        except hinge.HingeError as error:
            assert str(error).startswith("r.urdf:") and len(str(error)) < 1000
            return None, caught
    assert all(w.category is hinge.ModelWarning and w.filename == __file__ for w in caught)
    assert_usable(mech)
    return mech, caught


def assert_usable(mech):
    """What a mechanism is asked first works; its state may be anything that floats hold."""
    q = alg.neutral(mech)
    with np.errstate(all="ignore"):
        tau = alg.inverse_dynamics(mech, q, np.zeros(mech.nv), np.zeros(mech.nv))
    assert q.shape == (mech.nq,) and tau.shape == (mech.nv,)


def assert_pinocchio_agrees(bridge, text, mech):
    """The same inverse dynamics, if Pinocchio reads the text at all.

    It takes the end of a line in a value for a part of a number or a name.
    """
    if any("\n" in value for value in VALUE.findall(text)):
        return
    try:
        model, followers = bridge.pin.buildModelFromXML(text), bridge.followers(text)
    except (ValueError, SyntaxError):
        return
    oracle = bridge.PinocchioRobot(Generic(hinge.Robot(mech)), model, followers)
    rng = np.random.default_rng(0)
    q = alg.random_configuration(mech, rng)
    qd, qdd = rng.normal(size=(2, mech.nv))
    tau = oracle.inverse_dynamics(q, qd, qdd)
    scale = np.abs(tau).max(initial=1e-3)
    assert_close(alg.inverse_dynamics(mech, q, qd, qdd), tau, 1e-9, scale)


def some_texts(count, most=60_000):
    """The arm, and real files that are not too long, where they are installed."""
    files = [path for path in urdf_files() if path.stat().st_size < most]
    return [ARM, *(path.read_text() for path in files[:: max(1, len(files) // count)])]


def test_mutations_change_the_text():
    rng = random.Random(1)
    for mutation in (*MUTATIONS, cut_off):
        assert any(mutation(rng, ARM) != ARM for _ in range(5)), mutation


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_load_or_are_refused(seed):
    rng = random.Random(seed)
    found = [assert_robot_or_refusal(mutated(rng, ARM), rng.random() < 0.3) for _ in range(150)]
    assert 20 < sum(mech is not None for mech, _ in found) < 140


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_mutated_real_files_load_as_pinocchio_does_or_are_refused(seed):
    pytest.importorskip("pinocchio")
    bridge, rng = importlib.import_module("oracle.pinocchio_bridge"), random.Random(1000 + seed)
    texts = [mutated(rng, text) for text in some_texts(10) for _ in range(10)]
    found = [(text, *assert_robot_or_refusal(text)) for text in texts]
    for text, mech, said in found:
        if mech is not None and mech.nv and not said:
            assert_pinocchio_agrees(bridge, text, mech)
    assert {mech is None for _, mech, _ in found} == {True, False}

"""A round of every line; how crashes, hangs and failures are told; the page."""

import os
import re
import signal
import time

import numpy as np
import pytest

from campaign import command, worker
from campaign.command import Tally, main
from campaign.error_bounds import with_bounds
from campaign.lines import LINES, Line, Outcome, all_lines
from campaign.report import page
from campaign.worker import rounds
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from pages import DOCS

# some take seconds, gigabytes, or processes of their own; the whole command runs them all
IN_FULL = {"random-trees", "forks", "interrupts", "threads", "guard-pages", "huge-batches"}
IN_FULL |= {"changed-mjcf-files"}


@pytest.mark.parametrize("name", sorted(set(all_lines()) - IN_FULL))
def test_a_round_of_a_line(name):
    line = LINES[name]
    outcome = line.round(line.rng(seed=0, number=0))
    assert outcome.count >= 0 and line.what.endswith(".") and line.unit


def test_a_line_in_a_process_of_its_own():
    rows = list(rounds(LINES["guard-pages"], 0, 0.0))
    assert [row["round"] for row in rows] == [0] and rows[0]["count"] > 50, rows


@pytest.mark.long
def test_the_whole_command(tmp_path):
    report = tmp_path / "campaign.md"
    assert main(["--minutes", "0.4", "--seed", "1", "--report", str(report)]) == 0
    rows = re.findall(r"^\| ([a-z-]+) \| .* \| 0 \|$", report.read_text(), re.M)
    assert rows == list(all_lines())


# what is told of a line that fails


def made(fn, limit=60.0):
    return Line("made-up", "Something.", fn, "things", "eps", 1.0, limit, 2)


def fails(rng):
    raise AssertionError("a finding")


def crashes(rng):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(rng):
    time.sleep(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    "fn, limit, told",
    [
        (lambda rng: Outcome(7, 0.5), 60.0, []),
        (fails, 60.0, ["AssertionError: a finding"] * 2),
        (crashes, 60.0, ["the process ended with -9"]),
        (hangs, 1.0, ["the process hung for 1 s"]),
    ],
    ids=["nothing", "a failure", "a crash", "a hang"],
)
def test_what_becomes_of_a_line(fn, limit, told, monkeypatch):
    """The worker is a fork here: it has the line, which no other process has."""
    monkeypatch.setitem(LINES, "made-up", made(fn, limit))
    monkeypatch.setattr(worker.subprocess, "Popen", Forked)
    tally = Tally(LINES["made-up"])
    for row in rounds(tally.line, 0, 1.0):
        tally.add(row)
    assert [f["failed"] for f in tally.failures] == told
    if not told:
        assert (tally.rounds, tally.count, tally.worst) == (2, 14, 0.5)


class Forked:
    """What `subprocess.Popen` is to the campaign, of this very process."""

    def __init__(self, command, cwd, stdout, stderr, text):
        reads, writes = os.pipe()
        self.pid, self.returncode = os.fork(), None
        if self.pid == 0:
            os.dup2(writes, 1)
            worker.sys.stdout = os.fdopen(1, "w", closefd=False)
            worker.work("made-up", 0, 1.0)
            os._exit(0)
        os.close(writes)
        self.stdout = os.fdopen(reads)

    def wait(self):
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self):
        if self.returncode is None:
            os.kill(self.pid, 9)


def test_the_page_says_what_failed_and_how_to_see_it_again():
    tally = Tally(made(fails))
    tally.add({"round": 0, "count": 12345, "worst": 0.25, "compared": 6200})
    assert "found nothing" in page([tally], 3, 1.5)
    tally.add({"round": 1, "failed": "AssertionError: a finding", "trace": ""})
    text = page([tally], 3, 1.5)
    assert "| made-up | Something. | 2 | 12\u202f345 things | 0.25 eps, of 50% | 1 |" in text
    assert "found what is below" in text and "AssertionError: a finding" in text
    assert "python -m tests.campaign --line made-up --seed 3 --round 1" in text


def test_the_command(tmp_path, monkeypatch, capsys):
    def found(line, seed, seconds):
        yield {"round": 0, "failed": "a finding", "trace": "where"}

    monkeypatch.setattr(command, "rounds", found)
    report = tmp_path / "page.md"
    assert main(["--line", "spellings", "--minutes", "0", "--report", str(report)]) == 1
    assert "a finding" in report.read_text()
    assert "--line spellings --seed 0 --round 0" in capsys.readouterr().out
    assert main(["--line", "results-over-arguments", "--round", "3"]) == 0
    assert "Outcome(count=10" in capsys.readouterr().out
    for wrong in (["--line", "nothing"], ["--round", "3"]):
        with pytest.raises(SystemExit):
            main(wrong)


def test_the_page_in_the_documentation_has_every_line():
    rows = re.findall(r"^\| ([a-z-]+) \| ", (DOCS / "campaign.md").read_text(), re.M)
    assert rows == ["line", *all_lines()]


# bounds


def test_bounds_hold_whatever_rounds():
    """A program in float32 is within its bounds of the same in float64, and not far within."""

    def fn(x, y):
        z = (x - y) * x / (1 + y @ y)
        return np.array([np.sin(z[0]) * np.sqrt(1 + z[1] * z[1]), z[0] - z[1] + z[2], -z[2]])

    program = trace(fn, [(3,), (3,)])
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-9, 9, size=(2, 1000, 1))
    narrow = list((sizes * rng.normal(size=(2, 1000, 3))).astype(np.float32))
    (exact,) = interpret(program, [x.astype(float) for x in narrow])
    (got,) = interpret(program, narrow)
    worst = 0.0
    for i, (value, bound) in enumerate(with_bounds(program, narrow)):
        assert np.array_equal(value, got[:, i])
        ratio = np.abs(got[:, i] - exact[:, i]) / bound
        assert (ratio <= 1).all()
        worst = max(worst, ratio.max())
    assert worst > 0.1

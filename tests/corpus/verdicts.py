"""What becomes of a file: judged in another process, so that a crash is a verdict too."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from corpus.files import Found

AGREES, PEER_REFUSES, REFUSED, DIFFERS, CRASHED = (
    "agrees",
    "the peer refuses it",
    "refused",
    "differs",
    "crashed",
)
PATIENCE = 300  # seconds for one file


@dataclass(frozen=True)
class Verdict:
    """What became of a file, and a word on why; nv: the degrees of freedom that were compared."""

    file: Found
    outcome: str
    detail: str = ""
    nv: int = 0


class Judge:
    """A process that judges files one after the other; a new one takes over if it dies or hangs.

    seed: of the states.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, file: Found) -> Verdict:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, spawn, initializer=_settle)
        try:
            return self._pool.submit(_judge, file, self._seed).result(PATIENCE)
        except BrokenProcessPool:
            self.dismiss()
            return Verdict(file, CRASHED, "the process died")
        except TimeoutError:
            self.dismiss()
            return Verdict(file, CRASHED, f"no verdict within {PATIENCE} s")

    def dismiss(self) -> None:
        """End the process."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown()
            self._pool = None


def _settle() -> None:
    """Peers print what they think, and MuJoCo writes it to a file where it is: not here."""
    os.chdir(tempfile.mkdtemp())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _judge(file: Found, seed: int) -> Verdict:
    # the peers are there in this process only
    import hinge
    from corpus.compare import DiffersError, PeerRefusesError
    from corpus.mjcf import compare_mjcf
    from corpus.urdf import compare_urdf

    compare = {"urdf": compare_urdf, "mjcf": compare_mjcf}[file.kind]
    try:
        return Verdict(file, AGREES, nv=compare(file.path, seed))
    except PeerRefusesError as e:
        return Verdict(file, PEER_REFUSES, str(e))
    except DiffersError as e:
        return Verdict(file, DIFFERS, str(e))
    except hinge.HingeError as e:
        return Verdict(file, REFUSED, str(e))
    except Exception:
        return Verdict(file, CRASHED, traceback.format_exc(limit=-3))

"""Compiled code on disk: found again, never trusted, and never in the way."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from fresh_process import run_python
from hinge import Kernel
from hinge.graph.program import trace
from hinge.runtime import artifact, cache, cpu, engine
from hinge.runtime.target import Target

linux = pytest.mark.skipif(sys.platform != "linux", reason="the place depends on the system")
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache for one test."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hinge"


# a file


def test_what_is_stored_is_found(place):
    assert cache.load("key") is None
    for payload in (b"machine code", b"", os.urandom(100_000)):
        cache.store("key", payload)
        assert cache.load("key") == payload
    assert [f.name for f in place.iterdir()] == ["key"]


@posix
def test_nobody_else_may_look(place):
    cache.store("key", b"code")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "key").stat().st_mode) == 0o600


def _flip(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def _link(file):
    file.rename(file.with_name("other"))
    file.symlink_to(file.with_name("other"))


def _folder(file):
    file.unlink()
    file.mkdir()


def _pipe(file):
    file.unlink()
    os.mkfifo(file)


def _socket(file):
    file.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(file))


def _other(file):
    """What is sound under another key."""
    cache.store("other", b"other code")
    file.write_bytes(file.with_name("other").read_bytes())
    file.with_name("other").unlink()


DAMAGE = {
    "a flipped bit": _flip,
    "a wrong digest": lambda f: f.write_bytes(f.read_bytes()[:15] + bytes(32) + b"code"),
    "another beginning": lambda f: f.write_bytes(b"X" + f.read_bytes()[1:]),
    "truncated": lambda f: os.truncate(f, 40),
    "less than a head": lambda f: os.truncate(f, 10),
    "empty": lambda f: os.truncate(f, 0),
    "longer": lambda f: f.write_bytes(f.read_bytes() + b"!"),
    "a link": _link,
    "a folder": _folder,
    "a pipe": _pipe,
    "a socket": _socket,
    "that of another key": _other,
    "a terabyte": lambda f: os.truncate(f, 1 << 40),
    "not to be read": lambda f: f.chmod(0o000) or os.truncate(f, 0),
    "writable by others": lambda f: f.chmod(0o622),
    "gone": lambda f: f.unlink(),
}


@posix
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_not_sound_is_not_there(place, damage):
    cache.store("key", b"code")
    assert cache.load("key") == b"code"
    DAMAGE[damage](place / "key")
    assert cache.load("key") is None
    cache.store("key", b"new code")
    assert cache.load("key") == (None if damage == "a folder" else b"new code")
    assert not list(place.glob(".new-*"))
    assert cache.clear() == (damage != "a folder") + (damage == "a link")


# the folder


def assert_no_cache():
    assert cache.folder() is None and cache.load("key") is None
    cache.store("key", b"code")
    assert cache.load("key") is None
    assert cache.info() == (None, 0, 0) and cache.clear() == 0


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_not_used(place, mode):
    cache.store("key", b"code")
    place.chmod(mode)
    assert_no_cache()


@posix
def test_a_folder_of_someone_else_is_not_used(place, monkeypatch):
    cache.store("key", b"code")
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert_no_cache()


def _as_it_looks(monkeypatch, path, owner, mode):
    """Another owner and mode of one path, to whoever looks."""
    real = os.lstat

    def lstat(asked, *arguments, **keywords):
        status = real(asked, *arguments, **keywords)
        if os.fspath(asked) != str(path):
            return status
        kind = stat.S_IFMT(status.st_mode)
        return os.stat_result([kind | mode, *status[1:4], owner, *status[5:]])

    monkeypatch.setattr(os, "lstat", lstat)


@posix
@pytest.mark.parametrize(
    "stranger, mode, used",
    [
        pytest.param(False, 0o755, True, id="mine"),
        pytest.param(True, 0o755, False, id="a stranger's"),
        pytest.param(False, 0o777, False, id="open to all"),
        pytest.param(False, 0o1777, True, id="open to all, but owners rename"),
    ],
)
def test_nobody_else_can_put_another_folder_in_its_place(place, monkeypatch, stranger, mode, used):
    cache.store("key", b"code")
    _as_it_looks(monkeypatch, place.parent, os.geteuid() + stranger * 12345, mode)
    if used:
        assert cache.load("key") == b"code" and cache.folder() == place
    else:
        assert_no_cache()


@posix
def test_a_folder_behind_a_link(place, monkeypatch, tmp_path):
    """One's own link is followed, a stranger's is not; nor is one into a stranger's folder."""
    real = tmp_path / "elsewhere" / "kept"
    real.mkdir(parents=True, mode=0o700)
    place.symlink_to(real)
    cache.store("key", b"code")
    assert cache.load("key") == b"code" and (real / "key").exists()
    for part in (place, real.parent):
        with monkeypatch.context() as m:
            _as_it_looks(m, part, os.geteuid() + 12345, 0o755)
            assert_no_cache()


@posix
def test_a_relative_name_counts_for_nothing(place, monkeypatch, tmp_path):
    """What lies in the folder that a program is run in may have come with an archive."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("", ".", "cache", "~/.cache", "../x"):
        monkeypatch.setenv("XDG_CACHE_HOME", name)
        assert cache.folder() == tmp_path / "home/.cache/hinge"
    monkeypatch.setenv("HOME", "home")
    assert_no_cache()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert_no_cache()
    assert {f.name for f in tmp_path.iterdir()} == {"home"}


def test_two_slashes_in_front(place, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + os.environ["XDG_CACHE_HOME"])
    cache.store("key", b"code")
    assert cache.load("key") == b"code"


def test_a_file_in_place_of_the_folder(place, monkeypatch):
    place.parent.mkdir(exist_ok=True)
    place.write_text("")
    assert_no_cache()
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    assert_no_cache()


def test_no_home(place, monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert_no_cache()


def test_a_home_that_is_not_there_is_made(place, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(place / "home"))
    cache.store("key", b"code")
    assert cache.load("key") == b"code" and cache.folder() == place / "home/.cache/hinge"


def test_a_folder_that_cannot_be_written(place, monkeypatch):
    cache.store("key", b"code")

    def refuse(*args, **keywords):
        raise PermissionError("read-only file system")

    with monkeypatch.context() as m:
        m.setattr(tempfile, "mkstemp", refuse)
        cache.store("other", b"code")
    with monkeypatch.context() as m:
        m.setattr(os, "replace", refuse)
        cache.store("other", b"code")
    assert cache.load("other") is None and cache.load("key") == b"code"
    assert [f.name for f in place.iterdir()] == ["key"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_read_only_folder(place):
    cache.store("key", b"code")
    place.chmod(0o500)
    cache.store("other", b"code")
    assert cache.load("other") is None and cache.load("key") == b"code"


@posix
def test_a_full_disk_leaves_nothing_behind(place):
    """Whatever the folder is on: a limit on the size of files stands for its end."""
    cache.store("key", b"code")
    run_python(FULL)
    assert cache.load("key") == b"code" and [f.name for f in place.iterdir()] == ["key"]


FULL = """
import resource, signal
from hinge.runtime import cache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
cache.store("large", bytes(100_000))
cache.store("key", bytes(100_000))
assert cache.load("large") is None and cache.load("key") == b"code"
"""


@posix
def test_an_interrupt_leaves_nothing_behind(place, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    cache.store("key", b"code")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.store("key", b"new code")
    assert [f.name for f in place.iterdir()] == ["key"] and cache.load("key") == b"code"


def test_a_folder_that_cannot_be_listed(place, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("not to be listed")

    monkeypatch.setattr(Path, "iterdir", refuse)
    cache.store("key", b"code")
    assert cache.load("key") == b"code" and cache.info() == (place, 0, 0)


def test_each_system_has_its_place(monkeypatch):
    local, me = Path("/local").absolute(), Path("/me").absolute()
    monkeypatch.setenv("LOCALAPPDATA", str(local))
    monkeypatch.setattr(Path, "home", lambda: me)
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache._place() == local / "hinge/cache"
    for name in ("", "local"):
        monkeypatch.setenv("LOCALAPPDATA", name)
        assert cache._place() == me / "AppData/Local/hinge/cache"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache._place() == me / "Library/Caches/hinge"


def test_where_owners_are_not_known_the_folder_is_used(place, monkeypatch):
    monkeypatch.delattr(os, "geteuid", raising=False)
    cache.store("key", b"code")
    assert cache.load("key") == b"code"


def test_info_and_clear(place):
    cache.store("a", b"12345")
    cache.store("b", b"")
    head = (place / "b").stat().st_size
    assert cache.info() == (place, 2, 5 + 2 * head)
    assert cache.clear() == 2 and cache.info() == (place, 0, 0)


def test_what_was_not_used_for_longest_is_dropped(place, monkeypatch):
    for i in range(10):
        cache.store(f"key{i}", bytes(1000))
        os.utime(place / f"key{i}", (1000 + i, 1000 + i))
    size = (place / "key0").stat().st_size
    monkeypatch.setattr(cache, "LIMIT", 10 * size)
    # a look at one of the oldest makes it one of the newest
    assert cache.load("key1") == bytes(1000)
    cache.store("key10", bytes(1000))
    left = {f.name for f in place.iterdir()}
    assert left == {"key1", "key10", *(f"key{i}" for i in range(4, 10))}
    assert cache.info()[1:] == (8, 8 * size)
    # below the limit nothing goes
    cache.store("key11", bytes(1000))
    cache.store("key12", bytes(1000))
    assert cache.info()[1] == 10


def test_files_that_were_never_finished_are_dropped(place):
    cache.store("key", b"code")
    for name, age in ((".new-lost", 1e6), (".new-now", 10)):
        (place / name).write_bytes(b"half")
        os.utime(place / name, (time.time() - age,) * 2)
    cache.store("other", b"code")
    assert {f.name for f in place.iterdir()} == {"key", "other", ".new-now"}


def test_others_may_tidy_up_at_the_same_time(place, monkeypatch):
    """Files that go while they are looked at or dropped are no problem; nor is a stubborn one."""
    for i in range(5):
        cache.store(f"key{i}", bytes(1000))
    listed = cache._files(place)
    monkeypatch.setattr(cache, "_files", lambda _: [*listed, place / "gone"])
    monkeypatch.setattr(cache, "LIMIT", 2000)
    real = Path.unlink

    def unlink(self, missing_ok=False):
        if self.name == "key0":
            raise PermissionError("in use")
        if self.name == "key1":
            real(self)
        real(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    cache.store("key5", b"")
    assert cache.load("key5") == b"" and (place / "key0").exists()
    assert not (place / "key1").exists() and cache.info()[0] == place


def test_a_use_that_cannot_be_noted(place, monkeypatch):
    cache.store("key", b"code")
    os.utime(place / "key", (1000, 1000))

    def refuse(*arguments):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.load("key") == b"code"


WRITER = """
import os, sys
from hinge.runtime import cache
for i in range(200):
    cache.store("key", sys.argv[1].encode() * 5000 * (1 + i % 3))
    data = cache.load("key")
    assert data and data == data[:1] * len(data) and len(data) % 5000 == 0, "torn"
"""


@linux
def test_writers_at_the_same_time(place):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, letter]) for letter in "abc"]
    assert [w.wait(timeout=60) for w in writers] == [0, 0, 0]
    assert [f.name for f in place.iterdir()] == ["key"]


# keys


def test_everything_the_code_depends_on_is_in_the_key(monkeypatch):
    def key(program="program", target=("cpu", "+a", 256), dtype=np.float64, strict=False):
        source = artifact.Source(None, "title", np.dtype(dtype), strict, program)
        return source.key(cpu.Cpu(target=Target(*target)))

    keys = [
        key(),
        key("program2"),
        key(target=("cpu2", "+a", 256)),
        key(target=("cpu", "+b", 256)),
        key(target=("cpu", "+a", 128)),
        key(dtype=np.float32),
        key(strict=True),
    ]
    for module, name in [
        (artifact, "source_stamp"),
        (engine, "llvm_version"),
        (engine, "fast_calls_work"),
    ]:
        with monkeypatch.context() as m:
            m.setattr(module, name, lambda: "other")
            keys.append(key())
    assert key() == keys[0] and len(set(keys)) == len(keys)
    # parts do not run into each other
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("ab") == cache.digest(b"ab")


def test_the_stamp_changes_with_the_source(monkeypatch, tmp_path):
    package = tmp_path / "package"
    (package / "runtime").mkdir(parents=True)
    (package / "small.py").write_text("a = 1")
    monkeypatch.setattr(artifact, "__file__", str(package / "runtime" / "artifact.py"))
    stamp = artifact.source_stamp.__wrapped__
    stamps = [stamp()]
    os.utime(package / "small.py", (1, 1))
    stamps.append(stamp())
    (package / "more.py").write_text("")
    stamps.append(stamp())
    assert len(set(stamps)) == 3 and stamp() == stamps[2]


# kernels


def test_code_is_compiled_once(place, monkeypatch):
    program = trace(lambda x: (x * 3, x @ x), [(4,)])
    x = np.arange(8.0).reshape(2, 4)
    first = Kernel(program)
    expected = first(x)

    def never(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(cpu, "compile_texts", never)
    again = Kernel(program)
    assert again.ops == first.ops and again.artifact == first.artifact
    assert all(np.array_equal(a, b) for a, b in zip(again(x), expected, strict=True))
    with pytest.raises(AssertionError, match="compiled again"):
        Kernel(program, dtype=np.float32)(x)


def test_a_program_is_traced_only_if_its_code_is_not_found(place):
    made = []

    def make():
        made.append(trace(lambda x: x * 5, [(2,)]))
        return made[-1]

    for _ in range(3):
        assert Kernel(make, key="times five")(np.ones(2)).tolist() == [5, 5]
    assert len(made) == 1
    assert Kernel(make, key="times five again")(np.ones(2)).tolist() == [5, 5]
    assert len(made) == 2


PROCESS = """
import numpy as np, hinge
from hinge.runtime import cpu
from hinge.graph import program
done = []
def noted(module, name):
    real = getattr(module, name)
    setattr(module, name, lambda *a: (done.append(name), real(*a))[1])
noted(cpu, "compile_texts")
noted(program, "trace")
robot = hinge.zoo.arm(2)
M = robot.mass_matrix(np.array([0.1, 0.2]))
print(done, robot.kernel("mass_matrix", "q").ops, M.tolist())
"""


def in_a_new_process(seed):
    done, _, rest = run_python(PROCESS, PYTHONHASHSEED=str(seed)).partition("]")
    return done + "]", rest


@linux
def test_a_new_process_finds_the_code(place):
    done, expected = in_a_new_process(1)
    assert done == "['trace', 'compile_texts']"
    assert in_a_new_process(2) == ("[]", expected)
    (file,) = place.iterdir()
    _flip(file)
    assert in_a_new_process(3) == (done, expected)
    assert in_a_new_process(4) == ("[]", expected)
    place.chmod(0o777)
    assert in_a_new_process(5) == (done, expected)


@linux
def test_one_kernel_in_the_place_of_another_is_not_run(place):
    """Copied over every other file, whatever compiles afterwards gives its own numbers."""
    code = """
import numpy as np, hinge
q = np.array([0.1, 0.2])
for robot in (hinge.zoo.arm(2), hinge.zoo.pendulum(2)):
    print(robot.mass_matrix(q).tolist(), robot.inverse_dynamics(q, q, q).tolist())
"""
    expected = run_python(code)
    files = sorted(place.iterdir())
    assert len(files) == 4
    for file in files[1:]:
        file.write_bytes(files[0].read_bytes())
    assert run_python(code) == expected

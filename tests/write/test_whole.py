"""Files are there whole or not at all, from every writer, on a full disk too."""

import os
import resource
from contextlib import contextmanager

import pytest

import hinge
from hinge import zoo
from hinge.cli import main
from hinge.write.whole import written_whole

ARM = zoo.arm(2)


def motion():
    return hinge.simulate(ARM, [0.1, 0.2], duration=0.1, dt=0.01)


def excitation():
    return hinge.exciting_trajectory(ARM, duration=2.0, harmonics=3)


WRITERS = {
    "a picture": ("a.png", lambda path: ARM.draw(path=path, size=(80, 60))),
    "a picture as SVG": ("a.svg", lambda path: ARM.draw(path=path, size=(80, 60))),
    "a picture as PDF": ("a.pdf", lambda path: ARM.draw(path=path, size=(80, 60))),
    "a plot": ("b.png", lambda path: motion().plot(path)),
    "a plot as PDF": ("b.pdf", lambda path: motion().plot(path)),
    "a film": ("a.gif", lambda path: motion().draw(path, size=(80, 60))),
    "a page": ("a.html", lambda path: motion().draw(path)),
    "arrays": ("a.npz", lambda path: motion().save(path)),
    "a table": ("a.csv", lambda path: motion().save(path)),
    "a robot": ("a.urdf", lambda path: hinge.save(zoo.acrobot(), path, overwrite=True)),
    "a plot of an excitation": ("c.png", lambda path: excitation().plot(path)),
}


@contextmanager
def full_disk(room=100):
    """No file grows beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, writer):
    name, write = WRITERS[writer]
    if name.endswith(".html"):
        pytest.importorskip("viser")
    path = tmp_path / name
    path.write_bytes(b"old")
    # what is compiled, drawn and cached on the way has been
    write(tmp_path / f"first_{name}")
    (tmp_path / f"first_{name}").unlink()
    with full_disk(), pytest.raises(hinge.HingeError, match=f"cannot write .*{name}': File too"):
        write(path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    write(path)
    assert len(path.read_bytes()) > 100 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("writer", WRITERS)
def test_names_that_no_file_has_are_refused_in_a_sentence(tmp_path, writer):
    name, write = WRITERS[writer]
    for wrong, why in (
        (f"{'a' * 300}{name}", "File name too long"),
        (f"a\0{name}", "null byte"),
        (f"gone/{name}", "there is no folder"),
    ):
        with pytest.raises(hinge.ArgumentError, match=f"cannot write .*{name}': .*{why}"):
            write(f"{tmp_path}/{wrong}")
    (tmp_path / name).mkdir()
    with pytest.raises(hinge.ArgumentError, match=f"cannot write .*{name}': it is a folder"):
        write(tmp_path / name)
    os.mkfifo(tmp_path / f"pipe_{name}")
    with pytest.raises(hinge.ArgumentError, match="it is no regular file"):
        write(tmp_path / f"pipe_{name}")


def test_what_is_no_path_is_refused():
    for write in (motion().plot, motion().draw, motion().save):
        with pytest.raises(hinge.ArgumentError, match="the path is 7; expected the name of a file"):
            write(7)


def test_mode_and_link_stay(tmp_path):
    target, link = tmp_path / "there" / "b.urdf", tmp_path / "a.urdf"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    hinge.save(zoo.acrobot(), link, overwrite=True)
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o640
    assert 'name="acrobot"' in target.read_text()
    # one that leads nowhere yet
    (tmp_path / "c.png").symlink_to(target.parent / "d.png")
    ARM.draw(path=tmp_path / "c.png", size=(8, 6))
    assert (target.parent / "d.png").is_file() and (tmp_path / "c.png").is_symlink()


def test_new_files_have_the_mode_of_new_files(tmp_path):
    mask = os.umask(0o027)
    try:
        hinge.save(zoo.acrobot(), tmp_path / "a.urdf")
    finally:
        os.umask(mask)
    assert (tmp_path / "a.urdf").stat().st_mode & 0o777 == 0o640


def test_what_is_protected_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.urdf"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *given: False)
    with pytest.raises(hinge.ArgumentError, match="it is protected against writing"):
        hinge.save(zoo.acrobot(), path, overwrite=True)
    assert path.read_text() == "old"


def test_an_error_on_the_way_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), written_whole("test", tmp_path / "a.txt") as beside:
        beside.write_text("half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_commands_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hinge.save(zoo.acrobot(), "a.urdf")
    (tmp_path / "a.c").write_text("old")
    with full_disk():
        assert main(["codegen", "a.urdf", "-o", "a.c"]) == 1
    assert "cannot write 'a.c': File too large" in capsys.readouterr().err
    assert (tmp_path / "a.c").read_text() == "old"
    assert main(["codegen", "a.urdf", "-o", "a.c"]) == 0
    assert sorted(os.listdir()) == ["a.c", "a.h", "a.urdf"]

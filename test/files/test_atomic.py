"""Test atomic writing: contents, permissions, links, and sets of files that replace each other together."""

import os
import socket
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.files import all_or_none, atomic_file, remove, writable_file, writable_folder, write_atomically


def test_errors_keep_the_old_file_and_leave_no_other(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "old")
    with pytest.raises(ValueError, match="short"), atomic_file(path) as file:  # noqa: PT012
        file.write(b"half of the n")
        raise ValueError("short")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 300, "folder", "file/b"])
def test_refuses_impossible_names(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DynidError, match=r"cannot write .*; choose a writable folder"):
        write_atomically(tmp_path / name, "x")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_writes_long_and_unusual_names(tmp_path):
    for name in ("a" * 250, "two\nlines", "Δ 軸", "%s;rm -rf *"):
        assert write_atomically(tmp_path / name, name).read_text() == name


@pytest.fixture(name="odd")
def fixture_odd(tmp_path):
    """Return a folder of pipes, sockets, devices and links, and change back to the working directory."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to pipe").symlink_to("pipe")
    (tmp_path / "link to link").symlink_to(tmp_path / "link to pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    (tmp_path / "null").symlink_to("/dev/null")
    working_directory = Path.cwd()
    os.chdir(tmp_path)  # the name of a socket has to be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    os.chdir(working_directory)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe", "it is a pipe"),
        ("link to pipe", "it is a pipe"),
        ("link to link", "it is a pipe"),
        ("socket", "it is a socket"),
        ("null", "it is a device"),
        (".", "it is a folder"),
        ("loop", "Too many levels of symbolic links"),
        ("stdout", "it is an open stream"),
        ("/dev/fd/1", "it is an open stream"),
    ],
)
def test_refuses_to_replace_anything_but_files(odd, name, reason):
    path = odd / name
    before = sorted((file.name, file.lstat().st_mode, file.lstat().st_ino) for file in odd.iterdir())
    for write in (lambda: write_atomically(path, "x"), lambda: writable_file(path)):
        with pytest.raises(DynidError, match=rf"cannot write .* \({reason}"):
            write()
    assert sorted((file.name, file.lstat().st_mode, file.lstat().st_ino) for file in odd.iterdir()) == before


def test_refuses_to_replace_devices(tmp_path):
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device needs root")
    with pytest.raises(DynidError, match=r"device \(it is a device"):
        write_atomically(device, "x")
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.fixture(name="umask", params=[0o022, 0o077, 0o002])
def fixture_umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def read_permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_have_permissions_of_the_umask(tmp_path, umask):
    assert read_permissions(write_atomically(tmp_path / "new.yaml", "x")) == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o755])
def test_replaced_files_keep_their_permissions(tmp_path, umask, mode):
    path = tmp_path / "old.yaml"
    path.write_text("old")
    path.chmod(mode)
    (tmp_path / "link.yaml").symlink_to(path)
    write_atomically(tmp_path / "link.yaml", "new")
    assert (path.read_text(), read_permissions(path)) == ("new", mode)
    with all_or_none():
        write_atomically(path, "newer")
    assert (path.read_text(), read_permissions(path)) == ("newer", mode)


def test_unfinished_files_have_private_permissions(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_file(path) as file:
        file.write(b"new")
        (unfinished,) = (other for other in tmp_path.iterdir() if other != path)
        assert read_permissions(unfinished) == 0o600


@pytest.mark.parametrize("together", [False, True])
def test_syncs_content_before_replacing_the_file(tmp_path, monkeypatch, together):
    path = write_atomically(tmp_path / "a.txt", "old")
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_ino, path.read_text())))
    with all_or_none() if together else nullcontext():
        write_atomically(path, "new")
    assert synced == [(path.stat().st_ino, "old")]


def test_removes_leftovers_of_killed_processes(tmp_path):
    path = tmp_path / "identified.yaml"
    code = "import os, sys\nfrom dynid_ros.files import atomic_file\n"
    code += "with atomic_file(sys.argv[1]) as file:\n    file.write(b'half')\n    file.flush()\n"
    code += "    os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, path], check=False)
    (leftover,) = tmp_path.iterdir()
    assert leftover.name.startswith(".identified.yaml.")
    others = [tmp_path / ".identified.yaml.swp", tmp_path / leftover.name.replace("identified", "other")]
    for other in others:
        other.write_text("of another program")
    with atomic_file(tmp_path / "report.html") as file:  # unfinished, of another file
        file.write(b"half")
        write_atomically(path, "new")
    assert sorted(tmp_path.iterdir()) == sorted([*others, path, tmp_path / "report.html"])


def test_concurrent_writers_keep_unfinished_files_of_each_other(tmp_path):
    path = tmp_path / "identified.yaml"
    with all_or_none():
        write_atomically(path, "of the first")
        with atomic_file(path) as file:
            file.write(b"of the second")
            write_atomically(path, "of the third")
    assert [other.name for other in tmp_path.iterdir()] == ["identified.yaml"]
    assert path.read_text() == "of the second"


def test_closes_all_files(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for content in ("a", "b"):
        write_atomically(tmp_path / "a.txt", content)
        with all_or_none():
            write_atomically(tmp_path / "b.txt", content)
    with pytest.raises(ValueError, match="fails"), all_or_none():  # noqa: PT012
        write_atomically(tmp_path / "b.txt", "c")
        raise ValueError("fails")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_does_not_replace_a_pipe_created_while_writing(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(DynidError, match="it is a pipe"), atomic_file(path) as file:  # noqa: PT012
        file.write(b"x")
        os.mkfifo(path)
    assert [(file.name, file.is_fifo()) for file in tmp_path.iterdir()] == [("a.txt", True)]


def test_writes_through_links(tmp_path):
    (tmp_path / "results").mkdir()
    link = tmp_path / "latest.yaml"
    link.symlink_to("results/1.yaml")
    for text in ("first", "second"):
        assert write_atomically(link, text) == link
        assert (tmp_path / "results" / "1.yaml").read_text() == text
    assert link.is_symlink()


def test_writes_all_files_of_a_result_or_none(tmp_path):
    def write_files(*, fails):
        with all_or_none():
            write_atomically(tmp_path / "identified.yaml", "new")
            remove(tmp_path / "identified.urdf")
            if fails:
                raise DynidError("no space for the report")
            write_atomically(tmp_path / "report.html", "new")

    write_atomically(tmp_path / "identified.yaml", "old")
    write_atomically(tmp_path / "identified.urdf", "old")
    with pytest.raises(DynidError, match="no space"):
        write_files(fails=True)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "identified.yaml": "old",
        "identified.urdf": "old",
    }
    with all_or_none():
        write_files(fails=False)
        assert (tmp_path / "identified.yaml").read_text() == "old"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "identified.yaml": "new",
        "report.html": "new",
    }


def test_checks_in_advance_whether_files_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "a" / "b"):
        assert writable_folder(folder) == folder
        assert writable_file(folder / "c.csv") == folder / "c.csv"
    for folder in (tmp_path / "file", tmp_path / "file" / "a", Path("/dev/null"), Path("/proc/1"), tmp_path / "\0"):
        with pytest.raises(DynidError, match="cannot write "):
            writable_folder(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

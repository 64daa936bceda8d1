"""test_bounded."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from dynid_ros.files import MEGABYTE, bounded as pipes, read_bytes, read_text, require_file

# Pipes are read to their end, within bounds of size and silence.


LARGE = b"x" * 1_000_000
"""More than a pipe holds."""


def written(tmp_path, *pieces):
    """A FIFO into which a thread writes `pieces`, with a pause before each."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        try:
            with path.open("wb", buffering=0) as pipe:
                for piece in pieces:
                    time.sleep(0.05)
                    pipe.write(piece)
        except BrokenPipeError:
            pass

    threading.Thread(target=write, daemon=True).start()
    return path


def test_what_is_written_in_pieces_is_read_to_the_end(tmp_path):
    path = written(tmp_path, b"first ", LARGE, b" last")
    assert read_bytes(path, 2 * len(LARGE), pipes=True) == b"first " + LARGE + b" last"


def test_who_writes_without_end_is_refused_at_the_largest_size(tmp_path):
    with pytest.raises(OSError, match=r"more than 0\.1 MB"):
        read_bytes(written(tmp_path, *[LARGE] * 100), 100_000, pipes=True)


@pytest.mark.parametrize("writer", [True, False], ids=["silent writer", "no writer"])
def test_silence_is_refused(tmp_path, monkeypatch, writer):
    monkeypatch.setattr(pipes, "PIPE_TIMEOUT_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    silent = os.open(tmp_path / "pipe", os.O_RDWR) if writer else None
    with pytest.raises(OSError, match="pipe"):
        read_bytes(tmp_path / "pipe", 100, pipes=True)
    if silent is not None:
        os.close(silent)


def test_a_writer_that_is_gone_before_we_look_has_been_heard():
    reading, writing = os.pipe()
    os.write(writing, b"<robot/>")
    os.close(writing)
    try:
        assert read_bytes(f"/dev/fd/{reading}", 100, pipes=True) == b"<robot/>"
    finally:
        os.close(reading)


def test_the_shell_may_make_the_urdf(tmp_path):
    dynid = "from dynid_ros.cli import main; main()"
    command = '"$0" -c "$1" check --urdf <(echo "<robot/>") --recording "$2"'
    words = ["bash", "-c", command, sys.executable, dynid, tmp_path]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert "URDF '/dev/fd/" in said
    assert "cannot be read" not in said


@pytest.fixture
def odd(tmp_path):
    """Paths that are no files, by kind."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "closed").symlink_to(tmp_path / "nowhere")
    (tmp_path / "to pipe").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket")[-100:])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "it is a folder"),
        ("pipe", "it is a pipe, no file, and may never end"),
        ("to pipe", "it is a pipe"),
        ("loop", "Too many levels of symbolic links"),
        ("closed", "No such file"),
        ("nowhere", "No such file"),
        ("socket", "it is a socket"),
        ("/dev/zero", "it is a device"),
        ("/dev/null", "it is a device"),
        ("a\0b", "no file can have this name"),
        ("\udc80", "No such file"),
        ("a" * 300, "File name too long"),
    ],
)
def test_what_is_no_file(odd, name, reason):
    for read in (lambda path: read_bytes(path, MEGABYTE), require_file):
        with pytest.raises(OSError, match=r".") as caught:
            read(odd / name)
        assert reason in caught.value.strerror


def test_sizes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)
    assert read_bytes(path, 1000) == b"x" * 1000
    with pytest.raises(OSError, match=r"more than 0\.000999 MB, is it the right file"):
        read_bytes(path, 999)
    with path.open("r+b") as file:
        file.truncate(10**13)  # takes no space
    with pytest.raises(OSError, match="more than 50 MB"):
        read_bytes(path, 50 * MEGABYTE)


def test_files_that_tell_no_size_are_bounded_too():
    with pytest.raises(OSError, match="more than 1e-06 MB"):
        read_bytes("/proc/self/status", 1)


def test_text(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\n")
    assert read_text(path, 10) == "a\r\n"
    path.write_bytes(b"abc\xff")
    with pytest.raises(OSError, match="not UTF-8 at byte 3"):
        read_text(path, 10)

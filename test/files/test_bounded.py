"""Test reading with limits: pipes up to a size and a pause, and refusal of paths that are not files."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from dynid_ros.files import MEGABYTE, bounded as pipes, read_bytes, read_text, require_file

LARGE = b"x" * 1_000_000
"""Content that exceeds the buffer of a pipe."""


def write_pipe(tmp_path, *pieces):
    """Return a FIFO into which a thread writes `pieces` with pauses."""
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


def test_reads_pipes_to_their_end(tmp_path):
    path = write_pipe(tmp_path, b"first ", LARGE, b" last")
    assert read_bytes(path, 2 * len(LARGE), pipes=True) == b"first " + LARGE + b" last"


def test_refuses_pipes_above_the_maximum_size(tmp_path):
    with pytest.raises(OSError, match=r"more than 0\.1 MB"):
        read_bytes(write_pipe(tmp_path, *[LARGE] * 100), 100_000, pipes=True)


@pytest.mark.parametrize("writer", [True, False], ids=["silent writer", "no writer"])
def test_refuses_silent_pipes(tmp_path, monkeypatch, writer):
    monkeypatch.setattr(pipes, "PIPE_TIMEOUT_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    silent = os.open(tmp_path / "pipe", os.O_RDWR) if writer else None
    with pytest.raises(OSError, match="pipe"):
        read_bytes(tmp_path / "pipe", 100, pipes=True)
    if silent is not None:
        os.close(silent)


def test_reads_pipes_whose_writer_has_ended():
    reading, writing = os.pipe()
    os.write(writing, b"<robot/>")
    os.close(writing)
    try:
        assert read_bytes(f"/dev/fd/{reading}", 100, pipes=True) == b"<robot/>"
    finally:
        os.close(reading)


def test_reads_urdf_from_process_substitution(tmp_path):
    dynid = "from dynid_ros.cli import main; main()"
    command = '"$0" -c "$1" check --urdf <(echo "<robot/>") --recording "$2"'
    words = ["bash", "-c", command, sys.executable, dynid, tmp_path]
    message = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert "URDF '/dev/fd/" in message
    assert "cannot be read" not in message


@pytest.fixture
def odd(tmp_path):
    """Return a folder of paths that are not files."""
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
def test_refuses_paths_that_are_not_files(odd, name, reason):
    for read in (lambda path: read_bytes(path, MEGABYTE), require_file):
        with pytest.raises(OSError, match=r".") as caught:
            read(odd / name)
        assert reason in caught.value.strerror


def test_refuses_files_above_the_maximum_size(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)
    assert read_bytes(path, 1000) == b"x" * 1000
    with pytest.raises(OSError, match=r"more than 0\.000999 MB, is it the right file"):
        read_bytes(path, 999)
    with path.open("r+b") as file:
        file.truncate(10**13)  # takes no space
    with pytest.raises(OSError, match="more than 50 MB"):
        read_bytes(path, 50 * MEGABYTE)


def test_limits_files_of_unknown_size():
    with pytest.raises(OSError, match="more than 1e-06 MB"):
        read_bytes("/proc/self/status", 1)


def test_reads_utf8_text_without_byte_order_mark(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\n")
    assert read_text(path, 10) == "a\r\n"
    path.write_bytes(b"abc\xff")
    with pytest.raises(OSError, match="not UTF-8 at byte 3"):
        read_text(path, 10)

import os
import socket

import pytest

from dynid_ros.files import MEGABYTE, read_bytes, read_text, require_file


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

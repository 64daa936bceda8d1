import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.files import atomic_file, write_atomically
from dynid_ros.recording import Recording

WRITER = """
import sys
from dynid_ros.files import write_atomically
path, sizes = sys.argv[1], (200_000, 3_000_000)
print("ready", flush=True)
for i in range(10**9):
    write_atomically(path, str(i % 10) * sizes[i % 2])
"""


def test_killed_in_the_middle_the_old_file_or_the_new_is_there(tmp_path):
    path = tmp_path / "identified.yaml"
    for kill in range(5):
        process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        before = path.stat().st_ino if path.exists() else None
        while not path.exists() or path.stat().st_ino == before:
            time.sleep(0.001)
        time.sleep(0.002 * kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        content = path.read_text()
        assert len(content) in (200_000, 3_000_000)
        assert set(content) == {content[0]}


def test_killed_while_a_recording_is_written(tmp_path):
    n = 20_000
    recording = Recording(("a",), 0.001 * np.arange(n), np.zeros((n, 1)), np.zeros((n, 1)), np.zeros((n, 1)))
    path = tmp_path / "run.csv"
    recording.write_csv(path)
    child = os.fork()
    if child == 0:
        while True:
            recording.write_csv(path)
    time.sleep(0.15)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert Recording.read(path).n_samples == n


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "old")
    with pytest.raises(ValueError, match="short"), atomic_file(path) as file:  # noqa: PT012
        file.write(b"half of the n")
        raise ValueError("short")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 300, "folder", "file/b"])
def test_names_that_cannot_be(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DynidError, match=r"cannot write .*; choose a writable folder"):
        write_atomically(tmp_path / name, "x")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_long_names_and_odd_ones_are_written(tmp_path):
    for name in ("a" * 250, "two\nlines", "Δ 軸", "%s;rm -rf *"):
        assert write_atomically(tmp_path / name, name).read_text() == name

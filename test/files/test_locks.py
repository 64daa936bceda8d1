"""Folders into which one process writes at a time."""

import os
import subprocess
import sys

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.files.locks import lock, locked_folder

HOLDER = """
import sys
from pathlib import Path
from dynid_ros.files.locks import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(name="holder")
def fixture_holder(tmp_path):
    """Return another process that has locked the folder."""
    arguments = [sys.executable, "-c", HOLDER, tmp_path / "out"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.kill()


def test_a_folder_that_another_process_has_locked_is_refused(tmp_path, holder):
    with pytest.raises(DynidError, match="another process writes there now"), locked_folder(tmp_path / "out"):
        pass
    with locked_folder(tmp_path / "other"):
        pass


def test_the_lock_ends_with_its_process_however_it_ends(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked_folder(tmp_path / "out"):
        pass


def test_the_lock_ends_with_the_block(tmp_path):
    for _ in range(2):
        with locked_folder(tmp_path / "new" / "out"):
            assert (tmp_path / "new" / "out").is_dir()
    with pytest.raises(ZeroDivisionError), locked_folder(tmp_path):
        raise ZeroDivisionError
    with locked_folder(tmp_path):
        pass


def test_an_open_file_is_locked_against_every_other_one(tmp_path):
    path = tmp_path / "file"
    path.touch()
    first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
    assert lock(first) is True
    assert lock(second, wait=False) is False
    os.close(first)
    assert lock(second, wait=False) is True
    os.close(second)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DynidError, match="choose a writable folder"), locked_folder(tmp_path / "file" / "out"):
        pass

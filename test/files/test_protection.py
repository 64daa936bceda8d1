"""Test that commands never overwrite their inputs, and the locks of output folders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.files import input_paths, protected, remove, writable_file, writable_folder, write_atomically
from dynid_ros.files.atomic import lock, locked_folder

HOLDER = """
import sys
from pathlib import Path
from dynid_ros.files.atomic import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(name="model")
def fixture_model(tmp_path, monkeypatch):
    """Return the path of an identified.yaml, which can be reached by several paths."""
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "results" / "identified.yaml"
    model.parent.mkdir()
    model.write_text("read")
    (tmp_path / "latest").symlink_to("results")
    (tmp_path / "link.yaml").symlink_to("latest/identified.yaml")
    os.link(model, tmp_path / "hard.yaml")
    return model


PATHS = [
    "results/identified.yaml",
    "results/../results/identified.yaml",
    "latest/identified.yaml",
    "link.yaml",
    "hard.yaml",
]


@pytest.mark.parametrize("output", PATHS)
@pytest.mark.parametrize("source", PATHS)
@pytest.mark.parametrize("absolute", [False, True])
def test_does_not_overwrite_inputs(model, source, output, absolute):
    output = Path(output).absolute() if absolute else Path(output)
    for change in (writable_file, lambda path: write_atomically(path, "written"), remove):
        with protected([Path(source)]), pytest.raises(DynidError, match="input of this command"):
            change(output)
    assert model.read_text() == "read"
    write_atomically(output, "written")


def test_refuses_folders_where_an_output_would_replace_an_input(model):
    with protected([model]):
        assert writable_folder("results", "report.html") == Path("results")
        with pytest.raises(DynidError, match="input of this command"):
            writable_folder("latest", "report.html", "identified.yaml")


@pytest.mark.parametrize("name", ["metadata.yaml", "run_0.mcap", "deeper/run.db3"])
def test_does_not_overwrite_the_files_of_a_bag(model, name):
    recorded = model.parent / name
    recorded.parent.mkdir(exist_ok=True)
    recorded.write_text("read")
    with protected([Path("latest")]):
        write_atomically(model.parent / "report.html", "beside the bag")
        write_atomically(model.parent / "report.html", "again")
        with pytest.raises(DynidError, match="input of this command"):
            write_atomically(Path("latest") / name, "written")


def test_inputs_are_all_paths_except_the_output():
    options = {"urdf": Path("a"), "recording": [Path("b"), Path("c")], "output": Path("d"), "tip": "e", "model": None}
    assert list(input_paths(options)) == [Path("a"), Path("b"), Path("c")]
    with protected([Path("missing"), Path("\0")]):
        assert writable_file("missing") == Path("missing")


@pytest.fixture(name="holder")
def fixture_holder(tmp_path):
    """Return another process that has locked the folder."""
    arguments = [sys.executable, "-c", HOLDER, tmp_path / "out"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.kill()


def test_refuses_folders_locked_by_another_process(tmp_path, holder):
    with pytest.raises(DynidError, match="another process writes there now"), locked_folder(tmp_path / "out"):
        pass
    with locked_folder(tmp_path / "other"):
        pass


def test_killed_processes_release_their_lock(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked_folder(tmp_path / "out"):
        pass


def test_locks_end_with_their_block(tmp_path):
    for _ in range(2):
        with locked_folder(tmp_path / "new" / "out"):
            assert (tmp_path / "new" / "out").is_dir()
    with pytest.raises(ZeroDivisionError), locked_folder(tmp_path):
        raise ZeroDivisionError
    with locked_folder(tmp_path):
        pass


def test_locks_exclude_each_other(tmp_path):
    path = tmp_path / "file"
    path.touch()
    first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
    assert lock(first) is True
    assert lock(second, wait=False) is False
    os.close(first)
    assert lock(second, wait=False) is True
    os.close(second)


def test_reports_folders_that_cannot_be_created(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DynidError, match="choose a writable folder"), locked_folder(tmp_path / "file" / "out"):
        pass

"""Small inputs that once failed, each with its right answer."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import refused

CASES = Path(__file__).with_name("cases")


@pytest.mark.parametrize("name", ["injection.urdf", "mjcf_newline_link.urdf"])
def test_names_with_line_breaks_are_refused(name, capsys):
    error = refused(capsys, "check", "--urdf", CASES / name, "--recording", "run.csv")
    assert "control character" in error


HELD = "  held:\n  - 1\n"
COMMANDS = (
    ("report", "--output", "report.html"),
    ("export", "--to", "urdf", "--urdf", CASES / "arm.urdf", "--output", "new.urdf"),
    ("validate", "--urdf", CASES / "arm.urdf", "--recording", "run.csv", "--output", "predicted.csv"),
    ("identify", "load", "--urdf", CASES / "arm.urdf", "--recording", "run.csv", "--output", "load"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (HELD, "  held: {j1: [1]}\n"),
        (HELD, "  held: {1: 1.0}\n"),
        (HELD, "  held: {j1: .inf}\n"),
        ("  name: arm\n", "  name: [1]\n"),
        ("  base: l0\n", "  base: [l0]\n"),
        ("  tip: l3\n", "  tip: {l3: 1}\n"),
        ("  - j1\n", "  - [j1]\n"),
        ("  - j1\n", '  - "j\\n1"\n'),
    ],
)
def test_a_robot_that_cannot_be_is_one_line(command, old, new, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (CASES / "heldlist.yaml").read_text()
    assert old in text
    changed = text.replace(old, new)
    path = tmp_path / "identified.yaml"
    path.write_text(changed if "held" in new + old or not old else changed.replace(HELD, ""))
    assert "identified.yaml: " in refused(capsys, *command, "--model", path)


@pytest.mark.parametrize("kind", ["<U0", "<U1", "|S0", "|V0", "<f8"])
def test_an_archive_that_promises_more_than_it_holds_is_one_line(kind, capsys, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": (10**12,)})
    damaged = tmp_path / "run.npz"
    with zipfile.ZipFile(CASES / "npz_zero_itemsize.npz") as case, zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("time.npy", header.getvalue())
        archive.writestr("position.npy", case.read("position.npy"))
    for path in (CASES / "npz_zero_itemsize.npz", damaged):
        assert "NPZ archive" in refused(capsys, "check", "--urdf", CASES / "arm.urdf", "--recording", path)

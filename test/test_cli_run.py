"""Test `dynid run`, which repeats a command from the file beside its results and reports differences."""

import numpy as np
import planar_arm
import pytest
import yaml
from command_line import run, run_refused
from test_cli_links import QUICK, planar_recording

from dynid_ros.jobs.run_file import digest_of


@pytest.fixture(name="folder")
def fixture_folder(tmp_path, monkeypatch, capsys):
    """Return a folder with identified links of the planar arm."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    planar_recording(0).write_npz("run.npz")
    links = ("identify", "links", "--urdf", "arm.urdf", "--recording", "run.npz", *QUICK, "--output", "out")
    assert run(capsys, *links)[0] == 0
    return tmp_path


def test_results_are_reproducible_from_any_folder(folder, monkeypatch, capsys):
    described = yaml.safe_load((folder / "out/experiment.yaml").read_text())
    assert described["command"] == "identify links"
    assert described["inputs"]["run.npz"] == digest_of(folder / "run.npz")
    monkeypatch.chdir("/")
    code, out, _ = run(capsys, "run", folder / "out/experiment.yaml", "--check")
    assert (code, "3 of 3 files are the same" in out) == (0, True)
    assert run(capsys, "run", folder / "out/experiment.yaml", "--output", folder / "again")[0] == 0
    for name in ("identified.yaml", "identified.urdf", "report.html"):
        assert (folder / "again" / name).read_bytes() == (folder / "out" / name).read_bytes()
    assert (folder / "again/experiment.yaml").exists()


def test_check_reports_differences(folder, capsys):
    path = folder / "out/experiment.yaml"
    described = yaml.safe_load(path.read_text())
    described["options"]["prior_weight"] = 30.0
    path.write_text(yaml.safe_dump(described))
    before = (folder / "out/identified.yaml").read_bytes()
    code, out, _ = run(capsys, "run", path, "--check", "--verbose")
    assert code == 1
    assert "out/identified.yaml: line " in out
    assert ", was " in out
    assert (folder / "out/identified.yaml").read_bytes() == before


def test_run_file_is_beside_an_output_file(folder, capsys):
    arguments = ("--urdf", "arm.urdf", "--model", "out/identified.yaml", "--recording", "run.npz")
    assert run(capsys, "validate", *arguments, "--output", "p.csv")[0] == 0
    code, out, _ = run(capsys, "run", "p.experiment.yaml", "--check")
    assert (code, "1 of 1 files" in out) == (0, True)


def test_other_version_and_changed_input_are_refused(folder, capsys):
    path = folder / "out/experiment.yaml"
    text = path.read_text()
    data = dict(np.load("run.npz"))
    np.savez("run.npz", **(data | {"torque": 2 * data["torque"]}))
    assert "input run.npz has changed" in run_refused(capsys, "run", path)
    (folder / "run.npz").unlink()
    assert "input run.npz is not there" in run_refused(capsys, "run", path, "--check")
    described = yaml.safe_load(text)
    path.write_text(yaml.safe_dump(described | {"version": "9.9"}))
    assert "written by dynid_ros 9.9" in run_refused(capsys, "run", path)


@pytest.mark.parametrize(
    "change",
    [{"format": "x"}, {"command": "rm"}, {"options": {"nonsense": 1}}, {"inputs": [1]}, {"folder": "nowhere"}],
    ids=str,
)
def test_malformed_run_file_is_an_error(change, folder, capsys):
    path = folder / "out/experiment.yaml"
    described = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(described | {"inputs": {}} | change))
    assert str(path.name) in run_refused(capsys, "run", path)


def test_foreign_file_of_equal_name_is_kept(folder, capsys):
    path = folder / "out/experiment.yaml"
    path.write_text("mine")
    links = ("identify", "links", "--urdf", "arm.urdf", "--recording", "run.npz", *QUICK, "--output", "out")
    code, _, err = run(capsys, *links)
    assert (code, "no run file was written" in err) == (0, True)
    assert path.read_text() == "mine"

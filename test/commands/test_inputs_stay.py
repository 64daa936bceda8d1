"""Test that no command overwrites a file that it reads."""

import link_experiment
import numpy as np
import planar_arm
import pytest
from command_line import run_refused

from dynid_ros.identified.gravity import gravity_section
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import GravityModel

ARM, _ = link_experiment.build_planar()
MODEL = ("--model", "results/identified.yaml", "--urdf", "results/identified.urdf")
RECORDING = ("--recording", "run.csv")
IDENTIFY = ("--urdf", "results/identified.urdf", *RECORDING, "--output", "results")


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    """Return a folder with an arm, a recording and identified files, and the content of each file."""
    folder = tmp_path_factory.mktemp("arm")
    (folder / "results").mkdir()
    (folder / "results" / "identified.urdf").write_text(planar_arm.urdf())
    link_experiment.record(ARM, ARM.parameters).write_csv(folder / "run.csv")
    moments = GravityModel(ARM).project(ARM.parameters)
    document = new_document(ARM, [], {})
    document["gravity"] = gravity_section(GravityModel(ARM), moments, np.full(len(moments), 0.01), {})
    save_identified(folder / "results" / "identified.yaml", document)
    (folder / "results" / "link").symlink_to("identified.yaml")
    (folder / "fleet.yaml").write_text("arms: {a: {identification: gravity, urdf: a.urdf, recordings: run.csv}}")
    return folder, {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ("export", *MODEL, "--to", "urdf", "--output", output)
            for output in ("results/identified.yaml", "results/identified.urdf", "results/link", "./results/link")
        ),
        ("export", *MODEL, "--to", "urdf", *RECORDING, "--output", "run.csv"),
        *(
            ("validate", *MODEL, *RECORDING, "--output", output)
            for output in ("run.csv", "results/../run.csv", "results/identified.yaml", "results/identified.urdf")
        ),
        ("report", "--model", "results/identified.yaml", "--output", "results/link"),
        ("view", *MODEL, *RECORDING, "--output", "run.csv"),
        ("identify", "links", *IDENTIFY),
        ("identify", "torque-sensors", *IDENTIFY, "--model", "results/identified.yaml"),
        ("excite", "--urdf", "trajectory.yaml", "--acceleration-limits", "2", "--output", "."),
        ("fleet", "fleet.yaml", "--output", "."),
    ],
)
def test_output_that_is_an_input_is_refused(files, arguments, capsys, monkeypatch):
    folder, content = files
    monkeypatch.chdir(folder)
    if "trajectory.yaml" in arguments:
        (folder / "trajectory.yaml").write_text(planar_arm.urdf())
    assert "input of this command" in run_refused(capsys, *arguments)
    (folder / "trajectory.yaml").unlink(missing_ok=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == content

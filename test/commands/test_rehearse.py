"""Test `dynid rehearse`: invalid input, and experiments that serve or do not."""

import json

import planar_arm
import pytest
import yaml
from command_line import URDF, run, run_refused

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.screen import MAX_LINES
from dynid_ros.model import RobotModel

QUICK_SEARCH = ("--acceleration-limits", "6", "--floor-height", "-inf", "--design-time", "2")


@pytest.fixture(name="urdf")
def fixture_urdf(tmp_path):
    path = tmp_path / "planar.urdf"
    path.write_text(planar_arm.urdf())
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--urdf", "/nowhere/arm.urdf"), "/nowhere/arm.urdf"),
        (("--urdf", URDF, "--link-error", "0.9"), "link_error"),
        (("--urdf", URDF, "--max-torque-error", "0"), "max_torque_error"),
        (("--urdf", URDF, "--friction-file", "/nowhere/friction.yaml"), "friction.yaml"),
        (("--urdf", URDF, "--tip", "link_99"), "link_99"),
        (("--urdf", URDF, "--velocity-limits", "1,2"), "velocity"),
    ],
)
def test_invalid_input_is_one_line(capsys, tmp_path, words, message):
    assert message in run_refused(capsys, "rehearse", *words, "--output", tmp_path / "out")


def test_urdf_without_masses_is_one_line(capsys, tmp_path, urdf):
    text = planar_arm.urdf()
    while "<inertial>" in text:
        text = text[: text.index("<inertial>")] + text[text.index("</inertial>") + len("</inertial>") :]
    urdf.write_text(text)
    message = run_refused(
        capsys, "rehearse", "--urdf", urdf, "--tip", "link_3", "--output", tmp_path / "out", *QUICK_SEARCH
    )
    assert "no masses" in message


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_good_experiment_serves_and_writes_its_files(capsys, tmp_path, urdf):
    output = tmp_path / "out"
    words = ("rehearse", "--urdf", urdf, "--output", output, *QUICK_SEARCH, "--json")
    code, out, err = run(capsys, *words)
    document = json.loads(out)
    assert code == 0, document["missing"]
    assert document["serves"]
    for name in ("report.html", "truth.yaml", "predicted.csv", "arm.xml", "links/identified.urdf"):
        assert (output / name).is_file()
    lines = [line for line in err.splitlines() if line and not line.startswith("dynid: ")]
    assert len(lines) <= MAX_LINES
    joints = document["joints"]
    assert joints["gravity"]["error"]["joint_2"] < 0.03
    assert joints["unseen_torque"]["error"]["joint_2"] < joints["unseen_torque"]["urdf"]["joint_2"]
    # The identification uses the user's URDF, whose masses differ from the truth.
    truth = yaml.safe_load((output / "truth.yaml").read_text())
    identified = load_identified(output / "links" / "identified.yaml")
    robot = RobotModel.from_urdf(urdf)
    assert identified["robot"]["urdf_sha256"] == robot.urdf_sha256
    assert abs(truth["links"]["link_2"]["mass"] / planar_arm.MASS[1] - 1) > 0.01
    page = (output / "report.html").read_text()
    assert "would serve" in page
    assert "Undetermined parameters" in page


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_experiment_with_narrow_limits_does_not_serve(capsys, tmp_path, urdf):
    narrow = ("--position-lower", "-0.15", "--position-upper", "0.15")
    code, out, _ = run(
        capsys, "rehearse", "--urdf", urdf, "--output", tmp_path / "out", *QUICK_SEARCH, *narrow, "--json"
    )
    document = json.loads(out)
    assert code == 1
    assert not document["serves"]
    assert document["missing"]

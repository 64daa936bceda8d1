"""Test `--parameters` of `dynid check` and `dynid excite`, which write a file for the nodes."""

import numpy as np
import pytest
import yaml
from command_line import URDF, run
from gravity_experiment import planned_recording


def read(path, node="/**"):
    return yaml.safe_load(path.read_text())[node]["ros__parameters"]


def test_check_and_excite_write_one_valid_file(tmp_path, capsys):
    path = tmp_path / "arm.yaml"
    planned_recording().write_npz(tmp_path / "run.npz")
    arm = ("--urdf", URDF, "--tip", "tool", "--parameters", path)
    assert run(capsys, "check", *arm, "--recording", tmp_path / "run.npz")[0] == 0
    assert read(path)["effort_convention"] == "torque"
    motion = ("--motion", "poses", "--count", "3", "--acceleration-limits", "3", "--velocity-limits", "1")
    box = ("--box", "-2", "-2", "0", "2", "2", "2")
    code, out, err = run(capsys, "excite", *arm, *motion, *box, "--output", tmp_path / "motion")
    assert (code, "\nnot enough\n" in out) == (1, True), err
    assert str(path) in out
    arm_values = read(path)
    assert (arm_values["tip_link"], arm_values["effort_convention"]) == ("tool", "torque")
    limits = read(path, "/**/excitation")
    assert limits["velocity_limits"] == [1.0]
    assert limits["box_lower"] == [-2.0, -2.0, 0.0]
    parameters = pytest.importorskip("dynid_ros.nodes.excitation").PARAMETERS
    table = {parameter.name: parameter for parameter in parameters}
    for name, value in (arm_values | limits).items():
        if name != "effort_convention":
            table[name].checked(value, "excitation")


def test_faulty_recording_writes_no_parameters(tmp_path, capsys):
    good = planned_recording()
    path = tmp_path / "amps.npz"
    np.savez(path, time=good.time, position=good.position, torque=good.torque / 12, joint_names=good.joint_names)
    parameters = tmp_path / "arm.yaml"
    assert run(capsys, "check", "--urdf", URDF, "--recording", path, "--parameters", parameters)[0] == 1
    assert not parameters.exists()

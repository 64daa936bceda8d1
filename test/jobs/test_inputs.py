"""Test inputs of the command line: values per joint, motor gains, checks, and parameter files."""

from argparse import ArgumentParser

import numpy as np
import pytest
import yaml

from dynid_ros.commands.options import add_effort, add_reading
from dynid_ros.errors import DynidError, RecordingError, TrajectoryError
from dynid_ros.jobs.inputs import checked, joint_values, read_recordings, update_parameter_file
from dynid_ros.recording import Recording

NAMES = ("base", "elbow", "a=b")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2", [2]),
        ("-1, -2.5,1e-3", [-1, -2.5, 0.001]),
        ("inf", [np.inf]),
        ("elbow=3", [np.nan, 3, np.nan]),
        ("a=b = -1,base=2", [2, np.nan, -1]),
    ],
)
def test_joint_values_by_order_or_name(text, values):
    np.testing.assert_array_equal(joint_values(text, NAMES, "--x"), values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fast", "--x: 'fast' is not a number; expected one for all joints"),
        ("wrist=1", "--x: 'wrist=1' names an unknown joint; expected joint=value of base, elbow, a=b"),
        ("base=1,2", "--x: '2' names an unknown joint"),
        ("base=1,base=2", "--x: joint 'base' is given twice"),
        ("base=", "--x: '' is not a number"),
    ],
)
def test_invalid_joint_values_are_refused(text, words):
    with pytest.raises(TrajectoryError, match=words):
        joint_values(text, NAMES, "--x")


@pytest.mark.parametrize(
    ("text", "gains"),
    [
        ("2 3", [2.0, 3.0]),
        ("2,3", [2.0, 3.0]),
        ("2, 3", [2.0, 3.0]),
        ("elbow=3,shoulder=2", [2.0, 3.0]),
        ("2 3,", [2.0, 3.0]),
        ("-1", [-1.0, -1.0]),
    ],
)
def test_motor_gains_accept_commas_blanks_names_and_one_value(text, gains, tmp_path):
    recording = Recording(("shoulder", "elbow"), [0.0, 0.1], np.zeros((2, 2)), np.zeros((2, 2)), np.ones((2, 2)))
    recording.write_csv(tmp_path / "run.csv")
    parser = ArgumentParser()
    add_reading(parser)
    add_effort(parser)
    options = parser.parse_args(["--effort-convention", "motor_current", "--motor-gains", *text.split(" ")])
    (read,) = read_recordings(options, None, [tmp_path / "run.csv"], recording.joint_names)
    np.testing.assert_array_equal(read.torque, [gains, gains])


@pytest.mark.parametrize("torque", [True, False])
def test_stamp_noise_is_an_error_only_if_motion_is_needed(torque):
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.002, 0.006, 4000))
    q = np.sin(np.outer(time, [0.9, 1.3, 1.7])) + rng.normal(0, 1e-5, (4000, 3))
    stamps = np.sort(time + rng.normal(0, 2e-3, len(time)))
    recording = Recording(("joint_1", "joint_2", "joint_3"), stamps, q, np.full_like(q, np.nan), np.cos(q))
    (warning,) = checked([recording], None, torque=torque)
    assert (warning.kind, warning.severity) == ("time stamps", "warning")
    with pytest.raises(RecordingError, match="clock of its time stamps is wrong"):
        checked([recording], None, motion=True, torque=torque)


def test_parameter_file_is_updated(tmp_path):
    path = tmp_path / "arm.yaml"
    update_parameter_file(path, {"tip_link": "tool0", "acceleration_limits": np.array([2.0, np.nan]), "group": None})
    update_parameter_file(path, {"effort_convention": "torque", "tip_link": "flange"})
    values = yaml.safe_load(path.read_text())["/**"]["ros__parameters"]
    assert values.pop("acceleration_limits") == [2.0, pytest.approx(np.nan, nan_ok=True)]
    assert values == {"tip_link": "flange", "effort_convention": "torque"}


def test_other_sections_are_kept_and_comments_refused(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text("/**/excitation:\n  ros__parameters: {speed_fraction: 0.05}\n")
    update_parameter_file(path, {"tip_link": "tool0"})
    assert yaml.safe_load(path.read_text())["/**/excitation"] == {"ros__parameters": {"speed_fraction": 0.05}}
    path.write_text("# mine\n" + path.read_text())
    with pytest.raises(DynidError, match="comments"):
        update_parameter_file(path, {"tip_link": "tool0"})


@pytest.mark.parametrize("text", ["[1, 2]", "a: 1", "/**: {ros__parameters: 3}", "{", "x: !!python/name:os.system {}"])
def test_file_without_parameters_is_refused(text, tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    with pytest.raises(DynidError, match=r"arm\.yaml"):
        update_parameter_file(path, {"tip_link": "tool0"})
    assert path.read_text() == text

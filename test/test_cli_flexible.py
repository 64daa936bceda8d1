"""Test `dynid identify flexible`: files, exit codes and errors."""

import json

import flexible_experiments as fe
import flexible_joint_files as files
import numpy as np
import pa10
import pytest
from command_line import run

from dynid_ros.identified.identified_file import load_identified

pytestmark = pytest.mark.slow

TRUTH = pa10.table_one(2)


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    (tmp_path / "one.urdf").write_text(pa10.single_joint_urdf(2, pa10.LIGHTER))
    (tmp_path / "arm.urdf").write_text(pa10.arm_urdf(pa10.LIGHTER))
    files.with_encoders().write_npz(tmp_path / "run.npz")
    files.record_markers().write_npz(tmp_path / "filmed.npz")
    return tmp_path


def identify(capsys, folder, *options, urdf="one.urdf"):
    return run(capsys, "identify", "flexible", "--urdf", folder / urdf, "--output", folder / "out", *options)


def test_file_of_a_camera(folder, capsys):
    time, positions = files.markers()
    head = ["t", *(f"m{p}_{axis}" for p in range(4) for axis in "xyz")]
    table = np.column_stack([time + 0.2, 1000 * positions.reshape(len(positions), -1)])
    np.savetxt(folder / "take.csv", table, delimiter=",", header=",".join(head), comments="", fmt="%.6f")
    options = ["--recording", folder / "run.npz", "--mocap-file", folder / "take.csv", "--mocap-unit", "mm"]
    options += [f"--markers=m{p}=link" for p in range(4)]
    code, out, err = identify(capsys, folder, *options)
    assert code == 0, err
    assert f"wrote {folder / 'out' / 'identified.yaml'}, {folder / 'out' / 'report.html'}" in out
    document = load_identified(folder / "out" / "identified.yaml")
    assert document["flexible_joints"]["joint_2"]["stiffness"] == pytest.approx(TRUTH.stiffness, rel=0.03)
    assert document["flexible_recordings"][0]["clock_offset"] == pytest.approx(fe.CLOCK_OFFSET - 0.2, abs=5e-4)


def test_one_joint_of_an_arm(folder, capsys):
    recording, truth = files.held_arm()
    recording.write_npz(folder / "held.npz")
    options = ["--recording", folder / "held.npz", "--joint", "joint_2", "--json"]
    code, out, _ = identify(capsys, folder, *options, urdf="arm.urdf")
    assert code == 0
    document = json.loads(out)
    joint = document["flexible_joints"]["joint_2"]
    assert document["robot"]["joints"] == ["joint_2"]
    assert joint["stiffness"] == pytest.approx(truth.stiffness, rel=0.02)
    assert joint["motor_inertia"] == pytest.approx(truth.motor_inertia, rel=0.05)
    resonance = np.sqrt(truth.stiffness / truth.inertia) / (2 * np.pi)
    assert joint["resonance"] == pytest.approx(resonance, rel=0.02)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recording", "nowhere.npz"], "nowhere.npz"),
        (["--recording", "filmed.npz"], "nothing determines where the links are; it has poses of /markers[0]"),
        (["--recording", "filmed.npz", "--markers", "/markers=link"], "give --mocap or --mocap-file"),
        (["--recording", "filmed.npz", "--mocap", "--markers", "/hand=link"], "has no '/hand'"),
        (["--recording", "filmed.npz", "--mocap", "--markers", "/markers=hand"], "is to be on link 'hand'"),
        (["--recording", "run.npz", "--recording", "run.npz", "--mocap-file", "a.csv"], "1 files of the camera for 2"),
        (["--recording", "run.npz", "--joint", "elbow"], "lacks joint(s) elbow"),
        (["--recording", "run.npz", "--repeats"], "only one recording"),
        (["--recording", "run.npz", "--motor-terms", "magnets"], "no term magnets"),
        (["--recording", "run.npz", "--spring", "rubber"], "--spring: invalid choice: 'rubber'"),
        (["--recording", "run.npz", "--torsion", "--mocap"], "torsion does not go with mocap"),
    ],
)
def test_bad_input_is_an_error_of_one_line(options, words, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, err = identify(capsys, folder, *options)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert not (folder / "out").exists()


def test_motion_is_designed(folder, capsys):
    limits = ["--acceleration-limits", "30", "--skip-meshes"]
    arguments = [
        "excite",
        "--motion",
        "flexible",
        "--urdf",
        folder / "arm.urdf",
        "--output",
        folder / "motion",
        *limits,
    ]
    held = "joint_1=0.3,joint_3=1.2,joint_4=0.3,joint_5=0.9,joint_6=0.2"
    prior = ["--stiffness", "11900", "--motor-inertia", "2", "--viscous", "10", "--held", held]
    code, out, err = run(capsys, *arguments, *prior, "--design-time", "0", "--workers", "1")
    assert code == 0, err
    assert "condition number" in out
    assert "joint_2:" in out
    assert (folder / "motion" / "report.html").exists()
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "stiffness and motor_inertia of the joints are not known" in err
    code, _, err = run(capsys, *arguments, "--motion", "fourier", "--stiffness", "1e4")
    assert code == 2
    assert "--stiffness is for --motion flexible" in err

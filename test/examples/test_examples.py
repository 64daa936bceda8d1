"""Run the examples on bags of a small arm whose inertial parameters differ from its URDF."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import link_experiment
import numpy as np
import planar_arm
import pytest
from bag_files import START, joint_state, write_bag
from c_arm import arm_of

from dynid_ros.export.c_source import c_header, c_source
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass, transformed

EXAMPLES = Path(__file__).parents[2] / "examples"
ROBOT, TRUTH = link_experiment.build_planar()
LOAD = transformed(from_center_of_mass(2.0, np.array([0.0, 0.0, 0.1]), np.zeros((3, 3))), ROBOT.tip_offset)
PLANAR_LOAD = np.concatenate([np.zeros(20), LOAD])
"""Inertial parameters of the payload in exported_arm.cpp, for all links."""


@pytest.fixture(name="files")
def fixture_files(tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(planar_arm.urdf())
    return urdf, write_recording(tmp_path / "run1", seed=0), write_recording(tmp_path / "run2", seed=1), tmp_path


def write_recording(path, seed):
    recording = link_experiment.record(ROBOT, TRUTH, seed)
    stamps = START + np.round(1e9 * recording.time).astype(int)
    rows = zip(stamps.tolist(), recording.position, recording.velocity, recording.torque, strict=True)
    messages = [("/joint_states", row[0], joint_state(row[0], ROBOT.joint_names, *row[1:])) for row in rows]
    return write_bag(path, messages)


def run_example(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    return runpy.run_path(str(EXAMPLES / name))


def test_identify_from_bag_reduces_the_torque_error(files, monkeypatch):
    urdf, first, _, folder = files
    run_example(monkeypatch, "identify_from_bag.py", urdf, first, folder / "results", "link_3")
    assert (folder / "results" / "identified.yaml").is_file()
    identified = RobotModel.from_urdf(folder / "results" / "identified.urdf")
    q = np.random.default_rng(2).uniform(-2, 2, (100, 3))
    qd = np.zeros_like(q)
    qdd = np.ones_like(q)
    expected = ROBOT.inverse_dynamics(q, qd, qdd, TRUTH)
    assert np.std(identified.inverse_dynamics(q, qd, qdd) - expected) < 0.02 * np.std(expected)
    assert np.std(ROBOT.inverse_dynamics(q, qd, qdd) - expected) > 0.2 * np.std(expected)


def test_walkthrough_validates_the_links(files, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    urdf, first, second, _ = files
    variables = run_example(monkeypatch, "walkthrough.py", urdf, first, second)
    plt.close("all")
    assert (variables["links"].validate(variables["second"]).relative_rms < 0.05).all()
    assert "joint_3" in capsys.readouterr().out


def write_c_source(folder):
    """Write the arm's dynamics in C; return a pose and its gravity torque."""
    (folder / "arm.h").write_text(c_header(arm_of(ROBOT), "arm"))
    (folder / "arm.c").write_text(c_source(arm_of(ROBOT), "arm", "arm.h"))
    pose = [0.3, -0.7, 1.1]
    return pose, ROBOT.gravity_torque([pose])[0]


@pytest.mark.skipif(not shutil.which("cc"), reason="cc is not installed")
def test_exported_arm_in_python_computes_gravity(tmp_path, monkeypatch, capsys):
    pose, expected = write_c_source(tmp_path)
    run_example(monkeypatch, "exported_arm.py", tmp_path / "arm.c", *pose)
    np.testing.assert_allclose([float(word) for word in capsys.readouterr().out.split()], expected, atol=1e-12)


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("c++")), reason="no compiler is installed")
def test_exported_arm_in_cpp_computes_gravity_with_payload(tmp_path):
    pose, expected = write_c_source(tmp_path)
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    compiled = ["cc", "-std=c99", *warnings, "-c", "arm.c"]
    linked = ["c++", "-std=c++17", *warnings, "-I.", EXAMPLES / "exported_arm.cpp", "arm.o", "-o", "arm"]
    for command in (compiled, linked):
        subprocess.run(list(map(str, command)), cwd=tmp_path, check=True)
    out = subprocess.run(["./arm", *map(str, pose)], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows] == list(ROBOT.joint_names)
    np.testing.assert_allclose([float(row[1]) for row in rows], expected, atol=1e-6)
    arm = PLANAR_LOAD + ROBOT.parameters
    np.testing.assert_allclose([float(row[2]) for row in rows], ROBOT.gravity_torque([pose], arm)[0], atol=1e-6)

"""Test the gravity job and the gravity act of the demo."""

from dataclasses import replace

import numpy as np
import pytest
from gravity_experiment import demo_recording, demo_robot, planned_recording

from dynid_ros.demo.drop_test import DropTest
from dynid_ros.demo.floating_acts import judge_gravity
from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.run import run
from dynid_ros.model import GravityModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import SimulatedArm


def assert_gravity_torque(job, true):
    """Assert the identified gravity torque to 1 % of the largest torque of each joint."""
    model = GravityModel(demo_robot())
    poses = np.random.default_rng(3).uniform(-2, 2, (50, 6))
    torque = true.gravity_torque(poses)
    error = model.regressor(poses) @ gravity_moments(load_identified(job.identified), model) - torque
    assert np.all(np.abs(error).max(axis=0) <= 0.01 * np.maximum(np.abs(torque).max(axis=0), 1e-9) + 1e-9)


def test_effort_without_gravity_is_refused(tmp_path):
    recording = planned_recording()
    torque = recording.torque - demo_robot().gravity_torque(recording.position)
    compensated = replace(recording, torque=torque)
    with pytest.raises(RecordingError, match="gravity_compensated"):
        run("gravity", GravityIdentification(demo_robot()), {"recordings": [compensated]}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_act_passes_if_the_arm_floats_and_fails_if_it_falls(tmp_path):
    path = tmp_path / "run.npz"
    demo_recording().write_npz(path)
    recording = type(demo_recording()).read(path)
    job = run("gravity", GravityIdentification(demo_robot()), {"recordings": [recording]}, tmp_path)
    time = np.linspace(0, 5, 50)
    start = np.array([0.3, 0.6, 0.9, 0.4, 0.5, 0.3])
    still = np.tile(start, (50, 1))
    falling = still + np.outer(time, [0, 0.2, 0.1, 0, 0, 0])
    truth = SimulatedArm(demo_robot()).truth
    assert_gravity_torque(job, truth)
    act = judge_gravity(demo_robot(), truth, tmp_path, DropTest(time, falling, still + 1e-4))
    assert act.passed, act.sentences
    assert len(act.comparisons) == 10
    assert len(act.pictures) == 2
    assert (tmp_path / "drop.png").read_bytes().startswith(b"\x89PNG")
    assert not judge_gravity(demo_robot(), truth, tmp_path, DropTest(time, falling, falling)).passed


def test_motion_without_dwells_suggests_slow_samples(tmp_path):
    """The motion is slow but never at rest, so it has slow samples but no static ones."""
    robot = demo_robot()
    time = np.arange(0.0, 40.0, 0.01)
    phase = np.linspace(0.0, np.pi, 6)
    position = 0.5 * np.sin(0.3 * time[:, None] + phase)
    torque = robot.gravity_torque(position)
    moving = Recording(robot.joint_names, time, position, np.gradient(position, time, axis=0), torque)
    with pytest.raises(
        IdentificationError, match=r"slowly, below 0\.5 per s, in \d+ stretches.*: --samples slow \(node"
    ):
        run("gravity", GravityIdentification(robot), {"recordings": [moving]}, tmp_path)
    fast = replace(moving, time=time / 40)
    with pytest.raises(IdentificationError) as caught:
        run("gravity", GravityIdentification(robot), {"recordings": [fast]}, tmp_path)
    assert "--samples slow" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert run(
        "gravity", GravityIdentification(robot, samples="slow"), {"recordings": [moving]}, tmp_path
    ).report.is_file()

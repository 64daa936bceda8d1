"""Gravity identification of real robots; the recordings are not in the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention

pytestmark = pytest.mark.skipif("DYNID_DATA" not in os.environ, reason="no real recordings: DYNID_DATA is not set")
DATA = Path(os.environ.get("DYNID_DATA", ""))
UR10E_CURRENT = EffortConvention("motor_current", (11.976, 11.976, 9.839, 10.763, 10.763, 10.763))


def rms_errors(identification, result, recording):
    """Return the RMS errors (n,) of the identified model and of the URDF."""
    samples = identification.extract(recording)
    nominal = samples.torque - identification.robot.gravity_torque(samples.position)
    return result.validate(recording).rms, np.sqrt(np.mean(nominal**2, axis=0))


def test_kuka_lwr4_predicts_the_other_run():
    folder = DATA / "kuka_lwr4"
    robot = RobotModel.from_urdf(folder / "kuka_lwr4.urdf", tip="lwr_7_link")
    runs = [Recording.read(folder / "develop" / f"measurements_{i}.npz", joint_names=robot.joint_names) for i in (1, 2)]
    rules = SampleRules(slow_velocity=1.0, slow_acceleration=1.0)
    identification = GravityIdentification(robot, samples="slow", rules=rules)
    identified, nominal = rms_errors(identification, identification.fit(runs[0]), runs[1])
    assert np.all(identified < 0.55)
    assert np.all(identified[:6] < 0.5 * nominal[:6])


def test_ur10e_predicts_the_fifth_pose():
    folder = DATA / "ur10e"
    robot = RobotModel.from_urdf(folder / "ur10e.urdf", base="base_link", tip="wrist_3_link")

    def read(name):
        path = folder / "develop" / f"{name}.npz"
        return Recording.read(path, joint_names=robot.joint_names, effort_convention=UR10E_CURRENT)

    fitted = [read(f"20_01_17-p{i}") for i in (1, 2, 3, 4)] + [read("20_01_22-joint_1")]
    rules = SampleRules(slow_velocity=1.0)
    identification = GravityIdentification(robot, samples="both", torque_offset=False, rules=rules)
    result = identification.fit(*fitted)
    identified, nominal = rms_errors(identification, result, read("20_01_17-p5"))
    assert identified[1] < 0.02 * 120  # of the largest gravity torque of the shoulder
    assert identified[2] < 0.5 * nominal[2]
    assert result.observability["shoulder_pan_joint"].torque_free

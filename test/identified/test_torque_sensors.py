"""Test the correction of readings by calibrated torque sensors."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def create_sensors():
    values = {
        "gain": [2.0, np.nan, 0.5],
        "offset": [1.0, 3.0, np.nan],
        "position_gain": [1.0, 1.1, -1.0],
        "position_offset": [0.0, 0.2, np.nan],
    }
    return TorqueSensors.of(planar_arm.JOINTS, values)


def test_corrects_torque_position_and_velocity():
    rng = np.random.default_rng(3)
    q, qd, readings = rng.normal(size=(3, 20, 3))
    recording = Recording(planar_arm.JOINTS, np.arange(20.0), q, qd, readings)
    corrected = create_sensors().correct(recording)
    np.testing.assert_allclose(corrected.torque, np.array([2.0, 1.0, 0.5]) * (readings - [1.0, 3.0, 0.0]))
    np.testing.assert_allclose(corrected.position, np.array([1.0, 1.1, -1.0]) * q + [0.0, 0.2, 0.0])
    np.testing.assert_allclose(corrected.velocity, np.array([1.0, 1.1, -1.0]) * qd)
    assert create_sensors().assumed == ((), ("gain",), ("offset", "position_offset"))


@pytest.mark.parametrize("label", ["gain", "position_gain"])
def test_refuses_gains_of_zero(label):
    document = planar_arm.document()
    document["torque_sensors"] = {joint: {"gain": 1.0, "position_gain": 1.0} for joint in planar_arm.JOINTS}
    robot = RobotModel.from_urdf(planar_arm.urdf())
    np.testing.assert_array_equal(TorqueSensors.of_document(document, robot).gain, 1.0)
    document["torque_sensors"]["joint_2"][label] = 0.0
    with pytest.raises(IdentifiedFileError, match=f"joint 'joint_2'.*{label} is 0"):
        TorqueSensors.of_document(document, robot)

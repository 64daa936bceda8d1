"""Correction of readings by a calibrated sensor, and files it must not be read from."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording


def sensors():
    values = {"gain": [2.0, np.nan, 0.5], "offset": [1.0, 3.0, np.nan], "position_gain": [1.0, 1.1, -1.0]}
    return TorqueSensors.of(planar_arm.JOINTS, values | {"position_offset": [0.0, 0.2, np.nan]})


def test_torque_position_and_velocity_are_corrected():
    rng = np.random.default_rng(3)
    q, qd, readings = rng.normal(size=(3, 20, 3))
    recording = Recording(planar_arm.JOINTS, np.arange(20.0), q, qd, readings)
    found = sensors().correct(recording)
    np.testing.assert_allclose(found.torque, np.array([2.0, 1.0, 0.5]) * (readings - [1.0, 3.0, 0.0]))
    np.testing.assert_allclose(found.position, np.array([1.0, 1.1, -1.0]) * q + [0.0, 0.2, 0.0])
    np.testing.assert_allclose(found.velocity, np.array([1.0, 1.1, -1.0]) * qd)
    assert sensors().assumed == ((), ("gain",), ("offset", "position_offset"))


@pytest.mark.parametrize("label", ["gain", "position_gain"])
def test_a_gain_of_zero_is_refused(label):
    document = planar_arm.document()
    document["torque_sensors"] = {joint: {"gain": 1.0, "position_gain": 1.0} for joint in planar_arm.JOINTS}
    robot = RobotModel.from_urdf(planar_arm.urdf())
    np.testing.assert_array_equal(TorqueSensors.of_document(document, robot).gain, 1.0)
    document["torque_sensors"]["joint_2"][label] = 0.0
    with pytest.raises(IdentifiedFileError, match=f"joint 'joint_2'.*{label} is 0"):
        TorqueSensors.of_document(document, robot)

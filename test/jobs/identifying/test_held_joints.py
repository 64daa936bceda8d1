"""One joint of an arm whose brakes hold the others."""

from dataclasses import replace

import numpy as np
import pa10
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.jobs.flexible_joints import single_joint
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

POSE = np.array([0.3, 0.0, 1.2, 0.3, 0.9, 0.2])
ROBOT = RobotModel.from_urdf(pa10.arm_urdf())


def recording(way=0.0):
    position = np.tile(POSE, (100, 1))
    position[:, 1] = np.linspace(-1, 1, 100)
    position[:, 3] += np.deg2rad(way) * np.linspace(-0.5, 0.5, 100)
    nothing = np.full_like(position, np.nan)
    return Recording(ROBOT.joint_names, np.arange(100) / 100, position, nothing, nothing, source="held.npz")


def test_it_is_the_arm_with_its_other_joints_fixed():
    found = single_joint(ROBOT, "joint_2", [recording(), recording(0.9)])
    fixed = RobotModel.from_urdf(pa10.arm_urdf(alone=2, pose=tuple(POSE)))
    motion = np.random.default_rng(0).uniform(-1, 1, (3, 20, 1))
    np.testing.assert_allclose(found.inverse_dynamics(*motion), fixed.inverse_dynamics(*motion), atol=1e-9)


def test_a_joint_that_is_not_held_is_refused():
    with pytest.raises(RecordingError, match=r"held.npz, held.npz: joint 'joint_4' moves by 1.1° while only 'joint_2'"):
        single_joint(ROBOT, "joint_2", [recording(), recording(1.1)])
    lifted = replace(recording(), position=recording().position + np.array([0, 0, 0.1, 0, 0, 0]))
    with pytest.raises(RecordingError, match=r"'joint_3' moves by 5\.7°"):
        single_joint(ROBOT, "joint_2", [recording(), lifted])

"""Test exported URDFs by Pinocchio: torque of rigid links on real arms."""

import numpy as np
import pytest
from c_arm import arm_of
from exported_arms import ARMS, load_identified_arm
from pinocchio_arm import PinocchioArm

from dynid_ros.export import exported_urdf
from dynid_ros.export.exported_arm import Motion
from dynid_ros.model import GravityModel


@pytest.mark.parametrize("path", ARMS)
def test_urdf_of_links_in_pinocchio(path, tmp_path):
    robot, links = load_identified_arm(path)
    motion = Motion.sinusoids(robot)
    exported_urdf.write(arm_of(robot, parameters=links), tmp_path / "new.urdf", motion)
    reader = PinocchioArm((tmp_path / "new.urdf").read_text(), robot.joint_names, robot.gravity)
    for q, qd, qdd in np.random.default_rng(1).normal(size=(20, 3, robot.n_joints)):
        expected = robot.inverse_dynamics([q], [qd], [qdd], links)[0]
        np.testing.assert_allclose(
            reader.inverse_dynamics(q, qd, qdd), expected, atol=1e-10 * max(np.abs(expected).max(), 1)
        )


@pytest.mark.parametrize("path", ARMS)
def test_urdf_of_gravity_in_pinocchio(path, tmp_path):
    robot, links = load_identified_arm(path)
    moments = GravityModel(robot).project(links)
    exported_urdf.write(arm_of(robot, parameters=None, moments=moments), tmp_path / "new.urdf", Motion.sinusoids(robot))
    reader = PinocchioArm((tmp_path / "new.urdf").read_text(), robot.joint_names, robot.gravity)
    for q in np.random.default_rng(1).normal(size=(20, robot.n_joints)):
        expected = robot.gravity_torque([q], links)[0]
        np.testing.assert_allclose(reader.gravity_torque(q), expected, atol=1e-9 * max(np.abs(expected).max(), 1.0))

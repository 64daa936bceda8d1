"""What was exported as other programs read it: the same torque of rigid links on real arms."""

import numpy as np
import pytest
from c_arm import arm_of
from exported_arms import ARMS, identified
from pinocchio_arm import PinocchioArm

from dynid_ros.export import exported_urdf
from dynid_ros.export.exported_arm import Motion
from dynid_ros.model import GravityModel


@pytest.mark.parametrize("path", ARMS)
def test_urdf_in_pinocchio(path, tmp_path):
    robot, links = identified(path)
    motion = Motion.sinusoids(robot)
    exported_urdf.write(arm_of(robot, parameters=links), tmp_path / "new.urdf", motion)
    reader = PinocchioArm((tmp_path / "new.urdf").read_text(), robot.joint_names, robot.gravity)
    for q, qd, qdd in np.random.default_rng(1).normal(size=(20, 3, robot.n_joints)):
        wanted = robot.inverse_dynamics([q], [qd], [qdd], links)[0]
        np.testing.assert_allclose(
            reader.inverse_dynamics(q, qd, qdd), wanted, atol=1e-10 * max(np.abs(wanted).max(), 1)
        )


@pytest.mark.parametrize("path", ARMS)
def test_urdf_of_gravity_alone_in_pinocchio(path, tmp_path):
    robot, links = identified(path)
    moments = GravityModel(robot).project(links)
    exported_urdf.write(arm_of(robot, parameters=None, moments=moments), tmp_path / "new.urdf", Motion.sinusoids(robot))
    reader = PinocchioArm((tmp_path / "new.urdf").read_text(), robot.joint_names, robot.gravity)
    for q in np.random.default_rng(1).normal(size=(20, robot.n_joints)):
        wanted = robot.gravity_torque([q], links)[0]
        np.testing.assert_allclose(reader.gravity_torque(q), wanted, atol=1e-9 * max(np.abs(wanted).max(), 1.0))

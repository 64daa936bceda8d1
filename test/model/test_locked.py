"""Held joints against Pinocchio's reduced models."""

import numpy as np
import pytest
from pinocchio_arm import example_urdf

from dynid_ros.errors import ModelError
from dynid_ros.files.share import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import locked

URDFS = {"ur_description/urdf/ur10_robot.urdf": "tool0", "panda_description/urdf/panda.urdf": "panda_hand"}


@pytest.mark.parametrize("urdf", URDFS)
@pytest.mark.parametrize("kept", [(1,), (0, 3), (2, 3, 5), (5,)])
def test_torques_and_poses_are_those_of_pinocchios_reduced_model(urdf, kept):
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(len(kept))
    robot = RobotModel.from_urdf(example_urdf(urdf), tip=URDFS[urdf], gravity=(1.0, -2.0, -9.0))
    names = robot.joint_names
    pose = rng.uniform(-1.5, 1.5, len(names))
    joints = [names[i] for i in kept]
    found = locked(robot, joints[::-1], pose)
    assert found.joint_names == tuple(joints)
    assert (found.base, found.tip) == (robot.base, robot.tip)
    assert found.limits.upper == pytest.approx(robot.limits.upper[list(kept)])

    model = pin.buildModelFromXML(robot.urdf)
    q0 = pin.neutral(model)
    for name, position in zip(names, pose, strict=True):
        q0[model.joints[model.getJointId(name)].idx_q] = position
    reduced = pin.buildReducedModel(model, [model.getJointId(n) for n in model.names[1:] if n not in joints], q0)
    reduced.gravity.linear = robot.gravity
    data = reduced.createData()
    q, qd, qdd = rng.uniform(-2, 2, (3, 20, len(kept)))
    expected = np.array([pin.rnea(reduced, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    np.testing.assert_allclose(found.inverse_dynamics(q, qd, qdd), expected, atol=1e-9)
    pin.framesForwardKinematics(reduced, data, q[0])
    tip = data.oMf[reduced.getFrameId(robot.tip)].homogeneous
    np.testing.assert_allclose(found.forward_kinematics(q[:1])[0, -1] @ found.tip_offset, tip, atol=1e-9)


def test_bad_input_is_refused():
    robot = RobotModel.from_urdf(share_path("config/demo_arm.urdf"))
    pose = np.zeros(robot.n_joints)
    with pytest.raises(ModelError, match="joints to move are elbow; expected some of joint_1"):
        locked(robot, ["elbow"], pose)
    with pytest.raises(ModelError, match="joints to move are none"):
        locked(robot, [], pose)
    with pytest.raises(ModelError, match="expected \\(6,\\)"):
        locked(robot, ["joint_2"], [0.0])

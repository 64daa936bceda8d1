"""Room for torques: poses and motions that load a joint up to a margin below its limit, and no further."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, move
from dynid_ros.trajectories.workspace import WorkspaceAndTorque

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
STRETCHED = np.zeros(3)


@pytest.mark.parametrize(("margin", "fits"), [(0.05, True), (0.15, False)])
@pytest.mark.parametrize("pose", [STRETCHED, [0.0, np.pi, 0.0]], ids=["loads joint 2 one way", "the other way"])
def test_a_margin_is_left_on_both_sides(margin, fits, pose):
    """Stretched out the arm loads joint 2 to 90 % of its limit."""
    needed = np.abs(planar_arm.gravity_torque(STRETCHED))
    limits = MotionLimits(ROBOT.joint_names, ("rad",) * 3, -4.0, 4.0, 3.0, 9.0, torque=[1.0, needed[1] / 0.9, 99.0])
    room = WorkspaceAndTorque(Workspace(ROBOT), limits, ROBOT, margin)
    assert room.unknown == []
    assert room.allowed(np.array([pose])).tolist() == [fits]
    dwell = move(ROBOT.joint_names, pose, pose, 1.0)
    if fits:
        room.check(dwell)
    else:
        with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
            room.check(dwell)


def test_a_massless_last_link_leaves_the_other_torques_checked():
    urdf = planar_arm.urdf().replace(f'<mass value="{planar_arm.MASS[-1]}"/>', '<mass value="0"/>')
    robot = RobotModel.from_urdf(urdf)
    limits = MotionLimits(robot.joint_names, ("rad",) * 3, -4.0, 4.0, 3.0, 9.0, torque=[1.0, 1e-3, 99.0])
    room = WorkspaceAndTorque(Workspace(robot), limits, robot, 0.1)
    assert room.unknown == ["joint_3"]
    assert not room.allowed(STRETCHED[None]).any()
    with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
        room.check(move(robot.joint_names, STRETCHED, STRETCHED, 1.0))

from pathlib import Path

import numpy as np
import planar_arm
import pytest
from scipy.optimize import minimize

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import Workspace, move
from dynid_ros.trajectories.workspace import _segment_distance

DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"


def test_segment_distance_is_the_smallest_over_both_segments():
    rng = np.random.default_rng(3)
    segments = rng.normal(size=(30, 4, 3))
    segments[:10, 3] = segments[:10, 2] + (segments[:10, 1] - segments[:10, 0])  # parallel
    found = _segment_distance(*np.moveaxis(segments, 1, 0))
    for (a0, a1, b0, b1), distance in zip(segments, found, strict=True):

        def squared(x, a0=a0, a1=a1, b0=b0, b1=b1):
            return np.sum((a0 + x[0] * (a1 - a0) - b0 - x[1] * (b1 - b0)) ** 2)

        best = min(minimize(squared, start, bounds=[(0, 1)] * 2).fun for start in ([0, 0], [1, 1], [0, 1], [1, 0]))
        assert distance == pytest.approx(np.sqrt(best), abs=1e-4)


def test_floor_is_where_the_links_reach_it():
    """Shoulder at 0.3 m, 0.4 m to the elbow, positive angles are downwards: sin q2 = (0.3 - floor) / 0.4."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    workspace = Workspace(robot, floor_height=0.1)
    touching = np.arcsin(0.2 / 0.4)
    poses = [[0.3, touching - 1e-6, 0.0], [0.3, touching + 1e-6, 0.0], [1.0, -1.0, 0.0], [0.0, np.pi - 0.6, 0.0]]
    np.testing.assert_array_equal(workspace.allowed(poses), [True, False, True, False])


def test_floor_of_a_hanging_arm_is_on_the_other_side():
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=(0, 0, 9.80665))
    assert Workspace(robot, floor_height=-0.5).allowed([[0.0, 0.4, 0.0]])[0]
    assert not Workspace(robot, floor_height=-0.5).allowed([[0.0, -0.8, 0.0]])[0]


def test_links_keep_clear_of_each_other():
    """Four links of 0.5 m in a plane, folded to a square that closes at the base."""
    rows = [{"a": 0.5, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 4
    robot = RobotModel.from_dh(rows, gravity=(0, 0, -9.8))
    quarter = np.pi / 2
    closed, open_ = [0.0, quarter, quarter, quarter], [0.0, quarter, quarter, quarter - 0.5]
    gap = 0.5 * np.sin(0.5)
    np.testing.assert_array_equal(Workspace(robot, clearance=0.1).allowed([closed, open_]), [False, True])
    assert not Workspace(robot, clearance=1.01 * gap / 2).allowed([closed])[0]
    assert np.all(Workspace(robot).allowed([closed, open_]))


def test_check_names_link_time_and_height():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    motion = move(robot.joint_names, [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 2.0)
    with pytest.raises(
        TrajectoryError, match=r"'link_3' would be at height -0.037 m at 2.000 s, below floor_height 0.1 m"
    ):
        Workspace(robot, floor_height=0.1).check(motion)
    Workspace(robot, floor_height=-0.1).check(motion)


def test_check_names_the_links_that_come_close():
    rows = [{"a": 0.5, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 4
    robot = RobotModel.from_dh(rows)
    motion = move(robot.joint_names, [0.0] * 4, [0.0, *[np.pi / 2] * 3], 3.0)
    with pytest.raises(
        TrajectoryError, match=r"from 'link_3' to 'link_4' would come within 0.000 m .* clearance is 0.1 m"
    ):
        Workspace(robot, clearance=0.1).check(motion)


def test_tip_is_where_pinocchio_has_it():
    pinocchio = pytest.importorskip("pinocchio")
    robot = RobotModel.from_urdf(DEMO_ARM)
    model = pinocchio.buildModelFromUrdf(str(DEMO_ARM))
    data = model.createData()
    rng = np.random.default_rng(5)
    poses = rng.uniform(-1.5, 1.5, (20, 6))
    lowest = []
    for pose in poses:
        pinocchio.framesForwardKinematics(model, data, pose)
        frames = ["link_3", "link_4", "link_5", "link_6", "tool"]  # those that move
        lowest.append(min(data.oMf[model.getFrameId(name)].translation[2] for name in frames))
    for pose, height in zip(poses, lowest, strict=True):
        assert Workspace(robot, floor_height=height - 1e-9).allowed([pose])[0]
        assert not Workspace(robot, floor_height=height + 1e-9).allowed([pose])[0]


def test_no_gravity_no_floor():
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=(0, 0, 0))
    with pytest.raises(TrajectoryError, match="gravity is zero"):
        Workspace(robot)

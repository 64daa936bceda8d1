"""Test the workspace: floor, self-collision, obstacles, boxes and torque margins."""

from pathlib import Path

import numpy as np
import planar_arm
import pytest

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, move
from dynid_ros.trajectories.workspace import WorkspaceAndTorque, _helpful_pairs

DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"


def test_floor_limits_the_lowest_link():
    """The shoulder is at 0.3 m, the elbow 0.4 m further; positive angles point down: sin q2 = (0.3 - floor) / 0.4."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    workspace = Workspace(robot, floor_height=0.1)
    touching = np.arcsin(0.2 / 0.4)
    poses = [[0.3, touching - 1e-6, 0.0], [0.3, touching + 1e-6, 0.0], [1.0, -1.0, 0.0], [0.0, np.pi - 0.6, 0.0]]
    np.testing.assert_array_equal(workspace.allowed(poses), [True, False, True, False])


def test_links_keep_clear_of_each_other():
    """Four links of 0.5 m form a square that closes at the base."""
    rows = [{"a": 0.5, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 4
    robot = RobotModel.from_dh(rows, gravity=(0, 0, -9.8))
    quarter = np.pi / 2
    closed = [0.0, quarter, quarter, quarter]
    open_ = [0.0, quarter, quarter, quarter - 0.5]
    gap = 0.5 * np.sin(0.5)
    np.testing.assert_array_equal(Workspace(robot, clearance=0.1).allowed([closed, open_]), [False, True])
    assert not Workspace(robot, clearance=1.01 * gap / 2).allowed([closed])[0]
    assert np.all(Workspace(robot).allowed([closed, open_]))


def test_reports_link_time_and_height_below_the_floor():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    motion = move(robot.joint_names, [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 2.0)
    with pytest.raises(TrajectoryError, match=r"'link_3' would be at height -0.037 m at 2.000 s"):
        Workspace(robot, floor_height=0.1).check(motion)
    Workspace(robot, floor_height=-0.1).check(motion)


def test_refuses_floors_without_gravity():
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=(0, 0, 0))
    with pytest.raises(TrajectoryError, match="gravity is zero"):
        Workspace(robot)


def create_demo_arm():
    robot = RobotModel.from_urdf(DEMO_ARM)
    return robot, Bodies.of(robot)


def test_floor_applies_to_the_bodies_of_links():
    """The computed height is a tight lower bound of the lowest point of MuJoCo's boxes and cylinders."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(DEMO_ARM))
    data = mujoco.MjData(model)
    robot, bodies = create_demo_arm()
    workspace = Workspace(robot, -10.0, bodies=bodies)
    poses = np.random.default_rng(4).uniform(-1.5, 1.5, (40, 6))
    heights = workspace.distances(poses).room[:, ["floor" in name for name in workspace.names]].min(axis=1) - 10.0
    for pose, height in zip(poses, heights, strict=True):
        data.qpos[:] = pose
        mujoco.mj_forward(model, data)
        lowest = []
        for geom in np.flatnonzero(model.geom_bodyid > 0):
            up = data.geom_xmat[geom].reshape(3, 3)[2]
            size = model.geom_size[geom]
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
                below = np.abs(up) @ size
            else:
                assert model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CYLINDER
                below = abs(up[2]) * size[1] + np.hypot(up[0], up[1]) * size[0]
            lowest.append(data.geom_xpos[geom, 2] - below)
        assert min(lowest) - 0.08 < height <= min(lowest) + 1e-9


def test_refuses_self_collision_without_clearance():
    """The arm is folded onto itself: the lines of its links pass each other, but the links collide."""
    robot, bodies = create_demo_arm()
    folded = [[0.0, 0.3, 2.4, 0.0, 1.9, 0.0]]
    assert Workspace(robot).allowed(folded)[0]
    with_bodies = Workspace(robot, bodies=bodies)
    rng = np.random.default_rng(2)
    poses = rng.uniform(robot.limits.lower, robot.limits.upper, (400, 6))
    assert 0.3 < with_bodies.allowed(poses).mean() < 0.98
    assert with_bodies.allowed(np.zeros((1, 6)))[0]


def test_keeps_clear_of_obstacles_and_box():
    robot, bodies = create_demo_arm()
    wall = Obstacle("wall", [0.5, -2, 0], [0.6, 2, 2])
    cell = Workspace(robot, bodies=bodies, obstacles=[wall])
    room = Workspace(robot, bodies=bodies, box=([-2, -2, -1], [0.5, 2, 3]))
    forwards = [0.0, 1.2, 0.0, 0.0, 0.0, 0.0]
    upright = [0.0] * 6
    for workspace, message in (
        (cell, r"'\w+' would overlap with obstacle 'wall' by 0.\d+ m at \d.\d+ s; clearance is 0 m"),
        (room, r"'\w+' would reach x = [01].\d+ m at \d.\d+ s, beyond upper side 0.5 m of the box"),
    ):
        np.testing.assert_array_equal(workspace.allowed([upright, forwards]), [True, False])
        with pytest.raises(TrajectoryError, match=message):
            workspace.check(move(robot.joint_names, upright, forwards, 3.0))


def test_table_under_the_base_is_exempt_for_the_first_link():
    robot, bodies = create_demo_arm()
    table = Obstacle("table", [-1, -1, -0.1], [1, 1, 0.12])
    workspace = Workspace(robot, bodies=bodies, obstacles=[table])
    assert workspace.exempt == ("'link_1' and obstacle 'table'",)
    down = [0.0, 1.6, 0.8, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(workspace.allowed([[0.0] * 6, down]), [True, False])


def test_reports_obstacles_that_leave_no_pose():
    robot, bodies = create_demo_arm()
    shelf = Obstacle("shelf", [-2, -2, 0.0], [2, 2, 2.0])
    with pytest.raises(TrajectoryError, match=r"'link_2' and obstacle 'shelf' are too near in every one of 1000 poses"):
        Workspace(robot, bodies=bodies, obstacles=[shelf])
    with pytest.raises(TrajectoryError, match=r"box from .* expected corners"):
        Workspace(robot, box=([0, 0, 0], [1, 1, -1]))
    with pytest.raises(TrajectoryError, match="clearance is -1 m"):
        Workspace(robot, clearance=-1.0)


def test_ignores_distant_obstacles_and_refuses_too_many():
    robot, bodies = create_demo_arm()
    table = Obstacle("table", [0.6, -1, -0.2], [1.2, 1, 0.0])
    far = [Obstacle(f"far_{k}", [9.0, k, 0.0], [9.1, k + 1.0, 1.0]) for k in range(3000)]
    workspace = Workspace(robot, bodies=bodies, obstacles=[table, *far])
    assert workspace.names == Workspace(robot, bodies=bodies, obstacles=[table]).names
    assert len(workspace.obstacles) == 3001
    near = [Obstacle(f"near_{k}", [0.6, 0.0, k * 1e-3], [0.7, 0.1, 0.1 + k * 1e-3]) for k in range(201)]
    with pytest.raises(TrajectoryError, match="201 obstacles are within reach; a design takes at most 200"):
        Workspace(robot, bodies=bodies, obstacles=near)


def test_reports_link_pairs_that_are_rarely_apart():
    robot, bodies = create_demo_arm()
    assert Workspace(robot, clearance=0.05, bodies=bodies).crowded == ()
    (remark,) = Workspace(robot, clearance=0.3, bodies=bodies).crowded
    assert remark.startswith("'link_6' and 'link_3' keep their distance in 0.0 % of poses")
    assert "--srdf" in remark
    assert "--allowed-pairs link_6:link_3" in remark
    robot = RobotModel.from_urdf(robot.urdf, robot.tip)
    allowed = Bodies.of(robot, allowed=["link_6:link_3"])
    assert Workspace(robot, clearance=0.3, bodies=allowed).crowded == ()


def test_lists_close_pairs_that_are_often_too_near():
    robot, bodies = create_demo_arm()
    assert Workspace(robot, clearance=0.05, bodies=bodies).close_pairs == {}
    close = Workspace(robot, clearance=0.3, bodies=bodies).close_pairs
    assert close[("link_6", "link_3")] == 1.0
    assert all(share > 0.1 for share in close.values())


def test_proposes_pairs_by_the_poses_that_they_allow():
    pose = np.arange(100)
    distances = {
        ("wrist", "hand"): (pose >= 20, 2),
        ("elbow", "wrist"): (pose >= 60, 2),
        ("shoulder", "hand"): (pose < 85, 2),
        ("base", "hand"): (pose < 85, 6),
    }
    assert _helpful_pairs(distances) == [("elbow", "wrist"), ("wrist", "hand")]


ROBOT = RobotModel.from_urdf(planar_arm.urdf())
STRETCHED = np.zeros(3)


@pytest.mark.parametrize(("margin", "fits"), [(0.05, True), (0.15, False)])
@pytest.mark.parametrize("pose", [STRETCHED, [0.0, np.pi, 0.0]], ids=["positive torque", "negative torque"])
def test_torque_margins_apply_in_both_directions(margin, fits, pose):
    """The stretched arm loads joint 2 to 90 % of its limit."""
    needed = np.abs(planar_arm.gravity_torque(STRETCHED))
    limits = MotionLimits(ROBOT.joint_names, ("rad",) * 3, -4.0, 4.0, 3.0, 9.0, torque=[1.0, needed[1] / 0.9, 99.0])
    constraints = WorkspaceAndTorque(Workspace(ROBOT), limits, ROBOT, margin)
    assert constraints.unknown == []
    assert constraints.allowed(np.array([pose])).tolist() == [fits]
    dwell = move(ROBOT.joint_names, pose, pose, 1.0)
    if fits:
        constraints.check(dwell)
    else:
        with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
            constraints.check(dwell)


def test_checks_torques_of_joints_before_a_massless_link():
    urdf = planar_arm.urdf().replace(f'<mass value="{planar_arm.MASS[-1]}"/>', '<mass value="0"/>')
    robot = RobotModel.from_urdf(urdf)
    limits = MotionLimits(robot.joint_names, ("rad",) * 3, -4.0, 4.0, 3.0, 9.0, torque=[1.0, 1e-3, 99.0])
    constraints = WorkspaceAndTorque(Workspace(robot), limits, robot, 0.1)
    assert constraints.unknown == ["joint_3"]
    assert not constraints.allowed(STRETCHED[None]).any()
    with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
        constraints.check(move(robot.joint_names, STRETCHED, STRETCHED, 1.0))

"""Rests in chosen poses: better than poses by chance, within limits and room as MuJoCo sees it, the same again."""

from itertools import permutations

import numpy as np
import planar_arm
import pytest
import yaml
from helpers.mujoco_room import DEMO_ARM, check_demo_arm
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.pose_set import PoseSet, path_duration, visiting_order
from dynid_ros.information.criteria import log_determinant, whitening_axes
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits, check_start


def distances(points):
    return np.linalg.norm(points[:, np.newaxis] - points, axis=2)


@pytest.mark.parametrize("seed", range(10))
def test_way_is_near_the_shortest_of_all(seed):
    times = distances(np.random.default_rng(seed).uniform(size=(7, 2)))
    way = visiting_order(times)
    assert sorted(way) == list(range(7))
    shortest = min(path_duration(times, list(order)) for order in permutations(range(7)))
    assert path_duration(times, way) <= 1.05 * shortest


def test_points_on_a_line_are_visited_along_it():
    places = np.random.default_rng(0).permutation(12)
    way = visiting_order(distances(places[:, np.newaxis].astype(float)))
    along = places[way].tolist()
    assert along in (sorted(along), sorted(along, reverse=True))


DEMO = RobotModel.from_urdf(DEMO_ARM)
PLANAR = RobotModel.from_urdf(planar_arm.urdf())
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])  # links of a wrist are not held apart by `clearance`


def demo_arm(**settings):
    given = {"position_margin": MARGIN, "speed_fraction": 0.8, "travel_speed_fraction": 0.8, "dwell": 0.5} | settings
    return PoseSet(DEMO, MotionLimits.of(DEMO, 6.0), Workspace(DEMO, 0.1, 0.1), **given)


def planar(**settings):
    return PoseSet(PLANAR, MotionLimits.of(PLANAR, 4.0), Workspace(PLANAR, 0.0), **settings)


def poses_of(plan):
    return np.array([list(pose.values()) for pose in plan.facts["poses"]])


def ranks_of(plan):
    return plan.facts["rank"], plan.facts["possible_rank"]


@pytest.fixture(scope="module")
def plan():
    return demo_arm(count=10).plan()


def pinocchio_rows(poses):
    """Rows (P, 6, 66) of all links' parameters and of offsets, by Pinocchio."""
    arm = PinocchioArm(DEMO_ARM.read_text(), DEMO.joint_names, DEMO.gravity)
    rows = np.array([arm.torque_regressor(q, 0 * q, 0 * q) for q in poses])
    return np.concatenate([rows, np.broadcast_to(np.eye(6), (len(poses), 6, 6))], axis=2)


def test_chosen_poses_tell_clearly_more_than_random_ones(plan):
    """By the rows of another library, in its parameters."""
    rng = np.random.default_rng(0)
    experiment = demo_arm()
    allowed = experiment.allowed_poses(experiment.approach)
    random = [allowed[rng.choice(len(allowed), 10, replace=False)] for _ in range(60)]
    axes = whitening_axes(pinocchio_rows(allowed[::4]))
    assert axes.shape[1] == 16  # n_x, n_y of joints 2 to 6 and six offsets
    values = [log_determinant(pinocchio_rows(poses) @ axes) for poses in random]
    reached = log_determinant(pinocchio_rows(poses_of(plan)) @ axes)
    assert reached > max(values) + 1.0
    assert reached > np.median(values) + 3.0
    assert ranks_of(plan) == (16, 16)


def test_motion_keeps_to_limits_and_room_as_mujoco_sees_it(plan):
    motion = plan.trajectory
    check_limits(motion, MotionLimits.of(DEMO, 6.0))
    check_start(motion, poses_of(plan)[0] - 0.05)
    position, _, _ = motion.at(np.arange(0.0, motion.duration, 0.02))
    check_demo_arm(position, margin=MARGIN - 1e-9, floor=0.1)


def test_dwells_are_rests_in_the_poses_reached_from_both_sides(plan):
    poses = poses_of(plan)
    assert len(plan.dwells) == 2 * len(poses) == 20
    for dwell in plan.dwells:
        position, velocity, _ = plan.trajectory.at(np.linspace(dwell.start, dwell.end, 7))
        np.testing.assert_allclose(position, np.tile(poses[dwell.pose], (7, 1)), atol=1e-6)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        assert dwell.end - dwell.start == pytest.approx(0.5)
        before = plan.trajectory.at(dwell.start - 0.05)[0]
        assert np.all(np.sign(poses[dwell.pose] - before) == dwell.direction)
    assert [d.direction for d in plan.dwells[:4]] == [1, -1, 1, -1]


def test_same_seed_same_poses_and_plain_data(plan):
    np.testing.assert_array_equal(poses_of(demo_arm(count=10).plan()), poses_of(plan))
    content = yaml.safe_load(yaml.safe_dump(plan.as_dict()))
    assert content["format"] == "dynid-pose-set/1"
    assert content["rank"] == content["possible_rank"] == 16
    assert len(content["poses"]) == 10
    assert "16 of 16 combinations" in plan.summary()


def test_load_needs_its_four_parameters_and_offsets():
    plan = demo_arm(target="load", count=4).plan()
    assert ranks_of(plan) == (10, 10)
    assert plan.facts["condition_number"] < 10
    alone = demo_arm(target="load", count=2, offsets=False).plan()
    assert ranks_of(alone) == (4, 4)  # as Atkeson, An and Hollerbach count for two poses


def test_poses_of_the_caller_are_all_visited_and_their_lack_is_said():
    poses = np.array([[0.0, -0.5, 0.0], [0.5, -1.0, 0.3], [0.2, -0.5, 0.0]])
    plan = planar(poses=poses, approach=0.0).plan()
    assert sorted(poses_of(plan).tolist()) == sorted(poses.tolist())
    assert [dwell.direction for dwell in plan.dwells] == [0, 0, 0]
    assert any("without approach" in warning for warning in plan.warnings)
    one = planar(poses=poses[:1]).plan()
    rank, possible_rank = ranks_of(one)
    assert rank < possible_rank
    assert one.facts["condition_number"] == np.inf
    assert any(f"{rank} of {possible_rank} combinations" in warning for warning in one.warnings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "links"}, "target is 'links'; it must be 'gravity' or 'load'"),
        ({"count": 1}, "count is 1; it must be at least 2"),
        ({"dwell": 0.0}, "dwell is 0.0; it must be positive"),
        ({"dwell": np.nan}, "dwell is nan; it must be positive"),
        ({"approach": -0.1}, "approach is -0.1; it must be zero or more"),
        ({"approach": [0.1, 0.1]}, "approach: 2 values; give one for all joints"),
        ({"poses": [[0.0, np.nan, 0.0]]}, "a finite position for each of"),
        ({"poses": [[0.0, 0.0]]}, "a finite position for each of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(TrajectoryError, match=message):
        planar(**settings)


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        ([0.0, 2.52, 0.0], "pose 1 of those given is not allowed: joint 'joint_2' would reach position 2.52 rad"),
        ([0.0, 2.48, 0.0], "pose 1 of those given is not allowed, on the approach to it: joint 'joint_2'"),
        ([0.0, -2.48, 0.0], "pose 1 of those given is not allowed, on the approach to it: joint 'joint_2'"),
        ([0.0, 0.9, 0.0], "pose 1 of those given is not allowed.*link_3"),
    ],
)
def test_pose_of_the_caller_that_is_not_allowed_is_named(pose, message):
    with pytest.raises(TrajectoryError, match=message):
        planar(poses=[[0.0, -0.5, 0.0], pose]).plan()


def test_torque_limits_leave_out_poses_that_need_more():
    weak = MotionLimits.of(PLANAR, 4.0, torque_limits=[50.0, 9.0, 50.0])
    plan = PoseSet(PLANAR, weak, count=4, torque_fraction=1.0).plan()
    assert np.abs(PLANAR.gravity_torque(poses_of(plan))[:, 1]).max() <= 9.0 + 1e-4
    free = PoseSet(PLANAR, MotionLimits.of(PLANAR, 4.0), count=4).plan()
    assert np.abs(PLANAR.gravity_torque(poses_of(free))[:, 1]).max() > 9.0
    hopeless = MotionLimits.of(PLANAR, 4.0, torque_limits=[50.0, 1e-9, 50.0])
    with pytest.raises(
        TrajectoryError, match=r"none of 1024 poses keeps to workspace and torque limits: .*'joint_2' would need"
    ):
        PoseSet(PLANAR, hopeless, count=4).plan()


def test_arm_without_masses_is_planned_for_with_a_warning():
    massless = RobotModel(PLANAR.chain, urdf=PLANAR.urdf)
    plan = PoseSet(massless, MotionLimits.of(massless, 4.0), count=6).plan()
    assert any("torques are not checked" in warning and "joint_2" in warning for warning in plan.warnings)


def test_joint_that_gravity_never_loads_is_refused():
    turntable = RobotModel.from_urdf(
        '<robot name="turntable"><link name="base"/><link name="table"/><joint name="turn" type="revolute">'
        '<parent link="base"/><child link="table"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    for offsets in (True, False):
        with pytest.raises(TrajectoryError, match="no pose shows the gravity: gravity acts on no joint's torque"):
            PoseSet(turntable, MotionLimits.of(turntable, 4.0), count=3, offsets=offsets).plan()

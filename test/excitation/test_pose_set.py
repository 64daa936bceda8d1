"""Test sets of poses: choice, order of visits, limits and workspace."""

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


def compute_distances(points):
    return np.linalg.norm(points[:, np.newaxis] - points, axis=2)


@pytest.mark.parametrize("seed", range(10))
def test_visiting_order_is_near_the_shortest(seed):
    times = compute_distances(np.random.default_rng(seed).uniform(size=(7, 2)))
    order = visiting_order(times)
    assert sorted(order) == list(range(7))
    shortest = min(path_duration(times, list(permutation)) for permutation in permutations(range(7)))
    assert path_duration(times, order) <= 1.05 * shortest


def test_visits_points_on_a_line_in_order():
    places = np.random.default_rng(0).permutation(12)
    order = visiting_order(compute_distances(places[:, np.newaxis].astype(float)))
    visited = places[order].tolist()
    assert visited in (sorted(visited), sorted(visited, reverse=True))


DEMO = RobotModel.from_urdf(DEMO_ARM)
PLANAR = RobotModel.from_urdf(planar_arm.urdf())
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])  # `clearance` does not apply to links of a wrist


def create_demo_experiment(**settings):
    guards = {"position_margin": MARGIN, "speed_fraction": 0.8, "travel_speed_fraction": 0.8, "dwell": 0.5}
    return PoseSet(DEMO, MotionLimits.of(DEMO, 6.0), Workspace(DEMO, 0.1, 0.1), **{**guards, **settings})


def create_planar_experiment(**settings):
    return PoseSet(PLANAR, MotionLimits.of(PLANAR, 4.0), Workspace(PLANAR, 0.0), **settings)


def get_poses(plan):
    return np.array([list(pose.values()) for pose in plan.facts["poses"]])


def get_ranks(plan):
    return plan.facts["rank"], plan.facts["possible_rank"]


@pytest.fixture(scope="module")
def plan():
    return create_demo_experiment(count=10).plan()


def compute_rows(poses):
    """Return Pinocchio's rows (P, 6, 66) of all links' parameters and offsets."""
    arm = PinocchioArm(DEMO_ARM.read_text(), DEMO.joint_names, DEMO.gravity)
    rows = np.array([arm.torque_regressor(q, 0 * q, 0 * q) for q in poses])
    return np.concatenate([rows, np.broadcast_to(np.eye(6), (len(poses), 6, 6))], axis=2)


def test_chosen_poses_beat_random_poses(plan):
    """The determinant is computed with Pinocchio, in its parameters."""
    rng = np.random.default_rng(0)
    experiment = create_demo_experiment()
    allowed = experiment.allowed_poses(experiment.approach)
    random = [allowed[rng.choice(len(allowed), 10, replace=False)] for _ in range(60)]
    axes = whitening_axes(compute_rows(allowed[::4]))
    assert axes.shape[1] == 16  # n_x, n_y of joints 2 to 6 and six offsets
    values = [log_determinant(compute_rows(poses) @ axes) for poses in random]
    chosen = log_determinant(compute_rows(get_poses(plan)) @ axes)
    assert chosen > max(values) + 1.0
    assert chosen > np.median(values) + 3.0
    assert get_ranks(plan) == (16, 16)


def test_pose_motion_respects_limits_and_workspace_in_mujoco(plan):
    motion = plan.trajectory
    check_limits(motion, MotionLimits.of(DEMO, 6.0))
    check_start(motion, get_poses(plan)[0] - 0.05)
    position, _, _ = motion.at(np.arange(0.0, motion.duration, 0.02))
    check_demo_arm(position, margin=MARGIN - 1e-9, floor=0.1)


def test_dwells_at_poses_from_both_directions(plan):
    poses = get_poses(plan)
    assert len(plan.dwells) == 2 * len(poses) == 20
    for dwell in plan.dwells:
        position, velocity, _ = plan.trajectory.at(np.linspace(dwell.start, dwell.end, 7))
        np.testing.assert_allclose(position, np.tile(poses[dwell.pose], (7, 1)), atol=1e-6)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        assert dwell.end - dwell.start == pytest.approx(0.5)
        before = plan.trajectory.at(dwell.start - 0.05)[0]
        assert np.all(np.sign(poses[dwell.pose] - before) == dwell.direction)
    assert [d.direction for d in plan.dwells[:4]] == [1, -1, 1, -1]


def test_poses_are_reproducible_and_serializable(plan):
    np.testing.assert_array_equal(get_poses(create_demo_experiment(count=10).plan()), get_poses(plan))
    content = yaml.safe_load(yaml.safe_dump(plan.as_dict()))
    assert content["format"] == "dynid-pose-set/1"
    assert content["rank"] == content["possible_rank"] == 16
    assert len(content["poses"]) == 10
    assert "16 of 16 combinations" in plan.summary()


def test_payload_poses_determine_four_parameters_and_offsets():
    plan = create_demo_experiment(target="load", count=4).plan()
    assert get_ranks(plan) == (10, 10)
    assert plan.facts["condition_number"] < 10
    without_offsets = create_demo_experiment(target="load", count=2, offsets=False).plan()
    assert get_ranks(without_offsets) == (4, 4)  # the count of Atkeson, An and Hollerbach for two poses


def test_visits_configured_poses_and_warns_about_their_rank():
    poses = np.array([[0.0, -0.5, 0.0], [0.5, -1.0, 0.3], [0.2, -0.5, 0.0]])
    plan = create_planar_experiment(poses=poses, approach=0.0).plan()
    assert sorted(get_poses(plan).tolist()) == sorted(poses.tolist())
    assert [dwell.direction for dwell in plan.dwells] == [0, 0, 0]
    assert any("without approach" in warning for warning in plan.warnings)
    single = create_planar_experiment(poses=poses[:1]).plan()
    rank, possible_rank = get_ranks(single)
    assert rank < possible_rank
    assert single.facts["condition_number"] == np.inf
    assert any(f"{rank} of {possible_rank} combinations" in warning for warning in single.warnings)


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
def test_refuses_invalid_pose_settings(settings, message):
    with pytest.raises(TrajectoryError, match=message):
        create_planar_experiment(**settings)


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        ([0.0, 2.52, 0.0], "pose 1 of those given is not allowed: joint 'joint_2' would reach position 2.52 rad"),
        ([0.0, 2.48, 0.0], "pose 1 of those given is not allowed, on the approach to it: joint 'joint_2'"),
        ([0.0, -2.48, 0.0], "pose 1 of those given is not allowed, on the approach to it: joint 'joint_2'"),
        ([0.0, 0.9, 0.0], "pose 1 of those given is not allowed.*link_3"),
    ],
)
def test_refuses_forbidden_poses(pose, message):
    with pytest.raises(TrajectoryError, match=message):
        create_planar_experiment(poses=[[0.0, -0.5, 0.0], pose]).plan()


def test_torque_limits_exclude_poses():
    weak = MotionLimits.of(PLANAR, 4.0, torque_limits=[50.0, 9.0, 50.0])
    plan = PoseSet(PLANAR, weak, count=4, torque_fraction=1.0).plan()
    assert np.abs(PLANAR.gravity_torque(get_poses(plan))[:, 1]).max() <= 9.0 + 1e-4
    free = PoseSet(PLANAR, MotionLimits.of(PLANAR, 4.0), count=4).plan()
    assert np.abs(PLANAR.gravity_torque(get_poses(free))[:, 1]).max() > 9.0
    hopeless = MotionLimits.of(PLANAR, 4.0, torque_limits=[50.0, 1e-9, 50.0])
    with pytest.raises(TrajectoryError, match=r"none of 1024 poses keeps to .*'joint_2' would need"):
        PoseSet(PLANAR, hopeless, count=4).plan()


def test_warns_about_arms_without_masses():
    massless = RobotModel(PLANAR.chain, urdf=PLANAR.urdf)
    plan = PoseSet(massless, MotionLimits.of(massless, 4.0), count=6).plan()
    assert any("torques are not checked" in warning and "joint_2" in warning for warning in plan.warnings)


def test_refuses_arms_without_gravity_torque():
    turntable = RobotModel.from_urdf(
        '<robot name="turntable"><link name="base"/><link name="table"/><joint name="turn" type="revolute">'
        '<parent link="base"/><child link="table"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    for offsets in (True, False):
        with pytest.raises(TrajectoryError, match="no pose shows the gravity: gravity acts on no joint's torque"):
            PoseSet(turntable, MotionLimits.of(turntable, 4.0), count=3, offsets=offsets).plan()

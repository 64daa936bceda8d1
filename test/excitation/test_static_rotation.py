"""Test rotations of single joints in steps: dwells, directions of approach, and choice of the poses."""

import time
from dataclasses import replace

import numpy as np
import planar_arm
import pytest
import yaml
from helpers.mujoco_room import DEMO_ARM, DEMO_SPEEDS, check_demo_arm
from helpers.plan_facts import entries

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import StaticRotation
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.excitation.static_rotation import Rotation, RotationSearch, stepped_rotation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace, check_limits, check_start
from dynid_ros.trajectories.trajectory import move

JOINTS = ("a", "b", "c")
LIMITS = MotionLimits(
    JOINTS, ("rad", "rad", "m"), np.full(3, -3.0), np.full(3, 3.0), np.array([1.0, 2.0, 0.5]), np.array([4.0, 8.0, 2.0])
)
APPROACH = np.array([0.05, 0.08, 0.01])
STEPS = 5
DWELL_S = 0.3


@pytest.fixture(scope="module")
def planned():
    rotation = Rotation(1, np.array([0.4, 0.2, -0.3]), -0.8, 1.2, np.pi / 2, 1.0)
    return stepped_rotation(rotation, LIMITS, APPROACH, STEPS, DWELL_S)


def test_dwells_at_equal_steps_in_both_directions(planned):
    motion, dwells = planned
    angles = [-0.8, -0.3, 0.2, 0.7, 1.2]
    expected = [[0.4, angle, -0.3] for angle in angles + angles[::-1]]
    assert [dwell.direction for dwell in dwells] == [1] * STEPS + [-1] * STEPS
    assert {dwell.joint for dwell in dwells} == {"b"}
    for dwell, pose in zip(dwells, expected, strict=True):
        assert dwell.end - dwell.start == pytest.approx(DWELL_S)
        position, velocity, acceleration = motion.at(np.linspace(dwell.start, dwell.end, 20))
        np.testing.assert_allclose(position, np.tile(pose, (20, 1)), atol=1e-12)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(acceleration, 0.0, atol=1e-7)


def test_all_joints_arrive_in_the_direction_of_the_dwell(planned):
    """The last move of each joint, by at least its approach, determines the sign of Coulomb friction."""
    motion, dwells = planned
    for dwell, before in zip(dwells, [0.0, *(dwell.end for dwell in dwells)], strict=False):
        position = motion.at(np.linspace(before, dwell.start, 2000))[0]
        travel = dwell.direction * (position[-1] - position)
        assert np.all(travel.max(axis=0) >= APPROACH - 1e-9)
        last = np.argmax(travel, axis=0)
        for joint, start in enumerate(last):
            assert np.all(np.diff(dwell.direction * position[start:, joint]) >= -1e-12)


def test_rotation_is_smooth_and_within_limits(planned):
    motion, _ = planned
    check_limits(motion, LIMITS)
    time = np.arange(0.0, motion.duration, 1e-4)
    _, velocity, acceleration = motion.at(time)
    assert np.abs(np.diff(acceleration, axis=0)).max() < 0.05
    np.testing.assert_allclose(np.gradient(velocity, time, axis=0), acceleration, atol=0.02)


def test_turns_back_beyond_the_last_step(planned):
    """The joint reaches the last step downwards as well; the motion ends at the first step."""
    motion, dwells = planned
    last, first_down = dwells[len(dwells) // 2 - 1], dwells[len(dwells) // 2]
    between = motion.at(np.linspace(last.end, first_down.start, 501))[0]
    assert np.ptp(between[:, 1]) == pytest.approx(APPROACH[1], abs=1e-6)
    np.testing.assert_allclose(between[0], between[-1], atol=1e-9)
    assert motion.duration == pytest.approx(dwells[-1].end)


SETTINGS = {"dwell": 0.35, "sweep": 4.5, "speed_fraction": 0.8, "travel_speed_fraction": 0.6}
ACCELERATION_LIMITS = [5.0, 5.0, 8.0, 12.0, 12.0, 15.0]


def create_demo_experiment(**settings):
    robot = RobotModel.from_urdf(DEMO_ARM)
    limits = MotionLimits.of(robot, ACCELERATION_LIMITS)
    return StaticRotation(robot, limits, Workspace(robot, 0.1, 0.1), **{**SETTINGS, **settings})


def create_planar_experiment(acceleration=10.0, workspace=None, gravity=(0, 0, -9.80665), limits=None, **settings):
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=gravity)
    return StaticRotation(robot, MotionLimits.of(robot, acceleration, **(limits or {})), workspace, **settings)


@pytest.fixture(scope="module")
def demo():
    experiment = create_demo_experiment()
    start = time.process_time()
    plan = experiment.plan()
    return experiment, plan, time.process_time() - start


def test_plans_ninety_seconds_of_motion_in_seconds(demo):
    _, plan, planning_time = demo
    assert plan.duration < 95
    assert planning_time < 10  # processor time; 0.6 s on an idle machine


def test_rotates_joints_from_tip_to_base_except_vertical_ones(demo):
    _, plan, _ = demo
    assert [rotation.joint for rotation in entries(plan, "rotations")] == [f"joint_{i}" for i in (6, 5, 4, 3, 2)]
    assert plan.skipped == {"joint_1": "axis parallel to gravity: its gravity torque is zero in every pose"}
    assert plan.warnings == ()
    assert len(plan.dwells) == 5 * 2 * 7
    assert sum(dwell.direction for dwell in plan.dwells) == 0


def test_rotation_respects_limits_and_workspace_in_mujoco(demo):
    _, plan, _ = demo
    position, velocity, _ = plan.trajectory.at(np.arange(0.0, plan.duration, 0.02))
    assert np.all(np.abs(velocity) <= 0.8 * DEMO_SPEEDS + 1e-9)
    check_demo_arm(position, margin=0.05, floor=0.1)


def test_tilt_matches_pinocchio(demo):
    pinocchio = pytest.importorskip("pinocchio")
    _, plan, _ = demo
    model = pinocchio.buildModelFromUrdf(str(DEMO_ARM))
    data = model.createData()
    for rotation in entries(plan, "rotations"):
        pose = {rotation.joint: 0.0, **rotation.hold}
        pinocchio.forwardKinematics(model, data, np.array([pose[name] for name in plan.trajectory.joint_names]))
        joint = plan.trajectory.joint_names.index(rotation.joint)
        axis = data.oMi[joint + 1].rotation[:, 2]  # each joint turns about z
        assert rotation.tilt_degrees == pytest.approx(np.rad2deg(np.arccos(abs(axis[2]))), abs=0.01)
        assert np.sin(np.deg2rad(rotation.tilt_degrees)) > 1 / 1.1


def compute_moment_std(robot, plan):
    """Return the standard deviations of the base moments from torques in all dwells, with unknown offsets."""
    poses = plan.trajectory.at([dwell.start for dwell in plan.dwells])[0]
    n = robot.n_joints
    rows = robot.gravity_regressor(poses)
    offsets = np.broadcast_to(np.eye(n), (len(poses), n, n))
    _, values, directions = np.linalg.svd(rows.reshape(len(poses) * n, -1), full_matrices=False)
    base = directions[values > 1e-9 * values[0]]
    reduced = np.concatenate([rows @ base.T, offsets], axis=2).reshape(len(poses) * n, -1)
    singular = np.linalg.svd(reduced, compute_uv=False)
    assert singular[-1] > 1e-6 * singular[0]
    return np.sqrt(np.diag(np.linalg.inv(reduced.T @ reduced)))[: len(base)]


def test_more_poses_per_joint_reduce_standard_deviations(demo):
    experiment, plan, _ = demo
    twice = create_demo_experiment(poses_per_joint=2).plan()
    rotations = entries(twice, "rotations")
    assert len(rotations) == 10
    for first, second in zip(rotations[:5], rotations[5:], strict=True):
        assert first.joint == second.joint
        assert max(abs(first.hold[name] - second.hold[name]) for name in first.hold) > 0.5
    ratio = compute_moment_std(experiment.robot, twice) / compute_moment_std(experiment.robot, plan)
    assert np.sqrt(np.mean(ratio**2)) < 0.75  # repetition of the same poses would give √½ = 0.71


def test_approach_is_slow_and_checked(demo):
    experiment, plan, _ = demo
    measured = [0.0, 0.5, 1.0, 0.0, 0.8, 0.0]
    motion = experiment.approach_motion(measured, plan)
    check_start(motion, measured)
    check_limits(motion, experiment.limits.scaled(0.6))
    np.testing.assert_allclose(motion.position[-1], plan.trajectory.position[0])
    with pytest.raises(TrajectoryError, match=r"'(link_5|tool)' would be at height"):
        experiment.approach_motion([0.0, 1.6, 0.5, 0.0, 0.8, 0.0], plan)


def test_plan_is_serializable(demo):
    _, plan, _ = demo
    content = yaml.safe_load(yaml.safe_dump(plan.as_dict()))
    assert content["duration"] == pytest.approx(plan.trajectory.duration, abs=5e-5)
    end = plan.trajectory.position[-1]
    rest = move(plan.trajectory.joint_names, end, end, round(plan.duration) + 1.23456789 - plan.duration)
    longer = replace(plan, trajectory=Trajectory.join([plan.trajectory, rest])).as_dict()["duration"]
    assert str(longer).endswith(".2346")  # rounded to 0.1 ms
    assert [dwell["joint"] for dwell in content["dwells"]] == [dwell.joint for dwell in plan.dwells]
    assert content["dwells"][8]["start"] == pytest.approx(plan.dwells[8].start, abs=1e-3)
    assert set(content["rotations"][0]["hold"]) == {f"joint_{i}" for i in range(1, 6)}
    assert "joint_1: not rotated, axis parallel to gravity" in plan.summary()


def test_warns_about_narrow_ranges():
    plan = create_planar_experiment(
        limits={"position_lower": [-2.5, -2.5, -0.3], "position_upper": [2.5, 2.5, 0.3]}
    ).plan()
    assert plan.warnings == ("'joint_3' turns through 23° only: its fit will be ill conditioned",)
    assert "warning: 'joint_3' turns" in plan.summary()


def test_warns_about_almost_vertical_axes():
    """The base leans by 10°, so the first joint's gravity torque is small but not zero."""
    lean = np.deg2rad(10)
    plan = create_planar_experiment(gravity=(-9.8 * np.sin(lean), 0, -9.8 * np.cos(lean))).plan()
    assert plan.warnings == ("the axis of 'joint_1' comes within 10° of the vertical: its gravity torque is small",)


def test_reports_why_no_joint_can_be_rotated():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    with pytest.raises(TrajectoryError, match=r"no joint can be rotated: joint_3: it cannot .* joint_1: axis parallel"):
        create_planar_experiment(workspace=Workspace(robot, 0.75)).plan()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 2}, "steps is 2; it must be at least 3"),
        ({"dwell": 0.0}, "dwell is 0.0; it must be positive"),
        ({"approach": [0.05, 0.0, 0.05]}, r"approach is \[0.05, 0.0, 0.05\]; it must be positive"),
        ({"approach": [0.05, 0.05]}, "approach: 2 values; give one for all joints or one for each of joint_1"),
        ({"sweep": np.nan}, "sweep is nan"),
        ({"poses_per_joint": 0}, "poses_per_joint is 0"),
    ],
)
def test_refuses_invalid_rotation_settings(settings, message):
    with pytest.raises(TrajectoryError, match=message):
        create_planar_experiment(**settings)


def create_search(robot, limits, workspace=None, steps=7, approach=0.05, sweep=2 * np.pi):
    experiment = Experiment(robot, limits, workspace, position_margin=0.05)
    return RotationSearch(experiment, steps, np.full(robot.n_joints, approach), sweep)


@pytest.fixture(scope="module")
def arm():
    robot = RobotModel.from_urdf(DEMO_ARM)
    return robot, MotionLimits.of(robot, 4.0)


@pytest.mark.parametrize(("span", "std"), [(360, 0.23), (180, 0.51), (90, 1.78), (60, 3.9), (30, 15)])
def test_standard_deviation_matches_ma_and_hollerbach(span, std):
    """The paper states the cosine term for a range of 37 points with unknown offset; the sine term is known."""
    pendulum = RobotModel.from_dh(
        [{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}], gravity=(0, -9.8, 0)
    )
    limits = MotionLimits.of(pendulum, 1.0, position_lower=-4.0, position_upper=4.0, velocity_limits=1.0)
    # The search omits the last of 37 steps of a full revolution, which would repeat the first.
    rotation = create_search(pendulum, limits, steps=37, sweep=np.deg2rad(span)).rotations(0)[0]
    angles = np.linspace(-0.5, 0.5, 37) * (rotation.upper - rotation.lower)
    sine = 1 / np.sum(np.sin(angles) ** 2)
    assert np.sqrt(rotation.std**2 - sine) == pytest.approx(std, rel=0.03)
    assert rotation.tilt == pytest.approx(np.pi / 2)


def test_chosen_axes_are_nearly_horizontal(arm):
    robot, limits = arm
    for joint in range(1, 6):
        rotations = create_search(robot, limits).rotations(joint)
        best = min(rotation.std for rotation in rotations)
        for rotation in rotations:
            axis = robot.joint_axes([rotation.hold])[0, joint]
            assert np.arccos(abs(axis[2])) == pytest.approx(rotation.tilt, abs=1e-6)
            assert rotation.std <= 1.1 * best
        assert max(rotation.tilt for rotation in rotations) > np.deg2rad(85)


def test_sweep_limits_the_range_without_repeated_poses(arm):
    robot, limits = arm
    rotation = create_search(robot, limits, sweep=1.5).rotations(5)[0]
    assert rotation.upper - rotation.lower == pytest.approx(1.5)
    wide = replace(limits, lower=3 * limits.lower, upper=3 * limits.upper)
    rotation = create_search(robot, wide, steps=8).rotations(5)[0]
    np.testing.assert_allclose(np.diff(rotation.poses(8)[:, 5]), np.pi / 4)


def test_floor_narrows_the_range_of_rotation(arm):
    robot, limits = arm
    workspace = Workspace(robot, 0.3)
    free, low = (create_search(robot, limits, room).rotations(2)[0] for room in (None, workspace))
    assert low.std >= free.std
    for rotation in create_search(robot, limits, workspace).rotations(2):
        for side in (-0.05, 0.0, 0.05):
            assert np.all(workspace.allowed(rotation.poses(7) + side))


def test_first_choice_adds_most_information(arm):
    """The reference is the volume of the confidence ellipsoid from the gravity regressor."""
    robot, limits = arm
    search = create_search(robot, limits)
    first = search.rotations(5)[0]
    search.add(first)
    candidates = search.rotations(5)

    def volume(rotation):
        poses = np.concatenate([first.poses(7), rotation.poses(7)])
        rows = np.concatenate([robot.gravity_regressor(poses), np.broadcast_to(np.eye(6), (14, 6, 6))], axis=2)
        values = np.linalg.svd(rows.reshape(14 * 6, -1), compute_uv=False)
        return np.sum(np.log(values[values > 1e-9 * values[0]]))

    volumes = [volume(rotation) for rotation in candidates]
    assert len(candidates) > 10
    assert np.argmax(volumes) < 5
    assert volumes[0] > volume(first) + 1.0


def test_refuses_prismatic_joints():
    rows = [
        {"a": 0.0, "alpha": -np.pi / 2, "d": 0.0, "theta": 0.0, "type": "revolute"},
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "prismatic"},
    ]
    robot = RobotModel.from_dh(rows, gravity=(0, -9.8, 0))
    limits = MotionLimits.of(robot, 1.0, position_lower=-1, position_upper=1, velocity_limits=1.0)
    with pytest.raises(TrajectoryError, match="it slides"):
        create_search(robot, limits).rotations(1)
    assert create_search(robot, limits).rotations(0)

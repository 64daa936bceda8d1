from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from known_problems import sarcos_dh

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.excitation.static_rotation import RotationSearch
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"


def search(robot, limits, workspace=None, **changes):
    values = {"steps": 7, "approach": 0.05, "sweep": 2 * np.pi} | changes
    experiment = Experiment(robot, limits, workspace, position_margin=values.pop("margin", 0.05))
    return RotationSearch(experiment, values["steps"], np.full(robot.n_joints, values["approach"]), values["sweep"])


@pytest.fixture(scope="module")
def demo():
    robot = RobotModel.from_urdf(DEMO_ARM)
    return robot, MotionLimits.of(robot, 4.0)


@pytest.mark.parametrize(("span", "std"), [(360, 0.23), (180, 0.51), (90, 1.78), (60, 3.9), (30, 15)])
def test_standard_deviation_is_that_of_ma_and_hollerbach(span, std):
    """Range with an unknown offset, 37 points: of the cosine term. The sine term is what the sine alone gives."""
    pendulum = RobotModel.from_dh(
        [{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}], gravity=(0, -9.8, 0)
    )
    limits = MotionLimits.of(pendulum, 1.0, position_lower=-4.0, position_upper=4.0, velocity_limits=1.0)
    # A full turn in 37 steps has its last step at the first: the search keeps a step less.
    rotation = search(pendulum, limits, steps=37, sweep=np.deg2rad(span)).rotations(0)[0]
    angles = np.linspace(-0.5, 0.5, 37) * (rotation.upper - rotation.lower)
    sine = 1 / np.sum(np.sin(angles) ** 2)
    assert np.sqrt(rotation.std**2 - sine) == pytest.approx(std, rel=0.03)
    assert rotation.tilt == pytest.approx(np.pi / 2)


def test_axis_is_horizontal_to_within_a_tenth_of_the_standard_deviation(demo):
    robot, limits = demo
    for joint in range(1, 6):
        found = search(robot, limits).rotations(joint)
        best = min(rotation.std for rotation in found)
        for rotation in found:
            axis = robot.joint_axes([rotation.hold])[0, joint]
            assert np.arccos(abs(axis[2])) == pytest.approx(rotation.tilt, abs=1e-6)
            assert rotation.std <= 1.1 * best
        assert max(rotation.tilt for rotation in found) > np.deg2rad(85)


def test_rotation_keeps_room_for_approach_and_margin(demo):
    robot, limits = demo
    for joint in range(1, 6):
        for rotation in search(robot, limits, approach=0.1, margin=0.2).rotations(joint):
            for pose in rotation.poses(7):
                assert np.all(pose >= limits.lower + 0.3 - 1e-9)
                assert np.all(pose <= limits.upper - 0.3 + 1e-9)


def test_sweep_bounds_the_range_and_a_full_turn_has_no_pose_twice(demo):
    robot, limits = demo
    rotation = search(robot, limits, sweep=1.5).rotations(5)[0]
    assert rotation.upper - rotation.lower == pytest.approx(1.5)
    wide = replace(limits, lower=3 * limits.lower, upper=3 * limits.upper)
    rotation = search(robot, wide, steps=8).rotations(5)[0]
    np.testing.assert_allclose(np.diff(rotation.poses(8)[:, 5]), np.pi / 4)


def test_floor_narrows_the_range(demo):
    robot, limits = demo
    workspace = Workspace(robot, 0.3)
    free, low = (search(robot, limits, space).rotations(2)[0] for space in (None, workspace))
    assert low.std >= free.std
    for rotation in search(robot, limits, workspace).rotations(2):
        for side in (-0.05, 0.0, 0.05):
            assert np.all(workspace.allowed(rotation.poses(7) + side))


def test_first_choice_adds_most_to_what_is_known(demo):
    """Against the volume of the confidence ellipsoid, computed here from torques of random arms."""
    robot, limits = demo
    finder = search(robot, limits)
    first = finder.rotations(5)[0]
    finder.add(first)
    candidates = finder.rotations(5)

    def volume(rotation):
        poses = np.concatenate([first.poses(7), rotation.poses(7)])
        rows = np.concatenate([robot.gravity_regressor(poses), np.broadcast_to(np.eye(6), (14, 6, 6))], axis=2)
        values = np.linalg.svd(rows.reshape(14 * 6, -1), compute_uv=False)
        return np.sum(np.log(values[values > 1e-9 * values[0]]))

    volumes = [volume(rotation) for rotation in candidates]
    assert len(candidates) > 10
    assert np.argmax(volumes) < 5
    assert volumes[0] > volume(first) + 1.0


def test_joint_about_the_vertical_is_refused_with_the_reason(demo):
    with pytest.raises(TrajectoryError, match="axis parallel to gravity: its gravity torque is zero in every pose"):
        search(*demo).rotations(0)


def test_same_joint_of_an_arm_on_a_wall_turns():
    robot = RobotModel.from_urdf(DEMO_ARM, gravity=(9.80665, 0, 0))
    assert search(robot, MotionLimits.of(robot, 4.0)).rotations(0)[0].tilt == pytest.approx(np.pi / 2)


def test_sliding_joint_is_refused_with_the_reason():
    rows = [
        {"a": 0.0, "alpha": -np.pi / 2, "d": 0.0, "theta": 0.0, "type": "revolute"},
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "prismatic"},
    ]
    robot = RobotModel.from_dh(rows, gravity=(0, -9.8, 0))
    limits = MotionLimits.of(robot, 1.0, position_lower=-1, position_upper=1, velocity_limits=1.0)
    with pytest.raises(TrajectoryError, match="it slides"):
        search(robot, limits).rotations(1)
    assert search(robot, limits).rotations(0)


def test_no_room_above_the_floor_is_refused_with_the_reason(demo):
    robot, limits = demo
    with pytest.raises(TrajectoryError, match=r"without leaving the workspace \(floor_height, clearance\)"):
        search(robot, limits, Workspace(robot, 3.0)).rotations(3)


def test_all_joints_of_the_sarcos_arm_but_the_first_can_be_horizontal():
    robot = RobotModel.from_dh(sarcos_dh())
    limits = MotionLimits.of(robot, 1.0, position_lower=-1.5, position_upper=1.5, velocity_limits=1.0)
    for joint in range(1, 7):
        assert np.rad2deg(max(rotation.tilt for rotation in search(robot, limits).rotations(joint))) > 80

"""Test motions of one joint at a time, sinusoidal or in steps, as far as limits and workspace allow."""

import numpy as np
import planar_arm
import pytest
from helpers.mujoco_room import DEMO_ARM, check_demo_arm
from helpers.plan_facts import entries

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.joint_by_joint import JointByJoint
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits

DEMO = RobotModel.from_urdf(DEMO_ARM)
PLANAR = RobotModel.from_urdf(planar_arm.urdf())
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])


def create_planar_experiment(floor=-np.inf, torque=np.nan, **settings):
    limits = MotionLimits.of(PLANAR, 6.0, torque_limits=torque)
    return JointByJoint(PLANAR, limits, Workspace(PLANAR, floor), **settings)


@pytest.fixture(scope="module", params=["sinusoid", "steps"])
def demo_plan(request):
    experiment = JointByJoint(
        DEMO,
        MotionLimits.of(DEMO, 6.0),
        Workspace(DEMO, 0.1, 0.1),
        motion=request.param,
        frequencies=[0.25],
        cycles=1,
        steps=4,
        dwell=0.3,
        position_margin=MARGIN,
        speed_fraction=0.8,
    )
    return experiment.plan()


def test_moves_each_joint_in_turn(demo_plan):
    names = list(DEMO.joint_names)
    assert [move.joint for move in entries(demo_plan, "moves")] == names[::-1]
    assert not demo_plan.skipped
    for move in entries(demo_plan, "moves"):
        i = names.index(move.joint)
        position, velocity, _ = demo_plan.trajectory.at(np.linspace(move.start, move.end, 2001))
        assert np.abs(np.delete(velocity, i, axis=1)).max() < 1e-4
        assert np.ptp(position[:, i]) == pytest.approx(2 * move.amplitude, rel=0.05)
        assert position[:, i].max() <= move.centre + move.amplitude + 1e-5
        np.testing.assert_allclose(velocity[[0, -1]], 0.0, atol=1e-4)


def test_joint_motion_respects_limits_and_workspace_in_mujoco(demo_plan):
    check_limits(demo_plan.trajectory, MotionLimits.of(DEMO, 6.0).scaled(0.8, 0.8))
    position, _, _ = demo_plan.trajectory.at(np.arange(0.0, demo_plan.duration, 0.03))
    check_demo_arm(position, margin=MARGIN - 1e-9, floor=0.1)


def test_motion_has_the_configured_frequencies():
    plan = create_planar_experiment(frequencies=(0.2, 0.5), cycles=6, joints=("joint_2",)).plan()
    assert [move.frequency for move in entries(plan, "moves")] == [0.2, 0.5]
    for move in entries(plan, "moves"):
        time = np.linspace(move.start, move.end, 4096, endpoint=False)
        spectrum = np.abs(np.fft.rfft(plan.trajectory.at(time)[0][:, 1] - move.centre))
        assert np.argmax(spectrum) / (move.end - move.start) == pytest.approx(move.frequency, abs=0.01)
    wide, narrow = entries(plan, "moves")
    assert wide.amplitude > narrow.amplitude


def test_dwells_state_the_direction_of_approach():
    plan = create_planar_experiment(motion="steps", steps=5, dwell=0.4).plan()
    assert len(plan.dwells) == 3 * 2 * 5
    assert entries(plan, "moves")[0].frequency is None
    for dwell in plan.dwells:
        i = PLANAR.joint_names.index(dwell.joint)
        before, rest, end = plan.trajectory.at([dwell.start - 0.05, dwell.start, dwell.end])[0][:, i]
        assert np.sign(rest - before) == dwell.direction
        assert rest == pytest.approx(end)
        assert dwell.end - dwell.start == pytest.approx(0.4)
    directions = [dwell.direction for dwell in plan.dwells if dwell.joint == "joint_2"]
    assert directions == [1] * 5 + [-1] * 5


def test_other_joints_hold_the_configured_pose():
    pose = [0.4, -0.7, 0.2]
    plan = create_planar_experiment(pose=pose, frequencies=[0.3], cycles=1).plan()
    for move in entries(plan, "moves"):
        i = PLANAR.joint_names.index(move.joint)
        position = plan.trajectory.at(move.start)[0]
        np.testing.assert_allclose(np.delete(position, i), np.delete(pose, i), atol=1e-4)


def test_omits_joints_that_cannot_move():
    """Joint 2 can move by a hundredth of a degree."""
    narrow = MotionLimits.of(PLANAR, 8.0, position_lower=[-2.5, -1e-4, -2.5], position_upper=[2.5, 1e-4, 2.5])
    settings = {"pose": [0.0, 0.0, 0.0], "frequencies": [0.3], "cycles": 1, "position_margin": [0.05, 0.0, 0.05]}
    plan = JointByJoint(PLANAR, narrow, **settings).plan()
    assert [move.joint for move in entries(plan, "moves")] == ["joint_3", "joint_1"]
    assert set(plan.skipped) == {"joint_2"}
    assert f"joint_2: left out, {plan.skipped['joint_2']}" in plan.summary()


def test_floor_shortens_moves():
    """Joint 2 moves downwards only as far as the floor allows."""
    free = create_planar_experiment(joints=("joint_2",), pose=[0.0, -0.5, 0.0], frequencies=[0.05], cycles=1).plan()
    floor = create_planar_experiment(
        0.2, joints=("joint_2",), pose=[0.0, -0.5, 0.0], frequencies=[0.05], cycles=1
    ).plan()
    assert entries(floor, "moves")[0].amplitude < entries(free, "moves")[0].amplitude
    position, _, _ = floor.trajectory.at(np.linspace(0.0, floor.duration, 999))
    assert PLANAR.forward_kinematics(position)[:, 2, 2, 3].min() >= 0.2 - 1e-6


def test_torque_limits_shorten_moves():
    settings = {"joints": ("joint_1",), "pose": [0.0, 0.0, 0.0], "frequencies": [0.5]}
    plan = create_planar_experiment(torque=[2.5, 50, 50], torque_fraction=1.0, **settings).plan()
    free = create_planar_experiment(**settings).plan()
    assert entries(plan, "moves")[0].amplitude < entries(free, "moves")[0].amplitude
    torque = PLANAR.inverse_dynamics(*plan.trajectory.at(np.linspace(0.0, plan.duration, 5000)))
    assert 1.0 < np.abs(torque[:, 0]).max() <= 2.5


def test_refuses_forbidden_hold_poses():
    with pytest.raises(TrajectoryError, match=r"may not hold at the pose given: .*link_3.* at 0\.\d+ s"):
        create_planar_experiment(0.2, pose=[0.0, 0.8, 0.0]).plan()
    with pytest.raises(TrajectoryError, match=r"may not hold .* 'joint_3' would reach position 2\.6"):
        create_planar_experiment(pose=[0.0, 0.0, 2.6]).plan()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"motion": "jumps"}, "motion is 'jumps'; it must be one of sinusoid, steps, reversals"),
        ({"joints": ("joint_2", "elbow")}, "joints is .*; it must be among joint_1, joint_2, joint_3"),
        ({"joints": ()}, "joints is .*; it must be among"),
        ({"frequencies": [0.1, 0.0]}, "frequencies is .*; it must be positive"),
        ({"frequencies": np.nan}, "frequencies is nan; it must be positive"),
        ({"cycles": 0}, "cycles is 0; it must be at least 1"),
        ({"steps": 1}, "steps is 1; it must be at least 2"),
        ({"dwell": 0.0}, "dwell is 0.0; it must be positive"),
        ({"amplitude": 1.5}, "amplitude is 1.5; it must be above 0 and at most 1"),
        ({"pose": [0.0, np.nan, 0.0]}, "a finite position for each of joint_1"),
    ],
)
def test_refuses_invalid_joint_motion_settings(settings, message):
    with pytest.raises(TrajectoryError, match=message):
        create_planar_experiment(**settings)


def test_reports_why_no_pose_is_allowed():
    with pytest.raises(TrajectoryError, match=r"there is no pose to hold at|none of 1024 poses keeps to workspace"):
        create_planar_experiment(0.31 + 2.0).plan()

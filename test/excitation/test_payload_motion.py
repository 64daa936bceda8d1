"""Test motions for payload identification: turns about single tool axes, and a payload recovered from torques."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest
from helpers.mujoco_room import DEMO_ARM, check_demo_arm
from helpers.plan_facts import entries
from pinocchio_arm import PinocchioArm
from scipy.spatial.transform import Rotation

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.payload_motion import PayloadMotion, ToolRotation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits, check_start

DEMO = RobotModel.from_urdf(DEMO_ARM)
PLANAR = RobotModel.from_urdf(planar_arm.urdf())
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])
LIMITS = MotionLimits.of(DEMO, 8.0)
POSE = np.array([0.3, -0.4, 0.9, 0.5, 0.9, -0.7])


def create_demo_experiment(**settings):
    values = {"position_margin": MARGIN, "dwell": 0.5, **settings}
    return PayloadMotion(DEMO, LIMITS, Workspace(DEMO, 0.1, 0.1), **values)


@pytest.fixture(scope="module")
def plan():
    return create_demo_experiment().plan()


def compute_angular_velocity(motion, time):
    """Return the angular velocity (M, 3) of the tool in the base frame."""
    position, velocity, _ = motion.at(time)
    return np.einsum("mji,mj->mi", DEMO.joint_axes(position), velocity)


def test_turns_the_tool_about_one_axis_at_a_time(plan):
    turns = entries(plan, "turns")
    assert [turn.axis for turn in turns] == ["x", "y", "z"]
    tool = DEMO.forward_kinematics(plan.trajectory.position[:1])[0, -1, :3, :3] @ DEMO.tip_offset[:3, :3]
    for axis, turn in enumerate(turns):
        time = np.linspace(turn.start, turn.end, 3001)
        angular_velocity = compute_angular_velocity(plan.trajectory, time) @ tool
        others = np.delete(angular_velocity, axis, axis=1)
        assert np.abs(others).max() < 1e-4 * np.abs(angular_velocity).max()
        angle = np.concatenate(
            [[0.0], np.cumsum(np.diff(time) * (angular_velocity[1:, axis] + angular_velocity[:-1, axis]) / 2)]
        )
        assert angle.min() == pytest.approx(turn.lowest, abs=1e-3)
        assert angle.max() == pytest.approx(turn.highest, abs=1e-3)
        acceleration = np.abs(np.gradient(angular_velocity[:, axis], time)).max()
        assert acceleration == pytest.approx(turn.acceleration, rel=0.05)
        assert turn.highest - turn.lowest > np.deg2rad(60)


def test_payload_motion_respects_limits_and_workspace_in_mujoco(plan):
    check_limits(plan.trajectory, LIMITS.scaled(0.5, 0.8))
    check_start(plan.trajectory, list(plan.facts["pose"].values()))
    position, _, _ = plan.trajectory.at(np.arange(0.0, plan.duration, 0.02))
    check_demo_arm(position, margin=MARGIN - 1e-6, floor=0.1)


def test_arm_is_at_rest_during_dwells(plan):
    for dwell in plan.dwells:
        _, velocity, acceleration = plan.trajectory.at(np.linspace(dwell.start + 1e-6, dwell.end - 1e-6, 7))
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(acceleration, 0.0, atol=1e-6)
    assert len(plan.dwells) == 10


def test_payload_is_recovered_from_pinocchios_torques(plan):
    """The torque is the difference of Pinocchio's torques with and without a box at the tool."""
    assert (plan.facts["rank"], plan.facts["static_rank"]) == (10, 4)
    unloaded = PinocchioArm(DEMO_ARM.read_text(), DEMO.joint_names, DEMO.gravity)
    loaded = PinocchioArm(DEMO_ARM.read_text(), DEMO.joint_names, DEMO.gravity)
    box = unloaded.pinocchio.Inertia(1.7, np.array([0.03, -0.05, 0.11]), np.diag([0.011, 0.007, 0.009]))
    loaded.model.inertias[6] = loaded.model.inertias[6] + box
    time = np.linspace(0.0, plan.duration, 600)
    motion = plan.trajectory.at(time)
    torque = np.array([loaded.inverse_dynamics(*s) - unloaded.inverse_dynamics(*s) for s in zip(*motion, strict=True)])
    rng = np.random.default_rng(0)
    rows = DEMO.torque_regressor(*motion)[..., -10:].reshape(-1, 10)
    noisy, *_ = np.linalg.lstsq(rows, (torque + 0.05 * rng.standard_normal(torque.shape)).ravel(), rcond=None)
    x = 0.03
    y = -0.05
    z = 0.11
    expected = [1.7, 1.7 * x, 1.7 * y, 1.7 * z]
    expected += [0.011 + 1.7 * (y**2 + z**2), -1.7 * x * y, -1.7 * x * z]
    expected += [0.007 + 1.7 * (x**2 + z**2), -1.7 * y * z, 0.009 + 1.7 * (x**2 + y**2)]
    errors = 0.05 * np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    assert np.all(np.abs(noisy - expected) < 4 * errors)
    assert errors.max() < 0.01
    exact, *_ = np.linalg.lstsq(rows, torque.ravel(), rcond=None)
    np.testing.assert_allclose(exact, expected, atol=1e-9)


def compute_tool_angles(position, axis):
    """Return the rotation angles (M,) of the tool about one of its axes, relative to POSE."""
    rotation = DEMO.forward_kinematics(POSE[None])[0, -1, :3, :3].T @ DEMO.forward_kinematics(position)[:, -1, :3, :3]
    tip = DEMO.tip_offset[:3, :3]
    return Rotation.from_matrix(tip.T @ rotation @ tip).as_rotvec()[:, "xyz".index(axis)]


@pytest.mark.parametrize("highest", [1.0, 0.1])
def test_quick_turns_stay_in_asymmetric_ranges(monkeypatch, highest):
    """Turns stay in a range from -0.1 rad, also where it ends before the limits are reached."""
    find_range = ToolRotation.within

    def find_shifted_range(*arguments, **settings):
        rotation = find_range(*arguments, **settings)
        return replace(rotation, lowest=max(rotation.lowest, -0.1), highest=min(rotation.highest, highest))

    monkeypatch.setattr(ToolRotation, "within", find_shifted_range)
    plan = create_demo_experiment(pose=POSE).plan()
    for turn in entries(plan, "turns"):
        position = plan.trajectory.at(np.linspace(turn.start, turn.end, 4001))[0]
        angles = compute_tool_angles(position, turn.axis)
        assert turn.lowest - 2e-3 <= angles.min()
        assert angles.max() <= turn.highest + 2e-3


def test_warns_about_arms_that_turn_about_fewer_axes():
    plan = PayloadMotion(PLANAR, MotionLimits.of(PLANAR, 8.0), dwell=0.3, pose=[0.0, -0.4, 0.6]).plan()
    assert [turn.axis for turn in entries(plan, "turns")] == ["z"]
    assert set(plan.skipped) == {"x", "y"}
    assert plan.facts["rank"] < 10
    assert plan.facts["condition_number"] == np.inf
    assert any(f"excites {plan.facts['rank']} of 10 parameters" in warning for warning in plan.warnings)


def test_torque_limits_slow_down_turns():
    slow = MotionLimits.of(DEMO, 8.0, torque_limits=[230, 230, 115, 25.0, 25.0, 10.0])
    motion = create_demo_experiment(pose=POSE).plan().trajectory.at(np.linspace(0, 20, 4000))
    needed = np.abs(DEMO.inverse_dynamics(*motion)).max(axis=0)
    rest = np.abs(DEMO.gravity_torque(POSE[np.newaxis]))[0]
    torque = np.maximum(0.9 * needed, 1.3 * rest)
    tight = MotionLimits.of(DEMO, 8.0, torque_limits=np.minimum(torque + 0.3, slow.torque))
    plan = PayloadMotion(DEMO, tight, dwell=0.3, pose=POSE, torque_fraction=1.0, position_margin=MARGIN).plan()
    used = np.abs(DEMO.inverse_dynamics(*plan.trajectory.at(np.linspace(0.0, plan.duration, 8000))))
    assert np.all(used <= tight.torque + 1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reach": 0.01}, "reach is 0.01; it must be from 0.18 to π"),
        ({"reach": np.nan}, "reach is nan"),
        ({"repeats": 0}, "repeats is 0; it must be at least 1"),
        ({"dwell": 0.0}, "dwell is 0.0; it must be positive"),
        ({"pose": [0.0, np.nan, 0.0, 0.0, 0.0, 0.0]}, "a finite position for each of joint_1"),
        ({"pose": [0.0, 0.0]}, "a finite position for each of joint_1"),
    ],
)
def test_refuses_invalid_payload_settings(settings, message):
    with pytest.raises(TrajectoryError, match=message):
        create_demo_experiment(**settings)


def test_refuses_poses_in_collision():
    with pytest.raises(TrajectoryError, match=r"the arm may not rest at the pose given: .*(link_|tool).*at 0\.\d+ s"):
        create_demo_experiment(pose=[0.0, 1.5, 1.5, 0.0, 0.5, 0.0]).plan()

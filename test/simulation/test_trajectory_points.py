"""Test splines through trajectory points, refused trajectories and smooth replacements."""

import numpy as np
import pytest
from scipy.interpolate import BPoly

from dynid_ros.errors import TrajectoryError
from dynid_ros.simulation import SimulatedArm, TrajectoryPoints
from dynid_ros.simulation.trajectory_points import JointSpline, SetPoint


@pytest.mark.parametrize("derivatives", [1, 2, 3])
def test_spline_matches_scipy(derivatives):
    rng = np.random.default_rng(derivatives)
    time = 5.0 + np.cumsum(rng.uniform(0.1, 1.0, 20))
    values = rng.normal(size=(20, derivatives, 3))
    expected = BPoly.from_derivatives(time, values)
    spline = JointSpline(time, values)
    for t in rng.uniform(time[0], time[-1], 100):
        assert spline.at(t) == pytest.approx(np.array([expected(t, k) for k in range(3)]), rel=1e-9, abs=1e-9)


def test_spline_rests_after_its_last_point():
    assert JointSpline(np.zeros(1), np.array([[[0.4]]])).at(2.0).tolist() == [[0.4], [0.0], [0.0]]
    spline = JointSpline(np.array([0.0, 1.0]), np.array([[[0.0, 0.0]], [[1.0, 2.0]]]))
    assert spline.at(3.0).tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_set_point_moves_until_its_time_and_rests_afterwards():
    state = np.array([[1.0], [2.0], [3.0]])
    for step in range(1, 5000):
        point = SetPoint((step - 1) * 0.001 + 0.001, state)
        assert point.at(step * 0.001) == pytest.approx(state)
    point = SetPoint(1.0, state)
    assert point.at(0.9).ravel() == pytest.approx([1.0 - 0.2 + 0.015, 2.0 - 0.3, 3.0])
    assert point.at(1.001).ravel().tolist() == [1.0, 0.0, 0.0]


NAMES = [f"joint_{i}" for i in range(1, 7)]
ZERO = np.zeros(6)


def create_points(time=(1.0, 2.0), position=None, **fields):
    """Return points of all joints at 0.1 rad, with single fields replaced."""
    position = np.full((len(time), 6), 0.1) if position is None else position
    return TrajectoryPoints(fields.pop("joint_names", NAMES), time, position, **fields)


def change_entry(value, point=0, joint=2):
    """Return zeros (2, 6) with one changed entry."""
    array = np.zeros((2, 6))
    array[point, joint] = value
    return array


REFUSED = {
    "no joints": (create_points(joint_names=[]), "moves joints .none.; expected each of joint_1"),
    "unknown joint": (
        create_points(joint_names=[*NAMES[:5], "elbow"]),
        "moves joints .*elbow; expected each of joint_1",
    ),
    "joint missing": (create_points(joint_names=NAMES[:5], position=np.zeros((2, 5))), "expected each of joint_1"),
    "joint twice": (create_points(joint_names=[*NAMES[:5], "joint_1"]), "expected each of joint_1, .* once"),
    "no points": (create_points(time=()), "no points"),
    "shape": (
        create_points(position=np.zeros((2, 5))),
        r"position of the trajectory has shape \(2, 5\); expected \(2, 6\)",
    ),
    "shape of velocity": (create_points(velocity=np.zeros((1, 6))), "velocity of the trajectory has shape"),
    "nan": (create_points(position=change_entry(np.nan, 1)), "position of joint 'joint_3' at point 2 is nan"),
    "infinite acceleration": (
        create_points(velocity=np.zeros((2, 6)), acceleration=change_entry(np.inf)),
        "acceleration of joint 'joint_3' at point 1 is inf",
    ),
    "acceleration alone": (create_points(acceleration=np.zeros((2, 6))), "accelerations but no velocities"),
    "time repeats": (create_points(time=(1.0, 1.0)), "time_from_start must increase"),
    "time is nan": (create_points(time=(1.0, np.nan)), "time_from_start must increase"),
    "beyond the limit": (
        create_points(position=change_entry(2.5, 1)),
        "joint 'joint_3' would go to 2.5 at t = 2 s; its limits",
    ),
    "too quick on the way": (
        create_points(time=(0.01, 2.0), position=change_entry(0.1)),
        "joint 'joint_3' would move at 10 /s",
    ),
    "too quick at a point": (
        create_points(velocity=change_entry(-3.0)),
        "joint 'joint_3' would move at -3 /s .* limit is 2 /s",
    ),
    "no rest at the end": (
        create_points(velocity=change_entry(0.1, 1)),
        "joint 'joint_3' has velocity 0.1 at the last point",
    ),
    "due at once elsewhere": (create_points(time=(0.0,)), "point 1 of the trajectory lies 0 s in the past"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_invalid_trajectories(demo_robot, case):
    trajectory, message = REFUSED[case]
    arm = SimulatedArm(demo_robot)
    with pytest.raises(TrajectoryError, match=message):
        arm.follow(trajectory)
    arm.step(0.1)
    assert np.all(arm.position == 0.0)


@pytest.mark.parametrize(
    ("time", "delay", "message"),
    [
        ((1.0, 2.0), -3.0, "point 2 of the trajectory lies 1 s in the past"),
        ((1.0, 2.0, 3.0), -2.5, "point 2 of the trajectory lies 0.5 s in the past"),
        ((1.0, 2.0), np.inf, "begins inf s from now; expected a finite time"),
    ],
)
def test_refuses_trajectories_too_late_or_without_start(demo_robot, time, delay, message):
    with pytest.raises(TrajectoryError, match=message):
        SimulatedArm(demo_robot).follow(create_points(time=time), delay=delay)


def test_accepts_a_first_point_that_is_due(demo_robot):
    arm = SimulatedArm(demo_robot)
    arm.follow(create_points(time=(0.0, 1.0), position=[ZERO, ZERO + 0.1]))
    arm.step(1.5)
    assert arm.position == pytest.approx(ZERO + 0.1, abs=2e-3)


def test_matches_joints_by_name(demo_robot):
    arm = SimulatedArm(demo_robot)
    goal = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    arm.follow(create_points(joint_names=NAMES[::-1], time=(2.0,), position=[goal[::-1]], velocity=[ZERO]))
    arm.step(3.0)
    assert arm.position == pytest.approx(goal, abs=2e-3)


def test_delay_starts_the_motion_later(demo_robot):
    arm = SimulatedArm(demo_robot)
    arm.follow(create_points(time=(0.0, 1.0), position=[ZERO, ZERO + 0.5], velocity=[ZERO, ZERO]), delay=1.0)
    arm.step(1.0)
    assert arm.position == pytest.approx(ZERO, abs=2e-3)
    arm.step(1.5)
    assert arm.position == pytest.approx(ZERO + 0.5, abs=2e-3)


def test_replaces_trajectories_smoothly(demo_robot):
    """Position and velocity continue from the desired state, so the torque does not jump."""
    arm = SimulatedArm(demo_robot, start=[0, 0.5, 1.0, 0, 0.8, 0])
    start = arm.position
    arm.follow(create_points(time=(2.0,), position=[start + 0.4], velocity=[ZERO], acceleration=[ZERO]))
    arm.step(1.0)
    velocity = arm.velocity
    torque = arm.torque
    assert np.all(velocity > 0.3)
    arm.follow(create_points(time=(1.5,), position=[start], velocity=[ZERO], acceleration=[ZERO]))
    arm.step(0.001)
    assert arm.velocity == pytest.approx(velocity, abs=0.005)
    assert np.all(np.abs(arm.torque - torque) < 0.02 * demo_robot.limits.effort)
    arm.step(2.5)
    assert arm.position == pytest.approx(start, abs=2e-3)

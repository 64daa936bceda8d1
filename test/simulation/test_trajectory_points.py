"""What a controller would refuse, and how the motion goes on when a trajectory replaces another."""

import numpy as np
import pytest
from scipy.interpolate import BPoly

from dynid_ros.errors import TrajectoryError
from dynid_ros.simulation import SimulatedArm, TrajectoryPoints
from dynid_ros.simulation.trajectory_points import JointSpline, SetPoint


@pytest.mark.parametrize("derivatives", [1, 2, 3])
def test_equals_scipy(derivatives):
    rng = np.random.default_rng(derivatives)
    time = 5.0 + np.cumsum(rng.uniform(0.1, 1.0, 20))
    values = rng.normal(size=(20, derivatives, 3))
    expected = BPoly.from_derivatives(time, values)
    spline = JointSpline(time, values)
    for t in rng.uniform(time[0], time[-1], 100):
        assert spline.at(t) == pytest.approx(np.array([expected(t, k) for k in range(3)]), rel=1e-9, abs=1e-9)


def test_rests_after_the_last_point_which_may_be_the_only_one():
    assert JointSpline(np.zeros(1), np.array([[[0.4]]])).at(2.0).tolist() == [[0.4], [0.0], [0.0]]
    spline = JointSpline(np.array([0.0, 1.0]), np.array([[[0.0, 0.0]], [[1.0, 2.0]]]))
    assert spline.at(3.0).tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_a_set_point_is_in_motion_at_its_time_however_it_is_summed_and_rests_after_it():
    state = np.array([[1.0], [2.0], [3.0]])
    for step in range(1, 5000):
        point = SetPoint((step - 1) * 0.001 + 0.001, state)
        assert point.at(step * 0.001) == pytest.approx(state)
    point = SetPoint(1.0, state)
    assert point.at(0.9).ravel() == pytest.approx([1.0 - 0.2 + 0.015, 2.0 - 0.3, 3.0])
    assert point.at(1.001).ravel().tolist() == [1.0, 0.0, 0.0]


NAMES = [f"joint_{i}" for i in range(1, 7)]
ZERO = np.zeros(6)


def points(time=(1.0, 2.0), position=None, **fields):
    position = np.full((len(time), 6), 0.1) if position is None else position
    return TrajectoryPoints(fields.pop("joint_names", NAMES), time, position, **fields)


def changed(value, point=0, joint=2):
    array = np.zeros((2, 6))
    array[point, joint] = value
    return array


REFUSED = {
    "no joints": (points(joint_names=[]), "moves joints .none.; expected each of joint_1"),
    "unknown joint": (points(joint_names=[*NAMES[:5], "elbow"]), "moves joints .*elbow; expected each of joint_1"),
    "joint missing": (points(joint_names=NAMES[:5], position=np.zeros((2, 5))), "expected each of joint_1"),
    "joint twice": (points(joint_names=[*NAMES[:5], "joint_1"]), "expected each of joint_1, .* once"),
    "no points": (points(time=()), "no points"),
    "shape": (points(position=np.zeros((2, 5))), r"position of the trajectory has shape \(2, 5\); expected \(2, 6\)"),
    "shape of velocity": (points(velocity=np.zeros((1, 6))), "velocity of the trajectory has shape"),
    "nan": (points(position=changed(np.nan, 1)), "position of joint 'joint_3' at point 2 is nan"),
    "infinite acceleration": (
        points(velocity=np.zeros((2, 6)), acceleration=changed(np.inf)),
        "acceleration of joint 'joint_3' at point 1 is inf",
    ),
    "acceleration alone": (points(acceleration=np.zeros((2, 6))), "accelerations but no velocities"),
    "time repeats": (points(time=(1.0, 1.0)), "time_from_start must increase"),
    "time is nan": (points(time=(1.0, np.nan)), "time_from_start must increase"),
    "beyond the limit": (
        points(position=changed(2.5, 1)),
        "joint 'joint_3' would go to 2.5 at t = 2 s; its limits",
    ),
    "too quick on the way": (points(time=(0.01, 2.0), position=changed(0.1)), "joint 'joint_3' would move at 10 /s"),
    "too quick at a point": (
        points(velocity=changed(-3.0)),
        "joint 'joint_3' would move at -3 /s .* limit is 2 /s",
    ),
    "no rest at the end": (points(velocity=changed(0.1, 1)), "joint 'joint_3' has velocity 0.1 at the last point"),
    "due at once elsewhere": (points(time=(0.0,)), "point 1 of the trajectory lies 0 s in the past"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(demo_robot, case):
    trajectory, message = REFUSED[case]
    arm = SimulatedArm(demo_robot)
    with pytest.raises(TrajectoryError, match=message):
        arm.follow(trajectory)
    arm.step(0.1)
    assert np.all(arm.position == 0.0)


@pytest.mark.parametrize(
    ("time", "delay", "said"),
    [
        ((1.0, 2.0), -3.0, "point 2 of the trajectory lies 1 s in the past"),
        ((1.0, 2.0, 3.0), -2.5, "point 2 of the trajectory lies 0.5 s in the past"),
        ((1.0, 2.0), np.inf, "begins inf s from now; expected a finite time"),
    ],
)
def test_what_comes_too_late_or_never_is_refused(demo_robot, time, delay, said):
    with pytest.raises(TrajectoryError, match=said):
        SimulatedArm(demo_robot).follow(points(time=time), delay=delay)


def test_first_point_may_be_due(demo_robot):
    arm = SimulatedArm(demo_robot)
    arm.follow(points(time=(0.0, 1.0), position=[ZERO, ZERO + 0.1]))
    arm.step(1.5)
    assert arm.position == pytest.approx(ZERO + 0.1, abs=2e-3)


def test_joints_are_matched_by_name(demo_robot):
    arm = SimulatedArm(demo_robot)
    goal = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    arm.follow(points(joint_names=NAMES[::-1], time=(2.0,), position=[goal[::-1]], velocity=[ZERO]))
    arm.step(3.0)
    assert arm.position == pytest.approx(goal, abs=2e-3)


def test_delay_starts_the_motion_later(demo_robot):
    arm = SimulatedArm(demo_robot)
    arm.follow(points(time=(0.0, 1.0), position=[ZERO, ZERO + 0.5], velocity=[ZERO, ZERO]), delay=1.0)
    arm.step(1.0)
    assert arm.position == pytest.approx(ZERO, abs=2e-3)
    arm.step(1.5)
    assert arm.position == pytest.approx(ZERO + 0.5, abs=2e-3)


def test_a_new_trajectory_replaces_the_old_smoothly(demo_robot):
    """Position and velocity go on from the desired state in the middle of a move: the torque makes no jump."""
    arm = SimulatedArm(demo_robot, start=[0, 0.5, 1.0, 0, 0.8, 0])
    here = arm.position
    arm.follow(points(time=(2.0,), position=[here + 0.4], velocity=[ZERO], acceleration=[ZERO]))
    arm.step(1.0)
    before = arm.velocity, arm.torque
    assert np.all(before[0] > 0.3)
    arm.follow(points(time=(1.5,), position=[here], velocity=[ZERO], acceleration=[ZERO]))
    arm.step(0.001)
    assert arm.velocity == pytest.approx(before[0], abs=0.005)
    assert np.all(np.abs(arm.torque - before[1]) < 0.02 * demo_robot.limits.effort)
    arm.step(2.5)
    assert arm.position == pytest.approx(here, abs=2e-3)

"""Test motions read from files."""

import numpy as np
import planar_arm
import pytest
import yaml

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.joint_by_joint import GivenMotion
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.trajectory import move

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 8.0, jerk_limits=100.0, torque_limits=[50.0, 40.0, 20.0])
WORKSPACE = Workspace(ROBOT, 0.1, 0.1)
START = [0.0, -0.5, 0.3]
GOAL = [0.8, -1.0, 1.0]


def create_motion(start=START, goal=GOAL, duration=2.0, joints=planar_arm.JOINTS):
    """Return a motion to the goal and back."""
    return Trajectory.join([move(joints, start, goal, duration), move(joints, goal, start, duration)])


def read_motion(path, **settings):
    return GivenMotion(ROBOT, LIMITS, WORKSPACE, path=path, **settings)


def write_motion(path, trajectory, **changes):
    """Write the trajectory with changed entries and return the path."""
    trajectory.save(path)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))
    return path


def test_matches_joints_of_the_file_by_name(tmp_path):
    order = ("joint_3", "joint_1", "joint_2")
    path = write_motion(tmp_path / "motion.yaml", create_motion().select(order))
    plan = read_motion(path).plan()
    assert plan.trajectory.joint_names == planar_arm.JOINTS
    np.testing.assert_array_equal(plan.trajectory.position, create_motion().position)
    assert plan.duration == 4.0
    assert plan.summary().startswith(f"4.0 s, from {path}\njoint_1: 0° to 46°\n")


def test_dictionary_contains_file_and_rounded_duration(tmp_path):
    path = write_motion(tmp_path / "motion.yaml", create_motion(duration=2.0617284))
    content = yaml.safe_load(yaml.safe_dump(read_motion(path).plan().as_dict()))
    assert content == {"format": "dynid-given-motion/1", "duration": 4.1235, "source": str(path), "warnings": []}


def test_reads_fourier_motions(tmp_path):
    experiment = FourierExcitation(ROBOT, LIMITS, WORKSPACE, base_frequency=0.4, harmonics=3, design_time=0.0)
    designed = experiment.plan()
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"start_time": 12.5, **designed.as_dict()}, sort_keys=True))
    plan = read_motion(path, periods=2).plan()
    assert plan.duration == pytest.approx(5.0)
    time = np.linspace(0.0, 2.5, 200)
    for values, expected in zip(plan.trajectory.at(time), designed.trajectory.at(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-6)


SHAPE = (3, 3)


def create_final_derivatives(value):
    """Return derivatives that are zero except for the last sample."""
    return [[0.0] * 3, [0.0] * 3, [value] * 3]


@pytest.mark.parametrize(
    ("trajectory", "changes", "message"),
    [
        (create_motion(goal=[2.7, -1.0, 1.0], duration=3.0), {}, "joint 'joint_1' would reach position 2.7 rad"),
        (create_motion(duration=0.4), {}, "joint 'joint_1' would reach speed 3.75 rad/s"),
        (create_motion(duration=0.7), {}, "joint 'joint_1' would reach acceleration"),
        (create_motion(START, [0.0, -0.5, 1.1], duration=0.77), {}, "joint 'joint_3' would reach jerk"),
        (create_motion(goal=[0.0, 0.9, 0.3]), {}, "'link_3' would be at height"),
        (create_motion(), {"velocity": np.full(SHAPE, 0.1).tolist()}, "it starts with velocity 0.1 of joint 'joint_1'"),
        (create_motion(), {"acceleration": np.full(SHAPE, -0.1).tolist()}, "it starts with acceleration -0.1 of joint"),
        (create_motion(), {"velocity": create_final_derivatives(0.1)}, "it ends with velocity 0.1 of joint 'joint_1'"),
        (create_motion(), {"velocity": create_final_derivatives(-0.1)}, "it ends with velocity -0.1 of joint"),
        (create_motion(), {"acceleration": create_final_derivatives(0.2)}, "it ends with acceleration 0.2 of joint"),
        (create_motion(), {"position": np.full(SHAPE, np.nan).tolist()}, "position of joint 'joint_1' is nan"),
        (create_motion(), {"velocity": np.full(SHAPE, np.nan).tolist()}, "it starts with velocity nan of joint"),
    ],
)
def test_refuses_unsafe_motions(tmp_path, trajectory, changes, message):
    path = write_motion(tmp_path / "motion.yaml", trajectory, **changes)
    with pytest.raises(TrajectoryError) as error:
        read_motion(path).plan()
    assert str(error.value).startswith(f"the motion in '{path}' is not safe: {message}")


def test_refuses_motions_with_too_much_torque(tmp_path):
    path = write_motion(tmp_path / "motion.yaml", create_motion())
    with pytest.raises(TrajectoryError, match=r"joint 'joint_\d' would need .* less a margin of 70 %"):
        read_motion(path, torque_fraction=0.3).plan()


@pytest.mark.parametrize("joints", [("joint_1", "joint_2", "finger"), ("joint_1", "joint_2", "joint_3", "finger")])
def test_refuses_other_joints(tmp_path, joints):
    pose = np.zeros(len(joints))
    path = write_motion(tmp_path / "motion.yaml", create_motion(pose, pose + 0.1, joints=joints))
    with pytest.raises(TrajectoryError, match=r"finger; expected joint_1, joint_2, joint_3 in any order"):
        read_motion(path).plan()


@pytest.mark.parametrize("text", ["", "[1, 2]", "format: dynid-trajectory/2", "a: {", "\x00"])
def test_refuses_other_files(tmp_path, text):
    path = tmp_path / "motion.yaml"
    path.write_text(text)
    with pytest.raises(TrajectoryError, match=r"motion\.yaml"):
        read_motion(path).plan()
    with pytest.raises(TrajectoryError, match=r"cannot read trajectory .*name a file in motion_file"):
        read_motion(tmp_path / "none.yaml").plan()

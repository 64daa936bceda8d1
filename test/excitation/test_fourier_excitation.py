"""Planned Fourier motion: within all limits wherever one looks, better conditioned than by chance, the same again."""

import numpy as np
import planar_arm
import pytest
import yaml
from mujoco_room import DEMO_ARM, DEMO_SPEEDS, check_demo_arm
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.conditioning import Conditioning
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits, check_start

ACCELERATION = np.array([5.0, 5.0, 8.0, 12.0, 12.0, 15.0])
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])  # links of a wrist are not held apart by `clearance`


def demo_arm(**settings):
    robot = RobotModel.from_urdf(DEMO_ARM)
    given = {"speed_fraction": 0.8, "travel_speed_fraction": 0.6, "position_margin": MARGIN} | settings
    return FourierExcitation(robot, MotionLimits.of(robot, ACCELERATION), Workspace(robot, 0.1, 0.1), **given)


@pytest.fixture(scope="module")
def plan():
    return demo_arm().plan()


@pytest.mark.parametrize("seed", range(4))
def test_demo_arm_keeps_to_limits_and_room_as_mujoco_sees_it(seed):
    motion = demo_arm(seed=seed, candidates=6).plan().trajectory
    position, velocity, acceleration = motion.at(np.arange(0.0, motion.duration, 0.01))
    assert np.all(np.abs(velocity) <= 0.8 * DEMO_SPEEDS)
    assert np.all(np.abs(acceleration) <= 0.8 * ACCELERATION)
    check_demo_arm(position, margin=MARGIN, floor=0.1)
    assert np.all(np.ptp(position, axis=0) <= 0.9 * 2 * (np.array([3.09, 1.64, 2.4, 3.09, 2.0, 3.09]) - MARGIN))


@pytest.mark.parametrize("seed", range(12))
def test_any_arm_keeps_to_its_limits_even_when_it_uses_them_up(seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_urdf(rng, 3), tip=TIP)
    most = rng.uniform(0.5, 20.0, 3)
    limits = MotionLimits.of(robot, most, velocity_limits=rng.uniform(0.1, 3.0, 3))
    experiment = FourierExcitation(
        robot,
        limits,
        base_frequency=rng.uniform(0.02, 0.5),
        harmonics=int(rng.integers(2, 8)),
        periods=2,
        amplitude=1.0,
        candidates=3,
        seed=seed,
        position_margin=0.0,
        speed_fraction=1.0,
    )
    plan = experiment.plan()
    motion = plan.trajectory
    for sampled in (motion, motion.sample(50.0)):
        position, velocity, acceleration = sampled.at(np.linspace(0.0, sampled.duration, 20001))
        assert np.all(position >= limits.lower - 1e-6)
        assert np.all(position <= limits.upper + 1e-6)
        assert np.all(np.abs(velocity) <= limits.velocity * (1 + 1e-6))
        assert np.all(np.abs(acceleration) <= 0.81 * most)
        check_limits(sampled, limits)
    used = [
        np.ptp(motion.position, axis=0) / (limits.upper - limits.lower),
        np.abs(motion.velocity).max(axis=0) / limits.velocity,
        np.abs(motion.acceleration).max(axis=0) / (0.8 * most),
    ]
    assert np.all(np.max(used, axis=0) > 0.97)  # one of the three is what holds each joint back


def test_motion_starts_and_ends_at_rest_and_the_way_there_is_found(plan):
    experiment = demo_arm()
    check_start(plan.trajectory, plan.trajectory.position[0])
    assert not plan.trajectory.velocity[-1].any()
    np.testing.assert_allclose(plan.trajectory.position[-1], plan.trajectory.position[0], atol=1e-9)
    approach = experiment.approach_motion([0.0, 0.5, 1.0, 0.0, 0.8, 0.0], plan)
    np.testing.assert_allclose(approach.position[-1], plan.trajectory.position[0], atol=1e-12)
    check_limits(approach, experiment.limits)


def test_condition_number_is_that_of_pinocchios_regressor(plan):
    robot = RobotModel.from_urdf(DEMO_ARM)
    arm = PinocchioArm(DEMO_ARM.read_text(), robot.joint_names, robot.gravity)
    rows = []
    for q, qd, qdd in zip(*plan.series.at(plan.series.times()), strict=True):
        terms = np.stack([np.sign(qd), qd, np.ones(6), qdd], axis=1)
        rows.append(
            np.hstack([arm.torque_regressor(q, qd, qdd), *(np.outer(np.eye(6)[j], terms[j]) for j in range(6))])
        )
    matrix = np.concatenate(rows)
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(norms > 1e-9 * norms.max(), norms, np.inf)
    assert np.linalg.matrix_rank(scaled, 1e-4) == plan.n_parameters == 58
    own = scaled[:, Conditioning(robot).base.columns]
    assert plan.condition_number == pytest.approx(np.linalg.cond(own), rel=1e-6)


def test_more_candidates_are_never_worse(plan):
    numbers = [demo_arm(candidates=count).plan().condition_number for count in (1, 8)]
    assert numbers[0] >= numbers[1] >= plan.condition_number
    assert numbers[0] > 1.5 * plan.condition_number


def test_seed_decides_the_motion(plan):
    again, other = demo_arm().plan(), demo_arm(seed=1).plan()
    np.testing.assert_array_equal(again.trajectory.position, plan.trajectory.position)
    assert np.abs(other.trajectory.position - plan.trajectory.position).max() > 0.5


def test_plan_can_be_read_back_from_its_yaml(plan):
    content = yaml.safe_load(yaml.safe_dump(plan.as_dict(), sort_keys=False))
    assert content["format"] == "dynid-fourier/1"
    rate = 2 * np.pi * content["base_frequency"] * np.arange(1, content["harmonics"] + 1)
    time = np.linspace(0.0, content["duration"], 50)
    for name, column in zip(plan.series.joint_names, plan.trajectory.at(time)[0].T, strict=True):
        joint = content["joints"][name]
        angle = np.outer(time, rate)
        found = joint["offset"] + np.sin(angle) / rate @ joint["sine"] - np.cos(angle) / rate @ joint["cosine"]
        np.testing.assert_allclose(found, column, atol=1e-6)


def test_summary_says_what_will_happen(plan):
    lines = plan.summary().splitlines()
    assert lines[0].startswith("20.0 s, 1 period of frequencies from 0.05 to 0.5 Hz, condition number ")
    assert lines[0].endswith("of 58 base parameters")
    assert [line.split(":")[0] for line in lines[1:]] == list(plan.series.joint_names)
    weak = demo_arm(amplitude=0.02, candidates=1).plan()
    assert weak.condition_number > 100
    assert weak.summary().splitlines()[-1].startswith("warning: condition number above 100")


def test_motion_shrinks_to_fit_a_low_ceiling():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    wide = FourierExcitation(robot, limits, candidates=3).plan().trajectory
    workspace = Workspace(robot, floor_height=0.25)
    narrow = FourierExcitation(robot, limits, workspace, candidates=30).plan().trajectory
    workspace.check(narrow)
    assert np.ptp(narrow.position, axis=0)[1:].min() < np.ptp(wide.position, axis=0)[1:].min()


class Islands(Workspace):
    """Lets the arm be in some poses, not in those around them."""

    def allowed(self, position):
        return np.arange(len(position)) % 2 == 0


def test_no_room_is_named():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    with pytest.raises(
        TrajectoryError, match=r"none of 256 poses .* '.*' would be at height .* below floor_height 5 m"
    ):
        FourierExcitation(robot, limits, Workspace(robot, floor_height=5.0)).plan()
    message = r"none of 4 Fourier motions .*\(floor_height, clearance\): all of them leave it even when small"
    with pytest.raises(TrajectoryError, match=message):
        FourierExcitation(robot, limits, Islands(robot), candidates=4).plan()
    with pytest.raises(TrajectoryError, match="joint 'joint_1' has no room left between its limits"):
        FourierExcitation(robot, limits, position_margin=2.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"base_frequency": 0.0}, "base_frequency is 0.0; it must be positive"),
        ({"base_frequency": np.nan}, "base_frequency is nan; it must be positive"),
        ({"harmonics": 1}, "harmonics is 1; it must be at least 2"),
        ({"periods": 0}, "periods is 0; it must be at least 1"),
        ({"amplitude": 1.1}, "amplitude is 1.1; it must be above 0 and at most 1"),
        ({"candidates": 0}, "candidates is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be zero or more"),
        ({"position_margin": -0.1}, "position_margin is -0.1; it must be zero or more"),
        ({"speed_fraction": 0.0}, "speed_fraction is 0.0; it must be above 0"),
        ({"travel_speed_fraction": 2.0}, "travel_speed_fraction is 2.0; it must be above 0"),
    ],
)
def test_senseless_setting_is_one_clear_error(setting, message):
    with pytest.raises(TrajectoryError, match=message):
        demo_arm(**setting)

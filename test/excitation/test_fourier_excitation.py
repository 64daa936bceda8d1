"""Planned Fourier motion: within all limits wherever one looks, better conditioned than by chance, the same again."""

from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import planar_arm
import pytest
import yaml
from mujoco_room import DEMO_ARM, DEMO_SPEEDS, check_demo_arm
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.collision import Obstacle
from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.information.torque_information import SMOOTHING
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits, check_start

ACCELERATION = np.array([5.0, 5.0, 8.0, 12.0, 12.0, 15.0])
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])  # links of a wrist are not held apart by `clearance`
QUICK = {
    "base_frequency": 0.1,
    "harmonics": 3,
    "workers": 1,
    "candidates": 2,
    "starts": 1,
    "design_time": 60.0,
    "criterion": "condition",
    "noise": 1.0,
}


def demo_arm(**settings):
    robot = RobotModel.from_urdf(DEMO_ARM)
    given = {"speed_fraction": 0.8, "travel_speed_fraction": 0.6, "position_margin": MARGIN} | QUICK | settings
    return FourierExcitation(robot, MotionLimits.of(robot, ACCELERATION), Workspace(robot, 0.1, 0.1), **given)


def planar(**settings):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    return FourierExcitation(robot, MotionLimits.of(robot, 10.0), **QUICK | settings)


@pytest.fixture(scope="module")
def plan():
    return demo_arm().plan()


@pytest.mark.parametrize("seed", range(4))
def test_demo_arm_keeps_to_limits_and_room_as_mujoco_sees_it(seed, plan):
    plan = demo_arm(seed=seed, starts=0, candidates=6).plan() if seed else plan
    motion = plan.trajectory
    position, velocity, acceleration = motion.at(np.arange(0.0, motion.duration, 0.01))
    assert np.all(np.abs(velocity) <= 0.8 * DEMO_SPEEDS)
    assert np.all(np.abs(acceleration) <= 0.8 * ACCELERATION)
    check_demo_arm(position, margin=MARGIN, floor=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_arm_keeps_to_its_limits_even_when_it_uses_them_up(seed):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 3)
    robot = RobotModel.from_urdf(text, tip=TIP)
    most, jerk = rng.uniform(0.5, 20.0, 3), rng.uniform(20.0, 200.0, 3)
    holds = np.abs(robot.gravity_torque(np.random.default_rng(0).uniform(-2, 2, (200, 3)))).max(axis=0)
    torque = 1.5 * holds + 1.0
    limits = MotionLimits.of(robot, most, velocity_limits=rng.uniform(0.1, 3.0, 3), jerk_limits=jerk)
    limits = replace(limits, torque=torque)
    experiment = FourierExcitation(
        robot,
        limits,
        base_frequency=rng.uniform(0.02, 0.5),
        harmonics=int(rng.integers(2, 5)),
        periods=2,
        seed=seed,
        position_margin=0.0,
        speed_fraction=1.0,
        torque_fraction=0.9,
        drive=JointFriction(offset=True),
        **{name: QUICK[name] for name in ("workers", "candidates", "starts", "design_time")},
    )
    motion = experiment.plan().trajectory
    arm = PinocchioArm(text, robot.joint_names, robot.gravity)
    for sampled in (motion, motion.sample(50.0)):
        position, velocity, acceleration = sampled.at(np.linspace(0.0, sampled.duration, 5001))
        assert np.all(position >= limits.lower - 1e-6)
        assert np.all(position <= limits.upper + 1e-6)
        assert np.all(np.abs(velocity) <= limits.velocity * (1 + 1e-6))
        assert np.all(np.abs(acceleration) <= 0.81 * most)
        check_limits(sampled, limits)
    needed = np.array([arm.inverse_dynamics(*sample) for sample in zip(position, velocity, acceleration, strict=True)])
    assert np.all(np.abs(needed) <= 0.91 * torque)
    used = [
        np.ptp(motion.position, axis=0) / (limits.upper - limits.lower),
        np.abs(motion.velocity).max(axis=0) / limits.velocity,
        np.abs(motion.acceleration).max(axis=0) / (0.8 * most),
    ]
    assert np.max(used) > 0.9  # room is there to be used


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
    base = robot.base_parameters(FrictionModel(JointFriction(offset=True, rotor_inertia=True)))
    times = np.arange(24 * 3) / (24 * 3 * 0.1)
    for direction, tolerance in ((lambda qd: np.tanh(qd / (SMOOTHING * 0.8 * DEMO_SPEEDS)), 1e-6), (np.sign, 0.1)):
        rows = []
        for q, qd, qdd in zip(*plan.series.at(times), strict=True):
            terms = np.stack([direction(qd), qd, np.ones(6), qdd], axis=1)
            own = [np.outer(np.eye(6)[j], terms[j]) for j in range(6)]
            rows.append(np.hstack([arm.torque_regressor(q, qd, qdd), *own]))
        matrix = np.concatenate(rows)[:, base.columns]
        scaled = matrix / np.linalg.norm(matrix, axis=0)
        assert plan.n_parameters == matrix.shape[1] == 58
        assert plan.condition_number == pytest.approx(np.linalg.cond(scaled), rel=tolerance)
    values = plan.singular_values
    assert values[0] / values[-1] == pytest.approx(plan.condition_number, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["condition", "condition_unscaled", "determinant"])
def test_search_is_far_better_than_chance_by_its_own_criterion(criterion):
    by_chance = demo_arm(criterion=criterion, candidates=8, starts=0).plan()
    sought = demo_arm(criterion=criterion).plan()
    assert by_chance.starts == 0
    assert sought.starts == 1
    assert sought.criterion == criterion
    gain = np.exp(by_chance.value - sought.value) if criterion == "determinant" else by_chance.value / sought.value
    assert gain > {"condition": 2.0, "condition_unscaled": 2.0, "determinant": 1.3}[criterion]
    values = [value for _, value in sought.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] == sought.value


@pytest.mark.parametrize("setting", ["harmonics", "periods", "criterion", "design_time", "workers", "seed"])
def test_what_is_not_said_is_as_in_the_parameter_file(setting):
    text = (Path(__file__).parents[2] / "config" / "excitation.yaml").read_text()
    expected = yaml.safe_load(text)["/**"]["ros__parameters"][setting]
    assert signature(FourierExcitation).parameters[setting].default == expected


def test_noise_is_taken_to_be_as_the_torque_limits_are():
    limits = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf()), 10.0, torque_limits=[50.0, 20.0, 5.0])
    settings = {name: value for name, value in QUICK.items() if name != "noise"} | {
        "starts": 0,
        "criterion": "determinant",
    }
    made = [
        FourierExcitation(RobotModel.from_urdf(planar_arm.urdf()), limits, **settings, **noise).plan().value
        for noise in ({}, {"noise": [0.5, 0.2, 0.05]}, {"noise": 1.0})
    ]
    assert made[0] == pytest.approx(made[1])
    assert abs(made[0] - made[2]) > 0.1


@pytest.mark.slow
def test_targets():
    sought = demo_arm(target="load", drive=JointFriction.none()).plan()
    assert sought.n_parameters == 10
    assert sought.condition_number < 3
    assert demo_arm(target="gravity", starts=0).plan().n_parameters < 40


@pytest.mark.slow
def test_what_is_known_already_is_not_asked_again():
    """After a motion that was recorded often, another one adds more than the same again."""
    first = planar(criterion="determinant")
    series = first.plan().series
    time = np.linspace(0.0, 10.0, 500)
    q, qd, qdd = series.at(time)
    recorded = first.information.over_time(time, q, qd, qdd)
    stronger = 50.0 * recorded  # recorded so often that it hardly pays again
    knowing = planar(criterion="determinant", known=stronger).plan()
    added = {}
    for name, plan in (("same", series), ("knowing", knowing.series)):
        total = stronger + first.information.over_time(time, *plan.at(time))
        added[name] = np.linalg.slogdet(total).logabsdet
    assert added["knowing"] > added["same"]
    assert knowing.value < first.plan().value


@pytest.mark.slow
def test_starts_make_it_the_same_again_however_many_processes():
    alone = planar(starts=2).plan()
    beside = planar(starts=2, workers=2).plan()
    np.testing.assert_array_equal(alone.series.sine, beside.series.sine)
    assert alone.value == beside.value


def test_there_is_an_answer_at_any_time():
    told = []

    def progress(part, best):
        told.append((part, best.value))
        if len(told) == 3:
            raise KeyboardInterrupt

    plan = demo_arm(design_time=0.5, starts=None, candidates=1).plan()
    assert plan.duration == 10.0
    with pytest.raises(KeyboardInterrupt):
        planar(design_time=30.0, starts=None).plan(progress)
    assert len(told) == 3
    assert all(0 <= part <= 1 and np.isfinite(value) for part, value in told)


@pytest.mark.slow
def test_seed_decides_the_motion():
    first, again, other = (planar(seed=seed).plan() for seed in (0, 0, 1))
    np.testing.assert_array_equal(again.trajectory.position, first.trajectory.position)
    assert np.abs(other.trajectory.position - first.trajectory.position).max() > 0.1


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
    assert lines[0].startswith("10.0 s, 1 period of frequencies from 0.1 to 0.3 Hz, condition number ")
    assert lines[0].endswith("of 58 base parameters")
    assert [line.split(":")[0] for line in lines[1:7]] == list(plan.series.joint_names)
    weak = replace(plan, condition_number=120.0)
    assert weak.summary().splitlines()[-1].startswith("warning: condition number above 100")


@pytest.mark.slow
def test_motion_fits_under_a_low_ceiling():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    wide = planar().plan().trajectory
    workspace = Workspace(robot, floor_height=0.25)
    narrow = FourierExcitation(robot, limits, workspace, **QUICK).plan().trajectory
    workspace.check(narrow)
    with pytest.raises(TrajectoryError):
        workspace.check(wide)


def test_what_is_in_the_way_is_named():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    with pytest.raises(TrajectoryError, match=r"none of 4096 poses is allowed: in the way is .* and the floor"):
        FourierExcitation(robot, limits, Workspace(robot, floor_height=5.0), **QUICK).plan()
    level = replace(limits, lower=np.full(3, -0.5), upper=np.full(3, 0.5), torque=np.array([50.0, 1.0, 50.0]))
    with pytest.raises(TrajectoryError, match=r"in the way is torque of joint 'joint_2' \(\d+ % of the poses"):
        FourierExcitation(robot, level, **QUICK).plan()
    wall = Obstacle("cage", [-0.05, -2.0, 0.0], [2.0, 2.0, 2.0])
    with pytest.raises(TrajectoryError, match="obstacle 'cage'"):
        FourierExcitation(robot, limits, Workspace(robot, obstacles=[wall]), **QUICK).plan()
    with pytest.raises(TrajectoryError, match="joint 'joint_1' has no room left between its limits"):
        FourierExcitation(robot, limits, position_margin=2.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"base_frequency": 0.0}, "base_frequency is 0.0; it must be positive"),
        ({"base_frequency": 1e-300}, "base_frequency is 1e-300; it must be positive, and a period of at most 8 h"),
        ({"base_frequency": np.nan}, "base_frequency is nan; it must be positive"),
        ({"harmonics": 1}, "harmonics is 1; it must be at least 2"),
        ({"periods": 0}, "periods is 0; it must be at least 1"),
        ({"criterion": "best"}, "criterion is 'best'; it must be condition or condition_unscaled or determinant"),
        ({"target": "loads"}, "target is 'loads'; expected links, gravity, load"),
        ({"noise": -1.0}, "noise is -1.0; it must be positive"),
        ({"design_time": -1.0}, "design_time is -1.0; it must be zero or more"),
        ({"starts": -1}, "starts is -1; it must be zero or more"),
        ({"workers": -1}, "workers is -1; it must be zero or more"),
        ({"torque_fraction": 0.0}, "torque_fraction is 0.0; it must be above 0"),
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

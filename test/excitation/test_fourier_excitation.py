"""Test designed Fourier motions: limits, conditioning, reproducibility, and joints with springs."""

from dataclasses import replace
from inspect import signature
from pathlib import Path

import flexible_link
import numpy as np
import planar_arm
import pytest
import yaml
from flexible_link import RESONANCE
from helpers.mujoco_room import DEMO_ARM, DEMO_SPEEDS, check_demo_arm
from numerical_gradient import numerical_gradient
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.collision import Obstacle
from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation, fourier_excitation
from dynid_ros.excitation.fourier_excitation import flexible_excitation
from dynid_ros.excitation.fourier_problem import UNPREDICTED_OBJECTIVE
from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance
from dynid_ros.information.torque_information import SMOOTHING_FRACTION
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits, check_start

QUICK_FLEXIBLE = {"workers": 1, "candidates": 2, "starts": 1, "design_time": 60.0, "speed_fraction": 1.0}
HARMONICS = 6
NEAR_HZ = proposed_base_frequency(RESONANCE, HARMONICS)
LOW_HZ = 0.2


def create_flexible_excitation(base_frequency, **settings):
    robot = flexible_link.robot()
    values = {"base_frequency": base_frequency, "harmonics": HARMONICS, **QUICK_FLEXIBLE, **settings}
    return flexible_excitation(robot, MotionLimits.of(robot, 15.0), flexible_link.JOINTS, **values)


@pytest.fixture(scope="module")
def near_plan():
    return create_flexible_excitation(NEAR_HZ).plan()


@pytest.mark.slow
def test_design_near_resonance_has_a_low_condition_number():
    numbers = {}
    for frequency in (NEAR_HZ, LOW_HZ):
        search = create_flexible_excitation(frequency, criterion="condition", harmonics=5)
        numbers[frequency] = search.plan().condition_number
        random = [search._search.candidate(number).value for number in range(5)]
        assert numbers[frequency] < min(0.2 * np.median(random), *random)
    assert numbers[NEAR_HZ] < 6
    assert numbers[LOW_HZ] > 4 * numbers[NEAR_HZ]


@pytest.mark.slow
def test_flexible_motion_respects_motor_limits(near_plan):
    limits = MotionLimits.of(flexible_link.robot(), 15.0)
    check_limits(near_plan.trajectory, limits)
    time = np.linspace(0.0, near_plan.series.period, 400)
    q, _ = flexible_link.steady_motion(near_plan.series, time)
    torque = flexible_link.motor_torque(near_plan.series, time, q)
    assert np.abs(torque).max() < 0.8 * 300.0 * 1.03
    # A rigid arm would need far less torque: the design excites the springs.
    rigid = flexible_link.robot().inverse_dynamics(*near_plan.series.at(time))
    assert np.abs(torque).max() > 1.3 * np.abs(rigid).max()


def test_held_joints_do_not_move():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 20.0)
    joints = FlexibleJoints([4e3, 3e3, 600.0], [0.3, 0.2, 0.05], 1.0, 1.0, [8.0, 6.0, 2.0])
    held = {"joint_1": 0.5, "joint_3": -0.7}
    pose = [0.5, 0.0, -0.7]
    driven = resonance(robot, joints.stiffness, joints.motor_inertia, pose, ["joint_2"]).driven
    settings = {**QUICK_FLEXIBLE, "starts": 0, "harmonics": 4, "held": held}
    settings["base_frequency"] = proposed_base_frequency(driven, 4)
    plan = flexible_excitation(robot, limits, joints, **settings).plan()
    for name, position in held.items():
        assert np.ptp(plan.trajectory.position[:, robot.joint_names.index(name)]) == 0.0
        assert plan.trajectory.position[0, robot.joint_names.index(name)] == position
    assert np.ptp(plan.trajectory.position[:, 1]) > 0.01
    with pytest.raises(TrajectoryError, match=r"held: joint 'joint_1' at 9 is not within"):
        flexible_excitation(robot, limits, joints, base_frequency=1.0, held={"joint_1": 9.0})


def test_refuses_springs_too_soft_for_the_link():
    robot = flexible_link.robot()
    limits = MotionLimits.of(robot, 15.0, position_lower=0.5)
    soft = FlexibleJoints(100.0, viscous=flexible_link.VISCOUS)
    settings = {**QUICK_FLEXIBLE, "candidates": 1, "starts": 0, "harmonics": 2, "base_frequency": 1.0}
    with pytest.raises(TrajectoryError, match=r"no motion is found: the spring of joint 's2' would wind up by \d+°"):
        flexible_excitation(robot, limits, soft, **settings).plan()


def test_motions_without_prediction_have_a_constant_objective():
    problem = create_flexible_excitation(NEAR_HZ)._search._problem
    vector = np.random.default_rng(0).standard_normal(2 * HARMONICS - 1)
    value, excess = problem.evaluate(20.0 * vector, 2.0)
    assert value == UNPREDICTED_OBJECTIVE
    assert not problem.gradient(np.ones_like(excess)).any()
    value, excess = problem.evaluate(0.1 * vector, 2.0)
    assert abs(value) < 100
    weights = np.random.default_rng(1).uniform(size=excess.shape)
    gradient = problem.gradient(weights)

    def lagrangian(vector):
        value, excess = problem.evaluate(vector, 2.0)
        return value + float(np.sum(weights * excess))

    expected = numerical_gradient(lagrangian, 0.1 * vector)
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())


ACCELERATION_LIMITS = np.array([5.0, 5.0, 8.0, 12.0, 12.0, 15.0])
MARGIN = np.array([0.05, 0.05, 0.05, 0.05, 0.3, 0.05])  # `clearance` does not apply to links of a wrist
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


def create_demo_excitation(**settings):
    robot = RobotModel.from_urdf(DEMO_ARM)
    guards = {"speed_fraction": 0.8, "travel_speed_fraction": 0.6, "position_margin": MARGIN}
    limits = MotionLimits.of(robot, ACCELERATION_LIMITS)
    return FourierExcitation(robot, limits, Workspace(robot, 0.1, 0.1), **{**guards, **QUICK, **settings})


def create_planar_excitation(**settings):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    return FourierExcitation(robot, MotionLimits.of(robot, 10.0), **{**QUICK, **settings})


@pytest.fixture(scope="module")
def plan():
    return create_demo_excitation().plan()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_designed_motion_respects_limits_and_workspace_in_mujoco(seed, plan):
    plan = create_demo_excitation(seed=seed, starts=0, candidates=6).plan() if seed else plan
    motion = plan.trajectory
    position, velocity, acceleration = motion.at(np.arange(0.0, motion.duration, 0.01))
    assert np.all(np.abs(velocity) <= 0.8 * DEMO_SPEEDS)
    assert np.all(np.abs(acceleration) <= 0.8 * ACCELERATION_LIMITS)
    check_demo_arm(position, margin=MARGIN, floor=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_arms_respect_and_use_their_limits(seed):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 3)
    robot = RobotModel.from_urdf(text, tip=TIP)
    acceleration_limits = rng.uniform(0.5, 20.0, 3)
    jerk = rng.uniform(20.0, 200.0, 3)
    gravity = np.abs(robot.gravity_torque(np.random.default_rng(0).uniform(-2, 2, (200, 3)))).max(axis=0)
    torque = 1.5 * gravity + 1.0
    limits = MotionLimits.of(robot, acceleration_limits, velocity_limits=rng.uniform(0.1, 3.0, 3), jerk_limits=jerk)
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
        assert np.all(np.abs(acceleration) <= 0.81 * acceleration_limits)
        check_limits(sampled, limits)
    needed = np.array([arm.inverse_dynamics(*sample) for sample in zip(position, velocity, acceleration, strict=True)])
    assert np.all(np.abs(needed) <= 0.91 * torque)
    used = [
        np.ptp(motion.position, axis=0) / (limits.upper - limits.lower),
        np.abs(motion.velocity).max(axis=0) / limits.velocity,
        np.abs(motion.acceleration).max(axis=0) / (0.8 * acceleration_limits),
    ]
    assert np.max(used) > 0.9  # the design uses the available range


def test_motion_starts_and_ends_at_rest_and_can_be_approached(plan):
    excitation = create_demo_excitation()
    check_start(plan.trajectory, plan.trajectory.position[0])
    assert not plan.trajectory.velocity[-1].any()
    np.testing.assert_allclose(plan.trajectory.position[-1], plan.trajectory.position[0], atol=1e-9)
    approach = excitation.approach_motion([0.0, 0.5, 1.0, 0.0, 0.8, 0.0], plan)
    np.testing.assert_allclose(approach.position[-1], plan.trajectory.position[0], atol=1e-12)
    check_limits(approach, excitation.limits)


def test_condition_number_matches_pinocchios_regressor(plan):
    robot = RobotModel.from_urdf(DEMO_ARM)
    arm = PinocchioArm(DEMO_ARM.read_text(), robot.joint_names, robot.gravity)
    base = robot.base_parameters(FrictionModel(JointFriction(offset=True, rotor_inertia=True)))
    times = np.arange(24 * 3) / (24 * 3 * 0.1)
    for direction, tolerance in (
        (lambda qd: np.tanh(qd / (SMOOTHING_FRACTION * 0.8 * DEMO_SPEEDS)), 1e-6),
        (np.sign, 0.1),
    ):
        rows = []
        for q, qd, qdd in zip(*plan.series.at(times), strict=True):
            terms = np.stack([direction(qd), qd, np.ones(6), qdd], axis=1)
            drive_rows = [np.outer(np.eye(6)[j], terms[j]) for j in range(6)]
            rows.append(np.hstack([arm.torque_regressor(q, qd, qdd), *drive_rows]))
        matrix = np.concatenate(rows)[:, base.columns]
        scaled = matrix / np.linalg.norm(matrix, axis=0)
        assert plan.facts["base_parameters"] == matrix.shape[1] == 58
        assert plan.condition_number == pytest.approx(np.linalg.cond(scaled), rel=tolerance)
    values = plan.singular_values
    assert values[0] / values[-1] == pytest.approx(plan.condition_number, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["condition", "condition_unscaled", "determinant"])
def test_search_beats_random_motions_by_its_criterion(criterion):
    random = create_demo_excitation(criterion=criterion, candidates=8, starts=0).plan()
    optimized = create_demo_excitation(criterion=criterion).plan()
    assert random.starts == 0
    assert optimized.starts == 1
    assert optimized.criterion == criterion
    gain = np.exp(random.value - optimized.value) if criterion == "determinant" else random.value / optimized.value
    assert gain > {"condition": 2.0, "condition_unscaled": 2.0, "determinant": 1.3}[criterion]
    values = [value for _, value in optimized.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] == optimized.value


@pytest.mark.parametrize("setting", ["harmonics", "criterion", "design_time", "workers", "seed"])
def test_defaults_equal_the_parameter_file(setting):
    text = (Path(__file__).parents[2] / "config" / "excitation.yaml").read_text()
    expected = yaml.safe_load(text)["/**"]["ros__parameters"][setting]
    assert signature(FourierExcitation).parameters[setting].default == expected


def test_default_noise_is_proportional_to_torque_limits():
    limits = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf()), 10.0, torque_limits=[50.0, 20.0, 5.0])
    quick = {name: value for name, value in QUICK.items() if name != "noise"}
    settings = {**quick, "starts": 0, "criterion": "determinant"}
    values = [
        FourierExcitation(RobotModel.from_urdf(planar_arm.urdf()), limits, **settings, **noise).plan().value
        for noise in ({}, {"noise": [0.5, 0.2, 0.05]}, {"noise": 1.0})
    ]
    assert values[0] == pytest.approx(values[1])
    assert abs(values[0] - values[2]) > 0.1


@pytest.mark.slow
def test_prior_information_changes_the_motion():
    """Another motion adds more information than the repetition of a motion that was recorded many times."""
    first = create_planar_excitation(criterion="determinant")
    series = first.plan().series
    time = np.linspace(0.0, 10.0, 500)
    q, qd, qdd = series.at(time)
    recorded = first.information.over_time(time, q, qd, qdd)
    prior = 50.0 * recorded  # so many recordings that repetition hardly pays
    informed = create_planar_excitation(criterion="determinant", known=prior).plan()
    information = {}
    for name, motion in (("repeated", series), ("informed", informed.series)):
        total = prior + first.information.over_time(time, *motion.at(time))
        information[name] = np.linalg.slogdet(total).logabsdet
    assert information["informed"] > information["repeated"]
    assert informed.value < first.plan().value


@pytest.mark.slow
def test_result_does_not_depend_on_the_number_of_processes():
    serial = create_planar_excitation(starts=2).plan()
    parallel = create_planar_excitation(starts=2, workers=2).plan()
    np.testing.assert_array_equal(serial.series.sine, parallel.series.sine)
    assert serial.value == parallel.value


def test_search_returns_within_its_time_and_can_be_interrupted():
    reported = []

    def stop_after_three_reports(part, best):
        reported.append((part, best.value))
        if len(reported) == 3:
            raise KeyboardInterrupt

    plan = create_demo_excitation(design_time=0.5, starts=None, candidates=1).plan()
    assert plan.duration == 10.0
    with pytest.raises(KeyboardInterrupt):
        create_planar_excitation(design_time=30.0, starts=None).plan(stop_after_three_reports)
    assert len(reported) == 3
    assert all(0 <= part <= 1 and np.isfinite(value) for part, value in reported)


def test_warns_about_high_condition_numbers(monkeypatch):
    monkeypatch.setattr(fourier_excitation, "MAX_CONDITION_NUMBER", 1.0)
    last = create_planar_excitation(starts=0).plan().summary().splitlines()[-1]
    assert last.startswith("warning: condition number above 1")


def test_reports_what_prevents_a_motion():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 10.0)
    with pytest.raises(TrajectoryError, match=r"none of 4096 poses is allowed: in the way is .* and the floor"):
        FourierExcitation(robot, limits, Workspace(robot, floor_height=5.0), **QUICK).plan()
    level = replace(limits, lower=np.full(3, -0.5), upper=np.full(3, 0.5), torque=np.array([50.0, 1.0, 50.0]))
    with pytest.raises(TrajectoryError, match=r"in the way is torque of joint 'joint_2' \(\d+ % of the poses"):
        FourierExcitation(robot, level, **QUICK).plan()
    with pytest.raises(TrajectoryError, match=r"'joint_2' needs up to \d+ N m .*--torque-limits joint_2"):
        FourierExcitation(robot, level, **QUICK).plan()
    wall = Obstacle("cage", [-0.05, -2.0, 0.0], [2.0, 2.0, 2.0])
    with pytest.raises(TrajectoryError, match="obstacle 'cage'"):
        FourierExcitation(robot, limits, Workspace(robot, obstacles=[wall]), **QUICK).plan()
    with pytest.raises(TrajectoryError, match="joint 'joint_1' has no room left between its limits"):
        FourierExcitation(robot, limits, position_margin=2.5)


def test_small_ranges_have_a_margin_of_a_tenth():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = replace(MotionLimits.of(robot, 10.0), lower=np.array([-1.0, -1.0, 0.0]), upper=np.array([1.0, 1.0, 0.04]))
    np.testing.assert_allclose(FourierExcitation(robot, limits).margin, [0.05, 0.05, 0.004])
    excitation = FourierExcitation(robot, limits, position_margin=[0.0, np.nan, 0.01])
    np.testing.assert_allclose(excitation.margin, [0.0, 0.05, 0.01])


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
        ({"noise": -1.0}, "the noise of joint_1 is -1; it must be positive and finite"),
        ({"design_time": -1.0}, "design_time is -1.0; it must be zero or more"),
        ({"starts": -1}, "starts is -1; it must be zero or more"),
        ({"workers": -1}, "workers is -1; it must be zero or more"),
        ({"candidates": 0}, "candidates is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be zero or more"),
    ],
)
def test_refuses_invalid_excitation_settings(setting, message):
    with pytest.raises(TrajectoryError, match=message):
        create_demo_excitation(**setting)


def test_held_joints_do_not_excite_friction():
    plan = create_planar_excitation(target="gravity", held={"joint_2": 0.3}, starts=0).plan()
    assert plan.condition_number == np.inf
    assert plan.singular_values[-1] == 0.0

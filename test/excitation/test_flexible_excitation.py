"""Designed motions of flexible joints: near the resonance they tell link and motor apart."""

import flexible_link
import numpy as np
import planar_arm
import pytest
from flexible_link import RESONANCE, TRUTH
from numerical_gradient import numerical_gradient

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.fourier_excitation import flexible_excitation
from dynid_ros.excitation.fourier_problem import UNFORESEEN
from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance
from dynid_ros.model import RobotModel
from dynid_ros.signals.periodic import FourierSeries as Projection
from dynid_ros.trajectories import MotionLimits, check_limits

QUICK = {"workers": 1, "candidates": 2, "starts": 1, "design_time": 60.0, "speed_fraction": 1.0}
HARMONICS = 6
NEAR, LOW = proposed_base_frequency(RESONANCE, HARMONICS), 0.2
RATE, REPEATS = 250.0, 4
MOTOR_NOISE, LINK_NOISE, TORQUE_NOISE = np.deg2rad(0.011), np.deg2rad(0.05), 0.005


def experiment(base_frequency, **settings):
    robot = flexible_link.robot()
    limits = MotionLimits.of(robot, 15.0)
    given = QUICK | {"harmonics": HARMONICS} | settings
    return flexible_excitation(robot, limits, flexible_link.JOINTS, base_frequency=base_frequency, **given)


@pytest.fixture(scope="module")
def near():
    return experiment(NEAR).plan()


@pytest.fixture(scope="module")
def low():
    return experiment(LOW).plan()


@pytest.mark.slow
def test_condition_number_is_far_lower_than_by_chance_and_than_at_a_low_frequency():
    numbers = {}
    for frequency in (NEAR, LOW):
        sought = experiment(frequency, criterion="condition", harmonics=5)
        numbers[frequency] = sought.plan().condition_number
        chance = [sought._search.candidate(number).value for number in range(5)]
        assert numbers[frequency] < min(0.2 * np.median(chance), *chance)
    assert numbers[NEAR] < 6
    assert numbers[LOW] > 4 * numbers[NEAR]


@pytest.mark.slow
def test_motion_keeps_to_the_limits_of_motors_whose_links_follow(near):
    limits = MotionLimits.of(flexible_link.robot(), 15.0)
    check_limits(near.trajectory, limits)
    time = np.linspace(0.0, near.series.period, 400)
    q, _ = flexible_link.steady_motion(near.series, time)
    torque = flexible_link.motor_torque(near.series, time, q)
    assert np.abs(torque).max() < 0.8 * 300.0 * 1.03
    # A rigid arm would need far less: that the links swing is what the design makes use of.
    rigid = flexible_link.robot().inverse_dynamics(*near.series.at(time))
    assert np.abs(torque).max() > 1.3 * np.abs(rigid).max()


@pytest.mark.slow
def test_least_squares_of_a_noisy_recording_is_far_better_near_the_resonance(near, low):
    """With the noise of the paper's sensors, over about 20 s (errors of seven parameters)."""
    errors = {name: _errors(plan.series) for name, plan in (("near", near), ("low", low))}
    told_apart = [0, 4, 5, 6]  # I, v, J and b
    assert np.all(errors["near"][told_apart] < 0.5 * errors["low"][told_apart])
    inertia, motor_inertia = errors["near"][[0, 5]]
    assert inertia < 0.02
    assert motor_inertia < 0.06
    assert errors["low"][5] > 0.1


def test_one_joint_moves_while_brakes_hold_the_others():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 20.0)
    joints = FlexibleJoints([4e3, 3e3, 600.0], [0.3, 0.2, 0.05], 1.0, 1.0, [8.0, 6.0, 2.0])
    held = {"joint_1": 0.5, "joint_3": -0.7}
    pose = [0.5, 0.0, -0.7]
    frequency = proposed_base_frequency(
        resonance(robot, joints.stiffness, joints.motor_inertia, pose, ["joint_2"]).driven, 4
    )
    plan = flexible_excitation(
        robot, limits, joints, base_frequency=frequency, harmonics=4, held=held, **QUICK | {"starts": 0}
    ).plan()
    for name, position in held.items():
        assert np.ptp(plan.trajectory.position[:, robot.joint_names.index(name)]) == 0.0
        assert plan.trajectory.position[0, robot.joint_names.index(name)] == position
    assert np.ptp(plan.trajectory.position[:, 1]) > 0.01
    with pytest.raises(TrajectoryError, match=r"held: joint 'joint_1' at 9 is not within"):
        flexible_excitation(robot, limits, joints, base_frequency=1.0, held={"joint_1": 9.0})


def test_a_spring_that_cannot_carry_the_link_is_what_the_refusal_names():
    robot = flexible_link.robot()
    limits = MotionLimits.of(robot, 15.0, position_lower=0.5)
    soft = FlexibleJoints(100.0, viscous=flexible_link.VISCOUS)
    given = QUICK | {"candidates": 1, "starts": 0, "harmonics": 2, "base_frequency": 1.0}
    with pytest.raises(TrajectoryError, match=r"no motion is found: the spring of joint 's2' would wind up by \d+°"):
        flexible_excitation(robot, limits, soft, **given).plan()


def test_search_steps_back_from_what_cannot_be_foreseen():
    problem = experiment(NEAR)._search._problem
    vector = np.random.default_rng(0).standard_normal(2 * HARMONICS - 1)
    value, excess = problem.evaluate(20.0 * vector, 2.0)
    assert value == UNFORESEEN
    assert not problem.gradient(np.ones_like(excess)).any()
    value, excess = problem.evaluate(0.1 * vector, 2.0)
    assert abs(value) < 100
    weights = np.random.default_rng(1).uniform(size=excess.shape)
    found = problem.gradient(weights)

    def lagrangian(vector):
        value, excess = problem.evaluate(vector, 2.0)
        return value + float(np.sum(weights * excess))

    expected = numerical_gradient(lagrangian, 0.1 * vector)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_resonance_of_one_link_and_of_two_in_a_line():
    link = resonance(flexible_link.robot(), flexible_link.STIFFNESS, flexible_link.MOTOR_INERTIA, [0.3])
    assert link.driven == pytest.approx([RESONANCE])
    both = 1 / flexible_link.INERTIA + 1 / flexible_link.MOTOR_INERTIA
    assert link.free == pytest.approx([np.sqrt(flexible_link.STIFFNESS * both) / (2 * np.pi)])
    robot = RobotModel.from_urdf(planar_arm.urdf())
    # Joints 2 and 3 are parallel: a double pendulum without gravity.
    (_, m, n), (_, c, d), a = planar_arm.MASS, planar_arm.CENTRE, planar_arm.LENGTH
    c, d = planar_arm.CENTRE[1:]
    far = 0.01 + n * d**2
    coupled = far + n * a * d * np.cos(0.4)
    near = 0.01 + m * c**2 + n * a**2 + far + 2 * n * a * d * np.cos(0.4)
    mass = np.array([[near, coupled], [coupled, far]])
    values = np.linalg.eigvals(np.linalg.solve(mass, np.diag([900.0, 400.0])))
    found = resonance(robot, [1.0, 900.0, 400.0], 0.1, [0.0, 0.2, 0.4], ["joint_2", "joint_3"])
    np.testing.assert_allclose(found.driven, np.sort(np.sqrt(values)) / (2 * np.pi))
    with pytest.raises(TrajectoryError, match="stiffness and motor_inertia must be positive"):
        resonance(robot, 0.0, 1.0, np.zeros(3))
    with pytest.raises(TrajectoryError, match="resonance: joints elbow; expected some of joint_1"):
        resonance(robot, 1.0, 1.0, np.zeros(3), ["elbow"])


def test_proposed_base_frequency():
    assert proposed_base_frequency(8.0, 5) == pytest.approx(2.0)  # the highest harmonic is at 10 Hz
    assert proposed_base_frequency([4.0, 8.0], 2) == pytest.approx(2.0)  # half the lowest resonance
    assert proposed_base_frequency(8.0, 5, rate=50.0) == pytest.approx(1.0)  # ten commands a cycle
    with pytest.raises(TrajectoryError, match="must be positive"):
        proposed_base_frequency([], 5)


def _errors(series):
    """Relative errors (7,), root mean square over recordings, of least squares on eq. 6 of harmonics."""
    frequency = series.base_frequency
    count = round(np.floor(20.0 * frequency) / frequency * RATE)
    time = np.arange(count) / RATE
    q, _ = flexible_link.steady_motion(series, time, settling=6.0)
    q_m = series.at(time)[0][:, 0]
    torque = flexible_link.motor_torque(series, time, q)
    estimates = []
    for seed in range(REPEATS):
        noise = np.random.default_rng(seed).standard_normal((3, count))
        noise *= [[LINK_NOISE], [MOTOR_NOISE], [TORQUE_NOISE * np.abs(torque).max()]]
        recorded = np.stack([q, q_m, torque], axis=1) + noise.T
        estimates.append(_least_squares(time, recorded, frequency))
    return np.sqrt(np.mean((np.array(estimates) - TRUTH) ** 2, axis=0)) / np.abs(TRUTH)


def _least_squares(time, recorded, frequency):
    """Parameters of eq. 6 from harmonics of position, motor position and torque (N, 3); columns are cut off alike."""
    kept = 2 * HARMONICS
    series = Projection.fit(time, recorded, frequency, kept)
    at = np.arange(24 * kept) / (24 * kept * frequency)
    (q, _, u), (qd, qd_m, _), (qdd, qdd_m, _) = (series.evaluate(at, order).T for order in range(3))
    columns = np.stack([qdd, -np.sin(q), np.cos(q), np.sign(qd), qd, qdd_m, qd_m], axis=1)
    spectrum = np.fft.rfft(columns, axis=0)
    spectrum[kept + 1 :] = 0.0
    return np.linalg.lstsq(np.fft.irfft(spectrum, len(at), axis=0), u, rcond=None)[0]

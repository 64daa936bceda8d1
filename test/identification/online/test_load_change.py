"""Detection of pick-ups and drops without false alarms."""

import numpy as np
import pytest
from online_experiment import (
    STANDING,
    block,
    identified_model,
    measure,
    measure_presliding,
    moves,
    mujoco_torque,
    standstills,
)
from scipy.stats import chi2

from dynid_ros.identification import OnlineIdentification
from dynid_ros.identification.online.load_change import CORRELATION_S, LoadChangeDetector
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import STATIC
from dynid_ros.simulation.descriptions import demo_arm_urdf

RATE_HZ = 100.0


def _innovation(detector: LoadChangeDetector, time: float, columns, error, **state):
    """Return the change detected at an innovation; by default all joints move."""
    n = len(error)
    arguments = {"looseness": np.ones(n), "moving": True, "position": np.zeros(n), **state}
    return detector.add(time, np.column_stack([columns, error]), error, np.zeros(n), **arguments)


def test_detects_a_pick_up_and_a_drop():
    robot = RobotModel.from_urdf(demo_arm_urdf())
    rng = np.random.default_rng(4)
    motion = moves(robot, 52.0, RATE_HZ, rng)
    q, torque = measure(robot, motion, mujoco_torque(robot, motion, [(30.0, block(1.5)), (40.0, None)]), rng)
    online = OnlineIdentification(robot, arm=identified_model(robot), forgetting=10.0)
    for k, time in enumerate(motion.time):
        if k == round(40.0 * RATE_HZ):
            carried = online.estimate().load()
        online.sample(time, q[k], torque[k])
    assert carried.mass == pytest.approx(1.5, abs=0.2)
    up, down = online.changes
    assert 30.0 < up.noticed < 30.5
    assert up.time == pytest.approx(30.0, abs=0.2)
    assert 40.0 < down.noticed < 40.5
    assert up.mass > 0.3
    assert down.mass < -0.3
    # The load is forgotten twelve seconds after the drop.
    estimate = online.estimate()
    assert estimate.values[0] == pytest.approx(0.0, abs=max(0.2, 4 * estimate.standard_errors[0]))


def test_white_innovations_of_any_size_cause_no_alarm():
    """The statistics are estimated: noise of three times the stated size is not a change."""
    rng = np.random.default_rng(0)
    n = 6
    detector = LoadChangeDetector(n, 0.04)
    columns = rng.normal(size=(n, 4))
    alarms = 0
    for k in range(2500):
        noisy_columns = columns * np.sin(0.01 * k) + 0.1 * rng.normal(size=(n, 4))
        error = rng.normal(size=n) * (3.0 if k > 500 else 1.0)
        alarms += _innovation(detector, 0.04 * k, noisy_columns, error, moving=(k // 500) % 2 == 0) is not None
    assert alarms <= 1  # the step of the noise may cause one


@pytest.mark.slow
def test_detects_a_change_after_a_day_without_noise():
    rng = np.random.default_rng(0)
    n = 4
    detector = LoadChangeDetector(n, 10.0)
    for k in range(9000):
        columns = rng.normal(size=(n, 4))
        change = _innovation(detector, 10.0 * k, columns, (k == 8999) * columns @ [1.0, 0.0, 0.1, 0.0])
    assert change is not None
    assert change.mass == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("creep", [0.0, 3e-4])
def test_torque_change_at_rest_is_a_load_change_unless_a_joint_creeps(creep):
    """Stiction may explain a torque change of a joint that moved by a tiny distance."""
    rng = np.random.default_rng(0)
    n = 4
    detector = LoadChangeDetector(n, 0.04, stiction=np.full(n, 20.0))
    columns = rng.normal(size=(n, 4))
    changes = []
    for k in range(330):
        started = min(max(k - 300, 0) / 5, 1.0)
        torque = 0.3 * rng.normal(size=n)
        position = np.zeros(n)
        torque[0] += 12.0 * started
        position[0] = creep * started
        change = _innovation(detector, 0.04 * k, columns, torque, moving=False, position=position)
        changes += [] if change is None else [change.noticed]
    assert bool(changes) == (creep == 0.0)


@pytest.mark.slow
def test_slow_start_is_no_drop():
    """Friction of joints at rest reverses as they creep, before their motion is detected."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    rng = np.random.default_rng(0)
    motion = moves(robot, 120.0, RATE_HZ, rng, 0.1, (3.0, 10.0))
    q, torque = measure_presliding(robot, motion, mujoco_torque(robot, motion, [(0.0, block(1.5))]), rng)
    online = OnlineIdentification(robot, arm=identified_model(robot))
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    assert standstills(motion)
    assert online.changes == []


@pytest.mark.parametrize("rests", [None, STANDING])
def test_friction_errors_and_rests_are_no_load_change(rests):
    """Friction reverses over millimetres, in slow moves between poses, with or without rests."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    rng = np.random.default_rng(1)
    options = {} if rests is None else {"rests": rests}
    motion = moves(robot, 200.0, RATE_HZ, rng, **options)
    motion = type(motion)(*(values[: int(40 * RATE_HZ)] for values in motion))
    torque = mujoco_torque(robot, motion, [])
    q, torque = (measure if rests is None else measure_presliding)(robot, motion, torque, rng)
    online = OnlineIdentification(robot, arm=identified_model(robot), forgetting=10.0)
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    assert online.changes == []


def _detection_times(
    detector: LoadChangeDetector, torque, *, position=None, moving=False, count=600, noise=0.3
) -> list:
    """Return the detection times of changes of the mass (in motion) or of the torque of joint 1 (at rest)."""
    rng = np.random.default_rng(0)
    n = 4
    columns = rng.normal(size=(n, 4))
    noticed = []
    for k in range(count):
        place = np.zeros(n)
        place[0] = 0.0 if position is None else position(k)
        error = noise * rng.normal(size=n)
        error += torque(k) * (columns[:, 0] if moving else np.eye(n)[0])
        change = _innovation(detector, 0.04 * k, columns, error, moving=moving, position=place)
        if change is not None:
            noticed.append(change.noticed)
            detector.restart()
    return noticed


@pytest.mark.parametrize(("per_hour", "detected"), [(1e-9, False), (10.0, True)])
def test_rate_of_false_alarms_sets_the_threshold(per_hour, detected):
    detector = LoadChangeDetector(4, 0.04, per_hour)
    noticed = _detection_times(detector, lambda k: 2.0 * (400 <= k < 420), moving=True, count=420, noise=1.0)
    assert bool(noticed) == detected


@pytest.mark.parametrize(("after", "detected"), [(3, False), (60, True)])
def test_joint_counts_as_at_rest_after_creeping(after, detected):
    detector = LoadChangeDetector(4, 0.04, stiction=np.full(4, 20.0))
    creeps = 300
    noticed = _detection_times(
        detector,
        lambda k: 12.0 * (k >= creeps + after),
        position=lambda k: 3e-4 * (k >= creeps),
        count=creeps + after + 15,
    )
    assert bool(noticed) == detected


@pytest.mark.parametrize(("later", "number"), [(0.4, 1), (3.0, 2)])
def test_detects_a_second_change_after_a_pause_only(later, number):
    detector = LoadChangeDetector(4, 0.04)
    second = 300 + round(later / 0.04)
    # Detection pauses longer than the second change lasts.
    noticed = _detection_times(
        detector, lambda k: 6.0 * (300 <= k < 306) + 6.0 * (second <= k < second + 6), moving=True, count=second + 12
    )
    assert len(noticed) == number


@pytest.mark.parametrize("per_hour", [0.1, 5.0])
def test_windows_of_all_lengths_share_the_false_alarm_rate(per_hour):
    detector = LoadChangeDetector(4, 0.04, per_hour)
    lengths = 0.04 * np.array([2, 5, 10, 20])
    chances = chi2.sf(detector._hotelling(1e7), STATIC)
    assert np.sum(3600 / lengths * chances) == pytest.approx(per_hour, rel=0.01)


def test_threshold_of_a_short_run_follows_hotelling():
    """The probability is limited to one per cent."""
    threshold = LoadChangeDetector(4, 0.04, 1e6)._hotelling(12 * CORRELATION_S)[0]
    samples, error = np.split(np.random.default_rng(0).normal(size=(20_000, 13, STATIC)), [12], axis=1)
    scatter = np.swapaxes(samples, 1, 2) @ samples / 12
    statistic = np.sum(error[:, 0] * np.linalg.solve(scatter, error[:, 0, :, None])[:, :, 0], axis=1)
    assert np.mean(statistic > threshold) == pytest.approx(0.01, abs=0.003)


@pytest.mark.parametrize(("gain_error", "detected"), [(0.0, True), (0.05, False)])
def test_torque_within_the_gain_error_is_no_change(gain_error, detected):
    """The torque of a joint with a gain error of 5 % grows by a factor of twenty."""
    rng = np.random.default_rng(0)
    detector = LoadChangeDetector(4, 0.04)
    columns = rng.normal(size=(4, 4))
    changes = []
    for k in range(420):
        torque = np.array([400.0 if k >= 400 else 20.0, 0.0, 0.0, 0.0])
        error = 0.05 * torque + rng.normal(size=4)
        change = _innovation(detector, 0.04 * k, columns, error, systematic=(gain_error * torque) ** 2)
        changes += [] if change is None else [change]
    assert bool(changes) == detected


def learn_deviation(n_samples, scale=lambda k: 1.0, looseness=lambda k: 1.0):
    """Return the learnt deviation (4,) of scaled innovations; the first joint has another looseness."""
    rng = np.random.default_rng(0)
    detector = LoadChangeDetector(4, 0.04)
    for k in range(n_samples):
        loose = np.array([looseness(k), 1.0, 1.0, 1.0])
        _innovation(detector, 0.04 * k, np.zeros((4, 4)), scale(k) * rng.normal(size=4) / loose, looseness=loose)
    return np.diag(np.linalg.inv(detector._statistics[True].precision)) ** 0.5


def test_rests_do_not_reduce_the_scatter_in_motion():
    """A joint rests for three quarters of the time while others move."""
    deviation = learn_deviation(2000, looseness=lambda k: 1.0 if k % 100 < 25 else 500.0)
    np.testing.assert_allclose(deviation, 1.0, atol=0.15)


def test_scatter_of_a_late_moving_joint_counts_fully():
    """A joint rests for 80 s; its innovations in the next 20 s are three times as large as expected."""
    scale = np.array([3.0, 1.0, 1.0, 1.0])
    assert learn_deviation(2500, lambda _: scale, lambda k: 500.0 if k < 2000 else 1.0)[0] > 2.4


def test_scatter_is_robust_against_one_outlier():
    """The square of an innovation is limited to four times the mean; without the limit the deviation would treble."""
    deviation = learn_deviation(1001, scale=lambda k: 1.0 if k < 1000 else 100.0)
    np.testing.assert_allclose(deviation, 1.0, atol=0.15)


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_torque_rise_before_a_motion_is_no_load_change(leaves, sign):
    rng = np.random.default_rng(0)
    spacing = 0.02
    detector = LoadChangeDetector(3, spacing)
    columns = np.random.default_rng(1).normal(size=(3, 4))
    changes = []
    for k in range(2000):
        time = k * spacing
        moves = leaves and time >= 30.16
        right = rng.normal(size=3) + sign * 20.0 * (time >= 30.0 and not moves) * columns[:, 0]
        change = _innovation(detector, time, columns, right, moving=k == 0 or moves)
        changes += [] if change is None else [change]
    assert bool(changes) is not leaves
    if changes:
        assert 30.15 < changes[0].noticed < 30.6
        assert sign * changes[0].mass > 0.0

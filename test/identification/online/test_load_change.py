"""Pick-ups and drops are noticed at once, and nothing else is."""

import numpy as np
import pytest
from online_experiment import STANDING, believed, block, measured, moves, mujoco_torque, standstills, stuck
from scipy.stats import chi2

from dynid_ros.identification import OnlineIdentification
from dynid_ros.identification.online.load_change import CORRELATION_S, LoadChangeDetector
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import STATIC
from dynid_ros.simulation.descriptions import demo_arm_urdf

RATE = 100.0


def _innovation(detector: LoadChangeDetector, time: float, columns, error, **state):
    """What is noticed at an innovation of joints that are seen to move, unless the state says otherwise."""
    n = len(error)
    given = {"looseness": np.ones(n), "moving": True, "position": np.zeros(n)} | state
    return detector.add(time, np.column_stack([columns, error]), error, np.zeros(n), **given)


def test_a_block_is_picked_up_and_dropped():
    robot, rng = RobotModel.from_urdf(demo_arm_urdf()), np.random.default_rng(4)
    motion = moves(robot, 52.0, RATE, rng)
    q, torque = measured(robot, motion, mujoco_torque(robot, motion, [(30.0, block(1.5)), (40.0, None)]), rng)
    online = OnlineIdentification(robot, arm=believed(robot), forgetting=10.0)
    for k, time in enumerate(motion.time):
        if k == round(40.0 * RATE):
            carried = online.estimate().load()
        online.sample(time, q[k], torque[k])
    assert carried.mass == pytest.approx(1.5, abs=0.2)
    up, down = online.changes
    assert 30.0 < up.noticed < 30.5
    assert up.time == pytest.approx(30.0, abs=0.2)
    assert 40.0 < down.noticed < 40.5
    assert up.mass > 0.3
    assert down.mass < -0.3
    # Twelve seconds after the drop the old load is forgotten.
    estimate = online.estimate()
    assert estimate.values[0] == pytest.approx(0.0, abs=max(0.2, 4 * estimate.standard_errors[0]))


def test_white_innovations_of_any_size_raise_no_alarm():
    """The statistics are measured: noise that is three times what it was said to be is no change."""
    rng, n = np.random.default_rng(0), 6
    detector = LoadChangeDetector(n, 0.04)
    columns, alarms = rng.normal(size=(n, 4)), 0
    for k in range(2500):
        seen = columns * np.sin(0.01 * k) + 0.1 * rng.normal(size=(n, 4))
        error = rng.normal(size=n) * (3.0 if k > 500 else 1.0)
        alarms += _innovation(detector, 0.04 * k, seen, error, moving=(k // 500) % 2 == 0) is not None
    assert alarms <= 1  # the step of the noise itself may be one


@pytest.mark.slow
def test_a_day_without_any_noise_does_no_harm():
    rng, n = np.random.default_rng(0), 4
    detector = LoadChangeDetector(n, 10.0)
    for k in range(9000):
        columns = rng.normal(size=(n, 4))
        change = _innovation(detector, 10.0 * k, columns, (k == 8999) * columns @ [1.0, 0.0, 0.1, 0.0])
    assert change is not None
    assert change.mass == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("way", [0.0, 3e-4])
def test_at_rest_a_torque_changes_with_the_load_or_with_a_joint_that_creeps(way):
    """What stiction may have done as the joint went a hair's breadth is no change of the load."""
    rng, n = np.random.default_rng(0), 4
    detector = LoadChangeDetector(n, 0.04, stiction=np.full(n, 20.0))
    columns, changes = rng.normal(size=(n, 4)), []
    for k in range(330):
        started = min(max(k - 300, 0) / 5, 1.0)
        torque, position = 0.3 * rng.normal(size=n), np.zeros(n)
        torque[0] += 12.0 * started
        position[0] = way * started
        change = _innovation(detector, 0.04 * k, columns, torque, moving=False, position=position)
        changes += [] if change is None else [change.noticed]
    assert bool(changes) == (way == 0.0)


@pytest.mark.slow
def test_an_arm_that_sets_off_slowly_has_dropped_nothing():
    """Friction of joints that stood reverses as they creep off, before any of them is seen to move."""
    robot, rng = RobotModel.from_urdf(demo_arm_urdf()), np.random.default_rng(0)
    motion = moves(robot, 120.0, RATE, rng, 0.1, (3.0, 10.0))
    q, torque = stuck(robot, motion, mujoco_torque(robot, motion, [(0.0, block(1.5))]), rng)
    online = OnlineIdentification(robot, arm=believed(robot))
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    assert standstills(motion)
    assert online.changes == []


@pytest.mark.parametrize("rests", [None, STANDING])
def test_friction_that_is_off_and_rests_are_no_change(rests):
    """Friction that takes millimetres to turn round, in slow moves between poses in which the arm stands or not."""
    robot, rng = RobotModel.from_urdf(demo_arm_urdf()), np.random.default_rng(1)
    motion = moves(robot, 200.0, RATE, rng, **({} if rests is None else {"rests": rests}))
    motion = type(motion)(*(values[: int(60 * RATE)] for values in motion))
    torque = mujoco_torque(robot, motion, [])
    q, torque = (measured if rests is None else stuck)(robot, motion, torque, rng)
    online = OnlineIdentification(robot, arm=believed(robot), forgetting=10.0)
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    assert online.changes == []


def _torques(detector: LoadChangeDetector, torque, *, position=None, moving=False, count=600, noise=0.3) -> list:
    """Times at which changes of the mass (in motion) or of the torque of joint 1 (at rest) were noticed."""
    rng, n = np.random.default_rng(0), 4
    columns, noticed = rng.normal(size=(n, 4)), []
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


@pytest.mark.parametrize(("per_hour", "seen"), [(1e-9, False), (10.0, True)])
def test_the_rate_of_false_alarms_sets_the_threshold(per_hour, seen):
    detector = LoadChangeDetector(4, 0.04, per_hour)
    noticed = _torques(detector, lambda k: 2.0 * (400 <= k < 420), moving=True, count=420, noise=1.0)
    assert bool(noticed) == seen


@pytest.mark.parametrize(("after", "seen"), [(3, False), (60, True)])
def test_a_joint_that_crept_rests_anew_once_it_stays(after, seen):
    detector = LoadChangeDetector(4, 0.04, stiction=np.full(4, 20.0))
    creeps = 300
    noticed = _torques(
        detector,
        lambda k: 12.0 * (k >= creeps + after),
        position=lambda k: 3e-4 * (k >= creeps),
        count=creeps + after + 15,
    )
    assert bool(noticed) == seen


@pytest.mark.parametrize(("later", "number"), [(0.4, 1), (3.0, 2)])
def test_a_second_change_is_noticed_only_after_a_while(later, number):
    detector, second = LoadChangeDetector(4, 0.04), 300 + round(later / 0.04)
    # The second one is over before changes are looked for again.
    noticed = _torques(
        detector, lambda k: 6.0 * (300 <= k < 306) + 6.0 * (second <= k < second + 6), moving=True, count=second + 12
    )
    assert len(noticed) == number


@pytest.mark.parametrize("per_hour", [0.1, 5.0])
def test_windows_of_all_lengths_share_the_false_alarms(per_hour):
    detector = LoadChangeDetector(4, 0.04, per_hour)
    lengths = 0.04 * np.array([2, 5, 10, 20])
    chances = chi2.sf(detector._hotelling(1e7), STATIC)
    assert np.sum(3600 / lengths * chances) == pytest.approx(per_hour, rel=0.01)


def test_the_threshold_of_a_short_time_is_that_of_a_scatter_that_it_has_shown():
    """Of one per cent, the largest chance that is given."""
    threshold = LoadChangeDetector(4, 0.04, 1e6)._hotelling(12 * CORRELATION_S)[0]
    seen, error = np.split(np.random.default_rng(0).normal(size=(20_000, 13, STATIC)), [12], axis=1)
    scatter = np.swapaxes(seen, 1, 2) @ seen / 12
    statistic = np.sum(error[:, 0] * np.linalg.solve(scatter, error[:, 0, :, None])[:, :, 0], axis=1)
    assert np.mean(statistic > threshold) == pytest.approx(0.01, abs=0.003)


@pytest.mark.parametrize(("gain_error", "seen"), [(0.0, True), (0.05, False)])
def test_a_torque_that_gains_may_feign_is_no_change(gain_error, seen):
    """A joint whose gain is 5 % off carries twenty times of what it carried before."""
    rng, detector = np.random.default_rng(0), LoadChangeDetector(4, 0.04)
    columns, changes = rng.normal(size=(4, 4)), []
    for k in range(420):
        torque = np.array([400.0 if k >= 400 else 20.0, 0.0, 0.0, 0.0])
        error = 0.05 * torque + rng.normal(size=4)
        change = _innovation(detector, 0.04 * k, columns, error, systematic=(gain_error * torque) ** 2)
        changes += [] if change is None else [change]
    assert bool(changes) == seen


def test_rests_of_a_joint_do_not_narrow_what_its_motion_showed():
    """A joint rests for three quarters of the time while others move."""
    rng, detector = np.random.default_rng(0), LoadChangeDetector(4, 0.04)
    for k in range(2000):
        loose = np.array([1.0 if k % 100 < 25 else 500.0, 1.0, 1.0, 1.0])
        error = rng.normal(size=4) / loose
        _innovation(detector, 0.04 * k, np.zeros((4, 4)), error, looseness=loose)
    deviation = np.diag(np.linalg.inv(detector._statistics[True].precision)) ** 0.5
    np.testing.assert_allclose(deviation, 1.0, atol=0.15)


def test_what_a_joint_shows_at_last_counts_as_much_as_what_others_showed_at_first():
    """It rests for 80 s, and its innovations in the 20 s after that are three times as large as expected."""
    rng, detector = np.random.default_rng(0), LoadChangeDetector(4, 0.04)
    for k in range(2500):
        loose = np.array([500.0 if k < 2000 else 1.0, 1.0, 1.0, 1.0])
        error = rng.normal(size=4) / loose * np.array([3.0, 1.0, 1.0, 1.0])
        _innovation(detector, 0.04 * k, np.zeros((4, 4)), error, looseness=loose)
    deviation = np.diag(np.linalg.inv(detector._statistics[True].precision)) ** 0.5
    assert deviation[0] > 2.4


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_torque_that_rises_before_a_joint_moves_is_no_load(leaves, sign):
    rng, spacing = np.random.default_rng(0), 0.02
    detector = LoadChangeDetector(3, spacing)
    columns = np.random.default_rng(1).normal(size=(3, 4))
    found = []
    for k in range(2000):
        time = k * spacing
        moves = leaves and time >= 30.16
        right = rng.normal(size=3) + sign * 20.0 * (time >= 30.0 and not moves) * columns[:, 0]
        change = _innovation(detector, time, columns, right, moving=k == 0 or moves)
        found += [] if change is None else [change]
    assert bool(found) is not leaves
    if found:
        assert 30.15 < found[0].noticed < 30.6
        assert sign * found[0].mass > 0.0


def test_an_innovation_beyond_all_others_hardly_counts():
    """Its square is cut to four times the mean before it is averaged: whole, it would treble the deviation."""
    rng, detector = np.random.default_rng(0), LoadChangeDetector(4, 0.04)
    for k in range(1001):
        error = rng.normal(size=4) * (1.0 if k < 1000 else 100.0)
        _innovation(detector, 0.04 * k, np.zeros((4, 4)), error)
    deviation = np.diag(np.linalg.inv(detector._statistics[True].precision)) ** 0.5
    np.testing.assert_allclose(deviation, 1.0, atol=0.15)

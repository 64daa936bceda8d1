"""test_torque_fit."""

import numpy as np
import planar_arm
import pytest
from scipy.optimize import lsq_linear

from dynid_ros.recording import Recording
from dynid_ros.recording.checks.torque_fit import SYSTEMATIC, Terms, TorqueEquations, motion_samples

RATES = np.array([2.0, 3.0, 4.0])


def torque_at(time):
    return 5 * np.sin(np.outer(time, RATES) + 1)


def recording(duration=20.0, amplitude=1.0):
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.008, 0.012, int(duration * 100)))
    q = amplitude * np.sin(np.outer(time, RATES)) + rng.normal(0, 1e-6, (len(time), 3))
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque_at(time))


def test_motion_and_torque_are_those_of_the_same_times():
    samples = motion_samples([recording()])
    phase = np.outer(samples.time, RATES)
    np.testing.assert_allclose(samples.position, np.sin(phase), atol=2e-3)
    np.testing.assert_allclose(samples.velocity, RATES * np.cos(phase), atol=0.02)
    np.testing.assert_allclose(samples.acceleration, -(RATES**2) * np.sin(phase), atol=0.1)
    np.testing.assert_allclose(samples.torque, torque_at(samples.time), atol=0.02)
    fast = np.abs(np.cos(phase)) > 0.8
    np.testing.assert_allclose(samples.direction[fast], np.sign(np.cos(phase))[fast], atol=0.1)


def test_later_torque():
    samples = motion_samples([recording()])
    np.testing.assert_allclose(samples.delayed_torque(0.013), torque_at(samples.time + 0.013), atol=0.02)


def test_a_recording_at_a_low_rate_takes_part_beside_a_quick_one():
    """The band of the quick motion is beyond half the rate of the other."""
    parts = []
    for rate, faster in ((100.0, 6.0), (5.0, 0.2)):
        time = np.arange(400) / rate
        q = np.sin(np.outer(time, faster * RATES))
        parts.append(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), 5 * q))
    samples = motion_samples(parts)
    assert samples.bandwidth > 2.5
    assert {stretch.part for stretch in samples.stretches} == {0, 1}
    slow = next(stretch for stretch in samples.stretches if stretch.part == 1)
    expected = np.sin(np.outer(slow.time[slow.kept], 0.2 * RATES))
    np.testing.assert_allclose(slow.position[slow.kept], expected, atol=0.01)


def test_fewer_samples_are_some_of_them():
    samples = motion_samples([recording()])
    fewer = samples.thinned(100)
    assert len(fewer) <= 101 < len(samples)
    assert set(fewer.time) <= set(samples.time)


def test_reversals_and_channels_without_torque_do_not_count():
    it = recording()
    torque = it.torque.copy()
    torque[:, 1], torque[:, 2] = 3.0, np.nan
    samples = motion_samples([Recording(it.joint_names, it.time, it.position, it.velocity, torque)])
    assert samples.moving[:, 0].mean() == pytest.approx(1.0, abs=0.03)
    assert not samples.moving[:, 1:].any()
    slow = np.abs(np.cos(RATES[0] * samples.time)) < 0.015
    assert not samples.moving[slow, 0].any()


def test_recordings_at_rest_or_too_short_are_left_out():
    still, short = recording(amplitude=0.0), recording(0.3)
    assert motion_samples([still, short]) is None
    samples = motion_samples([still, recording(), short])
    assert set(samples.part) == {1}


M, N, P, K = 400, 3, 6, 2
REVOLUTE = np.zeros(N, bool)


@pytest.fixture(scope="module")
def problem():
    """Terms, torques and truth: rigid parameters, offsets, coefficients of drives."""
    rng = np.random.default_rng(0)
    terms = Terms(rng.normal(size=(M, N, P)), rng.normal(size=(M, N, K)), rng.random((M, N)) > 0.2)
    rigid, offset, drive = rng.normal(size=P), rng.normal(size=N), rng.uniform(0.5, 1.0, (N, K))
    noise = np.array([0.05, 0.1, 0.3])
    torque = terms.rigid @ rigid + offset + np.einsum("mjk,jk->mj", terms.drive, drive)
    return terms, torque + noise * rng.normal(size=torque.shape), (rigid, offset, drive), noise


def test_truth_and_noise_are_found(problem):
    terms, torque, (rigid, offset, drive), noise = problem
    fit = TorqueEquations(terms, torque, REVOLUTE).fit()
    np.testing.assert_allclose(fit.rigid, rigid, atol=0.02)
    np.testing.assert_allclose(fit.offset, offset, atol=0.06)
    np.testing.assert_allclose(fit.drive, drive, atol=0.06)
    np.testing.assert_allclose(fit.rms, noise, rtol=0.1)


def test_equals_bounded_least_squares_with_its_weights(problem):
    """One drive pushes: its coefficient ends at zero. The judge is scipy's solver on the rows themselves."""
    terms, torque, (_, _, drive), _ = problem
    pushing = torque - 2 * drive[1, 0] * terms.drive[:, :, 0] * [0, 1, 0]
    equations = TorqueEquations(terms, pushing, REVOLUTE)
    fit = equations.fit()
    own = np.zeros((M, N, N * (1 + K)))
    for j in range(N):
        own[:, j, j] = 1.0
        own[:, j, N + j * K : N + (j + 1) * K] = terms.drive[:, j]
    weights = (terms.moving / np.hypot(fit.rms, equations.floor))[:, :, None]
    rows = (np.concatenate([terms.rigid, own], axis=2) * weights).reshape(M * N, -1)
    lower = np.r_[np.full(P + N, -np.inf), np.zeros(N * K)]
    judge = lsq_linear(rows, (pushing * weights[:, :, 0]).ravel(), (lower, np.inf), tol=1e-14).x
    assert fit.drive[1, 0] == 0.0
    found = np.concatenate([fit.rigid, fit.offset, fit.drive.ravel()])
    np.testing.assert_allclose(found, judge, atol=2e-3)


def test_channels_and_signs(problem):
    terms, torque, _, _ = problem
    straight = TorqueEquations(terms, torque, REVOLUTE).fit()
    mixed = TorqueEquations(terms, torque[:, [1, 0, 2]] * [1, 1, -1], REVOLUTE)
    np.testing.assert_allclose(mixed.fit([1, 0, 2], [1, 1, -1]).rms, straight.rms, rtol=1e-6)
    assert mixed.fit().misfit > straight.misfit + 3


def test_joints_that_hardly_move_are_not_judged(problem):
    terms, torque, _, _ = problem
    moving = terms.moving.copy()
    moving[20:, 1] = False
    equations = TorqueEquations(Terms(terms.rigid, terms.drive, moving), torque, REVOLUTE)
    assert list(equations.judged) == [0, 2]
    assert np.isnan(equations.fit().rms[1])
    assert np.isnan(equations.own_rms()[1])


def test_columns_without_effect_do_no_harm(problem):
    terms, torque, _, noise = problem
    rigid = np.concatenate([terms.rigid, terms.rigid[:, :, :2], np.zeros((M, N, 1))], axis=2)
    fit = TorqueEquations(Terms(rigid, terms.drive, terms.moving), torque, REVOLUTE).fit()
    np.testing.assert_allclose(fit.rms, noise, rtol=0.1)


def test_own_parameters_explain_no_worse(problem):
    terms, torque, _, _ = problem
    equations = TorqueEquations(terms, torque, REVOLUTE)
    assert np.all(equations.own_rms() <= equations.fit().rms * (1 + 1e-6))


def test_forces_and_torques_have_floors_of_their_own(problem):
    terms, torque, _, _ = problem
    scaled = torque * [100.0, 1.0, 1.0]
    floor = TorqueEquations(terms, scaled, np.array([True, False, False])).floor
    np.testing.assert_allclose(floor[0], SYSTEMATIC * scaled[:, 0].std())
    np.testing.assert_allclose(floor[1:], SYSTEMATIC * scaled[:, 1:].std(axis=0).max())

"""Fits of springs with known parameters to noisy deflection and torque."""

import numpy as np
import pytest
from scipy.signal import lfilter

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_fit import SpringData, Stiffness, fit_spring, spring_data, white_noise
from dynid_ros.model.spring import SPRINGS

TRUTH = {"linear": [1e4], "cubic": [1e4, 2e9], "dead_zone": [1e4, 3e-4]}
N_SAMPLES = 1500


def measured(law, noise=5e-5, misfit=0.1, runs=2, seed=0, size=1e-3):
    """Return noisy deflections with offsets, torques with errors correlated over 25 samples, and run numbers."""
    rng = np.random.default_rng(seed)
    t = np.arange(N_SAMPLES) / 250
    parts = []
    for run in range(runs):
        waves = zip(rng.normal(size=4), (0.3, 0.5, 0.7, 1.1), rng.uniform(0, 6, 4), strict=True)
        d = size * sum(a * np.sin(2 * np.pi * f * t + p) for a, f, p in waves)
        torque = SPRINGS[law]().torque(d, np.array(TRUTH[law]))
        correlated = lfilter([1], [1, -np.exp(-1 / 25)], rng.normal(size=N_SAMPLES + 200))[200:]
        torque = (
            torque
            + misfit * np.std(torque) * correlated / np.std(correlated)
            + 0.01 * np.std(torque) * rng.normal(size=N_SAMPLES)
        )
        parts.append((d + noise * rng.normal(size=N_SAMPLES) + 5e-3 * rng.normal(), torque, np.full(N_SAMPLES, run)))
    return (np.concatenate(values) for values in zip(*parts, strict=True))


@pytest.mark.parametrize("law", TRUTH)
def test_intervals_cover_the_truth_under_correlated_residuals(law):
    covered = []
    for seed in range(6):
        deflection, torque, runs = measured(law, seed=seed)
        fit = fit_spring(deflection, torque, law, runs=runs)
        low, high = fit.confidence_intervals().T
        covered.append((low < TRUTH[law]) & (high > TRUTH[law]))
        np.testing.assert_allclose(fit.values, TRUTH[law], rtol=0.2)
    assert np.mean(covered) >= 0.75  # of 6 or 12 intervals with 95 % coverage
    assert fit.r_squared > 0.97


def test_standard_errors_account_for_correlated_residuals():
    """Residuals correlated over 25 samples contain less information than white ones."""
    errors = []
    stated = []
    white = []
    for seed in range(10):
        deflection, torque, runs = measured("linear", seed=seed)
        fit = fit_spring(deflection, torque, runs=runs)
        errors.append(fit.values[0] - 1e4)
        stated.append(fit.standard_errors[0])
        white.append(fit.residual_rms / np.std(deflection - fit.offsets[runs]) / np.sqrt(len(runs)))
    spread = np.sqrt(np.mean(np.square(errors)))
    assert 0.6 < np.mean(stated) / spread < 1.7
    assert np.mean(white) < 0.5 * spread


def test_noise_of_the_deflection_causes_no_bias():
    plain = []
    unbiased = []
    for seed in range(4):
        deflection, torque, runs = measured("linear", noise=4e-4, misfit=0.02, seed=seed)
        d = deflection - np.array([deflection[runs == run].mean() for run in (0, 1)])[runs]
        plain.append(d @ torque / (d @ d) / 1e4)
        unbiased.append(fit_spring(deflection, torque, runs=runs).values[0] / 1e4)
    assert np.mean(plain) < 0.93
    assert abs(np.mean(unbiased) - 1) < 0.02


def test_uses_a_configured_noise_of_the_deflection():
    deflection, torque, runs = measured("linear", noise=4e-4, misfit=0.02)
    assert fit_spring(deflection, torque, runs=runs, deflection_noise=4e-4).values[0] == pytest.approx(1e4, rel=0.04)
    assert fit_spring(deflection, torque, runs=runs, deflection_noise=0.0).values[0] < 0.95e4


@pytest.mark.parametrize("law", TRUTH)
def test_selects_the_true_law(law):
    deflection, torque, runs = measured(law, seed=1, misfit=0.03)
    fit = fit_spring(deflection, torque, ["linear", "cubic", "dead_zone"], runs=runs)
    assert fit.law == law
    assert set(fit.held_out_rms) == set(TRUTH)


def test_separates_white_noise_from_a_smooth_signal():
    rng = np.random.default_rng(3)
    values = np.sin(np.arange(2000) / 40) + 1e-3 * rng.normal(size=2000)
    assert white_noise(values) == pytest.approx(1e-3, rel=0.1)


def test_rigid_joint_has_a_lower_bound_of_stiffness():
    """The deflection is a ripple that is unrelated to the torque."""
    rng = np.random.default_rng(5)
    t = np.arange(3000) / 250
    deflection = 1e-4 * np.sin(9.0 * t) + 1e-6 * rng.normal(size=3000)
    torque = 50 * np.sin(2.1 * t + 0.4)
    fit = fit_spring(deflection + torque / 1e8, torque)
    assert not fit.stiffness.determined
    assert np.isnan(fit.stiffness.value)
    assert 0 < fit.stiffness.interval[0] < 1e8
    assert "undetermined, at least" in str(fit.stiffness)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deflection": 1e-6 * np.random.default_rng(0).normal(size=500)}, "its noise alone"),
        ({"deflection": np.full(500, np.nan)}, "deflection is nan at sample 0"),
        ({"torque": np.zeros(500)}, "torque is constant"),
        ({"torque": np.zeros(400)}, "do not fit"),
        ({"laws": "quadratic"}, "no law quadratic"),
    ],
)
def test_refuses_unusable_data(change, message):
    t = np.arange(500) / 250
    data = {"deflection": 1e-3 * np.sin(5 * t), "torque": np.sin(5 * t), **change}
    with pytest.raises(IdentificationError, match=message):
        fit_spring(**data)


@pytest.mark.parametrize(("interval", "determined"), [((1.0, 2.9), True), ((1.0, 3.1), False)])
def test_stiffness_is_determined_up_to_a_factor_of_three(interval, determined):
    stiffness = Stiffness.from_interval(2.0, interval)
    assert stiffness.determined is determined
    assert bool(np.isfinite(stiffness.value)) is determined


@pytest.mark.parametrize(("low", "reason"), [(1e-9, ""), (0.0, "not distinguished from zero")])
def test_compliance_not_distinguished_from_zero_is_rigid(low, reason):
    message = Stiffness.from_interval(1e-9, (low, 2e-9)).reason
    assert reason in message
    assert bool(message) is bool(reason)


@pytest.mark.parametrize(("ratio", "enough"), [(1.9, False), (2.1, True)])
def test_refuses_deflection_below_its_noise(ratio, enough):
    """`ratio` is the power of the deflection over that of its noise."""
    t = np.arange(500) / 250
    deflection = np.sin(5 * t)
    deflection = 1e-3 * deflection / np.std(deflection)
    arguments = (deflection, np.sin(5 * t), ["linear"], None, 1e-3 / np.sqrt(ratio))
    if enough:
        assert spring_data(*arguments).noise == pytest.approx(1e-3 / np.sqrt(ratio))
    else:
        with pytest.raises(IdentificationError, match="its noise alone"):
            spring_data(*arguments)


def test_averaging_reduces_the_noise():
    rng = np.random.default_rng(7)
    noise = 1e-3 * rng.standard_normal(4000)
    data = SpringData(noise, np.zeros(4000), np.zeros(4000, dtype=int), 1e-3)
    averaged, inside = data.averaged(4)
    assert averaged.noise == pytest.approx(np.std(averaged.deflection), rel=0.05)
    assert inside == pytest.approx(1e-6, rel=0.05)


@pytest.mark.parametrize(("samples", "enough"), [(49, False), (50, True)])
def test_spring_fit_needs_fifty_samples(samples, enough):
    t = np.arange(samples) / 25
    if enough:
        assert len(spring_data(np.sin(t), np.sin(t), ["linear"], None, 1e-3).torque) == samples
    else:
        with pytest.raises(IdentificationError, match="at least 50 samples"):
            spring_data(np.sin(t), np.sin(t), ["linear"], None, 1e-3)


def test_averages_neighbours_while_the_deflection_hardly_changes():
    """Sums of powers of two are tried: twice as many would lose more than a thousandth of the variance."""
    deflection = np.sin(np.arange(4000) * 2 * np.pi / 300) + 1e-4 * np.random.default_rng(0).normal(size=4000)
    data = spring_data(deflection, deflection, ["linear"], None, None)
    assert len(data.torque) == 1000

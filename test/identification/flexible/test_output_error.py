"""Noise spectra that weight the residuals of flexible joints."""

from types import SimpleNamespace

import flexible_experiments as experiments
import numpy as np
import pytest

from dynid_ros.identification.flexible.output_error import sensor_whiteners, whiteners
from dynid_ros.identification.flexible.run_residuals import Channel
from dynid_ros.identification.flexible.runs import runs

BINS = 80


def noise(rng):
    """Return the spectra of white noise of variance one, of a link and of a motor."""
    parts = rng.standard_normal((2, 2, BINS)) / np.sqrt(2.0)
    spectra = parts[0] + 1j * parts[1]
    return [Channel(kind, 0, spectra[k], np.zeros(1), np.zeros) for k, kind in enumerate(("link", "motor"))]


@pytest.mark.parametrize("lines", [np.empty(0, dtype=int), np.arange(2, 40, 2)])
def test_whitened_noise_of_another_recording_has_unit_power(lines):
    rng = np.random.default_rng(2)
    run = SimpleNamespace(compared=SimpleNamespace(lines=lines))
    power = []
    for _ in range(40):
        matrices = whiteners(run, noise(rng))[0]
        other = np.stack([channel.residual for channel in noise(rng)], axis=1)
        power.append(np.mean(np.abs(np.einsum("bcd,bd->bc", matrices, other)) ** 2))
    assert 1.0 < np.mean(power) < 1.12


def test_initial_whitening_uses_the_sensor_noise():
    experiment = experiments.shortened(experiments.single_joint(5), 4.0)
    recording = experiment.recording_with_encoders
    (run,) = runs(recording, recording.time, recording.link_position, same_clock=True)
    channels = [Channel(kind, 0, np.zeros(BINS, complex), np.zeros(1), np.zeros) for kind in ("link", "motor")]
    matrices = sensor_whiteners(run, channels)[0]
    assert matrices.shape == (BINS, 2, 2)
    torque_noise = experiments.TORQUE_NOISE * np.sqrt(np.mean(experiment.exact[1] ** 2))
    expected = [1.0 / experiments.LINK_NOISE, 1.0 / torque_noise]
    np.testing.assert_allclose(np.diagonal(matrices[3]).real, expected, rtol=0.1)

"""Noise spectra that weight the residuals of flexible joints; end of a search, its rivals and ripples."""

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import flexible_experiments as experiments
import numpy as np
import pytest

from dynid_ros.identification.flexible.flexible_identification import _leads
from dynid_ros.identification.flexible.flexible_parameters import Layout, resonances
from dynid_ros.identification.flexible.output_error import OutputError, sensor_whiteners, whiteners
from dynid_ros.identification.flexible.run_residuals import Channel, RunTerms
from dynid_ros.identification.flexible.runs import runs
from dynid_ros.identification.flexible.starting_values import (
    MIN_RIPPLE_GAIN,
    LinearSteps,
    SearchOutcome,
    Start,
    torque_ripples,
)
from dynid_ros.model.spring import LinearSpring

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
    experiment = experiments.shorten(experiments.single_joint(5), 4.0)
    recording = experiment.recording_with_encoders
    (run,) = runs(recording, recording.time, recording.link_position, same_clock=True)
    channels = [Channel(kind, 0, np.zeros(BINS, complex), np.zeros(1), np.zeros) for kind in ("link", "motor")]
    matrices = sensor_whiteners(run, channels)[0]
    assert matrices.shape == (BINS, 2, 2)
    torque_noise = experiments.TORQUE_NOISE * np.sqrt(np.mean(experiment.exact[1] ** 2))
    expected = [1.0 / experiments.LINK_NOISE, 1.0 / torque_noise]
    np.testing.assert_allclose(np.diagonal(matrices[3]).real, expected, rtol=0.1)


class Short(NamedTuple):
    """Search in 1.2 s of joint 1, whose link has a separate encoder."""

    experiment: experiments.Experiment
    search: OutputError
    end: SearchOutcome


@pytest.fixture(name="short", scope="module")
def fixture_short():
    experiment = experiments.shorten(experiments.single_joint(1), 1.2)
    recording = experiment.recording_with_encoders
    (run,) = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(experiment.robot, experiment.robot.base_parameters(), [LinearSpring()])
    search = OutputError(layout, [run], [RunTerms()])
    start = LinearSteps(layout, [run]).solve()
    return Short(experiment, search, SearchOutcome(Start(0.0, start, 0.0), search, [run], search.solve(start)))


def test_first_guess_of_the_motion_is_the_measured_one(short):
    residuals = short.search.residuals[0]
    guess = residuals._measured()[:: residuals.run.parts]
    measured = np.interp(residuals.run.time, residuals.run.link_time, residuals.run.link[:, 0])
    deflection = residuals.run.fine[:: residuals.run.parts, 0] - measured
    assert np.std(guess[:, 0] - measured) < 0.3 * np.std(deflection)


def test_search_from_the_end_of_another_ends_at_once(short):
    solution = short.end.solution
    repeated = short.search.solve(0.5 * solution.values, (solution.values, short.search.named(solution.runs)))
    assert repeated.iterations < solution.iterations
    np.testing.assert_allclose(repeated.values, solution.values, rtol=1e-3, atol=1e-3)


def test_parameter_without_effect_leaves_the_others_certain(short, monkeypatch):
    at = short.search.layout.names.index("motor_coulomb joint_1")
    normal = OutputError._normal

    def without_effect(self, *arguments):
        information, gradient = normal(self, *arguments)
        information[at] = information[:, at] = gradient[at] = 0.0
        return information, gradient

    monkeypatch.setattr(OutputError, "_normal", without_effect)
    solution = short.end.solution
    with np.errstate(over="ignore"):  # of the variance that is replaced by infinity
        end = short.search.solve(solution.values, (solution.values, short.search.named(solution.runs)))
    variances = np.diagonal(end.covariance)
    assert np.flatnonzero(np.isinf(variances)).tolist() == [at]


def test_rival_leads_where_its_residuals_are_clearly_smaller(short):
    def worse(by):
        solution = short.end.solution
        return short.end._replace(solution=replace(solution, left=solution.left + by))

    assert _leads(short.end, worse(0.4))
    assert not _leads(worse(0.4), short.end)
    assert not _leads(short.end, worse(1e-4))


@pytest.mark.parametrize(("gain", "number"), [(0.9, 0), (1.1, 1)])
def test_ripple_counts_beyond_what_the_misfit_explains(short, monkeypatch, gain, number):
    """Residuals four times as large as noise make the likelihood gain sixteen times as easily."""
    misfit = 16.0
    end = short.end._replace(solution=replace(short.end.solution, misfit=misfit))
    effect = np.array([3.0, 4.0]), np.ones(len(end.solution.values)), gain * MIN_RIPPLE_GAIN * misfit
    monkeypatch.setattr(OutputError, "omitted_torque", lambda *_: effect)
    assert len(torque_ripples(end, ["joint_1"])) == number


def test_resonance_error_does_not_depend_on_undetermined_parameters(short):
    """The resonance depends on inertia and stiffness alone."""
    solution = short.end.solution
    at = short.search.layout.names.index("torque_offset joint_1")
    information = solution.information.copy()
    information[at] = information[:, at] = 0.0
    _, (error,) = resonances(short.search.layout, replace(solution, information=information), short.end.runs)
    _, (smallest,) = resonances(short.search.layout, solution, short.end.runs)
    assert np.isfinite(error)
    assert 0.0 < error <= smallest

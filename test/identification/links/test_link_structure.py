"""Low-pass filters of torque drivers: detection, storage in the file, and use for loads, on an arm in MuJoCo."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from gate_recordings import sound_case
from load_experiments import LoadConditions, draw

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification, LoadIdentification
from dynid_ros.identification.link_prediction import compare
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import known_arm
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.signals.driver_filter import AUTO, DriverFilter

TRUTH = DriverFilter(2.0, order=2)
FRICTION = JointFriction(offset=True, smoothing=0.02)
CONDITIONS = LoadConditions("ur3", duration=10.0, unloaded=20.0)


@cache
def experiment():
    return draw(CONDITIONS, np.random.default_rng(3))


def apply_driver_filter(recording: Recording) -> Recording:
    """Return the recording as a driver with the true low-pass publishes it."""
    return replace(recording, torque=TRUTH.filter(recording.torque, CONDITIONS.rate))


@cache
def links(torque_filter=AUTO, *, filtered=True):
    """Return the result from the unloaded recording, with or without the driver's filter."""
    recording = apply_driver_filter(experiment().unloaded) if filtered else experiment().unloaded
    identification = LinkIdentification(experiment().robot, FRICTION, prior_weight=1.0, torque_filter=torque_filter)
    return identification.fit(recording)


def relative_error(result) -> float:
    """Return the relative RMS error of the unfiltered torque on the unloaded motion."""
    model = replace(result.model, signals=replace(result.model.signals, driver=None))
    _, measured, predicted = compare(model, experiment().unloaded)
    return float(np.sqrt(np.mean((measured - predicted) ** 2) / np.mean(measured**2)))


@pytest.mark.slow
def test_detects_the_driver_filter_and_compensates_it():
    driver = links().model.signals.driver
    assert (driver.order, driver.zero_phase) == (TRUTH.order, False)
    assert driver.cutoff == pytest.approx(TRUTH.cutoff, rel=0.03)
    remark = next(remark for remark in links().remarks if "as the driver reports it" in remark)
    assert "by the prediction of held-out samples" in remark
    assert str(driver) in remark
    sound = relative_error(links(filtered=False))
    ignored = relative_error(links(None))
    assert relative_error(links()) < sound + 0.02 < ignored / 3


def test_unfiltered_torque_has_no_driver_filter():
    assert links(filtered=False).model.signals.driver is None


def test_saved_model_predicts_filtered_torque(tmp_path):
    document = load_identified(links().save(tmp_path / "arm.yaml"))
    assert document["format"] == "dynid/2"
    arm = known_arm(document, experiment().robot)
    assert arm.model.signals.driver == links().model.signals.driver
    recording = apply_driver_filter(experiment().unloaded)
    error = arm.model.predict_recording(recording) - recording.torque
    inner = slice(250, -250)
    assert np.sqrt(np.mean(error[inner] ** 2)) < 0.05 * np.sqrt(np.mean(recording.torque[inner] ** 2))


def test_load_identification_uses_the_driver_filter():
    truth = experiment().load
    loaded = apply_driver_filter(experiment().loaded)
    result = LoadIdentification(experiment().robot, arm=links()).fit(loaded)
    low, high = result.confidence_intervals(0.99).T
    assert np.all((low <= truth) & (truth <= high))
    assert result.mass == pytest.approx(truth[0], rel=0.05)  # the error is 2 % without a driver filter
    ignored = LoadIdentification(experiment().robot, arm=links(None)).fit(loaded)
    assert abs(ignored.mass - truth[0]) > 0.3 * truth[0]


def test_online_identification_refuses_an_arm_with_driver_filter():
    with pytest.raises(IdentificationError, match=r"passed a filter \(cutoff=.*identify the load from a recording"):
        OnlineIdentification(experiment().robot, arm=links())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"torque_filter": "5"}, "torque_filter is '5'; expected 'auto', None or a DriverFilter"),
        ({"torque_filter": TRUTH, "equations": "integral"}, "the integral form has none"),
    ],
)
def test_refuses_invalid_torque_filters(settings, message):
    with pytest.raises(IdentificationError, match=message):
        LinkIdentification(experiment().robot, FRICTION, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "seed"), [("ur10", 2), ("kinova", 3)])
def test_detected_zero_phase_filter_predicts_as_well_as_the_true_one(arm, seed):
    """The first 60 % of a motion predict the rest, which passed the same filter."""
    case = sound_case(np.random.default_rng(424200 + seed), "public", motion="fast", name=arm)
    rate = 1 / float(np.median(np.diff(case.recording.time)))
    truth = DriverFilter(min(1.8, 0.8 * case.bandwidth), order=4, zero_phase=True)
    recording = replace(case.recording, torque=truth.filter(case.recording.torque, rate))
    first = np.arange(recording.n_samples) < 0.6 * recording.n_samples
    fitted = recording.slice(first)
    held_out = recording.slice(~first)

    def prediction_error(torque_filter) -> float:
        model = LinkIdentification(case.robot, torque_filter=torque_filter).fit(fitted).model
        return float(np.sqrt(np.mean((model.predict_recording(held_out) - held_out.torque) ** 2, axis=0)).sum())

    true_filters = [replace(truth, cutoff=truth.cutoff * factor) for factor in (0.9, 1.0, 1.1)]
    detected = prediction_error(AUTO)
    assert detected < 1.1 * min(map(prediction_error, true_filters))
    assert detected < 0.8 * prediction_error(None)

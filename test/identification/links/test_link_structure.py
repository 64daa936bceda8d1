"""Torque that a driver low-passed, of an arm that MuJoCo moves: found, kept in the file, used for loads."""

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


def reported(recording: Recording) -> Recording:
    """The recording as a driver with that low-pass publishes it."""
    return replace(recording, torque=TRUTH.filter(recording.torque, CONDITIONS.rate))


@cache
def links(torque_filter=AUTO, *, filtered=True):
    recording = reported(experiment().unloaded) if filtered else experiment().unloaded
    identification = LinkIdentification(experiment().robot, FRICTION, prior_weight=1.0, torque_filter=torque_filter)
    return identification.fit(recording)


def error_of_rigid_torque(result) -> float:
    """RMS over that of the torque before the filter, on the motion with the load's arm unloaded."""
    model = replace(result.model, signals=replace(result.model.signals, driver=None))
    _, measured, predicted = compare(model, experiment().unloaded)
    return float(np.sqrt(np.mean((measured - predicted) ** 2) / np.mean(measured**2)))


@pytest.mark.slow
def test_it_is_found_to_a_few_percent_and_the_model_is_what_it_would_be_without():
    found = links().model.signals.driver
    assert (found.order, found.zero_phase) == (TRUTH.order, False)
    assert found.cutoff == pytest.approx(TRUTH.cutoff, rel=0.03)
    remark = next(remark for remark in links().remarks if "as the driver reports it" in remark)
    assert "by the prediction of held-out samples" in remark
    assert str(found) in remark
    sound, ignored = error_of_rigid_torque(links(filtered=False)), error_of_rigid_torque(links(None))
    assert error_of_rigid_torque(links()) < sound + 0.02 < ignored / 3


def test_torque_that_no_driver_touched_passes_nothing():
    assert links(filtered=False).model.signals.driver is None


def test_the_file_holds_it_and_predictions_pass_it(tmp_path):
    document = load_identified(links().save(tmp_path / "arm.yaml"))
    assert document["format"] == "dynid/2"
    arm = known_arm(document, experiment().robot)
    assert arm.model.signals.driver == links().model.signals.driver
    recording = reported(experiment().unloaded)
    error = arm.model.predict_recording(recording) - recording.torque
    inner = slice(250, -250)
    assert np.sqrt(np.mean(error[inner] ** 2)) < 0.05 * np.sqrt(np.mean(recording.torque[inner] ** 2))


def test_a_load_is_weighed_through_it():
    truth, loaded = experiment().load, reported(experiment().loaded)
    found = LoadIdentification(experiment().robot, arm=links()).fit(loaded)
    low, high = found.confidence_intervals(0.99).T
    assert np.all((low <= truth) & (truth <= high))
    assert found.mass == pytest.approx(truth[0], rel=0.05)  # 2 % from torque that no driver touched
    ignored = LoadIdentification(experiment().robot, arm=links(None)).fit(loaded)
    assert abs(ignored.mass - truth[0]) > 0.3 * truth[0]


def test_a_load_that_is_followed_live_refuses_such_an_arm():
    with pytest.raises(IdentificationError, match=r"passed a filter \(cutoff=.*identify the load from a recording"):
        OnlineIdentification(experiment().robot, arm=links())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"torque_filter": "5"}, "torque_filter is '5'; expected 'auto', None or a DriverFilter"),
        ({"torque_filter": TRUTH, "equations": "integral"}, "the integral form has none"),
    ],
)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(IdentificationError, match=said):
        LinkIdentification(experiment().robot, FRICTION, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("arm", "seed"), [("ur10", 2), ("kinova", 3)])
def test_zero_phase_filter_of_a_file_predicts_as_well_as_the_best_by_hand(arm, seed):
    """The first 60 % of a motion predict the rest, whose torque passed the same filter."""
    case = sound_case(np.random.default_rng(424200 + seed), "public", motion="fast", name=arm)
    rate = 1 / float(np.median(np.diff(case.recording.time)))
    truth = DriverFilter(min(1.8, 0.8 * case.bandwidth), order=4, zero_phase=True)
    recording = replace(case.recording, torque=truth.filter(case.recording.torque, rate))
    first = np.arange(recording.n_samples) < 0.6 * recording.n_samples
    fitted = recording.slice(first)
    unseen = recording.slice(~first)

    def error(torque_filter) -> float:
        model = LinkIdentification(case.robot, torque_filter=torque_filter).fit(fitted).model
        return float(np.sqrt(np.mean((model.predict_recording(unseen) - unseen.torque) ** 2, axis=0)).sum())

    by_hand = [replace(truth, cutoff=truth.cutoff * factor) for factor in (0.9, 1.0, 1.1)]
    chosen = error(AUTO)
    assert chosen < 1.1 * min(map(error, by_hand))
    assert chosen < 0.8 * error(None)

"""Test the verdict of a rehearsal: the decisive joint, failed goals, and the screen."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dynid_ros.jobs.screen import MAX_LINE_WIDTH, MAX_LINES
from dynid_ros.rehearsal.rehearsal_settings import RehearsalSettings
from dynid_ros.rehearsal.truth_comparison import Comparison
from dynid_ros.rehearsal.verdict import JointErrors, Rehearsal

DEFAULT_SETTINGS = RehearsalSettings()
NAMES = tuple(f"joint_{number}" for number in range(1, 8))
TORQUE = np.array([0.0, 100.0, 50.0, 20.0, 10.0, 0.5, 0.001])


def make_errors(*relative):
    return JointErrors.of(TORQUE, np.array(relative) * TORQUE, 0.2 * TORQUE)


def make_rehearsal(gravity, true=2.0, value=2.01, settings=DEFAULT_SETTINGS):
    """Return a rehearsal of an experiment that has only these numbers."""
    simulated = SimpleNamespace(tracking_error=np.zeros(7), replaced_links=(), load=np.full(10, 2.0))
    experiment = SimpleNamespace(
        robot=SimpleNamespace(name="arm", joint_names=NAMES),
        limits=SimpleNamespace(poses=lambda count: np.zeros((count, 7))),
        settings=settings,
        simulated=simulated,
        runs={},
        refused={},
        quality=None,
        replayed=None,
        files={},
        remarks=(),
        durations={},
    )
    rehearsal = Rehearsal(experiment, 1.0)
    rehearsal.gravity = gravity
    rehearsal.unseen = make_errors(*[0.03] * 7)
    rehearsal.load = make_errors(*[0.01] * 7)
    rehearsal.comparisons = {"load": [Comparison("Mass", "kg", true, value, 0.05)] * 3}
    return rehearsal


def test_joints_without_torque_have_no_relative_error():
    joint_errors = make_errors(0.5, 0.01, 0.02, 0.01, 0.01, 0.9, 0.9)
    assert np.isnan(joint_errors.error[[0, 6]]).all()
    assert joint_errors.error[5] == pytest.approx(0.9)
    assert NAMES[joint_errors.worst] == "joint_3"


def test_joint_without_prediction_is_the_worst():
    joint_errors = make_errors(0.0, 0.01, 0.02, np.nan, 0.01, 0.0, 0.0)
    assert NAMES[joint_errors.worst] == "joint_4"
    assert not joint_errors.check("gravity torque", NAMES, 0.03).passed


def test_good_numbers_serve():
    rehearsal = make_rehearsal(make_errors(*[0.01] * 7))
    assert rehearsal.missing == ()
    assert rehearsal.document()["serves"]
    text = rehearsal.screen().text()
    assert "would serve" in text
    assert "3 of 3" in text
    assert len(text.splitlines()) <= MAX_LINES
    assert max(map(len, text.splitlines())) <= MAX_LINE_WIDTH


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"gravity": make_errors(0.0, 0.01, 0.05, 0.01, 0.01, 0.0, 0.0)}, "joint_3"),
        ({"true": 2.3, "value": 2.26}, None),
        ({"true": 2.3}, "mass of the load"),
    ],
)
def test_missed_goal_does_not_serve(change, word):
    rehearsal = make_rehearsal(**{"gravity": make_errors(*[0.01] * 7), **change})
    assert bool(rehearsal.missing) == bool(word)
    assert not word or word in " ".join(rehearsal.missing)
    assert rehearsal.document()["serves"] is not bool(word)


def test_goals_can_be_set():
    wide = replace(DEFAULT_SETTINGS, max_gravity_error=0.1)
    large_errors = make_errors(0.0, 0.01, 0.05, 0.01, 0.01, 0.0, 0.0)
    assert make_rehearsal(large_errors).missing
    assert not make_rehearsal(large_errors, settings=wide).missing


def test_intervals_that_miss_the_truth_do_not_serve():
    rehearsal = make_rehearsal(make_errors(*[0.01] * 7))
    rehearsal.comparisons["links"] = [Comparison("m1", "kg", 1.0, 2.0, 0.1)] * 5
    assert "intervals" in " ".join(rehearsal.missing)
    assert "3 of 8" in rehearsal.screen().text()


def test_refusals_and_late_drives_are_named():
    rehearsal = make_rehearsal(make_errors(*[0.01] * 7))
    rehearsal.experiment.refused["links"] = "no motion"
    rehearsal.experiment.simulated.tracking_error[1] = 0.3
    assert "links not identified: no motion" in rehearsal.missing
    assert any("distance of joint_2 from the planned motion" in sentence for sentence in rehearsal.missing)

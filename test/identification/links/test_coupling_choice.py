"""Detection of coupled joints."""

import numpy as np
import pytest
from link_problems import Drive, chain, couple_joints, distort, run, ur10

from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links.structure_choice import choose_coupling
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording.uniform_motion import LinkSignals

SIGNALS = LinkSignals(7.0, 17.5)


def detect_pairs(robot, recordings):
    return list(choose_coupling(distort(robot), LinkEquations(SIGNALS, recordings)).gains)


@pytest.mark.parametrize(
    ("coupled_pairs", "sense"), [([(4, 5)], 1.0), ([(4, 5)], -1.0), ([(3, 5)], 1.0), ([(3, 4), (4, 5)], 1.0), ([], 1.0)]
)
def test_detects_coupled_joints(coupled_pairs, sense):
    """The dry friction of the pair differs from the model if one joint has the opposite sign in the URDF."""
    robot = ur10()
    recordings = [run(robot, seed) for seed in (0, 1)]
    for pair in coupled_pairs:
        recordings = [couple_joints(recording, pair, seed, sense) for seed, recording in enumerate(recordings)]
    names = robot.joint_names
    assert sorted(detect_pairs(robot, recordings)) == sorted((names[i], names[j]) for i, j in coupled_pairs)


@pytest.mark.parametrize(
    "drive", [Drive(stribeck=1.0), Drive(rotor=0.3), Drive(backward=0.5), Drive(viscous=0.0, smoothing=1.0)]
)
def test_complex_friction_is_no_coupling(drive):
    robot = ur10()
    assert detect_pairs(robot, [run(robot, seed, drive) for seed in (0, 1)]) == []


@pytest.mark.slow
def test_fit_detects_and_reports_coupled_joints():
    robot = ur10()
    recordings = [couple_joints(run(robot, seed), (4, 5), seed) for seed in (0, 1)]
    result = LinkIdentification(distort(robot), estimator="weighted").fit(*recordings)
    (remark,) = [remark for remark in result.remarks if "driven together" in remark]
    assert remark.startswith("wrist_2_joint and wrist_3_joint")
    assert result.friction_coefficients["coupling_viscous wrist_2_joint wrist_3_joint"] == pytest.approx(0.3, abs=0.05)
    assert np.all(result.validate(couple_joints(run(robot, 7), (4, 5), 7)).relative_rms[4:] < 0.05)


def test_configured_friction_is_not_extended_by_coupling():
    robot = ur10()
    recording = couple_joints(run(robot), (4, 5))
    result = LinkIdentification(distort(robot), friction=JointFriction(), estimator="weighted").fit(recording)
    assert not any(name.startswith("coupling") for name in result.friction_coefficients)


def test_short_recordings_have_no_detected_coupling():
    robot = chain()
    recording = couple_joints(run(robot), (0, 2))
    assert detect_pairs(robot, [recording.slice(slice(0, 80))]) == []
    assert detect_pairs(robot, [recording]) == [(robot.joint_names[0], robot.joint_names[2])]

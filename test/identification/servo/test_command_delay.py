"""Command delay of drives in MIT mode, in MuJoCo, and refusals of recordings that do not determine it."""

from dataclasses import replace

import numpy as np
import pytest
from mit_arms import g1, kinova, record_drives
from servo_arms import compared_poses, one, truth

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import ServoIdentification
from dynid_ros.identification.servo.command_delay import estimate_command_delay, with_estimated_delay
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.recording import EffortConvention
from dynid_ros.recording.effort import CommandDelay, with_impedance_torque

DELAY_S = 0.007
GAINS = {"stiffness": [30.0], "damping": [1.2]}


@pytest.fixture(name="arm", scope="module")
def fixture_arm():
    return one(seed=3, stiffness=30.0, damping=1.2, friction=0.15, delay=DELAY_S)


@pytest.fixture(name="recording", scope="module")
def fixture_recording(arm):
    return with_impedance_torque(record_drives(arm, 16.0), EffortConvention("impedance", **GAINS))


def test_estimates_the_delay_within_two_percent(arm, recording):
    (delayed,) = with_estimated_delay([recording], arm.robot)
    delay = delayed.command_delay
    assert delay.value == pytest.approx(DELAY_S, rel=0.02)
    assert abs(delay.value - DELAY_S) < max(4 * delay.error, 2e-5)
    assert not delayed.delay_is_unknown
    assert np.nanstd(delayed.torque - recording.torque) > 0.01


def test_known_delay_is_unchanged(arm, recording):
    with_delay = replace(recording, command_delay=CommandDelay(0.003, 0.0))
    assert with_estimated_delay([with_delay], arm.robot)[0] is with_delay


def test_servo_identification_uses_the_gains_of_the_commands(arm, recording):
    joint = ServoIdentification(arm.robot).fit(recording).joints["lift"]
    assert joint.in_torque["coulomb"][0] == pytest.approx(0.15, rel=0.02)
    assert joint.in_torque["viscous"][0] == pytest.approx(arm.per_joint("viscous")[0], rel=0.02)


def test_refuses_gains_that_change(arm, recording):
    stiffness = np.where(recording.command.time > 5.0, 1.1, 1.0)[:, None] * recording.command.stiffness
    changing = replace(recording, command=replace(recording.command, stiffness=stiffness))
    with pytest.raises(IdentificationError, match="gains of joint 'lift' change") as error:
        estimate_command_delay([changing], arm.robot)
    assert "--command-delay" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("make", [g1, kinova])
def test_identifies_mit_mode_arms_within_two_percent(make):
    arm = make(seed=60)
    gains = {name: arm.per_joint(name) for name in GAINS}
    recording = record_drives(arm, 14.0)
    result = ServoIdentification(arm.robot, **gains).fit(recording)
    true = truth(arm, compared_poses(result))
    true["viscous"] = true["viscous"] - gains["damping"]
    covered = []
    for j, joint in enumerate(result.joints.values()):
        for label in ("delay", "viscous", "coulomb", "inertia"):
            value, error = joint.in_torque[label]
            assert value == pytest.approx(true[label][j], rel=0.02)
            covered.append(abs(value - true[label][j]) <= joint.half(error))
    assert np.mean(covered) >= 0.85
    gravity = IdentifiedGravity(arm.robot, result.document())
    torque = gravity.gravity.regressor(recording.position) @ np.nan_to_num(gravity.moments)
    expected = arm.robot.gravity_torque(recording.position, arm.parameters)
    assert np.abs(torque - expected).max() < 0.02 * np.abs(expected).max()

"""Test checks of gains, delays and torque limits of impedance drives, on two levers in MuJoCo."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")

from mit_arms import record_drives, two

from dynid_ros.checks.all_checks import check
from dynid_ros.checks.drive_gains import SATURATED
from dynid_ros.checks.finding import CURRENT, LAG
from dynid_ros.recording import EffortConvention
from dynid_ros.recording.effort import with_impedance_torque


@pytest.fixture(name="arm", scope="module")
def fixture_arm():
    return two(seed=2)


@pytest.fixture(name="recording", scope="module")
def fixture_recording(arm):
    return record_drives(arm, 16.0)


def find_faults(arm, recording, factors=(1.0, 1.0), delay=None):
    """Return the findings for gains scaled by factors and another delay."""
    gains = {name: arm.per_joint(name) * factors for name in ("stiffness", "damping")}
    convention = EffortConvention("impedance", delay=arm.servos.delay if delay is None else delay, **gains)
    return check(with_impedance_torque(recording, convention), arm.robot, True)


def test_right_gains_give_no_finding(arm, recording):
    assert find_faults(arm, recording) == []


@pytest.mark.parametrize("factor", [1.3, 0.7])
def test_reports_a_wrong_gain_of_one_joint(arm, recording, factor):
    (finding,) = find_faults(arm, recording, (1.0, factor))
    assert finding.kind == CURRENT
    assert "stiffness" in finding.fix
    assert "raw counts" not in str(finding)


@pytest.mark.parametrize(("delay", "direction"), [(0.0, "later"), (0.015, "earlier")])
def test_reports_a_wrong_delay(arm, recording, delay, direction):
    (finding,) = find_faults(arm, recording, delay=delay)
    assert finding.kind == LAG
    assert direction in finding.message


def test_reports_torques_beyond_the_limit(arm):
    weak = replace(arm, servos=replace(arm.servos, force=3.0))
    weak.robot.limits.effort[:] = np.array([3.0, 3.0])
    kinds = {finding.kind for finding in find_faults(weak, record_drives(weak, 8.0))}
    assert SATURATED in kinds

"""Test the section `servos` of `identified.yaml`."""

import math

from dynid_ros.identified.servos import servo_drives, servo_entry, servo_stiffness

OVER_GAIN = {"delay": (0.02, 1e-4), "armature": (float("nan"), float("nan"))}


def test_missing_numbers_are_null():
    entry = servo_entry(OVER_GAIN, {"gain": (17.0, 0.1), "coulomb": (0.05, float("inf"))}, 9.0, {"armature": "why"})
    assert entry["armature"] is None
    assert entry["in_torque"]["gain"] == 17.0
    assert entry["in_torque"]["std"] == {"gain": 0.1, "coulomb": None}


def test_omits_torque_units_without_a_gain():
    assert "in_torque" not in servo_entry(OVER_GAIN, {}, 9.0, {})


def test_reads_drives_of_servos_with_a_gain():
    gains = {"gain": (17.0, 0.1), "delay": (0.02, 1e-4), "viscous": (0.4, 0.01), "derivative": (0.2, 0.01)}
    entries = {"lift": servo_entry(OVER_GAIN, gains, 9.0, {}), "turn": servo_entry(OVER_GAIN, {}, 9.0, {})}
    drives = servo_drives({"servos": entries})
    assert servo_stiffness({"servos": entries}) == {"lift": 17.0}
    lift = drives["lift"]
    assert (lift.stiffness, lift.damping, lift.delay, lift.viscous) == (17.0, 0.2, 0.02, 0.4)
    assert math.isnan(lift.armature)
    entries["lift"]["in_torque"]["damping"] = 1.5
    assert servo_drives({"servos": entries})["lift"].damping == 1.5
    assert servo_drives({"servos": "nonsense"}) == servo_drives({}) == {}

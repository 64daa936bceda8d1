"""Section `servos` of `identified.yaml`."""

from dynid_ros.identified.servos import servo_entry

OVER_GAIN = {"delay": (0.02, 1e-4), "armature": (float("nan"), float("nan"))}


def test_unknown_numbers_are_null():
    entry = servo_entry(OVER_GAIN, {"gain": (17.0, 0.1), "coulomb": (0.05, float("inf"))}, 9.0, {"armature": "why"})
    assert entry["armature"] is None
    assert entry["in_torque"]["gain"] == 17.0
    assert entry["in_torque"]["std"] == {"gain": 0.1, "coulomb": None}


def test_without_a_gain_no_number_is_in_torque():
    assert "in_torque" not in servo_entry(OVER_GAIN, {}, 9.0, {})

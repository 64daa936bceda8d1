"""Section `servos`, written and read."""

import pytest
from servo_arms import one

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import new_document
from dynid_ros.identified.servos import read_servos, servo_entry

OVER = {"delay": (0.02, 1e-4), "armature": (float("nan"), float("nan"))}


def test_numbers_in_torque_are_read_back():
    robot = one().robot
    entry = servo_entry(OVER, {"gain": (17.0, 0.1), "coulomb": (0.05, float("inf"))}, 9.0, {"armature": "why"})
    assert entry["armature"] is None
    assert entry["in_torque"]["std"] == {"gain": 0.1, "coulomb": None}
    document = new_document(robot, [], {}) | {"servos": {"lift": entry}}
    assert read_servos(document, robot) == {"lift": {"gain": 17.0, "coulomb": 0.05}}
    document["servos"]["lift"] = servo_entry(OVER, {}, 9.0, {})
    assert read_servos(document, robot) == {}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (None, "has no section 'servos'; run the servo identification"),
        ({"lift": [1]}, "servo of joint 'lift' is \\[1\\], expected a mapping"),
        ({"lift": {"in_torque": 3}}, "'in_torque' is 3, expected a mapping"),
        ({"lift": {"in_torque": {"gain": "17"}}}, "gain, servo of lift, is '17', expected a number"),
    ],
)
def test_malformed_sections(section, message):
    robot = one().robot
    with pytest.raises(IdentifiedFileError, match=message):
        read_servos(new_document(robot, [], {}) | {"servos": section}, robot)

"""Which part of the gravity torque acts already, by efforts with offsets."""

import pytest

from dynid_ros.control.acting_torque import acting_scale
from dynid_ros.errors import ControlError

NAMES = ("shoulder", "elbow", "wrist")
GRAVITY = [100.0, -40.0, 0.5]
ERROR = [10.0, 5.0, 1.0]


@pytest.mark.parametrize("scale", [1.0, 0.6, 0.2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("ways", [(1, 1, 1), (-1, 1, -1), (-1, -1, -1), (1, -1, 1)])
def test_the_scale_of_the_process_before_is_found_through_offsets(scale, sign, ways):
    gravity = [way * abs(torque) for way, torque in zip(ways, GRAVITY, strict=True)]
    effort = [scale * torque + sign * 0.4 * error for torque, error in zip(gravity, ERROR, strict=True)]
    assert acting_scale(NAMES, gravity, effort, ERROR) == pytest.approx(scale, abs=0.06)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_more_than_all_of_gravity_is_all_of_it(way):
    gravity = [way * torque for torque in GRAVITY]
    assert acting_scale(NAMES, gravity, [1.08 * torque for torque in gravity], ERROR) == 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_offsets_alone_are_nothing(sign):
    effort = [sign * 0.45 * error for error in ERROR]
    assert acting_scale(NAMES, GRAVITY, effort, ERROR) == 0.0


def test_an_arm_that_gravity_does_not_load_begins_at_zero():
    assert acting_scale(NAMES, [0.0, 0.0, 0.0], [0.5, -0.5, 0.5], ERROR) == 0.0


@pytest.mark.parametrize(
    "effort",
    [[-100.0, 40.0, 0.0], [100.0, 40.0, 0.0], [100.0, -40.0, 8.0], [100.0, -40.0, -8.0], [150.0, -60.0, 0.0]],
)
def test_efforts_that_are_no_part_of_gravity_are_refused(effort):
    with pytest.raises(ControlError, match="not known what the controller holds"):
        acting_scale(NAMES, GRAVITY, effort, ERROR)

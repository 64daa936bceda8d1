"""What an arm does whose model is wrong, while the torque comes in."""

import pytest
from helpers.floating_arm import STRANGERS, FloatingArm

from dynid_ros.control import State

NAMES = sorted(STRANGERS)


def released(name, factor):
    """Return an arm that its servo held until the torque was there, 4 s after it was left to it."""
    arm = FloatingArm(STRANGERS[name], factor=factor).enable(2.5).let_go()
    arm.compensator.released()
    return arm.run(4.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("factor", "way"), [(1.5, "rises"), (0.4, "sinks")])
def test_an_arm_that_moves_by_itself_once_released_is_a_fault(name, factor, way):
    arm = released(name, factor)
    assert arm.compensator.state is State.FAULT
    assert f"{way} by itself" in arm.compensator.fault_reason
    assert arm.motion(100.2) < 0.3


@pytest.mark.parametrize("name", NAMES)
def test_an_arm_with_a_good_model_floats(name):
    arm = released(name, 1.0)
    assert arm.compensator.state is State.ACTIVE
    assert arm.motion(100.2) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_a_scale_that_lifts_the_arm_is_taken_back(name):
    arm = FloatingArm(STRANGERS[name]).enable(2.5).let_go().run(0.5)
    arm.compensator.adjust(arm.settings(1.5), arm.timing)
    arm.run(5.0)
    assert arm.compensator.state is State.ACTIVE
    assert "began to move by itself" in arm.compensator.notice
    assert set(arm.compensator.joints.gain) == {1.0}

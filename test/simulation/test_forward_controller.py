"""What forward_command_controller writes to the effort interfaces, and what it forgets."""

import numpy as np
import pytest

from dynid_ros.errors import DynidError
from dynid_ros.simulation import CommandInterfaces, ForwardController

NAMES = ["a", "b", "c"]


@pytest.fixture
def interfaces():
    return CommandInterfaces(3)


@pytest.fixture
def controller(interfaces):
    return ForwardController(["c", "a", "b"], NAMES, interfaces)


def test_commands_come_in_the_controllers_order(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0], "the last one for ever"


def test_a_command_that_is_not_finite_is_dropped(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    with pytest.raises(DynidError, match="the effort command for joint 'a' is nan"):
        controller.command([0.0, np.nan, 0.0])
    with pytest.raises(DynidError, match="the effort command for value 4 is inf"):
        controller.command([0.0, 0.0, 0.0, np.inf])
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]


def test_an_empty_command_is_nothing(controller, interfaces):
    controller.activate()
    controller.command([])
    controller.update()
    assert np.isnan(interfaces.effort).all()


def test_a_wrong_size_is_an_error_of_the_update_and_writes_nothing(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    controller.command([5.0])
    with pytest.raises(DynidError, match="the effort command has 1 values; expected 3: c, a, b"):
        controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0]


def test_activation_forgets_the_command_and_leaves_the_torque(controller, interfaces):
    controller.activate()
    controller.command([3.0, 1.0, 2.0])
    controller.update()
    controller.deactivate()
    controller.command([9.0, 9.0, 9.0])
    controller.activate()
    controller.update()
    assert interfaces.effort.tolist() == [1.0, 2.0, 3.0], "neither zero nor what came while it was inactive"

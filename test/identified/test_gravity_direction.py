"""Test the entry `gravity_direction` of identified.yaml: round trip and malformed entries."""

import copy
import math

import numpy as np
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.gravity_direction import IMU, GravityDirection
from dynid_ros.identified.identified_file import estimated_gravity
from dynid_ros.model.gravity import turn_axes

GRAVITY_M_S2 = (0.98, -0.49, -9.745)
CONFIGURED_M_S2 = (0.0, 0.0, -float(np.linalg.norm(GRAVITY_M_S2)))
DIRECTION = GravityDirection(
    IMU, np.array(GRAVITY_M_S2), np.array(CONFIGURED_M_S2), turn_axes(GRAVITY_M_S2), np.diag([1e-6, 4e-6]), 12.0, "base"
)


def create_document(**changes):
    entry = {**DIRECTION.section(), **changes}
    robot = {"name": "arm", "base": "base", "gravity": list(GRAVITY_M_S2), "gravity_direction": entry}
    return {"robot": robot}


def test_direction_round_trips():
    direction = GravityDirection.of_document(create_document())
    assert str(direction) == str(DIRECTION)
    np.testing.assert_array_equal(direction.axes, DIRECTION.axes)
    np.testing.assert_array_equal(direction.half_widths(), DIRECTION.half_widths())
    assert GravityDirection.of_document(create_document(degrees_of_freedom=math.inf)).dof == math.inf
    assert estimated_gravity(create_document()) == GRAVITY_M_S2


def test_reads_rounded_numbers():
    axes = np.round(DIRECTION.axes, 4).tolist()
    assert (
        GravityDirection.of_document(create_document(axes=axes, covariance=[[1e-6, 1.0001e-7], [1e-7, 4e-6]]))
        is not None
    )


def test_gravity_without_the_entry_was_configured():
    content = copy.deepcopy(create_document())
    del content["robot"]["gravity_direction"]
    assert estimated_gravity(content) is None
    assert GravityDirection.of_document(content) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "guess"}, "source is 'guess', expected estimated or imu"),
        ({"source": None}, "source is None, expected"),
        ({"configured": [0.0, -9.8]}, "configured is .*, expected 3 numbers"),
        ({"configured": [0.0, 0.0, math.nan]}, "configured is .*, expected 3 numbers"),
        ({"configured": [0.0, 0.0, 0.0]}, "configured is .*, expected the size of robot.gravity"),
        ({"axes": [[1.0, 0.0, 0.0]]}, "axes is .*, expected 2 x 3 numbers"),
        ({"axes": "x and y"}, "axes is 'x and y', expected 2 x 3 numbers"),
        ({"axes": [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]}, "axes are"),
        ({"axes": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]}, "axes are"),
        ({"covariance": [[1e-6, 0.0]]}, "covariance is .*, expected 2 x 2 numbers"),
        ({"covariance": [["1e-6", 0.0], [0.0, 1e-6]]}, "covariance is .*, expected 2 x 2 numbers"),
        ({"covariance": [[-1e-6, 0.0], [0.0, 1e-6]]}, "covariance is .*, expected that of two angles"),
        ({"covariance": [[1e-6, 5e-7], [-5e-7, 1e-6]]}, "covariance is .*, expected that of two angles"),
        ({"degrees_of_freedom": 0}, "degrees_of_freedom is 0, expected a number above 0"),
        ({"degrees_of_freedom": math.nan}, "degrees_of_freedom is nan, expected a number above 0"),
        ({"degrees_of_freedom": True}, "degrees_of_freedom is True, expected a number above 0"),
        ({"degrees_of_freedom": None}, "degrees_of_freedom is None, expected a number above 0"),
    ],
)
def test_refuses_malformed_entries(changes, message):
    with pytest.raises(IdentifiedFileError, match=rf"identified.yaml: robot.gravity_direction: {message}") as caught:
        GravityDirection.of_document(create_document(**changes))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("gravity", [None, [0.0, -9.8], [0.0, 0.0, 0.0], [0.0, 0.0, math.nan], "down"])
def test_refuses_gravity_that_is_not_a_vector(gravity):
    content = create_document()
    content["robot"]["gravity"] = gravity
    with pytest.raises(IdentifiedFileError, match=r"robot.gravity is .*, expected three numbers"):
        GravityDirection.of_document(content)


@pytest.mark.parametrize("entry", [[0.0, 0.1], "estimated", 3.0])
def test_refuses_entries_that_are_not_mappings(entry):
    content = create_document()
    content["robot"]["gravity_direction"] = entry
    with pytest.raises(IdentifiedFileError, match=r"'gravity_direction' is .*, expected a mapping"):
        estimated_gravity(content)

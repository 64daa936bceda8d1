"""Entry `gravity_direction` of a file: read back as written, and refused by name where it is malformed."""

import copy
import math

import numpy as np
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.gravity_direction import IMU, GravityDirection
from dynid_ros.identified.identified_file import estimated_gravity
from dynid_ros.model.gravity import turn_axes

GRAVITY = (0.98, -0.49, -9.745)
GIVEN = (0.0, 0.0, -float(np.linalg.norm(GRAVITY)))
DIRECTION = GravityDirection(
    IMU, np.array(GRAVITY), np.array(GIVEN), turn_axes(GRAVITY), np.diag([1e-6, 4e-6]), 12.0, "base"
)


def document(**changes):
    entry = DIRECTION.section() | changes
    return {"robot": {"name": "arm", "base": "base", "gravity": list(GRAVITY), "gravity_direction": entry}}


def test_what_is_written_is_read():
    read = GravityDirection.of_document(document())
    assert str(read) == str(DIRECTION)
    np.testing.assert_array_equal(read.axes, DIRECTION.axes)
    np.testing.assert_array_equal(read.half_widths(), DIRECTION.half_widths())
    assert GravityDirection.of_document(document(degrees_of_freedom=math.inf)).dof == math.inf
    assert estimated_gravity(document()) == GRAVITY


def test_a_rounded_file_is_read():
    axes = np.round(DIRECTION.axes, 4).tolist()
    assert GravityDirection.of_document(document(axes=axes, covariance=[[1e-6, 1.0001e-7], [1e-7, 4e-6]])) is not None


def test_without_it_gravity_was_configured():
    content = copy.deepcopy(document())
    del content["robot"]["gravity_direction"]
    assert estimated_gravity(content) is None
    assert GravityDirection.of_document(content) is None


@pytest.mark.parametrize(
    ("changes", "words"),
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
def test_a_malformed_entry_is_named(changes, words):
    with pytest.raises(IdentifiedFileError, match=rf"identified.yaml: robot.gravity_direction: {words}") as caught:
        GravityDirection.of_document(document(**changes))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("gravity", [None, [0.0, -9.8], [0.0, 0.0, 0.0], [0.0, 0.0, math.nan], "down"])
def test_gravity_that_was_found_is_a_vector(gravity):
    content = document()
    content["robot"]["gravity"] = gravity
    with pytest.raises(IdentifiedFileError, match=r"robot.gravity is .*, expected three numbers"):
        GravityDirection.of_document(content)


@pytest.mark.parametrize("entry", [[0.0, 0.1], "estimated", 3.0])
def test_an_entry_that_is_no_mapping_is_refused(entry):
    content = document()
    content["robot"]["gravity_direction"] = entry
    with pytest.raises(IdentifiedFileError, match=r"'gravity_direction' is .*, expected a mapping"):
        estimated_gravity(content)

"""Values per joint, as they are written on a command line."""

import numpy as np
import pytest

from dynid_ros.commands.options import joint_values
from dynid_ros.errors import TrajectoryError

NAMES = ("base", "elbow", "a=b")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2", [2]),
        ("-1, -2.5,1e-3", [-1, -2.5, 0.001]),
        ("inf", [np.inf]),
        ("elbow=3", [np.nan, 3, np.nan]),
        ("a=b = -1,base=2", [2, np.nan, -1]),
    ],
)
def test_values(text, values):
    np.testing.assert_array_equal(joint_values(text, NAMES, "--x"), values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fast", "--x: 'fast' is no number; expected one for all joints"),
        ("wrist=1", "--x: 'wrist=1' names no joint; expected joint=value of base, elbow, a=b"),
        ("base=1,2", "--x: '2' names no joint"),
        ("base=1,base=2", "--x: joint 'base' is given twice"),
        ("base=", "--x: '' is no number"),
    ],
)
def test_refusals(text, words):
    with pytest.raises(TrajectoryError, match=words):
        joint_values(text, NAMES, "--x")

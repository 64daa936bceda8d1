"""Series of poses, wrenches and commands."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording.series import CommandSeries, PoseSeries, WrenchSeries

TIME = np.arange(4.0)
POSES = {"position": np.zeros((4, 3)), "quaternion": np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))}
WRENCHES = {"force": np.zeros((4, 3)), "torque": np.zeros((4, 3))}


@pytest.mark.parametrize(
    ("series", "arguments", "message"),
    [
        (PoseSeries, {**POSES, "position": np.zeros((4, 2))}, r"shape \(4, 2\); expected \(4, 3\)"),
        (PoseSeries, {**POSES, "quaternion": np.zeros((3, 4))}, r"quaternion of a series has shape \(3, 4\)"),
        (WrenchSeries, {**WRENCHES, "force": np.zeros(4)}, r"force of a series has shape \(4,\); expected \(4, 3\)"),
        (WrenchSeries, {**WRENCHES, "torque": [["a"] * 3] * 4}, "torque of a series does not hold numbers"),
        (CommandSeries, {"position": np.zeros(4)}, r"position of a series has shape \(4,\); expected \(4, 1\)"),
        (CommandSeries, {"position": np.zeros((4, 2)), "time": [0, 1, 1, 2]}, "command: time repeats at sample 2"),
        (WrenchSeries, {**WRENCHES, "time": np.zeros((2, 2))}, r"time of a series has shape \(2, 2\); expected \(4,\)"),
    ],
)
def test_refuses_arrays_of_wrong_shape(series, arguments, message):
    with pytest.raises(RecordingError, match=message):
        series(**{"time": TIME, **arguments})


def test_slice_includes_both_ends():
    part = WrenchSeries(TIME, **WRENCHES).between(1.0, 2.0)
    assert part.time.tolist() == [1.0, 2.0]
    assert (part.force.shape, part.torque.shape) == ((2, 3), (2, 3))


def test_slice_of_commands_includes_the_held_command():
    commands = CommandSeries(TIME, np.outer(TIME, [1.0, 10.0]))
    part = commands.between(1.5, 2.5).select([1])
    assert part.time.tolist() == [1.0, 2.0]
    assert part.position.tolist() == [[10.0], [20.0]]
    assert commands.between(5.0, 6.0).time.tolist() == [3.0]

"""Numbers of the demonstration, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.errors import IdentificationError
from dynid_ros.report import Demonstration


@pytest.fixture(name="small")
def fixture_small():
    return Demonstration(
        joint_names=("a", "b", "c"),
        moments=np.zeros(6),
        poses=np.zeros((2, 3)),
        gravity_torque=np.array([[3.0, 1e-15, -10.0], [-4.0, 0.0, 8.0]]),
        identified_torque=np.array([[3.3, 0.0, np.nan], [-4.4, 0.0, 8.0]]),
        time=np.array([2.0, 3.0, 4.5]),
        position_without=np.array([[0.5, 0, 1.0], [0.1, 0.001, 1.3], [0.3, 0, 0.2]]),
        position_with=np.array([[0.5, 0, 1.0], [0.51, 0.001, 1.0], [0.48, 0, 1.04]]),
    )


def test_torque_errors(small):
    np.testing.assert_array_equal(small.largest_torque, [4, 0, 10])
    np.testing.assert_allclose(small.torque_rms, [np.sqrt((0.3**2 + 0.4**2) / 2), 7e-16, np.nan], atol=1e-15)
    np.testing.assert_allclose(small.relative_rms, [small.torque_rms[0] / 4, np.nan, np.nan])
    np.testing.assert_allclose(small.relative_worst, [0.1, np.nan, np.nan])


def test_drift_is_the_farthest_from_the_start(small):
    assert small.duration == 2.5
    np.testing.assert_allclose(small.drift_without, [0.4, 0.001, 0.8])
    np.testing.assert_allclose(small.drift_with, [0.02, 0.001, 0.04])
    np.testing.assert_allclose(small.drift_ratios, [0.05, np.nan, 0.05])
    assert small.drift_ratio == pytest.approx(0.05)


def test_no_ratio_where_friction_holds_the_arm(small):
    held = replace(small, position_without=np.repeat(small.position_without[:1], 3, axis=0))
    assert np.isnan(held.drift_ratio)
    assert np.isnan(held.drift_ratios).all()


@pytest.mark.parametrize("field", ["gravity_torque", "identified_torque", "position_without", "position_with", "poses"])
def test_wrong_shape_is_named(small, field):
    with pytest.raises(IdentificationError, match=field):
        replace(small, **{field: np.zeros((2, 5))})


def test_empty_drop_test_is_refused(small):
    empty = np.zeros((0, 3))
    with pytest.raises(IdentificationError, match="not empty"):
        replace(small, time=np.zeros(0), position_without=empty, position_with=empty)

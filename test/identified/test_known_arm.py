"""Arms from files."""

import numpy as np
import pytest
from link_experiment import planar, record

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.links import known_arm
from dynid_ros.model.friction import JointFriction


@pytest.fixture(scope="module")
def result():
    robot, truth = planar()
    return LinkIdentification(robot, friction=JointFriction(offset=True, smoothing=0.05)).fit(record(robot, truth))


def test_covariance_survives_the_file(result):
    arm = known_arm(result.document(), result.robot)
    np.testing.assert_allclose(arm.covariance, result.known_arm.covariance, rtol=1e-5, atol=1e-15)
    assert arm.decided_columns.size == len(result.base_parameters.values)


def test_unknown_gains_are_left_out(result):
    without = LinkIdentification(
        result.robot, friction=JointFriction(offset=True, smoothing=0.05), torque_gain_error=0.0
    ).fit(record(*planar()))
    own, other = (np.diag(found.known_arm.covariance) for found in (result, without))
    np.testing.assert_allclose(own, other, rtol=1e-6)
    assert np.any(np.diag(result.base_parameters.covariance) > 10 * own)


def test_old_file_has_no_covariance(result):
    document = result.document()
    del document["base_covariance"]
    assert known_arm(document, result.robot).covariance is None


@pytest.mark.parametrize("rows", [["1.0"], "nonsense", [1, 2], ["a"], ["nan"]])
def test_malformed_covariance_is_refused(result, rows):
    with pytest.raises(IdentifiedFileError, match="base_covariance"):
        known_arm({**result.document(), "base_covariance": rows}, result.robot)

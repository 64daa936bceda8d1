"""Arms from files."""

import numpy as np
import pytest
from link_experiment import build_planar, record

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.links import known_arm
from dynid_ros.model.friction import JointFriction


@pytest.fixture(scope="module")
def result():
    robot, truth = build_planar()
    return LinkIdentification(robot, friction=JointFriction(offset=True, smoothing=0.05)).fit(record(robot, truth))


def test_covariance_survives_the_file(result):
    arm = known_arm(result.document(), result.robot)
    np.testing.assert_allclose(arm.covariance, result.known_arm.covariance, rtol=1e-5, atol=1e-15)
    assert arm.decided_columns.size == len(result.base_parameters.values)


def test_unknown_gains_are_left_out(result):
    without = LinkIdentification(
        result.robot, friction=JointFriction(offset=True, smoothing=0.05), torque_gain_error=0.0
    ).fit(record(*build_planar()))
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


def test_a_base_parameter_below_the_noise_has_no_error(result):
    document = result.document()
    whole = known_arm(document, result.robot)
    hidden = 1
    del document["base_parameters"][hidden]
    lower = [row.split() for row in document["base_covariance"]]
    document["base_covariance"] = [
        " ".join(value for j, value in enumerate(row) if j != hidden) for i, row in enumerate(lower) if i != hidden
    ]
    document["base_gain_shifts"] = [
        " ".join(value for j, value in enumerate(row.split()) if j != hidden) for row in document["base_gain_shifts"]
    ]
    arm = known_arm(document, result.robot)
    kept = np.delete(np.arange(len(arm.names)), hidden)
    np.testing.assert_array_equal(arm.covariance[hidden], 0.0)
    np.testing.assert_allclose(arm.covariance[np.ix_(kept, kept)], whole.covariance[np.ix_(kept, kept)])
    assert len(arm.values) == len(arm.names)


def test_without_a_list_of_base_parameters_the_errors_are_those_of_all(result):
    document = result.document()
    del document["base_parameters"]
    np.testing.assert_allclose(
        known_arm(document, result.robot).covariance, result.known_arm.covariance, rtol=1e-5, atol=1e-15
    )


def test_another_base_parameter_is_refused(result):
    document = result.document()
    document["base_parameters"] = [{"expression": "m9"}, *document["base_parameters"][1:]]
    with pytest.raises(IdentifiedFileError, match="m9"):
        known_arm(document, result.robot)


def test_values_give_the_torque_of_the_arm(result):
    arm = result.known_arm
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 50, result.robot.n_joints))
    rows = arm.columns.rows(q, qd, qdd)
    torque = np.stack(
        [matrix @ spread(arm)[columns] for matrix, columns in zip(rows, arm.columns.of_joint, strict=True)], axis=1
    )
    np.testing.assert_allclose(torque, arm.model.predict(q, qd, qdd), rtol=1e-6, atol=1e-6)


def spread(arm):
    """Values of all columns, zero for dependent ones."""
    values = np.zeros(arm.columns.size)
    values[arm.decided_columns] = arm.values
    return values

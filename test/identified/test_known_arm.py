"""Test arms read from identified files."""

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


def test_covariance_round_trips(result):
    arm = known_arm(result.document(), result.robot)
    np.testing.assert_allclose(arm.covariance, result.known_arm.covariance, rtol=1e-5, atol=1e-15)
    assert arm.decided_columns.size == len(result.base_parameters.values)


def test_covariance_excludes_gain_errors(result):
    friction = JointFriction(offset=True, smoothing=0.05)
    identification = LinkIdentification(result.robot, friction=friction, torque_gain_error=0.0)
    without_gains = identification.fit(record(*build_planar()))
    variances = np.diag(result.known_arm.covariance)
    np.testing.assert_allclose(variances, np.diag(without_gains.known_arm.covariance), rtol=1e-6)
    assert np.any(np.diag(result.base_parameters.covariance) > 10 * variances)


def test_files_without_covariance_are_read(result):
    document = result.document()
    del document["base_covariance"]
    assert known_arm(document, result.robot).covariance is None


@pytest.mark.parametrize("rows", [["1.0"], "nonsense", [1, 2], ["a"], ["nan"]])
def test_refuses_malformed_covariances(result, rows):
    with pytest.raises(IdentifiedFileError, match="base_covariance"):
        known_arm({**result.document(), "base_covariance": rows}, result.robot)


def test_omitted_base_parameters_have_zero_covariance(result):
    document = result.document()
    complete = known_arm(document, result.robot)
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
    np.testing.assert_allclose(arm.covariance[np.ix_(kept, kept)], complete.covariance[np.ix_(kept, kept)])
    assert len(arm.values) == len(arm.names)


def test_covariance_covers_all_base_parameters_by_default(result):
    document = result.document()
    del document["base_parameters"]
    covariance = known_arm(document, result.robot).covariance
    np.testing.assert_allclose(covariance, result.known_arm.covariance, rtol=1e-5, atol=1e-15)


def test_refuses_other_base_parameters(result):
    document = result.document()
    document["base_parameters"] = [{"expression": "m9"}, *document["base_parameters"][1:]]
    with pytest.raises(IdentifiedFileError, match="m9"):
        known_arm(document, result.robot)


def test_values_reproduce_the_torque_of_the_arm(result):
    arm = result.known_arm
    motion = np.random.default_rng(0).normal(size=(3, 50, result.robot.n_joints))
    values = np.zeros(arm.columns.size)
    values[arm.decided_columns] = arm.values
    rows = zip(arm.columns.rows(*motion), arm.columns.of_joint, strict=True)
    torque = np.stack([matrix @ values[columns] for matrix, columns in rows], axis=1)
    np.testing.assert_allclose(torque, arm.model.predict(*motion), rtol=1e-6, atol=1e-6)

"""Test residuals of validation recordings and their use."""

import numpy as np
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import IdentifiedDocument
from dynid_ros.identified.links import residual_rms
from dynid_ros.identified.validation import Validation, read_validations, validate_torque

JOINTS = ("a", "b")
MEASURED = np.column_stack([np.sin(np.arange(400) / 10), 3.0 + np.cos(np.arange(400) / 7)])


def create_validation(rms):
    ones = np.ones(2)
    return Validation("run.csv", JOINTS, np.array(rms), 0.1 * ones, 0.9 * ones)


@pytest.mark.parametrize("offset", [0.3, -0.3])
def test_validation_counts_constant_errors_in_full(offset):
    validation = validate_torque("run.csv", JOINTS, MEASURED, MEASURED + offset)
    np.testing.assert_allclose(validation.rms, 0.3)
    np.testing.assert_allclose(validation.relative_rms, 0.3 / np.sqrt(np.mean(MEASURED**2, axis=0)))
    np.testing.assert_allclose(validation.r2, 1 - 0.09 / MEASURED.var(axis=0))


def test_validation_is_nan_without_prediction_or_variation():
    predicted = MEASURED * [np.nan, 1.0]
    assert np.isnan(validate_torque("run.csv", JOINTS, MEASURED, predicted).rms).tolist() == [True, False]
    constant = np.tile([2.0, 3.0], (50, 1))
    assert np.isnan(validate_torque("run.csv", JOINTS, constant, constant).r2).all()


@pytest.mark.parametrize(("rms", "expected"), [([0.2, 0.9], [0.5, 0.9]), ([0.7, 0.1], [0.7, 0.5]), ([], [0.5, 0.5])])
def test_larger_residual_of_fit_and_validation_counts(rms, expected):
    document = {"residual_rms": {"a": 0.5, "b": 0.5}, "validation": [create_validation(rms).document()] if rms else []}
    document = IdentifiedDocument(document, "identified.yaml")
    assert residual_rms(document, JOINTS).tolist() == expected


def test_validations_round_trip():
    document = IdentifiedDocument({"validation": [create_validation([0.2, np.nan]).document()]}, "identified.yaml")
    (validation,) = read_validations(document, JOINTS)
    np.testing.assert_array_equal(validation.rms, [0.2, np.nan])
    assert (validation.recording, validation.unit) == ("run.csv", "N m")
    with pytest.raises(IdentifiedFileError, match="must be a list of mappings"):
        read_validations(IdentifiedDocument({"validation": {"rms": 1}}, "identified.yaml"), JOINTS)

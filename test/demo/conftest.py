"""The arm of the reports on gravity, let go."""

import numpy as np
import pytest
from gravity_report_arm import (  # noqa: F401 - fixtures
    NAMES,
    fixture_arm,
    fixture_document,
    fixture_result,
    fixture_robot,
    fixture_samples,
    gravity_torque,
    read_only,
)

from dynid_ros.demo.drop_test import Demonstration


@pytest.fixture(name="demonstration", scope="session")
def fixture_demonstration(result):
    poses = np.random.default_rng(5).uniform(-1.5, 1.5, (100, 4))
    time = np.linspace(0, 5, 251)
    start = np.array([0.2, -0.8, 0.9, 0.1])
    fall = np.stack([0 * time, 1 - np.cos(time), 0.5 * np.tanh(time), 0.1 * time], axis=1)
    found = Demonstration(
        joint_names=NAMES,
        moments=np.where(np.isnan(result.parameters), np.nan, result.parameters + 0.5 * result.standard_errors),
        poses=poses,
        gravity_torque=gravity_torque(poses),
        identified_torque=result.predict(poses),
        time=time,
        position_without=start + fall,
        position_with=start + 0.01 * fall,
    )
    return read_only(found)

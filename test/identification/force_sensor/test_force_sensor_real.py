"""A real wrist sensor with a tool in static poses; the readings are not in the repository."""

import numpy as np
import pytest
from real_recordings import DATA, MISSING

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import ForceSensorCalibration

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)


@pytest.fixture(name="poses", scope="module")
def fixture_poses() -> tuple[np.ndarray, np.ndarray]:
    """Quaternions x y z w (50, 4) and wrenches (50, 6) in the base frame."""
    with np.load(DATA / "ft_static" / "develop" / "poses_even.npz") as archive:
        return archive["pose_xyz_quat_xyzw"][:, 3:], archive["wrench_base"]


def test_mass_and_center_of_the_tool(poses):
    result = ForceSensorCalibration(frame="base").fit(*poses)
    assert result.mass == pytest.approx(1.240, abs=0.002)
    assert result.center[2] == pytest.approx(0.045, abs=0.0005)
    assert np.all(np.abs(result.center[:2]) < 0.001)
    assert np.all(result.residual_rms[:3] < [0.14, 0.22, 0.44])
    assert np.all(result.residual_rms[3:] < 0.002)
    assert result.condition_number < 5


def test_poses_left_out(poses):
    quaternions, wrench = poses
    result = ForceSensorCalibration(frame="base").fit(quaternions[::2], wrench[::2])
    assert np.all(result.validate(quaternions[1::2], wrench[1::2]) < [0.17, 0.22, 0.42, 0.001, 0.0015, 0.002])


def test_drift_is_told_and_its_error_is_in_the_interval(poses):
    """Fx and Fy alone, and poses taken one soon after the other, say 1.17 kg: Fz warms up by 2 N."""
    result = ForceSensorCalibration(frame="base").fit(*poses)
    assert "the sensor drifts" in result.remarks[0]
    assert "force z by 2.3 N" in result.remarks[0]
    drifting = ForceSensorCalibration(frame="base", drift=2).fit(*poses, np.arange(50.0))
    assert drifting.residual_rms[2] < 0.12
    assert drifting.mass == pytest.approx(1.18, abs=0.01)
    low, high = result.confidence_intervals()[0]
    assert low < drifting.mass < high
    quaternions, wrench = poses
    soon = [ForceSensorCalibration(frame="base").fit(quaternions[i : i + 10], wrench[i : i + 10]) for i in (0, 20, 40)]
    for part in soon:
        assert abs(part.mass - drifting.mass) < 0.06


def test_other_frame_sign_and_order_are_refused(poses):
    quaternions, wrench = poses
    with pytest.raises(IdentificationError, match="2% if they are in the frame of the base: set frame='base'"):
        ForceSensorCalibration().fit(quaternions, wrench)
    with pytest.raises(IdentificationError, match=r"mass would be -1\.24 kg"):
        ForceSensorCalibration(frame="base", convention="sensor_on_load").fit(quaternions, wrench)
    with pytest.raises(IdentificationError, match="2% if the quaternions are in the order w x y z"):
        ForceSensorCalibration(frame="base").fit(quaternions[:, [3, 0, 1, 2]], wrench)

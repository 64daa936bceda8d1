"""Transformations between the frames of wrenches."""

import numpy as np
import pytest
from random_chains import TIP, random_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.wrench_frame import frame_of, sensor_wrench, tip_rotations, turned
from dynid_ros.model import RobotModel
from dynid_ros.recording import WrenchSeries

ROBOT = RobotModel.from_urdf(random_urdf(np.random.default_rng(2), 4), tip=TIP)


def series(frame_id: str) -> WrenchSeries:
    return WrenchSeries(np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)), frame_id)


def test_frame_is_selected_by_its_name():
    assert frame_of(series(TIP), ROBOT, None, "run") == "sensor"
    assert frame_of(series(f"/{TIP}"), ROBOT, None, "run") == "sensor"
    assert frame_of(series("base"), ROBOT, None, "run") == "base"
    assert frame_of(series("elsewhere"), ROBOT, "sensor", "run") == "sensor"
    with pytest.raises(IdentificationError, match=r"run: .* frame 'elsewhere', .* tip='elsewhere'"):
        frame_of(series("elsewhere"), ROBOT, None, "run")
    with pytest.raises(IdentificationError, match="have no frame_id"):
        frame_of(series(""), ROBOT, None, "run")


def test_rotation_to_the_base_and_back_is_the_identity():
    rotations = Rotation.random(7, random_state=0)
    wrench = np.random.default_rng(0).normal(size=(7, 6))
    in_base = turned(wrench, rotations.as_matrix())
    np.testing.assert_allclose(in_base[:, :3], rotations.apply(wrench[:, :3]), atol=1e-12)
    np.testing.assert_allclose(in_base[:, 3:], rotations.apply(wrench[:, 3:]), atol=1e-12)
    np.testing.assert_allclose(sensor_wrench(in_base, rotations.as_matrix(), "base"), wrench, atol=1e-12)
    assert sensor_wrench(wrench, rotations.as_matrix(), "sensor") is wrench


def test_tip_rotations_match_gravity_in_the_wrench_regressor():
    q = np.random.default_rng(1).normal(size=(6, 4))
    weight = ROBOT.wrench_regressor(q, 0 * q, 0 * q)[:, :3, 0]
    in_base = np.einsum("nij,nj->ni", tip_rotations(ROBOT, q), weight)
    np.testing.assert_allclose(in_base, np.tile(-ROBOT.gravity, (6, 1)), atol=1e-12)

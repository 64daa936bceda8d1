"""Test the registration of markers on the hand of a real robot with eight joints, from static poses."""

import numpy as np
import pytest
from hand_poses import TIAGO_CSV, TIAGO_URDF, distances, read_poses
from real_recordings import MISSING

from dynid_ros.errors import MocapError
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.registration import register
from dynid_ros.model import RobotModel

pytestmark = pytest.mark.skipif(not TIAGO_CSV.is_file(), reason=MISSING)


@pytest.fixture(scope="module")
def tiago():
    robot = RobotModel.from_urdf(TIAGO_URDF, tip="arm_7_link")
    motor, positions = read_poses(TIAGO_CSV, robot)
    return robot, MarkerSet.on_links(robot, ["arm_7_link"] * 3, dof=2.0), motor, positions


def rms(values):
    return np.sqrt(np.mean(values**2))


def test_registration_agrees_with_the_joint_positions(tiago):
    robot, markers, motor, positions = tiago
    assert positions.shape == (22, 3, 3)
    registration = register(robot, markers, motor, positions)
    assert rms(distances(robot, registration, motor, positions)) < 5e-3
    assert registration.undecided == ()
    assert registration.deflection is None  # the six numbers of a frame do not determine eight joints
    # The tracker fitted a rigid body, so the distances of markers on the link agree.
    sides = np.linalg.norm(positions - np.roll(positions, 1, axis=1), axis=2)[0]
    places = registration.markers.places
    np.testing.assert_allclose(np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1), sides, atol=2e-3)


def test_registration_predicts_held_out_poses(tiago):
    robot, markers, motor, positions = tiago
    rows = np.arange(22)
    held_out_errors = []
    for fold in range(5):
        is_fitted = rows % 5 != fold
        registration = register(robot, markers, motor[is_fitted], positions[is_fitted])
        held_out_errors.append(distances(robot, registration, motor[~is_fitted], positions[~is_fitted]))
    assert rms(np.concatenate(held_out_errors)) < 7e-3


def test_mirrored_and_millimetre_data_are_recognized(tiago):
    robot, markers, motor, positions = tiago
    with pytest.raises(MocapError, match="millimetres"):
        register(robot, markers, motor, 1000 * positions)
    with pytest.raises(MocapError, match="left-handed"):
        register(robot, markers, motor, positions * [1, -1, 1])

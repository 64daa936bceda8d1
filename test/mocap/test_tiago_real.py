"""Markers on the hand of a real robot, eight joints (one slides), poses at rest."""

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


def test_markers_are_where_the_joints_put_them(tiago):
    robot, markers, motor, positions = tiago
    assert positions.shape == (22, 3, 3)
    found = register(robot, markers, motor, positions)
    assert rms(distances(robot, found, motor, positions)) < 5e-3
    assert found.undecided == ()
    assert found.deflection is None  # six numbers in a frame do not determine eight joints
    # The rigid body that the tracker fitted: markers keep their distances on the link too.
    sides = np.linalg.norm(positions - np.roll(positions, 1, axis=1), axis=2)[0]
    places = found.markers.places
    np.testing.assert_allclose(np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1), sides, atol=2e-3)


def test_poses_that_were_left_out(tiago):
    robot, markers, motor, positions = tiago
    rows = np.arange(22)
    left = []
    for part in range(5):
        others = rows % 5 != part
        found = register(robot, markers, motor[others], positions[others])
        left.append(distances(robot, found, motor[~others], positions[~others]))
    assert rms(np.concatenate(left)) < 7e-3


def test_mirrored_and_millimetres_are_told_on_real_data(tiago):
    robot, markers, motor, positions = tiago
    with pytest.raises(MocapError, match="millimetres"):
        register(robot, markers, motor, 1000 * positions)
    with pytest.raises(MocapError, match="left-handed"):
        register(robot, markers, motor, positions * [1, -1, 1])

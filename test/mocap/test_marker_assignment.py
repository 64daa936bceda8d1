import numpy as np
import pytest
from marker_experiment import experiment, motion, noisy, pose, seen, ur10
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_assignment import assign, bodies
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.markers import tracks
from dynid_ros.mocap.registration import register
from dynid_ros.model import RobotModel


@pytest.fixture(scope="module")
def moved():
    rng = np.random.default_rng(1)
    e = experiment(rng, ur10(), frames=800, per_link=3, on=(0, 2, 5), rate=50)
    return e, noisy(rng, e.positions, 0.1)


def test_bodies_are_links(moved):
    e, positions = moved
    stray = np.concatenate([positions, np.random.default_rng(2).normal(size=(800, 1, 3))], axis=1)
    found = bodies(stray[::5])
    assert found[-1] == -1
    assert len(set(found[:-1])) == 3
    for number in range(3):
        assert len({e.links[p] for p in np.flatnonzero(found == number)}) == 1


def test_unlabelled_markers_find_their_links(moved):
    e, positions = moved
    order = np.random.default_rng(3).permutation(len(e.links))
    found = assign(e.robot, e.motor, positions[:, order])
    assert list(found.links) == [e.links[p] for p in order]
    assert found.stray.max() < 0.02


def test_no_body_is_refused():
    rng = np.random.default_rng(4)
    with pytest.raises(MocapError, match="no three of 5 markers keep their distances"):
        assign(ur10(), rng.normal(size=(50, 6)), rng.normal(size=(50, 5, 3)))


def test_tracks_stay_with_one_marker(moved):
    e, positions = moved
    rng = np.random.default_rng(5)
    shuffled = np.array([row[rng.permutation(len(row))] for row in positions[:600]])
    found = tracks(shuffled, e.time[:600])
    assert found.shape == (600, 9, 3)
    there = np.isfinite(found).all(axis=2)
    nearest = np.linalg.norm(found[:, :, None] - e.positions[:600, None], axis=3)
    owner = np.where(there, np.nanargmin(np.where(np.isnan(nearest), np.inf, nearest), axis=2), -1)
    assert sorted(max(set(column[column >= 0])) for column in owner.T) == list(range(9))
    assert all(len(set(column[column >= 0])) == 1 for column in owner.T)
    assert there.sum() == np.isfinite(shuffled).all(axis=2).sum()


AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0")
"""Axes of the joints of an arm whose third joint mimics the second."""


def linkage(*, mimic):
    """URDF of five links, with or without the linkage that makes joint_3 turn by -0.8 of joint_2."""
    parts = ['<robot name="linkage"><link name="base"/>']
    for k, axis in enumerate(AXES, start=1):
        follows = '<mimic joint="joint_2" multiplier="-0.8" offset="0.2"/>' if mimic and k == 3 else ""
        parts.append(
            f'<joint name="joint_{k}" type="revolute"><parent link="{"base" if k == 1 else f"link_{k - 1}"}"/>'
            f'<child link="link_{k}"/><origin xyz="0.05 0 {0.1 + 0.05 * k}"/><axis xyz="{axis}"/>{follows}'
            '<limit lower="-3" upper="3" velocity="2" effort="50"/></joint>'
            f'<link name="link_{k}"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" '
            'ixz="0" iyz="0"/></inertial></link>'
        )
    return "".join(parts) + "</robot>"


def test_links_behind_a_joint_that_mimics_another_are_found():
    rng = np.random.default_rng(8)
    whole = RobotModel.from_urdf(linkage(mimic=False))
    robot = RobotModel.from_urdf(linkage(mimic=True))
    time = np.arange(400) / 25.0
    motor = motion(rng, robot, time, 0.6)
    link = motor - np.deg2rad(0.4) * np.sin(motor @ rng.normal(size=(4, 4)))
    every = np.insert(link, 2, -0.8 * link[:, 1] + 0.2, axis=1)
    index = np.repeat(np.arange(5), 3)
    places = rng.normal(size=(15, 3))
    places *= 0.12 / np.linalg.norm(places, axis=1, keepdims=True)
    camera = pose(rng)
    positions = seen(PinocchioArm(whole.urdf, whole.joint_names, whole.gravity), every, index, places)
    positions = noisy(rng, positions @ camera[:3, :3].T + camera[:3, 3])
    found = assign(robot, motor, positions)
    expected = [f"link_{k + 1}" for k in index]
    assert list(found.links) == expected
    registration = register(robot, MarkerSet.on_links(robot, expected), motor, positions)
    angles = chain_angles(robot, registration.markers, positions, registration.camera, time, seed=motor)
    assert np.std(angles.position - link, axis=0).max() < np.deg2rad(0.2)

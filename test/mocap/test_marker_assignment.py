"""Test the assignment of unlabeled markers to links, and tracks of markers."""

import numpy as np
import pytest
from marker_experiment import add_noise, draw_motion, draw_pose, load_ur10, place_markers, simulate_experiment
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import MocapError
from dynid_ros.mocap.link_angles import chain_angles
from dynid_ros.mocap.marker_assignment import assign, bodies
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.markers import tracks
from dynid_ros.mocap.registration import register
from dynid_ros.model import RobotModel


@pytest.fixture(scope="module")
def three_bodies():
    """Return an experiment with three bodies, and its noisy positions."""
    rng = np.random.default_rng(1)
    scene = simulate_experiment(rng, load_ur10(), frames=800, per_link=3, on=(0, 2, 5), rate=50)
    return scene, add_noise(rng, scene.positions, 0.1)


def test_markers_of_a_link_form_a_body(three_bodies):
    scene, positions = three_bodies
    stray = np.concatenate([positions, np.random.default_rng(2).normal(size=(800, 1, 3))], axis=1)
    body_numbers = bodies(stray[::5])
    assert body_numbers[-1] == -1
    assert len(set(body_numbers[:-1])) == 3
    for number in range(3):
        assert len({scene.links[p] for p in np.flatnonzero(body_numbers == number)}) == 1


def test_unlabeled_markers_are_assigned_to_their_links(three_bodies):
    scene, positions = three_bodies
    order = np.random.default_rng(3).permutation(len(scene.links))
    assignment = assign(scene.robot, scene.motor, positions[:, order])
    assert list(assignment.links) == [scene.links[p] for p in order]
    assert assignment.stray.max() < 0.02


def test_markers_without_bodies_are_refused():
    rng = np.random.default_rng(4)
    with pytest.raises(MocapError, match="no three of 5 markers keep their distances"):
        assign(load_ur10(), rng.normal(size=(50, 6)), rng.normal(size=(50, 5, 3)))


def test_each_track_follows_one_marker(three_bodies):
    scene, positions = three_bodies
    rng = np.random.default_rng(5)
    shuffled = np.array([row[rng.permutation(len(row))] for row in positions[:600]])
    tracked = tracks(shuffled, scene.time[:600])
    assert tracked.shape == (600, 9, 3)
    is_seen = np.isfinite(tracked).all(axis=2)
    nearest = np.linalg.norm(tracked[:, :, None] - scene.positions[:600, None], axis=3)
    owner = np.where(is_seen, np.nanargmin(np.where(np.isnan(nearest), np.inf, nearest), axis=2), -1)
    assert sorted(max(set(column[column >= 0])) for column in owner.T) == list(range(9))
    assert all(len(set(column[column >= 0])) == 1 for column in owner.T)
    assert is_seen.sum() == np.isfinite(shuffled).all(axis=2).sum()


AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0")
"""Axes of the joints of an arm whose third joint mimics the second."""


def build_linkage_urdf(*, mimic):
    """Return the URDF of five links, with or without a joint_3 that mimics joint_2 by the factor -0.8."""
    parts = ['<robot name="linkage"><link name="base"/>']
    for k, axis in enumerate(AXES, start=1):
        mimic_element = '<mimic joint="joint_2" multiplier="-0.8" offset="0.2"/>' if mimic and k == 3 else ""
        parts.append(
            f'<joint name="joint_{k}" type="revolute"><parent link="{"base" if k == 1 else f"link_{k - 1}"}"/>'
            f'<child link="link_{k}"/><origin xyz="0.05 0 {0.1 + 0.05 * k}"/><axis xyz="{axis}"/>{mimic_element}'
            '<limit lower="-3" upper="3" velocity="2" effort="50"/></joint>'
            f'<link name="link_{k}"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" '
            'ixz="0" iyz="0"/></inertial></link>'
        )
    return "".join(parts) + "</robot>"


def test_links_beyond_a_mimic_joint_are_assigned():
    rng = np.random.default_rng(8)
    free_robot = RobotModel.from_urdf(build_linkage_urdf(mimic=False))
    robot = RobotModel.from_urdf(build_linkage_urdf(mimic=True))
    time = np.arange(400) / 25.0
    motor = draw_motion(rng, robot, time, 0.6)
    link = motor - np.deg2rad(0.4) * np.sin(motor @ rng.normal(size=(4, 4)))
    all_joints = np.insert(link, 2, -0.8 * link[:, 1] + 0.2, axis=1)
    index = np.repeat(np.arange(5), 3)
    places = rng.normal(size=(15, 3))
    places *= 0.12 / np.linalg.norm(places, axis=1, keepdims=True)
    camera = draw_pose(rng)
    positions = place_markers(
        PinocchioArm(free_robot.urdf, free_robot.joint_names, free_robot.gravity), all_joints, index, places
    )
    positions = add_noise(rng, positions @ camera[:3, :3].T + camera[:3, 3])
    assignment = assign(robot, motor, positions)
    expected = [f"link_{k + 1}" for k in index]
    assert list(assignment.links) == expected
    registration = register(robot, MarkerSet.on_links(robot, expected), motor, positions)
    angles = chain_angles(robot, registration.markers, positions, registration.camera, time, seed=motor)
    assert np.std(angles.position - link, axis=0).max() < np.deg2rad(0.2)

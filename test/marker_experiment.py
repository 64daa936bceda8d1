"""Simulate markers on a moving arm in front of a camera, placed by Pinocchio's kinematics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pinocchio_arm import PinocchioArm, example_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel

NOISE_M = 0.3e-3
UR10 = "ur_description/urdf/ur10_robot.urdf"


def load_ur10() -> RobotModel:
    """Return the UR10, the six-joint arm that carries the markers."""
    return RobotModel.from_urdf(example_urdf(UR10), tip="tool0")


@dataclass
class MarkerExperiment:
    """P markers on the links of `robot` in M frames of a camera, and the true motor and link angles."""

    robot: RobotModel
    time: NDArray
    motor: NDArray
    link: NDArray
    links: list[str]
    places: NDArray
    camera: NDArray
    positions: NDArray  # without noise


def draw_pose(rng: np.random.Generator, distance: float = 2.0) -> NDArray:
    """Return a random pose (4, 4) of the base in the camera's frame."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    q *= np.sign(np.linalg.det(q))
    transform = np.eye(4)
    transform[:3, :3] = q
    transform[:3, 3] = rng.normal(scale=distance, size=3)
    return transform


def draw_motion(rng: np.random.Generator, robot: RobotModel, time: NDArray, amplitude: float = 0.8) -> NDArray:
    """Return positions (M, n): three sinusoids per joint about a random pose, smaller for prismatic joints."""
    n = robot.n_joints
    frequencies = rng.uniform(0.05, 0.4, (n, 3))
    phases = rng.uniform(0, 2 * np.pi, (n, 3))
    waves = np.sin(2 * np.pi * frequencies * time[:, None, None] + phases).sum(axis=2) / 2
    scale = np.where(robot.chain.prismatic, 0.1, 1.0)
    return rng.uniform(-0.7, 0.7, n) * scale + amplitude * scale * waves


def place_markers(arm: PinocchioArm, q: NDArray, link: NDArray, places: NDArray) -> NDArray:
    """Return marker positions (M, P, 3) in the base frame; `link` is the index of a joint, or -1 for the base."""
    poses = np.array([arm.poses(row) for row in q])
    poses = np.concatenate([poses, np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))], axis=1)[:, link]
    return (poses[..., :3, :3] @ places[:, :, None])[..., 0] + poses[..., :3, 3]


def simulate_experiment(
    rng: np.random.Generator,
    robot: RobotModel,
    frames: int = 1000,
    per_link: int = 3,
    deflection: float = np.deg2rad(0.5),
    on: tuple[int, ...] | None = None,
    rate: float = 100.0,
) -> MarkerExperiment:
    """Simulate markers about 0.15 m from the origins of all links or those in `on`, with links on springs."""
    time = np.arange(frames) / rate
    motor = draw_motion(rng, robot, time)
    sag = deflection * np.sin(motor @ rng.normal(size=(robot.n_joints, robot.n_joints)))
    q = motor - sag * np.where(robot.chain.prismatic, 0.1, 1.0)
    index = np.repeat(np.arange(robot.n_joints) if on is None else np.array(on), per_link)
    places = rng.normal(size=(len(index), 3))
    places *= 0.15 / np.linalg.norm(places, axis=1, keepdims=True)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    camera = draw_pose(rng)
    positions = place_markers(arm, q, index, places) @ camera[:3, :3].T + camera[:3, 3]
    names = (*robot.link_names, robot.base)
    return MarkerExperiment(robot, time, motor, q, [names[i] for i in index], places, camera, positions)


def add_noise(rng: np.random.Generator, positions: NDArray, missing: float = 0.0, sigma: float = NOISE_M) -> NDArray:
    """Return positions with noise, of which a fraction is missing."""
    measured = positions + rng.normal(scale=sigma, size=positions.shape)
    measured[rng.random(positions.shape[:2]) < missing] = np.nan
    return measured


def swap_markers(rng: np.random.Generator, positions: NDArray, fraction: float) -> NDArray:
    """Return positions in which two markers are exchanged in a fraction of the frames."""
    mixed = positions.copy()
    for frame in np.flatnonzero(rng.random(len(positions)) < fraction):
        a, b = rng.choice(positions.shape[1], 2, replace=False)
        mixed[frame, [a, b]] = positions[frame, [b, a]]
    return mixed


def add_ghosts(rng: np.random.Generator, positions: NDArray, fraction: float, distance: float = 0.1) -> NDArray:
    """Return positions of which a fraction is displaced, like those of reflections."""
    ghosts = positions.copy()
    where = rng.random(positions.shape[:2]) < fraction
    ghosts[where] += rng.normal(scale=distance, size=(where.sum(), 3))
    return ghosts


def fit_body(measured: NDArray, true: NDArray) -> NDArray:
    """Return the body `true` (P, 3) moved to fit `measured`, as a tracker reports it."""
    a = true - true.mean(axis=0)
    b = measured - measured.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    rotation = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return a @ rotation.T + measured.mean(axis=0)


def track_bodies(
    rng: np.random.Generator, positions: NDArray, per_body: int, wrong: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Return noisy markers (M, P, 3) as bodies fitted by a tracker, and a mask (M, B) of wrong poses.

    Wrong poses are rotated by 0.1 rad about the first marker, whose position is right.
    """
    measured, bodies = (
        add_noise(rng, positions),
        np.split(np.arange(positions.shape[1]), positions.shape[1] // per_body),
    )
    is_wrong = rng.random((len(positions), len(bodies))) < wrong
    for number, markers in enumerate(bodies):
        for frame in range(len(positions)):
            points = fit_body(measured[frame, markers], positions[frame, markers])
            if is_wrong[frame, number]:
                rotation = Rotation.from_rotvec(0.1 * rng.choice([-1, 1], 3) / np.sqrt(3)).as_matrix()
                points = points[0] + (points - points[0]) @ rotation.T
            measured[frame, markers] = points
    return measured, is_wrong

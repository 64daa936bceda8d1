"""Markers on an arm that moves in front of a camera; Pinocchio puts them where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pinocchio_arm import PinocchioArm, example_urdf
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel

SIGMA = 0.3e-3
UR10 = "ur_description/urdf/ur10_robot.urdf"


def ur10() -> RobotModel:
    """The six-joint arm that carries the markers."""
    return RobotModel.from_urdf(example_urdf(UR10), tip="tool0")


@dataclass
class MarkerExperiment:
    """P markers on the links of `robot` as a camera sees them in M frames."""

    robot: RobotModel
    time: NDArray
    motor: NDArray
    link: NDArray
    links: list[str]
    places: NDArray
    camera: NDArray
    positions: NDArray  # without noise


def pose(rng: np.random.Generator, distance: float = 2.0) -> NDArray:
    """Any pose of the base in the camera's frame."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    q *= np.sign(np.linalg.det(q))
    transform = np.eye(4)
    transform[:3, :3], transform[:3, 3] = q, rng.normal(scale=distance, size=3)
    return transform


def motion(rng: np.random.Generator, robot: RobotModel, time: NDArray, amplitude: float = 0.8) -> NDArray:
    """(M, n): three sinusoids per joint about a random pose, sliding joints a tenth as far."""
    n = robot.n_joints
    frequencies = rng.uniform(0.05, 0.4, (n, 3))
    phases = rng.uniform(0, 2 * np.pi, (n, 3))
    waves = np.sin(2 * np.pi * frequencies * time[:, None, None] + phases).sum(axis=2) / 2
    scale = np.where(robot.chain.prismatic, 0.1, 1.0)
    return rng.uniform(-0.7, 0.7, n) * scale + amplitude * scale * waves


def seen(arm: PinocchioArm, q: NDArray, link: NDArray, places: NDArray) -> NDArray:
    """(M, P, 3) in the base frame, by Pinocchio's kinematics; `link` counts the joints, -1 is the base."""
    poses = np.array([arm.poses(row) for row in q])
    poses = np.concatenate([poses, np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))], axis=1)[:, link]
    return (poses[..., :3, :3] @ places[:, :, None])[..., 0] + poses[..., :3, 3]


def experiment(
    rng: np.random.Generator,
    robot: RobotModel,
    frames: int = 1000,
    per_link: int = 3,
    deflection: float = np.deg2rad(0.5),
    on: tuple[int, ...] | None = None,
    rate: float = 100.0,
) -> MarkerExperiment:
    """Markers some 0.15 m from the origins of all links or of those in `on`; links lag behind motors by springs."""
    time = np.arange(frames) / rate
    motor = motion(rng, robot, time)
    sag = deflection * np.sin(motor @ rng.normal(size=(robot.n_joints, robot.n_joints)))
    q = motor - sag * np.where(robot.chain.prismatic, 0.1, 1.0)
    index = np.repeat(np.arange(robot.n_joints) if on is None else np.array(on), per_link)
    places = rng.normal(size=(len(index), 3))
    places *= 0.15 / np.linalg.norm(places, axis=1, keepdims=True)
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    camera = pose(rng)
    positions = seen(arm, q, index, places) @ camera[:3, :3].T + camera[:3, 3]
    names = (*robot.link_names, robot.base)
    return MarkerExperiment(robot, time, motor, q, [names[i] for i in index], places, camera, positions)


def noisy(rng: np.random.Generator, positions: NDArray, missing: float = 0.0, sigma: float = SIGMA) -> NDArray:
    """With noise, and a share of all positions not seen."""
    measured = positions + rng.normal(scale=sigma, size=positions.shape)
    measured[rng.random(positions.shape[:2]) < missing] = np.nan
    return measured


def swapped(rng: np.random.Generator, positions: NDArray, share: float) -> NDArray:
    """Two markers change places in a share of the frames."""
    mixed = positions.copy()
    for frame in np.flatnonzero(rng.random(len(positions)) < share):
        a, b = rng.choice(positions.shape[1], 2, replace=False)
        mixed[frame, [a, b]] = positions[frame, [b, a]]
    return mixed


def haunted(rng: np.random.Generator, positions: NDArray, share: float, distance: float = 0.1) -> NDArray:
    """A share of all positions is that of something else, some way off."""
    ghosts = positions.copy()
    where = rng.random(positions.shape[:2]) < share
    ghosts[where] += rng.normal(scale=distance, size=(where.sum(), 3))
    return ghosts


def rigid(measured: NDArray, true: NDArray) -> NDArray:
    """The body `true` (P, 3) moved to fit `measured`, as a tracker reports it."""
    a, b = true - true.mean(axis=0), measured - measured.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return a @ turn.T + measured.mean(axis=0)


def tracked(rng: np.random.Generator, positions: NDArray, per_body: int, wrong: float = 0.0) -> tuple[NDArray, NDArray]:
    """Noisy markers (M, P, 3) as bodies of so many, fitted by a tracker, and which of these poses (M, B) are wrong.

    Wrong ones are turned by 0.1 rad about their first marker, which is right.
    """
    measured, bodies = noisy(rng, positions), np.split(np.arange(positions.shape[1]), positions.shape[1] // per_body)
    bad = rng.random((len(positions), len(bodies))) < wrong
    for number, own in enumerate(bodies):
        for frame in range(len(positions)):
            points = rigid(measured[frame, own], positions[frame, own])
            if bad[frame, number]:
                turn = Rotation.from_rotvec(0.1 * rng.choice([-1, 1], 3) / np.sqrt(3)).as_matrix()
                points = points[0] + (points - points[0]) @ turn.T
            measured[frame, own] = points
    return measured, bad

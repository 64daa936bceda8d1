"""Targets: the files that describe arms and their surroundings."""

from pathlib import Path
from zlib import crc32

import numpy as np
import planar_arm
from fuzzing import arms
from fuzzing.mutations import documents, texts
from fuzzing.outcome import require
from fuzzing.target import Target
from fuzzing.yaml_text import yaml_text

from dynid_ros.collision import read_obstacles
from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.excitation.given_motion import _read as read_motion
from dynid_ros.identification.identified_file import load_identified
from dynid_ros.identification.torque_sensors.correction import TorqueSensors
from dynid_ros.jobs.exciting.flexible_motion import flexible_prior
from dynid_ros.jobs.identifying.load_inputs import read_arm, read_tare
from dynid_ros.model import RobotModel
from dynid_ros.report.gravity.identified_gravity import IdentifiedGravity
from dynid_ros.trajectories import MotionLimits, Trajectory
from dynid_ros.trajectories.checks import check_limits
from dynid_ros.trajectories.fourier import FourierSeries

POSES = np.random.default_rng(0).uniform(-2.0, 2.0, (4, 3))


def read_urdf(data: bytes, folder: Path) -> None:
    """A URDF makes an arm that can be computed with."""
    path = folder / "arm.urdf"
    path.write_bytes(data)
    ends: tuple[tuple[str | None, str | None], ...] = ((None, None), ("link_3", "base_link"))
    for i, (tip, base) in enumerate(ends):
        try:
            robot = RobotModel.from_urdf(path, tip, base)
            break
        except DynidError as error:
            if i or "choose" not in str(error):
                raise
    require_arm(robot)


def require_arm(robot: RobotModel) -> None:
    """Complain of an arm that cannot be."""
    chain, n = robot.chain, robot.n_joints
    require(n > 0 and len(set(robot.joint_names)) == n == len(set(robot.link_names)), "names repeat")
    for transforms in (chain.placements, chain.link_offsets, chain.tip_offset[None]):
        turns = transforms[:, :3, :3]
        require(np.isfinite(transforms).all(), "a transform is not finite")
        require(np.abs(turns @ np.swapaxes(turns, 1, 2) - np.eye(3)).max() < 1e-9, "a rotation is none")
    limits = robot.limits
    require(not np.isnan([limits.lower, limits.upper, limits.velocity, limits.effort]).any(), "a limit is NaN")
    require((limits.lower <= limits.upper).all(), "limits cross")
    parameters = robot.parameters.reshape(n, 10)
    require(np.isfinite(parameters).all() and (parameters[:, 0] >= 0).all(), "a mass is none")
    q = np.resize(POSES, (4, n))
    with np.errstate(all="raise", under="ignore"):
        torque = robot.inverse_dynamics(q, q, q)
    require(np.isfinite(torque).all(), "a torque is not finite")


def read_identified(data: bytes, folder: Path) -> None:
    """An `identified.yaml` gives a gravity torque, links, a load, sensors or springs, or says why not."""
    path = folder / "identified.yaml"
    path.write_bytes(data)
    USES[crc32(data) % len(USES)](path, ROBOT)


def _gravity(path: Path, _robot: RobotModel) -> None:
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    load = gravity.load
    require(
        load is None or (0.0 <= load.mass < 1e6 and (not load.mass or np.abs(load.center).max() < 10)), "a load is none"
    )
    for q in POSES.tolist():
        try:
            torque = gravity(q)
        except ControlError:  # too heavy for its springs
            continue
        require(np.isfinite(torque).all(), "a gravity torque is not finite")


def _links(path: Path, robot: RobotModel) -> None:
    known, _ = read_arm(path, robot)
    require(np.isfinite(known.values).all(), "parameters are not finite")
    require((known.model.parameters[::10] >= 0).all(), "a mass is negative")
    require(known.covariance is None or np.isfinite(known.covariance).all(), "a covariance is not finite")
    require(np.isfinite(known.model.predict(POSES, POSES, POSES)).all(), "a torque is not finite")


def _tare(path: Path, robot: RobotModel) -> None:
    estimate = read_tare(path, robot).estimate
    require(np.isfinite(estimate.values[:4]).all() and np.isfinite(estimate.covariance).all(), "a tare is not finite")


def _moments(path: Path, robot: RobotModel) -> None:
    it = IdentifiedGravity(robot, load_identified(path))
    require(not np.isinf([*it.moments, *it.std, *it.offset, *it.coulomb, *it.viscous]).any(), "infinite")


def _sensors(path: Path, robot: RobotModel) -> None:
    sensors = TorqueSensors.of_document(load_identified(path), robot)
    require(np.isfinite(sensors.torque(POSES)).all(), "a torque is not finite")


def _prior(path: Path, robot: RobotModel) -> None:
    stiffness, inertia, *_ = flexible_prior(robot, {}, path).of(robot)
    require(np.isfinite(stiffness).all() and np.isfinite(inertia).all(), "a spring is not finite")


def obstacles(data: bytes, folder: Path) -> None:
    """Obstacles are boxes."""
    path = folder / "table.yaml"
    path.write_bytes(data)
    for box in read_obstacles(path):
        require(np.isfinite([*box.centre, *box.half, *box.rotation.ravel()]).all() and (box.half > 0).all(), "no box")


def motion(data: bytes, folder: Path) -> None:
    """A planned motion has an increasing time; it is finite, or refused before it is sent."""
    path = folder / "trajectory.yaml"
    path.write_bytes(data)
    for read in (
        Trajectory.read,
        lambda path: FourierSeries.read(path).trajectory(1),
        lambda path: read_motion(path, 2),
    ):
        try:
            it = read(path)
        except DynidError as error:
            refused = error
            continue
        require((np.diff(it.time) > 0).all(), "time does not increase")
        for values in (it.position, it.velocity, it.acceleration):
            require(values.shape == (len(it.time), len(it.joint_names)), "no motion")
            if not np.isfinite(values).all():
                # Refused before it is sent, with joint and time.
                check_limits(it, MotionLimits.of(ROBOT, acceleration_limits=[2.0]))
                require(False, "a motion that is not finite is taken to be safe")
        return
    raise refused


USES = (_gravity, _gravity, _links, _tare, _sensors, _prior, _moments)
ROBOT = arms.robot()
URDFS = [arms.urdf().encode(), arms.urdf(rich=True).encode()]
IDENTIFIED = [yaml_text(arms.identified()), yaml_text(planar_arm.document())]
OBSTACLES = [yaml_text(arms.obstacles()), b"- name: a\n  size: [1, 2, 3]\n  position: &p [0, 0, 0]\n  rpy: *p\n"]
MOTIONS = [yaml_text(arms.trajectory()), yaml_text(arms.fourier())]

TARGETS = (
    Target("URDF", texts(URDFS), read_urdf, URDFS, 1.5),
    Target(
        "identified.yaml",
        documents([arms.identified()]).map(yaml_text) | texts(IDENTIFIED),
        read_identified,
        IDENTIFIED,
    ),
    Target("obstacles", documents([arms.obstacles()]).map(yaml_text) | texts(OBSTACLES), obstacles, OBSTACLES),
    Target("motions", documents([arms.trajectory(), arms.fourier()]).map(yaml_text) | texts(MOTIONS), motion, MOTIONS),
)

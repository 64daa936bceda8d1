"""Fuzzing targets: files that describe arms and their surroundings."""

# ruff: noqa: E501 - tables of inputs

import struct
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import planar_arm
from fuzzing import arms
from fuzzing.mutations import documents, texts
from fuzzing.outcome import require
from fuzzing.target import Target
from fuzzing.yaml_text import yaml_text

from dynid_ros.collision import read_obstacles
from dynid_ros.collision.shapes import read_triangles
from dynid_ros.commands.report import report_file
from dynid_ros.control import IdentifiedFriction, load_gravity_torque
from dynid_ros.control.gravity_view import GravityView
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.excitation.joint_by_joint import read_motion
from dynid_ros.identification.torque_sensors.torque_sensor_observer import TorqueSensorObserver
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.experiments import flexible_prior
from dynid_ros.jobs.load import read_arm, read_tare
from dynid_ros.model import RobotModel
from dynid_ros.nodes.torque_sensor_calibration import read_gravity
from dynid_ros.trajectories import MotionLimits, Trajectory
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import check_limits

POSES = np.random.default_rng(0).uniform(-2.0, 2.0, (4, 3))


def read_urdf(data: bytes, folder: Path) -> None:
    """Require that an accepted URDF yields a usable arm."""
    path = folder / "arm.urdf"
    path.write_bytes(data)
    links: tuple[tuple[str | None, str | None], ...] = ((None, None), ("link_3", "base_link"))
    for i, (tip, base) in enumerate(links):
        try:
            robot = RobotModel.from_urdf(path, tip, base)
            break
        except DynidError as error:
            if i or "choose" not in str(error):
                raise
    require_arm(robot)


def require_arm(robot: RobotModel) -> None:
    """Require that the model is consistent and its torques finite."""
    chain = robot.chain
    n = robot.n_joints
    require(n > 0 and len(set(robot.joint_names)) == n == len(set(robot.link_names)), "names repeat")
    for transforms in (chain.placements, chain.link_offsets, chain.tip_offset[None]):
        rotation = transforms[:, :3, :3]
        require(np.isfinite(transforms).all(), "a transform is not finite")
        require(
            np.abs(rotation @ np.swapaxes(rotation, 1, 2) - np.eye(3)).max() < 1e-9,
            "a rotation matrix is not orthogonal",
        )
    limits = robot.limits
    require(not np.isnan([limits.lower, limits.upper, limits.velocity, limits.effort]).any(), "a limit is NaN")
    require((limits.lower <= limits.upper).all(), "limits cross")
    parameters = robot.parameters.reshape(n, 10)
    require(np.isfinite(parameters).all() and (parameters[:, 0] >= 0).all(), "a mass is invalid")
    q = np.resize(POSES, (4, n))
    with np.errstate(all="raise", under="ignore"):
        torque = robot.inverse_dynamics(q, q, q)
    require(np.isfinite(torque).all(), "a torque is not finite")


def read_identified(data: bytes, folder: Path) -> None:
    """Require that an accepted `identified.yaml` yields finite results in one of its uses."""
    path = folder / "identified.yaml"
    path.write_bytes(data)
    USES[crc32(data) % len(USES)](path, ROBOT)


def _gravity(path: Path, _robot: RobotModel) -> None:
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    load = gravity.load
    require(
        load is None or (0.0 <= load.mass < 1e6 and (not load.mass or np.abs(load.center).max() < 10)),
        "a load is invalid",
    )
    for q in POSES.tolist():
        try:
            torque = gravity(q)
        except ControlError:  # too heavy for its springs
            continue
        require(np.isfinite(torque).all(), "a gravity torque is not finite")


def _links(path: Path, robot: RobotModel) -> None:
    arm, _ = read_arm(path, robot)
    require(np.isfinite(arm.values).all(), "parameters are not finite")
    require((arm.model.parameters[::10] >= 0).all(), "a mass is negative")
    require(arm.covariance is None or np.isfinite(arm.covariance).all(), "a covariance is not finite")
    require(np.isfinite(arm.model.predict(POSES, POSES, POSES)).all(), "a torque is not finite")


def _tare(path: Path, robot: RobotModel) -> None:
    estimate = read_tare(path, robot).estimate
    require(np.isfinite(estimate.values[:4]).all() and np.isfinite(estimate.covariance).all(), "a tare is not finite")


def _moments(path: Path, robot: RobotModel) -> None:
    gravity = IdentifiedGravity(robot, load_identified(path))
    require(
        not np.isinf([*gravity.moments, *gravity.std, *gravity.offset, *gravity.coulomb, *gravity.viscous]).any(),
        "infinite",
    )


def _sensors(path: Path, robot: RobotModel) -> None:
    sensors = TorqueSensors.of_document(load_identified(path), robot)
    require(np.isfinite(sensors.torque(POSES)).all(), "a torque is not finite")


def _prior(path: Path, robot: RobotModel) -> None:
    stiffness, inertia, *_ = flexible_prior(robot, {}, path).of(robot)
    require(np.isfinite(stiffness).all() and np.isfinite(inertia).all(), "a spring is not finite")


def _friction(path: Path, robot: RobotModel) -> None:
    coulomb, viscous = IdentifiedFriction.from_document(load_identified(path), robot.joint_names).compensated([0.5])
    require(np.isfinite([*coulomb, *viscous]).all() and min(*coulomb, *viscous) >= 0, "friction that drives")


def _view(path: Path, _robot: RobotModel) -> None:
    settings = SimpleNamespace(
        model_file=str(path), base_link="", tip_link="", held_joints="", gravity=[0.0, 0.0, -planar_arm.G]
    )
    view = GravityView.from_settings(settings, planar_arm.urdf())
    try:
        picture = view.at(POSES[0])
    except ControlError:  # too heavy for its springs
        return
    require(np.isfinite(picture.torque).all() and picture.mass >= 0, "a picture is empty")
    require(picture.center is None or np.isfinite(picture.center).all(), "a center of mass is not finite")


def _watch(path: Path, robot: RobotModel) -> None:
    gravity, document = read_gravity(path, robot)
    sensors = None
    std = None
    if "torque_sensors" in document:
        sensors = TorqueSensors.of_document(document, robot)
        std = TorqueSensors.errors_of(document, robot)
    observer = TorqueSensorObserver(robot, gravity, sensors, reference_std=std)
    require(not np.isinf([*observer.gain, *observer.offset]).any(), "a gain is infinite")


def _page(path: Path, _robot: RobotModel) -> None:
    page = report_file(path, path.with_suffix(".html")).read_text()
    require("Traceback" not in page and "NoneType" not in page, "a page shows an internal error of Python")
    require("<script>x" not in page, "a page runs a script of the file")


def fuzz_mesh(data: bytes, folder: Path) -> None:
    """Require that an accepted mesh has triangles with finite corners."""
    (suffix,) = [suffix for suffix, content in MESHES.items() if data[:6] == content[:6]] or [".stl"]
    path = folder / f"mesh{suffix}"
    path.write_bytes(data)
    triangles = read_triangles(path)
    require(triangles.ndim == 3 and triangles.shape[1:] == (3, 3) and len(triangles) > 0, "no triangles")
    require(np.isfinite(triangles).all(), "a corner is not finite")


def fuzz_obstacles(data: bytes, folder: Path) -> None:
    """Require that accepted obstacles are boxes of finite, positive size."""
    path = folder / "table.yaml"
    path.write_bytes(data)
    for box in read_obstacles(path):
        require(
            np.isfinite([*box.centre, *box.half, *box.rotation.ravel()]).all() and (box.half > 0).all(),
            "a box is invalid",
        )


def fuzz_motion(data: bytes, folder: Path) -> None:
    """Require increasing time and finite values, or an error of the limit check before the motion is sent."""
    path = folder / "trajectory.yaml"
    path.write_bytes(data)
    for read in (
        Trajectory.read,
        lambda path: FourierSeries.read(path).trajectory(1),
        lambda path: read_motion(path, 2),
    ):
        try:
            trajectory = read(path)
        except DynidError as error:
            refused = error
            continue
        require((np.diff(trajectory.time) > 0).all(), "time does not increase")
        for values in (trajectory.position, trajectory.velocity, trajectory.acceleration):
            require(values.shape == (len(trajectory.time), len(trajectory.joint_names)), "a shape is wrong")
            if not np.isfinite(values).all():
                # The limit check must raise an error with joint and time.
                check_limits(trajectory, MotionLimits.of(ROBOT, acceleration_limits=[2.0]))
                require(False, "a motion that is not finite passes the limit check")
        return
    raise refused


USES = (_gravity, _gravity, _links, _tare, _sensors, _prior, _moments, _friction, _view, _watch, _page)
ROBOT = arms.create_robot()
URDFS = [arms.write_urdf().encode(), arms.write_urdf(rich=True).encode()]
IDENTIFIED = [yaml_text(arms.create_identified()), yaml_text(planar_arm.document())]
OBSTACLES = [yaml_text(arms.create_obstacles()), b"- name: a\n  size: [1, 2, 3]\n  position: &p [0, 0, 0]\n  rpy: *p\n"]
MOTIONS = [yaml_text(arms.create_trajectory()), yaml_text(arms.create_fourier())]
MESHES = {
    ".stl": b"solid a\n facet normal 0 0 1\n  outer loop\n   vertex 0 0 0\n   vertex 1 0 0\n   vertex 0 1 0.5\n  endloop\n endfacet\nendsolid a\n",
    ".STL": b"\0" * 80 + struct.pack("<I9x", 2)[:4] + 2 * struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5, 0),
    ".obj": b"# box\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2//1 3//1 4//1\n",
    ".dae": arms.create_collada(),
}

TARGETS = (
    Target("URDF", texts(URDFS), read_urdf, URDFS, 1.5),
    Target(
        "identified.yaml",
        documents([arms.create_identified()]).map(yaml_text) | texts(IDENTIFIED),
        read_identified,
        IDENTIFIED,
    ),
    Target(
        "obstacles", documents([arms.create_obstacles()]).map(yaml_text) | texts(OBSTACLES), fuzz_obstacles, OBSTACLES
    ),
    Target("meshes", texts(list(MESHES.values())), fuzz_mesh, list(MESHES.values()), 0.3),
    Target(
        "motions",
        documents([arms.create_trajectory(), arms.create_fourier()]).map(yaml_text) | texts(MOTIONS),
        fuzz_motion,
        MOTIONS,
    ),
)

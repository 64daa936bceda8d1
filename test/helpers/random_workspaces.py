"""Draw random surroundings of arms: tables, walls, ceilings, boxes, narrow limits, weak motors, payloads.

Lengths are fractions of the arm's reach, so they suit any arm. Some surroundings leave an arm no room at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import numpy as np

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

ACCELERATION = 5.0
MIN_RANGE_RAD = 0.2
"""Smallest range of a joint in rad."""
PAYLOAD_LINK = "held"
"""Name of the link that represents a payload."""


@dataclass(frozen=True)
class RandomWorkspace:
    """Arm, limits and surroundings.

    Attributes:
        kind: key of KINDS.
        robot: the arm with its payload.
        limits: limits of its joints.
        clearance: clearance in m.
        floor_height: height of the floor in m.
        box: corners of the box that contains the arm.
        obstacles: boxes that the arm must avoid.
    """

    kind: str
    robot: RobotModel
    limits: MotionLimits
    clearance: float
    floor_height: float = -np.inf
    box: tuple[np.ndarray, np.ndarray] | None = None
    obstacles: tuple[Obstacle, ...] = ()

    def workspace(self, bodies: Bodies) -> Workspace:
        """Return the workspace of a search, with the capsules of the robot."""
        return Workspace(self.robot, self.floor_height, self.clearance, bodies, box=self.box, obstacles=self.obstacles)


def draw(robot: RobotModel, kind: str, rng: np.random.Generator) -> RandomWorkspace:
    """Draw surroundings of a kind."""
    free = RandomWorkspace(kind, robot, MotionLimits.of(robot, ACCELERATION), float(rng.uniform(0.0, 0.05)))
    return KINDS[kind](free, _reach(robot), rng)


def _box(
    name: str, size: np.ndarray, centre: np.ndarray | list[float], yaw: float = 0.0, shift: float = 0.0
) -> Obstacle:
    """Return a box with sides (3,), rotated about the vertical base axis and then shifted outwards by `shift`."""
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    pose[:3, 3] = pose[:3, :3] @ [shift, 0.0, 0.0] + centre
    half = np.asarray(size) / 2
    return Obstacle(name, -half, half, pose)


def _table_below(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    top = rng.uniform(-0.25, 0.1) * reach
    size = np.append(rng.uniform(1.0, 2.0, 2) * reach, 0.1)
    middle = rng.uniform(-0.3, 0.3, 2) * reach
    return replace(free, obstacles=(*free.obstacles, _box("table", size, [*middle, top - 0.05])))


def _table_beside(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    top = rng.uniform(-0.1, 0.5) * reach
    near = rng.uniform(0.1, 0.6) * reach
    depth = 0.8 * reach
    thickness = 0.05 if rng.random() < 0.5 else reach
    size = np.array([depth, rng.uniform(0.6, 2.0) * reach, thickness])
    bench = _box("bench", size, [0.0, 0.0, top - thickness / 2], rng.uniform(-np.pi, np.pi), near + depth / 2)
    return replace(_maybe_floor(free, reach, rng), obstacles=(*free.obstacles, bench))


def _walls(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    yaw = rng.uniform(-np.pi, np.pi)
    walls = []
    for number in range(int(rng.integers(1, 3))):
        size = np.array([0.1, 3.0 * reach, 3.0 * reach])
        walls.append(_box(f"wall {number + 1}", size, np.zeros(3), yaw, rng.uniform(0.12, 0.7) * reach + 0.05))
        yaw += rng.uniform(np.pi / 3, np.pi)
    return replace(_maybe_floor(free, reach, rng), obstacles=(*free.obstacles, *walls))


def _ceiling(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    height = rng.uniform(0.2, 0.9) * reach
    ceiling = _box("ceiling", np.array([3.0 * reach, 3.0 * reach, 0.1]), [0.0, 0.0, height + 0.05])
    return replace(_maybe_floor(free, reach, rng), obstacles=(*free.obstacles, ceiling))


def _cluttered_table(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    top = -rng.uniform(0.0, 0.2) * reach
    boxes = [_box("table", np.array([2.0 * reach, 2.0 * reach, 0.1]), [0.0, 0.0, top - 0.05])]
    for number in range(int(rng.integers(2, 6))):
        size = rng.uniform(0.08, 0.35, 3) * reach
        angle = rng.uniform(-np.pi, np.pi)
        far = rng.uniform(0.3, 0.8) * reach
        boxes.append(
            _box(
                f"box {number + 1}",
                size,
                [far * np.cos(angle), far * np.sin(angle), top + size[2] / 2],
                rng.uniform(-np.pi, np.pi),
            )
        )
    return replace(free, obstacles=(*free.obstacles, *boxes))


def _tight_box(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    lower = -np.append(rng.uniform(0.12, 0.7, 2), rng.uniform(0.0, 0.2)) * reach
    upper = np.append(rng.uniform(0.12, 0.7, 2), rng.uniform(0.25, 0.9)) * reach
    return replace(free, box=(lower, upper))


def _narrow_joints(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    limits = free.limits
    room = limits.upper - limits.lower
    width = np.maximum(rng.uniform(0.04, 0.4, room.shape) * room, MIN_RANGE_RAD)
    lower = limits.lower + rng.uniform(0.0, 1.0, room.shape) * (room - width)
    return _table_below(replace(free, limits=replace(limits, lower=lower, upper=lower + width)), reach, rng)


def _weak_motors(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    """Draw torque limits that the gravity torque exceeds in some joints."""
    limits = free.limits
    gravity = np.abs(free.robot.gravity_torque(limits.poses(512))).max(axis=0)
    effort = np.where(np.isfinite(limits.torque), limits.torque, 2 * gravity.max())
    n = len(gravity)
    torque = rng.uniform(0.0, 0.9, n) * gravity + rng.uniform(0.01, 0.08, n) * effort
    return replace(_maybe_floor(free, reach, rng), limits=replace(limits, torque=np.minimum(torque, effort)))


def _with_payload(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    """Draw a payload in the hand, a table, and a larger clearance."""
    robot = free.robot
    size = rng.uniform(0.05, 0.2, 3) * reach
    mass = float(rng.uniform(0.01, 0.08) * robot.parameters[::10].sum())
    text = add_payload(robot, size, mass, robot.tip_offset[:3, :3] @ [0.0, 0.0, 0.12 + size[2] / 2])
    held = RobotModel.from_urdf(text, tip=robot.tip, gravity=robot.gravity)
    return _table_below(replace(free, robot=held, clearance=float(rng.uniform(0.02, 0.1))), reach, rng)


def _cell(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    """Draw a table with boxes, walls and a ceiling."""
    for build in (_cluttered_table, _walls, _ceiling):
        free = replace(build(free, reach, rng), floor_height=free.floor_height)
    return free


KINDS: dict[str, Callable[[RandomWorkspace, float, np.random.Generator], RandomWorkspace]] = {
    "table below": _table_below,
    "table beside": _table_beside,
    "walls": _walls,
    "ceiling": _ceiling,
    "cluttered table": _cluttered_table,
    "tight box": _tight_box,
    "narrow joints": _narrow_joints,
    "weak motors": _weak_motors,
    "payload": _with_payload,
    "cell": _cell,
}
"""Functions that add the surroundings of a kind to free space."""


def add_payload(robot: RobotModel, size: np.ndarray, mass: float, at: np.ndarray) -> str:
    """Return the URDF of `robot` with a box of sides (3,) and a mass at (3,) in the tip's frame."""
    root = ET.fromstring(robot.urdf or "")
    inertia = (mass / 12 * (size @ size - size**2)).tolist()
    joint = ET.fromstring(
        f'<joint name="to_{PAYLOAD_LINK}" type="fixed"><parent link="{robot.tip}"/><child link="{PAYLOAD_LINK}"/>'
        f'<origin xyz="{_numbers(at)}"/></joint>'
    )
    link = ET.fromstring(
        f'<link name="{PAYLOAD_LINK}"><inertial><mass value="{mass!r}"/>'
        f'<inertia ixx="{inertia[0]!r}" iyy="{inertia[1]!r}" izz="{inertia[2]!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision><geometry><box size="{_numbers(size)}"/></geometry></collision></link>'
    )
    root.extend([joint, link])
    return ET.tostring(root, encoding="unicode")


def _maybe_floor(free: RandomWorkspace, reach: float, rng: np.random.Generator) -> RandomWorkspace:
    return replace(free, floor_height=-float(rng.uniform(0.0, 0.3)) * reach if rng.random() < 0.5 else -np.inf)


def _reach(robot: RobotModel) -> float:
    """Return the largest distance of the tip from the base in random poses within the limits or a turn, in m."""
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    poses = robot.forward_kinematics(np.random.default_rng(0).uniform(lower, upper, (500, robot.n_joints)))
    return float(np.linalg.norm((poses[:, -1] @ robot.tip_offset)[:, :3, 3], axis=1).max())


def _numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)

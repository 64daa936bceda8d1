"""Bounds of the links by a floor, a box, obstacles and other links, and bounds of the joint torques."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.collision import Bodies, Distances, Obstacle
from dynid_ros.collision.capsules import Placed, Placing
from dynid_ros.collision.clearance import (
    DISTANCE_TOLERANCE_M,
    MAX_AXIS_JOINTS,
    Checks,
    PairChecks,
    box_checks,
    capsule_pairs,
    floor_checks,
    joints_apart,
    line_pairs,
    obstacle_checks,
)
from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.chain import Chain
from dynid_ros.trajectories.limits import MotionLimits, check_times, check_torque, joints_with_unknown_torque
from dynid_ros.trajectories.trajectory import Trajectory

N_PROBE_POSES = 1000
"""Number of random poses within the limits that show which bounds the arm cannot keep to."""
POSES_PER_BLOCK = 200
"""Number of poses that are computed together; their distances fit into the cache."""
MAX_OBSTACLES = 200
"""Largest number of obstacles within reach; each takes memory and time in every pose."""
CLOSE_PAIR_SHARE = 0.1
"""Fraction of poses in which a pair of links must be too close to be proposed as a pair that may touch."""
MIN_ADDED_ROOM = 0.1
"""Smallest relative increase of the allowed poses by a pair that is proposed."""
MOUNTING_DISTANCE_M = 0.1
"""Distance to the first moving link, m, that an object of the arm's mounting does not exceed in any pose."""
CROWDED_SHARE = 0.05
"""Smallest fraction of poses in which two links must keep their distance; with less, no motion is large."""


class Workspace:
    """Constraints that keep the moving links above a floor, inside a box, and apart from obstacles and each other.

    With `bodies` the links are the capsules that cover their shapes. Links that are not neighbours in the chain are
    kept apart, except for capsules that overlap in every pose. Without bodies, links are straight lines from origin to
    origin, so the clearance must include their thickness.

    Only moving links are checked against floor, box and obstacles, because the base may stand on a table. The first
    moving link is not checked against objects that it overlaps in all poses, such as the table under the shoulder
    (`exempt`).

    Attributes:
        up: (3,) unit vector against gravity, in the base frame.
        bodies: capsules or lines.
        floor_height, clearance, box, obstacles: the arguments.
        exempt: names of distances that the first moving link cannot change, and that are not checked.
        crowded: sentences about pairs of links that keep their distance only in few poses, which restrict the arm.
        close_pairs: fraction of poses with too small a distance between two links few joints apart, by their names;
            only pairs that enlarge the allowed space if they may touch, most helpful first.

    Args:
        robot: the arm.
        floor_height: lowest height of a moving link, against gravity from the base's origin, m.
        clearance: smallest distance between two links, and between a link and an obstacle, m. Links that are closer by
            design keep the distance that most poses allow. With bodies, 0 means that they must not overlap. Lines are
            not checked at 0, and keep at most a third of their distance along the arm.
        bodies: shapes of the links; None: lines.
        box: lower and upper corner, (3,) each in the base frame, of the box that contains the moving links; infinite
            for a missing side; None: no box.
        obstacles: boxes that the links must avoid.

    Raises:
        TrajectoryError: the robot's gravity is zero; the clearance is negative; the corners of the box are reversed;
            or, with bodies, the floor, the box or an obstacle forbids all poses of a link other than the first.
    """

    def __init__(
        self,
        robot: RobotModel,
        floor_height: float = -np.inf,
        clearance: float = 0.0,
        bodies: Bodies | None = None,
        *,
        box: tuple[ArrayLike, ArrayLike] | None = None,
        obstacles: Sequence[Obstacle] = (),
    ) -> None:
        self.floor_height = floor_height
        self.clearance = clearance
        self.box = None if box is None else _corners(*box)
        self.obstacles = tuple(obstacles)
        self.bodies = Bodies.lines(robot) if bodies is None else bodies
        magnitude = np.linalg.norm(robot.gravity)
        if magnitude == 0.0:
            raise TrajectoryError("gravity is zero: there is no floor, and no gravity torque to excite")
        if not clearance >= 0.0:
            raise TrajectoryError(f"clearance is {clearance:g} m; expected zero or more")
        self.up = -robot.gravity / magnitude
        self._placing = Placing(robot, self.bodies)
        placed = self._placing.at(_random_poses(robot))
        points = placed.points
        surroundings: list[Checks] = floor_checks(self.bodies, self.up, floor_height, points)
        if self.box is not None:
            surroundings += box_checks(self.bodies, *self.box, points)
        surroundings += obstacle_checks(self.bodies, self._obstacles_within_reach(robot), clearance)
        pairs = (line_pairs if bodies is None else capsule_pairs)(self._placing, clearance, placed)
        distances = _distances_kept(pairs, placed, robot.chain)
        self.crowded = tuple(
            f"'{a}' and '{b}' keep their distance in {100 * np.mean(kept):.1f} % of poses alone, where the arm has to "
            f"stay: lower the clearance, or allow them to touch {allowed_pairs_hint([(a, b)])}"
            for (a, b), (kept, _) in distances.items()
            if np.mean(kept) < CROWDED_SHARE
        )
        self.close_pairs = {names: float(1.0 - np.mean(distances[names][0])) for names in _helpful_pairs(distances)}
        self.exempt: tuple[str, ...] = ()
        self._checks: list[Checks] = [pairs]
        for checks in surroundings:
            self._add(checks, placed, bodies is not None)

    def _obstacles_within_reach(self, robot: RobotModel) -> list[Obstacle]:
        """Return the obstacles within an upper bound of the arm's reach, the sum of all its lengths."""
        chain = robot.chain
        bodies = self.bodies
        slides = np.abs([robot.limits.lower, robot.limits.upper]).max(axis=0)[chain.drivers]
        shifts = np.where(chain.slides, np.abs(chain.ratios) * slides + np.abs(chain.offsets), 0.0)
        lengths = [np.linalg.norm(part[:, :3, 3], axis=1) for part in (chain.placements, chain.link_offsets)]
        ends = np.linalg.norm(np.stack([bodies.start, bodies.end]), axis=2) + bodies.radius
        reach = np.sum(lengths) + np.sum(shifts) + ends.max() + self.clearance
        near = [box for box in self.obstacles if np.linalg.norm(box.centre) - np.linalg.norm(box.half) <= reach]
        if len(near) > MAX_OBSTACLES:
            raise TrajectoryError(
                f"{len(near)} obstacles are within reach; a design takes at most {MAX_OBSTACLES}: join them to larger "
                "boxes, or leave out those that the arm does not come near to"
            )
        return near

    @property
    def names(self) -> tuple[str, ...]:
        """Names (K,) of the two objects of each distance."""
        return tuple(name for checks in self._checks for name in checks.names)

    def allowed(self, position: ArrayLike) -> NDArray:
        """Return a mask (N,) of the positions (N, n) that keep to all bounds."""
        position = np.asarray(position, dtype=float)
        blocks = range(0, len(position), POSES_PER_BLOCK)
        rooms = [self.distances(position[start : start + POSES_PER_BLOCK]).room for start in blocks]
        return np.concatenate([np.ones(0, dtype=bool), *(np.all(room >= 0, axis=1) for room in rooms)])

    def distances(self, position: ArrayLike) -> Distances:
        """Return the K distances at positions (N, n) minus their clearances, with a method for their gradient."""
        return Distances(self._checks, self._placing.robot.chain, self._placing.at(position))

    def check(self, trajectory: Trajectory) -> None:
        """Check that the arm keeps to all bounds during the whole motion.

        Raises:
            TrajectoryError: a distance is too small; the message has link, other object, time, distance and clearance.
        """
        time = check_times(trajectory)
        position = trajectory.at(time)[0]
        worst = 0.0
        violation = ""
        for start in range(0, len(time), POSES_PER_BLOCK):
            room = self.distances(position[start : start + POSES_PER_BLOCK]).room
            if room.min(initial=0.0) < worst:
                i, k = np.unravel_index(np.argmin(room), room.shape)
                worst = room[i, k]
                violation = self._describe_violation(int(k), float(room[i, k]), float(time[start + i]))
        if violation:
            raise TrajectoryError(violation)

    def _add(self, checks: Checks, placed: Placed, has_shapes: bool) -> None:
        """Add checks, except those that the first moving link cannot change.

        An object that is close to the first moving link in all poses belongs to the mounting of the arm. Its clearance
        is lowered to at most the smallest distance in all poses, or half of the largest distance. The first link is
        exempt from a distance that is constant or negative in all poses. None of these rules depends on the clearance,
        so a larger clearance never allows more poses.
        """
        contact = checks.contact(placed)
        nearest = contact.distance.min(axis=1)
        furthest = contact.distance.max(axis=1)
        is_first = checks.link == 0
        bound = np.maximum(nearest - DISTANCE_TOLERANCE_M, furthest / 2)
        bound = np.where(is_first & (furthest < MOUNTING_DISTANCE_M), np.maximum(bound, 0.0), np.inf)
        checks = replace(checks, clearance=np.minimum(checks.clearance, bound))
        room = checks.room(contact)
        never = np.all(room < 0, axis=1)
        exempt = never & is_first & ((furthest < 0) | (furthest - nearest < DISTANCE_TOLERANCE_M))
        self.exempt += tuple(dict.fromkeys(checks.only(exempt).names))
        if has_shapes and np.any(never & ~exempt):
            k = int(np.flatnonzero(never & ~exempt)[0])
            raise TrajectoryError(
                f"{checks.names[k]} are too near in every one of {N_PROBE_POSES} poses, by {-room[k].max():.3f} m at "
                "least; correct floor_height, box, obstacles or clearance, or the pose of the base"
            )
        self._checks.append(checks.only(~exempt))

    def _describe_violation(self, k: int, room: float, time: float) -> str:
        for checks in self._checks:
            if k < len(checks.body):
                return checks.violation(k, room + float(checks.clearance[k]), time)
            k -= len(checks.body)
        raise IndexError(k)


def _distances_kept(pairs: PairChecks, placed: Placed, chain: Chain) -> dict[tuple[str, str], tuple[NDArray, int]]:
    """Return, by the names of two links, a mask (N,) of poses with enough distance, and the number of joints between.

    A link may have several capsules; all of them must keep their distance.
    """
    kept: dict[tuple[str, str], tuple[NDArray, int]] = {}
    names = pairs.bodies.names
    between = joints_apart(chain, placed, pairs.link, pairs.other_link)
    for k, room in enumerate(pairs.room(pairs.contact(placed))):
        key = (names[pairs.body[k]], names[pairs.second[k]])
        before, _ = kept.get(key, (np.ones(len(room), dtype=bool), 0))
        kept[key] = (before & (room >= 0), int(between[k]))
    return kept


def _helpful_pairs(distances: Mapping[tuple[str, str], tuple[NDArray, int]]) -> list[tuple[str, str]]:
    """Return the close pairs that enlarge the allowed space if they may touch, most helpful first.

    The space is measured by a weighted number of poses: the weight of a pose is 0.5 to the power of the number of pairs
    that are too close in it. Pairs are selected greedily, until the next one adds less than a tenth.
    """
    too_near = {names: ~kept for names, (kept, _) in distances.items()}
    close = [
        names
        for names, (_, between) in distances.items()
        if between <= MAX_AXIS_JOINTS and np.mean(too_near[names]) > CLOSE_PAIR_SHARE
    ]
    worth = 0.5 ** np.sum(list(too_near.values()), axis=0, dtype=float)
    helpful: list[tuple[str, str]] = []
    while close:
        gains = [float(np.sum(worth[too_near[names]])) for names in close]
        if max(gains) < MIN_ADDED_ROOM * np.sum(worth):
            break
        pair = close.pop(int(np.argmax(gains)))
        worth = np.where(too_near[pair], 2.0 * worth, worth)
        helpful.append(pair)
    return helpful


def allowed_pairs_hint(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a hint with the options that allow pairs of links to touch."""
    return f"(--allowed-pairs {','.join(f'{a}:{b}' for a, b in pairs)}, allowed_pairs; or --srdf, srdf_file)"


def _random_poses(robot: RobotModel) -> NDArray:
    """Draw poses (N_PROBE_POSES, n) within the limits; the range of an unlimited joint is a turn or two metres."""
    lower = robot.limits.lower
    upper = robot.limits.upper
    half_range = np.where(robot.chain.prismatic, 1.0, np.pi)
    lower = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * half_range, -half_range))
    upper = np.where(np.isfinite(upper), upper, lower + 2 * half_range)
    return np.random.default_rng(0).uniform(lower, upper, (N_PROBE_POSES, robot.n_joints))


def _corners(lower: ArrayLike, upper: ArrayLike) -> tuple[NDArray, NDArray]:
    lower = np.asarray(lower, dtype=float)
    upper = np.asarray(upper, dtype=float)
    if lower.shape != (3,) or upper.shape != (3,) or not np.all(lower < upper):
        raise TrajectoryError(f"box from {lower} to {upper}: expected corners (3,), the lower one below on each axis")
    return lower, upper


class WorkspaceAndTorque:
    """Constraints that keep the links in the workspace, and the nominal torques of the joints within their limits.

    Args:
        workspace: bounds of the links.
        limits: torque limits.
        robot: the arm; the torque of a joint is not checked if the URDF has no mass beyond the joint.
        margin: fraction of the torque limits that is kept free for friction and errors of the URDF.

    Attributes:
        unknown: joints with a torque limit whose torque is unknown.
    """

    def __init__(self, workspace: Workspace, limits: MotionLimits, robot: RobotModel, margin: float) -> None:
        self._workspace = workspace
        self._robot = robot
        self._margin = margin
        self.unknown = joints_with_unknown_torque(limits, robot)
        is_unknown = np.isin(limits.joint_names, self.unknown)
        self._limits = replace(limits, torque=np.where(is_unknown, np.inf, limits.torque))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentence about the joints whose torque is unknown; empty if there are none."""
        names = ", ".join(self.unknown)
        return (f"torques are not checked of {names}: the robot's description has no mass there",) if names else ()

    def allowed(self, position: ArrayLike) -> NDArray:
        """Return a mask (N,) of the positions (N, n) at which the arm may rest."""
        bound = (1 - self._margin) * self._limits.torque
        holds = np.all(np.abs(self._robot.gravity_torque(position)) <= bound, axis=1)
        return self._workspace.allowed(position) & holds

    def check(self, trajectory: Trajectory) -> None:
        """Check that the motion keeps to workspace and torque limits."""
        self._workspace.check(trajectory)
        check_torque(trajectory, self._limits, self._robot, self._margin)

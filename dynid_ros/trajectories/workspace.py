"""Bounds of the links: a floor, a box, obstacles and the other links; and bounds of the torques."""

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
"""Random poses within the limits that show which bounds the arm cannot keep to."""
POSES_PER_BLOCK = 200
"""Poses that are computed together; their distances fit in the cache."""
MAX_OBSTACLES = 200
"""Largest number of obstacles within reach; each takes memory and time in every pose."""
CLOSE_PAIR_SHARE = 0.1
"""Share of the poses above which a pair of links few joints apart may be proposed as one that may touch."""
MIN_ADDED_ROOM = 0.1
"""Smallest growth of the room by a pair that is proposed, relative to the room."""
MOUNTING_DISTANCE_M = 0.1
"""Largest distance, in any pose, between the first moving link and an object that belongs to the arm's mounting."""
CROWDED_SHARE = 0.05
"""Share of the poses, with enough distance between two links, below which no motion goes far."""


class Workspace:
    """Keeps the moving links above a floor, in a box, clear of obstacles and apart from each other.

    With `bodies` the links are the capsules that cover their shapes. Links that are not neighbours in the chain are
    kept apart, except for capsules that overlap in every pose. Without bodies, links are straight lines from origin to
    origin, so leave space for their thickness.

    Only moving links are kept from floor, box and obstacles, because the base may rest on a table. The first moving
    link may overlap with whatever it overlaps with in all its poses, such as the table under the shoulder (`exempt`).

    Attributes:
        up: (3,) unit vector against gravity, in the base frame.
        bodies: capsules or lines.
        floor_height, clearance, box, obstacles: as in the arguments.
        exempt: names of distances that the first moving link cannot change, and that are not checked.
        crowded: a sentence for each pair of links that is apart in few poses, and so keeps the arm in a corner.
        close_pairs: share of poses with too small a distance between two links few joints apart, by their names; only
            pairs that give the arm room if they may touch, the most helpful first.

    Args:
        floor_height: lowest height of a moving link, against gravity from the base's origin, m.
        clearance: smallest distance between two links, and between a link and an obstacle, m. With bodies 0 means that
            they may not touch; links that are nearer to each other by design keep what most poses allow. Lines are not
            checked at 0, and keep at most a third of their distance along the arm.
        bodies: shapes of the links; None: lines.
        box: lower and upper corner, (3,) each in the base frame, of the box that contains the moving links; infinite
            where a side is missing; None: no box.
        obstacles: boxes that the links stay clear of.

    Raises:
        TrajectoryError: the robot's gravity is zero; the clearance is negative; the corners of the box are reversed;
            or, with bodies, the floor, the box or an obstacle leaves a link other than the first no pose at all.
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
        """Return the obstacles within the largest reach of the arm, the sum of all lengths."""
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
        """Names (K,) of the two things of each distance."""
        return tuple(name for checks in self._checks for name in checks.names)

    def allowed(self, position: ArrayLike) -> NDArray:
        """Return a mask (N,) of the positions (N, n) that keep to all bounds."""
        position = np.asarray(position, dtype=float)
        blocks = range(0, len(position), POSES_PER_BLOCK)
        rooms = [self.distances(position[start : start + POSES_PER_BLOCK]).room for start in blocks]
        return np.concatenate([np.ones(0, dtype=bool), *(np.all(room >= 0, axis=1) for room in rooms)])

    def distances(self, position: ArrayLike) -> Distances:
        """Compute the distances at positions (N, n), less their bounds, for each of K checks, with gradient."""
        return Distances(self._checks, self._placing.robot.chain, self._placing.at(position))

    def check(self, trajectory: Trajectory) -> None:
        """Check that the arm keeps to all bounds during the whole motion.

        Raises:
            TrajectoryError: names the link, the thing that it comes too near to, the time, the distance and its bound.
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
        """Add the distances that a motion can keep and can violate.

        An object close to the first moving link in all poses belongs to the mounting of the arm; their clearance is at
        most their smallest distance, or half of their largest one. The link is exempt from a distance that it cannot
        change, or if it overlaps in all poses. None of these rules depends on the clearance, so a larger clearance
        allows nothing more.
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
    """Return a mask (N,) of the poses where two links keep their distance, and how many joints they are apart.

    The keys are the names of the two links. A link may have several capsules.
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
    """Return the close pairs that give the arm room if they may touch, the most helpful first.

    The room is the number of allowed poses, where a pose counts half for each pair that is still too near. Pairs are
    added one after the other, each the most helpful with those before it, until none adds a tenth.
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
    """Return the options that allow pairs of links to touch."""
    return f"(--allowed-pairs {','.join(f'{a}:{b}' for a, b in pairs)}, allowed_pairs; or --srdf, srdf_file)"


def _random_poses(robot: RobotModel) -> NDArray:
    """Draw poses (N_PROBE_POSES, n) within the limits, or within a turn or two metres of an unlimited joint."""
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
    """Keeps the links in the workspace, and the nominal torques of the joints within their limits.

    Args:
        limits: torque limits.
        robot: the arm; the torque of a joint is not checked where its description has no mass beyond the joint.
        margin: fraction of the torque limits that is left to friction and to errors of the description.

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
        """Sentence about the joints whose torque is unknown, if any."""
        names = ", ".join(self.unknown)
        return (f"torques are not checked of {names}: the robot's description has no mass there",) if names else ()

    def allowed(self, position: ArrayLike) -> NDArray:
        """Return a mask (N,) of the positions (N, n) that the arm may rest at."""
        bound = (1 - self._margin) * self._limits.torque
        holds = np.all(np.abs(self._robot.gravity_torque(position)) <= bound, axis=1)
        return self._workspace.allowed(position) & holds

    def check(self, trajectory: Trajectory) -> None:
        """Check that the motion keeps to workspace and torque limits."""
        self._workspace.check(trajectory)
        check_torque(trajectory, self._limits, self._robot, self._margin)

"""Where the links may be: above a floor, in a box, clear of obstacles and of each other; with loads they bear."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.collision import Bodies, Distances, Obstacle
from dynid_ros.collision.capsules import Placed, Placing
from dynid_ros.collision.clearance import (
    DISTANCE_TOLERANCE_M,
    NEAR,
    Checks,
    PairChecks,
    box_checks,
    capsule_pairs,
    floor_checks,
    line_pairs,
    obstacle_checks,
)
from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.chain import Chain
from dynid_ros.trajectories.limits import MotionLimits, check_times, check_torque, unknown_torques
from dynid_ros.trajectories.trajectory import Trajectory

PROBE_POSES = 1000
"""Random poses within the limits, which say what cannot be avoided."""
BLOCK = 200
"""Poses looked at together: what is computed of them fits in the cache."""
MOST_OBSTACLES = 200
"""Each takes memory and time in every pose that is looked at."""
CLOSE = 0.1
"""Share of the poses above which a pair of links few joints apart is proposed as one that may touch."""
CROWDED = 0.05
"""Share of the poses below which what leaves a pair of links apart is said: no motion goes far in so little room."""


class Workspace:
    """Keeps the moving links above a floor, in a box, clear of obstacles and apart from each other.

    With `bodies` the links are the capsules that cover their shapes. Links that are not neighbours in the chain are
    kept apart, but for capsules that overlap in every pose (`collision.pairs`). Without, they are straight lines from
    origin to origin: leave room for their thickness.

    Moving links are kept from floor, box and obstacles; what stands still with the base may stand on a table. The first
    moving link may overlap with what it overlaps with in all its poses, as the table under the shoulder (`exempt`).

    Attributes:
        up: (3,) unit vector against gravity, in the base frame.
        bodies: the capsules or lines.
        floor_height, clearance, box, obstacles: as given.
        exempt: what the first moving link cannot avoid and is therefore not looked at.
        crowded: a sentence for each two links that are apart in few poses, and so keep the arm in a corner.
        close_pairs: share of the poses in which two links are too near that few joints lie between, by their names.

    Args:
        robot: the arm.
        floor_height: lowest height of a moving link, against gravity from the base's origin, m.
        clearance: smallest distance between two links, and between a link and an obstacle, m. With bodies 0 means that
            they may not touch; links that are nearer to each other by design keep what most poses allow. Lines are not
            checked at 0, and keep at most a third of their distance along the arm.
        bodies: what the links occupy; None: lines.
        box: lower and upper corner, (3,) each in the base frame, of the box that the moving links stay in; infinite
            where it is open; None: no box.
        obstacles: what they stay clear of.

    Raises:
        TrajectoryError: the robot's gravity is zero; the clearance is negative; the corners of the box are no corners;
            with bodies, a link other than the first leaves the floor, the box or an obstacle no pose at all.
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
        around: list[Checks] = floor_checks(self.bodies, self.up, floor_height, points)
        if self.box is not None:
            around += box_checks(self.bodies, *self.box, points)
        around += obstacle_checks(self.bodies, self._within_reach(robot), clearance)
        pairs = (line_pairs if bodies is None else capsule_pairs)(self._placing, clearance, placed)
        apart = _poses_apart(pairs, placed, robot.chain)
        self.crowded = _crowded(apart)
        self.close_pairs = {
            names: float(share)
            for names, (free, between) in apart.items()
            if between <= NEAR and (share := 1.0 - np.mean(free)) > CLOSE
        }
        self.exempt: tuple[str, ...] = ()
        self._checks: list[Checks] = [pairs]
        for checks in around:
            self._add(checks, placed, bodies is not None)

    def _within_reach(self, robot: RobotModel) -> list[Obstacle]:
        """Return the obstacles that the arm could come near to, whatever its joints do.

        Raises:
            TrajectoryError: they are more than a design has memory and time for.
        """
        chain, bodies = robot.chain, self.bodies
        slides = np.abs([robot.limits.lower, robot.limits.upper]).max(axis=0)[chain.drivers]
        shifts = np.where(chain.slides, np.abs(chain.ratios) * slides + np.abs(chain.offsets), 0.0)
        lengths = [np.linalg.norm(part[:, :3, 3], axis=1) for part in (chain.placements, chain.link_offsets)]
        ends = np.linalg.norm(np.stack([bodies.start, bodies.end]), axis=2) + bodies.radius
        reach = np.sum(lengths) + np.sum(shifts) + ends.max() + self.clearance
        near = [box for box in self.obstacles if np.linalg.norm(box.centre) - np.linalg.norm(box.half) <= reach]
        if len(near) > MOST_OBSTACLES:
            raise TrajectoryError(
                f"{len(near)} obstacles are within reach; a design takes at most {MOST_OBSTACLES}: join them to larger "
                "boxes, or leave out those that the arm does not come near to"
            )
        return near

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) what each of the distances is between."""
        return tuple(name for checks in self._checks for name in checks.names)

    def allowed(self, position: ArrayLike) -> NDArray:
        """(N,) bool: whether the arm at positions (N, n) keeps to all bounds."""
        position = np.asarray(position, dtype=float)
        blocks = range(0, len(position), BLOCK)
        rooms = [self.distances(position[start : start + BLOCK]).room for start in blocks]
        return np.concatenate([np.ones(0, dtype=bool), *(np.all(room >= 0, axis=1) for room in rooms)])

    def distances(self, position: ArrayLike) -> Distances:
        """How much room is left at positions (N, n), for each of K checks, and its gradient."""
        return Distances(self._checks, self._placing.robot.chain, self._placing.at(position))

    def check(self, trajectory: Trajectory) -> None:
        """The arm keeps to all bounds all along the motion.

        Raises:
            TrajectoryError: names the link, what it comes too near to, the time, the distance, and its bound.
        """
        time = check_times(trajectory)
        position = trajectory.at(time)[0]
        worst, violation = 0.0, ""
        for start in range(0, len(time), BLOCK):
            room = self.distances(position[start : start + BLOCK]).room
            if room.min(initial=0.0) < worst:
                i, k = np.unravel_index(np.argmin(room), room.shape)
                worst, violation = room[i, k], self._violation(int(k), float(room[i, k]), float(time[start + i]))
        if violation:
            raise TrajectoryError(violation)

    def _add(self, checks: Checks, placed: Placed, certain: bool) -> None:
        """Add the distances that a motion can keep and can violate.

        The first moving link is exempt from a distance that it cannot change, or where it overlaps in all poses.
        Neither depends on the clearance, so a larger clearance exempts nothing more.
        """
        contact = checks.contact(placed)
        room = checks.room(contact)
        never = np.all(room < 0, axis=1)
        is_fixed = np.all(contact.distance < 0, axis=1) | (np.ptp(contact.distance, axis=1) < DISTANCE_TOLERANCE_M)
        exempt = never & is_fixed & (checks.link == 0)
        self.exempt += tuple(dict.fromkeys(checks.only(exempt).names))
        if certain and np.any(never & ~exempt):
            k = int(np.flatnonzero(never & ~exempt)[0])
            raise TrajectoryError(
                f"{checks.names[k]} are too near in every one of {PROBE_POSES} poses, by {-room[k].max():.3f} m at "
                "least; correct floor_height, box, obstacles or clearance, or the pose of the base"
            )
        self._checks.append(checks.only(~exempt))

    def _violation(self, k: int, room: float, time: float) -> str:
        for checks in self._checks:
            if k < len(checks.body):
                return checks.violation(k, room + float(checks.clearance[k]), time)
            k -= len(checks.body)
        raise IndexError(k)


def _poses_apart(pairs: PairChecks, placed: Placed, chain: Chain) -> dict[tuple[str, str], tuple[NDArray, int]]:
    """Return by the names of two links in which poses (N,) they are apart, and how many joints lie between them."""
    apart: dict[tuple[str, str], tuple[NDArray, int]] = {}
    names = pairs.bodies.names
    between = chain.between(pairs.link, pairs.other_link)
    for k, room in enumerate(pairs.room(pairs.contact(placed))):
        key = (names[pairs.body[k]], names[pairs.other[k]])
        free, _ = apart.get(key, (np.ones(len(room), dtype=bool), 0))  # a link may have several capsules
        apart[key] = (free & (room >= 0), int(between[k]))
    return apart


def _crowded(apart: dict[tuple[str, str], tuple[NDArray, int]]) -> tuple[str, ...]:
    return tuple(
        f"'{a}' and '{b}' keep their distance in {100 * np.mean(free):.1f} % of poses alone, where the arm has to "
        f"stay: lower the clearance, or allow them to touch {allowing([(a, b)])}"
        for (a, b), (free, _) in apart.items()
        if np.mean(free) < CROWDED
    )


def allowing(pairs: Sequence[tuple[str, str]]) -> str:
    """Say how pairs of links are allowed to touch."""
    return f"(--allowed-pairs {','.join(f'{a}:{b}' for a, b in pairs)}, allowed_pairs; or --srdf, srdf_file)"


def _random_poses(robot: RobotModel) -> NDArray:
    """Poses (PROBE_POSES, n) within the limits; where there are none, a turn or two metres."""
    lower, upper = robot.limits.lower, robot.limits.upper
    open_ = np.where(robot.chain.prismatic, 1.0, np.pi)
    lower = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * open_, -open_))
    upper = np.where(np.isfinite(upper), upper, lower + 2 * open_)
    return np.random.default_rng(0).uniform(lower, upper, (PROBE_POSES, robot.n_joints))


def _corners(lower: ArrayLike, upper: ArrayLike) -> tuple[NDArray, NDArray]:
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if lower.shape != (3,) or upper.shape != (3,) or not np.all(lower < upper):
        raise TrajectoryError(f"box from {lower} to {upper}: expected corners (3,), the lower one below on each axis")
    return lower, upper


class TorqueRoom:
    """Keeps the links in the workspace, and the joints' torques by the robot's own parameters within their limits.

    Args:
        workspace: where the links may be.
        limits: of torque.
        robot: the arm; the torque of a joint is not looked at where its description has no mass beyond it.
        margin: part of the torque limits that is left to friction and to what the description gets wrong.

    Attributes:
        unknown: joints with a torque limit whose torque is not known.
    """

    def __init__(self, workspace: Workspace, limits: MotionLimits, robot: RobotModel, margin: float) -> None:
        self._workspace, self._robot, self._margin = workspace, robot, margin
        self.unknown = unknown_torques(limits, robot)
        is_unknown = np.isin(limits.joint_names, self.unknown)
        self._limits = replace(limits, torque=np.where(is_unknown, np.inf, limits.torque))

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence on the joints whose torque is not known, or nothing."""
        names = ", ".join(self.unknown)
        return (f"torques are not checked of {names}: the robot's description has no mass there",) if names else ()

    def allowed(self, position: ArrayLike) -> NDArray:
        """(N,) bool: whether the arm may rest at positions (N, n)."""
        bound = (1 - self._margin) * self._limits.torque
        holds = np.all(np.abs(self._robot.gravity_torque(position)) <= bound, axis=1)
        return self._workspace.allowed(position) & holds

    def check(self, trajectory: Trajectory) -> None:
        """The motion keeps to workspace and torque limits.

        Raises:
            TrajectoryError: says where it does not.
        """
        self._workspace.check(trajectory)
        check_torque(trajectory, self._limits, self._robot, self._margin)

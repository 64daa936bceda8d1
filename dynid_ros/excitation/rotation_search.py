"""In which poses the other joints hold while one joint rotates (Ma & Hollerbach 1996, section 4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.signals.spectra import longest_run
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.workspace import Workspace

POSES = 256
"""Hold poses looked at per joint (a power of two)."""
ANGLES = 33
"""Angles at which each is tested against the workspace."""
SHORTLIST = 1.1
"""Rotations whose own standard deviation is within this factor of the best compete for the global fit."""
LONGEST_SHORTLIST = 64
PARALLEL = 0.02
"""Sine of the tilt below which an axis counts as parallel to gravity."""


@dataclass(frozen=True)
class Rotation:
    """One joint turning through a range while the others hold.

    Attributes:
        joint: index of the joint that turns.
        hold: (n,) pose; the entry of the joint itself is the middle of its range.
        lower: start of the range, rad.
        upper: end of the range, rad.
        tilt: angle between the joint's axis and the vertical, 0 to π/2 rad.
        std: standard deviation of the joint's gravity moment, that of one torque reading at a horizontal axis being 1.
    """

    joint: int
    hold: NDArray
    lower: float
    upper: float
    tilt: float
    std: float

    def angles(self, steps: int) -> NDArray:
        """Angles (steps,) of the dwells on the way up."""
        return np.linspace(self.lower, self.upper, steps)

    def poses(self, steps: int) -> NDArray:
        """Poses (steps, n) of the dwells on the way up."""
        poses = np.tile(self.hold, (steps, 1))
        poses[:, self.joint] = self.angles(steps)
        return poses


class RotationSearch:
    """Finds rotations that show a joint's gravity moment well, and that differ from those chosen before.

    Args:
        robot: the arm.
        limits: position limits.
        workspace: where the links may be.
        steps: dwells per direction.
        approach: (n,) distance from which a joint comes to its hold, rad or m; kept free on both sides.
        margin: (n,) distance kept from the limits, rad or m.
        sweep: largest range, rad.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace,
        *,
        steps: int,
        approach: NDArray,
        margin: NDArray,
        sweep: float,
    ) -> None:
        self._robot = robot
        self._gravity = GravityModel(robot)
        self._limits = limits
        self._workspace = workspace
        self._steps = steps
        self._approach = approach
        self._inset = approach + margin
        # Equal steps over a full turn: the last must not fall on the first.
        self._sweep = min(sweep, 2 * np.pi * (steps - 1) / steps)
        self._holds = limits.poses(POSES, self._inset)
        # What turns about the vertical at the base changes no torque: it need not move.
        still = self._gravity.unobservable_axes() & ~robot.chain.prismatic
        self._holds[:, still] = ((limits.lower + limits.upper) / 2)[still]
        self._information = 1e-6 * np.eye(len(self._gravity.names) + robot.n_joints)

    def rotations(self, joint: int) -> list[Rotation]:
        """Rotations of `joint`, the one that adds most to the global fit first.

        Raises:
            TrajectoryError: none is possible or large enough; says why.
        """
        found = self._possible(joint)
        best = min(rotation.std for rotation in found)
        found = sorted((r for r in found if r.std <= SHORTLIST * best), key=lambda r: r.std)[:LONGEST_SHORTLIST]
        gained = np.linalg.slogdet(self._information + self._added(found)).logabsdet
        return [found[k] for k in np.argsort(-gained, kind="stable")]

    def choose(self, rotation: Rotation) -> None:
        """Count `rotation` among those whose torques the global fit will have."""
        self._information += self._added([rotation])[0]

    def _added(self, rotations: list[Rotation]) -> NDArray:
        """Information (R, k + n, k + n) that each rotation's torques hold on gravity moments and torque offsets."""
        n = self._robot.n_joints
        poses = np.concatenate([rotation.poses(self._steps) for rotation in rotations])
        offsets = np.broadcast_to(np.eye(n), (len(poses), n, n))
        rows = np.concatenate([self._gravity.regressor(poses), offsets], axis=2)
        rows = rows.reshape(len(rotations), self._steps * n, -1)
        return rows.transpose(0, 2, 1) @ rows

    def _possible(self, joint: int) -> list[Rotation]:
        if self._limits.units[joint] == "m":
            raise TrajectoryError(
                "it slides: its gravity force is the same all along its travel, and shows while other joints turn"
            )
        lower = self._limits.lower[joint] + self._inset[joint]
        upper = self._limits.upper[joint] - self._inset[joint]
        half_range = min(upper - lower, 2 * np.pi) / 2
        angles = (lower + upper) / 2 + np.linspace(-half_range, half_range, ANGLES)
        holds = self._holds.copy()
        horizontal = np.linalg.norm(np.cross(self._robot.joint_axes(holds)[:, joint], self._workspace.up), axis=1)
        if np.max(horizontal) < PARALLEL:
            raise TrajectoryError("axis parallel to gravity: its gravity torque is zero in every pose")
        usable = horizontal >= PARALLEL
        holds, horizontal = holds[usable], horizontal[usable]
        found = []
        for hold, sine, allowed in zip(holds, horizontal, self._allowed(joint, holds, angles), strict=True):
            first, length = longest_run(allowed)
            if length > 1:
                last = first + length - 1
                hold[joint] = middle = float(angles[first] + angles[last]) / 2
                reach = min(float(angles[last] - angles[first]), self._sweep) / 2
                tilt = float(np.arcsin(min(sine, 1.0)))
                std = _moment_std(2 * reach, self._steps) / float(sine)
                found.append(Rotation(joint, hold, middle - reach, middle + reach, tilt, std))
        if not found:
            raise TrajectoryError("it cannot turn anywhere without leaving the workspace (floor_height, clearance)")
        return found

    def _allowed(self, joint: int, holds: NDArray, angles: NDArray) -> NDArray:
        """(H, A) bool: whether the workspace allows the pose and both poses it is approached from."""
        poses = np.repeat(holds[:, np.newaxis], len(angles), axis=1)
        poses[:, :, joint] = angles
        n = poses.shape[-1]
        sides = [self._workspace.allowed((poses + side * self._approach).reshape(-1, n)) for side in (-1, 0, 1)]
        return np.all(sides, axis=0).reshape(len(holds), len(angles))


def _moment_std(span: float, steps: int) -> float:
    """Standard deviation of (n_x, n_y) from `steps` torques of unit noise and unknown offset over `span` (rad)."""
    angles = np.linspace(0.0, span, steps)
    columns = np.column_stack([np.sin(angles), np.cos(angles), np.ones(steps)])
    return float(np.sqrt(np.trace(np.linalg.pinv(columns.T @ columns)[:2, :2])))

"""Random Fourier motion within limits and workspace, of several that which tells the parameters apart best."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.conditioning import Conditioning
from dynid_ros.excitation.experiment import Plan
from dynid_ros.excitation.fourier_plan import FourierPlan
from dynid_ros.excitation.static_rotation import ACCELERATION_FRACTION
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.checks import check_limits
from dynid_ros.trajectories.connection import Connection
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.minimum_jerk import move
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace

POSES = 256
"""Poses looked at (a power of two); a motion is about one that the workspace allows."""
SHRINK = 0.8
SHRINKS = 12
"""How often a motion that leaves the workspace is made smaller, down to a twelfth."""


class FourierExcitation:
    """Plans a periodic motion of all joints, each as wide as position, velocity and acceleration limits allow.

    Coefficients are drawn at random and scaled joint by joint; a motion that leaves the workspace is made smaller. Of
    `candidates` such motions the best conditioned one is taken.

    Args:
        robot: the arm.
        limits: what the joints may do; 80 % of the acceleration is used.
        workspace: where the links may be; None: anywhere.
        base_frequency: Hz; a period takes 1 / base_frequency.
        harmonics: of the base frequency, at least 2.
        periods: how often the period is repeated.
        amplitude: largest part of each joint's range that is used.
        candidates: motions drawn.
        seed: of the random coefficients; another seed gives another motion.
        position_margin: distance kept from position limits, one value or (n,), rad or m.
        speed_fraction: part of the velocity limits used.
        travel_speed_fraction: part of the velocity limits used on the way to the start.

    Raises:
        TrajectoryError: a setting makes no sense.

    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        base_frequency: float = 0.05,
        harmonics: int = 10,
        periods: int = 1,
        amplitude: float = 0.9,
        candidates: int = 40,
        seed: int = 0,
        position_margin: ArrayLike = 0.05,
        speed_fraction: float = 0.5,
        travel_speed_fraction: float = 0.25,
    ) -> None:
        self.robot = robot
        self.limits = limits
        self.workspace = workspace or Workspace(robot)
        self.base_frequency = base_frequency
        self.harmonics = harmonics
        self.periods = periods
        self.amplitude = amplitude
        self.candidates = candidates
        self.seed = seed
        margin = self._margin = per_joint(position_margin, robot.joint_names, "position_margin")
        for what, value, valid, expected in (
            ("base_frequency", base_frequency, np.isfinite(base_frequency) and base_frequency > 0, "positive"),
            ("harmonics", harmonics, harmonics >= 2, "at least 2: fewer cannot start and end at rest"),
            ("periods", periods, periods >= 1, "at least 1"),
            ("amplitude", amplitude, 0 < amplitude <= 1, "above 0 and at most 1"),
            ("candidates", candidates, candidates >= 1, "at least 1"),
            ("seed", seed, seed >= 0, "zero or more"),
            ("position_margin", position_margin, np.all(margin >= 0), "zero or more"),
            ("speed_fraction", speed_fraction, 0 < speed_fraction <= 1, "above 0 and at most 1"),
            ("travel_speed_fraction", travel_speed_fraction, 0 < travel_speed_fraction <= 1, "above 0 and at most 1"),
        ):
            if not valid:
                raise TrajectoryError(f"{what} is {value!r}; it must be {expected}")
        self._lower, self._upper = limits.lower + margin, limits.upper - margin
        for name, lower, upper in zip(limits.joint_names, self._lower, self._upper, strict=True):
            if not lower < upper:
                raise TrajectoryError(f"joint '{name}' has no room left between its limits, less position_margin")
        self._speeds = limits.scaled(speed_fraction, ACCELERATION_FRACTION)
        self._travel = Connection(limits.scaled(travel_speed_fraction, ACCELERATION_FRACTION), self.workspace)

    def plan(self) -> FourierPlan:
        """Draw the motions and choose the best.

        Raises:
            TrajectoryError: no pose, or none of the motions, keeps to limits and workspace; says why.

        """
        conditioning = Conditioning(self.robot)
        rng = np.random.default_rng(self.seed)
        centres = self.limits.poses(POSES, self._margin)
        allowed = self.workspace.allowed(centres)
        if not allowed.any():
            self._refuse(centres[0])
        centres = centres[allowed]
        rated = []
        for _ in range(self.candidates):
            series = self._placed(self._drawn(rng), centres[rng.integers(len(centres))])
            if series is not None:
                rated.append((conditioning.of(*series.at(series.times())), series))
        reason: object = "all of them leave it even when small"
        for condition, series in sorted(rated, key=lambda pair: pair[0]):
            plan = FourierPlan(series, self.periods, self.limits.units, condition, conditioning.base.rank, self.seed)
            try:
                check_limits(plan.trajectory, self.limits)
                self.workspace.check(plan.trajectory)
            except TrajectoryError as error:
                reason = error
                continue
            return plan
        raise TrajectoryError(
            f"none of {self.candidates} Fourier motions keeps to limits and workspace (floor_height, clearance): "
            f"{reason}; lower the amplitude, narrow the position limits, or draw more candidates"
        )

    def approach_motion(self, measured: ArrayLike, plan: Plan) -> Trajectory:
        """Slow motion from where the arm is, `measured` (n,), to where `plan` starts.

        Raises:
            TrajectoryError: the arm is outside its limits or the workspace, or there is no safe way.

        """
        return self._travel.connect(measured, plan.trajectory.position[0])

    def _refuse(self, pose: NDArray) -> None:
        """Raise with what is wrong with `pose`."""
        try:
            self.workspace.check(move(self.limits.joint_names, pose, pose, 1.0))
        except TrajectoryError as error:
            raise TrajectoryError(
                f"none of {POSES} poses keeps to the workspace (floor_height, clearance); in one of them, {error}"
            ) from error

    def _drawn(self, rng: np.random.Generator) -> FourierSeries:
        """A motion about zero, as wide as the limits allow."""
        sine, cosine = rng.standard_normal((2, self.robot.n_joints, self.harmonics))
        series = FourierSeries.at_rest(self.limits.joint_names, self.base_frequency, sine, cosine)
        low, high, speed, most = series.largest()
        widest = self.amplitude * (self._upper - self._lower) / (high - low)
        return series.scaled(np.min([widest, self._speeds.velocity / speed, self._speeds.acceleration / most], axis=0))

    def _placed(self, series: FourierSeries, centre: NDArray) -> FourierSeries | None:
        """The series about `centre` (n,) or near it, smaller if need be; None if it stays outside the workspace."""
        for _ in range(SHRINKS):
            low, high, _, _ = series.largest()
            half = (high - low) / 2
            placed = series.shifted(np.clip(centre, self._lower + half, self._upper - half) - (low + high) / 2)
            if self.workspace.allowed(placed.at(placed.times())[0]).all():
                return placed
            series = series.scaled(SHRINK)
        return None

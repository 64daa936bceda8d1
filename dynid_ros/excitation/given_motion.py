"""A motion from a file, which is checked like one that was planned."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import GuardedExperiment, TrajectoryPlan, _length, require
from dynid_ros.files import read_text
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import fourier
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import LARGEST_FILE, Trajectory
from dynid_ros.trajectories.workspace import Workspace

REST = 1e-6
"""Part of a limit that a velocity or acceleration at the ends may be, for rounding."""


class GivenMotion(GuardedExperiment):
    """A motion that was designed before, or elsewhere; refused where it does not keep to limits and workspace.

    Args:
        robot: the arm; joints are matched by name, and the file must hold all of them and no others.
        limits: what the joints may do; all of it may be used.
        workspace: where the links may be; None: anywhere.
        path: YAML of `format: dynid-trajectory/1` or `dynid-fourier/1`.
        periods: how often the period of a Fourier motion is repeated.
        travel_speed_fraction: part of the velocity limits used on the way to the start.
        torque_fraction: part of the torque limits that the nominal model may use.

    Raises:
        TrajectoryError: a setting makes no sense.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        workspace: Workspace | None = None,
        *,
        path: str | Path,
        periods: int = 1,
        travel_speed_fraction: float = 0.25,
        torque_fraction: float = 0.8,
    ) -> None:
        super().__init__(
            robot,
            limits,
            workspace,
            position_margin=0.0,
            speed_fraction=1.0,
            travel_speed_fraction=travel_speed_fraction,
            torque_fraction=torque_fraction,
        )
        require(("periods", periods, periods >= 1, "at least 1"))
        self.path, self.periods = Path(path), periods

    def plan(self) -> "GivenPlan":
        """Read and check the motion.

        Raises:
            TrajectoryError: the file cannot be read or holds no such motion, or one of other joints; it leaves limits,
                workspace or torque, says where; or it does not start and end at rest.
        """
        motion = self._ordered(_read(self.path, self.periods))
        try:
            self._check_rest(motion)
            self.check(motion)
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion in '{self.path}' is not safe: {error}") from error
        return GivenPlan(motion, str(self.path), self.limits.units, tuple(self.torque_warnings()))

    def _ordered(self, motion: Trajectory) -> Trajectory:
        names = self.robot.joint_names
        if sorted(motion.joint_names) != sorted(names):
            raise TrajectoryError(
                f"'{self.path}' moves joints {', '.join(motion.joint_names)}; expected {', '.join(names)} in any order"
            )
        return motion.select(names)

    def _check_rest(self, motion: Trajectory) -> None:
        limits = self.limits
        for what, values, bounds in (
            ("velocity", motion.velocity, limits.velocity),
            ("acceleration", motion.acceleration, limits.acceleration),
        ):
            for end, k in (("starts", 0), ("ends", -1)):
                i = int(np.argmax(np.abs(values[k]) / bounds))
                if not abs(values[k, i]) <= REST * bounds[i]:
                    raise TrajectoryError(
                        f"it {end} with {what} {values[k, i]:.4g} of joint '{limits.joint_names[i]}', not at rest"
                    )


@dataclass(frozen=True, eq=False)
class GivenPlan(TrajectoryPlan):
    """What `GivenMotion.plan` returns.

    Attributes:
        trajectory: the whole motion; how the arm gets to its start is not part of it.
        source: the file.
        units: "rad" or "m" for each joint.
        warnings: what is not known.
    """

    trajectory: Trajectory
    source: str
    units: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML."""
        return {
            "format": "dynid-given-motion/1",
            "duration": round(self.duration, 4),
            "source": self.source,
            "warnings": list(self.warnings),
        }

    def summary(self) -> str:
        """Lines of text: duration, source, range of each joint, warnings."""
        motion = self.trajectory
        lines = [f"{self.duration:.1f} s, from {self.source}"]
        lowest, highest = motion.position.min(axis=0), motion.position.max(axis=0)
        for name, unit, low, high in zip(motion.joint_names, self.units, lowest, highest, strict=True):
            lines.append(f"{name}: {_length(low, unit)} to {_length(high, unit)}")
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def _read(path: Path, periods: int) -> Trajectory:
    """A motion of either format; what is neither is reported as no trajectory."""
    try:
        text = read_text(path, LARGEST_FILE)
    except OSError as error:
        raise TrajectoryError(
            f"cannot read trajectory '{path}' ({error.strerror}); name a file in motion_file"
        ) from error
    if re.search(rf"""^format:\s*["']?{re.escape(fourier.FORMAT)}""", text, re.MULTILINE):
        return FourierSeries.read(path).trajectory(periods)
    return Trajectory.read(path)

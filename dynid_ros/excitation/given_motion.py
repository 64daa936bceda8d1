"""A motion from a file, which is checked like one that was planned here."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, Plan, format_range, require
from dynid_ros.files import read_text
from dynid_ros.trajectories import fourier
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.trajectory import MAX_FILE_BYTES, Trajectory

REST_TOLERANCE = 1e-6
"""Largest velocity or acceleration at the ends that counts as rest, as a fraction of the limit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenMotion(Experiment):
    """Motion that was designed before, or elsewhere; refused where it violates limits or workspace.

    Joints are matched by name. The file must hold all of them and no others. The whole of the limits may be used.

    Attributes:
        path: YAML of `format: dynid-trajectory/1` or `dynid-fourier/1`.
        periods: repetitions of the period of a Fourier motion.
    """

    position_margin: ArrayLike = 0.0
    speed_fraction: float = 1.0
    path: str | Path
    periods: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(("periods", self.periods, self.periods >= 1, "at least 1"))

    def plan(self) -> Plan:
        """Read and check the motion.

        Raises:
            TrajectoryError: the file cannot be read, holds no such motion or one of other joints; the motion violates
                limits, workspace or torque; or it does not start and end at rest.
        """
        motion = read_motion(Path(self.path), self.periods)
        names = self.robot.joint_names
        if sorted(motion.joint_names) != sorted(names):
            raise TrajectoryError(
                f"'{self.path}' moves joints {', '.join(motion.joint_names)}; expected {', '.join(names)} in any order"
            )
        motion = motion.select(names)
        try:
            self._check_rest(motion)
            self.check(motion)
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion in '{self.path}' is not safe: {error}") from error
        ranges = zip(names, motion.position.min(axis=0), motion.position.max(axis=0), self.limits.units, strict=True)
        return Plan(
            trajectory=motion,
            format="dynid-given-motion/1",
            facts={"source": str(self.path)},
            lines=(
                f"{motion.duration:.1f} s, from {self.path}",
                *(f"{name}: {format_range(low, high, unit)}" for name, low, high, unit in ranges),
            ),
            warnings=self.workspace_and_torque.warnings,
        )

    def _check_rest(self, motion: Trajectory) -> None:
        limits = self.limits
        for quantity, values, bounds in (
            ("velocity", motion.velocity, limits.velocity),
            ("acceleration", motion.acceleration, limits.acceleration),
        ):
            for verb, sample in (("starts", 0), ("ends", -1)):
                i = int(np.argmax(np.abs(values[sample]) / bounds))
                if not abs(values[sample, i]) <= REST_TOLERANCE * bounds[i]:
                    raise TrajectoryError(
                        f"it {verb} with {quantity} {values[sample, i]:.4g} of joint '{limits.joint_names[i]}', not at "
                        "rest"
                    )


def read_motion(path: Path, periods: int) -> Trajectory:
    """Read a motion of either format.

    Args:
        path: the file.
        periods: repetitions of the period of a Fourier motion.
    """
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except OSError as error:
        raise TrajectoryError(
            f"cannot read trajectory '{path}' ({error.strerror}); name a file in motion_file"
        ) from error
    if re.search(rf"""^format:\s*["']?{re.escape(fourier.FOURIER_FORMAT)}""", text, re.MULTILINE):
        return FourierSeries.read(path).trajectory(periods)
    return Trajectory.read(path)

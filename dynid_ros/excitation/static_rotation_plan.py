"""A planned static-rotation experiment: the motion, its dwells and what it can show."""

from dataclasses import dataclass

import numpy as np

from dynid_ros.excitation.experiment import OfTrajectory
from dynid_ros.excitation.rotation_search import Rotation
from dynid_ros.excitation.stepped_rotation import Dwell
from dynid_ros.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class StaticRotationPlan(OfTrajectory):
    """What `StaticRotation.plan` returns.

    Attributes:
        trajectory: the whole motion, from the first rotation's first pose; how the arm gets there is not part of it.
        dwells: in order of time.
        rotations: in order of time.
        skipped: reason for each joint that is not rotated.
        warnings: what will weaken the identification.

    """

    trajectory: Trajectory
    dwells: tuple[Dwell, ...]
    rotations: tuple[Rotation, ...]
    skipped: dict[str, str]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: times in s from the start of the motion, positions in rad or m, tilts in degrees."""
        names = self.trajectory.joint_names
        return {
            "format": "dynid-static-rotation/1",
            "duration": round(self.duration, 4),
            "rotations": [
                {
                    "joint": names[rotation.joint],
                    "lower": round(rotation.lower, 6),
                    "upper": round(rotation.upper, 6),
                    "tilt_degrees": round(float(np.rad2deg(rotation.tilt)), 2),
                    "hold": {
                        name: round(float(value), 6)
                        for i, (name, value) in enumerate(zip(names, rotation.hold, strict=True))
                        if i != rotation.joint
                    },
                }
                for rotation in self.rotations
            ],
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
            "dwells": [dwell.as_dict() for dwell in self.dwells],
        }

    def summary(self) -> str:
        """Lines of text: duration, range and tilt of each rotation, joints left out and why, warnings."""
        names = self.trajectory.joint_names
        lines = [f"{self.duration:.1f} s, {len(self.dwells)} dwells"]
        for rotation in self.rotations:
            span, tilt = np.rad2deg([rotation.upper - rotation.lower, rotation.tilt])
            lines.append(f"{names[rotation.joint]}: {span:.0f}° in steps, its axis {tilt:.0f}° from the vertical")
        lines += [f"{name}: not rotated, {reason}" for name, reason in self.skipped.items()]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

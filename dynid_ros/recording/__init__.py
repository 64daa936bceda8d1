"""What was measured on a robot: reading and writing recordings."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.checks.all_checks import check
    from dynid_ros.checks.finding import Finding
    from dynid_ros.recording.effort import EffortConvention
    from dynid_ros.recording.lerobot import read_lerobot
    from dynid_ros.recording.mocap_exports import read_mocap
    from dynid_ros.recording.recording import Recording, add_poses
    from dynid_ros.recording.series import CommandSeries, PoseSeries, WrenchSeries

__all__ = [
    "CommandSeries",
    "EffortConvention",
    "Finding",
    "PoseSeries",
    "Recording",
    "WrenchSeries",
    "add_poses",
    "check",
    "read_lerobot",
    "read_mocap",
]

offer(globals())

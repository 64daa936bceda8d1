"""What was measured on a robot: reading, writing and judging recordings."""

from dynid_ros.recording.checks import check
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.mocap_file import add_poses, read_mocap
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import PoseSeries, WrenchSeries

__all__ = ["EffortConvention", "Finding", "PoseSeries", "Recording", "WrenchSeries", "add_poses", "check", "read_mocap"]

"""What was measured on a robot: reading and writing recordings."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.checks.all_checks import check as check
    from dynid_ros.checks.finding import Finding as Finding
    from dynid_ros.recording.effort import EffortConvention as EffortConvention
    from dynid_ros.recording.lerobot import read_lerobot as read_lerobot
    from dynid_ros.recording.mocap_exports import read_mocap as read_mocap
    from dynid_ros.recording.recording import Recording as Recording, add_poses as add_poses
    from dynid_ros.recording.series import (
        CommandSeries as CommandSeries,
        PoseSeries as PoseSeries,
        WrenchSeries as WrenchSeries,
    )


offer(globals())

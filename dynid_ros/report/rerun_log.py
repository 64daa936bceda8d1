"""Logging of a recording for the viewer Rerun: the moving arm, and measured, commanded and predicted signals."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.files import atomic_file
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import LIGHT

POSE_RATE_HZ = 30.0
"""Poses of the arm per second, Hz; curves contain every sample."""
TIMELINE = "time"
APPLICATION = "dynid_ros"


def log_to_rerun(
    robot: RobotModel, recording: Recording, predicted: NDArray | None = None, output: str | Path | None = None
) -> Path | None:
    """Log a recording to a file, or to a viewer that this function opens.

    The curves are `position/<joint>` and `command/<joint>` (rad or m), `velocity/<joint>` (per s), and
    `torque/<joint>/measured`, `torque/<joint>/predicted` and `torque/<joint>/residual` (N m or N). Signals that were
    not recorded are omitted. `arm` contains lines through the origins of the links in the base frame, m.

    Args:
        robot: the arm.
        recording: recording of its joints.
        predicted: (N, n) torque predicted by a model for each sample; None: no prediction.
        output: path of the file, .rrd; None: a viewer.

    Returns:
        The path of the file; None for a viewer.
    """
    try:
        rerun = import_module("rerun")
    except ImportError as error:
        raise RecordingError(f"the viewer needs Rerun ({error}): pip install 'rerun-sdk>=0.23'") from error
    recording = recording.select(robot.joint_names)
    stream = rerun.RecordingStream(APPLICATION)
    if output is None:
        stream.spawn()
        _log(rerun, stream, robot, recording, predicted)
        stream.flush()
        return None
    memory = stream.memory_recording()
    _log(rerun, stream, robot, recording, predicted)
    with atomic_file(output) as file:
        file.write(memory.drain_as_bytes())
    return Path(output)


def _log(rerun: Any, stream: Any, robot: RobotModel, recording: Recording, predicted: NDArray | None) -> None:
    def curve(path: str, time: NDArray, values: NDArray, color: str = "") -> None:
        is_known = np.isfinite(values)
        if not is_known.any():
            return
        if color:
            stream.log(path, rerun.SeriesLines(colors=[[*bytes.fromhex(color[1:])]]), static=True)
        columns = rerun.Scalars.columns(scalars=values[is_known])
        stream.send_columns(path, [rerun.TimeColumn(TIMELINE, duration=time[is_known])], columns)

    stream.send_blueprint(_blueprint(robot))
    for j, joint in enumerate(robot.joint_names):
        curve(f"position/{joint}", recording.time, recording.position[:, j])
        curve(f"velocity/{joint}", recording.time, recording.velocity[:, j])
        curve(f"torque/{joint}/measured", recording.time, recording.torque[:, j], LIGHT["measured"])
        if predicted is not None:
            curve(f"torque/{joint}/predicted", recording.time, predicted[:, j], LIGHT["identified"])
            curve(f"torque/{joint}/residual", recording.time, recording.torque[:, j] - predicted[:, j])
        if recording.command is not None:
            curve(f"command/{joint}", recording.command.time, recording.command.position[:, j])
    times = np.arange(recording.time[0], recording.time[-1], 1.0 / POSE_RATE_HZ)
    rows = np.unique(np.searchsorted(recording.time, times))
    origins = robot.forward_kinematics(recording.position[rows])[..., :3, 3]
    parents = np.asarray(robot.chain.parents)
    starts = np.where((parents >= 0)[:, None], origins[:, parents], 0.0)
    strips = np.stack([starts, origins], axis=2).reshape(-1, 2, 3)
    stream.send_columns(
        "arm",
        [rerun.TimeColumn(TIMELINE, duration=recording.time[rows])],
        rerun.LineStrips3D.columns(strips=strips).partition(np.full(len(rows), robot.n_links)),
    )


def _blueprint(robot: RobotModel) -> Any:
    """Return the layout of the viewer."""
    views = import_module("rerun.blueprint")
    curves = [views.TimeSeriesView(origin=f"torque/{joint}", name=f"torque {joint}") for joint in robot.joint_names]
    return views.Blueprint(
        views.Horizontal(
            views.Vertical(views.Spatial3DView(origin="arm"), views.TimeSeriesView(origin="position")),
            views.Grid(*curves),
        )
    )

"""What sensors say of the springs: deflections and torques without any law, to fit one to and to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.result import FlexibleResult
from dynid_ros.identification.flexible.spring_data import white_noise
from dynid_ros.identification.flexible.spring_fit import SpringFit, fit_spring
from dynid_ros.mocap.chain_angles import LinkAngles
from dynid_ros.recording import Recording


@dataclass(frozen=True, eq=False)
class MeasuredSpring:
    """Of one joint, N samples of all recordings.

    Attributes:
        joint: its name.
        deflection: (N,) measured motor less measured link, rad or m, without the zero that was found.
        torque: (N,) measured, less what accelerates and brakes the motor, N m or N.
        runs: (N,) which run a sample belongs to.
        fit: of a law to these; None: `undecided` says why.
        undecided: why there is no fit; else empty.

    """

    joint: str
    deflection: NDArray
    torque: NDArray
    runs: NDArray
    fit: SpringFit | None
    undecided: str


def link_noise(
    robot_joints: Sequence[str], recordings: Sequence[Recording], links: Sequence[LinkAngles | None]
) -> NDArray:
    """(n,) white noise of the links' positions as they were measured, rad or m; NaN where too few are known."""
    found = []
    for recording, seen in zip(recordings, links, strict=True):
        values = recording.select(robot_joints).link_position if seen is None else seen.position
        columns = [] if values is None else [column[np.isfinite(column)] for column in values.T]
        found.append([white_noise(column) if len(column) > 12 else np.nan for column in columns])
    return np.sqrt(np.nanmean(np.square(found), axis=0))


def measured_springs(result: FlexibleResult, laws: Sequence[Sequence[str]], noise: NDArray) -> list[MeasuredSpring]:
    """Deflection and torque of each spring, and the law of each joint's `laws` that predicts them best.

    Only the motor's own terms, the zeros and the clocks are taken from the result, not its springs.

    Args:
        result: of an identification.
        laws: for each joint keys of `SPRINGS`, simplest first.
        noise: (n,) of the links' positions, rad or m.

    """
    found = []
    for i, joint in enumerate(result.joint_names):
        d, tau, numbers = measured(result, i)
        fit, undecided = None, ""
        try:
            fit = fit_spring(d, tau, laws[i], runs=numbers, deflection_noise=float(noise[i]))
        except IdentificationError as error:
            undecided = str(error)
        found.append(MeasuredSpring(joint, d, tau, numbers, fit, undecided))
    return found


def measured(result: FlexibleResult, joint: int) -> tuple[NDArray, NDArray, NDArray]:
    """Deflection, torque and run (N,) of the joint's spring, all recordings after each other, without any law."""
    parts = [run.prediction for run in result.runs]
    deflection = np.concatenate([part.link + part.deflection - part.measured_link for part in parts])[:, joint]
    torque = np.concatenate([part.measured_torque - (part.torque - part.spring_torque) for part in parts])[:, joint]
    runs = np.repeat(np.arange(len(parts)), [len(part.time) for part in parts])
    known = np.isfinite(deflection) & np.isfinite(torque)
    return deflection[known], torque[known], runs[known]

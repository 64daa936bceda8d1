"""Drives in MIT mode: gains that are wrong or beyond what the drive can do, and a wrong delay of the commands.

Torques that are computed from commands are proportional to the gains. Joints share the parameters of one arm, so a
wrong gain of one joint shows as a factor on its torque.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dynid_ros.checks.finding import CURRENT, LAG, CheckSettings, Finding, recording_check
from dynid_ros.checks.jackknife import Jackknife
from dynid_ros.checks.motion_samples import MAX_SAMPLES, motion_samples
from dynid_ros.checks.torque_model import TorqueProblem, own_columns
from dynid_ros.recording.effort import CommandDelay, at_delay
from dynid_ros.recording.recording import Recording

SATURATED: Final = "saturated drive"
MIN_SATURATED_SHARE = 0.002
"""Smallest share of samples beyond the limit: single samples may be spikes of a measured velocity."""
ERROR_SATURATED_SHARE = 0.05
MIN_GAIN_FACTOR = 1.1
"""Smallest factor of error of a gain to report, either way: torque constants of drives are wrong by some percent."""
GAIN_REMEDY = "compare its stiffness and damping with those sent to the drive, in N m/rad and N m s/rad at the joint"

SATURATION_REMEDY = (
    "compare stiffness and damping with those sent to the drive; if they are right, move slower, or correct the effort "
    "limit of the URDF"
)

MIN_DELAY_ERROR_S = 2e-3
"""Smallest error of a delay to report: low-passed motion shows sound delays within 0.6 ms."""
DELAY_DIFFERENCE_S = 1e-3
"""Change of the delay by which torques are differentiated."""


@recording_check(rank=35)
def check_saturation(recording: Recording, settings: CheckSettings) -> Iterator[Finding]:
    """Yield a finding for each joint whose commands ask for more torque than its effort limit."""
    if recording.command_delay is None or settings.robot is None:
        return
    limits = settings.robot.limits.effort
    for name, torque, limit in zip(recording.joint_names, recording.torque.T, limits, strict=True):
        if not (np.isfinite(limit) and limit > 0):
            continue
        known = torque[np.isfinite(torque)]
        share = float(np.mean(np.abs(known) > limit)) if known.size else 0.0
        if share > MIN_SATURATED_SHARE:
            yield Finding(
                "error" if share > ERROR_SATURATED_SHARE else "warning",
                f"{recording.source}, joint '{name}'",
                f"its commands ask for up to {np.abs(known).max():.3g} N m (N), beyond its limit of {limit:g} in "
                f"{100 * share:.2g} % of the samples, so the drive made less torque than computed",
                SATURATION_REMEDY,
                SATURATED,
            )


def with_drive_remedy(finding: Finding, recordings: Sequence[Recording]) -> Finding:
    """Return a finding about the unit of torques in words about gains, if the torques follow from commands."""
    if finding.kind == CURRENT and any(part.command_delay is not None for part in recordings):
        message = finding.message.partition(": it looks like")[0]
        return replace(finding, message=f"{message}: a stiffness or damping is wrong", fix=GAIN_REMEDY)
    return finding


def check_drive_gains(recordings: Sequence[Recording], problem: TorqueProblem, source: str) -> Iterator[Finding]:
    """Yield a warning for the joint whose gains are certainly wrong by a factor; one wrong gain shifts all others.

    A factor 1 + c on the torque of joint j adds c times the torque of the rigid links to its equation, to first order.
    """
    if not any(part.command_delay is not None for part in recordings):
        return
    presliding = problem.presliding
    rigid = presliding.terms.rigid @ presliding.fit.rigid
    jackknife = Jackknife(presliding.terms, own_columns(rigid[:, :, None]))
    wrong = []
    for j in problem.equations.judged.tolist():
        change = jackknife.estimate([j])
        factor = 1.0 + float(change.values[0])
        if change.certain and not 1.0 / MIN_GAIN_FACTOR < factor < MIN_GAIN_FACTOR:
            wrong.append((change.gain, j, factor))
    if wrong:
        _, j, factor = max(wrong)
        yield Finding(
            "warning",
            f"{source}, joint '{recordings[0].joint_names[j]}'",
            f"its torque by the commands is about {factor:.2g} times what the other joints show",
            GAIN_REMEDY,
            CURRENT,
        )


def check_command_delay(recordings: Sequence[Recording], problem: TorqueProblem, source: str) -> Iterator[Finding]:
    """Yield a warning if the commands certainly act later or earlier than assumed.

    The derivative of the torques by the delay is a column of the torque model, beside friction, which it resembles.
    """
    delays = [part.command_delay for part in recordings if part.command_delay is not None]
    if len(delays) < len(recordings) or any(np.isnan(delay.error) for delay in delays):
        return
    torques = []
    for change in (-DELAY_DIFFERENCE_S, DELAY_DIFFERENCE_S):
        shifted = [
            at_delay(part, CommandDelay(delay.value + change, 0.0))
            for part, delay in zip(recordings, delays, strict=True)
        ]
        samples = motion_samples(shifted)
        if samples is None:
            return
        torques.append(samples.thinned(MAX_SAMPLES).torque)
    if not all(torque.shape == problem.samples.torque.shape for torque in torques):
        return
    rate = (torques[1] - torques[0]) / (2 * DELAY_DIFFERENCE_S)
    later = Jackknife(problem.terms, -rate[:, :, None]).estimate([0])
    error = float(later.values[0])
    if later.certain and abs(error) > MIN_DELAY_ERROR_S:
        yield Finding(
            "warning",
            source,
            f"the commands act about {1e3 * abs(error):.2g} ms {'later' if error > 0 else 'earlier'} than the "
            f"{1e3 * delays[0].value:.3g} ms of their delay",
            "leave the delay out (--command-delay), so that it is estimated",
            LAG,
        )

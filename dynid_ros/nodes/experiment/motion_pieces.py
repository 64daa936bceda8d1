"""Messages that carry a motion to a controller: as a whole, or in pieces that each end at rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.trajectories import MotionLimits, Trajectory
from dynid_ros.trajectories.execution import MIN_STOP_S, cut_piece

LEAD_S = MIN_STOP_S
"""Time from the arrival of a message to its first point, for a smooth transition of the controller.

The controller begins at its own reference or at the measured pose, see `MotionController`. The transport of a message
delays the motion, and the controller could not catch up in less time without a jerk.
"""
MIN_POINT_DISTANCE_S = 1e-6
"""Smallest time between two points."""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD_S
) -> JointTrajectory:
    """Return a message with the state of `trajectory` at `lead` after its arrival, and the samples after that.

    Args:
        trajectory: motion that ends at rest.
        joint_names: names in the order of the controller.
        delay: time from the arrival of the message to the first sample, s; negative for a past sample.
        lead: time from the arrival to the first point, s; 0: the controller continues at the present state of the
            motion, whatever its own state is.
    """
    ordered = trajectory.select(joint_names)
    first = min(max(lead - delay, 0.0), ordered.duration)
    sample_times: NDArray = np.concatenate([[first], ordered.time[ordered.time > first + MIN_POINT_DISTANCE_S]])
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (np.maximum(sample_times + delay, lead), *ordered.at(sample_times))
    for instant, position, velocity, acceleration in zip(*(row.tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=instant).to_msg()
        message.points.append(point)
    return message


PIECE_LENGTH_S = 1.4
"""Part of the motion in one piece, after which the piece comes to rest; with its stop it lasts some 1.6 to 2 s."""
PIECE_PERIOD_S = 0.4
"""Time between two pieces; each arrives a second before the stop of the one before begins."""
MIN_CLOCK_JUMP_NS = 20_000_000
"""Smallest difference between two clocks that shows that one was set; a smaller one is due to reading them in turn."""
LAST_CALL_S = 0.1
"""Time before the stop of a piece after which the next one comes too late: the arm would jump."""


@dataclass(frozen=True)
class Handover:
    """Transition of a controller from one piece of a motion to the next.

    Attributes:
        is_stamped: whether the piece begins at its stamp; otherwise on arrival.
        ahead: time from sending to the beginning of the piece, s.
        lead: time from there to the first point, s, for the transition from one piece to the next.
    """

    is_stamped: bool
    ahead: float
    lead: float


PASSED_OVER = Handover(is_stamped=True, ahead=0.0, lead=0.0)
"""The first point is past when the piece arrives: the controller continues on the new piece at once."""
BLENDED = Handover(is_stamped=True, ahead=0.3, lead=0.1)
"""The controller follows the old piece until the new one begins, and then passes over."""
BLENDED_ON_ARRIVAL = Handover(is_stamped=False, ahead=0.0, lead=0.2)
"""The controller passes over on arrival; before a piece in the future it would begin at the measured pose."""


class MotionPieces:
    """Sequence of pieces of a motion, each of which replaces the one before.

    Args:
        sampled: samples of the motion, which ends at rest.
        joint_names: names in the order of the controller.
        limits: limits of the stop at the end of each piece.
        handover: transition from one piece to the next.
        pause: time from sending the first piece to the beginning of the motion, s.

    Attributes:
        first: the first piece.
    """

    def __init__(
        self, sampled: Trajectory, joint_names: Sequence[str], limits: MotionLimits, handover: Handover, pause: float
    ) -> None:
        self._sampled = sampled
        self._joint_names = joint_names
        self._limits = limits
        self._handover = handover
        self._begin = 0.0
        self._due = PIECE_PERIOD_S
        self._pause = round(pause * 1e9)  # ns
        self._origin = 0  # begin of the motion by the clock of the messages, ns
        self._piece, self._stop_time = cut_piece(sampled, 0.0, PIECE_LENGTH_S, limits)
        self.first = trajectory_message(self._piece, joint_names, pause)

    def stamp_first(self, now: Time) -> None:
        """Stamp the first piece, which is sent at `now`; the stamps of all others follow from this one."""
        self.first.header.stamp = now.to_msg()
        self._origin = now.nanoseconds + self._pause

    def is_due(self, elapsed: float) -> bool:
        """Return whether the next piece is to be sent at `elapsed`, s of the motion."""
        return elapsed >= self._due and self._stop_time < self._sampled.duration

    def lateness(self, elapsed: float) -> float:
        """Return the delay of the next piece, s, if it is too late to be sent; otherwise 0."""
        return elapsed - self._due if self.is_due(elapsed) and elapsed > self._stop_time - LAST_CALL_S else 0.0

    def next_piece(self, elapsed: float, now: Time) -> JointTrajectory:
        """Return the piece to be sent.

        The two clocks cannot be read at the same instant. Stamps follow the time of the motion, unless the clock of the
        messages was set.

        Args:
            elapsed: time of the motion, s.
            now: time by the clock of the messages.
        """
        difference = now.nanoseconds - self._origin - round(elapsed * 1e9)
        if abs(difference) > MIN_CLOCK_JUMP_NS:
            self._origin += difference
        ahead = self._handover.ahead
        self._begin = elapsed + ahead
        self._due = elapsed + PIECE_PERIOD_S
        self._piece, self._stop_time = cut_piece(self._sampled, self._begin, elapsed + PIECE_LENGTH_S, self._limits)
        message = trajectory_message(self._piece, self._joint_names, 0.0, self._handover.lead)
        if self._handover.is_stamped:
            message.header.stamp = Time(nanoseconds=self._origin + round(self._begin * 1e9)).to_msg()
        return message

    def stopping_piece(self, elapsed: float) -> tuple[Trajectory, float] | None:
        """Return the last piece and its begin, s of the motion, if its stop has begun; otherwise None."""
        begun = self._stop_time < min(elapsed, self._sampled.duration)
        return (self._piece, self._begin) if begun else None


@dataclass(frozen=True)
class Load:
    """Motion that is ready to be sent.

    Attributes:
        motion: motion to supervise.
        message: the whole motion, serialised for a topic; or its first piece.
        pieces: later pieces; None if the motion is sent as a whole.
    """

    motion: Trajectory
    message: JointTrajectory | bytes
    pieces: MotionPieces | None

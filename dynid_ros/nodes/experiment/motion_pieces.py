"""A motion as the messages that carry it to a controller: whole, or in pieces that each end at rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.trajectories import MotionLimits, Trajectory
from dynid_ros.trajectories.execution import MIN_STOP_S, cut_piece

LEAD = MIN_STOP_S
"""Time from arrival to the first point, s: the controller goes there smoothly from where it begins.

That is its own reference, or the measured pose, see `motion_controller`. The way a message takes shifts the motion;
over less time a controller could not make up for it without a jerk.
"""
SAME = 1e-6
"""s within which two points are one."""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD
) -> JointTrajectory:
    """Message with what of `trajectory` is due `lead` after arrival, and its samples after that.

    Args:
        trajectory: ends at rest.
        joint_names: as the controller has them.
        delay: time from the arrival of the message to the first sample, s; negative: it is past.
        lead: s; 0: the controller goes on with the motion where that is to be, whatever its own beginning is.
    """
    ordered = trajectory.select(joint_names)
    first = min(max(lead - delay, 0.0), ordered.duration)
    own: NDArray = np.concatenate([[first], ordered.time[ordered.time > first + SAME]])
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (np.maximum(own + delay, lead), *ordered.at(own))
    for instant, position, velocity, acceleration in zip(*(row.tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=instant).to_msg()
        message.points.append(point)
    return message


PIECE_LENGTH = 1.4
"""s of the motion in one piece, after which the piece comes to rest: with its stop it takes some 1.6 to 2 s."""
PIECE_PERIOD = 0.4
"""s from one piece to the next, so that each comes a second before the stop of the one before begins."""
CLOCK_SET = 20_000_000
"""ns by which a clock is set and not just read later."""
LATEST_PIECE = 0.1
"""s before the stop of a piece begins in which the next one is not sent any more: it would make the arm jump."""


@dataclass(frozen=True)
class Handover:
    """How a controller goes on from one piece of a motion to the next.

    Attributes:
        is_stamped: whether the piece begins at its stamp, however late it comes; false: when it comes.
        ahead: time from sending to the beginning of the piece, s.
        lead: time from there to the first point, s, in which the controller passes from one piece to the other.
    """

    is_stamped: bool
    ahead: float
    lead: float


PASSED_OVER = Handover(is_stamped=True, ahead=0.0, lead=0.0)
"""The first point is past when the piece comes, so the controller is on the new piece at once, at the same place."""
BLENDED = Handover(is_stamped=True, ahead=0.3, lead=0.1)
"""The controller keeps the old piece up to the beginning of the new one, and then passes over."""
BLENDED_ON_ARRIVAL = Handover(is_stamped=False, ahead=0.0, lead=0.2)
"""As above, for a controller that would begin at the measured pose until a piece begins in the future."""


class MotionPieces:
    """Makes the pieces of a motion, one after the other, each of which takes the place of the one before.

    Args:
        sampled: samples of the motion, which ends at rest.
        joint_names: in the controller's order.
        limits: to which the stop of each piece keeps.
        handover: how the controller passes over from one piece to the next.
        pause: time from sending the first piece to the beginning of the motion, s.

    Attributes:
        first: the first piece.
    """

    def __init__(
        self, sampled: Trajectory, joint_names: Sequence[str], limits: MotionLimits, handover: Handover, pause: float
    ) -> None:
        self._sampled, self._joint_names, self._limits, self._handover = sampled, joint_names, limits, handover
        self._begin, self._due = 0.0, PIECE_PERIOD
        self._pause, self._origin = round(pause * 1e9), 0  # ns; of the motion's beginning, by the clock of the messages
        self._piece, self._stop_time = cut_piece(sampled, 0.0, PIECE_LENGTH, limits)
        self.first = trajectory_message(self._piece, joint_names, pause)

    def stamp_first(self, now: Time) -> None:
        """Stamp the first piece, which is sent `now`; the stamps of the others count from there."""
        self.first.header.stamp = now.to_msg()
        self._origin = now.nanoseconds + self._pause

    def is_due(self, elapsed: float) -> bool:
        """Return whether the next piece is to be sent at `elapsed`, s of the motion."""
        return elapsed >= self._due and self._stop_time < self._sampled.duration

    def lateness(self, elapsed: float) -> float:
        """Return by how much (s) the next piece is late, where the stop of the last one begins too soon; else 0."""
        return elapsed - self._due if self.is_due(elapsed) and elapsed > self._stop_time - LATEST_PIECE else 0.0

    def next_piece(self, elapsed: float, now: Time) -> JointTrajectory:
        """Return the piece to be sent at `elapsed`, s of the motion, which is about `now` by the clock of the messages.

        Two clocks are not read at one instant: stamps follow the time of the motion, unless the other clock was set.
        """
        difference = now.nanoseconds - self._origin - round(elapsed * 1e9)
        if abs(difference) > CLOCK_SET:
            self._origin += difference
        ahead = self._handover.ahead
        self._begin, self._due = elapsed + ahead, elapsed + PIECE_PERIOD
        self._piece, self._stop_time = cut_piece(self._sampled, self._begin, elapsed + PIECE_LENGTH, self._limits)
        message = trajectory_message(self._piece, self._joint_names, 0.0, self._handover.lead)
        if self._handover.is_stamped:
            message.header.stamp = Time(nanoseconds=self._origin + round(self._begin * 1e9)).to_msg()
        return message

    def stopping_piece(self, elapsed: float) -> tuple[Trajectory, float] | None:
        """Return the last piece and its beginning, s of the motion, where its stop has begun; None: it has not."""
        begun = self._stop_time < min(elapsed, self._sampled.duration)
        return (self._piece, self._begin) if begun else None


@dataclass(frozen=True)
class Load:
    """A motion that is ready to be sent.

    Attributes:
        motion: that is watched.
        message: all of it, serialised for a topic; or its first piece.
        pieces: makes the pieces after the first; None: the motion is sent as a whole.
    """

    motion: Trajectory
    message: JointTrajectory | bytes
    pieces: MotionPieces | None

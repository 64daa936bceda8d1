"""Joint states of one arm: values in a fixed joint order, and torque samples with the time of the driver's clock."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from dynid_ros.errors import DynidError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynid_ros.recording.effort import EffortConvention

MIN_CLOCK_SETBACK_S = 1.0
"""Smallest decrease of the stamps that means that the clock was set back; after a smaller one the message is old."""


def newest_states(depth: int) -> QoSProfile:
    """Return best-effort QoS: it matches every publisher, and no state waits until a lost one is sent again."""
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def nanoseconds(header: Header) -> int:
    """Return the stamp of a header, ns; 0 for a message without a stamp."""
    return header.stamp.sec * 10**9 + header.stamp.nanosec


class JointOrder:
    """Reader of joint states in a fixed joint order, whatever their order in the message.

    The positions of the joints in a message are looked up only when its names change.

    Args:
        joint_names: n names, in the order of the returned values.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = list(joint_names)
        self._joints = frozenset(joint_names)
        self._names: list[str] | None = None
        self._index: list[int] = []

    def concerns(self, message: JointState) -> bool:
        """Return whether a message names any joint of this arm; others, such as grippers, may use the same topic."""
        return not self._joints.isdisjoint(message.name)

    def pick(self, message: JointState, field: str) -> list[float]:
        """Return the values (n,) of `field` (position, velocity or effort) in the units of the driver."""
        if message.name != self._names:
            self._find(list(message.name))
        values = getattr(message, field)
        if len(values) != len(message.name):
            raise DynidError(
                f"joint_states has {len(values)} values of {field} for {len(message.name)} names; "
                f"the driver must fill {field}"
            )
        picked = [values[i] for i in self._index]
        for name, value in zip(self.joint_names, picked, strict=True):
            if not math.isfinite(value):
                raise DynidError(f"joint_states: {field} of joint '{name}' is {value}; expected a finite number")
        return picked

    def _find(self, names: list[str]) -> None:
        """Store the place of each joint among the names of a message."""
        counts = Counter(names)
        missing = [name for name in self.joint_names if not counts[name]]
        if missing:
            raise DynidError(f"joint_states lacks joint(s) {', '.join(missing)}; it names {', '.join(names) or 'none'}")
        duplicates = [name for name in self.joint_names if counts[name] > 1]
        if duplicates:
            raise DynidError(f"joint_states names joint(s) {', '.join(duplicates)} more than once")
        self._index = [names.index(name) for name in self.joint_names]
        self._names = names


class TorqueSamples:
    """Converter of joint states to samples of time, position and torque; time is in s since the first state.

    Args:
        node: node that logs when the driver's clock was set back.
        joint_names: n names.
        convention: meaning and unit of the field `effort`, from which torque is computed.
        anew: whether time restarts at zero when the driver's clock was set back; otherwise it continues.

    Attributes:
        received: time of arrival of the last state of this arm, before the first state that of creation, s of the
            monotonic clock.
        problem: reason why the last state could not be used; empty if it could.
        refused: number of states that could not be used.
        start: stamp of time 0, ns; None before the first state.
        was_set_back: whether the driver's clock was set back just before the last state.

    Raises:
        DynidError: the convention does not fit the joints.
    """

    def __init__(
        self, node: Node, joint_names: Sequence[str], convention: EffortConvention, *, anew: bool = False
    ) -> None:
        self.received = time.monotonic()
        self.problem = ""
        self.refused = 0
        self.start: int | None = None
        self.was_set_back = False
        self._node = node
        self._order = JointOrder(joint_names)
        self._convention = convention
        self._last_time = -math.inf
        self._anew = anew
        convention.to_torque(np.zeros((1, len(joint_names))))  # raises an error if it does not fit the joints

    def take(self, message: JointState, received: int) -> tuple[float, list[float], NDArray] | None:
        """Return time, s, positions (n,), rad (m), and torques (n,), N m (N), of a new state of this arm.

        Return None for a repeated, old or unusable state, and for a state without joints of this arm.

        Args:
            message: the joint state.
            received: time of reception, ns; replaces a missing stamp.
        """
        if not self._order.concerns(message):
            return None
        self.received = time.monotonic()
        try:
            position = self._order.pick(message, "position")
            torque = self._convention.to_torque(np.array([self._order.pick(message, "effort")]))[0]
        except DynidError as error:
            self.refuse(str(error))
            return None
        self.problem = ""
        stamp = nanoseconds(message.header) or received
        self.start = stamp if self.start is None else self.start
        setback = self._last_time - (stamp - self.start) * 1e-9
        self.was_set_back = setback > MIN_CLOCK_SETBACK_S
        if self.was_set_back:
            self._node.get_logger().warning(f"The clock of joint_states was set back by {setback:.1f} s.")
            # Unless time restarts, this sample gets the time of the last one, and time goes on from there.
            self.start = stamp if self._anew else self.start - round(setback * 1e9)
        elif setback >= 0.0:
            return None  # a repeated or an old state
        self._last_time = (stamp - self.start) * 1e-9
        return self._last_time, position, torque

    def refuse(self, problem: str) -> None:
        """Count the last state as unusable, and store the reason."""
        self.refused += 1
        self.problem = problem

    def stamp(self, moment: float) -> float:
        """Return the driver's stamp, s, that belongs to the time of a sample, s."""
        assert self.start is not None
        return (self.start + round(moment * 1e9)) / 1e9

"""Joint states of one arm: fields by joint names, and samples of its torques by the driver's clock."""

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

SET_BACK = 1.0
"""s by which a stamp must be earlier than one before for the clock to have been set back."""


def newest_states(depth: int) -> QoSProfile:
    """Return the QoS that matches every publisher and never delays a new state to repeat an old one."""
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def nanoseconds(header: Header) -> int:
    """Return the stamp as one number; 0: the message has none."""
    return header.stamp.sec * 10**9 + header.stamp.nanosec


class JointOrder:
    """Picks fields of joint states in a fixed joint order; the look-up is redone only when the names change."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = list(joint_names)
        self._joints = frozenset(joint_names)
        self._names: list[str] | None = None
        self._index: list[int] = []

    def concerns(self, message: JointState) -> bool:
        """Whether a message names a joint of this arm; those of a gripper come on the same topic."""
        return not self._joints.isdisjoint(message.name)

    def pick(self, message: JointState, field: str) -> list[float]:
        """Values of `field` (position, velocity or effort) in joint order; rad, rad/s, N m as the driver publishes.

        Raises:
            DynidError: a joint is missing or listed twice, the field is empty or short, or a value is not finite.
        """
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
        counts = Counter(names)
        missing = [name for name in self.joint_names if not counts[name]]
        if missing:
            raise DynidError(f"joint_states lacks joint(s) {', '.join(missing)}; it names {', '.join(names) or 'none'}")
        twice = [name for name in self.joint_names if counts[name] > 1]
        if twice:
            raise DynidError(f"joint_states names joint(s) {', '.join(twice)} more than once")
        self._index = [names.index(name) for name in self.joint_names]
        self._names = names


class TorqueSamples:
    """Takes positions and torques out of joint states; times are in s since the first one.

    A clock that is set back is left out: time goes on, or begins anew.

    Args:
        node: its log reports a clock that was set back.
        joint_names: of the arm.
        convention: what effort is.
        anew: whether time begins anew where the clock was set back.

    Attributes:
        received: when a joint state of this arm came last, or was begun to be waited for, s of the monotonic clock.
        problem: what is wrong with the last one; empty: nothing.
        refused: number of joint states that were of no use.
        start: stamp of time 0, ns; None: none has come.
        was_set_back: whether the clock was set back before the last sample.
    """

    def __init__(
        self, node: Node, joint_names: Sequence[str], convention: EffortConvention, *, anew: bool = False
    ) -> None:
        self.received = time.monotonic()
        self.problem, self.refused = "", 0
        self.start: int | None = None
        self.was_set_back = False
        self._node, self._order, self._convention = node, JointOrder(joint_names), convention
        self._last, self._anew = -math.inf, anew
        convention.to_torque(np.zeros((1, len(joint_names))))  # raises before the first joint state

    def of(self, message: JointState, received: int) -> tuple[float, list[float], NDArray] | None:
        """Return time, positions (n,) and torques (n,); None: it is no news of this arm, or of no use.

        Args:
            message: the joint state.
            received: time of reception, ns, which counts where it has no stamp.
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
        back = self._last - (stamp - self.start) * 1e-9
        self.was_set_back = back > SET_BACK
        if self.was_set_back:
            self._node.get_logger().warning(f"joint_states: its clock was set back by {back:.1f} s")
            self.start = stamp if self._anew else self.start - round(back * 1e9)
        elif back >= 0.0:
            return None  # the same state sent again, or an old one
        self._last = (stamp - self.start) * 1e-9
        return self._last, position, torque

    def refuse(self, problem: str) -> None:
        """Count the last joint state as one of no use."""
        self.refused += 1
        self.problem = problem

    def stamp(self, moment: float) -> float:
        """Return the stamp, s, of a time of these samples."""
        assert self.start is not None
        return (self.start + round(moment * 1e9)) / 1e9

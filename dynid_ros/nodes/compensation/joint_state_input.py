"""Joint states as `gravity_compensation` takes them: each once, and how long the gaps between them are."""

import time
from collections.abc import Callable, Sequence

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.nodes.shared.prompt_wait import PromptWait

QUEUE = 10
# Best effort matches every publisher and never delays a new state to repeat an old one. The queue is deeper than one
# only because a gripper's states, on the same topic, would otherwise push out the arm's.
JOINT_STATES = QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)


class JointStateInput:
    """Topic `joint_states` of one arm.

    Attributes:
        order: of its joints.
        stamp: of the last state, s of the driver's clock; None: it has none.
        heard: when the last one came, or when it began to be listened for, s of the monotonic clock.
        states: that came; may be set back.
        longest_gap: between two that came, s.

    """

    def __init__(self, node: Node, joint_names: Sequence[str], on_message: Callable[[JointState], None]) -> None:
        self.order = JointOrder(joint_names)
        self.stamp: float | None = None
        self.heard = time.monotonic()
        self.states = 0
        self.longest_gap = 0.0
        self._node = node
        self._joints = frozenset(joint_names)
        self._message: JointState | None = None
        self._subscription = node.create_subscription(JointState, "joint_states", on_message, JOINT_STATES)
        self._comes = PromptWait(node, self._subscription)

    @property
    def topic(self) -> str:
        """Full name."""
        return self._subscription.topic_name

    def wait(self, seconds: float) -> bool:
        """Whether there is a state; waits for one at most so long."""
        return self._comes(seconds)

    def wake(self) -> None:
        """End a wait that is under way, from another thread."""
        self._comes.wake()

    def waiting(self, message: JointState | None) -> list[JointState]:
        """Queued states that speak of this arm, `message` the first of them, the newest last."""
        states = []
        for _ in range(QUEUE + 1):
            if message is not None and not self._joints.isdisjoint(message.name):
                states.append(message)
            with self._subscription.handle:
                taken = self._subscription.handle.take_message(JointState, False)
            if taken is None:
                break
            message = taken[0]
        return states

    def is_news(self, message: JointState, now: float) -> bool:
        """Whether it tells something of the arm; the same state sent again does not."""
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec or None
        if stamp is not None and stamp == self.stamp:
            return False
        if self._message is not None:
            self.longest_gap = max(self.longest_gap, now - self.heard)
        self.stamp, self._message, self.heard = stamp, message, now
        self.states += 1
        return True

    def effort(self) -> list[float]:
        """Efforts (n,) of the last state, N m (N) where the driver means torques; raises as `JointOrder.pick` does."""
        if self._message is None:
            raise ControlError("no joint state has arrived yet")
        return self.order.pick(self._message, "effort")

    def destroy(self) -> None:
        """Remove the topic from the node."""
        self._node.destroy_subscription(self._subscription)

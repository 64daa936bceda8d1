"""The hand that pushes the simulated arm: a topic, and what its messages mean."""

from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter, current
from dynid_ros.simulation import SimulatedArm

PUSH_PARAMETERS = (
    NodeParameter("push_link", "", "link that ~/push pushes, at its frame's origin; empty: tip_link", adjustable=True),
    NodeParameter("push_duration", 0.2, "s for which a message on ~/push acts unless another follows", adjustable=True),
)


class SimulatorPush:
    """Lets `geometry_msgs/WrenchStamped` on `~/push` act on an arm; `frame_id` names the axes, empty: the base link's.

    Args:
        node: listens; has declared `PUSH_PARAMETERS`.
        arm: that is pushed.
        refused: told why a message is not acted on.

    """

    def __init__(self, node: Node, arm: SimulatedArm, refused: Callable[[str], None]) -> None:
        self._node = node
        self._arm = arm
        self._refused = refused
        node.create_subscription(WrenchStamped, "~/push", self._on_push, 10)

    def _on_push(self, message: WrenchStamped) -> None:
        settings = current(self._node, PUSH_PARAMETERS)
        vectors = (message.wrench.force, message.wrench.torque)
        wrench = [component for vector in vectors for component in (vector.x, vector.y, vector.z)]
        axes = message.header.frame_id.lstrip("/")
        try:
            self._arm.push(wrench, settings.push_link or None, axes or None, settings.push_duration)
        except DynidError as error:
            self._refused(f"push refused: {error}")

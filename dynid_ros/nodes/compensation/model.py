"""Where `gravity_compensation` has its model from: a file, and a URDF that may come on a topic."""

from collections.abc import Callable
from types import SimpleNamespace

from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String

from dynid_ros.control import JointSettings, LoadedGravity, ModelChange
from dynid_ros.errors import ControlError
from dynid_ros.nodes.compensation.parameters import feedforward
from dynid_ros.nodes.shared.robot_description import LATCHED, described, robot_description, robot_name


class CompensationModel:
    """Reads the model; a URDF that comes on the topic is kept, for a transition cannot wait for it.

    Args:
        node: listens.
        settings: values of its parameters.
        changed: called when another URDF has come.

    Attributes:
        robot: name of the robot whose model was read last; empty: none.

    """

    def __init__(self, node: LifecycleNode, settings: SimpleNamespace, changed: Callable[[], None]) -> None:
        self.robot = ""
        self._node = node
        self._settings = settings
        self._changed = changed
        self._description = ""
        if not settings.robot_description:
            node.create_subscription(String, "robot_description", self._on_description, LATCHED)

    @property
    def waits(self) -> bool:
        """Whether no URDF is there yet."""
        return not (self._settings.robot_description or self._description)

    def read(self) -> tuple[LoadedGravity, JointSettings, ModelChange]:
        """Gravity torque, the settings of its joints and what it is compared by.

        Raises as `feedforward` and `ModelChange` do, and without a URDF.
        """
        if self.waits:
            raise ControlError(
                "no URDF has arrived on the topic robot_description yet; start robot_state_publisher or set the "
                "parameter robot_description, then configure again"
            )
        if self._settings.robot_description:
            urdf = robot_description(self._node, self._settings.robot_description)
        else:
            urdf = described(self._description, "robot_description")
        self.robot = robot_name(urdf)
        gravity, joints = feedforward(self._settings, urdf)
        return gravity, joints, ModelChange(gravity.model, joints.torque, self._settings.max_model_change)

    def _on_description(self, message: String) -> None:
        changed = message.data != self._description
        self._description = message.data
        if changed:
            self._changed()

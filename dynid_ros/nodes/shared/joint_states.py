"""`sensor_msgs/JointState` to arrays in the model's joint order, matched by name."""

import math
from collections import Counter
from collections.abc import Sequence

from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError


class JointOrder:
    """Picks fields of joint states in a fixed joint order; the look-up is redone only when the names change."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = list(joint_names)
        self._names: list[str] | None = None
        self._index: list[int] = []

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

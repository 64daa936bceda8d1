"""Watches torque sensors while the arm works: joint states in, alarms out."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.identification.torque_sensors.sensor_drift import DriftAlarm
from dynid_ros.identification.torque_sensors.torque_sensor_observer import SampleStream, TorqueSensorObserver
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.recording.effort import EffortConvention

SHORTEST, LONGEST = 0.01, 3600.0
"""s between looks at what has arrived."""
SET_BACK = 1.0
"""s by which a stamp must be earlier than one before for the clock to have been set back."""


class TorqueSensorWatch:
    """Feeds an observer from `joint_states`; times are in s since the first joint state, a clock set back left out.

    Args:
        node: the node to subscribe with.
        observer: of the arm.
        convention: what effort is.
        settings: `slow_motion` and `observe_period` of the node's table.
        on_alarm: called with new alarms.

    Raises:
        DynidError: a period that makes no sense.

    """

    def __init__(
        self,
        node: Node,
        observer: TorqueSensorObserver,
        convention: EffortConvention,
        settings: SimpleNamespace,
        on_alarm: Callable[[list[DriftAlarm]], None],
    ) -> None:
        if not SHORTEST <= settings.observe_period <= LONGEST:
            raise DynidError(
                f"parameter observe_period is {settings.observe_period}; expected {SHORTEST:g} to {LONGEST:g} s"
            )
        self.observer = observer
        self._node, self._convention, self._on_alarm = node, convention, on_alarm
        self._order = JointOrder(observer.robot.joint_names)
        self._stream = SampleStream(observer.robot.joint_names, observer.rules, settings.slow_motion)
        self._start: float | None = None
        self._last = 0.0
        self._samples = 0
        self._problem = ""
        self._received = time.monotonic()
        self._subscription = node.create_subscription(
            JointState, "joint_states", self._on_joint_state, qos_profile_sensor_data
        )
        # simulated time may stand still
        node.create_timer(settings.observe_period, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def status(self) -> Status:
        """Level, message and values for diagnostics."""
        observer, names = self.observer, self.observer.robot.joint_names
        values: dict[str, object] = {"samples": self._samples}
        for name, gain, offset in zip(names, observer.gain, observer.offset, strict=True):
            values[f"gain {name}"] = f"{gain:.5g}" if np.isfinite(gain) else "not told yet"
            values[f"offset {name}"] = f"{offset:.4g}"
        if self._problem:
            return ERROR, self._problem, values
        if observer.alarms:
            return WARN, "; ".join(map(str, observer.alarms)), values
        if complaint := silence(self._subscription.topic_name, self._received):
            return WARN, complaint, values
        if not observer.learned:
            return OK, "learning the noise of the readings", values
        return OK, "no drift", values

    def document(self) -> dict:
        """Alarms and present estimates."""
        observer = self.observer
        std = observer.standard_errors
        estimates: dict[str, dict[str, object]] = {}
        for j, name in enumerate(observer.robot.joint_names):
            estimates[name] = {
                "gain": _number(observer.gain[j]),
                "offset": _number(observer.offset[j]),
                "std": {"gain": _number(std[j, 0]), "offset": _number(std[j, 1])},
            }
        return {
            "start_time": self._start,
            "false_alarm_rate": observer.false_alarm_rate,
            "alarms": [alarm.document() for alarm in observer.alarms],
            "torque_sensors": estimates,
        }

    def _on_joint_state(self, message: JointState) -> None:
        if set(message.name).isdisjoint(self._order.joint_names):
            return  # of another device on the same topic
        self._received = time.monotonic()
        try:
            position = self._order.pick(message, "position")
            effort = self._convention.to_torque(np.array([self._order.pick(message, "effort")]))[0]
        except DynidError as error:
            self._problem = str(error)
            return
        self._problem = ""
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec or time.time()
        if self._start is None:
            self._start = stamp
        back = self._last - (stamp - self._start)
        if back > SET_BACK:
            self._node.get_logger().warning(f"joint_states: its clock was set back by {back:.1f} s")
            self._start -= back
        self._last = stamp - self._start
        self._stream.add(self._last, position, effort)

    def _look(self) -> None:
        samples = self._stream.take()
        if samples is None:
            return
        self._samples += len(samples)
        raised = self.observer.update(samples)
        if raised:
            for alarm in raised:
                self._node.get_logger().warning(str(alarm))
            self._on_alarm(raised)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) and abs(value) < 1e5 else None

"""Node `external_torque`: external torque on each joint, and detection of contact.

The node answers each joint state, from `identified.yaml` of the links, the URDF and the load of the arm. It commands
nothing. `~/joint_torques` has the external torques, `~/thresholds` the magnitudes that indicate contact, and
`~/contact` is true while a torque exceeds its threshold. All three come with each good joint state only: a node that
acts on `~/contact` must take silence for *unknown*. `/diagnostics` names the joint in contact, and the duration.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from dynid_ros.control.contact import ContactMonitor, ExternalTorque, load_contact_monitor
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.process import run
from dynid_ros.nodes.shared.robot_description import (
    LOAD_TOPIC,
    ROBOT_PARAMETERS,
    JointOrder,
    LoadListener,
    TorqueSamples,
    newest_states,
    robot_description,
    with_group_ends,
)
from dynid_ros.recording.effort import EffortConvention

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml, written by the link identification"),
    NodeParameter("use_load", True, "include a load: that of model_file, and then that of load_topic"),
    LOAD_TOPIC,
    NodeParameter("effort_convention", "", "meaning of effort: torque or motor_current; required, see its manual"),
    NodeParameter(
        "motor_gains",
        [0.0],
        "torque per unit of effort for motor_current, N m, one per joint in the model's order; [0.0]: none",
    ),
    NodeParameter(
        "torque_sensors",
        "",
        "identified.yaml of the calibration that corrected the recordings of model_file; empty: no correction",
    ),
    NodeParameter(
        "bandwidth", 25.0, "bandwidth of the low-pass of external torques, rad/s; its delay is 1/bandwidth", above=0.0
    ),
    NodeParameter("false_alarms_per_hour", 1.0, "rate of false contacts of all joints together", above=0.0),
    NodeParameter(
        "contact_free_recording",
        "",
        "bag of typical work without contact, from which thresholds are calibrated; empty: from the model alone",
    ),
    NodeParameter(
        "torque_gain_error", 0.01, "standard deviation of the relative error of each joint's torque gain", least=0.0
    ),
)
QUEUE_DEPTH = 10


class ExternalTorqueNode(Node):
    """Node `external_torque`; see the module."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("external_torque", **arguments)
        settings = self.settings = declare(self, PARAMETERS)
        gains = [gain for gain in settings.motor_gains if gain] or None
        convention = EffortConvention(settings.effort_convention, gains)
        if not settings.model_file:
            raise ControlError("parameter model_file is empty; give the identified.yaml of this robot's links")
        urdf = robot_description(self, settings.robot_description)
        arm = with_group_ends(settings, urdf)
        self.monitor = load_contact_monitor(
            settings.model_file,
            urdf,
            arm.base_link or None,
            arm.tip_link or None,
            settings.gravity,
            held=held_positions([settings.held_joints]),
            use_load=settings.use_load,
            bandwidth=settings.bandwidth,
            false_alarms_per_hour=settings.false_alarms_per_hour,
            gain_error=settings.torque_gain_error,
        )
        names = self.monitor.joint_names
        self._samples = TorqueSamples(self, names, convention, anew=True)
        self._order = JointOrder(names)
        self._sensors = TorqueSensors.ideal(names)
        if settings.torque_sensors:
            document = load_identified(settings.torque_sensors)
            self._sensors = TorqueSensors.of_document(document, self.monitor.observer.robot)
        if settings.contact_free_recording:
            self._calibrate(convention)
        self._latest: ExternalTorque | None = None
        self._alarms = 0
        self._since = 0.0
        self._torques = self.create_publisher(JointState, "~/joint_torques", QUEUE_DEPTH)
        self._thresholds = self.create_publisher(JointState, "~/thresholds", QUEUE_DEPTH)
        self._contact = self.create_publisher(Bool, "~/contact", QUEUE_DEPTH)
        load_topic = settings.load_topic if settings.use_load else ""
        self.load = LoadListener(self, load_topic, self.monitor.carry, lambda: self.monitor.load)
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, newest_states(QUEUE_DEPTH))
        Diagnostics(self, self.status, hardware=self.monitor.robot.name)

    def status(self) -> Status:
        """Return the external torques, and a fault or contact."""
        latest = self._latest
        values: dict[str, object] = {
            "model_file": self.settings.model_file,
            "load": self.monitor.load or "none",
            "thresholds": "calibrated by a recording" if self.monitor.calibrated else "by the model alone",
            "alarms": self._alarms,
            "refused joint states": self._samples.refused,
        }
        if latest is not None:
            values |= {
                f"external torque {name}": f"{torque:.3g} (contact above {threshold:.3g})"
                for name, torque, threshold in zip(
                    self.monitor.joint_names, latest.torque, latest.threshold, strict=True
                )
            }
        if self._samples.problem:
            return ERROR, f"contact is not known: {self._samples.problem}", values
        if warning := silence(self._states.topic_name, self._samples.received):
            return ERROR, f"contact is not known: {warning}", values
        if self.load.problem:
            return WARN, self.load.problem, values
        if latest is None:
            return OK, "waiting for joint states", values
        if latest.contact:
            return WARN, f"contact at {', '.join(latest.contact)} for {time.monotonic() - self._since:.1f} s", values
        return OK, "no contact", values

    def _calibrate(self, convention: EffortConvention) -> None:
        from dynid_ros.recording import Recording  # noqa: PLC0415 - readers of files are rarely needed

        path = self.settings.contact_free_recording
        recording = self._sensors.correct(
            Recording.read(path, joint_names=self.monitor.joint_names, effort_convention=convention)
        )
        duration = recording.time[-1] - recording.time[0]
        self.get_logger().info(f"The thresholds are calibrated from {duration:.0f} s of {path}.")
        speed = recording.velocity
        self.monitor.calibrate(
            recording.time, recording.position, speed if np.isfinite(speed).all() else None, recording.torque
        )

    def _on_state(self, message: JointState) -> None:
        before = self._latest
        latest = external_torque_of(self._samples, self._order, self.monitor, message, self._sensors)
        if latest is None:
            return
        self._latest = latest
        if latest.contact and not (before and before.contact):
            self._alarms += 1
            self._since = time.monotonic()
            self.get_logger().warning(f"There is contact at {', '.join(latest.contact)}.", throttle_duration_sec=1.0)
        names = list(self.monitor.joint_names)
        self._torques.publish(JointState(header=message.header, name=names, effort=latest.torque))
        self._thresholds.publish(JointState(header=message.header, name=names, effort=latest.threshold))
        self._contact.publish(Bool(data=bool(latest.contact)))


def external_torque_of(
    samples: TorqueSamples, order: JointOrder, monitor: ContactMonitor, message: JointState, sensors: TorqueSensors
) -> ExternalTorque | None:
    """Return the external torque of a joint state; None for a repeated, foreign or unusable one."""
    sample = samples.take(message, time.time_ns())
    if sample is None:
        return None
    if samples.was_set_back:
        monitor.restart()
    try:
        velocity = (sensors.position_gain * order.pick(message, "velocity")).tolist()
    except DynidError:
        velocity = None  # the monitor differentiates positions
    moment, position, torque = sample
    position = (sensors.position_gain * position + sensors.position_offset).tolist()
    try:
        return monitor.update(moment, position, velocity, sensors.torque(torque).tolist())
    except ControlError as error:
        samples.refuse(str(error))
        return None


main = partial(run, ExternalTorqueNode)

"""Node `external_torque`: what torque something outside exerts on each joint, and whether something touches the arm.

One answer for each joint state, from `identified.yaml` of the links, the URDF and the load that the arm carries. It
commands nothing. `~/joint_torques` are the external torques, `~/thresholds` what they exceed at contact, `~/contact` is
true while they do. All three come with each good joint state, and only then: who acts on `~/contact` must take its
silence for *not known*. Which joint it is, and since when, is on `/diagnostics`.
"""

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from dynid_ros.control.contact import ContactMonitor, ExternalTorque, load_contact_monitor
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.compensation.inputs import LOAD_TOPIC, Listener, published_load
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.joint_states import JointOrder, TorqueSamples, newest_states
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.process import run
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS, robot_description, with_group_ends
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.recording.effort import EffortConvention

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml, written by the link identification"),
    NodeParameter("use_load", True, "count with a load: that of model_file, and what load_topic says"),
    LOAD_TOPIC,
    NodeParameter("effort_convention", "", "what effort is: torque or motor_current; required, see its manual"),
    NodeParameter(
        "motor_gains",
        [0.0],
        "for motor_current: N m per unit of effort, one per joint in the model's order; [0.0]: none",
    ),
    NodeParameter(
        "torque_sensors",
        "",
        "identified.yaml of a calibration of the torque sensors, by which the recordings of model_file were corrected; "
        "empty: they were not",
    ),
    NodeParameter("bandwidth", 25.0, "rad/s of the low-pass of external torques; 1/bandwidth: its delay", above=0.0),
    NodeParameter("false_alarms_per_hour", 1.0, "of contact, all joints together", above=0.0),
    NodeParameter(
        "contact_free_recording",
        "",
        "bag of such work as it will watch, in which nothing touched the arm, by which thresholds are calibrated; "
        "empty: by the model alone",
    ),
    NodeParameter(
        "torque_gain_error", 0.01, "standard deviation of the relative error of each joint's torque gain", least=0.0
    ),
)
QUEUE = 10


class LoadInput(Listener):
    """Keeps a monitor supplied with the load that was published last; one that cannot be meant is refused."""

    def __init__(self, node: Node, topic: str, monitor: ContactMonitor) -> None:
        super().__init__(node, InertiaStamped, topic, self._on_message, LATCHED)
        self._monitor = monitor
        self._stamp = 0

    def _on_message(self, message: InertiaStamped) -> None:
        try:
            load, stamp = published_load(self._node, message, self._stamp)
            self._monitor.carry(load)
        except ControlError as error:
            self._refuse(f"a load was refused, the one in force stays ({self._monitor.load or 'none'}): {error}")
            return
        self.problem, self._stamp = "", stamp or self._stamp
        self._node.get_logger().info(f"load in force: {load}")


class ExternalTorqueNode(Node):
    """The node; see the module."""

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
        sensors = settings.torque_sensors
        self._sensors = (
            TorqueSensors.of_document(load_identified(sensors), self.monitor.observer.robot)
            if sensors
            else TorqueSensors.ideal(names)
        )
        if settings.contact_free_recording:
            self._calibrate(convention)
        self._found: ExternalTorque | None = None
        self._alarms, self._since = 0, 0.0
        self._torques = self.create_publisher(JointState, "~/joint_torques", QUEUE)
        self._thresholds = self.create_publisher(JointState, "~/thresholds", QUEUE)
        self._contact = self.create_publisher(Bool, "~/contact", QUEUE)
        self.load = LoadInput(self, settings.load_topic if settings.use_load else "", self.monitor)
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, newest_states(QUEUE))
        Diagnostics(self, self.status, hardware=self.monitor.robot.name)

    def status(self) -> Status:
        """External torques, and what is wrong."""
        found, names = self._found, self.monitor.joint_names
        values: dict[str, object] = {
            "model_file": self.settings.model_file,
            "load": self.monitor.load or "none",
            "thresholds": "calibrated by a recording" if self.monitor.calibrated else "by the model alone",
            "alarms": self._alarms,
            "refused joint states": self._samples.refused,
        }
        if found is not None:
            values |= {
                f"external torque {name}": f"{torque:.3g} (contact above {threshold:.3g})"
                for name, torque, threshold in zip(names, found.torque, found.threshold, strict=True)
            }
        if self._samples.problem:
            return ERROR, f"contact is not known: {self._samples.problem}", values
        if warning := silence(self._states.topic_name, self._samples.received):
            return ERROR, f"contact is not known: {warning}", values
        if self.load.problem:
            return WARN, self.load.problem, values
        if found is None:
            return OK, "waiting for joint states", values
        if found.contact:
            return WARN, f"contact at {', '.join(found.contact)} for {time.monotonic() - self._since:.1f} s", values
        return OK, "no contact", values

    def _calibrate(self, convention: EffortConvention) -> None:
        from dynid_ros.recording import Recording  # noqa: PLC0415 - readers of files, for who has one alone

        path = self.settings.contact_free_recording
        recording = self._sensors.correct(
            Recording.read(path, joint_names=self.monitor.joint_names, effort_convention=convention)
        )
        self.get_logger().info(f"calibrating thresholds by {path}, {recording.time[-1] - recording.time[0]:.0f} s")
        speed = recording.velocity
        self.monitor.calibrate(
            recording.time, recording.position, speed if np.isfinite(speed).all() else None, recording.torque
        )

    def _on_state(self, message: JointState) -> None:
        before = self._found
        found = external_torque_of(self._samples, self._order, self.monitor, message, self._sensors)
        if found is None:
            return
        self._found = found
        if found.contact and not (before and before.contact):
            self._alarms, self._since = self._alarms + 1, time.monotonic()
            self.get_logger().warning(f"contact at {', '.join(found.contact)}", throttle_duration_sec=1.0)
        names = list(self.monitor.joint_names)
        self._torques.publish(JointState(header=message.header, name=names, effort=found.torque))
        self._thresholds.publish(JointState(header=message.header, name=names, effort=found.threshold))
        self._contact.publish(Bool(data=bool(found.contact)))


def external_torque_of(
    samples: TorqueSamples,
    order: JointOrder,
    monitor: ContactMonitor,
    message: JointState,
    sensors: TorqueSensors,
) -> ExternalTorque | None:
    """What a joint state says; None: it is no news of this arm, or of no use, which `samples` then says."""
    sample = samples.take(message, time.time_ns())
    if sample is None:
        return None
    if samples.was_set_back:
        monitor.restart()
    try:
        velocity = (sensors.position_gain * order.pick(message, "velocity")).tolist()
    except DynidError:
        velocity = None  # differentiated
    moment, position, torque = sample
    position = (sensors.position_gain * position + sensors.position_offset).tolist()
    try:
        return monitor.update(moment, position, velocity, sensors.torque(torque).tolist())
    except ControlError as error:
        samples.refuse(str(error))
        return None


def main() -> None:
    """Run the node."""
    run(ExternalTorqueNode)


if __name__ == "__main__":
    main()

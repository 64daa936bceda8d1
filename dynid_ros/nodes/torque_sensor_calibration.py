"""Node that calibrates torque sensors from recordings, and watches them while the arm works.

`~/identify` in, `~/result` and files out, as of all nodes that identify. With `observe` it compares the
torques of `joint_states` with those of known gravity: drift goes to `/diagnostics` and `~/result`; `~/accept` takes the
present estimates for the reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.identification.torque_sensors.sensor_drift import DriftAlarm
from dynid_ros.identification.torque_sensors.torque_sensor_observer import SampleStream, TorqueSensorObserver
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.identification import Job, identify_torque_sensors, read_gravity
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.joint_states import TorqueSamples
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of, setting_arguments
from dynid_ros.nodes.shared.process import answer, run
from dynid_ros.nodes.shared.steady_thread import steady_timer
from dynid_ros.nodes.shared.topics import brief_yaml
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.settings import settings_of

# Watches torque sensors while the arm works: joint states in, alarms out.


SHORTEST, LONGEST = 0.01, 3600.0
"""s between looks at what has arrived."""


class TorqueSensorWatch:
    """Feeds an observer from `joint_states`; times are in s since the first joint state, a clock set back left out.

    `on_alarm` is called with new alarms.

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
        self._node, self._on_alarm = node, on_alarm
        self._states = TorqueSamples(node, observer.robot.joint_names, convention)
        self._stream = SampleStream(observer.robot.joint_names, observer.rules, settings.slow_motion)
        self._samples = 0
        self._subscription = node.create_subscription(
            JointState, "joint_states", self._on_joint_state, qos_profile_sensor_data
        )
        steady_timer(node, settings.observe_period, self._look)

    def status(self) -> Status:
        """Level, message and values for diagnostics."""
        observer, names = self.observer, self.observer.robot.joint_names
        values: dict[str, object] = {"samples": self._samples}
        for name, gain, offset in zip(names, observer.gain, observer.offset, strict=True):
            values[f"gain {name}"] = f"{gain:.5g}" if np.isfinite(gain) else "not determined yet"
            values[f"offset {name}"] = f"{offset:.4g}"
        if self._states.problem:
            return ERROR, self._states.problem, values
        if observer.alarms:
            return WARN, "; ".join(map(str, observer.alarms)), values
        if warning := silence(self._subscription.topic_name, self._states.received):
            return WARN, warning, values
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
            "start_time": None if self._states.start is None else self._states.stamp(0.0),
            "false_alarm_rate": observer.false_alarm_rate,
            "alarms": [alarm.document() for alarm in observer.alarms],
            "torque_sensors": estimates,
        }

    def _on_joint_state(self, message: JointState) -> None:
        sample = self._states.take(message, time.time_ns())
        if sample is not None:
            self._stream.add(*sample)

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


SETTINGS, RULES = settings_of(TorqueSensorCalibration), settings_of(SampleRules)
PARAMETERS = (
    *(parameter for parameter in RECORDING_PARAMETERS if parameter.name != "validation_recording"),
    NodeParameter(
        "recording_with_mass", "", "the same motion with the reference mass attached; empty: none", adjustable=True
    ),
    NodeParameter(
        "model_file",
        "",
        "identified.yaml whose gravity parameters are known; with it no mass is needed; empty: estimated",
    ),
    *parameters_of(SETTINGS),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
    NodeParameter(
        "observe", False, "watch the sensors on joint_states while the arm works, against the gravity of model_file"
    ),
    NodeParameter("slow_motion", False, "watch in slow motion too, not in dwells alone"),
    *parameters_of(RULES),
    NodeParameter("observe_period", 2.0, "time between looks at what has arrived, s"),
    NodeParameter(
        "learning", 30, "samples (dwells) of each joint from which its noise is learned before drift is looked for"
    ),
    NodeParameter("memory", 200.0, "samples after which old ones have faded to 1/e in the present estimates"),
    NodeParameter(
        "false_alarm_rate",
        1e-4,
        "largest chance that a sample gives a false alarm of any joint; 1e-4: one in at least ten thousand dwells",
    ),
)


def calibration_job(robot: RobotModel, settings: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe; its third argument are the recordings with mass.

    Raises:
        DynidError: a setting that makes no sense.
    """
    known = read_gravity(Path(settings.model_file), robot) if settings.model_file else (None, None)
    currents = _reads_currents(settings)
    calibration = TorqueSensorCalibration(
        robot, gravity=known[0], currents=currents, **setting_arguments(SETTINGS, settings)
    )
    return partial(_identify, calibration, known[1])


def _reads_currents(settings: SimpleNamespace) -> bool:
    """Whether the motors' torque constants are what is wanted."""
    return settings.effort_convention == "motor_current" and not any(settings.motor_gains)


def _identify(
    calibration: TorqueSensorCalibration,
    arm: dict | None,
    plain: Sequence[Recording],
    output: str,
    loaded: Sequence[Recording],
) -> Job:
    return identify_torque_sensors(calibration, plain, output, loaded, arm)


class TorqueSensorCalibrationNode(IdentificationNode):
    """Gains and offsets of torque sensors."""

    def __init__(self) -> None:
        super().__init__("torque_sensor_calibration", PARAMETERS, calibration_job)
        if self.settings.observe:
            self.watch = TorqueSensorWatch(self, self._observer(), self.convention, self.settings, self._tell)
            self.create_service(Trigger, "~/accept", answer(self, self.accept))
            Diagnostics(self, self.watch.status, "drift", self.robot.name)

    def _convention(self) -> EffortConvention:
        return (
            EffortConvention("motor_current", readings=True)
            if _reads_currents(self.settings)
            else super()._convention()
        )

    def accept(self) -> str:
        """Take the present estimates for the reference and end all alarms."""
        sensors = self.watch.observer.accept()
        self._tell([])
        gains = ", ".join(f"{name} {gain:.5g}" for name, gain in zip(sensors.joint_names, sensors.gain, strict=True))
        return f"the reference gains are now {gains}"

    def _identify(self) -> Job:
        chosen = self.chosen()
        loaded = [chosen.recording_with_mass] if chosen.recording_with_mass else []
        plain = chosen.recording or ("" if loaded and self.settings.model_file else self.bag)
        if not plain and not loaded:
            raise DynidError(
                "No recording: set parameter 'recording', or record with the recorder "
                f"(nothing on {self.settings.bag_topic} yet)"
            )
        if plain in loaded:
            raise DynidError(
                f"{plain} is to be without and with the reference mass; set parameter 'recording' to the one without"
            )
        paths = [path for path in (plain, *chosen.more_recordings) if path]
        return self._job(
            [self._read(path) for path in paths], self.settings.output, [self._read(path) for path in loaded]
        )

    def _observer(self) -> TorqueSensorObserver:
        settings = self.settings
        if not settings.model_file:
            raise DynidError("parameter observe needs model_file: an identified.yaml with the arm's gravity parameters")
        gravity, document = read_gravity(Path(settings.model_file), self.robot)
        sensors, std = None, None
        if "torque_sensors" in document:
            sensors = TorqueSensors.of_document(document, self.robot)
            std = TorqueSensors.errors_of(document, self.robot)
        return TorqueSensorObserver(
            self.robot,
            gravity,
            sensors,
            reference_std=std,
            rules=SampleRules(**setting_arguments(RULES, settings)),
            learning=settings.learning,
            memory=settings.memory,
            false_alarm_rate=settings.false_alarm_rate,
        )

    def _tell(self, _alarms: list[DriftAlarm]) -> None:
        self.result.publish(String(data=brief_yaml(self.watch.document())))


def main() -> None:
    """Run the node."""
    run(TorqueSensorCalibrationNode)


if __name__ == "__main__":
    main()

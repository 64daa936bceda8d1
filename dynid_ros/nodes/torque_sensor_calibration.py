"""Node that calibrates torque sensors from recordings, and watches them while the arm works.

`~/identify` writes `~/result` and files, like all identification nodes. With `observe` the node compares the torques of
`joint_states` with known gravity and reports drift on `/diagnostics` and `~/result`; `~/accept` makes the present
estimates the reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.identification.torque_sensors.torque_sensor_observer import SampleStream, TorqueSensorObserver
from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of, setting_arguments
from dynid_ros.nodes.shared.process import answer, run, steady_timer
from dynid_ros.nodes.shared.robot_description import TorqueSamples
from dynid_ros.nodes.shared.topics import brief_yaml
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.settings import settings_of


def read_gravity(path: Path, robot: RobotModel) -> tuple[KnownGravity, dict]:
    """Read gravity parameters of an `identified.yaml` with their uncertainty, and the content of the file.

    Raises:
        IdentifiedFileError: unreadable, of another robot, or without gravity parameters of all joints.
    """
    document = load_identified(path)
    check_same_robot(document, robot)
    return KnownGravity.of_document(document, robot), document


@dataclass
class CalibrationRun:
    """Estimator of torque-sensor gains and offsets for `run`.

    Attributes:
        calibration: settings of the fit, with the gravity that is known.
        arm: content of the `identified.yaml` that the sensors are added to; None: the file holds the sensors alone.
    """

    robot: RobotModel
    calibration: TorqueSensorCalibration
    arm: dict | None = None

    @classmethod
    def build(
        cls,
        robot: RobotModel,
        values: Mapping[str, Any],
        *,
        model: Path | None = None,
        known_masses: bool = False,
        currents: bool = False,
    ) -> CalibrationRun:
        """Return the estimator with values of the settings of `TorqueSensorCalibration`.

        Args:
            robot: the arm.
            values: values by name.
            model: `identified.yaml` with known gravity parameters.
            known_masses: take the gravity parameters of the URDF as known.
            currents: the readings are motor currents, whose gains are the motors' torque constants at the joints.
        """
        gravity, arm = (None, None) if model is None else read_gravity(model, robot)
        if known_masses:
            gravity = KnownGravity.of_urdf(robot)
        return cls(robot, TorqueSensorCalibration(robot, gravity=gravity, currents=currents, **values), arm)

    def fit(self, recordings: Sequence[Recording], with_mass: Sequence[Recording] = ()) -> TorqueSensorResult:
        """Calibrate from dwells without and with the reference mass."""
        return replace(self.calibration.fit(recordings, with_mass), arm=self.arm)


MAX_REPORTED_VALUE = 1e5
"""Largest gain, offset or standard deviation that is determined well enough to be reported."""


class TorqueSensorWatch:
    """Observer of the torque sensors that is fed from `joint_states`."""

    def __init__(
        self,
        node: Node,
        observer: TorqueSensorObserver,
        convention: EffortConvention,
        settings: SimpleNamespace,
        on_alarm: Callable[[], None],
    ) -> None:
        self.observer = observer
        self._node = node
        self._on_alarm = on_alarm
        self._states = TorqueSamples(node, observer.robot.joint_names, convention)
        self._stream = SampleStream(observer.robot.joint_names, observer.rules, settings.slow_motion)
        self._samples = 0
        self._subscription = node.create_subscription(
            JointState, "joint_states", self._on_joint_state, qos_profile_sensor_data
        )
        steady_timer(node, settings.observe_period, self._look)

    def status(self) -> Status:
        """Return gains, offsets and alarms for diagnostics."""
        observer = self.observer
        names = observer.robot.joint_names
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
        """Return alarms and present estimates."""
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
            self._on_alarm()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) and abs(value) < MAX_REPORTED_VALUE else None


SAMPLE_RULES = settings_of(SampleRules)
PARAMETERS = (
    *parameters_of_kind("torque-sensors"),
    NodeParameter(
        "observe", False, "watch the sensors on joint_states while the arm works, against the gravity of model_file"
    ),
    NodeParameter("slow_motion", False, "watch during slow motion as well as during dwells"),
    *parameters_of(SAMPLE_RULES),
    NodeParameter("observe_period", 2.0, "time between two updates of the observer, s", least=0.01, most=3600.0),
    NodeParameter("learning", 30, "samples (dwells) of each joint for learning its noise, before drift is detected"),
    NodeParameter("memory", 200.0, "number of samples after which the weight of an old sample has decayed to 1/e"),
    NodeParameter(
        "false_alarm_rate",
        1e-4,
        "largest probability of a false alarm of any joint per sample; 1e-4: one in at least ten thousand dwells",
    ),
)


class TorqueSensorCalibrationNode(IdentificationNode):
    """Node that estimates gains and offsets of torque sensors."""

    def __init__(self) -> None:
        super().__init__("torque_sensor_calibration", "torque-sensors", PARAMETERS)
        if self.settings.observe:
            self.watch = TorqueSensorWatch(
                self, self._observer(), self.convention, self.settings, self._publish_estimates
            )
            self.create_service(Trigger, "~/accept", answer(self, self.accept))
            Diagnostics(self, self.watch.status, "drift", self.robot.name)

    @property
    def _reads_currents(self) -> bool:
        """Whether the torque constants of the motors are estimated."""
        return self.settings.effort_convention == "motor_current" and not any(self.settings.motor_gains)

    def _estimator(self) -> Any:
        inputs = {**self._files(), "currents": self._reads_currents}
        return KINDS[self.kind].build(self.robot, self._values(), **inputs)

    def _convention(self) -> EffortConvention:
        return EffortConvention("motor_current", readings=True) if self._reads_currents else super()._convention()

    def accept(self) -> str:
        """Make the present estimates the reference, end all alarms, and return the gains."""
        sensors = self.watch.observer.accept()
        self._publish_estimates()
        gains = ", ".join(f"{name} {gain:.5g}" for name, gain in zip(sensors.joint_names, sensors.gain, strict=True))
        return f"The reference gains are now {gains}."

    def _fitted(self, chosen: SimpleNamespace) -> list[str]:
        """Return the recordings without the mass; with known gravity, a recording with the mass may suffice."""
        loaded = chosen.recording_with_mass
        if loaded and self.settings.model_file and not chosen.recording:
            return list(filter(None, chosen.more_recordings))
        paths = super()._fitted(chosen)
        if paths[0] == loaded:
            raise DynidError(
                f"{loaded} is given with and without the reference mass; set parameter 'recording' to the one without"
            )
        return paths

    def _observer(self) -> TorqueSensorObserver:
        settings = self.settings
        if not settings.model_file:
            raise DynidError("parameter observe needs model_file: an identified.yaml with the arm's gravity parameters")
        gravity, document = read_gravity(Path(settings.model_file), self.robot)
        sensors = None
        std = None
        if "torque_sensors" in document:
            sensors = TorqueSensors.of_document(document, self.robot)
            std = TorqueSensors.errors_of(document, self.robot)
        return TorqueSensorObserver(
            self.robot,
            gravity,
            sensors,
            reference_std=std,
            rules=SampleRules(**setting_arguments(SAMPLE_RULES, settings)),
            learning=settings.learning,
            memory=settings.memory,
            false_alarm_rate=settings.false_alarm_rate,
        )

    def _publish_estimates(self) -> None:
        self.result.publish(String(data=brief_yaml(self.watch.document())))


main = partial(run, TorqueSensorCalibrationNode)

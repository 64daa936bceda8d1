"""Node that calibrates torque sensors from recordings, and watches them while the arm works.

`~/identify` in, `~/result` (latched YAML) and files out, as of all nodes that identify. With `observe` it compares the
torques of `joint_states` with those of known gravity: drift goes to `/diagnostics` and `~/result`; `~/accept` takes the
present estimates for the reference.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import yaml
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.torque_sensors.refusals import GAIN_RANGE
from dynid_ros.identification.torque_sensors.sensor_drift import DriftAlarm
from dynid_ros.identification.torque_sensors.torque_sensor_observer import TorqueSensorObserver
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.identification import TorqueSensorJob, identify_torque_sensors, read_gravity
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identifying.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify, Job
from dynid_ros.nodes.identifying.torque_sensor_watch import TorqueSensorWatch
from dynid_ros.nodes.shared.diagnostics import Diagnostics
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.running import answer, run
from dynid_ros.recording import Recording

PARAMETERS = (
    *(parameter for parameter in RECORDING_PARAMETERS if parameter.name != "validation_recording"),
    NodeParameter("recording_with_mass", "", "the same with the reference mass attached; empty: none", adjustable=True),
    NodeParameter("reference_mass", math.nan, "weight of what is attached, kg; nan: nothing is"),
    NodeParameter("reference_center", [math.nan] * 3, "its centre in the tip link's frame, m; nan: estimated"),
    NodeParameter("model_file", "", "identified.yaml whose gravity parameters are known; empty: estimated"),
    NodeParameter("estimate_positions", False, "gains and offsets of the position sensors are unknown too"),
    NodeParameter("gain_range", list(GAIN_RANGE), "lowest and highest gain that a sensor may have; others are refused"),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
    NodeParameter("observe", False, "watch the sensors on joint_states; needs model_file"),
    NodeParameter("slow_motion", False, "watch in slow motion too, not at rest alone"),
    NodeParameter("observe_period", 2.0, "time between looks at what has arrived, s"),
    NodeParameter("learning", 30, "samples of each joint from which its noise is learned"),
    NodeParameter("memory", 200.0, "samples after which old ones have faded to 1/e"),
    NodeParameter("false_alarm_rate", 1e-4, "largest chance that a sample gives a false alarm"),
)


def calibration_job(robot: RobotModel, settings: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe; its third argument are the recordings with mass.

    Raises:
        DynidError: a setting that makes no sense.

    """
    center = settings.reference_center
    known = read_gravity(Path(settings.model_file), robot) if settings.model_file else (None, None)
    calibration = TorqueSensorCalibration(
        robot,
        reference_mass=None if math.isnan(settings.reference_mass) else settings.reference_mass,
        reference_center=None if all(map(math.isnan, center)) else center,
        gravity=known[0],
        estimate_positions=settings.estimate_positions,
        gain_range=tuple(settings.gain_range),
    )
    return partial(_identify, calibration, known[1])


def _identify(
    calibration: TorqueSensorCalibration,
    arm: dict | None,
    plain: Sequence[Recording],
    output: str,
    loaded: Sequence[Recording],
) -> TorqueSensorJob:
    return identify_torque_sensors(calibration, plain, output, loaded, arm)


class TorqueSensorCalibrationNode(IdentificationNode):
    """Gains and offsets of torque sensors."""

    def __init__(self) -> None:
        super().__init__("torque_sensor_calibration", PARAMETERS, calibration_job)
        if self.settings.observe:
            self.watch = TorqueSensorWatch(self, self._observer(), self.convention, self.settings, self._tell)
            self.create_service(Trigger, "~/accept", answer(self, self.accept))
            Diagnostics(self, self.watch.status, "drift", self.robot.name)

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
        return self._job(
            [self._read(path) for path in [plain] if path], self.settings.output, [self._read(path) for path in loaded]
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
            learning=settings.learning,
            memory=settings.memory,
            false_alarm_rate=settings.false_alarm_rate,
        )

    def _tell(self, _alarms: list[DriftAlarm]) -> None:
        self.result.publish(String(data=yaml.safe_dump(self.watch.document(), sort_keys=False)))


def main() -> None:
    """Run the node."""
    run(TorqueSensorCalibrationNode)


if __name__ == "__main__":
    main()

"""Node that weighs what an arm carries.

`~/identify` in, `~/result` and files out, as of all nodes that identify; the latched topic `load` has
the load too. With `live` it is learnt from `joint_states` while the arm moves, and published once it is determined.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from dynid_ros.errors import DynidError
from dynid_ros.identification import LoadIdentification
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.jobs.identification import Job
from dynid_ros.jobs.load import LoadSettings, identify_load, read_arm, read_tare
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.identification.live_load import HIGHEST_RATE, LiveLoad, LoadPublisher
from dynid_ros.nodes.shared.diagnostics import Diagnostics
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of, setting_arguments
from dynid_ros.nodes.shared.process import run
from dynid_ros.nodes.shared.robot_description import NONE
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import COMPENSATED, EffortConvention
from dynid_ros.settings import settings_of

SETTINGS = settings_of(LoadSettings)

PARAMETERS = (
    *(parameter for parameter in RECORDING_PARAMETERS if parameter.name != "validation_recording"),
    NodeParameter(
        "unloaded_recording", "", "the arm without the load, in motion, where there is no model_file", adjustable=True
    ),
    NodeParameter(
        "model_file",
        "",
        "identified.yaml that a link identification wrote of the arm without the load; read when it is wanted",
    ),
    *parameters_of(SETTINGS),
    NodeParameter("tare_file", "", "identified.yaml of a load that is part of this one, to subtract; empty: none"),
    NodeParameter("output", "dynid_results", "folder for identified.yaml, report.html and drivers/"),
    NodeParameter(
        "load_topic",
        "load",
        "latched geometry_msgs/InertiaStamped: the load in the tip link's frame, inertia about its centre of mass (NaN "
        "where it is not known); mass 0: none. gravity_compensation listens to it",
        required=True,
    ),
    NodeParameter(
        "largest_error",
        0.3,
        "half of the mass's 95 % interval, over the mass, up to which a load is published on load_topic",
    ),
    NodeParameter("smallest_load", 0.1, "kg; if the whole interval is below it, mass 0 is published"),
    NodeParameter("live", False, "learn the load from joint_states while the arm moves, too; needs model_file"),
    NodeParameter("publish_rate", 2.0, "estimates per second, of live"),
    NodeParameter(
        "forgetting",
        math.nan,
        "time constant, s, after which live forgets; nan: it does not, but begins anew when it notices a change",
    ),
)


def load_job(robot: RobotModel, settings: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe; its third argument are recordings of the arm alone.

    Files are read when they are wanted: others may write them after this node has started.
    """
    for name in ("largest_error", "smallest_load"):
        if not 0 < getattr(settings, name) < math.inf:
            raise DynidError(f"parameter {name} is {getattr(settings, name)}; expected a finite number above 0")
    identification = LoadSettings(**setting_arguments(SETTINGS, settings)).identification(robot)
    if _compensated(settings):
        identification = identification.of_compensated([] if settings.payload == NONE else settings.payload)
    return partial(_identify, identification, settings)


def _compensated(settings: SimpleNamespace) -> bool:
    """Whether the torques are what the driver's own model of the arm leaves."""
    return settings.source == "torque" and settings.effort_convention == COMPENSATED


def _identify(
    identification: LoadIdentification,
    settings: SimpleNamespace,
    recordings: Sequence[Recording],
    output: str,
    unloaded: Sequence[Recording],
) -> Job:
    robot = identification.robot
    tare = read_tare(Path(settings.tare_file), robot) if settings.tare_file else None
    if _compensated(settings):
        if settings.model_file or unloaded:
            raise DynidError(
                "effort_convention gravity_compensated: the driver has taken the arm off its torques; leave model_file "
                "and unloaded_recording empty"
            )
        return identify_load(replace(identification, tare=tare), recordings, output)
    if identification.sensor is None and not settings.model_file and not unloaded:
        raise DynidError(
            "the torques of the arm alone are not known: set parameter model_file to the identified.yaml of its links, "
            "or unloaded_recording to a recording without the load"
        )
    if identification.sensor is not None and unloaded:
        raise DynidError("unloaded_recording is for joint torques; weigh a tool by itself and give it as tare_file")
    arm, document = read_arm(Path(settings.model_file), robot) if settings.model_file and not unloaded else (None, None)
    return identify_load(replace(identification, arm=arm, tare=tare), recordings, output, unloaded, document)


class LoadIdentificationNode(IdentificationNode):
    """Mass, centre and inertia of a load."""

    def __init__(self) -> None:
        super().__init__("load_identification", PARAMETERS, load_job)
        settings = self.settings
        self.load = LoadPublisher(
            self,
            settings.load_topic,
            self.robot.tip,
            largest_error=settings.largest_error,
            smallest_load=settings.smallest_load,
        )
        if settings.live:
            self.live = LiveLoad(self, self._online(), self.convention, self.load, settings.publish_rate)
            Diagnostics(self, self.live.status, "live", self.robot.name)

    def _convention(self) -> EffortConvention:
        settings = self.settings
        if settings.source == "wrench" and not settings.effort_convention and not settings.live:
            return EffortConvention("torque")  # of efforts that are not looked at
        if _compensated(settings) and not settings.live:
            return EffortConvention(COMPENSATED, residual=True)
        return super()._convention()

    def _identify(self) -> Job:
        return self._run(self.chosen().unloaded_recording)

    def _take(self, job: Job) -> None:
        if not self.load.tell(job.result):
            topic = self.settings.load_topic
            self.get_logger().warning(f"nothing is published on {topic}: the mass is not determined well enough")

    def _online(self) -> Callable[[], OnlineIdentification]:
        settings = self.settings
        if not settings.model_file:
            raise DynidError("parameter live needs model_file: an identified.yaml of the arm's links without the load")
        if settings.tare_file:
            raise DynidError(
                "parameter live takes no tare_file: it learns all that the arm of model_file does not have"
            )
        arm, _ = read_arm(Path(settings.model_file), self.robot)
        forgetting = None if math.isnan(settings.forgetting) else settings.forgetting
        return partial(
            OnlineIdentification,
            self.robot,
            "load",
            arm,
            forgetting=forgetting,
            max_rate=HIGHEST_RATE,
            torque_gain_error=settings.torque_gain_error,
        )


def main() -> None:
    """Run the node."""
    run(LoadIdentificationNode)


if __name__ == "__main__":
    main()

"""Node that identifies the load of an arm.

`~/identify` writes `~/result` and files, like all identification nodes, and publishes the load on the latched topic
`load`. With `live` the load is also estimated from `joint_states` while the arm moves, and published when determined.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dynid_ros.errors import DynidError
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.jobs.kinds import KINDS
from dynid_ros.jobs.load import read_arm
from dynid_ros.jobs.run import IdentificationRun
from dynid_ros.nodes.identification.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.identification.live_load import MAX_RATE_HZ, LiveLoad, LoadPublisher
from dynid_ros.nodes.shared.diagnostics import Diagnostics
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run
from dynid_ros.nodes.shared.robot_description import NO_PAYLOAD
from dynid_ros.recording.effort import GRAVITY_COMPENSATED, EffortConvention

PARAMETERS = (
    *parameters_of_kind("load"),
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


class LoadIdentificationNode(IdentificationNode):
    """Node that estimates mass, centre and inertia of a load."""

    def __init__(self) -> None:
        super().__init__("load_identification", "load", PARAMETERS)
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

    def _estimator(self) -> Any:
        """Return the estimator, which reads its files at each run: others may write them while this node waits."""
        settings = self.settings
        for name in ("largest_error", "smallest_load"):
            if not 0 < getattr(settings, name) < math.inf:
                raise DynidError(f"parameter {name} is {getattr(settings, name)}; expected a finite number above 0")
        declared = None
        if self._is_compensated:
            declared = [] if settings.payload == NO_PAYLOAD else settings.payload
        return KINDS[self.kind].build(self.robot, self._values(), **self._files(), declared=declared)

    @property
    def _is_compensated(self) -> bool:
        """Whether the driver's own model of the arm has been subtracted from the torques."""
        return self.settings.source == "torque" and self.settings.effort_convention == GRAVITY_COMPENSATED

    def _convention(self) -> EffortConvention:
        settings = self.settings
        if settings.source == "wrench" and not settings.effort_convention and not settings.live:
            return EffortConvention("torque")  # efforts are not looked at
        if self._is_compensated and not settings.live:
            return EffortConvention(GRAVITY_COMPENSATED, residual=True)
        return super()._convention()

    def _take(self, job: IdentificationRun) -> None:
        if not self.load.publish(job.result):
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
            max_rate=MAX_RATE_HZ,
            torque_gain_error=settings.torque_gain_error,
        )


def main() -> None:
    """Run the node."""
    run(LoadIdentificationNode)


if __name__ == "__main__":
    main()

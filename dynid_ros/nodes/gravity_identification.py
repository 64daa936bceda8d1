"""Node that turns a recording into gravity parameters: `~/identify` in, `~/result` (latched YAML) and files out."""

from pathlib import Path

import yaml
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.identification import GravityIdentification
from dynid_ros.jobs.gravity import GravityJob, identify_gravity
from dynid_ros.nodes.diagnostics import ERROR, OK, Diagnostics
from dynid_ros.nodes.parameters import NodeParameter, declare
from dynid_ros.nodes.robot_description import LATCHED, ROBOT_PARAMETERS, robot_model
from dynid_ros.nodes.running import answer, run
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("recording", "", "rosbag2 folder, .csv, .npz; empty: the recorder's last bag, also while it records"),
    NodeParameter("validation_recording", "", "recording to compare with that is not fitted; empty: none"),
    NodeParameter("bag_topic", "/recorder/bag", "where the recorder announces its bag"),
    NodeParameter("torque_topic", "", "topic of separate joint torques in the bag; empty: effort of joint_states"),
    NodeParameter("effort_convention", "", "what effort is: torque, motor_current or gravity_compensated; required"),
    NodeParameter(
        "motor_gains", [0.0], "for motor_current: N m per unit of effort, one per joint in the model's order"
    ),
    NodeParameter("estimator", "global", "global: all torques of all poses at once; recursive: tip to base"),
    NodeParameter("torque_offset", True, "estimate a constant torque sensor offset per joint"),
    NodeParameter("samples", "static", "static: dwells; slow: slow motion; both"),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
)


class GravityIdentificationNode(Node):
    """Identifies on request; the last result stays on `~/result` for whoever comes late."""

    def __init__(self) -> None:
        super().__init__("gravity_identification")
        self.settings = declare(self, PARAMETERS)
        gains = [gain for gain in self.settings.motor_gains if gain] or None
        self.convention = EffortConvention(self.settings.effort_convention, gains)
        self.robot = robot_model(self, self.settings)
        self.identification = GravityIdentification(
            self.robot,
            estimator=self.settings.estimator,
            torque_offset=self.settings.torque_offset,
            samples=self.settings.samples,
        )
        self.bag = ""
        self.status = (OK, "no identification yet")
        self.create_subscription(String, self.settings.bag_topic, self._on_bag, LATCHED)
        self.result = self.create_publisher(String, "~/result", LATCHED)
        self.create_service(Trigger, "~/identify", answer(self, self.identify))
        Diagnostics(self, lambda: (*self.status, {"recording": self.settings.recording or self.bag}))

    def identify(self) -> str:
        """Read, fit, write; the answer is the summary."""
        try:
            job = self._identify()
        except DynidError as error:
            self.status = (ERROR, str(error))
            raise
        self.status = (OK, f"identified, condition number {job.result.condition_number:.3g}")
        self.result.publish(String(data=yaml.safe_dump(job.result.document(), sort_keys=False)))
        return job.summary()

    def _identify(self) -> GravityJob:
        path = self.settings.recording or self.bag
        if not path:
            raise DynidError(
                "No recording: set parameter 'recording', or record with the recorder "
                f"(nothing on {self.settings.bag_topic} yet)"
            )
        others = [self.settings.validation_recording] if self.settings.validation_recording else []
        return identify_gravity(
            self.identification, [self._read(path)], self.settings.output, [self._read(other) for other in others]
        )

    def _read(self, path: str) -> Recording:
        return Recording.read(
            Path(path),
            joint_names=self.robot.joint_names,
            torque_topic=self.settings.torque_topic or None,
            effort_convention=self.convention,
        )

    def _on_bag(self, message: String) -> None:
        self.bag = message.data


def main() -> None:
    """Run the node."""
    run(GravityIdentificationNode)


if __name__ == "__main__":
    main()

"""Node that turns a recording into gravity parameters: `~/identify` in, `~/result` (latched YAML) and files out."""

from functools import partial
from types import SimpleNamespace

from dynid_ros.identification import GravityIdentification
from dynid_ros.jobs.identification import identify_gravity
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run

PARAMETERS = (
    *RECORDING_PARAMETERS,
    NodeParameter("estimator", "global", "global: all torques of all poses at once; recursive: tip to base"),
    NodeParameter("torque_offset", True, "estimate a constant torque sensor offset per joint"),
    NodeParameter("samples", "static", "static: dwells; slow: slow motion; both"),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
)


def gravity_job(robot: RobotModel, settings: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        IdentificationError: a setting that makes no sense.

    """
    identification = GravityIdentification(
        robot, estimator=settings.estimator, torque_offset=settings.torque_offset, samples=settings.samples
    )
    return partial(identify_gravity, identification)


class GravityIdentificationNode(IdentificationNode):
    """Gravity parameters, torque offsets and Coulomb friction."""

    def __init__(self) -> None:
        super().__init__("gravity_identification", PARAMETERS, gravity_job)


def main() -> None:
    """Run the node."""
    run(GravityIdentificationNode)


if __name__ == "__main__":
    main()

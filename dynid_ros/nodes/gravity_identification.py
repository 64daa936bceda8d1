"""Node that turns a recording into gravity parameters: `~/identify` in, `~/result` (latched YAML) and files out."""

from functools import partial
from types import SimpleNamespace

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.jobs.identification import identify_gravity
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.parameters import NodeParameter, given, parameters_of
from dynid_ros.nodes.shared.process import run
from dynid_ros.settings import settings_of

SETTINGS, RULES = settings_of(GravityIdentification), settings_of(SampleRules)
PARAMETERS = (
    *RECORDING_PARAMETERS,
    *parameters_of((*SETTINGS, *RULES)),
    NodeParameter("output", "dynid_results", "folder for identified.yaml and report.html"),
)


def gravity_job(robot: RobotModel, parameters: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        IdentificationError: a setting that makes no sense.

    """
    rules = SampleRules(**given(RULES, parameters))
    return partial(identify_gravity, GravityIdentification(robot, **given(SETTINGS, parameters), rules=rules))


class GravityIdentificationNode(IdentificationNode):
    """Gravity parameters, torque offsets and Coulomb friction."""

    def __init__(self) -> None:
        super().__init__("gravity_identification", PARAMETERS, gravity_job)


def main() -> None:
    """Run the node."""
    run(GravityIdentificationNode)


if __name__ == "__main__":
    main()

"""Node that turns a recording into links and friction: `~/identify` in, `~/result` (latched YAML) and files out."""

from functools import partial
from types import SimpleNamespace

from dynid_ros.identification import LinkIdentification
from dynid_ros.jobs.identification import identify_links
from dynid_ros.model import RobotModel
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.parameters import NodeParameter, given, parameters_of
from dynid_ros.nodes.shared.process import run
from dynid_ros.settings import settings_of

SETTINGS = settings_of(LinkIdentification)
PARAMETERS = (
    *RECORDING_PARAMETERS,
    *parameters_of(SETTINGS),
    NodeParameter("output", "dynid_results", "folder for identified.yaml, identified.urdf and report.html"),
)


def link_job(robot: RobotModel, parameters: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        DynidError: a setting that makes no sense.

    """
    return partial(identify_links, LinkIdentification(robot, **given(SETTINGS, parameters)))


class LinkIdentificationNode(IdentificationNode):
    """Inertial parameters and friction of all links."""

    def __init__(self) -> None:
        super().__init__("link_identification", PARAMETERS, link_job)


def main() -> None:
    """Run the node."""
    run(LinkIdentificationNode)


if __name__ == "__main__":
    main()

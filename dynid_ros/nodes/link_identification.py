"""Node that turns a recording into links and friction: `~/identify` in, `~/result` (latched YAML) and files out."""

import math
from functools import partial
from types import SimpleNamespace

from dynid_ros.identification import LinkIdentification
from dynid_ros.jobs.identification import identify_links
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FRICTION_TERMS, friction_terms
from dynid_ros.nodes.identification.identification_node import RECORDING_PARAMETERS, IdentificationNode, Identify
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.process import run

PARAMETERS = (
    *RECORDING_PARAMETERS,
    NodeParameter(
        "estimator",
        "consistent",
        "consistent: links that can exist, drawn to the URDF's; weighted: by each joint's noise; ordinary",
    ),
    NodeParameter(
        "friction", "auto", f"auto: chosen for each joint; none; or of {', '.join(FRICTION_TERMS)}, for all joints"
    ),
    NodeParameter("prior_weight", math.nan, "of the URDF's links in consistent; nan: chosen by cross-validation"),
    NodeParameter("torque_gain_error", 0.01, "standard deviation of the relative error of each joint's torque gain"),
    NodeParameter("cutoff", math.nan, "of the low-pass on torques and equations, Hz; nan: chosen from the motion"),
    NodeParameter("motion_cutoff", math.nan, "of the low-pass on positions, Hz; nan: chosen from the motion"),
    NodeParameter("output", "dynid_results", "folder for identified.yaml, identified.urdf and report.html"),
)


def link_job(robot: RobotModel, settings: SimpleNamespace) -> Identify:
    """The job that the values of `PARAMETERS` describe.

    Raises:
        DynidError: a setting that makes no sense.

    """
    identification = LinkIdentification(
        robot,
        friction=friction_terms(settings.friction),
        estimator=settings.estimator,
        prior_weight=_given(settings.prior_weight),
        torque_gain_error=settings.torque_gain_error,
        cutoff=_given(settings.cutoff),
        motion_cutoff=_given(settings.motion_cutoff),
    )
    return partial(identify_links, identification)


def _given(value: float) -> float | None:
    return None if math.isnan(value) else value


class LinkIdentificationNode(IdentificationNode):
    """Inertial parameters and friction of all links."""

    def __init__(self) -> None:
        super().__init__("link_identification", PARAMETERS, link_job)


def main() -> None:
    """Run the node."""
    run(LinkIdentificationNode)


if __name__ == "__main__":
    main()

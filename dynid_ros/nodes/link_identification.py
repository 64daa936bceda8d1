"""Node that turns a recording into links and friction: `~/identify` in, `~/result` and files out."""

from functools import partial

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind("links")
LinkIdentificationNode = partial(IdentificationNode, "link_identification", "links", PARAMETERS)
main = partial(run, LinkIdentificationNode)

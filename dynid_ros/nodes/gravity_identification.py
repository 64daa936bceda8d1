"""Node that turns a recording into gravity parameters: `~/identify` in, `~/result` and files out."""

from functools import partial

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind("gravity")
GravityIdentificationNode = partial(IdentificationNode, "gravity_identification", "gravity", PARAMETERS)
main = partial(run, GravityIdentificationNode)

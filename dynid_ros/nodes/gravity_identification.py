"""Node that turns a recording into gravity parameters: `~/identify` in, `~/result` and files out."""

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind("gravity")


class GravityIdentificationNode(IdentificationNode):
    """Gravity parameters, torque offsets and Coulomb friction."""

    def __init__(self) -> None:
        super().__init__("gravity_identification", "gravity", PARAMETERS)


def main() -> None:
    """Run the node."""
    run(GravityIdentificationNode)


if __name__ == "__main__":
    main()

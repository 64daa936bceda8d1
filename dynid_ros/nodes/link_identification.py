"""Node that turns a recording into links and friction: `~/identify` in, `~/result` and files out."""

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind("links")


class LinkIdentificationNode(IdentificationNode):
    """Inertial parameters and friction of all links."""

    def __init__(self) -> None:
        super().__init__("link_identification", "links", PARAMETERS)


def main() -> None:
    """Run the node."""
    run(LinkIdentificationNode)


if __name__ == "__main__":
    main()

import pytest

rclpy = pytest.importorskip("rclpy")

from rclpy.parameter import Parameter  # noqa: E402

from dynid_ros.errors import DynidError  # noqa: E402
from dynid_ros.nodes.shared.parameters import NodeParameter, declare  # noqa: E402

TABLE = (
    NodeParameter("command_topic", "commands", "where to", required=True),
    NodeParameter("load_topic", "load", "where from"),
    NodeParameter("extra_topics", [""], "others"),
)


@pytest.fixture
def declared(ros):
    nodes = []

    def make(**given):
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        nodes.append(rclpy.create_node("declaring", parameter_overrides=overrides))
        return declare(nodes[-1], TABLE)

    yield make
    for node in nodes:
        node.destroy_node()


def test_topics_that_ros_allows(declared):
    assert declared().command_topic == "commands"
    assert declared(load_topic="").load_topic == ""
    assert declared(load_topic="~/x", extra_topics=["/a/b_1", "/commands"]).extra_topics == ["/a/b_1", "/commands"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"command_topic": ""}, "'command_topic' of node 'declaring' is '', which is no name of a topic"),
        ({"load_topic": "a b"}, "'load_topic' of node 'declaring' is 'a b', which is no name of a topic"),
        ({"load_topic": "1a"}, "'load_topic' of node 'declaring' is '1a'"),
        ({"load_topic": "{x}"}, "'load_topic' of node 'declaring' is '{x}'"),
        ({"load_topic": "/a//b"}, "'load_topic' of node 'declaring' is '/a//b'"),
        ({"extra_topics": ["a", "<robot/>"]}, "'extra_topics' of node 'declaring' is '<robot/>'"),
        ({"load_topic": "/commands"}, "Parameters 'command_topic' and 'load_topic' .* are both '/commands'"),
        ({"load_topic": 1}, "Parameter 'load_topic' of node 'declaring' must be a str"),
    ],
)
def test_what_no_topic_can_be_called(declared, given, message):
    with pytest.raises(DynidError, match=message):
        declared(**given)

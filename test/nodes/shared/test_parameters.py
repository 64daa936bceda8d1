"""Test the declaration, types, ranges and names of node parameters."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import rclpy
from rclpy.parameter import Parameter

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter, declare, parameters_of, setting_arguments
from dynid_ros.settings import setting, settings_of

TABLE = (
    NodeParameter("command_topic", "commands", "where to", required=True),
    NodeParameter("load_topic", "load", "where from"),
    NodeParameter("extra_topics", [""], "others"),
    NodeParameter("scale", [1.0], "factors", adjustable=True),
    NodeParameter("timeout", 0.2, "s"),
    NodeParameter("steps", 12, "number of them"),
    NodeParameter("enabled", False, "whether"),
)


@pytest.fixture
def declare_table(ros):
    """Return a function that declares the parameters of TABLE on a new node with these values."""
    nodes = []

    def make(**overrides):
        overrides = [Parameter(name, value=value) for name, value in overrides.items()]
        nodes.append(rclpy.create_node("declaring", parameter_overrides=overrides))
        return declare(nodes[-1], TABLE)

    yield make
    for node in nodes:
        node.destroy_node()


def test_valid_topic_names_are_accepted(declare_table):
    assert declare_table().command_topic == "commands"
    assert declare_table(load_topic="").load_topic == ""
    assert declare_table(load_topic="~/x", extra_topics=["/a/b_1", "/commands"]).extra_topics == ["/a/b_1", "/commands"]


@pytest.mark.parametrize(
    ("overrides", "values"),
    [
        ({"scale": 0.2, "timeout": 1}, {"scale": [0.2], "timeout": 1.0}),
        ({"scale": 2}, {"scale": [2.0]}),
        ({"scale": [1, 2]}, {"scale": [1.0, 2.0]}),
        ({"extra_topics": "pose"}, {"extra_topics": ["pose"]}),
    ],
)
def test_values_are_converted_to_the_declared_type(declare_table, overrides, values):
    found = declare_table(**overrides)
    for name, value in values.items():
        assert getattr(found, name) == value
        assert repr(getattr(found, name)) == repr(value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"command_topic": ""}, "'command_topic' of node 'declaring' is '', which is no name of a topic"),
        ({"load_topic": "a b"}, "'load_topic' of node 'declaring' is 'a b', which is no name of a topic"),
        ({"load_topic": "1a"}, "'load_topic' of node 'declaring' is '1a'"),
        ({"load_topic": "{x}"}, "'load_topic' of node 'declaring' is '{x}'"),
        ({"load_topic": "/a//b"}, "'load_topic' of node 'declaring' is '/a//b'"),
        ({"extra_topics": ["a", "<robot/>"]}, "'extra_topics' of node 'declaring' is '<robot/>'"),
        ({"load_topic": "/commands"}, "Parameters 'command_topic' and 'load_topic' .* are both '/commands'"),
        ({"load_topic": 1}, "Parameter 'load_topic' of node 'declaring' is 1; expected a text"),
        ({"scale": ["a"]}, r"Parameter 'scale' of node 'declaring' is \['a'\]; expected a list, each a number"),
        ({"scale": True}, "'scale' of node 'declaring' is True; expected a list, each a number"),
        ({"timeout": "soon"}, "'timeout' of node 'declaring' is 'soon'; expected a number"),
        ({"steps": 2.0}, "'steps' of node 'declaring' is 2.0; expected a whole number"),
        ({"enabled": 1}, "'enabled' of node 'declaring' is 1; expected true or false"),
    ],
)
def test_invalid_topic_names_and_types_are_refused(declare_table, overrides, message):
    with pytest.raises(DynidError, match=message):
        declare_table(**overrides)


def test_unknown_parameter_name_is_refused(declare_table):
    with pytest.raises(DynidError, match="'tiemout' of node 'declaring' does not exist; did you mean timeout"):
        declare_table(tiemout=0.1)
    assert declare_table(effort_convention="torque").timeout == 0.2  # a parameter of another node


def test_bounds_become_ros_ranges(declare_table):
    ranged = NodeParameter("gain", 0.5, "N m", least=0.0, most=2.0).descriptor
    assert (ranged.floating_point_range[0].from_value, ranged.floating_point_range[0].to_value) == (0.0, 2.0)
    assert (ranged.additional_constraints, ranged.read_only) == ("0 to 2", True)
    assert not NodeParameter("sample", [math.nan], "nan: all", above=0.0, most=1.0).descriptor.floating_point_range
    assert NodeParameter("sample", [math.nan], "nan: all", above=0.0).checked([math.nan, 1], "declaring")[1] == 1.0
    with pytest.raises(DynidError, match=r"'sample' of node 'declaring' is \[0.0\]; expected above 0"):
        NodeParameter("sample", [math.nan], "nan: all", above=0.0).checked([0.0], "declaring")
    assert NodeParameter("steps", 2, "number", least=1).bounds == "1 or more"


@dataclass
class Estimator:
    """Settings of each type."""

    frame: str = setting("", "whose axes; default: by itself", choices=("sensor", "base"))
    cutoff: float | None = setting(None, "low-pass; default: from the motion", unit="Hz")
    terms: tuple[str, ...] = setting(("a", "b"), "some of a, b, c")
    coupled: tuple[tuple[str, str], ...] = setting((), "joints of one motor", parts=("A", "B"))
    center: tuple[float, ...] | None = setting(None, "where; default: estimated", parts=("X", "Y", "Z"))


def test_settings_convert_to_parameters_and_back():
    settings = settings_of(Estimator)
    table = {parameter.name: parameter for parameter in parameters_of(settings)}
    assert [table["terms"].default, table["coupled"].default] == [["a", "b"], [""]]
    assert table["frame"].description == "whose axes; empty: by itself; also sensor, base"
    assert table["cutoff"].description == "low-pass, Hz; nan: from the motion"
    values = {name: parameter.default for name, parameter in table.items()}
    assert Estimator(**setting_arguments(settings, SimpleNamespace(**values))) == Estimator()
    chosen = values | {"coupled": ["p,q", "r,s"], "terms": [""], "center": [1.0, 2.0, 3.0]}
    estimator = Estimator(**setting_arguments(settings, SimpleNamespace(**chosen)))
    assert estimator == Estimator(coupled=(("p", "q"), ("r", "s")), terms=(), center=(1.0, 2.0, 3.0))
    with pytest.raises(DynidError, match="coupled has 'p'; expected A,B"):
        setting_arguments(settings, SimpleNamespace(**values | {"coupled": ["p"]}))

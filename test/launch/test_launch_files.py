"""Each launch file loads, and its arguments are the parameters of its node."""

import importlib
import math
from pathlib import Path

import pytest
import yaml

pytest.importorskip("launch_ros", reason="ROS 2 launch is not installed")

from launch import LaunchContext
from launch.actions import OpaqueFunction
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from launch_ros.parameter_descriptions import ParameterValue

from dynid_ros.errors import DynidError
from dynid_ros.nodes import module_of
from dynid_ros.nodes.shared.launch_description import _argument

LAUNCH = Path(__file__).resolve().parents[2] / "launch"
NODES = {
    "simulate": ["simulator"],
    "record": ["recorder"],
    "identify": [
        "excitation",
        "recorder",
        "gravity_identification",
        "link_identification",
        "flexible_joint_identification",
        "torque_sensor_calibration",
        "load_identification",
    ],
    "gravity_compensation": ["gravity_compensation"],
    "controller_stack": ["gravity_compensation"],
    "show": ["gravity_markers"],
}


CHOICES = {
    "identify": {"identification"},
    "controller_stack": {"route"},
    "simulate": {"controllers", "controllers_file"},
}


def description(name: str):
    return get_launch_description_from_python_launch_file(str(LAUNCH / f"{name}.launch.py"))


def arguments(name: str) -> dict:
    return {argument.name: argument for argument in description(name).get_launch_arguments()}


def started(name: str, **given: str) -> list:
    """Executables of the nodes that the launch file starts."""
    return [node.node_executable for node in nodes_of(name, **given)]


def nodes_of(name: str, **given: str) -> list:
    """Actions that start the nodes of the launch file."""
    context = LaunchContext()
    context.launch_configurations.update(given)
    nodes = []
    for entity in description(name).entities:
        found = entity.execute(context)
        nodes += found or [] if isinstance(entity, OpaqueFunction) else []
    return nodes


def default(argument) -> str:
    return "".join(part.text for part in argument.default_value)


def test_these_are_all():
    assert {path.name.removesuffix(".launch.py") for path in LAUNCH.glob("*")} == {*NODES, "demo"}


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_arguments_are_the_parameters_of_the_nodes(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    found = arguments(name)
    own = {"params_file", "namespace"} | CHOICES.get(name, set())
    assert set(found) == own | {parameter.name for table in tables for parameter in table}
    assert all(argument.description for argument in found.values())


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_values_of_every_type_are_taken(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    given = {parameter.name: yaml.safe_dump(parameter.default) for table in tables for parameter in table}
    assert started(name, **given)[0] == nodes[0]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("acceleration_limits", "2", [2.0]),
        ("acceleration_limits", "[1, 2.5]", [1.0, 2.5]),
        ("noise", "nan", [math.nan]),
        ("recordings", "/bags/left=1", ["/bags/left=1"]),
        ("recordings", "[a, b]", ["a", "b"]),
        ("tip_link", "1", "1"),
    ],
)
def test_lists_need_no_brackets_and_whole_numbers_no_point(name, text, value):
    (parameter,) = [p for p in importlib.import_module("dynid_ros.nodes.excitation").PARAMETERS if p.name == name]
    found = _argument(parameter, text)[name]
    if isinstance(found, ParameterValue):
        found = found.evaluate(LaunchContext())
    assert repr(found) == repr(value)


@pytest.mark.parametrize(("name", "text"), [("acceleration_limits", "fast"), ("repeats", "2.5"), ("repeats", "[")])
def test_an_argument_that_is_no_number_is_named(name, text):
    (parameter,) = [p for p in importlib.import_module("dynid_ros.nodes.excitation").PARAMETERS if p.name == name]
    with pytest.raises(DynidError, match=f"launch argument {name}:="):
        _argument(parameter, text)


@pytest.mark.parametrize(
    ("given", "identification"),
    [
        ({}, "gravity_identification"),
        ({"identification": "gravity"}, "gravity_identification"),
        ({"identification": "links"}, "link_identification"),
        ({"identification": "load"}, "load_identification"),
    ],
)
def test_one_identification_is_started(given, identification):
    assert started("identify", **given) == ["excitation", "recorder", identification]


def test_argument_of_several_nodes_says_what_it_is_to_each():
    text = arguments("identify")["estimator"].description
    assert "recursive: tip to base" in text
    assert "physically consistent links" in text


@pytest.mark.parametrize("name", ["record", "gravity_compensation", "controller_stack"])
def test_node_starts_to_work_without_a_service_call(name):
    assert default(arguments(name)["autostart"]) == "true"


def test_the_simulated_arm_may_be_hardware_of_real_controllers():
    assert started("simulate") == ["simulator"]
    simulator, manager, *spawners = nodes_of("simulate", controllers="ros2_control", namespace="left")
    assert manager.node_executable == "ros2_control_node"
    assert [node.node_executable for node in spawners] == ["spawner", "spawner"]
    assert {node._Node__node_namespace for node in (simulator, manager, *spawners)} == {"left"}
    context = LaunchContext()
    context.launch_configurations["controllers"] = "ros2_control"
    for entity in description("simulate").entities:
        entity.execute(context)
    assert context.launch_configurations["controller"] == "ros2_control"


def test_demo_has_its_output_folder_to_choose():
    assert list(arguments("demo")) == ["output", "acts", "domain"]


def test_demo_is_on_a_domain_of_its_own_whatever_the_caller_is_on(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    for node in nodes_of("demo", output=str(tmp_path), acts="", domain=""):
        environment = {
            "".join(part.text for part in name): "".join(part.text for part in value)
            for name, value in node.process_description.additional_env
        }
        assert environment["ROS_DOMAIN_ID"] not in ("", "0", "7")
        assert environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_put_in_a_namespace(name):
    (node, *_) = nodes_of(name, namespace="left")
    assert node._Node__node_namespace == "left"

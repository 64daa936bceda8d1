"""Each launch file loads, and its arguments are the parameters of its node."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="ROS 2 launch is not installed")

from launch.launch_description_sources import get_launch_description_from_python_launch_file

LAUNCH = Path(__file__).resolve().parents[2] / "launch"
NODES = {
    "simulate": ["simulator"],
    "record": ["recorder"],
    "identify": ["excitation", "recorder", "gravity_identification"],
    "gravity_compensation": ["gravity_compensation"],
}


def arguments(name: str) -> dict:
    description = get_launch_description_from_python_launch_file(str(LAUNCH / f"{name}.launch.py"))
    return {argument.name: argument for argument in description.get_launch_arguments()}


def default(argument) -> str:
    return "".join(part.text for part in argument.default_value)


def test_these_are_all():
    assert {path.name.removesuffix(".launch.py") for path in LAUNCH.glob("*")} == {*NODES, "demo"}


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_arguments_are_the_parameters_of_the_nodes(name, nodes):
    tables = [importlib.import_module(f"dynid_ros.nodes.{node}").PARAMETERS for node in nodes]
    found = arguments(name)
    assert set(found) == {"params_file", *(parameter.name for table in tables for parameter in table)}
    assert all(argument.description for argument in found.values())


@pytest.mark.parametrize("name", ["record", "gravity_compensation"])
def test_node_starts_to_work_without_a_service_call(name):
    assert default(arguments(name)["autostart"]) == "true"


def test_demo_has_its_output_folder_to_choose():
    assert list(arguments("demo")) == ["output"]

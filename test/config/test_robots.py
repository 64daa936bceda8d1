"""Example configurations of robots: as nodes read them, they name parameters that exist and make sense together."""

import importlib
from pathlib import Path

import pytest
import rclpy
import yaml
from pinocchio_arm import example_urdf
from rclpy.context import Context

from dynid_ros.model import RobotModel
from dynid_ros.nodes import module_of
from dynid_ros.nodes.experiment.design import Safety
from dynid_ros.nodes.shared.parameters import declare
from dynid_ros.recording.effort import EffortConvention

FILES = sorted((Path(__file__).parents[2] / "config" / "robots").glob("*.yaml"))
NAMESPACES = {"kuka_lbr": "/lbr"}
DESCRIPTIONS = {"ur": "ur_description/urdf/ur10_robot.urdf", "franka": "panda_description/urdf/panda.urdf"}


def sections(path: Path) -> dict[str, dict]:
    """Given values by node."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert all(key.startswith("/**/") and list(value) == ["ros__parameters"] for key, value in document.items())
    return {key.removeprefix("/**/"): value["ros__parameters"] for key, value in document.items()}


def as_declared(path: Path, name: str):
    """Values of all parameters of a node that was started with the file."""
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node(
        name,
        namespace=NAMESPACES.get(path.stem, ""),
        context=context,
        cli_args=["--ros-args", "--params-file", str(path)],
        start_parameter_services=False,
    )
    try:
        return declare(node, importlib.import_module(module_of(name)).PARAMETERS)
    finally:
        node.destroy_node()
        context.try_shutdown()


CASES = [(path, name) for path in FILES for name in sections(path)]


@pytest.mark.parametrize(("path", "name"), CASES, ids=[f"{path.stem}-{name}" for path, name in CASES])
def test_node_takes_each_value(path, name):
    given = sections(path)[name]
    values = vars(as_declared(path, name))
    assert not set(given) - set(values), f"node {name} has no such parameters"
    for parameter, value in given.items():
        declared = values[parameter]
        assert (list(declared) if isinstance(value, list) else declared) == value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_identifications_agree(path):
    given = sections(path)
    identifications = [values for name, values in given.items() if name.endswith("_identification")]
    assert len(identifications) == 3
    assert all(values == identifications[0] for values in identifications)
    EffortConvention(identifications[0]["effort_convention"], identifications[0].get("motor_gains"))
    for values in given.values():
        for link in ("base_link", "tip_link"):
            assert values.get(link, identifications[0][link]) == identifications[0][link]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_arm_that_holds_itself_is_not_held_twice(path):
    assert sections(path).get("gravity_compensation", {"scale": [0.0]})["scale"] == [0.0]


@pytest.mark.parametrize("path", [path for path in FILES if path.stem in DESCRIPTIONS], ids=lambda path: path.stem)
def test_limits_fit_the_robot(path):
    urdf = example_urdf(DESCRIPTIONS[path.stem])
    settings = as_declared(path, "excitation")
    settings.link_shapes = "none"
    robot = RobotModel.from_urdf(urdf, settings.tip_link, settings.base_link)
    limits = Safety(robot, settings).limits
    assert list(limits.joint_names) == list(robot.joint_names)
    gains = sections(path)["gravity_identification"].get("motor_gains")
    assert gains is None or len(gains) == robot.n_joints

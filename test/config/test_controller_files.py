"""Files for the spawner: what it looks for is where it looks, and each key is one that the controller has.

As in ros2_control 4.46 (controller_manager_services.py, `get_parameter_from_param_files`): the type is a parameter in
the controller's own section. Keys are those of ros2_controllers 4.42 (…_parameters.yaml).
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "config" / "controllers"
KEYS = {
    "joint_state_broadcaster/JointStateBroadcaster": {"update_rate"},
    "forward_command_controller/ForwardCommandController": {"joints", "interface_name"},
    "joint_trajectory_controller/JointTrajectoryController": {
        "joints",
        "command_interfaces",
        "state_interfaces",
        "interpolate_from_desired_state",
        "set_last_command_interface_value_as_state_on_activation",
        "cmd_timeout",
        "constraints.goal_time",
        *(f"gains.joint_{i}.{gain}" for i in range(1, 7) for gain in ("p", "i", "d", "i_clamp")),
    },
}
SPAWNED = re.compile(r"spawner (.+?) (?:--inactive )?--param-file (\S+)")
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *FOLDER.glob("*.yaml")])


def sections(path: Path) -> dict:
    """Parameters of each controller of a file."""
    (names,) = yaml.safe_load(path.read_text(encoding="utf-8")).values()
    return {name: section["ros__parameters"] for name, section in names.items() if name != "controller_manager"}


def flat(parameters: dict, prefix: str = "") -> set[str]:
    """Names of parameters, with dots."""
    found = set()
    for key, value in parameters.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key}
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_controller_has_its_type_and_keys_that_it_knows(path):
    assert list(yaml.safe_load(path.read_text(encoding="utf-8"))) == ["/**"]  # in any namespace
    for parameters in sections(path).values():
        assert flat(parameters) - {"type"} <= KEYS[parameters["type"]]


@pytest.mark.parametrize("name", ["feedforward", "trajectory", "ros2_control", "simulators"])
def test_no_controller_of_ours_snaps_back_or_starts_behind(name):
    parameters = sections(FOLDER / f"{name}.yaml")["joint_trajectory_controller"]
    assert parameters["interpolate_from_desired_state"] is True
    assert parameters["set_last_command_interface_value_as_state_on_activation"] is False


def test_commands_name_files_that_hold_the_controller_by_an_absolute_path():
    found = [(page, *command) for page in PAGES for command in SPAWNED.findall(page.read_text(encoding="utf-8"))]
    assert len(found) >= 8
    for page, names, file in found:
        assert file.startswith("$PWD/"), f"{page.name}: {file}"
        assert set(names.split()) <= set(sections(FOLDER / Path(file).name)), f"{page.name}: {names}"

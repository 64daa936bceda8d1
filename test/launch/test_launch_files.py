"""Test that each launch file loads, and that its arguments reach the nodes and override their files."""

import importlib
import math
from pathlib import Path

import pytest
import yaml

pytest.importorskip("launch_ros", reason="ROS 2 launch is not installed")

import demo_arm_model
from launch import LaunchContext, LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription, LogInfo, OpaqueFunction
from launch.events.process import ProcessExited
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from launch_ros.parameter_descriptions import ParameterValue

from dynid_ros.errors import DynidError
from dynid_ros.nodes import module_of
from dynid_ros.nodes.shared.launch_description import ARGUMENTS, _argument, _report_death

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
    "external_torque": ["external_torque"],
    "show": ["gravity_markers"],
}


SPECIFIC_ARGUMENTS = {
    "identify": {"identification", "speed_fraction", "travel_speed_fraction", "motion_state_topic"},
    "gravity_compensation": {"autostart"},
    "controller_stack": {"route", "autostart", "spawn"},
    "external_torque": {"false_alarms_per_hour", "contact_free_recording"},
    "record": {"output_folder", "autostart"},
    "simulate": {"controller", "controllers_file"},
}
COMMON_ARGUMENTS = {"namespace", "use_sim_time", "log_level", "params_file"}


def load_description(name: str):
    return get_launch_description_from_python_launch_file(str(LAUNCH / f"{name}.launch.py"))


def load_arguments(name: str) -> dict:
    return {argument.name: argument for argument in load_description(name).get_launch_arguments()}


def list_executables(name: str, **overrides: str) -> list:
    """Return the executables of the nodes that the launch file starts."""
    return [node.node_executable for node in list_nodes(name, **overrides)]


def list_nodes(name: str, **overrides: str) -> list:
    """Return the actions that start the nodes of the launch file."""
    context = LaunchContext()
    context.launch_configurations.update(overrides)
    nodes = []
    for entity in load_description(name).entities:
        actions = entity.execute(context)
        nodes += actions or [] if isinstance(entity, OpaqueFunction) else []
    return nodes


def prepare(node, namespace: str = ""):
    """Return the node as before its start, with the launch file included in `namespace`."""
    context = LaunchContext()
    context.launch_configurations["ros_namespace"] = namespace
    node._perform_substitutions(context)
    return node


def read_parameters(node) -> dict:
    """Return the parameters of a prepared node; later files override earlier ones."""
    parameters: dict = {}
    for path, is_file in node._Node__expanded_parameter_arguments:
        assert is_file
        for section in yaml.unsafe_load(
            Path(path).read_text(encoding="utf-8")
        ).values():  # launch writes tuples, which safe_load refuses
            parameters |= section.get("ros__parameters", {})
    return parameters


def read_command_line(node) -> list[str]:
    """Return the command line of a node, without the parts that are known only at its start."""
    return ["".join(part.perform(None) for part in word if hasattr(part, "text")) for word in node.cmd]


def read_default(argument) -> str:
    return "".join(part.text for part in argument.default_value)


def test_all_launch_files_are_tested():
    assert {path.name.removesuffix(".launch.py") for path in LAUNCH.glob("*")} == {*NODES, "demo", "guide", "two_arms"}


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_launch_files_have_the_documented_arguments(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    launch_arguments = load_arguments(name)
    parameters = {parameter.name for table in tables for parameter in table}
    assert set(launch_arguments) == COMMON_ARGUMENTS | SPECIFIC_ARGUMENTS.get(name, set()) | (
        set(ARGUMENTS) & parameters
    )
    assert all(argument.description for argument in launch_arguments.values())
    assert len(ARGUMENTS) + len({"identification", "route"}) == 10


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_values_of_each_type_are_accepted(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    offered = set(load_arguments(name)) - {"controller"}
    overrides = {row.name: yaml.safe_dump(row.default) for table in tables for row in table if row.name in offered}
    assert list_executables(name, **overrides)[0] == nodes[0]


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
def test_list_arguments_need_no_brackets_or_decimal_points(name, text, value):
    (parameter,) = [p for p in importlib.import_module("dynid_ros.nodes.excitation").PARAMETERS if p.name == name]
    argument = _argument(parameter, text)[name]
    if isinstance(argument, ParameterValue):
        argument = argument.evaluate(LaunchContext())
    assert repr(argument) == repr(value)


@pytest.mark.parametrize(("name", "text"), [("acceleration_limits", "fast"), ("repeats", "2.5"), ("repeats", "[")])
def test_argument_that_is_no_number_is_refused(name, text):
    (parameter,) = [p for p in importlib.import_module("dynid_ros.nodes.excitation").PARAMETERS if p.name == name]
    with pytest.raises(DynidError, match=f"launch argument {name}:="):
        _argument(parameter, text)


@pytest.mark.parametrize(
    ("overrides", "identification"),
    [
        ({}, "gravity_identification"),
        ({"identification": "gravity"}, "gravity_identification"),
        ({"identification": "links"}, "link_identification"),
        ({"identification": "load"}, "load_identification"),
    ],
)
def test_only_one_identification_is_started(overrides, identification):
    assert list_executables("identify", **overrides) == ["excitation", "recorder", identification]


@pytest.mark.parametrize("name", [*NODES, "demo", "guide", "two_arms"])
def test_unknown_argument_is_refused(name):
    with pytest.raises(DynidError, match=r"launch argument scal:=0\.2 is not known") as error:
        list_nodes(name, scal="0.2")
    assert "\n" not in str(error.value)
    assert "scale" not in load_arguments(name) or "did you mean scale" in str(error.value)


def run_launch(file: Path, command: list[str], monkeypatch, *overrides: str) -> int:
    """Return the exit code of `ros2 launch`, without starting processes."""
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.setattr("launch_ros.actions.Node.execute", lambda *_: None)
    service = LaunchService(argv=list(overrides), noninteractive=True)
    pairs = [word.split(":=") for word in overrides]
    service.include_launch_description(LaunchDescription([IncludeLaunchDescription(str(file), launch_arguments=pairs)]))
    return service.run()


@pytest.mark.parametrize(("argument", "code"), [("scal:=0.2", 1), ("scale:=0.2", 0)])
def test_ros2_launch_refuses_unknown_arguments(argument, code, monkeypatch):
    file = LAUNCH / "gravity_compensation.launch.py"
    command = ["ros2", "launch", "dynid_ros", file.name, argument]
    assert run_launch(file, command, monkeypatch, argument) == code


def test_arguments_of_an_including_file_are_allowed(tmp_path, monkeypatch):
    messages: list[str] = []
    monkeypatch.setattr(LogInfo, "execute", lambda self, _: messages.append("".join(part.text for part in self.msg)))
    file = tmp_path / "bringup.launch.py"
    file.write_text(
        "from launch import LaunchDescription\nfrom launch.actions import IncludeLaunchDescription\n"
        "def generate_launch_description():\n"
        f"    return LaunchDescription([IncludeLaunchDescription({str(LAUNCH / 'gravity_compensation.launch.py')!r},\n"
        "        launch_arguments=[('scal', '0.2')])])\n",
        encoding="utf-8",
    )
    assert run_launch(file, ["ros2", "launch", str(file)], monkeypatch, "robot_ip:=10.0.0.1") == 0
    assert messages == [
        "launch argument scal is none of gravity_compensation.launch.py; if it is meant for it, it is scale"
    ]


@pytest.mark.parametrize("name", ["record", "gravity_compensation", "controller_stack"])
def test_nodes_start_automatically(name):
    assert read_default(load_arguments(name)["autostart"]) == "true"


def test_simulated_arm_can_be_ros2_control_hardware():
    assert list_executables("simulate") == ["simulator"]
    overrides = {"namespace": "left", "use_sim_time": "true", "log_level": "debug"}
    simulator, manager, *spawners = list_nodes("simulate", controller="ros2_control", **overrides)
    assert manager.node_executable == "ros2_control_node"
    assert [node.node_executable for node in spawners] == ["spawner", "spawner"]
    for node in (simulator, manager, *spawners):
        assert node._Node__node_namespace == "left"
        assert read_command_line(node)[read_command_line(node).index("--log-level") + 1] == "debug"
    for node in (simulator, manager):
        assert read_parameters(prepare(node))["use_sim_time"] is True


def test_demo_is_started_by_its_command(tmp_path):
    """The command chooses the ROS domain."""
    (process,) = list_nodes("demo", output=str(tmp_path), acts="gravity", domain="")
    command = ["".join(part.text for part in word) for word in process.cmd]
    assert command[1:] == ["-m", "dynid_ros", "demo", "--output", str(tmp_path), "--acts", "gravity"]


@pytest.mark.parametrize("name", NODES)
def test_nodes_start_in_the_given_namespace(name):
    (node, *_) = list_nodes(name, namespace="left")
    assert node._Node__node_namespace == "left"


@pytest.mark.parametrize("name", NODES)
def test_nodes_start_in_the_namespace_of_the_including_file(name):
    for node in list_nodes(name):
        assert prepare(node, "/left").expanded_node_namespace == "/left"


def test_arguments_override_the_params_file_and_package_defaults(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/**:\n  ros__parameters: {scale: [0.5], ramp_time: 7.0}\n")
    overrides = {"scale": "0.2", "params_file": str(file), "use_sim_time": "true", "log_level": "debug"}
    (node,) = list_nodes("gravity_compensation", **overrides)
    parameters = read_parameters(prepare(node))
    assert (parameters["scale"], parameters["ramp_time"], parameters["use_sim_time"]) == ((0.2,), 7.0, True)
    assert parameters["torque_limits"], "the value comes from the file of the package"
    assert read_command_line(node)[read_command_line(node).index("--log-level") + 1] == "debug"


def test_missing_params_file_is_named():
    with pytest.raises(DynidError, match=r"params_file:=nowhere\.yaml: there is no such file"):
        list_nodes("identify", params_file="nowhere.yaml")


def test_unused_section_of_a_params_file_is_named(tmp_path):
    file = tmp_path / "mine.yaml"
    sections = ("recoder", "/**", "/left/recorder", "/**/excitation", "/left/controller_manager")
    file.write_text(
        "".join(f"{name}:\n  ros__parameters: {{a: 1}}\n" for name in sections)
        + "left:\n  ns:\n    recorder: {ros__parameters: {a: 1}}\n    excitaton: {ros__parameters: {a: 1}}\n"
    )
    messages = [
        "".join(part.text for part in action.msg) for action in list_nodes("record", params_file=str(file))[:-1]
    ]
    assert [line.split("'")[1] for line in messages] == ["recoder", "/left/controller_manager", "left/ns/excitaton"]
    assert all(str(file) in line and "recorder, " in line for line in messages)


@pytest.mark.parametrize("text", ["- 1", "a: [", ""])
def test_invalid_params_file_is_named(tmp_path, text):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(DynidError, match=r"params_file:=.*mine\.yaml: ") as error:
        list_nodes("record", params_file=str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "text"), [("use_sim_time", "maybe"), ("log_level", "loud")])
def test_invalid_common_arguments_are_refused(name, text):
    with pytest.raises(Exception, match=f"(?s){name}.*{text}"):
        list_nodes("record", **{name: text})


@pytest.mark.parametrize(("code", "is_reported"), [(0, False), (-9, True), (1, True)])
def test_dead_node_is_named_and_not_restarted(code, is_reported):
    (node,) = list_nodes("gravity_compensation")
    event = ProcessExited(
        returncode=code, action=node, name="gravity_compensation-1", cmd=[], cwd=None, env=None, pid=1
    )
    action = _report_death(event, LaunchContext())
    assert bool(action) == is_reported
    assert not node._ExecuteLocal__respawn


def test_effort_controller_is_loaded_with_the_joints_of_the_model(tmp_path):
    model = str(demo_arm_model.write(tmp_path / "identified.yaml"))
    compensation, spawner = list_nodes(
        "controller_stack", spawn="true", route="effort", model_file=model, namespace="left"
    )
    assert (compensation.node_executable, spawner.node_executable) == ("gravity_compensation", "spawner")
    assert spawner._Node__node_namespace == "left"
    overrides = read_command_line(spawner)
    assert "forward_effort_controller" in overrides
    assert "--inactive" in overrides
    file = Path(overrides[overrides.index("--param-file") + 1])
    section = yaml.safe_load(file.read_text())["/**"]["forward_effort_controller"]["ros__parameters"]
    assert section["joints"] == yaml.safe_load(Path(model).read_text())["robot"]["joints"]
    assert file.is_absolute()


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"route": "trajectory", "model_file": "m.yaml"}, "route trajectory"),
        ({"route": "effort"}, "model_file"),
        ({"route": "effort", "model_file": "nowhere.yaml"}, "nowhere.yaml"),
    ],
)
def test_invalid_spawn_arguments_are_refused(overrides, expected):
    with pytest.raises(DynidError, match=expected):
        list_nodes("controller_stack", spawn="true", **overrides)

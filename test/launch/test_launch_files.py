"""Each launch file loads; its arguments are those that matter, and reach the nodes on top of their files."""

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


OWN = {
    "identify": {"identification", "speed_fraction", "travel_speed_fraction", "motion_state_topic"},
    "gravity_compensation": {"autostart"},
    "controller_stack": {"route", "autostart", "spawn"},
    "external_torque": {"false_alarms_per_hour", "contact_free_recording"},
    "record": {"output_folder", "autostart"},
    "simulate": {"controller", "controllers_file"},
}
COMMON = {"namespace", "use_sim_time", "log_level", "params_file"}


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


def prepared(node, namespace: str = ""):
    """The node as it is just before it is started, where the launch file is included in `namespace`."""
    context = LaunchContext()
    context.launch_configurations["ros_namespace"] = namespace
    node._perform_substitutions(context)
    return node


def values(node) -> dict:
    """Parameters of a prepared node, those of later files in place of those of earlier ones."""
    found: dict = {}
    for path, is_file in node._Node__expanded_parameter_arguments:
        assert is_file
        for section in yaml.unsafe_load(Path(path).read_text(encoding="utf-8")).values():  # launch writes tuples
            found |= section.get("ros__parameters", {})
    return found


def words(node) -> list[str]:
    """Of its command line, but for what is known only when it is started."""
    return ["".join(part.perform(None) for part in word if hasattr(part, "text")) for word in node.cmd]


def default(argument) -> str:
    return "".join(part.text for part in argument.default_value)


def test_these_are_all():
    assert {path.name.removesuffix(".launch.py") for path in LAUNCH.glob("*")} == {*NODES, "demo", "guide", "two_arms"}


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_arguments_are_those_that_matter(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    found = arguments(name)
    parameters = {parameter.name for table in tables for parameter in table}
    assert set(found) == COMMON | OWN.get(name, set()) | (set(ARGUMENTS) & parameters)
    assert all(argument.description for argument in found.values())
    assert len(ARGUMENTS) + len({"identification", "route"}) == 10


@pytest.mark.parametrize(("name", "nodes"), NODES.items())
def test_values_of_every_type_are_taken(name, nodes):
    tables = [importlib.import_module(module_of(node)).PARAMETERS for node in nodes]
    offered = set(arguments(name)) - {"controller"}
    given = {row.name: yaml.safe_dump(row.default) for table in tables for row in table if row.name in offered}
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


@pytest.mark.parametrize("name", [*NODES, "demo", "guide", "two_arms"])
def test_an_argument_that_is_not_known_is_refused(name):
    with pytest.raises(DynidError, match=r"launch argument scal:=0\.2 is not known") as refused:
        nodes_of(name, scal="0.2")
    assert "\n" not in str(refused.value)
    assert "scale" not in arguments(name) or "did you mean scale" in str(refused.value)


def launched(file: Path, command: list[str], monkeypatch, *given: str) -> int:
    """Exit code of `ros2 launch`, which starts no process here."""
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.setattr("launch_ros.actions.Node.execute", lambda *_: None)
    service = LaunchService(argv=list(given), noninteractive=True)
    pairs = [word.split(":=") for word in given]
    service.include_launch_description(LaunchDescription([IncludeLaunchDescription(str(file), launch_arguments=pairs)]))
    return service.run()


@pytest.mark.parametrize(("argument", "code"), [("scal:=0.2", 1), ("scale:=0.2", 0)])
def test_ros2_launch_refuses_what_is_not_known(argument, code, monkeypatch):
    file = LAUNCH / "gravity_compensation.launch.py"
    command = ["ros2", "launch", "dynid_ros", file.name, argument]
    assert launched(file, command, monkeypatch, argument) == code


def test_arguments_of_an_including_file_are_its_own(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(LogInfo, "execute", lambda self, _: said.append("".join(part.text for part in self.msg)))
    file = tmp_path / "bringup.launch.py"
    file.write_text(
        "from launch import LaunchDescription\nfrom launch.actions import IncludeLaunchDescription\n"
        "def generate_launch_description():\n"
        f"    return LaunchDescription([IncludeLaunchDescription({str(LAUNCH / 'gravity_compensation.launch.py')!r},\n"
        "        launch_arguments=[('scal', '0.2')])])\n",
        encoding="utf-8",
    )
    assert launched(file, ["ros2", "launch", str(file)], monkeypatch, "robot_ip:=10.0.0.1") == 0
    assert said == [
        "launch argument scal is none of gravity_compensation.launch.py; if it is meant for it, it is scale"
    ]


@pytest.mark.parametrize("name", ["record", "gravity_compensation", "controller_stack"])
def test_node_starts_to_work_without_a_service_call(name):
    assert default(arguments(name)["autostart"]) == "true"


def test_the_simulated_arm_may_be_hardware_of_real_controllers():
    assert started("simulate") == ["simulator"]
    given = {"namespace": "left", "use_sim_time": "true", "log_level": "debug"}
    simulator, manager, *spawners = nodes_of("simulate", controller="ros2_control", **given)
    assert manager.node_executable == "ros2_control_node"
    assert [node.node_executable for node in spawners] == ["spawner", "spawner"]
    for node in (simulator, manager, *spawners):
        assert node._Node__node_namespace == "left"
        assert words(node)[words(node).index("--log-level") + 1] == "debug"
    for node in (simulator, manager):
        assert values(prepared(node))["use_sim_time"] is True


def test_demo_is_played_by_the_command_which_chooses_its_domain(tmp_path):
    """See `test_start.py` for the domain."""
    (process,) = nodes_of("demo", output=str(tmp_path), acts="gravity", domain="")
    command = ["".join(part.text for part in word) for word in process.cmd]
    assert command[1:] == ["-m", "dynid_ros", "demo", "--output", str(tmp_path), "--acts", "gravity"]


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_put_in_a_namespace(name):
    (node, *_) = nodes_of(name, namespace="left")
    assert node._Node__node_namespace == "left"


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_in_the_namespace_of_whoever_includes_the_file(name):
    for node in nodes_of(name):
        assert prepared(node, "/left").expanded_node_namespace == "/left"


def test_arguments_come_before_the_params_file_and_that_before_the_packages(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/**:\n  ros__parameters: {scale: [0.5], ramp_time: 7.0}\n")
    given = {"scale": "0.2", "params_file": str(file), "use_sim_time": "true", "log_level": "debug"}
    (node,) = nodes_of("gravity_compensation", **given)
    found = values(prepared(node))
    assert (found["scale"], found["ramp_time"], found["use_sim_time"]) == ((0.2,), 7.0, True)
    assert found["torque_limits"], "from the package's file"
    assert words(node)[words(node).index("--log-level") + 1] == "debug"


def test_a_params_file_that_is_not_there_is_named():
    with pytest.raises(DynidError, match=r"params_file:=nowhere\.yaml: there is no such file"):
        nodes_of("identify", params_file="nowhere.yaml")


def test_a_section_that_no_node_reads_is_named(tmp_path):
    file = tmp_path / "mine.yaml"
    sections = ("recoder", "/**", "/left/recorder", "/**/excitation", "/left/controller_manager")
    file.write_text(
        "".join(f"{name}:\n  ros__parameters: {{a: 1}}\n" for name in sections)
        + "left:\n  ns:\n    recorder: {ros__parameters: {a: 1}}\n    excitaton: {ros__parameters: {a: 1}}\n"
    )
    said = ["".join(part.text for part in action.msg) for action in nodes_of("record", params_file=str(file))[:-1]]
    assert [line.split("'")[1] for line in said] == ["recoder", "/left/controller_manager", "left/ns/excitaton"]
    assert all(str(file) in line and "recorder, " in line for line in said)


@pytest.mark.parametrize("text", ["- 1", "a: [", ""])
def test_a_params_file_that_is_none_is_named(tmp_path, text):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(DynidError, match=r"params_file:=.*mine\.yaml: ") as error:
        nodes_of("record", params_file=str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "text"), [("use_sim_time", "maybe"), ("log_level", "loud")])
def test_what_all_launch_files_have_takes_what_others_take(name, text):
    with pytest.raises(Exception, match=f"(?s){name}.*{text}"):
        nodes_of("record", **{name: text})


@pytest.mark.parametrize(("code", "said"), [(0, False), (-9, True), (1, True)])
def test_a_node_that_dies_is_named_and_not_started_again(code, said):
    (node,) = nodes_of("gravity_compensation")
    event = ProcessExited(
        returncode=code, action=node, name="gravity_compensation-1", cmd=[], cwd=None, env=None, pid=1
    )
    action = _report_death(event, LaunchContext())
    assert bool(action) == said
    assert not node._ExecuteLocal__respawn


def test_the_effort_controller_is_loaded_with_the_joints_of_the_model(tmp_path):
    model = str(demo_arm_model.write(tmp_path / "identified.yaml"))
    compensation, spawner = nodes_of(
        "controller_stack", spawn="true", route="effort", model_file=model, namespace="left"
    )
    assert (compensation.node_executable, spawner.node_executable) == ("gravity_compensation", "spawner")
    assert spawner._Node__node_namespace == "left"
    given = words(spawner)
    assert "forward_effort_controller" in given
    assert "--inactive" in given
    file = Path(given[given.index("--param-file") + 1])
    section = yaml.safe_load(file.read_text())["/**"]["forward_effort_controller"]["ros__parameters"]
    assert section["joints"] == yaml.safe_load(Path(model).read_text())["robot"]["joints"]
    assert file.is_absolute()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"route": "trajectory", "model_file": "m.yaml"}, "route trajectory"),
        ({"route": "effort"}, "model_file"),
        ({"route": "effort", "model_file": "nowhere.yaml"}, "nowhere.yaml"),
    ],
)
def test_a_controller_that_cannot_be_loaded_is_named(given, expected):
    with pytest.raises(DynidError, match=expected):
        nodes_of("controller_stack", spawn="true", **given)

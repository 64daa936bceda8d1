"""Test the diagnostics of all nodes with one simulated arm, first without and then with faults."""

import importlib
import math
import re
import threading
import time
from collections import defaultdict
from xml.etree import ElementTree

import demo_arm_model
import pytest
import rclpy
import torque_sensor_bench as bench
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from helpers.node_threads import SpinThread, assert_refused
from helpers.waiting import START_TIMEOUT_S as TIMEOUT
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from test_house import nodes

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import share_path
from dynid_ros.nodes import module_of
from dynid_ros.nodes.compensation.controller_state import ForwardedEffort
from dynid_ros.nodes.shared.diagnostics import STATUS_PERIOD_S, Diagnostics

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR
NODES = [name for name in nodes() if name != "demo"]
IDENTIFYING = [name for name in NODES if name.endswith(("identification", "calibration"))]
STATE_DEPENDENT = ["excitation", "gravity_compensation", "gravity_markers", "torque_sensor_calibration: drift"]
"""Statuses that need joint states all the time."""
ARM = bench.aslant_robot()


def build_parameters(folder):
    """Return the parameters of all nodes, as on a command line; `node:parameter` belongs to one node."""
    return {
        "robot_description": share_path("config/demo_arm.urdf"),
        "gravity": str(list(bench.GRAVITY)),
        "effort_convention": "torque",
        "model_file": demo_arm_model.write(folder / "identified.yaml", ARM, links=True),
        "acceleration_limits": "[2.0]",
        "rate": 50.0,
        "gravity_markers:rate": 20.0,
        "load_identification:model_file": "''",
        "output_folder": folder / "bags",
        "recorder:joint_states_topic": "/states_of_nobody",
        "effort_topic": "/forward_effort_controller/commands",
        "gravity_compensation:command_topic": "/forward_effort_controller/commands",
        "gravity_compensation:autostart": True,
        "unchecked_controller": True,
        # otherwise the compensation warns of a position controller that restores its last command
        "set_last_command_interface_value_as_state_on_activation": False,
        "interpolate_from_desired_state": True,  # otherwise the excitation warns of jerking stops
        "observe": True,
        # otherwise friction and sensor errors at standstill look like contact to a model without them
        "simulator:coulomb_friction": "[0.0]",
        "simulator:viscous_friction": "[0.0]",
        "simulator:torque_offset": "[0.0]",
        "simulator:torque_noise": "[0.0]",
    }


class Robot:
    """Nodes of all kinds in one thread, and a listener."""

    def __init__(self, folder):
        arguments = [part for name, value in build_parameters(folder).items() for part in ("-p", f"{name}:={value}")]
        rclpy.init(args=["--ros-args", *arguments])
        self.nodes = {}
        for name in ["simulator", *NODES]:
            if name not in self.nodes:
                self.nodes[name] = make_node(name)
        self.listener = rclpy.create_node("listener", use_global_arguments=False)
        self.statuses = defaultdict(list)
        self.listener.create_subscription(DiagnosticArray, "/diagnostics", self.on_diagnostics, 100)
        self.thread = SpinThread(*self.nodes.values())

    def on_diagnostics(self, message):
        for status in message.status:
            self.statuses[status.name].append(status)

    def close(self):
        self.thread.close(TIMEOUT)
        for node in [*self.nodes.values(), self.listener]:
            node.destroy_node()
        rclpy.shutdown()

    def spin(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            rclpy.spin_once(self.listener, timeout_sec=0.05)

    def wait_for_status(self, name, condition):
        """Return the next status of a node that fulfils a condition."""
        self.statuses[name].clear()
        deadline = time.monotonic() + TIMEOUT
        while not any(map(condition, self.statuses[name])):
            assert time.monotonic() < deadline, f"{name}: {self.statuses[name][-1:]}"
            rclpy.spin_once(self.listener, timeout_sec=0.05)
        return next(filter(condition, self.statuses[name]))

    def call(self, service):
        client = self.listener.create_client(Trigger, service)
        assert client.wait_for_service(TIMEOUT)
        future = client.call_async(Trigger.Request())
        rclpy.spin_until_future_complete(self.listener, future, timeout_sec=TIMEOUT)
        return future.result()


def make_node(name):
    module = importlib.import_module(module_of(name))
    camel = name.title().replace("_", "")
    classes = [getattr(module, key) for key in (f"{camel}Node", camel) if hasattr(module, key)]
    return classes[0]()


@pytest.fixture(name="robot", scope="module")
def fixture_robot(tmp_path_factory):
    robot = Robot(tmp_path_factory.mktemp("all_nodes"))
    yield robot
    robot.close()


def test_each_node_publishes_at_least_once_a_second(robot):
    for name in NODES:
        robot.wait_for_status(name, lambda status: status.level == OK)
    robot.wait_for_status("recorder", lambda status: status.hardware_id)
    robot.statuses.clear()
    expected = {*NODES, "torque_sensor_calibration: drift"}
    start = time.monotonic()
    while not all(len(robot.statuses[name]) >= 3 for name in expected):
        assert time.monotonic() - start < TIMEOUT  # ten nodes share one thread of a busy computer
        robot.spin(0.1)
    assert STATUS_PERIOD_S <= 0.5
    assert set(robot.statuses) == expected
    for name, statuses in robot.statuses.items():
        for status in statuses:
            assert status.message, name
            assert status.hardware_id == "demo_arm", name
            # a busy computer makes the simulator late, which is a warning
            assert status.level in (OK, WARN), (name, status.message)
            assert status.values, name
            assert all(value.key for value in status.values)


def test_plotjuggler_layout_names_published_values(robot):
    layout = ElementTree.parse(share_path("config/dynid.plotjuggler.xml")).getroot()
    splitters = list(layout.iter("DockSplitter"))
    assert splitters
    for splitter in splitters:
        assert len(splitter) == int(splitter.get("count")) == len(splitter.get("sizes").split(";"))
    names = [curve.get("name") for curve in layout.iter("curve")]
    assert len(names) > 20
    keys = {name: {value.key for value in robot.wait_for_status(name, bool).values} for name in NODES}
    for name in names:
        _, topic, *rest = name.split("/")
        if topic == "diagnostics":  # /diagnostics/<hardware_id>/<name>/<key>
            hardware, node, key = rest
            assert hardware == ARM.name
            assert key in keys[node], name
        elif topic == "joint_states":
            assert rest[0] in ARM.joint_names
            assert rest[1] in JointState.get_fields_and_field_types()
        elif topic == "excitation":
            assert robot.nodes["excitation"]._progress_publisher.topic_name == "/excitation/progress"
            assert rest == ["progress", "data"]
        else:
            assert name.startswith(f"/{ForwardedEffort.CONTROLLER}/{ForwardedEffort.TOPIC}/")
            assert re.fullmatch(r"data\[[0-5]\]", rest[-1])


def test_rviz_file_shows_the_published_markers(robot):
    manager = yaml.safe_load(share_path("config/dynid.rviz").read_text())["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == ARM.base
    displays = {display["Name"]: display for display in manager["Displays"]}
    assert displays["Gravity"]["Topic"]["Value"] == robot.nodes["gravity_markers"]._publisher.topic_name
    assert displays["Arm"]["Description Topic"]["Value"] == "/robot_description"


@pytest.mark.parametrize("name", IDENTIFYING)
def test_failed_identification_is_an_error_status(robot, name):
    answer = robot.call(f"/{name}/identify")
    assert not answer.success
    status = robot.wait_for_status(name, lambda status: status.level == ERROR)
    assert status.message == answer.message


def test_long_identification_publishes_its_progress(robot, monkeypatch):
    node = robot.nodes["gravity_identification"]
    finish = threading.Event()

    def job(*_):
        assert finish.wait(TIMEOUT)
        raise DynidError("nothing was found")

    monkeypatch.setattr(node, "_identify", job)
    client = robot.listener.create_client(Trigger, "/gravity_identification/identify")
    future = client.call_async(Trigger.Request())
    for seconds in (0.0, 1.0):
        robot.wait_for_status(
            "gravity_identification",
            lambda status, least=seconds: (
                status.message.startswith("identifying for") and float(status.message.split()[2]) > least
            ),
        )
    assert_refused(robot.call("/gravity_identification/identify"), "already; wait for its answer")
    finish.set()
    rclpy.spin_until_future_complete(robot.listener, future, timeout_sec=TIMEOUT)
    assert future.result().message == "nothing was found"


def test_recorder_warns_of_missing_joint_states(robot):
    assert robot.call("/recorder/start").success
    status = robot.wait_for_status("recorder", lambda status: status.level == WARN)
    assert "no message on /states_of_nobody for" in status.message
    robot.call("/recorder/stop")


def test_simulator_warns_of_a_refused_command(robot):
    publisher = robot.listener.create_publisher(Float64MultiArray, "/forward_effort_controller/commands", 1)
    while not publisher.get_subscription_count():
        robot.spin(0.05)
    publisher.publish(Float64MultiArray(data=[math.nan]))
    status = robot.wait_for_status("simulator", lambda status: "effort command refused" in status.message)
    assert status.level == WARN


def test_excitation_warns_of_a_missing_controller(robot):
    topic = robot.nodes["simulator"].resolve_topic_name(robot.nodes["simulator"].settings.trajectory_topic)
    subscriptions = [item for item in robot.nodes["simulator"].subscriptions if item.topic_name == topic]
    robot.thread.executor.create_task(robot.nodes["simulator"].destroy_subscription, subscriptions[0])
    status = robot.wait_for_status("excitation", lambda status: status.level == WARN)
    assert f"no controller listens on '{topic}'" in status.message


def test_silent_joint_states_cause_warnings(robot):
    robot.nodes["simulator"]._joint_states.publish = lambda _message: None
    for name in STATE_DEPENDENT:
        status = robot.wait_for_status(
            name, lambda status: status.level in (WARN, ERROR) and "joint_states" in status.message
        )
        assert status.message


def test_exception_in_a_status_is_an_error_status(robot):
    def status():
        raise ZeroDivisionError("of a rate")

    diagnostics = Diagnostics(robot.listener, status, "broken")
    diagnostics.publish()
    result = robot.wait_for_status("listener: broken", lambda status: status.level == ERROR)
    assert result.message == "the status is not known: ZeroDivisionError: of a rate"

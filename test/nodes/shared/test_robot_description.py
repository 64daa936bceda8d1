"""Test the robot description that nodes read from a parameter or a topic, and its groups."""

import signal
import threading
import time
from operator import attrgetter
from types import SimpleNamespace

import planar_arm
import pytest
import rclpy
from helpers.excitation_bench import PARAMETERS
from helpers.node_process import NodeProcess
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.parameter import Parameter
from std_msgs.msg import String

from dynid_ros.errors import DynidError
from dynid_ros.nodes.excitation import ExcitationNode
from dynid_ros.nodes.gravity_markers import GravityMarkers
from dynid_ros.nodes.shared import robot_description
from dynid_ros.nodes.shared.diagnostics import robot_name
from dynid_ros.nodes.shared.robot_description import checked_description, with_group_ends
from dynid_ros.nodes.shared.topics import LATCHED


def test_robot_name_is_read_from_the_urdf():
    assert robot_name(planar_arm.urdf()) == "planar"
    assert robot_name('<?xml version="1.0"?><robot xmlns:xacro="x"\n name = \'a "b"\' version="1">') == 'a "b"'
    assert robot_name("<robot><link name='l'/></robot>") == ""


@pytest.mark.parametrize("text", ["<robot name= " * 200_000, "<robot a" * 200_000, "<robot " + " name" * 200_000])
def test_search_for_a_missing_robot_name_is_fast(text):
    start = time.process_time()
    assert robot_name(text) == ""
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("text", ["/etc/passwd", "arm.urdf", "", " \n"])
def test_description_from_a_topic_is_never_a_path(text):
    with pytest.raises(DynidError, match=r"topic '/robot_description' has .*, which is no URDF"):
        checked_description(text, "/robot_description")
    assert checked_description(planar_arm.urdf(), "/robot_description") == planar_arm.urdf()


SRDF = '<robot name="planar"><group name="upper"><chain base_link="link_1" tip_link="link_3"/></group></robot>'


@pytest.mark.parametrize(("make_node", "arm"), [(ExcitationNode, "_robot"), (GravityMarkers, "view.robot")])
def test_srdf_group_sets_base_and_tip(ros, tmp_path, make_node, arm):
    path = tmp_path / "arm.srdf"
    path.write_text(SRDF)
    values = dict(PARAMETERS) if make_node is ExcitationNode else {}
    values |= {"robot_description": planar_arm.urdf(), "srdf_file": str(path), "group": "upper"}
    values.pop("controller_joints", None)
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = make_node(parameter_overrides=overrides)
    robot = attrgetter(arm)(node)
    assert (robot.base, robot.tip, robot.n_joints) == ("link_1", "link_3", 2)
    node.destroy_node()
    with pytest.raises(DynidError, match="leave out"):
        make_node(parameter_overrides=[*overrides, Parameter("tip_link", value="link_2")])


def test_srdf_group_sets_the_ends_of_a_model_file(tmp_path):
    path = tmp_path / "arm.srdf"
    path.write_text(SRDF)
    settings = SimpleNamespace(base_link="", tip_link="", srdf_file=str(path), group="upper", rate=5.0)
    arm = with_group_ends(settings, planar_arm.urdf())
    assert (arm.base_link, arm.tip_link, arm.rate) == ("link_1", "link_3", 5.0)
    assert with_group_ends(arm, planar_arm.urdf()) is arm
    assert settings.base_link == ""


@pytest.mark.parametrize("make_node", [ExcitationNode, GravityMarkers])
def test_node_without_urdf_waits_and_reports_it(ros, monkeypatch, capfd, make_node):
    start = time.monotonic()
    hours = SimpleNamespace(monotonic=lambda: start + 3600.0 * (time.monotonic() - start), sleep=time.sleep)
    monkeypatch.setattr(robot_description, "time", hours)
    values = PARAMETERS if make_node is ExcitationNode else {}
    overrides = [Parameter(name, value=value) for name, value in (values | {"robot_description": ""}).items()]
    nodes = []
    thread = threading.Thread(target=lambda: nodes.append(make_node(parameter_overrides=overrides)), daemon=True)
    thread.start()
    log = ["waiting: no URDF on topic '/robot_description' yet; start robot_state_publisher or set parameter"]
    wait(lambda: log.append(log[-1] + capfd.readouterr().err) or log[-1].count(log[0]) > 1, START_TIMEOUT_S)
    assert thread.is_alive()
    publisher = rclpy.create_node("state_publisher").create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=planar_arm.urdf()))
    thread.join(START_TIMEOUT_S)
    nodes[0].destroy_node()


@pytest.mark.parametrize("name", ["excitation", "gravity_identification"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_node_without_urdf_ends_on_a_signal(ros, name, number):
    with NodeProcess(name, {"effort_convention": "torque"}) as process:
        observer = rclpy.create_node("observer")
        wait(lambda: name in observer.get_node_names(), START_TIMEOUT_S)
        time.sleep(0.2)
        process.send_signal(number)
        assert process.wait() == 0
        assert "Traceback" not in process.output

"""Test the node `gravity_compensation`: its life cycle, loads, link encoders and the end of its process."""

import math
import signal
import time

import planar_arm
import pytest
import rclpy
from geometry_msgs.msg import InertiaStamped
from helpers.compensation_bench import (
    EFFORT_LIMIT,
    FAULT_RAMP_S,
    LATCHED,
    LONG_TIMEOUT_S,
    POSE,
    TIMEOUT_S,
    Bench,
    Robot,
    start_process,
)
from helpers.node_threads import NodeThreads, assert_refused
from helpers.waiting import START_TIMEOUT_S, wait
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import GetState
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError
from dynid_ros.nodes.compensation import configuration as model
from dynid_ros.nodes.compensation.configuration import read_arm

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(model_file, keep):
    """Return a function that starts a bench."""

    def make(**arguments):
        return keep(Bench(arguments.pop("model_file", model_file), **arguments))

    return make


def test_node_configures_enables_and_ends_at_zero(bench):
    bench = bench()
    bench.activate()
    wait(lambda: bench.robot.publisher.get_subscription_count() and bench.node._loop.compensator.position)
    assert bench.state == "disabled"
    assert bench.robot.commands == []
    assert bench.enable().success
    wait(lambda: bench.state == "active")
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))
    sizes = [abs(torque[1]) for torque in bench.torques()]
    assert sizes[0] < 0.2 * sizes[-1]
    assert sizes == sorted(sizes)
    bench.robot.position[1] += 0.1
    bench.wait_for_torque(planar_arm.gravity_torque(bench.robot.position))
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    bench.check_fade(planar_arm.gravity_torque(bench.robot.position))


def test_each_joint_state_causes_one_command(bench):
    bench = bench().run()
    bench.robot.silent = True
    time.sleep(0.05)
    before = len(bench.robot.commands)
    for _ in range(10):
        bench.robot.silent = False
        bench.robot.publish()
        bench.robot.silent = True
        time.sleep(0.02)
    wait(lambda: len(bench.robot.commands) >= before + 10)
    assert len(bench.robot.commands) == before + 10


def test_trajectory_output_holds_the_pose_of_enable(bench):
    bench = bench(
        message=JointTrajectory,
        topic="/joint_trajectory_controller/joint_trajectory",
        output="trajectory",
        controller_joints=["joint_2", "joint_3", "joint_1"],
    ).run()
    bench.robot.position[1] += 0.1
    first, second, third = planar_arm.gravity_torque(bench.robot.position)

    def point():
        return bench.robot.commands[-1][1].points[0]

    wait(lambda: list(point().effort) == pytest.approx([second, third, first], abs=1e-9))
    assert list(point().positions) == [POSE[1], POSE[2], POSE[0]]
    assert bench.robot.commands[-1][1].joint_names == ["joint_2", "joint_3", "joint_1"]
    assert point().time_from_start.nanosec == point().time_from_start.sec == 0
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    wait(lambda: list(point().effort) == [0.0, 0.0, 0.0])


def test_services_in_the_wrong_state_name_the_next_step(bench):
    bench = bench()
    for call, hint in ((bench.enable, "configure first"), (bench.reload, "configure first")):
        assert_refused(call(), hint)
    assert not bench.transition(Transition.TRANSITION_ACTIVATE), "not configured yet"
    assert bench.configure()
    assert not bench.configure(), "configured already"
    assert_refused(bench.enable(), "activate")
    assert bench.call(GetState, "get_state", GetState.Request()).current_state.label == "inactive"


def test_failed_configuration_is_repeated_at_enable(bench, model_file, monkeypatch):
    content = model_file.read_text()
    model_file.write_text("none")
    bench = bench()
    assert not bench.configure()
    for call in (bench.enable, bench.reload, bench.enable):
        assert_refused(call(), str(model_file), "configure again: ros2 lifecycle set /gravity_compensation configure")
    model_file.write_text(content)
    monkeypatch.setattr("dynid_ros.nodes.gravity_compensation.make_loop", lambda *_, **__: 1 / 0)
    assert not bench.configure()
    assert "unexpected ZeroDivisionError" in bench.enable().message
    monkeypatch.undo()
    bench.activate()
    bench.enable_until_active()


def test_enable_names_what_autostart_waits_for(bench):
    bench = bench(robot_description="", autostart=True)
    assert "no URDF on the topic robot_description yet" in bench.enable().message


def test_slow_reload_does_not_delay_commands(bench, monkeypatch):
    def read_slowly(*arguments):
        count = len(bench.robot.commands)
        wait(lambda: len(bench.robot.commands) > count + 30)
        return read_arm(*arguments)

    bench = bench().run()
    monkeypatch.setattr(model, "read_arm", read_slowly)
    assert bench.reload().success
    assert bench.state == "active"


@pytest.mark.parametrize("text", ["format: dynid/1\nrobot: {", "!!python/object/apply:os.getcwd []", "format: other"])
def test_failed_reload_keeps_the_model(bench, model_file, text):
    bench = bench().run()
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))
    model_file.write_text(text)
    assert_refused(bench.reload(), "the model in force stays", "identified.yaml")
    time.sleep(0.05)
    assert bench.state == "active"
    assert bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)


LOAD = {"mass": 2.0, "center": (0.1, 0.0, 0.0), "frame": "link_3"}


def loaded_torque(q, mass=2.0, center=(0.1, 0.0, 0.0), **_):
    """Return gravity torque plus the load's moments about joints 2 and 3, by a closed form."""
    moment_3 = -planar_arm.G * mass * center[0] * math.cos(q[1] + q[2])
    moment_2 = moment_3 - planar_arm.G * mass * planar_arm.LENGTH * math.cos(q[1])
    return [a + b for a, b in zip(planar_arm.gravity_torque(q), (0.0, moment_2, moment_3), strict=True)]


def build_load(mass=2.0, center=(0.1, 0.0, 0.0), frame="link_3", stamp=None):
    message = InertiaStamped()
    message.header.frame_id = frame
    message.inertia.m = mass
    message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = center
    if stamp is not None:
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(int(stamp * 1e9), 10**9)
    return message


def test_load_outlives_its_publisher_and_a_new_configuration(bench):
    bench = bench()
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    publisher.publish(build_load())
    bench.run()
    bench.wait_for_torque(loaded_torque(POSE))
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    assert bench.transition(Transition.TRANSITION_CLEANUP)
    bench.run()
    bench.wait_for_torque(loaded_torque(POSE))
    bench.robot.destroy_publisher(publisher)
    bench.robot.position[1] += 0.1
    time.sleep(0.3)
    bench.wait_for_torque(loaded_torque(bench.robot.position))


REFUSED = {
    "its mass is -1.0 kg": {"mass": -1.0},
    "its mass is nan kg": {"mass": math.nan},
    "its mass is 6 kg; at most 5 kg are believed": {"mass": 6.0},
    "its centre of mass is [100.0, 0.0, 0.0] m": {"center": (100.0, 0.0, 0.0)},
    "its frame 'link_2' is not fixed to the last link; expected link_3": {"frame": "link_2"},
    "its frame '' is not fixed": {"frame": ""},
    "s in the future": {"stamp": 2.1e9},
    "older than that of the load in force": {"stamp": 1.0},
    "its stamp is -1.0 s": {"stamp": -1.0},
}


def test_implausible_load_is_refused(bench):
    bench = bench().run()
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    now = bench.robot.get_clock().now().nanoseconds * 1e-9
    publisher.publish(build_load(stamp=now))
    bench.wait_for_torque(loaded_torque(POSE))
    load = bench.node._loop.load
    for number, (reason, change) in enumerate(REFUSED.items(), start=1):
        publisher.publish(build_load(**change))
        wait(lambda number=number: load.refused == number)
        assert reason in load.problem
        assert "the one in force stays (2.000 kg at (100, 0, 0) mm from link_3)" in load.problem
    wait(lambda: any(load.problem in status.message for status in bench.robot.diagnostics))
    assert bench.torque == pytest.approx(loaded_torque(POSE), abs=1e-9)
    publisher.publish(build_load(mass=1.0, stamp=now))
    bench.wait_for_torque(loaded_torque(POSE, mass=1.0))
    assert load.problem == ""


def test_load_of_the_file_holds_until_another_is_published(bench, model_file):
    planar_arm.write(model_file, planar_arm.document() | {"load": LOAD | {"center": [0.1, 0.0, 0.0]}})
    bench = bench().run()
    bench.wait_for_torque(loaded_torque(POSE))
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    publisher.publish(build_load(mass=3.0))
    bench.wait_for_torque(loaded_torque(POSE, mass=3.0))
    assert bench.reload().success
    bench.wait_for_torque(loaded_torque(POSE))
    publisher.publish(build_load(mass=3.0))
    bench.wait_for_torque(loaded_torque(POSE, mass=3.0))
    planar_arm.write(model_file, planar_arm.document())
    assert bench.reload().success, "a file without load keeps the load in force"
    time.sleep(0.3)
    assert bench.torque == pytest.approx(loaded_torque(POSE, mass=3.0), abs=1e-9)


STIFFNESS_NM_RAD = 200.0


def build_flexible_document():
    springs = {name: {"stiffness": STIFFNESS_NM_RAD} for name in planar_arm.JOINTS[1:]}
    return planar_arm.document() | {"flexible_joints": springs}


def sagging_torque(motors):
    """Return the gravity torque of links on springs, by fixed-point iteration."""
    torque = [0.0, 0.0, 0.0]
    for _ in range(200):
        torque = planar_arm.gravity_torque([q - t / STIFFNESS_NM_RAD for q, t in zip(motors, torque, strict=True)])
    return torque


class LinkEncoders:
    """Publisher of the links' positions at 100 Hz by the robot's node."""

    def __init__(self, robot, position):
        self.position = position
        self.silent = False
        self._names = ["finger", *planar_arm.JOINTS[::-1]]
        self._publisher = robot.create_publisher(JointState, "link_states", 10)
        self._clock = robot.get_clock()
        robot.create_timer(0.01, self._publish)

    def _publish(self):
        if not self.silent:
            message = JointState(name=self._names, position=[0.0, *map(float, self.position[::-1])])
            message.header.stamp = self._clock.now().to_msg()
            self._publisher.publish(message)


def read_links_status(bench):
    return next(value.value for value in bench.robot.diagnostics[-1].values if value.key == "links")


@pytest.mark.parametrize("springs", [True, False])
def test_measured_links_are_used_and_springs_when_they_are_silent(bench, model_file, springs):
    if springs:
        planar_arm.write(model_file, build_flexible_document())
    bench = bench(link_states_topic="link_states", timeout=TIMEOUT_S)
    links = [POSE[0], POSE[1] + 0.05, POSE[2] - 0.03]
    encoders = LinkEncoders(bench.robot, links)
    bench.run()
    bench.wait_for_torque(planar_arm.gravity_torque(links))
    wait(lambda: bench.robot.diagnostics and read_links_status(bench) == "measured")
    encoders.silent = True
    fallback_torque = sagging_torque(POSE) if springs else planar_arm.gravity_torque(POSE)
    wait(lambda: bench.torque == pytest.approx(fallback_torque, abs=1e-4))
    wait(lambda: "links not measured: link_states: no new state of the links" in bench.robot.diagnostics[-1].message)
    assert bench.state == "active"
    encoders.silent = False
    bench.wait_for_torque(planar_arm.gravity_torque(links))
    wait(lambda: read_links_status(bench) == "measured")


@pytest.mark.parametrize(
    ("joint", "position", "message"),
    [
        (1, POSE[1] + 0.2, "link of joint 'joint_2' is +0.2000 from its motor"),
        (1, POSE[1] - 0.2, "link of joint 'joint_2' is -0.2000 from its motor"),
        (2, math.nan, "position of joint 'joint_3' is nan"),
    ],
)
def test_implausible_link_positions_are_ignored(bench, joint, position, message):
    bench = bench(link_states_topic="link_states")
    encoders = LinkEncoders(bench.robot, [POSE[0], POSE[1] + 0.05, POSE[2]])
    bench.run()
    bench.wait_for_torque(planar_arm.gravity_torque(encoders.position))
    encoders.position[joint] = position
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))
    wait(lambda: any(message in status.message for status in bench.robot.diagnostics))
    assert bench.state == "active"


def test_deactivation_ends_at_zero_and_allows_reconfiguration(bench):
    bench = bench().run()
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.check_fade(planar_arm.gravity_torque(POSE))
    assert bench.state == "inactive"
    assert bench.transition(Transition.TRANSITION_ACTIVATE)
    assert bench.enable().success
    wait(lambda: bench.state == "active")
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    assert bench.transition(Transition.TRANSITION_CLEANUP)
    assert bench.state == "unconfigured"
    bench.run()
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))


def test_gravity_torque_is_published_before_enable(bench):
    bench = bench(scale=[0.5])
    received = []
    bench.robot.create_subscription(JointState, "/gravity_compensation/gravity_torque", received.append, 10)
    bench.activate()
    wait(lambda: received)
    assert list(received[-1].name) == list(planar_arm.JOINTS)
    assert list(received[-1].effort) == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)
    assert received[-1].header.stamp.sec
    assert not bench.robot.commands
    bench.robot.silent = True
    wait(lambda: bench.node._loop.states.heard < time.monotonic() - 0.3)
    bench.node.set_parameters([rclpy.parameter.Parameter("timeout", value=0.2)])
    wait(lambda: bench.node._loop.gravity_torque() is None)


def test_shutdown_from_active_ends_at_zero(bench):
    bench = bench().run()
    assert bench.transition(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    bench.check_fade(planar_arm.gravity_torque(POSE))
    assert bench.state == "finalized"


BAD_CONFIGURATIONS: dict[str, tuple[dict, str]] = {
    "no model": ({"model_file": ""}, "model_file is empty"),
    "other arm": ({"robot_description": planar_arm.urdf(length=0.5)}, "another robot"),
    "no limit": ({"robot_description": planar_arm.urdf(effort=0.0)}, "no torque limit is known"),
    "unknown joint": ({"controller_joints": ["joint_1", "joint_2", "finger"]}, "the model has no joint finger"),
    "joint twice": ({"controller_joints": ["joint_1", "joint_1"]}, "joint_1 more than once"),
    "no description": ({"robot_description": ""}, "no URDF has arrived"),
    "bad path": ({"robot_description": "/nowhere/arm.urdf"}, "'/nowhere/arm.urdf': cannot be read"),
}


@pytest.mark.parametrize("case", BAD_CONFIGURATIONS)
def test_invalid_configuration_is_refused(bench, case, capfd):
    parameters, message = BAD_CONFIGURATIONS[case]
    bench = bench(**parameters)
    assert not bench.configure()
    wait(lambda: bench.state == "unconfigured")
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("scale", [1.0, 3.0, 1.0], "0 to 1.5"),
        ("largest_deflection", 0.0, "above 0"),
        ("fault_ramp_time", 9.0, "above 0, at most 3"),
        ("output", "current", "effort, trajectory or position"),
        ("effort_convention", "amperes", "torque or nothing"),
    ],
)
def test_value_out_of_range_is_refused_at_the_start(bench, name, value, expected):
    with pytest.raises(
        DynidError, match=f"^Parameter '{name}' of node 'gravity_compensation' is .*; expected {expected}$"
    ):
        bench(**{name: value})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_process_at_zero_torque(model_file, tmp_path, number):
    robot = Robot()
    threads = NodeThreads(robot)
    with start_process(model_file, tmp_path, LONG_TIMEOUT_S) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIMEOUT_S)
        node.send_signal(number)
        time.sleep(0.05)
        node.send_signal(number)  # terminal and launch may both send it
        assert node.wait() == 0
        assert "Traceback" not in node.output
    threads.close()
    robot.destroy_node()
    torques = [list(message.data) for _, message in robot.commands]
    assert torques[-1] == [0.0, 0.0, 0.0]
    assert max(abs(torque[1]) for torque in torques) > 0.95 * abs(planar_arm.gravity_torque(POSE)[1])
    robot.watch.check(EFFORT_LIMIT / FAULT_RAMP_S, EFFORT_LIMIT, robot.late)

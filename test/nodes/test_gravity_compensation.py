import math
import signal
import time

import planar_arm
import pytest
import rclpy
from geometry_msgs.msg import InertiaStamped
from helpers.compensation_bench import (
    CALM,
    EFFORT,
    FAULT_RAMP,
    LATCHED,
    POSE,
    TIMEOUT,
    Bench,
    Robot,
    process,
)
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIME, wait
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
    def make(**arguments):
        return keep(Bench(arguments.pop("model_file", model_file), **arguments))

    return make


def test_life_from_configure_to_zero(bench):
    bench = bench()
    bench.activate()
    wait(lambda: bench.robot.publisher.get_subscription_count() and bench.node._loop.compensator.position)
    assert bench.state == "disabled"
    assert bench.robot.commands == []
    assert bench.enable().success
    wait(lambda: bench.state == "active")
    wait(lambda: bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9))
    sizes = [abs(torque[1]) for torque in bench.torques()]
    assert sizes[0] < 0.2 * sizes[-1]
    assert sizes == sorted(sizes)
    bench.robot.position[1] += 0.1
    wait(lambda: bench.torque == pytest.approx(planar_arm.gravity_torque(bench.robot.position), abs=1e-9))
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    bench.check_fade(planar_arm.gravity_torque(bench.robot.position))


def test_every_joint_state_makes_one_command(bench):
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


def test_services_in_the_wrong_state_say_what_to_do(bench):
    bench = bench()
    for call, hint in ((bench.enable, "configure first"), (bench.reload, "configure first")):
        answer = call()
        assert not answer.success
        assert hint in answer.message
    assert not bench.transition(Transition.TRANSITION_ACTIVATE), "not configured yet"
    assert bench.configure()
    assert not bench.configure(), "configured already"
    answer = bench.enable()
    assert not answer.success
    assert "activate" in answer.message
    assert bench.call(GetState, "get_state", GetState.Request()).current_state.label == "inactive"


def test_after_a_failed_configuration_enable_repeats_the_reason(bench, model_file, monkeypatch):
    content = model_file.read_text()
    model_file.write_text("none")
    bench = bench()
    assert not bench.configure()
    for call in (bench.enable, bench.reload, bench.enable):
        answer = call()
        assert not answer.success
        assert str(model_file) in answer.message
        assert "configure again: ros2 lifecycle set /gravity_compensation configure" in answer.message
    model_file.write_text(content)
    monkeypatch.setattr("dynid_ros.nodes.gravity_compensation.make_loop", lambda *_, **__: 1 / 0)
    assert not bench.configure()
    assert "unexpected ZeroDivisionError" in bench.enable().message
    monkeypatch.undo()
    bench.activate()
    bench.enabled()


def test_while_autostart_waits_enable_says_for_what(bench):
    bench = bench(robot_description="", autostart=True)
    assert "no URDF on the topic robot_description yet" in bench.enable().message


def test_a_slow_reload_does_not_starve_the_control(bench, monkeypatch):
    def slowly(*arguments):
        count = len(bench.robot.commands)
        wait(lambda: len(bench.robot.commands) > count + 30)
        return read_arm(*arguments)

    bench = bench().run()
    monkeypatch.setattr(model, "read_arm", slowly)
    assert bench.reload().success
    assert bench.state == "active"


@pytest.mark.parametrize("text", ["format: dynid/1\nrobot: {", "!!python/object/apply:os.getcwd []", "format: other"])
def test_reload_of_a_bad_file_leaves_the_old_model_in_force(bench, model_file, text):
    bench = bench().run()
    follows(bench, planar_arm.gravity_torque(POSE))
    model_file.write_text(text)
    answer = bench.reload()
    assert not answer.success
    assert "the model in force stays" in answer.message
    assert "identified.yaml" in answer.message
    time.sleep(0.05)
    assert bench.state == "active"
    assert bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)


LOAD = {"mass": 2.0, "center": (0.1, 0.0, 0.0), "frame": "link_3"}


def loaded_torque(q, mass=2.0, center=(0.1, 0.0, 0.0), **_):
    """By hand: the load's moment about joint 3 lies along link 3, about joint 2 the link's length adds to it."""
    outer = -planar_arm.G * mass * center[0] * math.cos(q[1] + q[2])
    inner = outer - planar_arm.G * mass * planar_arm.LENGTH * math.cos(q[1])
    return [a + b for a, b in zip(planar_arm.gravity_torque(q), (0.0, inner, outer), strict=True)]


def load_message(mass=2.0, center=(0.1, 0.0, 0.0), frame="link_3", stamp=None):
    message = InertiaStamped()
    message.header.frame_id = frame
    message.inertia.m = mass
    message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = center
    if stamp is not None:
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(int(stamp * 1e9), 10**9)
    return message


def follows(bench, torque):
    wait(lambda: bench.torque == pytest.approx(torque, abs=1e-9))


def test_a_load_stays_when_its_publisher_is_gone_and_comes_back_after_a_new_configuration(bench):
    bench = bench()
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    publisher.publish(load_message())
    bench.run()
    follows(bench, loaded_torque(POSE))
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    assert bench.transition(Transition.TRANSITION_CLEANUP)
    bench.run()
    follows(bench, loaded_torque(POSE))
    bench.robot.destroy_publisher(publisher)
    bench.robot.position[1] += 0.1
    time.sleep(0.3)
    follows(bench, loaded_torque(bench.robot.position))


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


def test_a_load_that_cannot_be_meant_is_refused_and_the_one_in_force_stays(bench):
    bench = bench().run()
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    now = bench.robot.get_clock().now().nanoseconds * 1e-9
    publisher.publish(load_message(stamp=now))
    follows(bench, loaded_torque(POSE))
    load = bench.node._loop.load
    for number, (reason, change) in enumerate(REFUSED.items(), start=1):
        publisher.publish(load_message(**change))
        wait(lambda number=number: load.refused == number)
        assert reason in load.problem
        assert "the one in force stays (2.000 kg at (100, 0, 0) mm from link_3)" in load.problem
    wait(lambda: any(load.problem in status.message for status in bench.robot.diagnostics))
    assert bench.torque == pytest.approx(loaded_torque(POSE), abs=1e-9)
    publisher.publish(load_message(mass=1.0, stamp=now))
    follows(bench, loaded_torque(POSE, mass=1.0))
    assert load.problem == ""


def test_the_load_of_the_file_is_carried_until_another_is_told(bench, model_file):
    planar_arm.write(model_file, planar_arm.document() | {"load": LOAD | {"center": [0.1, 0.0, 0.0]}})
    bench = bench().run()
    follows(bench, loaded_torque(POSE))
    publisher = bench.robot.create_publisher(InertiaStamped, "load", LATCHED)
    publisher.publish(load_message(mass=3.0))
    follows(bench, loaded_torque(POSE, mass=3.0))
    assert bench.reload().success
    follows(bench, loaded_torque(POSE))
    publisher.publish(load_message(mass=3.0))
    follows(bench, loaded_torque(POSE, mass=3.0))
    planar_arm.write(model_file, planar_arm.document())
    assert bench.reload().success, "a file that says nothing of a load leaves it"
    time.sleep(0.3)
    assert bench.torque == pytest.approx(loaded_torque(POSE, mass=3.0), abs=1e-9)


STIFFNESS = 200.0


def soft_document():
    springs = {name: {"stiffness": STIFFNESS} for name in planar_arm.JOINTS[1:]}
    return planar_arm.document() | {"flexible_joints": springs}


def sagging_torque(motors):
    """Torque of links that hang on their springs, by repetition until it stays."""
    torque = [0.0, 0.0, 0.0]
    for _ in range(200):
        torque = planar_arm.gravity_torque([q - t / STIFFNESS for q, t in zip(motors, torque, strict=True)])
    return torque


class LinkEncoders:
    """Publishes the links' positions at 100 Hz by the robot's node, until it is told not to."""

    def __init__(self, robot, position):
        self.position, self.silent = position, False
        self._names = ["finger", *planar_arm.JOINTS[::-1]]
        self._publisher = robot.create_publisher(JointState, "link_states", 10)
        self._clock = robot.get_clock()
        robot.create_timer(0.01, self._publish)

    def _publish(self):
        if not self.silent:
            message = JointState(name=self._names, position=[0.0, *map(float, self.position[::-1])])
            message.header.stamp = self._clock.now().to_msg()
            self._publisher.publish(message)


def links_of(bench):
    return next(value.value for value in bench.robot.diagnostics[-1].values if value.key == "links")


@pytest.mark.parametrize("springs", [True, False])
def test_measured_links_are_counted_with_and_springs_where_they_fall_silent(bench, model_file, springs):
    if springs:
        planar_arm.write(model_file, soft_document())
    bench = bench(link_states_topic="link_states", timeout=TIMEOUT)
    links = [POSE[0], POSE[1] + 0.05, POSE[2] - 0.03]
    encoders = LinkEncoders(bench.robot, links)
    bench.run()
    follows(bench, planar_arm.gravity_torque(links))
    wait(lambda: bench.robot.diagnostics and links_of(bench) == "measured")
    encoders.silent = True
    else_torque = sagging_torque(POSE) if springs else planar_arm.gravity_torque(POSE)
    wait(lambda: bench.torque == pytest.approx(else_torque, abs=1e-4))
    wait(lambda: "links not measured: link_states: no new state of the links" in bench.robot.diagnostics[-1].message)
    assert bench.state == "active"
    encoders.silent = False
    follows(bench, planar_arm.gravity_torque(links))
    wait(lambda: links_of(bench) == "measured")


@pytest.mark.parametrize(
    ("joint", "position", "message"),
    [
        (1, POSE[1] + 0.2, "link of joint 'joint_2' is +0.2000 from its motor"),
        (1, POSE[1] - 0.2, "link of joint 'joint_2' is -0.2000 from its motor"),
        (2, math.nan, "position of joint 'joint_3' is nan"),
    ],
)
def test_a_link_that_cannot_be_where_it_is_said_to_be_is_not_believed(bench, joint, position, message):
    bench = bench(link_states_topic="link_states")
    encoders = LinkEncoders(bench.robot, [POSE[0], POSE[1] + 0.05, POSE[2]])
    bench.run()
    follows(bench, planar_arm.gravity_torque(encoders.position))
    encoders.position[joint] = position
    follows(bench, planar_arm.gravity_torque(POSE))
    wait(lambda: any(message in status.message for status in bench.robot.diagnostics))
    assert bench.state == "active"


def test_deactivation_ends_at_zero_and_allows_another_life(bench):
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
    wait(lambda: bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9))


def test_gravity_torque_is_published_before_anything_is_enabled(bench):
    bench = bench(scale=[0.5])
    heard = []
    bench.robot.create_subscription(JointState, "/gravity_compensation/gravity_torque", heard.append, 10)
    bench.activate()
    wait(lambda: heard)
    assert list(heard[-1].name) == list(planar_arm.JOINTS)
    assert list(heard[-1].effort) == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)
    assert heard[-1].header.stamp.sec
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
def test_configure_refuses(bench, case, capfd):
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
def test_a_value_out_of_range_is_refused_at_the_start(bench, name, value, expected):
    with pytest.raises(
        DynidError, match=f"^Parameter '{name}' of node 'gravity_compensation' is .*; expected {expected}$"
    ):
        bench(**{name: value})


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_brings_the_output_to_zero_before_the_process_ends(model_file, tmp_path, ending):
    robot = Robot()
    threads = NodeThreads(robot)
    with process(model_file, tmp_path, CALM) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIME)
        node.send_signal(ending)
        time.sleep(0.05)
        node.send_signal(ending)  # a terminal and launch both send it
        assert node.wait() == 0
        assert "Traceback" not in node.output
    threads.close()
    robot.destroy_node()
    torques = [list(message.data) for _, message in robot.commands]
    assert torques[-1] == [0.0, 0.0, 0.0]
    assert max(abs(torque[1]) for torque in torques) > 0.95 * abs(planar_arm.gravity_torque(POSE)[1])
    robot.watch.check(EFFORT / FAULT_RAMP, EFFORT, robot.late)

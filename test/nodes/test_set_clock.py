"""Test nodes after the computer's clock was set back, when waits of the middleware do not end in time."""

import time

import numpy as np
import planar_arm
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from helpers.command_watch import torque_of
from helpers.compensation_bench import EFFORT_LIMIT, FAULT_RAMP_S, POSE, RAMP_S, Robot as Driver
from helpers.excitation_bench import PARAMETERS, Robot, call_excitation, check_smooth, is_moving, write_swing
from helpers.frozen_waits import FrozenProcess
from helpers.node_threads import NodeThreads
from helpers.recorder_bench import RELIABLE
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.duration import Duration
from sensor_msgs.msg import JointState

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording

pytestmark = pytest.mark.usefixtures("ros")

BUSY_TIME_S = 1.0
"""Time in s by which a busy computer may exceed a promised time."""


@pytest.fixture(name="spinning")
def fixture_spinning():
    """Return a function that spins a node until the test has ended."""
    nodes = []

    def spin(node):
        nodes.append((NodeThreads(node), node))
        return node

    yield spin
    for threads, node in nodes:
        threads.close()
        node.destroy_node()


def count_samples(bag):
    try:
        return Recording.read(bag, ["a"]).n_samples
    except RecordingError:  # the bag does not contain the topic yet
        return 0


@pytest.mark.parametrize("mode", [pytest.param("never", marks=pytest.mark.slow), "back"])
def test_recorder_continues_and_ends_on_a_signal(tmp_path, spinning, mode):
    robot = spinning(rclpy.create_node("robot"))
    publisher = robot.create_publisher(JointState, "joint_states", RELIABLE)
    with FrozenProcess("recorder", mode, {"output_folder": tmp_path, "autostart": "true"}) as recorder:
        wait(publisher.get_subscription_count, START_TIMEOUT_S)
        sent = 0

        def publish(count_samples):
            nonlocal sent
            for _ in range(count_samples):
                sent += 1
                message = JointState(name=["a"], position=[float(sent)])
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(sent * 10**6, 10**9)
                publisher.publish(message)
                time.sleep(0.001)

        publish(100)
        recorder.freeze()
        publish(500)
        (bag,) = tmp_path.iterdir()
        wait(lambda: count_samples(bag) == 600, 0.5 + BUSY_TIME_S)
        publish(50)
        publisher.wait_for_all_acked(Duration(seconds=1))
        assert recorder.end(10.0) == 0
    recording = Recording.read(bag, ["a"])
    assert not recording.truncated
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(1, sent + 1))


@pytest.mark.parametrize(
    ("mode", "fault", "words", "detection_time"),
    [
        ("never", "nan", "position of joint 'joint_3' is nan", 0.0),
        pytest.param("back", "nan", "position of joint 'joint_3' is nan", 0.0, marks=pytest.mark.slow),
        pytest.param("never", "strained", "effort of joint 'joint_2' is -60, above", 0.1, marks=pytest.mark.slow),
        pytest.param("never", "silent", "no usable joint_states for ", 0.8, marks=pytest.mark.slow),
        pytest.param("back", None, "the node ends", 0.0, marks=pytest.mark.slow),
    ],
)
def test_excitation_stops_the_arm(tmp_path, urdf_file, spinning, mode, fault, words, detection_time):
    values = PARAMETERS | {"robot_description": urdf_file} | write_swing(tmp_path)
    robot = spinning(Robot())
    with FrozenProcess("excitation", mode, values | {"periods": 1, "repeats": 5}) as node:
        wait(lambda: robot.states, START_TIMEOUT_S)
        wait(lambda: call_excitation(robot, "start").success)
        wait(lambda: is_moving(robot))
        node.freeze()
        if fault:
            robot.fault = fault
            assert wait(lambda: robot.states[-1].startswith("stopped")) < detection_time + BUSY_TIME_S
            assert words in robot.states[-1]
        assert node.end(5.0) == 0
        wait(lambda: words in robot.states[-1])
    assert len(robot.commands) == 2
    check_smooth(robot)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [("never", "silent"), *(pytest.param(mode, None, marks=pytest.mark.slow) for mode in ("never", "back"))],
)
def test_compensation_fades_the_torque(urdf_file, model_file, spinning, mode, fault):
    values = {"robot_description": urdf_file, "model_file": model_file, "ramp_time": RAMP_S, "timeout": 1.0}
    values |= {"fault_ramp_time": FAULT_RAMP_S, "autostart": "true", "enable_on_activate": "true"}
    values |= {"unchecked_controller": "true", "assume_no_effort": "true", "scale": "[1.0]", "descent_time": "0.0"}
    robot = spinning(Driver())
    with FrozenProcess("gravity_compensation", mode, values) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIMEOUT_S)
        node.freeze()
        if fault:
            robot.silent = True
            assert wait(lambda: not any(torque_of(robot.commands[-1][1]))) < 1.0 + FAULT_RAMP_S + BUSY_TIME_S
            wait(lambda: robot.states[-1].startswith("fault: no new joint state for "))
        assert node.end(5.0) == 0
        wait(lambda: not any(torque_of(robot.commands[-1][1])))
    assert max(abs(torque[1]) for torque in robot.watch.torques()) > 0.95 * abs(planar_arm.gravity_torque(POSE)[1])
    robot.watch.check(EFFORT_LIMIT / FAULT_RAMP_S, EFFORT_LIMIT, robot.late)


def test_timers_of_other_nodes_continue(urdf_file, spinning):
    observer = spinning(rclpy.create_node("observer"))
    received = []
    observer.create_subscription(DiagnosticArray, "/diagnostics", lambda _: received.append(time.monotonic()), 10)
    values = {"robot_description": urdf_file, "effort_convention": "torque"}
    with FrozenProcess("gravity_identification", "back", values) as node:
        wait(lambda: received, START_TIMEOUT_S)
        node.freeze()
        count_samples = len(received)
        wait(lambda: len(received) > count_samples + 4, 2.5 + 5 * BUSY_TIME_S)
        assert node.end(10.0) == 0

"""The computer's clock is set back: waits of the middleware then do not end in time, and nothing may depend on them."""

import time

import numpy as np
import planar_arm
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from helpers.command_watch import torque_of
from helpers.compensation_bench import EFFORT, FAULT_RAMP, POSE, RAMP, Robot as Driver
from helpers.excitation_bench import PARAMETERS, START, Robot, ask, check_smooth, moving
from helpers.frozen_waits import FrozenProcess
from helpers.node_threads import NodeThreads
from helpers.recorder_bench import RELIABLE
from helpers.waiting import START_TIME, wait
from rclpy.duration import Duration
from sensor_msgs.msg import JointState

from dynid_ros.errors import RecordingError
from dynid_ros.recording import Recording
from dynid_ros.trajectories import Trajectory, move

pytestmark = pytest.mark.usefixtures("ros")

BUSY = 1.0
"""s that a busy machine may take longer than promised."""


@pytest.fixture(name="spinning")
def fixture_spinning():
    """Function that spins a node until the test has ended."""
    made = []

    def spin(node):
        made.append((NodeThreads(node), node))
        return node

    yield spin
    for threads, node in made:
        threads.close()
        node.destroy_node()


def count(bag):
    try:
        return Recording.read(bag, ["a"]).n_samples
    except RecordingError:  # the topic is not in it yet
        return 0


@pytest.mark.parametrize("how", [pytest.param("never", marks=pytest.mark.slow), "back"])
def test_the_recorder_writes_on_and_ends_when_it_is_told_to(tmp_path, spinning, how):
    robot = spinning(rclpy.create_node("robot"))
    publisher = robot.create_publisher(JointState, "joint_states", RELIABLE)
    with FrozenProcess("recorder", how, {"output_folder": tmp_path, "autostart": "true"}) as recorder:
        wait(publisher.get_subscription_count, START_TIME)
        sent = 0

        def publish(count):
            nonlocal sent
            for _ in range(count):
                sent += 1
                message = JointState(name=["a"], position=[float(sent)])
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(sent * 10**6, 10**9)
                publisher.publish(message)
                time.sleep(0.001)

        publish(100)
        recorder.freeze()
        publish(500)
        (bag,) = tmp_path.iterdir()
        wait(lambda: count(bag) == 600, 0.5 + BUSY)
        publish(50)
        publisher.wait_for_all_acked(Duration(seconds=1))
        assert recorder.end(10.0) == 0
    found = Recording.read(bag, ["a"])
    assert not found.truncated
    np.testing.assert_array_equal(found.position[:, 0], np.arange(1, sent + 1))


def swing_file(tmp_path):
    there = [START[0] + 0.5, START[1] - 0.4, START[2] + 0.4]
    ways = [move(planar_arm.JOINTS, *ends, 1.0) for ends in ((START, there), (there, START))]
    return Trajectory.join(ways).save(tmp_path / "swing.yaml")


@pytest.mark.parametrize(
    ("how", "fault", "words", "noticed"),
    [
        ("never", "nan", "position of joint 'joint_3' is nan", 0.0),
        pytest.param("back", "nan", "position of joint 'joint_3' is nan", 0.0, marks=pytest.mark.slow),
        pytest.param("never", "strained", "effort of joint 'joint_2' is -60, above", 0.1, marks=pytest.mark.slow),
        pytest.param("never", "silent", "no usable joint_states for ", 0.8, marks=pytest.mark.slow),
        pytest.param("back", None, "the node ends", 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_excitation_brings_the_arm_to_rest(tmp_path, spinning, how, fault, words, noticed):
    description = tmp_path / "arm.urdf"
    description.write_text(planar_arm.urdf())
    values = PARAMETERS | {"robot_description": description, "motion": "file", "motion_file": swing_file(tmp_path)}
    robot = spinning(Robot())
    with FrozenProcess("excitation", how, values | {"periods": 1, "repeats": 5}) as node:
        wait(lambda: robot.states, START_TIME)
        wait(lambda: ask(robot, "start").success)
        wait(lambda: moving(robot))
        node.freeze()
        if fault:
            robot.fault = fault
            assert wait(lambda: robot.states[-1].startswith("stopped")) < noticed + BUSY
            assert words in robot.states[-1]
        assert node.end(5.0) == 0
        wait(lambda: words in robot.states[-1])
    assert len(robot.commands) == 2
    check_smooth(robot)


@pytest.mark.parametrize(
    ("how", "fault"),
    [("never", "silent"), *(pytest.param(how, None, marks=pytest.mark.slow) for how in ("never", "back"))],
)
def test_the_compensation_fades(tmp_path, model_file, spinning, how, fault):
    description = tmp_path / "arm.urdf"
    description.write_text(planar_arm.urdf())
    values = {"robot_description": description, "model_file": model_file, "ramp_time": RAMP, "timeout": 1.0}
    values |= {"fault_ramp_time": FAULT_RAMP, "autostart": "true", "enable_on_activate": "true"}
    values |= {"unchecked_controller": "true", "assume_no_effort": "true", "scale": "[1.0]", "descent_time": "0.0"}
    robot = spinning(Driver())
    with FrozenProcess("gravity_compensation", how, values) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIME)
        node.freeze()
        if fault:
            robot.silent = True
            assert wait(lambda: not any(torque_of(robot.commands[-1][1]))) < 1.0 + FAULT_RAMP + BUSY
            wait(lambda: robot.states[-1].startswith("fault: no new joint state for "))
        assert node.end(5.0) == 0
        wait(lambda: not any(torque_of(robot.commands[-1][1])))
    assert max(abs(torque[1]) for torque in robot.watch.torques()) > 0.95 * abs(planar_arm.gravity_torque(POSE)[1])
    robot.watch.check(EFFORT / FAULT_RAMP, EFFORT, robot.late)


def test_timers_of_every_other_node_go_on(tmp_path, spinning):
    description = tmp_path / "arm.urdf"
    description.write_text(planar_arm.urdf())
    observer = spinning(rclpy.create_node("observer"))
    received = []
    observer.create_subscription(DiagnosticArray, "/diagnostics", lambda _: received.append(time.monotonic()), 10)
    values = {"robot_description": description, "effort_convention": "torque"}
    with FrozenProcess("gravity_identification", "back", values) as node:
        wait(lambda: received, START_TIME)
        node.freeze()
        count = len(received)
        wait(lambda: len(received) > count + 4, 2.5 + 5 * BUSY)
        assert node.end(10.0) == 0

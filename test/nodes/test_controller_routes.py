"""Test the three command routes on the simulated arm: the node queries the controller, and its torque holds the arm."""

import signal
import time
from pathlib import Path

import demo_arm_model
import numpy as np
import pytest
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIMEOUT_S, wait
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.gravity_compensation import GravityCompensation

pytest.importorskip("mujoco")

ROOT = Path(__file__).resolve().parents[2]
ORDER = "[joint_3,joint_1,joint_6,joint_2,joint_5,joint_4]"
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])


class Watcher(Node):
    """Node that keeps the arm's position and all commands."""

    def __init__(self):
        super().__init__("watcher")
        self.position = None
        self.effort = []
        self.trajectory = []
        self.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        self.create_subscription(Float64MultiArray, "/forward_effort_controller/commands", self.effort.append, 100)
        self.create_subscription(
            JointTrajectory, "/joint_trajectory_controller/joint_trajectory", self.trajectory.append, 100
        )
        self.switches = {
            name: self.create_client(SetBool, f"/simulator/activate_{name}_controller")
            for name in ("effort", "trajectory")
        }
        self.change_state = self.create_client(ChangeState, "/gravity_compensation/change_state")

    def _on_state(self, message):
        self.position = np.array(message.position)

    def position_error(self, seconds=0.3, pose=START):
        """Return the largest difference from a pose within a time."""
        end = time.monotonic() + seconds
        errors = []
        while time.monotonic() < end:
            errors.append(np.abs(self.position - pose).max())
            time.sleep(0.02)
        return max(errors)


@pytest.fixture
def route(ros, tmp_path):
    """Return a function that starts the node and then the simulator with a controller."""
    benches = []

    def start(simulated, **parameters):
        values = {
            "model_file": str(demo_arm_model.write(tmp_path / "identified.yaml")),
            "autostart": True,
            "ramp_time": 0.3,
            "scale": [1.0],
            "timeout": 10.0,  # generous, because the tests share a busy computer
        }
        overrides = [Parameter(name, value=value) for name, value in (values | parameters).items()]
        node = GravityCompensation(parameter_overrides=overrides)
        watcher = Watcher()
        threads = NodeThreads(node, watcher)
        parameters = {"rate": 100.0, "controller": simulated, "controller_joints": ORDER}
        parameters |= {"torque_offset": "[0.0]", "torque_noise": 0.0}
        simulator = NodeProcess("simulator", parameters, "--params-file", str(ROOT / "config" / "simulator.yaml"))
        benches.append((node, watcher, threads, simulator))
        wait(
            lambda: not simulator.running or (watcher.position is not None and node._phase == "active"), START_TIMEOUT_S
        )
        assert simulator.running, simulator.output
        return node, watcher

    yield start
    node, watcher, threads, simulator = benches[0]
    threads.close()
    simulator.send_signal(signal.SIGINT)
    node.end()
    node.destroy_node()
    watcher.destroy_node()
    with simulator:
        assert simulator.wait() == 0


def enable(node):
    wait(lambda: node._loop.has_listener and node._loop.compensator.position)
    node._loop.enable()
    wait(lambda: node._state() == "active")


def test_effort_alone_holds_the_arm(route):
    node, watcher = route("effort", controller="forward_effort_controller", assume_no_effort=True)
    enable(node)
    # Activate the effort controller first: otherwise the arm falls until the next command.
    for name, active in (("effort", True), ("trajectory", False)):
        answer = watcher.switches[name].call_async(SetBool.Request(data=active))
        wait(answer.done)
        assert answer.result().success
        time.sleep(0.3)
    assert watcher.position_error(1.0) < 0.02


def test_added_torque_reduces_the_sag_of_a_position_controller(route):
    options = {"position_controller": "", "assume_no_effort": True}
    node, watcher = route("position_and_effort", controller="forward_effort_controller", **options)
    wait(lambda: watcher.position_error() > 4e-3)
    sag = watcher.position_error()
    enable(node)
    wait(lambda: watcher.position_error() < sag / 5.0)
    node._loop.disable()
    wait(lambda: watcher.position_error() > 0.8 * sag)
    wait(lambda: not any(watcher.effort[-1].data))


def test_enable_with_acting_torque_keeps_the_arm_in_place(route):
    """The last command of a killed process continues to act."""
    node, watcher = route("effort", controller="forward_effort_controller", effort_convention="torque")
    wait(lambda: node._loop.compensator.position)
    torque = node._loop.compensator._gravity(node._loop.compensator.position)
    command = Float64MultiArray(data=[torque[i] for i in node._loop.commands.order])
    killed = watcher.create_publisher(Float64MultiArray, "/forward_effort_controller/commands", 10)
    wait(lambda: killed.get_subscription_count() == 2)
    killed.publish(command)
    for name, active in (("effort", True), ("trajectory", False)):
        answer = watcher.switches[name].call_async(SetBool.Request(data=active))
        wait(answer.done)
        for _ in range(5):
            killed.publish(command)
            time.sleep(0.02)
    watcher.destroy_publisher(killed)
    wait(lambda: not node._loop.commands.topic.others)
    wait(
        lambda: watcher.position_error(0.3, watcher.position.copy()) < 1e-3
    )  # on a busy computer the switch may shake the arm
    rest = watcher.position.copy()
    count = len(watcher.effort)
    enable(node)
    # The simulated sensors measure the torque of the joint: friction makes a difference.
    assert list(watcher.effort[count].data) == pytest.approx(list(command.data), abs=8.0)
    assert watcher.position_error(1.0, rest) < 0.1, "an arm without torque falls that far in 0.1 s"


def test_effort_in_trajectories_holds_the_pose_and_ends_at_zero(route):
    node, watcher = route("trajectory_effort", controller="joint_trajectory_controller", output="trajectory")
    enable(node)
    held = np.array(node._loop.compensator.desired)
    wait(lambda: np.abs(watcher.position - held).max() < 1.5e-3)
    assert np.abs(watcher.trajectory[-1].points[0].effort).max() > 20.0
    assert watcher.trajectory[-1].joint_names == ORDER[1:-1].split(",")
    # Call the service, because the publishing thread must make the transition.
    deactivate = Transition(id=Transition.TRANSITION_DEACTIVATE)
    answer = watcher.change_state.call_async(ChangeState.Request(transition=deactivate))
    wait(answer.done)
    assert answer.result().success
    wait(lambda: not any(watcher.trajectory[-1].points[0].effort))

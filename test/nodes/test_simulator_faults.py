"""Test the reactions of `simulator` in docs/promises.md that test_simulator.py does not test."""

import re
from pathlib import Path

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, call
from helpers.simulator_bench import SimulatorBench
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.simulator import SimulatorNode

CONFIG = Path(__file__).resolve().parents[2] / "config" / "simulator.yaml"

SPINNER = """<robot name="spinner"><link name="base"/><link name="wheel"><inertial><mass value="0.001"/>
<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="axle" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
<limit effort="50" velocity="10"/></joint></robot>"""


class Client(Node):
    """Node that calls the simulator and listens to it."""

    def __init__(self):
        super().__init__("client")
        self.states = []
        self.statuses = []
        self.create_subscription(JointState, "joint_states", self.states.append, 5000)
        self.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.statuses.extend(m.status), 10)
        self.clock = self.create_publisher(Clock, "/clock", 10)
        self.effort = self.create_publisher(Float64MultiArray, "/forward_effort_controller/commands", 10)

    def call_async(self, kind, name, **request):
        client = self.create_client(kind, f"/simulator/{name}")
        assert client.wait_for_service(START_TIMEOUT_S)
        return client.call_async(kind.Request(**request))

    def call(self, kind, name, **request):
        return call(self, kind, f"/simulator/{name}", kind.Request(**request))

    def publish_clock(self, seconds):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(round(seconds * 1e9), 10**9)
        self.clock.publish(message)


@pytest.fixture(name="bench")
def fixture_bench(keep):
    return lambda **parameters: keep(SimulatorBench(Client, **parameters))


def stamp(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def test_clock_may_jump_and_stall(bench):
    bench = bench(use_sim_time="true", rate=100.0)
    client = bench.client
    wait(client.clock.get_subscription_count)
    for start in (1000.0, 2000.0, 50.0):  # jumps forward and back
        client.publish_clock(start)
        wait(lambda start=start: bench.node.get_clock().now().nanoseconds == round(start * 1e9))
        wait(lambda start=start: client.states and abs(stamp(client.states[-1]) - start) < 0.02)
        client.states.clear()
        client.publish_clock(start + 0.1)
        wait(lambda: len(client.states) == 10)
        assert np.diff([stamp(state) for state in client.states]) == pytest.approx(0.01)
    count = len(client.states)
    n_statuses = len(client.statuses)
    wait(lambda: len(client.statuses) > n_statuses + 1)
    assert len(client.states) == count, "the arm stops with the time"
    assert bench.node.status()[2]["lost_time"] != "0.000"


def test_diverged_motion_restarts_in_the_start_pose(bench):
    bench = bench(robot_description=SPINNER.replace("\n", " "))
    client = bench.client
    assert client.call(SetBool, "effort_mode", data=True).success
    wait(client.effort.get_subscription_count)
    client.effort.publish(Float64MultiArray(data=[50.0]))
    wait(lambda: any("diverged" in status.message for status in client.statuses))
    assert "in the start pose, in position mode" in next(s.message for s in client.statuses if "div" in s.message)
    client.states.clear()
    wait(lambda: len(client.states) > 50)
    assert abs(client.states[-1].velocity[0]) < 0.1


def test_last_command_outlives_its_publisher(bench):
    bench = bench()
    client = bench.client
    names = list(bench.node.arm.robot.joint_names)
    start = bench.node.arm.position
    publisher = client.create_publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory", 10)
    wait(publisher.get_subscription_count)
    point = JointTrajectoryPoint(positions=(start + 0.2).tolist(), velocities=[0.0] * len(names))
    point.time_from_start.nanosec = 600_000_000
    publisher.publish(JointTrajectory(joint_names=names, points=[point]))
    wait(lambda: client.states and client.states[-1].position[0] > start[0] + 0.02)
    client.destroy_publisher(publisher)
    wait(lambda: np.abs(np.array(client.states[-1].position) - start - 0.2).max() < 5e-3)
    torque = np.array(client.states[-1].effort)
    assert client.call(SetBool, "effort_mode", data=True).success
    wait(client.effort.get_subscription_count)
    client.effort.publish(Float64MultiArray(data=torque.tolist()))
    wait(lambda: bench.node.arm._effort is not None and np.any(bench.node.arm._effort))
    client.destroy_publisher(client.effort)
    wait(lambda: not bench.node.get_publishers_info_by_topic("/forward_effort_controller/commands"))
    assert bench.node.arm._effort == pytest.approx(torque), "like forward_command_controller"


def test_parallel_service_calls_are_all_answered(bench):
    bench = bench()
    client = bench.client
    futures = []
    for k in range(10):
        futures.append(client.call_async(SetBool, "effort_mode", data=k % 2 == 0))
        futures.append(client.call_async(SetBool, "pick_up", data=k % 3 == 0))
        futures.append(client.call_async(Trigger, "reset"))
    wait(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)
    client.states.clear()
    wait(lambda: len(client.states) > 20)
    assert np.isfinite(client.states[-1].position).all()


@pytest.mark.usefixtures("ros")
def test_simulator_starts_again_after_a_kill():
    client = Client()
    threads = NodeThreads(client)
    for _ in range(2):
        client.states.clear()
        with NodeProcess("simulator", {"rate": 100.0}):
            wait(lambda: len(client.states) > 5, START_TIMEOUT_S)
        assert client.states[0].velocity == pytest.approx([0.0] * 6, abs=0.01)
    threads.close()
    client.destroy_node()


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("tip_link:=hand", "tip link 'hand' is not in the URDF"),
        ("timestep:=0.0", "'timestep' of node 'simulator' is 0.0"),
        ("seed:=-1", "'seed' of node 'simulator' is -1; expected 0 or more"),
        ("wrench_topic:='a b'", "Parameter 'wrench_topic' of node 'simulator' is 'a b', which is no name of a topic"),
        ("wrench_noise:=[1.0e300]", "noise of the wrench sensor is [1e+300]"),
        ("description_error:=1.0", "'description_error' of node 'simulator' is 1.0; expected 0 to 0.99"),
        ("start_position:=[0.0, 9.0, 0.0, 0.0, 0.0, 0.0]", "joint 'joint_2' at 9; its limits are"),
        ("coulomb_friction:=[-1.0]", "coulomb of joint '1' is -1.0; expected a number of at least 0"),
        ("controller:=pid", "'controller' of node 'simulator' is 'pid'; expected effort, position_and_effort"),
        ("cmd_timeout:=-1.0", "Parameter 'cmd_timeout' is -1; expected 0 or more"),
        ("constraints.trajectory:=[0.1, 0.2]", "constraints.trajectory: 2 values; give one for all joints"),
        ("controller_joints:=[joint_1]", "Parameter 'controller_joints' is joint_1; expected the joints joint_1, "),
        ("wrench_noise:=[-0.1]", "noise of the wrench sensor is [-0.1]"),
        ("torque_noise:=[0.1, 0.2]", "torque_noise: 2 values; give one for all joints"),
    ],
)
def test_invalid_parameters_are_one_error_line(parameter, message):
    rclpy.init(args=["--ros-args", "--params-file", str(CONFIG), "-p", parameter])
    with pytest.raises(DynidError, match=re.escape(message)) as error:
        SimulatorNode()
    rclpy.shutdown()
    assert "\n" not in str(error.value)

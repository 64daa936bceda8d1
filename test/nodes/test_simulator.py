"""Test the simulator as a process over DDS."""

import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import rclpy
import yaml
from builtin_interfaces.msg import Time as Stamp
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from helpers.node_process import NodeProcess
from helpers.waiting import START_TIMEOUT_S
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.model import RobotModel

pytest.importorskip("mujoco")

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config" / "simulator.yaml"
NAMES = [f"joint_{i}" for i in range(1, 7)]
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


FILE = ("--params-file", str(CONFIG))


class Client(Node):
    """Node that calls the simulator and listens to it."""

    def __init__(self):
        super().__init__("client")
        self.states = []
        self.latched = {}
        self.diagnostics = []
        self.create_subscription(JointState, "joint_states", self.states.append, 5000)
        for topic in ("robot_description", "/simulator/true_parameters"):
            self.create_subscription(
                String, topic, lambda m, topic=topic: self.latched.update({topic: m.data}), LATCHED
            )
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.trajectory = self.create_publisher(
            JointTrajectory, "/joint_trajectory_controller/joint_trajectory", QoSProfile(depth=10)
        )
        self.effort = self.create_publisher(Float64MultiArray, "/forward_effort_controller/commands", 10)
        self.push = self.create_publisher(WrenchStamped, "/simulator/push", 10)
        self.effort_mode = self.create_client(SetBool, "/simulator/effort_mode")
        self.reset = self.create_client(Trigger, "/simulator/reset")
        self.pick_up = self.create_client(SetBool, "/simulator/pick_up")
        self.parameters = self.create_client(SetParameters, "/simulator/set_parameters")
        self.controller = self.create_client(SetParameters, "/joint_trajectory_controller/set_parameters")

    def _on_diagnostics(self, message):
        self.diagnostics += [status for status in message.status if status.name == "simulator"]

    def wait(self, condition, seconds=60.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "timed out"
            rclpy.spin_once(self, timeout_sec=0.05)

    def wait_for_states(self, seconds):
        """Wait for a state that was measured `seconds` after now."""
        end = self.get_clock().now().nanoseconds + seconds * 1e9
        self.wait(lambda: self.states and stamp(self.states[-1]) > end)

    def next_states(self, count):
        """Return the next `count` states."""
        self.states.clear()
        self.wait(lambda: len(self.states) >= count)
        return list(self.states)

    def call(self, client, request):
        future = client.call_async(request)
        self.wait(future.done)
        return future.result()

    def switch(self, effort):
        return self.call(self.effort_mode, SetBool.Request(data=effort))

    def carry(self, load):
        return self.call(self.pick_up, SetBool.Request(data=load))

    def set(self, name, read_value, service=None):
        parameter = Parameter(name, value=read_value).to_parameter_msg()
        return self.call(service or self.parameters, SetParameters.Request(parameters=[parameter])).results[0]

    def restart(self):
        assert self.carry(False).success
        assert self.call(self.reset, Trigger.Request()).success
        self.next_state()

    def next_state(self):
        """Return the first state that is measured after now."""
        now = self.get_clock().now().nanoseconds
        self.wait(lambda: self.states and stamp(self.states[-1]) > now)
        return self.states[-1]

    def count_refused(self):
        """Return the number of refused commands in the next status."""
        n_statuses = len(self.diagnostics)
        self.wait(lambda: len(self.diagnostics) > n_statuses)
        return int(read_value(self.diagnostics[-1], "refused_commands"))

    def move(self, position, seconds, names=NAMES, stamp=None):
        point = JointTrajectoryPoint(positions=[float(p) for p in position], velocities=[0.0] * len(names))
        point.time_from_start.sec, nanoseconds = divmod(round(seconds * 1e9), 10**9)
        point.time_from_start.nanosec = nanoseconds
        message = JointTrajectory(joint_names=list(names), points=[point])
        if stamp is not None:
            message.header.stamp = stamp
        self.trajectory.publish(message)


def stamp(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def read_value(status, key):
    return next(item.value for item in status.values if item.key == key)


@pytest.fixture(scope="module")
def simulator():
    with NodeProcess("simulator", {"wrench_topic": "wrist"}, *FILE) as process:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0, process.output
        assert "Traceback" not in process.output


@pytest.fixture(scope="module")
def shared_client(simulator):
    rclpy.init()
    client = Client()
    client.wait(lambda: client.states, START_TIMEOUT_S)
    client.wait(lambda: client.trajectory.get_subscription_count() and client.effort.get_subscription_count())
    client.wait(client.push.get_subscription_count)
    for service in (client.effort_mode, client.reset, client.pick_up, client.parameters, client.controller):
        assert service.wait_for_service(START_TIMEOUT_S)
    yield client
    client.destroy_node()
    rclpy.shutdown()


@pytest.fixture
def client(shared_client):
    shared_client.restart()
    return shared_client


def test_joint_states_have_all_fields_at_their_rate(client):
    states = client.next_states(500)
    check_steps(states)
    assert all(list(state.name) == NAMES for state in states)
    for field in ("position", "velocity", "effort"):
        assert np.all(np.isfinite([getattr(state, field) for state in states]))


def check_steps(states):
    """Assert that stamps are 4 ms apart, except for a few where a busy computer delayed the simulation."""
    steps = np.diff([stamp(state) for state in states]) / 4e6
    assert steps.min() > 0.999
    assert np.mean(steps < 1.001) > 0.95


def test_stamps_follow_the_nodes_clock_without_drift(client):
    client.next_state()
    ages = []

    def append_age(count):
        if len(client.states) > count:
            ages.append(client.get_clock().now().nanoseconds - stamp(client.states[-1]))
        return ages and ages[-1] < 0.05e9  # older states have waited for the processor

    for _ in range(100):
        client.wait(partial(append_age, len(client.states)))
    assert min(ages) >= 0


def test_torque_sensor_errors_can_change_at_run_time(client):
    def read_joints():
        return yaml.safe_load(client.latched["/simulator/true_parameters"])["joints"]

    def mean_effort():
        client.next_state()
        return np.mean([state.effort for state in client.next_states(300)], axis=0)

    before = read_joints()
    torque = mean_effort()
    signs = np.sign([before[name]["torque_offset"] for name in NAMES])
    try:
        assert client.set("torque_offset", [0.05]).successful
        assert client.set("torque_gain_error", [0.1, 0.0, 0.0, 0.0, 0.0, 0.0]).successful
        client.wait(lambda: read_joints()["joint_1"]["torque_gain_error"])
        ranges = np.array([230, 230, 115, 25, 25, 10])
        assert [read_joints()[name]["torque_offset"] for name in NAMES] == pytest.approx(signs * 0.05 * ranges)
        assert abs(read_joints()["joint_1"]["torque_gain_error"]) == pytest.approx(0.1)
        assert mean_effort()[1:] - torque[1:] == pytest.approx(signs[1:] * 0.03 * ranges[1:], abs=0.5)
        count_refused = client.set("torque_offset", [0.1, 0.1])
        assert not count_refused.successful
        assert "torque_offset" in count_refused.reason
    finally:
        client.set("torque_offset", [0.02])
        client.set("torque_gain_error", [0.0])


def test_arm_follows_a_trajectory(client):
    goal = START + 0.2
    client.move(goal[::-1], 1.0, names=NAMES[::-1])
    client.wait(lambda: client.states[-1].position == pytest.approx(goal, abs=2e-3))
    client.wait_for_states(0.3)
    assert client.states[-1].position == pytest.approx(goal, abs=2e-3)


def test_invalid_trajectories_are_refused(client):
    count_refused = client.count_refused()
    client.move(START[:5], 1.0, names=NAMES[:5])
    client.move([*START[:5], np.nan], 1.0)
    client.move([0.0, 3.0, 0.0, 0.0, 0.0, 0.0], 3.0)
    past = client.get_clock().now() - rclpy.duration.Duration(seconds=10.0)
    client.move(START + 0.2, 1.0, stamp=past.to_msg())
    client.move(START + 0.2, 1.0, stamp=Stamp(sec=-1))
    ragged = JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint(positions=[0.0] * 5)])
    client.trajectory.publish(ragged)
    client.trajectory.publish(JointTrajectory())
    client.wait(lambda: client.count_refused() == count_refused + 7)
    assert client.next_state().position == pytest.approx(START, abs=1e-3)


def let_fall(client):
    """Release the arm without any torque."""
    answer = client.switch(True)
    assert answer.success
    assert "no torque until the first command" in answer.message
    client.wait(lambda: client.states[-1].position[1] > START[1] + 0.1)


def test_arm_falls_without_torque_and_snaps_back_at_the_switch(client):
    """The position command of the real controller outlives its deactivation by default, too."""
    let_fall(client)
    assert "already" in client.switch(True).message
    assert "last commanded position" in client.switch(False).message
    client.wait(lambda: client.states[-1].position == pytest.approx(START, abs=1e-2))


def gravity_torque(client):
    """Return the torque that held the arm in the start pose, without sensor offsets."""
    truth = yaml.safe_load(client.latched["/simulator/true_parameters"])["joints"]
    reading = np.mean([state.effort for state in client.next_states(100)], axis=0)
    return reading - [truth[name]["torque_offset"] for name in NAMES]


def hold_by_effort(client, torque):
    """Command the torque by a timer, switch to effort mode, and return the timer.

    The controller has no torque between its activation and the next message, so the switch is repeated if a busy
    computer lets the arm fall.
    """
    timer = client.create_timer(0.01, lambda: client.effort.publish(Float64MultiArray(data=torque.tolist())))
    for _ in range(30):
        client.wait_for_states(0.3)
        assert client.switch(True).success
        client.wait_for_states(0.5)
        if np.abs(client.next_state().position - START).max() < 0.01:
            return timer
        client.restart()
    client.destroy_timer(timer)
    raise AssertionError("the arm falls")


def test_nonfinite_effort_is_refused_and_wrong_size_deactivates(client):
    torque = gravity_torque(client)
    count_refused = client.count_refused()
    client.destroy_timer(hold_by_effort(client, torque))
    before = client.next_state()
    client.effort.publish(Float64MultiArray(data=[0.0, np.nan, 0.0, 0.0, 0.0, 0.0]))
    client.effort.publish(Float64MultiArray())
    client.move(START, 1.0)
    client.wait(lambda: client.count_refused() == count_refused + 2)
    assert client.next_state().position == pytest.approx(list(before.position), abs=2e-3)
    client.diagnostics.clear()
    client.effort.publish(Float64MultiArray(data=[1.0, 2.0]))
    client.wait(lambda: any("deactivated" in status.message for status in client.diagnostics))
    assert client.diagnostics[-1].message.startswith("effort mode, both controllers are inactive")
    client.effort.publish(Float64MultiArray(data=[50.0] * 6))
    client.wait_for_states(0.5)
    assert client.next_state().position == pytest.approx(list(before.position), abs=2e-3), "the last torque stays"


def push(client, frame="", **force):
    message = WrenchStamped()
    message.header.frame_id = frame
    for axis, newtons in force.items():
        setattr(message.wrench.force, axis, newtons)
    client.push.publish(message)


def test_push_deflects_the_servo_while_it_lasts(client):
    push(client, z=-200.0)
    client.wait(lambda: client.states[-1].position[1] > START[1] + 2e-3)
    client.wait(lambda: abs(client.states[-1].position[1] - START[1]) < 5e-4)


def read_wrist(client, count):
    wrenches = []
    subscription = client.create_subscription(WrenchStamped, "wrist", wrenches.append, 5000)
    client.wait(lambda: len(wrenches) >= count)
    client.destroy_subscription(subscription)
    return wrenches


def mean_wrench(client):
    """Return mean force and torque (3,) at rest, without the sensor's bias."""
    client.wait_for_states(0.5)
    reading = [[*xyz(m.wrench.force), *xyz(m.wrench.torque)] for m in read_wrist(client, 125)]
    bias = yaml.safe_load(client.latched["/simulator/true_parameters"])["wrench_sensor"]["bias"]
    return np.split(np.mean(reading, axis=0) - bias, 2)


def xyz(vector):
    return vector.x, vector.y, vector.z


def test_wrenches_have_the_stamps_of_joint_states(client):
    client.states.clear()
    wrenches = read_wrist(client, 250)
    client.next_state()
    stamps = {
        time_ns for time_ns in map(stamp, wrenches) if time_ns >= stamp(client.states[0])
    }  # the first joint state may precede the subscription
    assert len(stamps) >= 245
    assert stamps <= set(map(stamp, client.states))
    assert {message.header.frame_id for message in wrenches} == {"tool"}
    readings = np.array([xyz(message.wrench.force) for message in wrenches])
    assert readings.std(axis=0) == pytest.approx([0.1] * 3, rel=0.25)
    assert np.abs(readings.mean(axis=0)) == pytest.approx([5.0] * 3, abs=0.05)


def test_load_of_the_parameters_is_picked_up_and_dropped(client):
    alone = gravity_torque(client)
    for name, values in (("load_mass", 3.0), ("load_center", [0.0, 0.1, 0.05])):
        assert client.set(name, values).successful
    assert "carries 3 kg" in client.carry(True).message
    truth = yaml.safe_load(client.latched["/simulator/true_parameters"])
    client.wait(lambda: yaml.safe_load(client.latched["/simulator/true_parameters"])["load"])
    load = yaml.safe_load(client.latched["/simulator/true_parameters"])["load"]
    assert (load["frame"], load["mass"]) == ("tool", pytest.approx(3.0))
    assert load["center"] == pytest.approx([0.0, 0.1, 0.05])
    assert load["inertia"] == pytest.approx([0.005, 0, 0, 0.005, 0, 0.005], abs=1e-12)
    force, torque = mean_wrench(client)
    robot = RobotModel.from_urdf(truth["urdf"])
    pose = np.array([client.next_state().position])
    weight = (robot.forward_kinematics(pose)[0, -1] @ robot.tip_offset)[:3, :3].T @ [0.0, 0.0, -3.0 * 9.80665]
    assert force == pytest.approx(weight, abs=0.05)
    assert torque == pytest.approx(np.cross([0.0, 0.1, 0.05], weight), abs=0.002)
    assert np.abs(gravity_torque(client) - alone).max() > 5.0
    client.diagnostics.clear()
    client.wait(lambda: client.diagnostics and read_value(client.diagnostics[-1], "load") == "3")
    assert "carries nothing" in client.carry(False).message
    client.wait(lambda: yaml.safe_load(client.latched["/simulator/true_parameters"])["load"] is None)
    force, torque = mean_wrench(client)
    assert [*force, *torque] == pytest.approx(np.zeros(6), abs=0.05)


@pytest.mark.parametrize(
    ("name", "bad", "good", "message"),
    [
        ("load_mass", -1.0, 2.0, "mass is -1 kg"),
        ("load_center", [0.0, 0.1], [0.0, 0.0, 0.05], "Parameter 'load_center' has 2 values; expected 3"),
        ("load_inertia", [1.0] + [0.0] * 5, [0.005, 0.0, 0.0, 0.005, 0.0, 0.005], "no body of 2 kg has the load's"),
    ],
)
def test_impossible_load_is_not_picked_up(client, name, bad, good, message):
    assert client.set("load_mass", 2.0).successful
    assert client.set(name, bad).successful
    answer = client.carry(True)
    assert client.set(name, good).successful
    assert not answer.success
    assert message in answer.message


def test_stopped_process_reports_its_lost_time(client, simulator):
    simulator.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    client.diagnostics.clear()
    simulator.send_signal(signal.SIGCONT)
    client.wait(lambda: any("lost" in status.message for status in client.diagnostics))
    client.wait(lambda: "lost" not in client.diagnostics[-1].message)  # reported once
    check_steps(client.next_states(250))


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("robot_description:=/nowhere/arm.urdf", "'/nowhere/arm.urdf': cannot be read"),
        ("rate:=5000.0", "'rate' of node 'simulator' is 5000.0; expected 1 to 1000"),
    ],
)
def test_invalid_parameters_end_the_process_with_one_line(parameter, message):
    with NodeProcess("simulator", None, *FILE, "-p", parameter) as process:
        assert process.wait() == 2
        assert message in process.output
        assert process.output.count("\n") == 1

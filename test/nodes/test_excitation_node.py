import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import planar_arm
import pytest
import yaml
from scipy.interpolate import BPoly

rclpy = pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float32, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from dynid_ros.errors import DynidError  # noqa: E402
from dynid_ros.nodes.excitation import ExcitationNode  # noqa: E402
from dynid_ros.trajectories import Trajectory  # noqa: E402

ROOT = Path(__file__).parents[2]
LATCHED = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOPIC = "/joint_trajectory_controller/joint_trajectory"
START = [0.4, -0.3, 0.2]
VELOCITY, ACCELERATION = 3.0, 12.0
PARAMETERS = {
    "robot_description": planar_arm.urdf(),
    "steps": 3,
    "dwell": 0.05,
    "sweep": 0.8,
    "speed_fraction": 0.8,
    "travel_speed_fraction": 0.8,
    "acceleration_limits": [ACCELERATION],
    "stale_after": 0.4,  # generous: the machine that runs the tests is busy
}


@pytest.fixture(autouse=True)
def ros(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", os.environ.get("ROS_DOMAIN_ID", "41"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    rclpy.init()
    yield
    rclpy.shutdown()


class Robot(Node):
    """Follows trajectories exactly, as a joint trajectory controller reads them; names its joints in another order."""

    def __init__(self, controller=True):
        super().__init__("robot")
        self.joints = list(planar_arm.JOINTS)
        self.named = ["finger", "joint_3", "joint_1", "joint_2"]
        self.state = np.array([START, [0.0] * 3, [0.0] * 3])
        self.spline, self.spline_start, self.spline_end = None, 0.0, 0.0
        self.fault = None
        self.commands: list[JointTrajectory] = []
        self.track: list[tuple[float, np.ndarray]] = []
        self.states: list[str] = []
        self.plans: list[dict] = []
        self.progress: list[float] = []
        self.levels: list[bytes] = []
        self.publisher = self.create_publisher(JointState, "joint_states", 10)
        if controller:
            self.controller = self.create_subscription(JointTrajectory, TOPIC, self.follow, 10)
        self.create_subscription(String, "/excitation/state", lambda m: self.states.append(m.data), LATCHED)
        self.create_subscription(
            String, "/excitation/plan", lambda m: self.plans.append(yaml.safe_load(m.data)), LATCHED
        )
        self.create_subscription(Float32, "/excitation/progress", lambda m: self.progress.append(m.data), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.levels.append(m.status[0].level), 10)
        self.create_timer(0.01, self.publish)

    def now(self):
        return self.get_clock().now().nanoseconds * 1e-9

    def follow(self, message):
        self.move()
        self.commands.append(message)
        time_ = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
        order = [message.joint_names.index(name) for name in self.joints]
        points = np.array([[p.positions, p.velocities, p.accelerations] for p in message.points])[:, :, order]
        self.spline = BPoly.from_derivatives([0.0, *time_], np.concatenate([[self.state], points]))
        self.spline_start, self.spline_end = self.now(), time_[-1]

    def move(self):
        if self.spline is not None and self.fault != "stuck":
            now = self.now()
            elapsed = min(now - self.spline_start, self.spline_end)
            self.state = np.array([self.spline.derivative(k)(elapsed) if k else self.spline(elapsed) for k in range(3)])
            self.track.append((now, self.state.copy()))

    def publish(self):
        self.move()
        if self.fault == "silent":
            return
        names = self.named[:3] if self.fault == "missing" else self.named
        values = {name: self.state[:2, i] for i, name in enumerate(self.joints)} | {"finger": [0.01, 0.0]}
        position, velocity = ([float(values[name][k]) for name in names] for k in range(2))
        if self.fault == "nan":
            position[1] = math.nan
        message = JointState(name=names, position=position, velocity=velocity)
        message.header.stamp = self.get_clock().now().to_msg()
        self.publisher.publish(message)


class Bench:
    """The node under test and the robot, each in its own thread."""

    def __init__(self, controller=True, **parameters):
        self.robot = Robot(controller)
        overrides = [Parameter(name, value=value) for name, value in (PARAMETERS | parameters).items()]
        self.node = ExcitationNode(parameter_overrides=overrides)
        self.executors = [SingleThreadedExecutor(), SingleThreadedExecutor()]
        self.threads = []
        for executor, node in zip(self.executors, (self.robot, self.node), strict=True):
            executor.add_node(node)
            self.threads.append(threading.Thread(target=executor.spin, daemon=True))
            self.threads[-1].start()

    def close(self):
        for executor, thread in zip(self.executors, self.threads, strict=True):
            executor.shutdown()
            thread.join(5.0)
        self.node.destroy_node()
        self.robot.destroy_node()

    def call(self, name):
        return call(self.robot, name)

    def start(self):
        wait(lambda: self.node._command.get_subscription_count() and self.robot.publisher.get_subscription_count())
        answer = self.call("start")
        assert answer.success, answer.message
        wait(lambda: self.robot.commands)
        return answer

    @property
    def state(self):
        return self.robot.states[-1] if self.robot.states else ""


def call(robot, name):
    client = robot.create_client(Trigger, f"/excitation/{name}")
    assert client.wait_for_service(10.0)
    done = threading.Event()
    future = client.call_async(Trigger.Request())
    future.add_done_callback(lambda _: done.set())
    assert done.wait(20.0), f"service {name} did not answer"
    return future.result()


def wait(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.005)


@pytest.fixture
def bench():
    benches = []

    def make(**arguments):
        benches.append(Bench(**arguments))
        return benches[-1]

    yield make
    for each in benches:
        each.close()


def check_smooth(robot):
    """What the robot was made to do, from sample to sample; it ends at rest."""
    wait(lambda: robot.now() - robot.spline_start > robot.spline_end + 0.1)
    wait(lambda: np.abs(robot.track[-1][1][1]).max() < 1e-9)  # its timer may be late
    times = np.array([t for t, _ in robot.track])
    states = np.array([state for _, state in robot.track])
    assert np.abs(states[:, 1]).max() <= VELOCITY
    assert np.abs(states[:, 2]).max() <= 3.0 * ACCELERATION  # messages take their time on a busy machine
    np.testing.assert_allclose(states[-1, 1], 0.0, atol=1e-9)
    steps = np.abs(np.diff(states[:, 0], axis=0))
    assert np.all(steps <= VELOCITY * np.diff(times)[:, np.newaxis] + 1e-6)


def test_whole_experiment(bench, tmp_path):
    bench = bench(trajectory_file=str(tmp_path / "motion.yaml"))
    robot = bench.robot
    wait(lambda: bench.state == "idle")
    designed = bench.call("design")
    assert designed.success, designed.message
    assert "joint_1: not rotated, axis parallel to gravity" in designed.message
    assert "joint_3: 46° in steps, its axis 90° from the vertical" in designed.message
    wait(lambda: robot.plans)
    assert "start_time" not in robot.plans[-1]
    motion = Trajectory.read(tmp_path / "motion.yaml")
    assert motion.duration == pytest.approx(robot.plans[-1]["duration"], abs=1e-3)

    started = bench.start()
    assert started.message.startswith("approaching for ")
    refused = bench.call("start")
    assert not refused.success
    assert "moving already (approaching)" in refused.message
    assert "the arm is moving" in bench.call("design").message
    wait(lambda: bench.state == "done", 90.0)
    assert robot.states == ["idle", "approaching", "running", "done"]
    assert len(robot.commands) == 1
    assert robot.progress[0] == 0.0
    assert robot.progress[-1] == 1.0
    assert len(robot.progress) > 10
    assert robot.progress == sorted(robot.progress)
    check_smooth(robot)

    plan = robot.plans[-1]
    begun = robot.spline_start + robot.spline_end - plan["duration"]
    assert plan["start_time"] == pytest.approx(begun, abs=0.3)
    for dwell in plan["dwells"]:
        start, end = (begun + dwell[key] for key in ("start", "end"))  # known to a few milliseconds
        speeds = [np.abs(state[1]).max() for t, state in robot.track if start + 0.05 < t < end - 0.05]
        assert max(speeds, default=0.0) < 1e-3
    refused = bench.call("stop")
    assert not refused.success
    assert "nothing to stop: the state is done" in refused.message
    assert DiagnosticStatus.ERROR not in robot.levels


FOURIER = {"motion": "fourier", "base_frequency": 0.4, "harmonics": 3, "candidates": 4}


def test_fourier_motion(bench):
    bench = bench(**FOURIER, periods=2)
    robot = bench.robot
    designed = bench.call("design")
    assert designed.success, designed.message
    assert designed.message.startswith("5.0 s, 2 periods of frequencies from 0.4 to 1.2 Hz, condition number ")
    wait(lambda: robot.plans)
    bench.start()
    wait(lambda: bench.state == "done", 60.0)
    assert robot.states == ["idle", "approaching", "running", "done"]
    check_smooth(robot)
    plan = robot.plans[-1]
    assert plan["format"] == "dynid-fourier/1"
    begun = robot.spline_start + robot.spline_end - plan["duration"]
    assert plan["start_time"] == pytest.approx(begun, abs=0.3)
    rate = 2 * np.pi * plan["base_frequency"] * np.arange(1, plan["harmonics"] + 1)
    times = np.array([t for t, _ in robot.track if begun < t < begun + plan["duration"]])
    angle = np.outer(times - begun, rate)
    for i, name in enumerate(robot.joints):
        joint = plan["joints"][name]
        series = joint["offset"] + np.sin(angle) / rate @ joint["sine"] - np.cos(angle) / rate @ joint["cosine"]
        followed = [state[0, i] for t, state in robot.track if begun < t < begun + plan["duration"]]
        np.testing.assert_allclose(followed, series, atol=1e-5)


def test_fourier_motion_can_be_stopped(bench):
    bench = bench(**FOURIER, periods=4)
    bench.start()
    robot = bench.robot
    wait(lambda: bench.state == "running" and moving(robot), 20.0)
    assert bench.call("stop").success
    wait(lambda: bench.state == "idle")
    check_smooth(robot)


def test_motion_can_be_changed_while_the_node_runs_and_limits_cannot(bench):
    bench = bench(candidates=4)

    def design(**changes):
        results = bench.node.set_parameters([Parameter(name, value=value) for name, value in changes.items()])
        assert all(result.successful for result in results), [result.reason for result in results]
        return bench.call("design")

    assert "joint_3: 46° in steps" in design().message
    first = design(motion="fourier").message
    second = design(seed=1).message
    assert first.startswith("20.0 s, 1 period")
    assert second != first
    refused = design(harmonics=1)
    assert not refused.success
    assert "harmonics is 1; it must be at least 2" in refused.message
    refused = design(motion="walk", harmonics=3)
    assert "Parameter motion is 'walk'; expected static_rotation or fourier" in refused.message
    assert design(motion="fourier", seed=0, harmonics=10).message == first
    (result,) = bench.node.set_parameters([Parameter("acceleration_limits", value=[100.0])])
    assert not result.successful


def test_message_is_for_the_controller(bench):
    bench = bench(controller_joints=["joint_3", "joint_1", "joint_2"], point_rate=100.0)
    bench.start()
    message = bench.robot.commands[0]
    assert message.joint_names == ["joint_3", "joint_1", "joint_2"]
    assert message.header.stamp.sec == message.header.stamp.nanosec == 0
    assert list(message.points[0].positions) == pytest.approx([START[2], START[0], START[1]])
    times = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points])
    assert times[0] == pytest.approx(1.0)
    np.testing.assert_allclose(np.diff(times)[:-1], 0.01, atol=1e-8)
    for field in ("velocities", "accelerations"):
        assert not np.any(getattr(message.points[0], field))
        assert not np.any(np.round(getattr(message.points[-1], field), 6))
    speeds = np.array([point.velocities for point in message.points])
    assert 0.5 * VELOCITY < np.abs(speeds).max() <= 0.8 * VELOCITY + 1e-6


def moving(robot):
    return robot.track and np.abs(robot.state[1]).max() > 0.5


def test_stop_brings_the_arm_to_rest_and_start_works_again(bench):
    bench = bench()
    bench.start()
    robot = bench.robot
    wait(lambda: bench.state == "running" and moving(robot), 20.0)
    answer = bench.call("stop")
    assert answer.success
    assert answer.message.startswith("at rest in ")
    refused = bench.call("stop")
    assert not refused.success
    assert "coming to rest already" in refused.message
    assert not bench.call("start").success
    wait(lambda: bench.state == "idle")
    assert robot.states[-2:] == ["stopped: on request", "idle"]
    check_smooth(robot)
    assert len(robot.commands) == 2
    resting = robot.state[0].copy()
    assert bench.call("start").success
    wait(lambda: len(robot.commands) == 3)
    order = [robot.commands[-1].joint_names.index(name) for name in robot.joints]
    np.testing.assert_allclose(np.array(robot.commands[-1].points[0].positions)[order], resting, atol=1e-9)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("silent", "no usable joint_states for 0."),
        ("nan", "position of joint 'joint_3' is nan"),
        ("missing", "joint_states lacks joint(s) joint_2"),
        ("stuck", "further away than tracking_error_limit 0.2"),
        ("no controller", "the controller does not listen"),
    ],
)
def test_fault_stops_the_motion_and_is_named(bench, fault, message):
    bench = bench()
    bench.start()
    robot = bench.robot
    wait(lambda: bench.state == "running" and moving(robot), 20.0)
    if fault == "no controller":
        robot.destroy_subscription(robot.controller)
    robot.fault = fault
    wait(lambda: bench.state.startswith("stopped"))
    assert message in bench.state
    wait(lambda: DiagnosticStatus.ERROR in robot.levels)
    if fault not in ("stuck", "no controller"):
        wait(lambda: len(robot.commands) == 2)
        check_smooth(robot)
    wait(lambda: bench.node._motion is None)
    assert bench.state.startswith("stopped")
    assert not bench.call("stop").success


def test_start_is_refused_without_a_controller(bench):
    answer = bench(controller=False).call("start")
    assert not answer.success
    assert f"no controller listens on '{TOPIC}'" in answer.message


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("silent", "no usable joint_states within 1 s; see that the driver runs"),
        ("nan", "no usable joint_states within 1 s: joint_states: position of joint 'joint_3' is nan"),
        ("missing", "no usable joint_states within 1 s: joint_states lacks joint(s) joint_2"),
    ],
)
def test_start_is_refused_without_good_joint_states(bench, fault, message):
    bench = bench()
    bench.robot.fault = fault
    time.sleep(0.5)  # what was published before is stale then
    answer = bench.call("start")
    assert not answer.success
    assert message in answer.message
    assert bench.robot.commands == []
    assert bench.state == "idle"


@pytest.mark.parametrize(
    ("pose", "velocity", "message"),
    [
        ([2.6, -0.3, 0.2], 0.0, "joint 'joint_1' would reach position 2.6 rad at 0.000 s; its limit is 2.5 rad"),
        ([0.4, 0.9, 0.2], 0.0, "'link_3' would be at height -0.013 m at 0.000 s, below floor_height 0.1 m"),
        ([0.4, -0.3, 0.2], 0.3, "the arm is moving ('joint_3' at 0.3 rad/s or m/s); bring it to rest first"),
    ],
)
def test_start_is_refused_from_where_no_motion_is_safe(bench, pose, velocity, message):
    bench = bench()
    bench.robot.state = np.array([pose, [0.0, 0.0, velocity], [0.0] * 3])
    time.sleep(0.2)
    answer = bench.call("start")
    assert not answer.success
    assert message in answer.message
    assert bench.robot.commands == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"acceleration_limits": [math.nan]},
            "acceleration_limits of joint 'joint_1' is not in the robot's description",
        ),
        (
            {"velocity_limits": [1.0, 2.0]},
            "velocity_limits: 2 values; give one for all joints or one for each of joint_1",
        ),
        (
            {"controller_joints": ["joint_1", "joint_2"]},
            "controller_joints is joint_1, joint_2; expected joint_1, joint_2",
        ),
        ({"tracking_error_limit": [0.1] * 4}, "tracking_error_limit: 4 values"),
        ({"steps": 1}, "steps is 1; it must be at least 3"),
        ({"point_rate": 1.0}, "point_rate is 1; expected 10 to 1000"),
        ({"motion": "walk"}, "motion is 'walk'; expected static_rotation or fourier"),
        ({"motion": "fourier", "harmonics": 1}, "harmonics is 1; it must be at least 2"),
        (
            {"motion": "fourier", "base_frequency": 2.0},
            "10 harmonics of 2 Hz is 20 Hz; with point_rate 50 it may be 5 Hz at most",
        ),
        ({"tip_link": "hand"}, "'hand' is not in the URDF"),
    ],
)
def test_bad_parameter_is_one_clear_error(parameters, message):
    overrides = [Parameter(name, value=value) for name, value in (PARAMETERS | parameters).items()]
    with pytest.raises(DynidError) as error:
        ExcitationNode(parameter_overrides=overrides)
    assert message in str(error.value)


def test_interrupt_stops_the_arm_before_the_process_ends(tmp_path):
    description = tmp_path / "arm.urdf"
    description.write_text(PARAMETERS["robot_description"])
    values = PARAMETERS | {"robot_description": str(description)}
    arguments = [part for name, value in values.items() for part in ("-p", f"{name}:={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "dynid_ros.nodes.excitation", "--ros-args", *arguments],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    robot = Robot()
    executor = SingleThreadedExecutor()
    executor.add_node(robot)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    try:
        wait(lambda: robot.states, 30.0)
        wait(lambda: call(robot, "start").success)
        wait(lambda: robot.states[-1] == "running" and moving(robot), 30.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(10.0) == 0, process.stderr.read()
        wait(lambda: len(robot.commands) == 2)
        assert len(robot.commands[1].points) < len(robot.commands[0].points)
        check_smooth(robot)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        executor.shutdown()
        thread.join(5.0)
        robot.destroy_node()
